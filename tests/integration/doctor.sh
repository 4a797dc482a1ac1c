#!/usr/bin/env bash
# cm doctor names what is broken, and only that, soon, whatever hangs; and its advice mends it.
# ctest: timeout=240
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

# Processes are stopped and killed here.
ALLOW_LOG='lm|redis|client|mount|memefs|partition|cm'
MEMORY=256M
BOUND=20 # seconds; it is some 10 at most, and machines are busy

pid_in() # FILE in the state directory
{
    local line
    read -r line <"$STATE/$1"
    printf '%s\n' "${line%% *}"
}

# Leaves the findings in $T/doctor, and its exit status in `status`.
doctor()
{
    local begun=$SECONDS
    status=0
    timeout -k 1 60 cm doctor --name "$NAME" --state-dir "$STATE" "$@" >"$T/doctor" 2>"$T/complaint" ||
        status=$?
    [ $((SECONDS - begun)) -le "$BOUND" ] || fail "took $((SECONDS - begun)) s: $(cat "$T/doctor")"
}

# Nothing of the deployment is worth a word.
is_well()
{
    doctor
    [ "$status" -eq 0 ] && ! grep -E '^(warn|FAIL)  (cm|node-|state|secret|memory |deployment|remains|stale|other|unknown)' "$T/doctor"
}

# only PATTERN…: the lines that begin with FAIL match these, in this order, and each has advice.
only()
{
    local pattern line
    doctor
    equal 1 "$status" "exit status; $(cat "$T/doctor" "$T/complaint")"
    equal "$#" "$(grep -c '^FAIL' "$T/doctor")" "failures in $(cat "$T/doctor")"
    equal "$#" "$(grep -A1 '^FAIL' "$T/doctor" | grep -c '^      -> ')" "advice in $(cat "$T/doctor")"
    while read -r line; do
        pattern=$1
        shift
        [[ $line =~ $pattern ]] || fail "'$line' is not '$pattern'"
    done < <(grep '^FAIL' "$T/doctor")
}

# What the first failure's advice says, up to the explanation.
advice()
{
    grep -A1 -m1 '^FAIL' "$T/doctor" | sed -nE 's/^      -> ([^:;]*).*/\1/p'
}

follow()
{
    say "advice: $(advice)"
    bash -c "$(advice)" >"$T/followed" 2>&1 || fail "advice fails: $(advice): $(cat "$T/followed")"
}

# By a pipe: a child of doctor's that can't be killed must not keep its reader waiting.
mounts_wait()
{
    local begun=$SECONDS
    timeout -k 1 60 cm doctor --name "$NAME" --state-dir "$STATE" 2>&1 | cat >"$T/doctor" || true
    [ $((SECONDS - begun)) -le "$BOUND" ] || fail "took $((SECONDS - begun)) s: $(cat "$T/doctor")"
    [ "$(grep -c '^warn  node-[01]: mount: .*as partitions do not answer' "$T/doctor")" -eq 2 ]
}

is_stale()
{
    local said
    ! said=$(stat -f "$1" 2>&1) && [[ $said == *"Transport endpoint"* ]]
}

say "no deployment"
is_well || fail "a machine that can run it is ill: $(cat "$T/doctor")"
grep -q 'does not run' "$T/doctor" || fail "does not say that none runs"

grep -q 'damaged files' "$T/doctor" && fail "files of no deployment"

say "a machine that can't run it"
mkdir "$T/old" "$T/alone"
printf '#!/bin/sh\necho "Redis server v=6.0.16 sha=00000000:0"\n' >"$T/old/redis-server"
chmod +x "$T/old/redis-server"
PATH=$T/old:$PATH only '^FAIL  redis-server: version 6.0.16'
cp "$MEMEFS_BIN/cm" "$T/alone/cm"
PATH=$T/alone:$PATH only '^FAIL  module: no memefs-partition.so'
mount --bind /dev/null /dev/fuse
only '^FAIL  /dev/fuse: '
umount /dev/fuse
(
    ulimit -n 1000
    doctor
    grep -q '^warn  open files: up to 1000 ' "$T/doctor" || fail "does not see the limit of open files"
)

say "a healthy deployment"
deployment_start 2
is_well || fail "$(cat "$T/doctor")"
doctor --json
equal "true" "$(jq 'length > 20 and all(.[]; has("check") and has("status") and has("found") and has("advice"))' "$T/doctor")" "JSON"
equal "ok" "$(jq -r '.[] | select(.check == "node-1: mount") | .status' "$T/doctor")" "mount in JSON"

say "a client killed while its lm is stopped: the stale mount stays, and its bind"
mkdir "$T/bind"
mount --bind "$MNT0" "$T/bind"
kill -STOP "$(pid_in node-0/lm.pid)"
kill -KILL "$(pid_in node-0/client.pid)"
must_happen 10 is_stale "$MNT0"
only '^FAIL  node-0: lm: .* stopped' "^FAIL  node-0: mount: $MNT0: .*Transport" "^FAIL  stale mount: $T/bind"
follow
must_happen 30 mountpoint -q "$MNT0"
must_happen 30 mountpoint -q "$T/bind" # lm makes it anew behind the mount, and takes the dead one away for that
umount "$T/bind"
must_happen 30 is_well

say "a client stopped"
kill -STOP "$(pid_in node-1/client.pid)"
only '^FAIL  node-1: mount: .* stopped'
follow
must_happen 30 is_well

say "an lm killed"
# It is back after 1 s, 2 s, 4 s: at some time it is slower than we.
for _ in 1 2 3 4 5; do
    lm=$(pid_in node-1/lm.pid)
    kill -KILL "$lm"
    must_happen 10 gone "$lm"
    doctor
    [ "$status" -eq 0 ] || break
    must_happen 60 is_well
done
equal "1" "$(grep -c '^FAIL' "$T/doctor")" "failures in $(cat "$T/doctor")"
grep -A1 '^FAIL  node-1: lm: no process runs' "$T/doctor" | says 'wait' || fail "$(cat "$T/doctor")"
! grep -q ': clients: ' "$T/doctor" || fail "what is not known is told: $(cat "$T/doctor")"
must_happen 60 is_well

say "a redis stopped"
kill -STOP "$(pid_in node-0/redis-0.pid)"
only '^FAIL  node-0: redis: partition 0: stopped'
follow
must_happen 30 is_well

say "all redis stopped, and programs that hang in the mounts: doctor does not, nor who reads what it says"
for pid in $(pids_of redis-server); do
    kill -STOP "$pid"
done
cat "$MNT0/none" 2>/dev/null &
cat "$MNT1/none" 2>/dev/null &
must_happen 20 mounts_wait # for a moment they know how much room there is
equal 2 "$(grep -c '^FAIL' "$T/doctor")" "failures in $(cat "$T/doctor")"
for pid in $(pids_of redis-server); do
    kill -CONT "$pid"
done
must_happen 60 is_well

say "cm stopped, and killed"
kill -STOP "$(pids_of cm)"
only '^FAIL  cm: .* stopped'
follow
must_happen 30 is_well
kill -KILL "$(pids_of cm)"
must_happen 10 none_of cm
only '^FAIL  cm: no process runs'
follow
must_happen 30 is_well

say "a secret that others may read, a directory that others may enter"
chmod 644 "$STATE/secret"
only '^FAIL  secret: .* 0644'
follow
chmod 755 "$STATE"
only '^FAIL  state directory: .* 0755'
follow
must_happen 10 is_well

say "unmounted on purpose: no failure, a warning"
umount "$MNT1"
doctor
grep -q "^warn  node-1: mount: $MNT1: nothing is mounted" "$T/doctor" || fail "$(cat "$T/doctor")"
cm_ start >/dev/null || fail "cm start"
must_happen 30 is_well

say "nodes in a control group that allows less than was promised"
# within_limit GROUP FILE: what doctor says while both lm are in it, in $T/doctor; 1: there is no such group.
within_limit()
{
    local group=$1/memefs-doctor-$$ node
    [[ $(stat -f -c %T "$1" 2>/dev/null) = cgroup* ]] || return 1 # a file system like any other would keep what is made there
    mkdir "$group" 2>/dev/null || return 1
    if [ ! -e "$group/$2" ] || ! { echo $((300 << 20)) >"$group/$2"; } 2>/dev/null; then
        rmdir "$group"
        return 1
    fi
    for node in 0 1; do
        pid_in "node-$node/lm.pid" >"$group/cgroup.procs"
    done
    doctor
    for node in 0 1; do
        pid_in "node-$node/lm.pid" >"$1/cgroup.procs"
    done
    rmdir "$group"
}
if within_limit /sys/fs/cgroup memory.max || within_limit /sys/fs/cgroup/memory memory.limit_in_bytes; then
    equal 0 "$status" "exit status with a warning"
    grep -q '^warn  memory limit: .*memefs-doctor.* allows 300 MiB, and the 2 nodes in it may take 512 MiB' "$T/doctor" ||
        fail "$(cat "$T/doctor")"
    must_happen 10 is_well
else
    say "no control groups for us: not tried"
fi

say "a redis killed: what it held is lost, its names are not"
for n in 1 2 3 4 5 6 7 8; do
    head -c 100000 /dev/urandom >"$MNT0/file$n"
done
mapfile -t files < <(cd "$STATE/node-1" && ls redis-*.pid)
for file in "${files[@]}"; do
    kill -KILL "$(pid_in "node-1/$file")"
done
all_serve()
{
    doctor
    [ "$status" -eq 0 ] && grep -q '^warn  damaged files: ' "$T/doctor"
}
must_happen 30 all_serve
damaged=$(memefs lost --name "$NAME" --state-dir "$STATE" | wc -l)
[ "$damaged" -gt 0 ] || fail "no file is damaged"
grep -q "^warn  damaged files: $damaged;" "$T/doctor" || fail "not $damaged: $(grep damaged "$T/doctor")"
rm "$MNT0"/file*
doctor
grep -q '^ok    damaged files: none any more' "$T/doctor" || fail "$(grep damaged "$T/doctor")"

say "a redis killed, with its journal"
files=("$STATE"/node-1/redis-*.pid)
part=${files[0]##*/redis-}
redis_lose "${part%.pid}"
only '^FAIL  node-1: redis: partition [0-9]+: .* lost'
cm_ stop >/dev/null || fail "cm stop"
deployment_start 2
is_well || fail "$(cat "$T/doctor")"

say "everything killed"
for pid in $(pids_of cm) $(pids_of lm) $(pids_of memefs) $(pids_of redis-server); do
    kill -KILL "$pid"
done
must_happen 10 no_daemons
only '^FAIL  remains: .* died' '^FAIL  stale mount: ' '^FAIL  stale mount: '
follow
is_well || fail "$(cat "$T/doctor")"
check_nothing_left

say "a user where there is no /etc/mtab"
mkdir "$T/bin"
cp "$MEMEFS_BIN"/{cm,lm,memefs,memefs-partition.so} "$T/bin"
cp -a /etc "$T/etc"
rm -f "$T/etc/mtab"
# shellcheck disable=SC2016 # for the inner shell
unshare --mount bash -c 'mount --bind "$1/etc" /etc && exec setpriv --reuid nobody --regid nogroup --clear-groups "$1/bin/cm" doctor --name other --state-dir "$1/other"' \
    doctor "$T" >"$T/doctor" 2>&1 || true
grep -q "there is no /etc/mtab" "$T/doctor" || fail "cm doctor: $(cat "$T/doctor")"
rm -r "${T:?}/etc"
