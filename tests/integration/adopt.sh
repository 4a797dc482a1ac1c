#!/usr/bin/env bash
# cm goes to another machine: handed over while it lives, elected by the nodes when it has died, and with its machine. An
# old one that comes back changes nothing; of two at once one begins; no acknowledged byte is lost, and nothing is left.
# ctest: slow timeout=200
ALLOW_LOG='lm-gone|killed|connect|closed|superseded|earlier term|can.t read|makes no sense|lost|refused|No route|timed out|proof'
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/ssh_hosts.sh
. "$HARNESS_DIR/ssh_hosts.sh"

MNT=$T/mnt
OWN=/run/memefs/$NAME # on each machine

# What cm said, wherever it was.
fail_with_logs() # WORDS
{
    local machine
    for machine in tux1 tux2 tux3 tux4; do
        on "$machine" sh -c "cd $OWN && tail -n 60 cm.log node-*/lm.log node-*/adopt.log" || true
    done
    cm_on tux1 status || true
    on tux2 timeout 20 memefs lost --name "$NAME" || true
    fail "$1"
}

whole() # MACHINE NODES: as asked there
{
    wait_for 60 status_is "$1" ".state == \"running\" and (.nodes | length) == $2" || fail_with_logs "not whole as $1 sees it"
}

protected() # MACHINE: each partition has its replica
{
    must_happen 60 eval "cm_on $1 status | says 'replicas: 1; 0 of'"
}

signal_cm_on() # MACHINE SIGNAL
{
    # shellcheck disable=SC2016 # for the inner shell
    on "$1" bash -c 'kill "-$2" "$(cut -d" " -f1 "$1/cm.pid")"' kill "$OWN" "$2"
}

one_cm()
{
    [ "$(pids_of cm | wc -w)" = 1 ]
}

cm_process() # on tux1
{
    on tux1 cat "$OWN/cm.pid"
}

is_another() # THAN
{
    [ "$(cm_process)" != "$1" ]
}

content() # MACHINE
{
    on "$1" timeout 60 sha256sum "$MNT/data" | cut -d' ' -f1
}

same_content() # MACHINE
{
    [ "$(content "$1")" = "$sum" ]
}

complains() # WORDS: the command that has failed does
{
    grep -q -- "$1" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
}

ssh_hosts up 4
mkdir "$MNT"

say "each node has a copy of what cm knows, and verbs work there"
cm_on tux1 start --hosts 'tux[1-4]' --nodes 4 --partitions 12 --beta 1 --memory 128M --replicas 1 --mount "$MNT" --ssh-command "$SSH" ||
    fail "cm start"
for i in 1 2 3 4; do
    must_happen 5 on "tux$i" test -s "$OWN/node-$((i - 1))/cm.json"
    equal 600 "$(on "tux$i" stat -c %a "$OWN/node-$((i - 1))/cm.json")" "mode of the copy on tux$i"
    whole "tux$i" 4
done
on tux1 sh -c "head -c 20000000 /dev/urandom >'$MNT/data'"
sum=$(content tux2)
protected tux1
expect_fail 1 cm_on tux2 start --provider local --memory 64M
complains "cm start --adopt has it here"

on tux1 cm doctor --name "$NAME" >"$T/doctor" 2>&1 || true
grep -q "term 0; 4 of 4 nodes have a fresh one, 4 vote" "$T/doctor" || fail "cm doctor: $(cat "$T/doctor")"

say "handed over"
redis=$(pids_of redis-server | sort)
cm_on tux2 start --adopt || fail "cm start --adopt"
whole tux2 4
whole tux4 4
must_happen 5 status_is tux4 '.term == 1 and ([.nodes[] | select(.votes)] | length) == 4'
must_happen 5 on tux1 test ! -e "$OWN/cm.json"
equal "" "$(comm -23 <(echo "$redis") <(pids_of redis-server | sort))" "redis processes that are gone"

say "told to end, it goes to a machine that stays"
signal_cm_on tux2 TERM
must_happen 20 on tux1 test -e "$OWN/cm.addr"
whole tux2 4
must_happen 5 on tux2 test ! -e "$OWN/cm.json"
one_cm || fail "several cms: $(pids_of cm)"

say "told to end when it has just begun, and no node has joined it yet"
lms=$(pids_of lm)
# shellcheck disable=SC2086 # several
kill -STOP $lms
old=$(cm_process)
signal_cm_on tux1 KILL
cm_on tux1 start >"$T/out" 2>&1 &
must_happen 10 is_another "$old"
sleep 0.3 # until it hears signals
signal_cm_on tux1 TERM
sleep 1.5 # longer than it waits for nodes that end as well to say so
# shellcheck disable=SC2086
kill -CONT $lms
must_happen 20 on tux1 test ! -e "$OWN/cm.json"
whole tux4 4
same_content tux3 || fail "the content is gone"
wait "$!" || true # it may have been too late to see the deployment whole
cm_on tux1 start --adopt || fail "cm start --adopt"
whole tux4 4

say "a copy that is damaged, a secret that is another one"
on tux4 sh -c "cp '$OWN/node-3/cm.json' '$OWN/copy' && echo '{' >'$OWN/node-3/cm.json'"
expect_fail 1 cm_on tux4 start --adopt
complains "node-3/cm.json"
on tux4 sh -c "mv '$OWN/copy' '$OWN/node-3/cm.json' && mv '$OWN/secret' '$OWN/kept' && printf '%064d\n' 7 >'$OWN/secret' && chmod 600 '$OWN/secret'"
expect_fail 1 cm_on tux4 start --adopt
complains "no node answers: .*refused our proof"
on tux4 mv "$OWN/kept" "$OWN/secret"
whole tux4 4

say "elected, when cm was killed while partitions moved"
cm_on tux3 scale 3 --rate 1M >"$T/out" 2>&1 &
must_happen 20 status_is tux4 '.state == "scaling"'
signal_cm_on tux1 KILL
wait $! && fail "cm scale has not noticed that"
cm_on tux3 start --adopt || fail "cm start --adopt"
whole tux1 3
equal "$sum" "$(content tux1)" "content"

say "an old one comes back"
on tux1 cp -p "$OWN/cm.json" "$OWN/kept"
expect_fail 1 cm_on tux1 start
complains "follow a cm that was started elsewhere"
on tux1 mv "$OWN/kept" "$OWN/cm.json"
on tux1 timeout 20 cm daemon --name "$NAME" || true
on tux1 test ! -e "$OWN/cm.json" || fail "an old cm has left its state"
whole tux2 3
protected tux3

say "the machine of cm dies"
ssh_hosts crash tux3
rm -rf "/var/tmp/memefs-$NAME-"*/node-2 # of tux3, whose disk is this machine's
expect_fail 1 cm_on tux1 status
complains "cm start --adopt"
cm_on tux1 start --adopt >"$T/one" 2>&1 &
one=$!
cm_on tux2 start --adopt >"$T/two" 2>&1 &
two=$!
begun=0
wait $one && begun=$((begun + 1))
wait $two && begun=$((begun + 1))
cat "$T/one" "$T/two"
! grep -q "runtime error\|Sanitizer" "$T/one" "$T/two" || fail "a candidate was stopped by a sanitizer"
[ "$begun" -ge 1 ] || fail "no cm has begun"
must_happen 20 one_cm
for m in tux1 tux2; do
    wait_for 60 same_content "$m" || fail_with_logs "content on $m after the death of a machine"
done
must_happen 30 eval "[ \"\$(cm_on tux1 status --json | jq -c '[.nodes[] | del(.copy_behind_ms)]')\" = \"\$(cm_on tux2 status --json | jq -c '[.nodes[] | del(.copy_behind_ms)]')\" ]"

say "stop, from any node"
for m in tux1 tux2; do
    on "$m" sh -c "echo x >$OWN/cm.log.1"
done
cm_on tux2 stop || fail "cm stop"
for m in tux1 tux2 tux4; do
    wait_for 20 nothing_on "$m" || fail "left on $m: $(on "$m" ps -eo pid=,args=; on "$m" sh -c "ls -lR $OWN; tail -n 40 $OWN/node-*/lm.log")"
done
ssh_hosts down
