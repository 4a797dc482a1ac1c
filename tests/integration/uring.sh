#!/usr/bin/env bash
# Requests by io_uring (-o uring=on): data, interrupts, more blocked locks on one processor than it has entries,
# two mounts, and every way in which a mount may end.
# ctest: timeout=180
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need python3 taskset

MEMORY=256M
ENABLE=/sys/module/fuse/parameters/enable_uring
# Clients that are killed, and what others say of it.
ALLOW_LOG='is gone|killed|lost|closed'
[ -w "$ENABLE" ] || skip "the kernel has no FUSE over io_uring (Linux 6.14), or $ENABLE is not writable"

before=$(cat "$ENABLE")
offer() # Y|N: it counts when a mount begins; others' mounts do not ask for it
{
    echo "$1" >"$ENABLE"
}
restore()
{
    local status=$?
    offer "$before"
    return "$status"
}
trap 'restore; harness_finish' EXIT

client_at() # PATH: leaves the client's process in `client`.
{
    for client in $(pids_of memefs); do
        ! tr '\0' '\n' <"/proc/$client/cmdline" | says -x "$1" || return 0
    done
    fail "no client at $1"
}

uses_ring() # PATH
{
    client_at "$1"
    find "/proc/$client/fd" -lname 'anon_inode:\[io_uring\]' | says .
}

mount_at() # PATH [OPTION]
{
    mkdir -p "$1"
    memefs mount --name "$NAME" --state-dir "$STATE" --log "$T/$(basename "$1").log" -o "${2:-uring=on}" "$1"
}

cat >"$T/locks.py" <<'PY'
"""FILE COUNT: so many processes wait for a lock at once; its holder gives it up, and each gets it in turn."""
import fcntl, os, sys, time
path, count = sys.argv[1], int(sys.argv[2])
holder = os.open(path, os.O_RDWR | os.O_CREAT)
fcntl.flock(holder, fcntl.LOCK_EX)
begin, end = os.pipe()
children = []
for number in range(count):
    child = os.fork()
    if child == 0:
        os.close(end)
        mine = os.open(path, os.O_RDWR)
        os.read(begin, 1)
        fcntl.flock(mine, fcntl.LOCK_EX)
        os._exit(0)
    children.append(child)
time.sleep(0.5)
os.close(begin)
os.close(end)  # all at once
until = time.monotonic() + 30
while not all("request_wait" in open(f"/proc/{child}/wchan").read() for child in children):
    if time.monotonic() > until:
        sys.exit("not all wait for the lock")
    time.sleep(0.05)
fcntl.flock(holder, fcntl.LOCK_UN)
for child in children:
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("a process did not get the lock")
PY

cat >"$T/interrupts.py" <<'PY'
"""FILE: many waits for a lock are interrupted, soon after they have begun; again, if the signal came before."""
import ctypes, errno, fcntl, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True) # Python's own would call again
holder = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(holder, fcntl.LOCK_EX)
children = []
for number in range(8):
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, lambda signo, frame: None)
        mine = os.open(sys.argv[1], os.O_RDWR)
        for turn in range(60):
            signal.setitimer(signal.ITIMER_REAL, 0.0002 + 0.0001 * ((turn + number) % 40), 0.5)
            if libc.flock(mine, fcntl.LOCK_EX) == 0 or ctypes.get_errno() != errno.EINTR:
                os._exit(1)
        os._exit(0)
    children.append(child)
for child in children:
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("not interrupted")
PY

cat >"$T/tmpfile.py" <<'PY'
import os, sys
fd = os.open(sys.argv[1], os.O_TMPFILE | os.O_RDWR, 0o600)
os.write(fd, b"content")
os.link(f"/proc/self/fd/{fd}", sys.argv[1] + "/named", src_dir_fd=os.open("/", os.O_RDONLY), follow_symlinks=True)
PY

offer N
deployment_start 1
say "the kernel does not offer it"
mount_at "$T/without"
grep -q 'warn .*uring: the kernel does not offer it.*enable_uring' "$T/without.log" || fail "says $(cat "$T/without.log")"
printf 'content' >"$T/without/file"
memefs umount "$T/without"

cm_ doctor | says '^ok .*FUSE io_uring: off: .*enable_uring' || fail "doctor: $(cm_ doctor)"

say "it does"
offer Y
cm_ doctor | says '^ok .*FUSE io_uring: offered' || fail "doctor: $(cm_ doctor)"
mount_at "$T/one"
mount_at "$T/two"
offer "$before"
grep -q 'requests come by io_uring' "$T/one.log" || fail "says $(cat "$T/one.log")"
uses_ring "$T/one" || fail "no ring is open"
equal content "$(cat "$T/one/file")" "content"

say "data"
head -c 40000000 /dev/urandom >"$T/data"
cp "$T/data" "$T/one/data"
cmp "$T/data" "$T/two/data"
dd if="$T/data" of="$T/two/data" bs=1M conv=notrunc,fsync oflag=direct iflag=fullblock count=38 2>/dev/null
dd if="$T/one/data" of="$T/back" bs=1M iflag=direct 2>/dev/null
cmp "$T/data" "$T/back"
python3 "$T/tmpfile.py" "$T/one"
equal content "$(cat "$T/two/named")" "O_TMPFILE"

say "two mounts see each other's changes"
for ((i = 0; i < 300; i++)); do
    printf '%d' $i >"$T/one/turn"
    equal $i "$(cat "$T/two/turn")" "content by the other mount"
    rm "$T/two/turn"
    [ ! -e "$T/one/turn" ] || fail "a file that the other mount has removed"
done

say "interrupts"
(while :; do stat "$T/one/file" "$T/one/data" >/dev/null; done) &
beside=$!
timeout 60 python3 "$T/interrupts.py" "$T/one/interrupted" || fail "interrupts: $?"
kill "$beside"
wait "$beside" || true

say "more blocked locks on one processor than it has entries"
for round in 1 2 3; do
    timeout 60 taskset -c 0 python3 "$T/locks.py" "$T/one/lock$round" 400 || fail "locks: $?"
done
timeout 60 python3 "$T/locks.py" "$T/two/lock" 400 || fail "locks: $?"

# ends_while_busy SIGNAL MOUNT: its client, which gets the signal while a file is open and a lock waits.
ends_while_busy()
{
    exec 7<"$2/file"
    exec 8>"$2/lock"
    flock 8
    flock "$2/lock" true 2>/dev/null &
    blocked=$!
    must_happen 10 grep -q request_wait "/proc/$blocked/wchan"
    client_at "$2"
    kill -"$1" "$client"
    must_happen 20 gone "$client"
    must_happen 10 gone "$blocked"
    exec 7<&- 8>&- || true
}

say "a client that is killed while a lock waits"
ends_while_busy KILL "$T/two"
umount -l "$T/two"

say "one that is unmounted by force in the midst of a copy"
offer Y
mount_at "$T/three"
mount_at "$T/four"
offer "$before"
client_at "$T/three"
mkdir "$T/three/dir" # not there when it is unmounted
while cp "$T/data" "$T/three/dir/more"; do :; done 2>/dev/null &
copy=$!
sleep 0.3
umount -f "$T/three" 2>/dev/null || umount -l "$T/three" 2>/dev/null ||
    ! mountpoint -q "$T/three" || # the client has unmounted it in between
    fail "$T/three is still mounted"
must_happen 20 gone "$copy"
must_happen 20 gone "$client"

say "one that is told to end while a file is open and a lock waits"
ends_while_busy TERM "$T/four"

say "and the one that is left"
equal content "$(timeout 10 cat "$T/one/file")" "content"
client_at "$T/one"
memefs umount "$T/one"
must_happen 10 gone "$client"
