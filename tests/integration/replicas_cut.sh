#!/usr/bin/env bash
# --replicas 1: a node is cut off the network (namespaces), replaced, and comes back. Nobody who can reach the others
# loses a closed file; on the cut side calls fail in time; what comes back is told to end what it had.
# ctest: slow timeout=400
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"

ALLOW_LOG='partition|did not take|client-behind|session|written data are lost|cannot|can.t|lm-gone|joining'
FILES_MOST=100
NET=r
TIMEOUT=5

net up 3
MEMORY=512M deployment_start 3 --replicas 1 --partitions 12 --provider exec --listen "$SUBNET.254:0" \
    --first-address "$SUBNET.1" --exec-start "nsenter --net=/run/netns/$NET-{node} {lm}" \
    --mount-options "io_timeout=$TIMEOUT"
await_protected
touch "$T/load.sums"
write_files "$MNT0" load &
files_grow load

say "a node is cut off"
count=$(primaries 1 | wc -l)
before=$(events_of failed-over) since=$(epoch_ms)
net cut 1
must_happen 60 more_events failed-over $((before + count - 1))
files_grow load
say "longest pause between two files: $(longest_pause load "$since") ms"
check_files "$MNT2" load

say "calls on the cut side end"
failed=0
for n in 1 2 3 4; do
    status=0
    timeout -k 1 100 cp "$T/load.data" "$MNT1/cut-$n" 2>/dev/null || status=$?
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
        fail "a call on the cut side hangs"
    fi
    failed=$((failed + (status != 0)))
done
[ "$failed" -gt 0 ] || fail "a node that is cut off writes as if nothing had happened"

say "it comes back"
net heal 1
await_protected
files_grow load
touch "$T/stop"
wait
check_files "$MNT2" load
read_back()
{
    (cd "$MNT1" && sha256sum --quiet -c "$T/load.sums" >/dev/null 2>&1)
}
must_happen 60 read_back
deployment_stop
net down
