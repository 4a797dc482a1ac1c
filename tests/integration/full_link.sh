#!/usr/bin/env bash
# The link of a node falls to a tenth while everyone reads and writes. Copies beside that would not
# get on, so partitions are fenced and leave all at once; who reads and writes waits, and nothing
# fails. When that is over they go back.
# ctest: timeout=200
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"

MEMORY=256M
WORKERS=4 # per node

count_on() # NODE
{
    cm_ status --json | jq ".nodes[$1].partitions"
}

has_them_again()
{
    [ "$(count_on 1)" -eq "$had" ]
}

# Writes a file, gives it its name, and reads one that another node replaces, until $T/enough is there.
work() # NODE NUMBER
{
    local mine=$T/mnt$1/w$1-$2 theirs=$T/mnt$1/w$((($1 + 1) % 3))-$2
    while [ ! -e "$T/enough" ]; do
        cp "$T/data" "$mine.new" && mv "$mine.new" "$mine" && cmp "$T/data" "$theirs" || return 1
    done
}

net up 3 --rate 20mbit >/dev/null 2>&1 || skip "the kernel has no namespaces, bridges or token buckets for us"
deployment_start 3 --provider exec --listen "$SUBNET.254:0" --first-address "$SUBNET.1" \
    --exec-start "nsenter --net=/run/netns/$NET-{node} {lm}" --beta 4 --stripe-size 32K \
    --weights auto --bandwidth 2400K --rebalance-window 12
had=$(count_on 1)

head -c 131072 /dev/urandom >"$T/data"
for ((i = 0; i < WORKERS; i++)); do
    for node in 0 1 2; do
        cp "$T/data" "$MNT0/w$node-$i"
    done
done
workers=()
for node in 0 1 2; do
    for ((i = 0; i < WORKERS; i++)); do
        work "$node" "$i" &
        workers+=($!)
    done
done

say "the link of node 1 falls to a tenth, and cm is told so"
net rate 1 2mbit
cm_is_told '.bandwidth = "2400K,240K,2400K" | .nodes[1].bandwidth = 245760'
must_happen 90 event_says scale "which is full.* cold"
must_happen 60 event_says scaled "3 -> 3 nodes: [0-9]+ partitions"
begun=$(cm_ events --json | jq -s '[.[] | select(.what == "move-begins" or .what == "moved") | .what] | index("moved")')
equal $((had - $(count_on 1))) "$begun" "moves that began before the first had ended"
[ "$(count_on 1)" -le $((had / 3)) ] || fail "of $had partitions node 1 still has $(count_on 1)"
! cm_ events | grep -E 'move-(failed|undone)' || fail "a copy failed"

touch "$T/enough"
for worker in "${workers[@]}"; do
    wait "$worker" || fail "a worker failed"
done
for file in "$MNT0"/*; do
    cmp "$T/data" "$file" || fail "$file has changed"
done

say "nothing is known of any link any more: they go back"
rm "$MNT0"/*
net rate 1 20mbit
cm_is_told '.bandwidth = "" | .nodes[] |= (.bandwidth = 0 | .bandwidth_from = "")'
must_happen 60 has_them_again
cm_ events | grep -E ' scaled? '
deployment_stop
