#!/usr/bin/env bash
# While partitions leave a full link, all fenced, cm is killed, and then the lm of the node that they
# leave: they arrive all the same, and who reads and writes waits and does not fail.
# ctest: release timeout=240 long=50 waits
# shellcheck source=tests/support/full_link.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/full_link.sh"

ALLOW_LOG='lm-gone|killed|connect|closed|scale|copy|move|died'

moves()
{
    cm_ status --json | jq '.moves | length'
}

some_move()
{
    [ "$(moves)" -gt 0 ]
}

SIZE=524288
full_link_start
must_happen 20 event_says move-begins .
sleep 1 # what goes over the link is under way

say "cm is killed"
some_move || fail "all have left already: more bytes, please"
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
must_happen 10 none_of cm
cm_ start || fail "cm start: $(cm_ events)"

say "the lm of node 1 is killed, $(moves) partitions are leaving"
kill -KILL "$(cut -d' ' -f1 "$STATE/node-1/lm.pid")"
must_happen 90 event_says scaled "3 -> 3 nodes: [0-9]+ partitions?"
[ "$(count_on 1)" -le $((HAD / 3)) ] || fail "of $HAD partitions node 1 still has $(count_on 1)"
workers_stop
cm_ events | grep -E ' (scale|scale-resumed|scaled|move-.*|moved|lm-gone) '
deployment_stop
