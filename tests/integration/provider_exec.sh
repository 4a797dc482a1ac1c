#!/usr/bin/env bash
# Nodes that the operator's own commands start and stop (--provider exec): what the commands get, when
# they run, and what is said when they fail.
# ctest: timeout=200
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

MEMORY=128M
mkdir "$T/with 'quotes' and blanks"
STATE="$T/with 'quotes' and blanks/s" # stands in the Local Manager's command line

START="echo start {node} {name} {address} >>$T/calls; test ! -e $T/broken-{node} || { echo no such machine >&2; exit 7; }; exec {lm}"
STOP="echo stop {node} {name} {address} >>$T/calls"

exec_start() # NODES ARGUMENT…
{
    local nodes=$1
    shift
    deployment_start "$nodes" --beta 4 --provider exec --exec-start "$START" --exec-stop "$STOP" "$@"
}

calls() # KIND: of that kind, in the order of nodes
{
    sed -n "s/^$1 //p" "$T/calls" | sort | paste -sd,
}

called() # KIND WANT
{
    [ "$(calls "$1")" = "$2" ]
}

nodes()
{
    cm_ status --json | jq -c '[.nodes[].id]'
}

restarted()
{
    [ "$(cm_ status --json | jq -r .state)" = running ] && [ "$(calls start | tr ',' '\n' | grep -c "^1 node-4 ")" -eq 2 ]
}

wrong()
{
    local words=$1
    shift
    expect_fail 2 cm_ start "$@"
    grep -qE -- "$words" "$T/expect.out" || fail "start $*: says $(cat "$T/expect.out")"
    [ ! -e "$STATE" ] || fail "wrong usage has left $STATE"
}

# Processes that cm has started and not heard the end of, though they have ended.
no_zombies()
{
    ! grep -lsE "^[0-9]+ \\(.*\\) Z $(pids_of cm) " /proc/[0-9]*/stat
}

say "wrong usage"
wrong "needs --exec-start" --provider exec --memory 64M
wrong "needs to be told what a node gives" --provider exec --exec-start '{lm}'
wrong "only with --provider exec" --exec-start '{lm}'
wrong "only with --provider exec" --provider local --exec-stop 'true'
wrong "provider" --provider telepathy
wrong "can't reach 127.0.0.1, which is each machine's own" --provider exec --exec-start '{lm}' --memory 64M --listen 127.0.0.1:0
wrong "can't reach 127.0.0.1" --provider exec --exec-start '{lm}' --memory 64M --listen 127.0.0.1:0 --first-address 10.1.2.3
expect_fail 2 unshare --net cm start --name "$NAME" --state-dir "$STATE" --provider exec --exec-start '{lm}' --memory 64M
grep -q "no address by which nodes elsewhere" "$T/expect.out" || fail "without a network: $(cat "$T/expect.out")"
wrong "not an IPv4 address" --first-address localhost
wrong "no address of a node" --first-address 0.0.0.0 --memory 64M
wrong "no address of a node" --first-address 255.255.255.254 --nodes 2 --memory 64M
wrong "no address of a node" --first-address 223.255.255.255 --nodes 2 --memory 64M

say "a command that fails at once"
touch "$T/broken-1"
expect_fail 1 cm_ start --nodes 3 --memory 64M --provider exec --first-address 127.0.0.1 --exec-start "$START" --exec-stop "$STOP"
grep -q "node-1: its lm exited with status 7" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
grep -q "no such machine" "$T/expect.out" || fail "does not show lm.log: $(cat "$T/expect.out")"
must_happen 10 called stop "0 node-0 127.0.0.1,1 node-1 127.0.0.2,2 node-2 127.0.0.3"
check_nothing_left
rm "$T/broken-1" "$T/calls"

say "start, write, grow, shrink, stop"
exec_start 2 --max-nodes 4 --first-address 127.0.7.1
equal "0 node-0 127.0.7.1,1 node-1 127.0.7.2" "$(calls start)" "calls of --exec-start"
equal "127.0.7.1 127.0.7.2" "$(cm_ status --json | jq -r '[.nodes[].address] | join(" ")')" "addresses"
equal 2 "$(pids_of lm | wc -l)" "Local Managers"
head -c 20000000 /dev/urandom >"$T/data"
cp "$T/data" "$MNT0/data"

cm_ doctor >"$T/doctor" || fail "cm doctor: $(cat "$T/doctor")"
grep -q "^ok    node-1: mount: $MNT1 answers" "$T/doctor" || fail "cm doctor: $(cat "$T/doctor")"
chmod 640 "$STATE/secret"
expect_fail 1 cm_ doctor
bash -c "$(sed -n 's/^      -> \(chmod .*\)/\1/p' "$T/expect.out")" || fail "advice with quotes: $(cat "$T/expect.out")"
cm_ doctor >"$T/doctor" || fail "cm doctor: $(cat "$T/doctor")"

touch "$T/broken-2"
expect_fail 1 cm_ scale 3
grep -q "its lm exited with status 7" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
equal "[0,1]" "$(nodes)" "nodes after a command that failed"
must_happen 10 called stop "2 node-2 127.0.7.3"
rm "$T/broken-2" "$T/calls"

mkdir -p "$T/mnt2"
cm_ scale 3 >"$T/report" || fail "cm scale 3"
equal "2 node-3 127.0.7.3" "$(calls start)" "calls of --exec-start for a node that comes"
cmp "$T/data" "$T/mnt2/data" || fail "content at the node that came"
cm_ scale 1 >"$T/report" || fail "cm scale 1"
equal "[0]" "$(nodes)" "nodes after cm scale 1"
must_happen 10 called stop "1 node-1 127.0.7.2,2 node-3 127.0.7.3"
cmp "$T/data" "$MNT0/data" || fail "content after cm scale 1"
must_happen 10 no_zombies
cm_ scale 2 >"$T/report" || fail "cm scale 2"

say "a Local Manager that is killed is started by the command"
kill -KILL "$(cut -d' ' -f1 "$STATE/node-4/lm.pid")"
ALLOW_LOG='lm-gone'
must_happen 20 restarted
cmp "$T/data" "$MNT0/data" || fail "content after a restart of lm"

rm "$T/calls"
deployment_stop
must_happen 10 called stop "0 node-0 127.0.7.1,1 node-4 127.0.7.2"
