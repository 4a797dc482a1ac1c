#!/usr/bin/env bash
# The link of a node falls to a tenth while everyone reads and writes. Copies beside that would not
# get on, so partitions are fenced and leave all at once; who reads and writes waits, and nothing
# fails. When that is over they go back.
# ctest: release timeout=200 long=40
# shellcheck source=tests/support/full_link.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/full_link.sh"

has_them_again()
{
    [ "$(count_on 1)" -eq "$HAD" ]
}

SIZE=131072
full_link_start
must_happen 60 event_says scaled "3 -> 3 nodes: [0-9]+ partitions?"
begun=$(cm_ events --json | jq -s '[.[] | select(.what == "move-begins" or .what == "moved") | .what] | index("moved")')
equal $((HAD - $(count_on 1))) "$begun" "moves that began before the first had ended"
[ "$(count_on 1)" -le $((HAD / 3)) ] || fail "of $HAD partitions node 1 still has $(count_on 1)"
! cm_ events | grep -E 'move-(failed|undone)' || fail "a copy failed"
workers_stop

say "nothing is known of any link any more: they go back"
rm "$MNT0"/*
net rate 1 20mbit
cm_is_told '.bandwidth = "" | .nodes[] |= (.bandwidth = 0 | .bandwidth_from = "")'
must_happen 60 has_them_again
cm_ events | grep -E ' scaled? '
deployment_stop
