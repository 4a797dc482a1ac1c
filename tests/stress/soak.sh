#!/usr/bin/env bash
# The soak, ten minutes of random faults; by hand as long as wanted:
#
#   MEMEFS_BIN=build/release/bin TEST_SECONDS=9000 tests/stress/soak.sh --seconds 7200 --seed 1 --json FILE
#
# ctest: slow serial timeout=1200
# Managers and clients say what was done to them.
ALLOW_LOG='Z error '
# shellcheck source=tests/support/soak_cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/soak_cluster.sh"

soak_main --seconds 600 "$@"
