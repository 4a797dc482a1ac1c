#!/usr/bin/env bash
# A deployment is saved while it is written to, and comes back on fewer nodes and on more: what the
# image holds is what was there at one moment, sessions and locks of then are gone, what can't be
# saved or restored is refused with nothing begun, and what opened the former deployment does not open
# the new one.
# ctest: timeout=200
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq flock redis-cli

CP=$T/cp

# What is in the directory.
held()
{
    find "$CP" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | paste -sd ' '
}

# One after the other, by turns on two mounts, so over all partitions.
write_in_order()
{
    local i mount
    for ((i = 1; ; i++)); do
        mount=$T/mnt$((i % 2))
        printf 'number %d\n' "$i" >"$mount/seq/tmp"
        mv "$mount/seq/tmp" "$mount/seq/$i"
        [ ! -e "$T/enough" ] || break
    done
}

# expect_prefix DIR: numbers 1 to n without a gap, each with its content, and nothing else.
expect_prefix()
{
    local n
    rm -f "$1/seq/tmp"
    # shellcheck disable=SC2012
    n=$(ls "$1/seq" | wc -l)
    [ "$n" -gt 0 ] || fail "nothing was restored"
    seq -f 'number %.0f' "$n" >"$T/want"
    seq -f "$1/seq/%.0f" "$n" | xargs cat >"$T/have" || fail "of $n files some are missing"
    cmp "$T/want" "$T/have" || fail "files 1 to $n have the wrong content"
    say "$n files, one after the other"
}

# passwords: of all partitions' users, sorted.
passwords()
{
    jq -r '.. | objects | .password?, .admin_password? | strings' "$STATE/cm.json" | sort -u
}

# One who has read the former deployment's state directory.
remember_keys()
{
    mkdir -m 700 "$T/former"
    cp -p "$STATE/secret" "$T/former"
    passwords >"$T/former.passwords"
    former=$(jq -r '.table.partitions[0].password' "$STATE/cm.json")
}

# ask_as_former ADDRESS: a request to who listens there, under the secret that is in $T/former.
ask_as_former()
{
    cp -p "$STATE"/cm.{json,pid} "$T/former"
    printf '%s\n' "$1" >"$T/former/cm.addr"
    "$MEMEFS_BIN/cm" status --state-dir "$T/former"
}

expect_new_keys()
{
    local address user
    passwords | comm -12 - "$T/former.passwords" >"$T/same"
    [ ! -s "$T/same" ] || fail "$(wc -l <"$T/same") passwords are those of before"
    for address in "$(cat "$STATE/cm.addr")" "unix:$STATE/node-0/lm.sock"; do
        expect_fail 1 ask_as_former "$address"
        grep -q 'refused our proof' "$T/expect.out" || fail "$address: $(cat "$T/expect.out")"
    done
    for user in memefs memefs-lm; do
        redis-cli -s "$STATE/node-0/redis-0.sock" --user "$user" --pass "$former" --no-auth-warning ping >"$T/ping" 2>&1 || true
        grep -q WRONGPASS "$T/ping" || fail "partition 0, $user: $(cat "$T/ping")"
    done
    cp -p "$STATE/secret" "$T/former"
    ask_as_former "$(cat "$STATE/cm.addr")" >/dev/null || fail "the new secret is refused, too"
}

say "save under load"
MEMORY=256M deployment_start 2 --partitions 8
expect_fail 1 cm_ start --restore "$CP" # it runs already, and not from that
mkdir "$MNT0/seq"
head -c 20000000 /dev/urandom >"$MNT0/big"
ln "$MNT0/big" "$MNT0/second"
sum=$(sha256sum <"$MNT0/big")
printf 'held' >"$MNT0/lock"
exec 8<"$MNT0/lock" 9>"$MNT1/unlinked"
flock 8
printf 'no name' >&9
rm "$MNT1/unlinked"
write_in_order &
writer=$!
must_happen 30 test -e "$MNT0/seq/20"
cm_ checkpoint "$CP"
must_happen 30 test -e "$MNT0/seq/60"
cm_ checkpoint --json "$CP" >"$T/report.json"
touch "$T/enough"
wait "$writer"
equal 2 "$(jq .number "$T/report.json")" "number of the second checkpoint"
equal 8 "$(jq .partitions "$T/report.json")" "partitions in it"
equal "checkpoint-2 current" "$(held)" "what is in the directory"
equal "$CP/checkpoint-2" "$(cm_ status --json | jq -r .checkpoint_dir)" "the last one, in cm status"
cm_ events --json | says '"checkpointed"' || fail "no event"

say "a change of nodes that is under way is waited for"
cm_ scale --rate 8M 3 >"$T/scale.out" 2>&1 &
scale=$!
must_happen 20 jq -e '.scale.step == "move"' "$STATE/cm.json"
cm_ checkpoint --json "$T/moving" >"$T/report.json" || fail "while nodes change"
wait "$scale" || fail "cm scale: $(cat "$T/scale.out")"
equal 3 "$(jq .nodes "$(jq -r .dir "$T/report.json")/manifest.json")" "nodes in the image"
cm_ scale 2 >/dev/null
cm_ checkpoint "$T/moving" # while the last process may still be ending

say "what can't be saved changes nothing"
expect_fail 1 cm_ checkpoint "$MNT0/cp"
grep -q 'in the file system that is to be saved' "$T/expect.out" || fail "$(cat "$T/expect.out")"
expect_fail 1 cm_ checkpoint /proc/cp
expect_fail 2 cm_ checkpoint
mkdir "$T/small"
mount -t tmpfs -o size=2m memefs-test "$T/small"
expect_fail 1 cm_ checkpoint "$T/small/cp"
grep -q 'No space left' "$T/expect.out" || fail "$(cat "$T/expect.out")"
[ -z "$(ls "$T/small/cp")" ] || fail "left: $(ls "$T/small/cp")"
umount "$T/small"
printf 'goes on' >"$MNT1/after"
exec 8<&- 9>&-
remember_keys
deployment_stop
expect_fail 1 cm_ checkpoint "$CP"

say "what can't be restored is refused, with nothing begun"
expect_fail 2 cm_ start --restore "$CP" --partitions 9
expect_fail 2 cm_ start --restore "$CP" --nodes 9
expect_fail 1 cm_ start --restore "$CP" --memory 16M
grep -q 'memory: the checkpoint takes' "$T/expect.out" || fail "$(cat "$T/expect.out")"
expect_fail 1 cm_ start --restore "$T"
cp -r "$CP" "$T/damaged"
dd if=/dev/zero of="$T/damaged/checkpoint-2/partition-3.rdb" bs=1 seek=5000 count=9 conv=notrunc status=none
expect_fail 1 cm_ start --restore "$T/damaged" --nodes 2
grep -q 'partition-3.rdb is damaged' "$T/expect.out" || fail "$(cat "$T/expect.out")"
must_happen 10 no_daemons
ALLOW_LOG='partition-3.rdb is damaged'

# restore NODES
restore()
{
    say "restore on $1 nodes"
    MEMORY=256M deployment_start "$1" --restore "$CP"
    equal 8 "$(cm_ status --json | jq .partitions)" "partitions"
    [ "$(cm_ status --json | jq .epoch)" -gt 1 ] || fail "the epoch does not go on"
    expect_prefix "$MNT0"
    equal "$sum" "$(sha256sum <"$MNT0/big")" "content of a large file"
    equal 2 "$(stat -c %h "$MNT0/second")" "its links"
    [ ! -e "$MNT0/after" ] || fail "what came after the checkpoint is in it"
    flock -n "$MNT0/lock" true || fail "a lock outlived its owner"
    printf 'new' >"$MNT0/new"
    equal new "$(cat "$MNT0/new")" "what is written now"
}

restore 1
expect_new_keys
cm_ start --restore "$CP" --nodes 1 || fail "the same call once more is not harmless"
cm_ scale 2
expect_prefix "$MNT0"
must_happen 60 memefs_fsck --pause 1
deployment_stop
restore 4
cm_ checkpoint "$CP" # which the next could begin with
must_happen 60 memefs_fsck --pause 1
deployment_stop
equal "checkpoint-3 current" "$(held)" "what is in the directory"
