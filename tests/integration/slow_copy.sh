#!/usr/bin/env bash
# A partition leaves over a link so slow that one of its stripes takes longer than a copy may stand
# still: it gets on all the while, and arrives; hot, and cold.
# ctest: release timeout=200 waits long=90
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"

MEMORY=256M

holds_a_file() # NODE
{
    [ "$(cm_ status --json | jq ".nodes[$1].memory_used")" -gt 1600000 ]
}

net up 2 --rate 100mbit >/dev/null 2>&1 || skip "the kernel has no namespaces, bridges or token buckets for us"
deployment_start 2 --provider exec --listen "$SUBNET.254:0" --first-address "$SUBNET.1" \
    --exec-start "nsenter --net=/run/netns/$NET-{node} {lm}" --partitions 2 --beta 1

head -c 1044480 /dev/urandom >"$T/data"
for how in hot cold; do
    say "$how"
    for ((i = 0; i < 8; i++)); do
        cp "$T/data" "$MNT0/data$i"
        sleep 1.5 # nodes tell what they hold once a second
        ! holds_a_file 1 || break
    done
    holds_a_file 1 || fail "no file came to node 1: $(cm_ status)"
    # 40 kB/s: 26 s for the file; 20 s is how long a copy may stand still. A full queue is 2.5 s, more than an answer
    # of the source may take by itself; a much shorter one loses most of what comes at one time.
    net exec 1 -- tc qdisc replace dev eth0 root tbf rate 320kbit burst 3000 limit 100000
    cm_ scale -1 --migration "$how" || fail "cm scale -1, $how: $(cm_ events)"
    ! cm_ events | grep -E 'move-(failed|undone)' || fail "a copy failed"
    net rate 1 100mbit
    for file in "$MNT0"/data*; do
        cmp "$T/data" "$file" || fail "$file has changed"
    done
    rm "$MNT0"/data*
    cm_ scale +1 || fail "cm scale +1"
done
cm_ events | grep moved
deployment_stop
