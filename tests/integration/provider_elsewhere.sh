#!/usr/bin/env bash
# Nodes on other machines (--provider exec): what runs there can't be seen, and the pids that it has
# recorded mean nothing here. Each node is a PID namespace of its own. A dead cm is no reason to take
# them for dead.
# ctest: timeout=200 waits
# A node that a new cm has just started mounts while cm stop ends it.
ALLOW_LOG='the mount does not answer'
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

# The mounts of a node are its own, too. It is there until its lm and its client have ended, or until
# unshare is killed.
START="exec unshare --pid --fork --kill-child --mount-proc sh -c '{lm}; while pgrep -x memefs; do sleep 0.1; done'"
# What still runs at a node that is given back.
STOP="ls $STATE/{name}/lm.sock >>$T/early 2>/dev/null; echo {node} >>$T/ended"

start_elsewhere()
{
    cm_ start --nodes 2 --memory 128M --provider exec --first-address 127.0.0.1 --exec-start "$START" --exec-stop "$STOP" --mount "$T/mnt%n"
}

all_pids() # PROGRAM
{
    pids_of "$1" | sort -n | tr '\n' ' '
}

remain() # N PROGRAM
{
    [ "$(pids_of "$2" | wc -l)" -eq "$1" ]
}

kill_cm()
{
    kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
    must_happen 10 none_of cm
}

given_back()
{
    [ "$(sort -u "$T/ended" | tr '\n' ' ')" = "0 1 " ]
}

say "cm killed: cm start takes up what it can't see"
start_elsewhere || fail "cm start"
redis=$(all_pids redis-server) lms=$(all_pids lm)
[ "$redis" ] || fail "no redis processes to be seen from here"
for file in "$STATE"/node-*/redis-*.pid; do
    read -r pid began _ <"$file"
    [ "$(cut -d' ' -f22 "/proc/$pid/stat" 2>/dev/null)" != "$began" ] || fail "$file holds a pid of here"
done
epoch=$(cm_ status --json | jq .epoch)
kill_cm
cm_ start >"$T/out" 2>&1 || fail "cm start with a dead cm: $(cat "$T/out")"
grep -q "running again, with a new cm" "$T/out" || fail "cm start says: $(cat "$T/out")"
equal "$redis" "$(all_pids redis-server)" "redis processes"
equal "$lms" "$(all_pids lm)" "Local Managers"
equal "$epoch" "$(cm_ status --json | jq .epoch)" "epoch"

say "a node leaves, of which cm knows a connection only"
cm_ scale 1 >"$T/out" || fail "cm scale"
equal 1 "$(cm_ status --json | jq '.nodes | length')" "nodes"
for program in lm memefs; do
    must_happen 10 remain 1 "$program"
done

say "cm killed: cm stop ends what it can't see, or fails"
redis=$(all_pids redis-server)
kill_cm
mv "$STATE/secret" "$T/secret" # no cm can run without
expect_fail 1 cm_ stop
grep -q "may be on other machines" "$T/expect.out" || fail "cm stop says: $(cat "$T/expect.out")"
equal "$redis" "$(all_pids redis-server)" "redis processes after a cm stop that failed"
mv "$T/secret" "$STATE/secret"
deployment_stop
must_happen 10 given_back
[ ! -s "$T/early" ] || fail "given back before it had ended: $(cat "$T/early")"
[ ! -e "$STATE" ] || fail "left: $(ls -R "$STATE")"

say "nothing answers: cm start clears nothing away, cm stop ends it"
start_elsewhere || fail "cm start"
kill_cm
for pid in $(pids_of unshare); do
    kill -KILL "$pid"
done
must_happen 10 none_of redis-server
cp "$STATE/cm.json" "$T/cm.json"
expect_fail 1 cm_ start
grep -q "can be reached.* cm stop" "$T/expect.out" || fail "cm start says: $(cat "$T/expect.out")"
cmp "$T/cm.json" "$STATE/cm.json" || fail "cm start has changed the state"
none_of cm || fail "a cm runs"
deployment_stop
[ ! -e "$STATE" ] || fail "left: $(ls -R "$STATE")"
