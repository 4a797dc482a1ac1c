#!/usr/bin/env bash
# What a crash leaves is cleared away by the next start or stop, and nothing else is; a start that
# fails leaves nothing and says why.
# ctest: timeout=180
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq perl

ALLOW_LOG='lm-gone|start-failed|hung up|cannot|failed|ended|redis|deploy|daemon'

nothing_left()
{
    must_happen 10 no_daemons
    [ ! -e "$STATE/cm.json" ] || fail "state left: $(ls -R "$STATE")"
    ! compgen -G "/var/tmp/memefs-$NAME-*" || fail "dump directories left"
}

# mount_dying DIRECTORY: a FUSE mount whose client takes the first request after INIT and then is gone.
mount_dying()
{
    exec 7<>/dev/fuse
    mount -i -t fuse dying "$1" -o fd=7,rootmode=40000,user_id=0,group_id=0 || fail "mount -t fuse"
    perl -e '
        open(my $fuse, "+<&=", 7) or die;
        sysread($fuse, my $request, 1 << 18) or die;
        my (undef, undef, $unique) = unpack("L L Q", $request);
        syswrite($fuse, pack("L l Q L4 S2 L2 S2 L8", 80, 0, $unique, 7, 31, 0, 0, 0, 0, 4096, 1, (0) x 10));
        sysread($fuse, $request, 1 << 18) or die;
    ' &
    exec 7>&-
}

say "cm, lms and one redis killed: what the others hold is not cleared away"
cm_ start --nodes 2 --memory 128M || fail "cm start"
redis_serving 0
redis=$pid
rm "$dir/redis-0.journal" # else another one would take its place
for pid in $(pids_of cm) $(pids_of lm) "$redis"; do
    kill -KILL "$pid"
done
must_happen 10 gone "$redis"
before=$(pids_of redis-server | sort)
expect_fail 1 cm_ start --nodes 2 --memory 128M
grep -q "not whole" "$T/expect.out" || fail "does not say what is wrong: $(cat "$T/expect.out")"
equal "$before" "$(pids_of redis-server | sort)" "redis processes"
equal degraded "$(cm_ status --json | jq -r .state)" "state"

say "cm, lms and all redis killed: the data are gone, a start begins afresh"
for pid in $(pids_of cm) $(pids_of lm) $(pids_of redis-server); do
    kill -KILL "$pid"
done
must_happen 10 none_of redis-server
# A record whose process is long gone and whose pid belongs to somebody else now.
sleep 300 &
stranger=$!
printf '%s 1 redis-server\n' "$stranger" >"$STATE/node-0/redis-99.pid"
# A mount whose client goes just when it is looked at.
mkdir "$T/dying"
printf '%s\n' "$T/dying" >"$STATE/node-0/mount"
mount_dying "$T/dying"
cm_ start --nodes 3 --memory 128M 2>"$T/err" || fail "start over remains: $(cat "$T/err")"
grep -q "clearing away" "$T/err" || fail "does not say that it cleared away"
gone "$stranger" && fail "a stranger was killed"
! grep -F " $T/dying " /proc/self/mounts || fail "a dead mount is left"
kill "$stranger"
equal 3 "$(pids_of lm | wc -l)" "Local Managers"
equal 19 "$(pids_of redis-server | wc -l)" "redis processes"
compgen -G "/var/tmp/memefs-$NAME-*/node-2" >/dev/null || fail "no dump directory to be cleared away"

say "a directory that is somebody else's stays as it is"
mkdir -m 755 "$T/else" "$T/else/node-v18"
touch "$T/else/node-v18/file"
expect_fail 2 cm start --name other --state-dir "$T/else" --nodes 1 --memory 64M
grep -q "state-dir: $T/else/node-v18 is there already" "$T/expect.out" || fail "$(cat "$T/expect.out")"
equal 755 "$(stat -c %a "$T/else")" "its mode"
touch "$STATE/mine"
mkdir "$STATE/node-v18"
cm_ start --nodes 3 --memory 128M || fail "what came later is in the way"

say "cm and lms killed for good: cm stop ends and removes the rest"
for pid in $(pids_of cm) $(pids_of lm); do
    kill -KILL "$pid"
done
cm_ stop || fail "cm stop"
nothing_left
equal "mine node-v18" "$(cd "$STATE" && echo *)" "what is left in the state directory"
rm -r "$STATE"

say "cm start and its cm killed in the middle"
for delay in 0.01 0.03 0.06 0.1 0.15 0.2; do
    cm start --name "$NAME" --state-dir "$STATE" --nodes 4 --memory 128M >"$T/out" 2>&1 &
    starter=$!
    sleep "$delay"
    kill -KILL "$starter" "$(cut -d' ' -f1 "$STATE/cm.pid" 2>/dev/null)" 2>/dev/null || true
    wait "$starter" 2>/dev/null || true
    cm_ start --nodes 4 --memory 128M || fail "start after a start killed after $delay s"
    equal 32 "$(pids_of redis-server | wc -l)" "redis processes"
    equal 4 "$(pids_of lm | wc -l)" "Local Managers"
    cm_ stop || fail "cm stop"
    nothing_left
done

say "stop in the middle of a start"
for delay in 0.03 0.1 0.2; do
    cm_ start --nodes 4 --memory 128M >"$T/out" 2>&1 &
    starter=$!
    sleep "$delay"
    cm_ stop || fail "stop in the middle of a start"
    wait "$starter" || true
    cm_ stop || fail "second stop"
    nothing_left
done

say "two starts at once"
cm_ start --nodes 2 --memory 128M >"$T/one" 2>&1 &
one=$!
cm_ start --nodes 2 --memory 128M >"$T/two" 2>&1 || fail "second of two: $(cat "$T/two")"
wait "$one" || fail "first of two: $(cat "$T/one")"
equal 2 "$(pids_of lm | wc -l)" "Local Managers"
cm_ stop || fail "cm stop"
nothing_left

say "starts that fail"
expect_fail 1 cm_ start --listen 203.0.113.77:0
grep -q "203.0.113.77" "$T/expect.out" || fail "does not name the address: $(cat "$T/expect.out")"
nothing_left
mkdir "$T/bin"
ln "$MEMEFS_BIN/cm" "$T/bin/cm" 2>/dev/null || cp "$MEMEFS_BIN/cm" "$T/bin/cm"
expect_fail 1 "$T/bin/cm" start --name "$NAME" --state-dir "$STATE"
grep -q "$T/bin/lm" "$T/expect.out" || fail "does not name what is missing: $(cat "$T/expect.out")"
printf '#!/bin/sh\necho no such luck; exit 3\n' >"$T/bin/lm"
chmod +x "$T/bin/lm"
expect_fail 1 "$T/bin/cm" start --name "$NAME" --state-dir "$STATE" --nodes 2
grep -q "exited with status 3" "$T/expect.out" || fail "does not say how: $(cat "$T/expect.out")"
grep -q "no such luck" "$T/expect.out" || fail "does not show the log: $(cat "$T/expect.out")"
nothing_left
[ ! -e "$STATE" ] || fail "left: $(ls -R "$STATE")"
