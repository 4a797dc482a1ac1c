#!/usr/bin/env bash
# Partitions as bandwidths that are told have it: at the start, after a scale, when a link has
# changed; and off a fast node before writers find it full.
# ctest: release timeout=300 long=35
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

ALLOW_LOG='lm-gone|killed|connect|closed'
MEMORY=256M

counts()
{
    cm_ status --json | jq -c '[.nodes[].partitions]'
}

# As links of these bandwidths are busy alike: n of P partitions take n (P − n) of all traffic over a node's link, and
# with one less none is busier than another is with one more.
as_links() # BANDWIDTH …
{
    local links
    links=$(printf '%s\n' "$@" | jq -s .)
    cm_ status --json | jq -e --argjson b "$links" '.partitions as $p | [.nodes[].partitions] as $n
        | [range($n | length)] as $all
        | def busy(i; more): ($n[i] + more) * ($p - $n[i] - more) / $b[i];
        all($all[] as $i | $all[] as $j | busy($i; -1) < busy($j; 1); .)' >/dev/null
}

running()
{
    [ "$(cm_ status --json | jq -r .state)" = running ]
}

write_on() # until $T/enough is there
{
    while [ ! -e "$T/enough" ]; do
        for ((i = 0; i < 20; i++)); do
            cp "$T/data" "$MNT0/f$i" || return 1
        done
    done
}

say "nonsense is refused"
for rate in fast 1M,,2M "1M," -5 9 ,1M; do
    expect_fail 2 cm_ start --nodes 2 --bandwidth "$rate"
    grep -q "bandwidth" "$T/expect.out" || fail "does not name the option: $(cat "$T/expect.out")"
done
expect_fail 2 cm_ start --nodes 2 --weights speed
expect_fail 2 cm_ start --nodes 2 --rebalance-window 0

say "told bandwidths divide the partitions"
deployment_start 4 --partitions 48 --weights auto --bandwidth 10M,10M,20M,20M
as_links 1 1 2 2 || fail "partitions: $(counts)"
equal "auto true" "$(cm_ status --json | jq -r '"\(.weights) \(.by_bandwidth)"')" "weights"
equal "[10485760,\"told\"]" \
    "$(cm_ status --json | jq -c '.nodes[1] | [.bandwidth_capacity, .bandwidth_from]')" "link of node 1"
cm_ status | says '20.0 MiB told' || fail "cm status does not show links"
expect_fail 1 cm_ start --weights memory
expect_fail 1 cm_ start --bandwidth 1G

say "a node that comes has the last one told"
head -c 1048576 /dev/urandom >"$T/data"
for ((i = 0; i < 20; i++)); do
    cp "$T/data" "$MNT0/f$i" || fail "file $i was refused"
done
cm_ scale +1 || fail "cm scale"
as_links 1 1 2 2 2 || fail "partitions after the scale: $(counts)"
cm_ rebalance | says "0 partitions moved" || fail "a second plan moves something"

say "a link that has changed is followed"
cm_is_told '.bandwidth = "10M,10M,20M,2M,20M" | .nodes[3].bandwidth = 2097152'
write_on &
writer=$!
must_happen 60 event_says scale "by bandwidth: .* times the pace"
must_happen 30 running
touch "$T/enough"
wait "$writer" || fail "a writer was refused"
as_links 10 10 20 2 20 || fail "partitions after the change: $(counts)"
for ((i = 0; i < 20; i++)); do
    cmp "$T/data" "$MNT0/f$i" || fail "file $i has changed"
done

deployment_stop

say "a fast node gives before writers find it full"
MEMORY=256M
deployment_start 4 --partitions 32 --weights bandwidth --bandwidth 10M,10M,80M,80M
equal "[2,2,14,14]" "$(counts)" "partitions" # in proportion: 1.8, 1.8, 14.2, 14.2
for ((i = 0; i < 440; i++)); do
    cp "$T/data" "$MNT0/f$i" || fail "file $i was refused: $(cm_ status)"
    [ $((i % 8)) -gt 0 ] || sleep 0.3 # nodes tell how full they are once a second
done
must_happen 20 event_says scale "by memory: the fullest node is at"
must_happen 20 running
for ((i = 0; i < 440; i++)); do
    cmp "$T/data" "$MNT1/f$i" || fail "file $i has changed"
done
deployment_stop
