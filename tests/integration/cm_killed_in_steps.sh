#!/usr/bin/env bash
# cm is killed at moments of a start, a growth and a drain, with nodes on machines of their own (scripts/ssh-hosts). The
# next cm ends the change or undoes it, no byte is lost, and nothing runs that is part of no deployment.
# ctest: slow timeout=400
ALLOW_LOG='lm-gone|killed|connect|closed|superseded|earlier term|can.t read|lost|refused|timed out|proof|partition'
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/ssh_hosts.sh
. "$HARNESS_DIR/ssh_hosts.sh"
need jq

MNT=$T/mnt
OWN=/run/memefs/$NAME # on each machine
MACHINES="tux1 tux2 tux3 tux4"
PARTITIONS=12
MOMENTS="0.02 0.1 0.2 0.4 0.7 1.2" # s after the call

cm_()
{
    cm_on tux1 "$@"
}

begin()
{
    cm_ start --hosts 'tux[1-4]' --nodes 2 --partitions $PARTITIONS --beta 1 --memory 128M --mount "$MNT" \
        --ssh-command "$SSH"
}

# killed_after SECONDS COMMAND…: so long after the command has been called, or has made a cm.
killed_after()
{
    "${@:2}" >"$T/out" 2>&1 &
    wait_for 20 on tux1 test -s "$OWN/cm.pid" || fail "no cm begins: $(cat "$T/out")"
    sleep "$1"
    # shellcheck disable=SC2016 # for the inner shell
    on tux1 bash -c 'kill -KILL "$(cut -d" " -f1 "$1/cm.pid")"' kill "$OWN" || true # it may have given up, and ended
    wait "$!" || true
}

# at_rest: no change is under way, all nodes are there, and each program that runs is part of it.
at_rest()
{
    local nodes
    nodes=$(cm_ status --json | jq 'if .state == "running" and all(.nodes[]; .state == "up") then .nodes | length else 0 end')
    [ "$nodes" -gt 0 ] && [ "$(pids_of lm | wc -w)" = "$nodes" ] && [ "$(pids_of redis-server | wc -w)" = $PARTITIONS ] &&
        [ "$(pids_of memefs | wc -w)" = "$nodes" ]
}

goes_on() # WHAT
{
    cm_ start >"$T/again" 2>&1 || fail "$1: no cm begins again: $(cat "$T/again")"
    wait_for 60 at_rest ||
        fail "$1: $(cat "$T/out" "$T/again"; cm_ status; cm_ events | tail -n 20; pgrep -a 'lm|redis-server')"
    equal "$sum" "$(content)" "$1: content"
}

content()
{
    on tux1 timeout 60 sha256sum "$MNT/data" | cut -d' ' -f1
}

nodes()
{
    cm_ status --json | jq '.nodes | length'
}

ssh_hosts up 4
mkdir "$MNT"

say "killed in its start: what it has asked for is given back"
for moment in $MOMENTS; do
    killed_after "$moment" begin
    cm_ stop --yes >"$T/stop" 2>&1 || grep -q "no deployment" "$T/stop" || fail "$moment s: cm stop: $(cat "$T/stop")"
    # shellcheck disable=SC2086 # several
    wait_for 40 nothing_on $MACHINES || fail "$moment s: left: $(cat "$T/out" "$T/stop"; pgrep -a 'cm|lm|redis-server')"
done

begin
on tux1 sh -c "head -c 20000000 /dev/urandom >'$MNT/data'"
sum=$(content)
for moment in $MOMENTS; do
    say "killed $moment s after that, while it grows, and while a node drains"
    killed_after "$moment" cm_ scale 3
    goes_on "scale 3"
    [ "$(nodes)" = 3 ] || cm_ scale 3
    killed_after "$moment" cm_ drain "$(cm_ status --json | jq -r '.nodes[-1].name')"
    goes_on drain
    [ "$(nodes)" = 2 ] || cm_ scale 2
done
cm_ stop --yes
# shellcheck disable=SC2086 # several
must_happen 10 nothing_on $MACHINES
ssh_hosts down
