#!/usr/bin/env bash
# A minute of the soak (tests/support/soak_cluster.sh): one fault of most kinds, always the same.
# ctest: timeout=200 long=80
# Managers and clients say what was done to them.
ALLOW_LOG='Z error '
# shellcheck source=tests/support/soak_cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/soak_cluster.sh"

HOLD=5
MEMORY=160M # soon full
soak_main --seconds 60 --seed 7 --every 1 \
    --faults "client-killed redis-stopped scale-struck cm-killed link-cut lm-killed client-stopped scale full" "$@"
