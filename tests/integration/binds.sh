#!/usr/bin/env bash
# Binds of a node's mount: when its client dies they are made anew, as they were, with the mount; what
# cannot be is named, with what to do. A stop, or a start over a crash, leaves none of them.
# ctest: timeout=180
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need nsenter unshare

ALLOW_LOG='client|memefs|mount|lm'
MEMORY=256M

pid_in() # FILE in the state directory
{
    local line
    read -r line <"$STATE/$1"
    printf '%s\n' "${line%% *}"
}

holds() # FILE TEXT
{
    [ "$(cat "$1")" = "$2" ]
}

is_stale()
{
    local said
    ! said=$(stat -f "$1" 2>&1) && [[ $said == *"Transport endpoint"* ]]
}

has_event() # WHAT TEXT
{
    cm_ events >"$T/events" && grep -F " $1 " "$T/events" >"$T/such" && grep -qF -- "$2" "$T/such"
}

make_binds()
{
    mkdir -p "$MNT0/dir/sub" "$MNT0/gone" "$MNT0/in" "$T/all" "$T/dir" "$T/ro" "$T/a b" "$T/gone" "$T/other"
    printf deep >"$MNT0/dir/sub/f"
    printf top >"$MNT0/f"
    : >"$T/file"
    mount --bind "$MNT0" "$T/all"
    mount --bind "$MNT0/dir" "$T/dir"
    mount --bind "$MNT0/dir/sub" "$T/ro"
    mount -o remount,bind,ro,noexec "$T/ro"
    mount --bind "$MNT0/dir" "$T/a b"
    mount --bind "$MNT0/f" "$T/file"
    mount --bind "$MNT0/dir" "$MNT0/in"
    mount --bind "$MNT0/gone" "$T/gone"
    mount --bind "$MNT1" "$T/other"
}

check_binds()
{
    must_happen 30 holds "$T/all/f" top
    must_happen 10 holds "$T/file" top
    must_happen 10 holds "$T/dir/sub/f" deep
    must_happen 10 holds "$T/ro/f" deep
    must_happen 10 holds "$T/a b/sub/f" deep
    must_happen 10 holds "$MNT0/in/sub/f" deep
    holds "$T/other/f" top || fail "another node's bind is not what it was"
    printf new >"$T/dir/new"
    equal new "$(cat "$MNT1/dir/new")" "written by a bind"
    ! printf x >"$T/ro/x" || fail "a bind is not read-only any more"
    grep -F " $T/ro " /proc/self/mounts | says noexec || fail "a bind has lost its flags"
}

say "a client killed: its binds come back with the mount"
deployment_start 2
make_binds
unshare -m --propagation private sleep 600 &
elsewhere=$!
rmdir "$MNT1/gone"
kill -KILL "$(pid_in node-0/client.pid)"
check_binds
must_happen 10 has_event binds-restored "$MNT0: 6 binds"
must_happen 10 has_event binds-lost "$MNT0"

say "what cannot be made anew is named"
is_stale "$T/gone" || fail "the bind of a directory that is gone does not say so"
grep -q "$T/gone stays dead: .*No such file.*umount -l $T/gone" "$STATE/node-0/lm.log" ||
    fail "the log does not tell of $T/gone"
grep -qE "stays dead in the mount name space of process [0-9]+: nsenter -m -t [0-9]+ umount -l" \
    "$STATE/node-0/lm.log" || fail "the log does not tell of other name spaces"
umount -l "$T/gone"
kill "$elsewhere"

say "once more, and one of them unmounted meanwhile"
kill -STOP "$(pid_in node-0/lm.pid)"
kill -KILL "$(pid_in node-0/client.pid)"
must_happen 10 is_stale "$T/dir"
umount -l "$T/a b"
kill -CONT "$(pid_in node-0/lm.pid)"
must_happen 30 holds "$T/dir/sub/f" deep
! mountpoint -q "$T/a b" || fail "a bind that was unmounted is back"
mount --bind "$MNT0/dir" "$T/a b"
check_binds

say "a stop leaves none"
deployment_stop

say "a start over a crash leaves none"
deployment_start 2
make_binds
for pid in $(pids_of cm) $(pids_of lm) $(pids_of memefs) $(pids_of redis-server); do
    kill -KILL "$pid"
done
must_happen 10 no_daemons
must_happen 10 is_stale "$T/dir" # its other threads may end after the one that is looked for
cm_ start --nodes 1 --memory 256M || fail "cm start over remains"
! grep -F " $T/" /proc/self/mounts || fail "mounts left after cm start"
deployment_stop
