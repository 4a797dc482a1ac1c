#!/usr/bin/env bash
# Why is my job slow? Causes are planted, and the last line of memefs profile has to name each and its place:
# nothing at all, look-ups of what is not there, a lock, a partition that hangs, a full node. (A slow link:
# profile_link.)
# ctest: timeout=150 waits
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq python3 flock setfattr

MEMORY=160M
# The client says that the memory is full.
ALLOW_LOG='No space left|ENOSPC|out of memory|OOM|no room for written data'
deployment_start 2 --partitions 8 --max-nodes 2

# tells SECONDS PATH REGEX: the last line.
tells()
{
    timeout 60 memefs profile "$2" --for "$1" >"$T/profile" || fail "memefs profile"
    tail -n 1 "$T/profile" | says -E "$3" || fail "no '$3' in: $(cat "$T/profile")"
    say "$(tail -n 1 "$T/profile")"
}

mkdir -p "$MNT0/lib/python3.11" "$MNT0/out"
tells 500ms "$MNT0/out" '^nothing happened: no request in .* s below out'

say "names that do not exist"
python3 - "$MNT0" <<'PYTHON' &
import os, sys
i = 0
while not os.path.exists(sys.argv[1] + "/out/enough"):
    for k in range(50):
        os.path.exists(f"{sys.argv[1]}/lib/python3.11/none{i}-{k}")
    i += 1
PYTHON
sleep 0.5
tells 1s "$MNT0/lib" 'look-ups of names that do not exist, below lib/python3\.11$'
timeout 60 memefs profile "$MNT0" --for 500ms --json >"$T/json" || fail "memefs profile --json"
jq -e '.requests > 100 and (.missing[0].name == "lib/python3.11") and (.processes[0].name | startswith("python3[")) and
    .network_ms >= 0 and (.nodes | length) == 2 and (.sentence | test("lib/python3.11"))' "$T/json" >/dev/null ||
    fail "JSON: $(cat "$T/json")"
timeout 20 memefs trace "$MNT0" --path lib >"$T/trace" &
tracer=$!
timeout 20 memefs trace "$MNT0" --slow 5s --json >"$T/none" &
sleep 1
timeout 20 memefs stats "$MNT0" --interval 0.5 --count 2 >"$T/stats" || fail "memefs stats --interval"
equal 3 "$(wc -l <"$T/stats")" "lines of memefs stats --interval"
tail -n 1 "$T/stats" | awk '{ exit !($1 > 100 && $2 == 0 && $8 == 0) }' || fail "stats: $(cat "$T/stats")"
timeout 20 memefs stats "$MNT0" --interval 0.5 --count 1 --json | jq -e '.meta > 100 and .p99_ms > 0 and .errors == 0' >/dev/null ||
    fail "memefs stats --interval --json"
expect_fail 2 memefs stats "$MNT0" --count 1
expect_fail 2 memefs profile "$MNT0" --for 99999999999min
touch "$MNT0/out/enough"
kill "$tracer" "$!" || fail "memefs trace has ended by itself"
wait
grep -qE 'lookup +lib/python3\.11/none[0-9-]+ +ENOENT +python3\[[0-9]+\]  client [0-9.]+' "$T/trace" ||
    fail "trace: $(head -5 "$T/trace")"
! sed '$d' "$T/trace" | grep -vE ' lib(/| )' || fail "trace --path has others"
[ ! -s "$T/none" ] || fail "trace --slow has quick ones"

say "a lock"
printf 'db' >"$MNT0/out/results.db"
python3 - "$MNT0/out/results.db" "$T" <<'PYTHON' &
import fcntl, os, sys, time
f = open(sys.argv[1], "r+")
fcntl.lockf(f, fcntl.LOCK_EX)
open(sys.argv[2] + "/held", "w").close()
while not os.path.exists(sys.argv[2] + "/unlock"):
    time.sleep(0.05)
PYTHON
holder=$!
must_happen 20 test -e "$T/held"
python3 -c 'import fcntl, sys
fcntl.lockf(open(sys.argv[1], "r+"), fcntl.LOCK_EX)' "$MNT0/out/results.db" &
sleep 1
tells 1s "$MNT0/out" "waiting for locks on out/results\.db that process $holder \(python3\) holds"
: >"$T/unlock"
wait

say "a partition that hangs"
n=0
until : >"$MNT0/out/file$n" && [ "$(home_of "$MNT0/out/file$n")" -ne 0 ] &&
    [ "$(home_of "$MNT0/out/file$n")" -ne "$(home_of "$MNT0/out")" ]; do
    n=$((n + 1))
done
home=$(home_of "$MNT0/out/file$n")
redis_serving "$home"
node=${dir##*node-}
kill -STOP "$pid"
setfattr -n user.a -v b "$MNT0/out/file$n" &
tells 1500ms "$MNT0/out" "^partition $home on node $node does not answer: 1 request waits for it"
kill -CONT "$pid"
wait

say "a full node"
python3 - "$MNT0/out" "$T" <<'PYTHON' &
import errno, os, sys
data = os.urandom(1 << 20)
full, i = 0, 0
while not os.path.exists(sys.argv[2] + "/full"):
    i += 1
    try:
        with open(f"{sys.argv[1]}/piece{i}", "wb", buffering=0) as f:
            f.write(data)
    except OSError as e:
        assert e.errno == errno.ENOSPC, e
        open(sys.argv[2] + "/refused", "w").close()
PYTHON
must_happen 60 test -e "$T/refused"
tells 1s "$MNT0/out" '^(nodes? [01](, node [01])?) (is|are) full'
# A later look may see nothing but a close that waits, and no request that was refused.
tells 1s "$MNT0/out" '^(nodes? [01](, node [01])?) (is|are) full'
: >"$T/full"
wait
rm "$MNT0"/out/piece* || fail "rm of what filled the node"
deployment_stop
