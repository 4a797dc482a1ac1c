#!/usr/bin/env bash
# A deployment from start to stop: every mount shows the same files, status and layout tell the
# truth, starting and stopping twice is harmless, and a stopped deployment can be started anew.
# ctest: timeout=180
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need findmnt jq setpriv

status_of() # JQ-EXPRESSION
{
    cm_ status --json | jq -r "$1"
}

say "start"
deployment_start 4
equal running "$(status_of .state)" "state"
equal "$NAME" "$(status_of .name)" "name"
equal 4 "$(status_of '.nodes | length')" "nodes"
equal 32 "$(status_of .partitions)" "partitions: eight for each node"
equal 32 "$(status_of '[.nodes[].partitions] | add')" "partitions of the nodes"
equal 32 "$(pids_of redis-server | wc -l)" "redis processes"
equal 4 "$(pids_of memefs | wc -l)" "clients"
for field in epoch beta policy migration utilization; do
    [ "$(status_of "has(\"$field\")")" = true ] || fail "status --json lacks $field"
done
for field in id name address state partitions memory_capacity memory_used bandwidth_in bandwidth_out \
    share mount; do
    [ "$(status_of "all(.nodes[]; has(\"$field\"))")" = true ] || fail "nodes in status --json lack $field"
done
cm_ status >"$T/status.txt"
grep -q "$NAME" "$T/status.txt" || fail "cm status does not name the deployment"

say "the same files on every mount"
head -c 3000000 /dev/urandom >"$T/data"
mkdir "$MNT0/dir"
cp "$T/data" "$MNT0/dir/file"
for mount in "$MNT0" "$MNT1" "$MNT2" "$MNT3"; do
    cmp "$T/data" "$mount/dir/file" || fail "$mount shows something else"
    grep -q " $mount fuse" /proc/self/mounts || fail "$mount is not a FUSE mount"
done

say "layout"
memefs layout "$MNT1/dir/file" >"$T/layout.txt"
[ -s "$T/layout.txt" ] || fail "memefs layout says nothing"
memefs layout "$MNT1/dir/file" --json | jq -e . >"$T/layout.json" || fail "memefs layout --json is not JSON"
touch "$MNT1/dir/"$'\xc3\xa4\xff\xc0\x80\xed\xa0\x80\xf0\x9f\x98\x80\xc3'
memefs layout "$MNT1/dir/"$'\xc3'* --json >"$T/layout.json"
grep -qF '/ä\udcff\udcc0\udc80\udced\udca0\udc80😀\udcc3"' "$T/layout.json" || fail "a name that is no UTF-8: $(cat "$T/layout.json")"
jq -e . "$T/layout.json" >/dev/null || fail "a name that is no UTF-8 is no JSON"
rm "$MNT1/dir/"$'\xc3'*

say "twice is harmless"
cm_ start --nodes 4 --memory 1G --mount "$T/mnt%n" || fail "a second cm start fails"
cmp "$T/data" "$MNT2/dir/file"
equal 32 "$(pids_of redis-server | wc -l)" "redis processes after a second start"
[ "$(cm_ events --json | wc -l)" -gt 0 ] || fail "no events"

say "a start mounts again what was unmounted on purpose, also when its client has not ended yet"
memefs umount "$MNT1"
umount "$MNT2"
cm_ start || fail "cm start with two mounts gone"
for mount in "$MNT0" "$MNT1" "$MNT2" "$MNT3"; do
    cmp "$T/data" "$mount/dir/file" || fail "$mount shows something else"
    equal 1 "$(grep -c " $mount fuse" /proc/self/mounts)" "mounts at $mount"
done

say "a start while a Local Manager dies"
for node in 1 2 3; do
    read -r lm _ <"$STATE/node-$node/lm.pid"
    kill -STOP "$lm"
    cm_ start &
    start=$!
    sleep 0.2 # so that the lm has been asked, and has not answered
    kill -KILL "$lm"
    wait "$start" || fail "cm start fails as the lm of node-$node dies"
done

say "a parent that ignores SIGCHLD"
env --ignore-signal=CHLD memefs mount --name "$NAME" --state-dir "$STATE" "$T/by-hand" || fail "memefs mount fails"
cmp "$T/data" "$T/by-hand/dir/file"
read_since_9() { [ "$(stat -c %X "$1")" -ne 9 ]; }
options_of() { findmnt -no VFS-OPTIONS "$1"; }
for mount in "$MNT0" "$T/by-hand"; do
    [[ $(options_of "$mount") == *nosuid*nodev* ]] || fail "$mount lets set-user-ID programs or devices work"
done
env --ignore-signal=CHLD memefs umount "$T/by-hand" || fail "memefs umount fails"

say "where something is already; with set-user-ID programs and devices"
: >"$T/by-hand/covered"
memefs mount --name "$NAME" --state-dir "$STATE" --log "$T/by-hand.log" -o suid,dev,nodiratime "$T/by-hand" 2>"$T/said"
for file in "$T/said" "$T/by-hand.log"; do
    grep -q "by-hand: is not empty" "$file" || fail "$(cat "$file")"
done
[[ $(options_of "$T/by-hand") != *no[sd]* ]] || fail "suid,dev: $(options_of "$T/by-hand")"
cp "$(command -v id)" "$T/by-hand/id"
chmod 4755 "$T/by-hand/id"
equal 0 "$(setpriv --reuid 65534 "$T/by-hand/id" -u)" "a set-user-ID program where they are allowed"
equal 65534 "$(setpriv --reuid 65534 "$MNT0/id" -u)" "a set-user-ID program where they are not"
mkdir "$MNT0/read"
touch -a -d @9 "$MNT0/read"
ls "$T/by-hand/read"
equal 9 "$(stat -c %X "$T/by-hand/read")" "a directory's access time with nodiratime"
ls "$MNT0/read"
must_happen 10 read_since_9 "$MNT0/read"
memefs umount "$T/by-hand"
[ -e "$T/by-hand/covered" ] || fail "what was covered is gone"

say "clients open their logs anew"
mv "$STATE/node-1/client.log" "$T/rotated.log"
kill -HUP "$(cut -d' ' -f1 "$STATE/node-1/client.pid")"
must_happen 10 grep -q "log opened anew" "$STATE/node-1/client.log"
cmp "$T/data" "$MNT1/dir/file" || fail "SIGHUP has ended a mount"

say "stop"
# An lm that was killed meanwhile hears no exit status: it might take this client for one that has died.
umount "$MNT0"
must_happen 10 memefs mount --name "$NAME" --state-dir "$STATE" "$MNT0" # by hand, with a log of its own
deployment_stop
[ ! -e "$STATE" ] || fail "left: $(ls -R "$STATE")"
cm_ stop || fail "a second cm stop fails"
expect_fail 1 cm_ status

say "anew"
deployment_start 2
[ -z "$(ls -A "$MNT0")" ] || fail "a new deployment is not empty"
printf 'new' >"$MNT0/f"
equal new "$(cat "$MNT1/f")" "content"

say "stopped Local Managers"
for node in 0 1; do
    read -r lm _ <"$STATE/node-$node/lm.pid"
    kill -STOP "$lm"
done
before=$SECONDS
deployment_stop
say "cm stop with all lms stopped: $((SECONDS - before)) s"
