#!/usr/bin/env bash
# A client that hangs (SIGSTOP) with a file open does not keep others waiting for ever, and when it goes
# on it shows nothing old: neither content, nor names, nor a lock that it has lost.
# ctest: timeout=240 waits long=35
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need flock

# The stopped client loses its session, and the others say that they waited for it.
ALLOW_LOG='session|client|notice|answer'
WAIT=60
deployment_start 4

client_of()
{
    local line
    read -r line <"$STATE/node-$1/client.pid"
    printf '%s\n' "${line%% *}"
}

say "mount 1 reads a file, keeps it open, and holds a lock"
printf 'old content\n' >"$MNT0/file"
mkdir "$MNT0/dir"
: >"$MNT0/lock"
cat "$MNT1/file" >/dev/null
# Another process keeps them: whoever inherits a descriptor of a stopped mount hangs when it closes it.
mkfifo "$T/go"
sh -c 'read -r _ <"$1/go"; cat <&8 >"$1/read"' reader "$T" 8<"$MNT1/file" &
reader=$!
flock "$MNT1/lock" sleep 600 &
is_locked()
{
    ! flock -n "$MNT0/lock" true
}
must_happen 10 is_locked

say "stop its client"
stopped=$(client_of 1)
kill -STOP "$stopped"
started=$SECONDS
timeout -k 1 "$WAIT" sh -c "printf 'new content\n' >'$MNT0/file'" || fail "a write waits for a stopped client for ever"
timeout -k 1 "$WAIT" mv "$MNT0/file" "$MNT0/renamed" || fail "rename"
timeout -k 1 "$WAIT" rmdir "$MNT0/dir" || fail "rmdir"
timeout -k 1 "$WAIT" flock "$MNT0/lock" true || fail "the lock of a stopped client is held for ever"
say "others had to wait $((SECONDS - started)) s"

say "mounting over it ends, and says why"
status=0
timeout -k 1 20 memefs mount --name "$NAME" --state-dir "$STATE" "$MNT1" 2>"$T/over" || status=$?
equal 1 "$status" "status of a mount over a client that hangs"
grep 'already mounted, by a client that does not answer' "$T/over" >/dev/null || fail "$(<"$T/over")"
status=0
timeout -k 1 20 memefs mount --name "$NAME" --state-dir "$STATE" "$MNT1/below" 2>"$T/over" || status=$?
equal 1 "$status" "status of a mount below a client that hangs"
grep 'below: does not answer' "$T/over" >/dev/null || fail "$(<"$T/over")"

say "let it go on: it shows what is true"
kill -CONT "$stopped"
must_happen 30 test -e "$MNT1/renamed"
echo >"$T/go"
wait "$reader" || fail "read by the descriptor that was open"
equal "new content" "$(cat "$T/read")" "content by the descriptor that was open"
equal "new content" "$(cat "$MNT1/renamed")" "content by name"
[ ! -e "$MNT1/file" ] || fail "the old name is still there"
[ ! -e "$MNT1/dir" ] || fail "the removed directory is still there"
printf 'again\n' >"$MNT1/renamed"
equal "again" "$(cat "$MNT0/renamed")" "what it writes afterwards"
