#!/usr/bin/env bash
# Who waits for whom, on links that are really shaped: a writer waits for the node with the slow link
# and for that one only, a reader is waited for by all, and small files over idle links make
# nobody wait, though TCP is busy with them all the time.
# ctest: timeout=120 long=35 waits
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"

MEMORY=256M

# Leaves in $T/said what nodes' lm say from now on.
listen_anew()
{
    local node
    for node in 0 1 2; do
        wc -l <"$STATE/node-$node/lm.log" >"$T/line$node"
    done
}

# waited FROM TO: the median of `busy` since listen_anew, in per cent, of the seconds with more than
# 50 kB/s; "" for none.
waited()
{
    tail -n +"$(($(<"$T/line$1") + 1))" "$STATE/node-$1/lm.log" |
        sed -n "s/.*to node $2: \([0-9]*\) bytes.s, busy \([0-9.]*\)$/\1 \2/p" |
        awk '$1 > 50000 { printf "%d\n", $2 * 100 }' | sort -n | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
}

# waits FROM TO LEAST MOST
waits()
{
    local percent
    percent=$(waited "$1" "$2")
    say "node $1 waited for node $2: ${percent:-?} %"
    if [ -z "$percent" ] || [ "$percent" -lt "$3" ] || [ "$percent" -gt "$4" ]; then
        fail "node $1 waited for node $2 in ${percent:-no} % of the time, not $3 to $4"
    fi
}

printf '100mbit\n100mbit\n20mbit\n' >"$T/rates"
net up 3 --profile "$T/rates" >/dev/null 2>&1 || skip "the kernel has no namespaces, bridges or token buckets for us"
cluster=(--beta 4 --provider exec --listen "$SUBNET.254:0" --first-address "$SUBNET.1"
    --exec-start "nsenter --net=/run/netns/$NET-{node} {lm} --log-level debug")
deployment_start 3 "${cluster[@]}"

# traffic NODE: bytes per second, in and out, by cm status
traffic()
{
    cm_ status --json | jq ".nodes[$1] | .bandwidth_in + .bandwidth_out | floor"
}

say "a writer waits for the slow node"
listen_anew
(sleep 3 && traffic 0 >"$T/traffic") &
head -c 45000000 /dev/zero >"$MNT0/large"
waits 0 2 70 100
waits 0 1 0 50
wait $!
[ "$(<"$T/traffic")" -gt 500000 ] || fail "writing, node 0 had $(<"$T/traffic") bytes/s"

say "the reader at the slow node is waited for"
listen_anew
cat "$MNT2/large" >"$T/copy"
waits 0 2 70 100
waits 1 2 70 100

say "small files over idle links"
listen_anew
end=$((SECONDS + 5)) i=0
while [ "$SECONDS" -lt "$end" ]; do
    i=$((i + 1))
    head -c 4096 "$T/copy" >"$MNT0/small$i"
done
say "$i files"
waits 0 1 0 10

deployment_stop

say "another interface"
deployment_start 2 "${cluster[@]}" --interface lo
head -c 20000000 /dev/zero >"$MNT0/large" &
sleep 2
equal 0 "$(traffic 0)" "bytes/s of an interface that nothing uses"
wait $!
deployment_stop
net down
