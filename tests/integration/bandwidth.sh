#!/usr/bin/env bash
# What nodes' links carry, found out from the traffic alone, on links that are really shaped: the
# slowest is known after some seconds in which all nodes write, nothing false is said of the others,
# a link that changes is noticed, and all of it outlives cm.
# ctest: release timeout=300 long=70
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"

MEMORY=256M
MBIT=125000 # bytes/s
MBITS=(40 80 80 20)

# Files of 12 MB, one after the other, until the test is over.
write_on() # NODE
{
    local i=0 file
    until [ -e "$T/enough" ]; do
        i=$((i + 1)) file=$T/mnt$1/large$1-$i
        head -c 12000000 /dev/zero >"$file" || break
        rm -f "$file"
    done
}

write_everywhere()
{
    local node
    rm -f "$T/enough"
    writers=()
    for node in 0 1 2 3; do
        write_on "$node" &
        writers+=("$!")
    done
}

write_no_more()
{
    touch "$T/enough"
    wait "${writers[@]}"
}

capacity() # NODE
{
    cm_ status --json | jq ".nodes[$1].bandwidth_capacity | floor"
}

# carries NODE MBIT: that is known of it, within 15 %.
carries()
{
    local rate
    rate=$(capacity "$1")
    [ "$rate" -ge $(($2 * MBIT * 85 / 100)) ] && [ "$rate" -le $(($2 * MBIT * 115 / 100)) ]
}

# not_less NODE MBIT: it is unknown or not taken for slower.
not_less()
{
    local rate
    rate=$(capacity "$1")
    [ "$rate" -eq 0 ] || [ "$rate" -ge $(($2 * MBIT * 85 / 100)) ]
}

# noticed SECONDS CONDITION…
noticed()
{
    local began=$SECONDS
    wait_for "$@" || fail "not so after $1 s: ${*:2}: $(said)"
    say "after $((SECONDS - began)) s: $(said)"
}

said()
{
    cm_ status --json | jq -c '[.nodes[] | (.bandwidth_capacity / 125000 | floor)]'
}

printf '%smbit\n' "${MBITS[@]}" >"$T/rates"
net up 4 --profile "$T/rates" >/dev/null 2>&1 || skip "the kernel has no namespaces, bridges or token buckets for us"
deployment_start 4 --beta 4 --provider exec --listen "$SUBNET.254:0" --first-address "$SUBNET.1" \
    --exec-start "nsenter --net=/run/netns/$NET-{node} {lm} --log-level debug"
equal "[0,0,0,0]" "$(said)" "capacities before there is traffic"

say "all write, over links of ${MBITS[*]} Mbit/s"
write_everywhere
noticed 60 carries 3 "${MBITS[3]}"
for ((i = 0; i < 10; i++)); do
    sleep 1
    carries 3 "${MBITS[3]}" || fail "node 3 carries ${MBITS[3]} Mbit/s: $(said)"
    for node in 0 1 2; do
        not_less "$node" "${MBITS[node]}" || fail "node $node carries ${MBITS[node]} Mbit/s: $(said)"
    done
done

say "the slowest link becomes a fast one, another one slow"
net rate 3 80mbit
noticed 60 not_less 3 80
net rate 1 8mbit
noticed 60 carries 1 8
write_no_more

say "nobody writes, and cm is killed"
sleep 2 # the last reports
before=$(capacity 1)
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
cm_ start >"$T/start.out" 2>&1 || fail "cm start: $(cat "$T/start.out")"
sleep 3
equal "$before" "$(capacity 1)" "capacity of node 1 after a restart of cm"
equal observed "$(cm_ status --json | jq -r '.nodes[1].bandwidth_from')" "where it is known from"
grep -c '"bandwidth"' "$STATE/events.jsonl" >"$T/events" || true
[ "$(cat "$T/events")" -le 12 ] || fail "$(cat "$T/events") events: $(grep '"bandwidth"' "$STATE/events.jsonl")"
deployment_stop
net down
