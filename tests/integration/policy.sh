#!/usr/bin/env bash
# A policy adds nodes while a writer waits for memory, and removes them when the data are gone; it
# is changed at run time, and outlives cm.
# ctest: release timeout=240 waits long=50
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

ALLOW_LOG='lm-gone|killed|connect|closed'
MEMORY=96M
FILES=100 # a node holds two partitions of the eight at most, and the room that each needs is no reason to stay

nodes()
{
    cm_ status --json | jq -r '.nodes | length'
}

nodes_are() # N
{
    [ "$(nodes)" = "$1" ] && [ "$(cm_ status --json | jq -r .state)" = running ]
}

growing() # true|false: what the saved table says
{
    [ "$(jq -r .table.growing "$STATE/cm.json")" = "$1" ]
}

deployment_start 2 --max-nodes 8 --partitions 8 --policy cso+csi --scale-window 5
must_happen 10 growing true
equal "cso+csi" "$(cm_ policy)" "policy"

say "writers get more than two nodes hold, and no error"
head -c 1048576 /dev/urandom >"$T/data"
for ((i = 0; i < FILES; i++)); do
    cp "$T/data" "$MNT0/f$i" || fail "file $i was refused with $(nodes) nodes"
done
[ "$(nodes)" -ge 3 ] || fail "there are still $(nodes) nodes"
for ((i = 0; i < FILES; i++)); do
    cmp "$T/data" "$MNT0/f$i" || fail "file $i has changed"
done
cm_ events --json | jq -se 'any(.what == "scale" and (.text | test("by cso: .* used .*above 95 %")))' \
    >/dev/null || fail "no event tells why"

say "with none it stays as it is, and says so to writers"
many=$(nodes)
cm_ policy none
equal none "$(cm_ policy)" "policy"
must_happen 10 growing false
expect_fail 2 cm_ policy csi
expect_fail 2 cm_ policy cso+
equal none "$(cm_ policy)" "policy after wrong names"

say "a new cm goes on with it, and back come as many as at the start"
cm_ policy aso+asi
must_happen 10 growing "$([ "$many" -lt 8 ] && echo true || echo false)" # with all 8 nothing can come
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
cm_ start --policy aso+asi
equal aso+asi "$(cm_ policy)" "policy of the new cm"
expect_fail 1 cm_ start --policy cso
[ "$(nodes)" -ge "$many" ] || fail "$(nodes) nodes instead of $many, with the data still there"
rm "$MNT0"/f*
must_happen 90 nodes_are 2
cp "$T/data" "$MNT0/last" || fail "node 0 can not be written"
cmp "$T/data" "$MNT1/last" || fail "node 1 does not see it"

deployment_stop
