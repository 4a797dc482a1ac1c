#!/usr/bin/env bash
# A deployment over shaped links, nodes being network namespaces (scripts/netns-cluster, the exec
# provider): a file goes from one mount to another, over links that carry no more than they are said
# to, also when their rate changes; a node that is cut off comes back.
# ctest: release timeout=300 waits long=55
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
need python3

MEMORY=256M

sent_by() # NODE: bytes that the bridge has had from it
{
    ip -json -s link show dev "$NET$1" | jq '.[0].stats64.rx.bytes'
}

now_us()
{
    echo $((${EPOCHREALTIME/./}))
}

# within_rate WHAT BITS_PER_SECOND BYTES MICROSECONDS
within_rate()
{
    local rate=$(($3 * 8 * 1000000 / $4))
    say "$1: $(($3 / 1000)) kB in $(($4 / 1000)) ms, $((rate / 1000)) kbit/s"
    [ "$rate" -le $(($2 * 115 / 100)) ] || fail "$1: $rate bit/s, the link has $2"
}

# shaped DEVICE [NODE]: bytes that have passed the bucket of a device (of the machine, or in that node), as it counts
# them: with the headers of each packet.
shaped()
{
    local tc=(tc)
    [ -z "${2-}" ] || tc=(net exec "$2" -- tc)
    "${tc[@]}" -json -statistics qdisc show dev "$1" root | jq '.[0].bytes'
}

flowing()
{
    [ "$(shaped "$@")" -gt 1000000 ]
}

# busy_at WHAT BITS_PER_SECOND DEVICE [NODE]: a bucket that always has somebody waiting lets just its rate pass. On a
# busy machine it takes a while to ask: the count is of some time between the call and its end.
busy_at()
{
    local what=$1 rate=$2 from before until bytes least most
    shift 2
    must_happen 10 flowing "$@" # and what the bucket had saved is gone
    from=$(now_us) before=$(shaped "$@") until=$(now_us)
    sleep 8
    most=$(now_us) bytes=$((($(shaped "$@") - before) * 8 * 1000000))
    most=$((bytes / (most - until))) least=$((bytes / ($(now_us) - from)))
    say "$what: $((least / 1000)) to $((most / 1000)) kbit/s"
    if [ $((most * 100)) -lt $((rate * 97)) ] || [ $((least * 100)) -gt $((rate * 103)) ]; then
        fail "$what: $least to $most bit/s instead of $rate"
    fi
}

# The streams end by themselves.
streams_on() # NODE WORD...
{
    local node=$1
    shift
    net exec "$node" -- "$HARNESS_DIR/streams" "$@" 2>>"$T/streams.out" &
}

# shares RATE BITS_PER_SECOND STREAMS: what a node sends to all others is its rate, and so is what it gets from all.
shares()
{
    local node
    net up 3 --rate "$1"
    for node in 1 2; do
        streams_on "$node" receive 5001 20
    done
    streams_on 0 send 5001 20 "$3" "$SUBNET.2" "$SUBNET.3"
    busy_at "node 0 sends, $3 streams to each of 2, at $1" "$2" eth0 0
    net down
    net up 3 --rate "$1"
    streams_on 2 receive 5001 20
    for node in 0 1; do
        streams_on "$node" send 5001 20 "$3" "$SUBNET.3"
    done
    busy_at "node 2 gets, $3 streams from each of 2, at $1" "$2" "${NET}2"
    net down # ends the streams
    wait
}

state()
{
    cm_ status --json | jq -r .state
}

in_state()
{
    [ "$(state)" = "$1" ]
}

say "the command line"
expect_fail 2 net
expect_fail 2 net sideways
expect_fail 2 net up none
expect_fail 2 net up 0
expect_fail 2 net --name 'No!' list
expect_fail 2 net up 2 --speed 3
expect_fail 1 net cut 0
expect_fail 1 net up 2 --rate swift
equal "" "$(ip -br link show type bridge)" "bridges after a failed up"
equal "" "$(ip netns list)" "namespaces after a failed up"
printf '# slow and fast\n10mbit\n\n20mbit\n' >"$T/profile"
net up 3 --profile "$T/profile"
equal "0 10Mbit 1 20Mbit 2 10Mbit " "$(net list | awk '{ printf "%s %s ", $1, $3 }')" "rates of a profile"
expect_fail 1 net up 3
grep -q "already" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
net exec 1 -- ip -json address show dev eth0 >"$T/address"
equal "$SUBNET.2" "$(jq -r '.[0].addr_info[] | select(.family == "inet").local' "$T/address")" "address of node 1"
net down
equal "" "$(net list)" "nodes after down"
equal "" "$(ip netns list)" "namespaces after down"

say "links that are full"
shares 6mbit 6000000 8
shares 40mbit 40000000 8

say "a deployment over links of 100 Mbit/s"
net up 3 --rate 100mbit
deployment_start 3 --beta 4 --provider exec --listen "$SUBNET.254:0" --first-address "$SUBNET.1" \
    --exec-start "nsenter --net=/run/netns/$NET-{node} {lm}"
equal "$SUBNET.1 $SUBNET.2 $SUBNET.3" "$(cm_ status --json | jq -r '[.nodes[].address] | join(" ")')" "addresses"
head -c 45000000 /dev/urandom >"$T/data"
before=$(sent_by 0) began=$(now_us)
cp "$T/data" "$MNT0/data"
took=$(($(now_us) - began)) bytes=$(($(sent_by 0) - before))
within_rate "writing at node 0" 100000000 "$bytes" "$took"
# A third of the stripes, more or less, stays on the node.
[ "$bytes" -ge 20000000 ] || fail "only $bytes bytes went over the link of node 0"
began=$(now_us)
cmp "$T/data" "$MNT2/data" || fail "content at node 2"
# What node 2 has not itself came over its link: at least as much as went out of two nodes.
within_rate "reading at node 2" 100000000 20000000 $(($(now_us) - began))

say "another rate"
net rate 1 20mbit
equal 20Mbit "$(net list | awk '$1 == 1 { print $3 }')" "rate of node 1"
before=$(sent_by 1) began=$(now_us)
head -c 12000000 "$T/data" >"$MNT1/slow"
took=$(($(now_us) - began)) bytes=$(($(sent_by 1) - before))
within_rate "writing at node 1" 20000000 "$bytes" "$took"
[ "$bytes" -ge 4000000 ] || fail "only $bytes bytes went over the link of node 1"
net rate 1 none
equal none "$(net list | awk '$1 == 1 { print $3 }')" "rate of node 1"

say "a node that is cut off"
knock=(net exec 0 -- timeout 1 bash -c "exec 3<>/dev/tcp/$SUBNET.2/1")
expect_fail 1 "${knock[@]}" # refused at once: nobody listens there
net cut 1
expect_fail 124 "${knock[@]}" # nobody answers at all
cp "$T/data" "$MNT0/cut" &
copy=$!
sleep 1 # long enough for requests to get stuck
kill -0 "$copy" || fail "a file was written although a third of the partitions is cut off"
net heal 1
wait "$copy" || fail "writing over a link that was cut for a second"
cmp "$T/data" "$MNT1/cut" || fail "content after the cut"
must_happen 20 in_state running
deployment_stop
net down
equal "" "$(ip netns list)" "namespaces at the end"
