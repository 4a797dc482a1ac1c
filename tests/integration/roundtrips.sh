#!/usr/bin/env bash
# No operation takes more requests of the kernel, or round trips to partitions, than docs/reference/performance.md says.
# ctest: release waits long=35
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need python3

deployment_start 4
cd "$HARNESS_DIR/../.."
timeout 150 tests/bench/roundtrips "$MNT0" --name "$NAME" --state-dir "$STATE" --count 100 \
    --check docs/reference/performance.md >"$T/table" || {
    cat "$T/table" >&2
    fail "more than the document says"
}
deployment_stop
