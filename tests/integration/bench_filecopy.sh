#!/usr/bin/env bash
# memefs bench filecopy: two nodes write and read and tell one result, nothing is left; each wrong call has its
# sentence; a node that dies or never comes does not keep the other for ever; files that others touch are found out.
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

deployment_start 2 --partitions 8

# copy NODE [ARGUMENT…]: on its mount, in the directory "bench".
copy()
{
    local mnt=MNT$1
    timeout 60 memefs bench filecopy --json --workers 2 --chunk-size 100000 "${@:2}" "${!mnt}/bench"
}

# complains TEXT: the command that failed last has said so.
complains()
{
    grep -q "$1" "$T/expect.out" || fail "no \"$1\" in: $(<"$T/expect.out")"
}

copy 0 --nodes 2 --file-size 3M >"$T/said0" &
copy 1 --nodes 2 --file-size 3M >"$T/said1"
wait $!
cat "$T/said0" "$T/said1" >"$T/said"
equal 1 "$(wc -l <"$T/said")" "results of two nodes"
equal "2 2 3145728 100000 true true" "$(jq -r '[.nodes, .workers, .file_size, .chunk_size, .write > 0, .read > 0] | map(tostring) | join(" ")' "$T/said")" "the result"
[ ! -e "$MNT0/bench" ] || fail "the directory is left"

copy 1 --file-size 1 >/dev/null # one node, a file that is smaller than what tells the chunks apart
[ ! -e "$MNT1/bench" ] || fail "the directory of one node is left"

expect_fail 2 memefs bench filecpy "$MNT0/bench"
complains 'unknown workload "filecpy"'
expect_fail 2 copy 0 --workers 0
mkdir "$MNT0/bench"
touch "$MNT0/bench/mine"
expect_fail 1 copy 0 --file-size 1M
complains 'holds "mine"'
[ -e "$MNT0/bench/mine" ] || fail "a file of the user's is gone"
rm -r "$MNT0/bench"

expect_fail 1 copy 0 --nodes 2 --wait 1
complains '1 of 2 nodes have come within 1 s'
[ ! -e "$MNT0/bench" ] || fail "the node that waited in vain has left its directory"

# One of two dies while it writes: the other says so when its time is up.
memefs bench filecopy --nodes 2 --workers 1 --file-size 256M "$MNT1/bench" &
victim=$!
copy 0 --nodes 2 --file-size 1M --wait 4 >"$T/expect.out" 2>&1 &
other=$!
must_happen 20 test -e "$MNT0/bench/begin-0" -a -e "$MNT0/bench/begin-1"
kill -KILL "$victim"
! wait "$victim" 2>/dev/null || fail "it had ended before it was killed"
! wait "$other" || fail "it was content with half"
complains 'has not come to "written" within 4 s'
rm -rf "$MNT0/bench"

# The other node's file holds something else: this shell plays the other node.
copy 0 --nodes 2 --workers 1 --file-size 200000 >"$T/expect.out" 2>&1 &
other=$!
must_happen 20 test -d "$MNT1/bench"
head -c 200000 /dev/zero >"$MNT1/bench/file-1-0"
touch "$MNT1/bench/member-~"
echo 0 >"$MNT1/bench/begin-1"
echo 0 >"$MNT1/bench/written-1"
touch "$MNT1/bench/left-1"
! wait "$other" || fail "it did not notice"
complains 'what was read is not what was written'
deployment_stop
