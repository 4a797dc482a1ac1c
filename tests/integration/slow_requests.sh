#!/usr/bin/env bash
# Requests that take long: one that waits for a partition whose process is stopped is told while it waits, and
# in the log when it has ended, with the partition; waits for locks tell who holds them; the log takes only so
# many lines a second; -o slow=0 has none, -o nostats no files. The files answer when more requests wait than the
# mount has workers. Readers of trace get its end with the mount's.
# ctest: timeout=120 waits
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq flock python3 setfattr

deployment_start 2 --partitions 8
umount "$MNT1"
mount_with() # OPTIONS DIRECTORY
{
    timeout 30 memefs mount --name "$NAME" --state-dir "$STATE" --lm "$STATE/node-1/lm.sock" --log "$T/${2##*/}.log" \
        -o "$1" "$2" || fail "memefs mount -o $1"
}
mount_with slow=0.2 "$MNT1"
log=$T/mnt1.log

logged()
{
    grep -qE "$1" "$log"
}

mkdir "$MNT1/d"
for i in $(seq 60); do
    : >"$MNT1/d/$i"
done
# Not where the root is, without which no path leads to .memefs.
n=0
until printf 'db' >"$MNT1/results$n.db" && [ "$(home_of "$MNT1/results$n.db")" -ne 0 ]; do
    n=$((n + 1))
done

# A partition that hangs.
home=$(home_of "$MNT1/results$n.db")
redis_serving "$home"
node=$(basename "$dir")
node=${node#node-}
kill -STOP "$pid"
(
    setfattr -n user.a -v b "$MNT1/results$n.db"
) &
waiting()
{
    jq -e -s --arg home "$home" --arg path "results$n.db" 'any(.[]; .open and .path == $path and
        .program == "setfattr" and .waits == "partition" and .waits_partition == ($home | tonumber) and .ms > 100)' \
        "$MNT1/.memefs/slow.json"
}
must_happen 5 waiting
grep -qE "[a-z]+ +results$n.db .*not ended: waits for partition, [0-9.]+ \(node $node partition $home\)" "$MNT1/.memefs/slow" ||
    fail "slow: $(cat "$MNT1/.memefs/slow")"
must_happen 5 grep -q "partition $home does not answer" "$MNT1/.memefs/nodes"
kill -CONT "$pid"
wait
must_happen 5 logged "warn .*slow: .*results$n.db  setfattr\[[0-9]+\].* partition [0-9.]+ \(node $node partition $home"
equal '' "$(jq -r --arg path "results$n.db" 'select(.open and .path == $path) | .op' "$MNT1/.memefs/slow.json")" "what is under way"
grep -q "results$n.db  setfattr" "$MNT1/.memefs/slow" || fail "it is remembered"

# More of them than the log takes, and than are admitted at once: the files tell all the same.
for ((part = 1; part < 8; part++)); do
    redis_serving "$part"
    kill -STOP "$pid"
done
for i in $(seq 60); do
    setfattr -n user.a -v b "$MNT1/d/$i" &
    setters+=("$!")
done
many()
{
    timeout 3 cat "$MNT1/.memefs/slow.json" >"$T/slow.json" || fail "slow.json does not open beside requests that wait"
    [ "$(grep -c '"open":true' "$T/slow.json")" -ge 28 ]
}
must_happen 5 many
timeout 10 memefs profile "$MNT1" --for 300ms >"$T/profile" || fail "profile beside requests that wait"
grep -qE ' [2-9][0-9] not ended' "$T/profile" || fail "profile: $(cat "$T/profile")"

# More than there are workers, of those that are not admitted in turn.
for i in $(seq 60); do
    stat "$MNT1/none$i" >/dev/null 2>&1 &
    waiters+=("$!")
done
all_wait()
{
    timeout 5 cat "$MNT1/.memefs/stats.json" >"$T/stats.json" || return 1
    jq -e '[.sources[].figures[] | select(.name == "memefs_requests_under_way").value] | add >= 32' "$T/stats.json"
}
must_happen 10 all_wait
for file in stats nodes slow slow.json hot clients events; do
    timeout 10 cat "$MNT1/.memefs/$file" >"$T/file" || fail "$file does not open when all workers wait"
    [ -s "$T/file" ] || fail "$file is empty"
done
timeout 10 memefs profile "$MNT1" --for 300ms >"$T/profile" || fail "profile when all workers wait"

# Of the programs whose requests no worker serves yet, each that is killed ends.
served=" $(jq -r 'select(.open) | .pid' "$MNT1/.memefs/slow.json" | tr '\n' ' ') "
for waiter in "${setters[@]}" "${waiters[@]}"; do
    gone "$waiter" || [[ $served == *" $waiter "* ]] && continue
    kill -KILL "$waiter"
    killed+=("$waiter")
done
all_gone()
{
    for waiter in "${killed[@]}"; do
        gone "$waiter" || return 1
    done
}
[ "${#killed[@]}" -ge 10 ] || fail "only ${#killed[@]} wait for a worker"
must_happen 2 all_gone

# And when the partition hangs that has the root, through which the path leads: not for the first that have to ask
# for it, once its lease is over, but then.
redis_serving 0
kill -STOP "$pid"
root_waits()
{
    for file in stats nodes slow.json; do
        cat "$MNT1/.memefs/$file" >"$T/$file.new" &
        sleep 0.3
        gone "$!" || return 1
        [ -s "$T/$file.new" ] || fail "$file does not open while the root's partition hangs"
    done
    jq -e -s 'any(.[]; .open and .op == "getattr" and .waits_partition == 0)' "$T/slow.json.new"
}
must_happen 30 root_waits
kill -INT "${waiters[@]}" 2>/dev/null || true # no program has to wait for what hangs
for ((part = 0; part < 8; part++)); do
    redis_serving "$part"
    kill -CONT "$pid"
done
wait
# libfuse keeps an interrupt of a request that it was never given, and drops one with each further request: all of them,
# before it ends with some left, which would be a leak.
for ((i = 0; i < 150; i++)); do
    ! test -e "$MNT1/none$i" || fail "there is none$i"
done
must_happen 5 logged 'slow: [0-9]+ more slow requests'
lines=$(grep -c 'slow: .* d/' "$log")
[ "$lines" -le 20 ] || fail "$lines lines within some 0.1 s"

# A lock.
hold()
{
    exec python3 -c 'import fcntl, os, sys, time
f = open(sys.argv[1], "r+")
fcntl.lockf(f, fcntl.LOCK_EX)
open(sys.argv[2] + "/held", "w").close()
while not os.path.exists(sys.argv[2] + "/enough"):
    time.sleep(0.05)' "$MNT1/results$n.db" "$T"
}
hold &
holder=$!
must_happen 20 test -e "$T/held"
hold &
locked()
{
    jq -e -s --arg pid "$holder" 'any(.[]; .open and .op == "setlk" and .waits == "lock" and
        .holder_pid == ($pid | tonumber) and .holder == "python3")' "$MNT1/.memefs/slow.json"
}
must_happen 20 locked
sleep 0.5
: >"$T/enough"
wait
must_happen 5 logged "info .*slow: .*setlk +results$n.db  python3\[.*lock [0-9.]+ \(held by process $holder"

# The end of a mount is the end of trace.
cat "$MNT1/.memefs/trace" >"$T/trace" &
reader=$!
sleep 0.3
mkdir "$MNT1/last"
timeout 30 memefs umount "$MNT1" || true
kill -TERM "$(pgrep -f "memefs mount .*$MNT1")" 2>/dev/null || true
ended()
{
    ! kill -0 "$reader" 2>/dev/null
}
must_happen 10 ended
grep -q 'mkdir .*last' "$T/trace" || fail "trace: $(cat "$T/trace")"
unmounted()
{
    ! mountpoint -q "$MNT1"
}
must_happen 10 unmounted

# Without.
mkdir "$T/mnt5"
mount_with slow=0,nostats "$T/mnt5"
log=$T/mnt5.log
[ ! -e "$T/mnt5/.memefs" ] || fail "nostats"
mkdir "$T/mnt5/.memefs" || fail "nostats: the name is a name"
: >"$T/mnt5/.memefs/theirs"
[ -e "$MNT0/.memefs/stats" ] || fail "elsewhere it is what it was"
[ ! -e "$MNT0/.memefs/theirs" ] || fail "elsewhere it is out of reach"
exec 5>"$T/mnt5/results$n.db"
flock 5
flock -w 2 "$T/mnt5/results$n.db" true 5>&- || true
exec 5>&-
! logged 'slow:' || fail "slow=0: $(grep slow: "$log")"
rm -r "$T/mnt5/.memefs"
timeout 30 memefs umount "$T/mnt5" || fail "memefs umount"
deployment_stop
