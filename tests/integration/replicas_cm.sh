#!/usr/bin/env bash
# --replicas 1: cm is killed with a redis process, and right after one; the next cm goes on with the failover. Without
# cm, terms go on and so does the traffic.
# ctest: slow timeout=300
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq

ALLOW_LOG='partition|did not take|client-behind|lm-gone'
FILES_MOST=20

MEMORY=256M deployment_start 3 --replicas 1 --partitions 12
await_protected
touch "$T/load.sums"
write_files "$MNT0" load &
files_grow load

say "cm and a redis process are killed together"
read -r victim < <(primaries 1)
kill -KILL "$(pids_of cm)" "$victim"
cm_ start >/dev/null || fail "cm start"
must_happen 60 serves_not 1 "$victim"
files_grow load
await_protected

say "a redis process is killed, and cm in the middle of it"
read -r victim < <(primaries 1)
kill -KILL "$victim"
kill -KILL "$(pids_of cm)"
cm_ start >/dev/null || fail "cm start"
must_happen 60 serves_not 1 "$victim"
files_grow load
await_protected

say "without cm"
kill -KILL "$(pids_of cm)"
for ((n = 0; n < 15; n++)); do # longer than a term, as the load pauses
    files_grow load
done
cm_ start >/dev/null || fail "cm start"
touch "$T/stop"
wait
check_files "$MNT2" load
