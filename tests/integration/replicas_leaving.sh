#!/usr/bin/env bash
# --replicas 1: a node that holds nothing but replicas is to leave while one of these is taking over. It stays until that
# partition, too, is elsewhere.
# ctest: timeout=240
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq

ALLOW_LOG='partition|did not take|client-behind|session|replica'

counts()
{
    jq -c '[.nodes[].id as $n | [.parts[] | select(.node == $n)] | length]' "$STATE/cm.json"
}

pid_in() # NODE FILE
{
    cut -d' ' -f1 "$STATE/node-$1/$2.pid"
}

# Partitions that cm has on nodes that are not there.
astray()
{
    jq '[.nodes[].id] as $ids | [.parts[] | select(.node as $n | $ids | index($n) | not)] | length' "$STATE/cm.json"
}

MEMORY=256M deployment_start 3 --replicas 1
for ((n = 0; n < 60; n++)); do
    echo "content of $n" >"$MNT0/$n"
done
await_protected

say "node 2 loses its processes, and gets replicas"
before=$(jq '[.parts[] | select(.node == 2)] | length' "$STATE/cm.json")
# shellcheck disable=SC2046
kill -KILL $(primaries 2)
must_happen 30 more_events failed-over $((before - 1))
await_protected
say "partitions: $(counts)"
counts | jq -e '.[2] == 0 and (.[0] - .[1] | fabs) <= 1' >/dev/null || skip "they are not spread as is needed here"

say "one takes over while its node is to leave"
read -r part node < <(jq -r '.parts | to_entries[] | select(.value.replica_node == 2 and .value.replica_step == "ready" and
    .value.node == 1) | "\(.key) \(.value.node)"' "$STATE/cm.json")
client=$(pid_in 0 client)
redis=$(pid_in "$node" "redis-$part")
kill -STOP "$client" # it is waited for, for 1.2 s
kill -STOP "$redis"
must_happen 20 more_events failover-begins "$before"
status=0
cm_ scale 2 >"$T/scale.out" 2>&1 || status=$?
kill -CONT "$client" "$redis"
say "cm scale: $status, $(cat "$T/scale.out")"
must_happen 30 more_events failed-over "$before"
equal 0 "$(astray)" "partitions on nodes that have left"
equal 0 "$status" "exit status of cm scale"
equal 2 "$(counts | jq length)" "nodes"
await_protected
for ((n = 0; n < 60; n++)); do
    equal "content of $n" "$(cat "$MNT1/$n")" "what is in $n"
done
fsck_clean
deployment_stop
