#!/usr/bin/env bash
# Nodes on machines that are reached by ssh (--hosts), with a real sshd on each (scripts/ssh-hosts): they mount at one
# path, come, go and are drained; sshd and cm may be killed meanwhile, as nothing hangs on a connection of ssh; hosts that
# refuse, do not answer or have no programs are named with what to do; nothing is left on any of them.
# ctest: release timeout=180 long=40
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/ssh_hosts.sh
. "$HARNESS_DIR/ssh_hosts.sh"

TOP=$HARNESS_DIR/../..
GUIDES=$TOP/docs/how-to
MNT=$T/mnt
OWN=/run/memefs-test # where the deployment is on each machine; what is on disk is the same for all
SSH="ssh -F $T/hosts.d/ssh.conf"

cm_start() # OPTION…
{
    cm_ start --memory 64M --node-state-dir "$OWN" --ssh-command "$SSH" "$@"
}

nodes()
{
    cm_ status --json | jq -r '[.nodes[] | .address] | join(" ")'
}

restarted() # NODE
{
    cm_ events | says " $1  *lm-restarted " && [ "$(cm_ status --json | jq -r .state)" = running ]
}

# refused WORDS OPTION…: cm start says so and begins nothing
refused()
{
    expect_fail 2 cm_start "${@:2}"
    grep -qE -- "$1" "$T/expect.out" || fail "start ${*:2}: says $(cat "$T/expect.out")"
    [ ! -e "$STATE" ] || fail "wrong usage has left $STATE"
}

# failed WORDS OPTION…: cm start fails, and gives back what came
failed()
{
    expect_fail 1 cm_start "${@:2}"
    grep -qE -- "$1" "$T/expect.out" || fail "start ${*:2}: says $(cat "$T/expect.out")"
    must_happen 25 nothing_on tux1 tux2
}

say "hosts that make no sense"
mkdir "$MNT"
printf 'tux1 # the first\n\ntux2 slots=2 memory=64M\ntux3 slots=many\n' >"$T/hosts"
refused "hosts: $T/hosts: line 4: slots=many is no number" --hosts "$T/hosts"
refused "line 2: tux1 is in line 1 already" --hosts - < <(printf 'tux1\ntux1\n')
refused "no host is in it" --hosts /dev/null
refused "$T/none: No such file" --hosts "$T/none"
refused "can't reach 127.0.0.1, which is each machine's own" --hosts tux1 --listen 127.0.0.1:0
refused "network: this machine has no address in 10.98.0.0/24" --hosts tux1 --network 10.98.0.0/24
refused "needs --hosts" --provider ssh
refused "only with --provider ssh" --hosts tux1 --provider local

say "three machines with sshd"
ssh_hosts up 3
mount --bind "$T/hosts.d/hosts" /etc/hosts
sed -i 's/slots=many//' "$T/hosts"

say "hosts that can't be used"
refused "nodes: --hosts has 3 places" --hosts 'tux[1-3]' --nodes 4
failed "node-0: tux1: /nowhere/lm can't be run there.*--programs" --hosts tux1 --programs /nowhere
failed "tux1: Host key verification failed.*known_hosts" --hosts tux1 --ssh-command "ssh -F /dev/null"
failed "tux1: .*Permission denied.*answers no questions" --hosts tux1 --ssh-command "ssh -F /dev/null -o UserKnownHostsFile=$T/hosts.d/ssh.known"
failed "tux9: .*Could not resolve" --hosts tux1,tux9
on tux3 pkill -STOP sshd
failed "node-2: tux3: .*timed out.*does that machine run" --hosts 'tux[1-3]' --ssh-command "$SSH -o ConnectTimeout=1" --mount "$MNT"

expect_fail 1 cm_ doctor --hosts tux1,tux3,tux9 --ssh-command "$SSH -o ConnectTimeout=1"
for words in "FAIL  hosts: tux3: .*timed out" "FAIL  hosts: tux9: .*Could not resolve" "-> make this work: $SSH .* tux9 " "ok    hosts: 1 host of 3 can"; do
    grep -q -- "$words" "$T/expect.out" || fail "cm doctor does not say '$words': $(cat "$T/expect.out")"
done
on tux3 pkill -CONT sshd

say "start, as docs/how-to/use-several-machines.md has it"
mkdir "$T/bin"
# shellcheck disable=SC2016 # for the inner shell
printf '#!/bin/sh\nexec %s "$@"\n' "${SSH/ssh/$(command -v ssh)}" >"$T/bin/ssh"
chmod 755 "$T/bin/ssh"
PATH=$T/bin:$PATH
example=$(sed -n "s|^    cm start --hosts hosts \(.*\)/mnt/memefs$|--hosts hosts \1$MNT|p" "$GUIDES/use-several-machines.md")
[ "$example" ] || fail "the example is not there any more"
# shellcheck disable=SC2086 # words
(cd "$T" && cm_ start --node-state-dir "$OWN" $example --nodes 2)
equal "10.213.0.1 10.213.0.2" "$(nodes)" "nodes"
on tux1 bash -c "echo hello >$MNT/a && head -c 8M /dev/urandom >$MNT/b"
sum=$(on tux1 sha256sum "$MNT/b")
equal hello "$(on tux2 cat "$MNT/a")" "what tux2 reads"
on tux1 cat "$OWN/secret" >"$T/secret"
[ -s "$T/secret" ] || fail "tux1 has no secret"
! grep -sqFf "$T/secret" /proc/[0-9]*/cmdline || fail "a command line shows the secret"
! pgrep -x ssh || fail "a connection of ssh has stayed"

say "staging on both, by one call"
mkdir -p "$T/a tree/%41"
head -c 8M /dev/urandom | split -b 80k - "$T/a tree/%41/"
on tux2 timeout 60 memefs stage-in --json --nodes all --launch "$SSH {host}" "$T/a tree" "$MNT/in" >"$T/staged" || fail "fails: $(cat "$T/staged")"
equal "103 2 true" "$(jq -r '"\(.files) \(.nodes | length) \([.nodes[].whole] | all)"' "$T/staged")" "files, nodes, all whole"
on tux1 diff -r "$T/a tree" "$MNT/in/a tree"
on tux1 rm -r "$MNT/in"

cm_ doctor >"$T/doctor" || fail "cm doctor: $(cat "$T/doctor")"
grep -q "ok    hosts: all of 3 can" "$T/doctor" || fail "cm doctor: $(cat "$T/doctor")"

say "sshd and cm are killed"
on tux1 pkill -KILL sshd
on tux2 pkill -KILL sshd
equal "$sum" "$(on tux2 sha256sum "$MNT/b")" "data without sshd"
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
must_happen 10 none_of cm
cm_ start
equal "10.213.0.1 10.213.0.2" "$(nodes)" "nodes that a new cm found"
for machine in tux1 tux2; do
    on "$machine" "$(command -v sshd)" -f "$T/hosts.d/sshd.conf"
done

say "an lm that is killed is started by ssh"
# shellcheck disable=SC2016 # for the inner shell
on tux2 bash -c 'kill -KILL "$(cut -d" " -f1 "$0/node-1/lm.pid")"' "$OWN"
ALLOW_LOG='disconnected|lm-gone'
must_happen 30 restarted node-1

say "nodes come, also where a host fails, go and are drained"
on tux3 pkill -KILL sshd
expect_fail 1 cm_ scale +1
grep -q "tux3: .*refused.*does sshd run" "$T/expect.out" || fail "without sshd: $(cat "$T/expect.out")"
equal "10.213.0.1 10.213.0.2" "$(nodes)" "nodes"
cm_ scale +1
equal "10.213.0.1 10.213.0.2 10.213.0.2" "$(nodes)" "nodes"
on tux3 "$(command -v sshd)" -f "$T/hosts.d/sshd.conf"
cm_ scale +1
equal "10.213.0.1 10.213.0.2 10.213.0.2 10.213.0.3" "$(nodes)" "nodes"
expect_fail 1 cm_ scale +1
grep -q "nodes: --hosts has 4 places, and all are taken" "$T/expect.out" || fail "too many: $(cat "$T/expect.out")"
equal hello "$(on tux3 cat "$MNT/a")" "what tux3 reads"
cm_ drain node-1 node-3
equal "10.213.0.1 10.213.0.3" "$(nodes)" "nodes"
must_happen 5 nothing_on tux2
expect_fail 1 cm_ replace tux3 tux9
grep -q "tux9 is no machine that cm start --hosts has named" "$T/expect.out" || fail "by tux9: $(cat "$T/expect.out")"
expect_fail 1 cm_ replace tux3 tux1
grep -q "tux1 has a node at each of its places" "$T/expect.out" || fail "by tux1: $(cat "$T/expect.out")"
cm_ replace tux3 tux2
equal "10.213.0.1 10.213.0.2" "$(nodes)" "nodes"
must_happen 5 nothing_on tux3
cm_ scale -1
must_happen 5 nothing_on tux2
equal "$sum" "$(on tux1 sha256sum "$MNT/b")" "data after the nodes have gone"

say "stop, and nothing is left"
cm_ stop
must_happen 10 nothing_on tux1 tux2 tux3

say "shipping that fails: no room, no right to run it, a connection that breaks when all is there; nothing is left of it"
ships() # MOUNT-OPTIONS WORDS OPTION…: it fails so on tux2, which has a /var/tmp of its own
{
    on tux2 mount -t tmpfs -o "$1" none /var/tmp
    failed "$2" --hosts tux1,tux2 --ship "${@:3}"
    [ -z "$(on tux2 ls -A /var/tmp)" ] || fail "tux2 still has $(on tux2 ls -A /var/tmp)"
    on tux2 umount /var/tmp
}
ships size=4M "node-1: tux2: .*No space left on device \(make room there"
ships size=200M,noexec "node-1: tux2: what was carried over can't be run there: .*noexec"
# shellcheck disable=SC2016 # for the inner shell
printf '#!/bin/sh\ncase $* in *tux2*mkdir*) %s "$@" >/dev/null; exit 255 ;; esac\nexec %s "$@"\n' "$SSH" "$SSH" >"$T/cut"
chmod 755 "$T/cut"
ships size=200M "node-1: tux2: " --ssh-command "$T/cut"

say "programs that are shipped, another network, and connections that break as soon as an lm has joined"
# shellcheck disable=SC2016 # for the inner shell
second='ip address add "$0" dev "$(ip -o -4 address show to 10.213.0.0/24 | cut -d" " -f2)"'
bash -c "$second" 10.99.0.254/24
on tux1 bash -c "$second" 10.99.0.1/24
on tux2 bash -c "$second" 10.99.0.2/24
# shellcheck disable=SC2016 # for the inner shell
printf '#!/bin/sh\n%s "$@" || exit\ncase $* in *--secret*) exit 255 ;; esac\n' "$SSH" >"$T/breaks"
chmod 755 "$T/breaks"
cm_start --hosts tux1,tux2 --mount "$MNT" --ssh-command "$T/breaks" --ship --network 10.99.0.0/24
equal "10.99.0.1 10.99.0.2" "$(nodes)" "the nodes' addresses"
equal running "$(cm_ status --json | jq -r .state)" "state"
mapfile -t dirs < <(jq -r .nodes[].handle "$STATE/cm.json")
lm=$(on tux2 readlink "/proc/$(on tux2 pgrep -x lm)/exe")
equal "${dirs[1]}/lm" "$lm" "the lm that runs"
[ -d "${dirs[0]}/lib" ] || fail "no directory ${dirs[0]}/lib"
on tux1 bash -c "echo shipped >$MNT/c"
equal shipped "$(on tux2 cat "$MNT/c")" "what tux2 reads"
cm_ stop
must_happen 10 nothing_on tux1 tux2
for dir in "${dirs[@]}"; do
    [ ! -e "$dir" ] || fail "$dir is left"
done
ssh_hosts down
check_nothing_left
