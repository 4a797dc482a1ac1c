#!/usr/bin/env bash
# Nodes that share nothing with cm's machine but the network and the programs: each has its own mounts,
# state directory and /var/tmp. The secret reaches them with the start, and no command line shows it.
# Files, growth, shrinking, the deaths of cm and of lms, and the end: nothing is left on any of them.
# ctest: release timeout=200 waits long=30
ALLOW_LOG='lm-gone|killed|connect|closed'
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"

NODES=3
STATE=$T/cm/s     # on cm's machine
THERE=$T/node/s   # on a node
SPACES=$T/mounts-of- # and a node
START="exec nsenter --net=/run/netns/$NET-{node} --mount=$SPACES{node} {lm}"

# on NODE COMMAND…: runs on that machine.
on()
{
    local node=$1
    shift
    nsenter --net="/run/netns/$NET-$node" --mount="$SPACES$node" "$@"
}

# Its mounts live as long as a process that sleeps there: one name space can't always be bound in another.
make_machine() # NODE
{
    mkdir -p "$T/mnt$1"
    unshare --mount bash -ec "mount -t tmpfs none /var/tmp; mount -t tmpfs none '$T/node'; mount -t tmpfs none '$T/cm'; exec sleep 1000" &
    ln -s "/proc/$!/ns/mnt" "$SPACES$1"
    must_happen 10 on "$1" mountpoint -q "$T/cm"
}

tool() # NODE VERB ARGUMENT…: the user's tools there
{
    local node=$1 verb=$2
    shift 2
    on "$node" timeout 60 memefs "$verb" --name "$NAME" --state-dir "$THERE" "$@"
}

# The secret, in the text that processes show. (The kernel cuts no command line.)
shown()
{
    cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -cF -f "$STATE/secret" || true
}

has_lm() # NODE PID: another lm than that
{
    local pid
    pid=$(on "$1" cut -d' ' -f1 "$THERE/node-$1/lm.pid") && [ "$pid" != "$2" ] && cm_ status --json | jq -e '.state == "running"'
}

kill_lm() # NODE
{
    lm=$(on "$1" cut -d' ' -f1 "$THERE/node-$1/lm.pid")
    kill -KILL "$lm"
}

left_on() # NODE
{
    on "$1" find "$T/node" "$T/cm" /var/tmp -mindepth 1
}

nothing_on() # NODE
{
    [ -z "$(left_on "$1")" ] && ! on "$1" grep -F " $T/mnt" /proc/self/mounts
}

mkdir "$T/cm" "$T/node"
net up $NODES
ip route add default via "$SUBNET.1" # so that there is an address for others
for ((i = 0; i < NODES; i++)); do
    make_machine "$i"
done

say "an lm that is started by hand without a secret says so"
for_lm=(lm --node 0 --address "$SUBNET.1" --cm "$SUBNET.254:1" --state-dir "$THERE" --foreground)
expect_fail 1 on 0 "${for_lm[@]}" --secret given </dev/null
grep -q "neither in MEMEFS_SECRET nor on standard input" "$T/expect.out" || fail "$(cat "$T/expect.out")"
expect_fail 2 env MEMEFS_SECRET=short "${for_lm[@]}" --secret given
grep -q "is no secret" "$T/expect.out" || fail "$(cat "$T/expect.out")"
mkdir -m 700 "$T/empty"
expect_fail 1 lm --node 0 --address 127.0.0.1 --cm 127.0.0.1:1 --state-dir "$T/empty" --foreground
grep -q "no secret: $T/empty/secret is not there" "$T/expect.out" || fail "$(cat "$T/expect.out")"
rm -r "$T/empty"

say "start: nothing of a node is on cm's machine, and nobody sees the secret"
cm_ start --nodes 2 --max-nodes 4 --memory 128M --mount "$T/mnt%n" --provider exec --exec-start "$START" \
    --node-state-dir "$THERE" || fail "cm start"
equal "$SUBNET.254" "$(cut -d: -f1 "$STATE/cm.addr")" "where cm listens"
equal "$SUBNET.1 $SUBNET.2" "$(cm_ status --json | jq -r '[.nodes[].address] | join(" ")')" "addresses, as nodes find them"
secret=$(cat "$STATE/secret")
ps axww >"$T/ps"
! grep -F -f "$STATE/secret" "$T/ps" || fail "ps shows the secret"
equal 0 "$(shown)" "processes that show the secret"
for pid in $(pids_of redis-server) $(pids_of memefs) $(pids_of lm); do
    ! tr '\0' '\n' <"/proc/$pid/environ" | grep -F -f "$STATE/secret" || fail "$(cat "/proc/$pid/comm") has it in its environment"
done
! compgen -G "$STATE/node-*" || fail "a node's directory is on cm's machine"
for i in 0 1; do
    equal "600 $secret" "$(on $i stat -c %a "$THERE/secret") $(on $i cat "$THERE/secret")" "the secret on node $i"
    ! on "$i" test -e "$STATE" || fail "node $i sees cm's directory"
done

say "files, and tools on each node"
on 0 sh -c "head -c 20000000 /dev/urandom >'$T/mnt0/data'"
sum=$(on 0 sh -c "sha256sum <'$T/mnt0/data'")
equal "$sum" "$(on 1 sh -c "sha256sum <'$T/mnt1/data'")" "content on node 1"
on 1 memefs layout "$T/mnt1/data" >"$T/out" || fail "memefs layout: $(cat "$T/out")"
tool 1 lost "$T/mnt1" >"$T/out" || fail "memefs lost: $(cat "$T/out")"
tool 1 fsck >"$T/out" || fail "memefs fsck: $(cat "$T/out")"
on 1 mkdir "$T/node/more"
tool 1 mount "$T/node/more" || fail "memefs mount"
equal "$sum" "$(on 1 sh -c "sha256sum <'$T/node/more/data'")" "content in a mount by hand"
on 1 memefs umount "$T/node/more" || fail "memefs umount"
on 1 rmdir "$T/node/more"

say "cm and lms die"
redis=$(pids_of redis-server | sort)
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
must_happen 10 none_of cm
cm_ start >"$T/out" || fail "cm start"
equal "$redis" "$(pids_of redis-server | sort)" "redis processes"
kill_lm 1
must_happen 30 has_lm 1 "$lm"
equal "$sum" "$(on 1 sh -c "sha256sum <'$T/mnt1/data'")" "content after a restart of lm"

say "out and in"
cm_ scale 3 >"$T/out" || fail "cm scale 3"
equal "$sum" "$(on 2 sh -c "sha256sum <'$T/mnt2/data'")" "content on the node that came"
cm_ scale 2 >"$T/out" || fail "cm scale 2"
must_happen 10 nothing_on 2
equal "$sum" "$(on 1 sh -c "sha256sum <'$T/mnt1/data'")" "content"

say "stop, with one lm that has just died"
on 0 ls -l "$THERE" >"$T/out"
kill_lm 1
cm_ stop || fail "cm stop"
check_nothing_left
for ((i = 0; i < NODES; i++)); do
    must_happen 10 nothing_on "$i"
done
[ -z "$(ls -A "$T/cm")" ] || fail "left on cm's machine: $(ls -RA "$T/cm")"

say "a cm that can't be reached is no reason to wait for long"
began=$SECONDS
expect_fail 1 cm_ start --nodes 1 --memory 64M --provider exec --node-state-dir "$THERE" --first-address "$SUBNET.1" \
    --exec-start "exec unshare --net sh -c 'ip link set lo up && ip route add default dev lo && exec {lm}'"
grep -q "can this machine .* reach it" "$T/expect.out" || fail "$(cat "$T/expect.out")"
[ $((SECONDS - began)) -lt 100 ] || fail "it took $((SECONDS - began)) s"
check_nothing_left

say "what an earlier deployment has left there is cleared away"
on 0 mkdir -p -m 700 "$THERE/node-7"
echo 0123456789abcdef | on 0 sh -c "umask 077; cat >'$THERE/secret'; echo 1 1 redis-server >'$THERE/node-7/redis-1.pid'"
cm_ start --nodes 1 --memory 64M --provider exec --exec-start "$START" --listen 0.0.0.0:0 \
    --node-state-dir "$THERE" || fail "cm start over remains"
equal "$SUBNET.254" "$(cut -d: -f1 "$STATE/cm.addr")" "where nodes reach cm, which listens anywhere"
! on 0 test -e "$THERE/node-7" || fail "remains are there"
deployment_stop
must_happen 10 nothing_on 0
net down
