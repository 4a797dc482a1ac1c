#!/usr/bin/env bash
# No operation takes more requests of the kernel, or round trips to partitions, than docs/reference/performance.md says.
# ctest: release waits long=35
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need python3

deployment_start 4
timeout 150 "$HARNESS_DIR/../bench/roundtrips" "$MNT0" --name "$NAME" --state-dir "$STATE" --count 100 \
    --check "$HARNESS_DIR/../../docs/reference/performance.md" >"$T/table" || {
    cat "$T/table" >&2
    fail "more than the document says"
}
deployment_stop
