#!/usr/bin/env bash
# .memefs/clients and .memefs/events: what cm knows, read from any mount; who may read it; and what they say, in
# bounded time, while cm, and then the Local Manager, does not answer.
# ctest: timeout=90
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq setpriv

deployment_start 2 --partitions 8
inside=$MNT0/.memefs

both_told()
{
    jq -e --arg one "$MNT0" --arg two "$MNT1" '.stale == false and .left_out == 0 and
        ([.clients[].path] | sort) == ([$one, $two] | sort) and all(.clients[]; .operations > 0 and .pid > 0)' \
        "$inside/clients.json" >/dev/null
}
ls "$MNT0" "$MNT1" >/dev/null
must_happen 15 both_told
node_told()
{
    jq -e --arg one "$MNT0" 'any(.clients[]; .path == $one and .node == "node-0")' "$MNT1/.memefs/clients.json"
}
must_happen 15 node_told
grep -qE "^node-1 .* $MNT1\$" "$inside/clients" || fail "clients: $(cat "$inside/clients")"
grep -qE '^20[0-9-]+T[0-9:.]+Z  node-1 +mounted ' "$inside/events" || fail "events: $(cat "$inside/events")"
equal "$(cm_ events --json | tail -n 1 | jq -c .)" "$(jq -c '.events[-1]' "$inside/events.json")" "the last event"

# What happens is there within a second or so.
policy_told()
{
    jq -e 'any(.events[-3:][]; .text | test("cso"))' "$inside/events.json"
}
cm_ policy cso >/dev/null || fail "cm policy"
must_happen 10 policy_told

# Of other users' mounts only the owner reads.
for file in clients events.json; do
    ! setpriv --reuid 65534 --regid 65534 --clear-groups cat "$inside/$file" 2>/dev/null || fail "$file is for everybody"
done

# Many readers at once.
for i in $(seq 40); do
    cat "$inside/clients.json" >"$T/reader$i" &
done
wait
for i in $(seq 40); do
    jq -e '.clients | length == 2' "$T/reader$i" >/dev/null || fail "reader $i: $(cat "$T/reader$i")"
done

# tells SECONDS FILE: what it is while nobody answers, which it says soon.
tells()
{
    local began=$SECONDS
    timeout 30 cat "$inside/$2" >"$T/said" || fail "$2 can't be read"
    [ $((SECONDS - began)) -le "$1" ] || fail "$2 took $((SECONDS - began)) s"
}
cm=$(cut -d' ' -f1 "$STATE/cm.pid") lm=$(cut -d' ' -f1 "$STATE/node-0/lm.pid")
kill -STOP "$cm"
sleep 1.2 # what it has told is news for a second
tells 10 clients.json
jq -e '.stale and .age_ms > 500 and (.clients | length) == 2' "$T/said" >/dev/null || fail "clients without cm: $(cat "$T/said")"
tells 10 events
grep -qE '^cm does not answer: this is what it told [0-9.]+ s ago$' "$T/said" || fail "events without cm: $(cat "$T/said")"
grep -q mounted "$T/said" || fail "no events without cm: $(cat "$T/said")"
kill -STOP "$lm"
tells 10 clients.json
jq -e '.stale and .age_ms > 1000 and (.clients | length) == 2' "$T/said" >/dev/null ||
    fail "clients without a Local Manager: $(cat "$T/said")"
kill -CONT "$lm" "$cm"
must_happen 20 both_told

deployment_stop
