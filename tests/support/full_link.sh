# For tests in which the link of a node gets full: three nodes as network namespaces of 20 Mbit/s each, whose
# workers write files, rename them over older ones and read those of others. Sourced in place of own_net.sh,
# which it brings along.
#
#   SIZE          of each file, bytes
#   HAD           how many partitions node 1 had at first
# shellcheck shell=bash
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/own_net.sh"

MEMORY=256M
WORKERS=4 # per node

count_on() # NODE
{
    cm_ status --json | jq ".nodes[$1].partitions"
}

# Writes a file, gives it its name, and reads one that another node replaces, until $T/enough is there.
work() # NODE NUMBER
{
    local mine=$T/mnt$1/w$1-$2 theirs=$T/mnt$1/w$((($1 + 1) % 3))-$2
    while [ ! -e "$T/enough" ]; do
        cp "$T/data" "$mine.new" && mv "$mine.new" "$mine" && cmp "$T/data" "$theirs" || return 1
    done
}

workers_start()
{
    local node i
    head -c "$SIZE" /dev/urandom >"$T/data"
    workers=()
    for node in 0 1 2; do
        for ((i = 0; i < WORKERS; i++)); do
            cp "$T/data" "$MNT0/w$node-$i"
        done
    done
    for node in 0 1 2; do
        for ((i = 0; i < WORKERS; i++)); do
            work "$node" "$i" &
            workers+=($!)
        done
    done
}

# None has failed, and what they wrote is there.
workers_stop()
{
    local worker file
    touch "$T/enough"
    for worker in "${workers[@]}"; do
        wait "$worker" || fail "a worker failed"
    done
    for file in "$MNT0"/*; do
        cmp "$T/data" "$file" || fail "$file has changed"
    done
}

# Everything up to the decision of cm to take the partitions of node 1 off its link.
full_link_start()
{
    net up 3 --rate 20mbit >/dev/null 2>&1 || skip "the kernel has no namespaces, bridges or token buckets for us"
    deployment_start 3 --provider exec --listen "$SUBNET.254:0" --first-address "$SUBNET.1" \
        --exec-start "nsenter --net=/run/netns/$NET-{node} {lm}" --beta 4 --stripe-size 32K \
        --weights auto --bandwidth 2400K --rebalance-window 12
    # shellcheck disable=SC2034 # for who sources this
    HAD=$(count_on 1)
    workers_start

    say "the link of node 1 falls to a tenth, and cm is told so"
    net rate 1 2mbit
    cm_is_told '.bandwidth = "2400K,240K,2400K" | .nodes[1].bandwidth = 245760'
    must_happen 90 event_says scale "which is full.* cold"
}
