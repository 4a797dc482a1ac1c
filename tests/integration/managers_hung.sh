#!/usr/bin/env bash
# A Local Manager that hangs is ended by cm, and another takes its place: the node's memory is divided again, so
# that a partition may have all of it. When it is cm that was stopped, no Local Manager is ended for its silence.
# ctest: release timeout=180 waits long=85
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"

ALLOW_LOG='lm-hung|lm-gone|killed|connect|closed|No space left'
MEMORY=128M
events_of() { jq -rs --arg what "$1" 'map(select(.what == $what)) | length' "$STATE/events.jsonl"; }
more_events() { [ "$(events_of "$1")" -gt "$2" ]; }
pid_in() { cut -d' ' -f1 "$STATE/$1"; }
# Files of 1 MB, each in a partition, until one does not fit: how many did.
fills()
{
    local n=0
    mkdir "$MNT0/full"
    while head -c 1000000 /dev/zero >"$MNT0/full/$n"; do
        n=$((n + 1))
        [ "$n" -lt 1000 ] || fail "the memory has no end"
    done 2>"$T/fill.err"
    rm -r "$MNT0/full"
    echo "$n"
}

deployment_start 1
filled=$(fills)
say "$filled files fit"

say "cm is stopped for longer than a Local Manager may be silent"
kill -STOP "$(pid_in cm.pid)"
sleep 33
kill -CONT "$(pid_in cm.pid)"
sleep 5 # two looks
equal 0 "$(events_of lm-hung)" "Local Managers taken for hung"

say "the Local Manager is stopped"
lm=$(pid_in node-0/lm.pid)
kill -STOP "$lm"
say "$(fills) files fit as long as it is stopped"
must_happen 45 more_events lm-hung 0
must_happen 10 more_events lm-restarted 0
must_happen 10 more_events joined 1
! kill -0 "$lm" 2>/dev/null || fail "process $lm is still there"
sleep 2 # it looks at its processes
now=$(fills)
say "$now files fit"
[ "$now" -gt $((filled * 3 / 4)) ] || fail "$now files fit, $filled before"
equal 1 "$(events_of lm-hung)" "Local Managers taken for hung"
fsck_silent
deployment_stop
