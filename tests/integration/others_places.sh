#!/usr/bin/env bash
# Directories that other users have a hand in: links where dumps are to go, a state directory with orders for
# root, a checkpoint directory that is changed while it is written (reports of a session that attacked root so:
# /victim was deleted, a command ran as root, images were written elsewhere). And what operators may well give.
# ctest: timeout=60 waits
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq
ALLOW_LOG='dumps go to'

stranger=4711
mkdir "$T/victim" "$T/victim/node-0"
touch "$T/victim/keep" "$T/victim/node-0/keep"

victim_is_whole()
{
    [ -e "$T/victim/node-0/keep" ] || fail "$1: the victim's files are gone"
    equal 3 "$(find "$T/victim" -mindepth 1 | wc -l)" "$1: what the victim has"
}

refused() # WHAT WORDS COMMAND…
{
    local what=$1 words=$2
    shift 2
    expect_fail 1 "$@"
    grep -q -- "$words" "$T/expect.out" || fail "$what: $(cat "$T/expect.out")"
}

say "a link where the dumps are to go"
MEMORY=64M deployment_start 1
dumps=$(cat "$STATE/node-0/dumps")
cp -a "$STATE/cm.json" "$T/cm.json"
deployment_stop
[ ! -e "${dumps%/*}" ] || fail "${dumps%/*} is left"
ln -s "$T/victim" "${dumps%/*}"
for owner in "$stranger" 0; do
    chown -h "$owner" "${dumps%/*}"
    MEMORY=64M deployment_start 1
    victim_is_whole "after the start"
    grep -q "dumps go to.*${dumps%/*}: it is not a directory that only this user" "$STATE/node-0/lm.log" ||
        fail "no warning: $(grep dumps "$STATE/node-0/lm.log")"
    [ ! -e "$STATE/node-0/dumps" ] || fail "what is not ours is recorded"
    printf '%s\n' "$dumps" >"$STATE/node-0/dumps" # as earlier versions did
    for pid in $(pids_of lm) $(pids_of cm) $(pids_of redis-server); do
        kill -KILL "$pid"
    done
    save_logs
    cm_ stop || fail "cm stop"
    victim_is_whole "after cm stop, of a link of $owner"
done
rm "${dumps%/*}"

say "a state directory that somebody else owns"
sleep 300 &
sleeper=$!
mkdir -p "$T/theirs/node-0"
jq --arg stop "touch $T/ran" '.provider = "exec" | .provider_options = ["exec-start", "exec-stop" | {key: ., value: $stop}]' \
    "$T/cm.json" >"$T/theirs/cm.json"
printf '%s %s sleep\n' "$sleeper" "$(cut -d' ' -f22 "/proc/$sleeper/stat")" | tee "$T/theirs/node-0/lm.pid" >"$T/theirs/cm.pid"
printf '%s\n' "$T/victim/node-0" >"$T/theirs/node-0/dumps"
printf '%064d\n' 0 >"$T/theirs/secret"
chmod 600 "$T/theirs"/{secret,cm.json}
chown -R "$stranger" "$T/theirs"
chmod 700 "$T/victim" "$T/victim/node-0"
for verb in stop status start events; do
    refused "cm $verb" "directory $T/theirs belongs to user $stranger" cm "$verb" --name "$NAME" --state-dir "$T/theirs"
done
refused "memefs fsck" "$T/theirs belongs to user" memefs fsck --name "$NAME" --state-dir "$T/theirs"
expect_fail 1 cm doctor --name "$NAME" --state-dir "$T/theirs"
grep -q "FAIL.*directory $T/theirs belongs to user $stranger" "$T/expect.out" || fail "$(cat "$T/expect.out")"
# Only what is in it: owner and mode of the directory itself have been mended.
chown 0 "$T/theirs"
cm stop --name "$NAME" --state-dir "$T/theirs" >/dev/null 2>&1 || true
victim_is_whole "by a record of $stranger"
[ ! -e "$T/ran" ] || fail "a command of $stranger ran"
kill "$sleeper" || fail "a process was killed for $stranger"

say "others may write to it, or to what it is in"
mkdir -m 777 "$T/open"
mkdir -m 700 "$T/open/s"
refused "cm start" "others may write to directory $T/open" cm start --name "$NAME" --state-dir "$T/open/s" --nodes 1

say "a link of the operator's own is followed, once"
mkdir "$T/real"
ln -s real "$T/link"
cm start --name "$NAME" --state-dir "$T/link/s" --nodes 1 --memory 64M --mount "$T/mnt0" >/dev/null
equal "$T/real/s" "$(tr '\0' '\n' <"/proc/$(pids_of lm)/cmdline" | grep -A1 -xe --state-dir | tail -n 1)" "what lm is told"
cm status --name "$NAME" --state-dir "$T/real/s" >/dev/null || fail "not found by its path"
printf 'x' >"$T/mnt0/f"

say "checkpoints: only where nobody else can change what is written"
checkpoint()
{
    cm checkpoint --name "$NAME" --state-dir "$T/link/s" "$1"
}
mkdir "$T/cp"
chown "$stranger" "$T/cp"
refused "of another user" "directory $T/cp belongs to user $stranger" checkpoint "$T/cp"
refused "below it" "directory $T/cp belongs to user $stranger" checkpoint "$T/cp/new"
[ -z "$(ls "$T/cp")" ] || fail "something was made there: $(ls "$T/cp")"
refused "open to all" "others may write to directory $T/open" checkpoint "$T/open/new"
checkpoint "$T/link/cp" >/dev/null || fail "through a link of the operator"
checkpoint "$T/link/cp" >/dev/null || fail "again"
[ -e "$T/real/cp/current" ] || fail "not where the link leads"
cm stop --name "$NAME" --state-dir "$T/link/s"

say "nor are checkpoints taken from there"
restore()
{
    cm start --name "$NAME" --state-dir "$STATE" --nodes 1 --memory 64M --mount "$T/mnt0" --restore "$1"
}
cp -a "$T/real/cp" "$T/given"
image=$T/given/checkpoint-2/partition-0.rdb
chown "$stranger" "$image"
refused "another's image" "partition-0.rdb: not a file that only this user and root may write to" restore "$T/given"
chown 0 "$image"
mv "$image" "$T/image"
ln -s "$T/image" "$image"
refused "a link" "partition-0.rdb: not a file" restore "$T/given"
chown -R "$stranger" "$T/given"
refused "another's directory" "directory $T/given belongs to user $stranger" restore "$T/given"
