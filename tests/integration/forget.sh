#!/usr/bin/env bash
# cm forget: a node that is dead for good goes, with nothing lost where there are replicas, and changes of nodes are
# possible again; by itself with --auto-forget. One that comes back is told to end what it runs.
# ctest: release timeout=240 long=50
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq

ALLOW_LOG='partition|did not take|client-behind|session|replica|lm-gone|joining failed|disconnected|state-unwritable|expired|beat'
MEMORY=256M
START="test ! -e $T/broken-{name} || exit 7; exec {lm}"

nodes()
{
    cm_ status --json | jq -r '[.nodes[].name] | sort | join(" ")'
}

whole() # NODES
{
    cm_ status --json | jq -e --arg nodes "$1" '.state == "running" and ([.nodes[].name] | sort | join(" ")) == $nodes and
        .unprotected == 0' >/dev/null
}

intact() # MOUNT WHEN
{
    (cd "$1" && sha256sum --quiet -c "$T/sums") || fail "files have changed $2"
}

deployment_start 5 --replicas 1 --partitions 20 --provider exec --first-address 127.0.0.1 --exec-start "$START"
mkdir "$MNT4/dir"
for i in 1 2 3 4; do
    head -c 5000000 /dev/urandom >"$MNT4/data$i"
    head -c 5000 /dev/urandom >"$MNT4/dir/small$i"
done
(cd "$MNT4" && sha256sum data? dir/* >"$T/sums")
await_protected

say "refused for a node that is there, or not known"
expect_fail 1 cm_ forget node-1
grep -q "node-1 is there: cm drain node-1 takes it out" "$T/expect.out" || fail "$(cat "$T/expect.out")"
expect_fail 1 cm_ forget node-9

say "two at once"
die node-1
must_happen 30 more_events failed-over 3
await_protected
die node-0
expect_fail 1 cm_ scale 4
grep -q "cm forget" "$T/expect.out" || fail "$(cat "$T/expect.out")"
await_served() { jq -e '.parts | all(.node > 1)' "$STATE/cm.json"; }
must_happen 60 await_served
cm_ forget --dry-run node-0 127.0.0.2 || fail "dry run"
cm_ forget node-0 127.0.0.2 --json >"$T/report" || fail "forget: $(cat "$T/report")"
jq -e '.from == 5 and .to == 3 and .partitions_moved == 0' "$T/report" || fail "$(cat "$T/report")"
event_says forgotten "nodes? now" || fail "no event"
must_happen 60 whole "node-2 node-3 node-4"
intact "$MNT2" "when two nodes were forgotten"

say "scale and rebalance work again"
cm_ rebalance || fail "rebalance"
cm_ scale +1 || fail "scale +1"
must_happen 60 whole "node-2 node-3 node-4 node-5"
intact "$MNT0" "when a node came in their place" # the first place is free, so it is node-5's
fsck_clean
deployment_stop
rm "$T"/broken-*

say "by itself; and one that comes back"
# The process that cm has started ends, the Local Manager goes on: as with a machine that cm can't see.
deployment_start 3 --replicas 1 --partitions 12 --auto-forget 3 --provider exec --first-address 127.0.0.1 --exec-start "{lm} & sleep 1"
for i in 1 2 3 4; do
    head -c 5000 /dev/urandom >"$MNT0/$i"
done
(cd "$MNT0" && sha256sum -- ? >"$T/sums")
await_protected
mapfile -t hers < <(cut -d' ' -f1 "$STATE"/node-2/{client,redis-*}.pid)
hers+=("$(pgrep -f -- "lm .*--node 2 ")")
equal 8 "$((${#hers[@]} < 8 ? 0 : 8))" "processes of node-2, or more"
kill -STOP "${hers[@]}"
mv "$STATE/node-2" "$T/node-2" # cm can't see what is on another machine
must_happen 60 whole "node-0 node-1"
event_says scale '--auto-forget: node-2 has been away for' || fail "not by itself"
mv "$T/node-2" "$STATE/node-2"
kill -CONT "${hers[@]}"
for pid in "${hers[@]}"; do
    must_happen 30 gone "$pid"
done
intact "$MNT1" "when a forgotten node came back"
equal "node-0 node-1" "$(nodes)" "nodes"
fsck_clean
deployment_stop
