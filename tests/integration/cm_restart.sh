#!/usr/bin/env bash
# cm and lm may be killed at any time: cm start brings a new cm, which takes the nodes up as they are;
# cm starts a dead lm again. Neither disturbs a redis process.
# ctest: timeout=120
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

ALLOW_LOG='lm-gone'

state_is() # WANT
{
    [ "$(cm_ status --json | jq -r .state)" = "$1" ]
}

redis_pids()
{
    pids_of redis-server | sort -n | tr '\n' ' '
}

lm_pids()
{
    pids_of lm | sort -n | tr '\n' ' '
}

cm_ start --nodes 3 --memory 128M >"$T/out" || fail "cm start"
grep -q "3 nodes, 19 partitions" "$T/out" || fail "cm start says: $(cat "$T/out")"
redis=$(redis_pids)
lms=$(lm_pids)
epoch=$(cm_ status --json | jq .epoch)

say "twice the same is harmless, another shape is refused"
cm_ start --nodes 3 --memory 128M | says "already running" || fail "second start"
cm_ start | says "already running" || fail "start without options"
expect_fail 1 cm_ start --nodes 4
grep -q -- "--nodes (3)" "$T/expect.out" || fail "does not name the difference"

say "cm killed: nodes go on, cm start takes them up"
kill -KILL "$(pids_of cm)"
must_happen 10 none_of cm
expect_fail 1 cm_ status
grep -q "cm start" "$T/expect.out" || fail "does not tell what to do"
cm_ start || fail "cm start with a dead cm"
equal "$redis" "$(redis_pids)" "redis processes"
equal "$lms" "$(lm_pids)" "Local Managers"
equal "$epoch" "$(cm_ status --json | jq .epoch)" "epoch"
state_is running || fail "not running after the restart"

say "an lm killed: cm starts it again"
kill -KILL "$(cut -d' ' -f1 "$STATE/node-1/lm.pid")"
must_happen 10 state_is degraded
must_happen 15 state_is running
equal "$redis" "$(redis_pids)" "redis processes"
equal 3 "$(pids_of lm | wc -l)" "Local Managers"

say "all of them killed"
for pid in $(pids_of cm) $(pids_of lm); do
    kill -KILL "$pid"
done
must_happen 10 none_of lm
cm_ start || fail "cm start with everything dead but redis"
equal "$redis" "$(redis_pids)" "redis processes"
state_is running || fail "not running"

say "cm and all clients killed: cm start returns when the mounts answer again"
cm_ stop >/dev/null
cm_ start --nodes 3 --memory 128M --mount "$T/a%n" || fail "cm start with mounts"
for pid in $(pids_of cm) $(pids_of memefs); do
    kill -KILL "$pid"
done
must_happen 10 none_of cm
cm_ start || fail "cm start with dead clients"
for mount in "$T"/a?; do
    mountpoint -q "$mount" || fail "nothing is mounted at $mount"
    ls "$mount" >/dev/null || fail "$mount does not answer"
done

say "cm stopped by a signal ends the deployment"
kill -TERM "$(pids_of cm)"
must_happen 30 no_daemons
[ ! -e "$STATE" ] || fail "left: $(ls -R "$STATE")"
cm_ stop | says "not running" || fail "stop of nothing"
