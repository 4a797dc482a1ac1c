#!/usr/bin/env bash
# cm start --probe: what shaped links carry is measured when nodes come, well enough to go by, also
# when most of those who help are slow; nodes of which the operator told are left alone.
# ctest: timeout=150
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"

MEMORY=256M

# carries NODE MBIT HOW: what cm status says of its link, 15 % more at most; 30 % less, as nine
# processes send and receive at once, on processors that may have other things to do.
carries()
{
    local kbit from
    read -r kbit from < <(cm_ status --json |
        jq -r ".nodes[] | select(.name == \"node-$1\") | \"\(.bandwidth_capacity * 8 / 1000 | floor) \(.bandwidth_from)\"")
    say "node $1: $kbit kbit/s, $from"
    equal "$3" "$from" "how the link of node $1 is known"
    if [ "$kbit" -lt $(($2 * 700)) ] || [ "$kbit" -gt $(($2 * 1150)) ]; then
        fail "node $1 is said to carry $kbit kbit/s, its link has $2 Mbit/s"
    fi
}

rates=(10 20 40 40 80)
printf '%smbit\n' "${rates[@]}" >"$T/rates"
net up 5 --profile "$T/rates" >/dev/null 2>&1 || skip "the kernel has no namespaces, bridges or token buckets for us"
cluster=(--beta 4 --provider exec --listen "$SUBNET.254:0" --first-address "$SUBNET.1" --max-nodes 8
    --exec-start "nsenter --net=/run/netns/$NET-{node} {lm}" --weights bandwidth --probe)

say "at the start"
deployment_start 4 "${cluster[@]}"
for node in 0 1 2 3; do
    carries "$node" "${rates[node]}" probed
done
most=$(cm_ status --json | jq '[.nodes[].partitions] | (max / min)')
[ "$(jq -n "$most >= 3")" = true ] || fail "the fastest has only $most times as many partitions as the slowest"

say "a node that comes"
cm_ scale 5 >"$T/scale.out" 2>&1 || fail "cm scale: $(cat "$T/scale.out")"
carries 4 80 probed
deployment_stop

say "nodes of which the operator told"
deployment_start 2 "${cluster[@]}" --bandwidth 9M,0
equal "9437184 told" "$(cm_ status --json | jq -r '.nodes[0] | "\(.bandwidth_capacity) \(.bandwidth_from)"')" "node 0"
# As much as node 0 lets it have.
carries 1 10 probed

say "one that could help does not answer"
read -r pid _ <"$STATE/node-0/lm.pid"
kill -STOP "$pid"
(sleep 6 && kill -CONT "$pid") &
cm_ scale 3 >"$T/scale.out" 2>&1 || fail "cm scale: $(cat "$T/scale.out")"
wait $!
carries 2 20 probed # as much as node 1 lets it have
deployment_stop
net down
