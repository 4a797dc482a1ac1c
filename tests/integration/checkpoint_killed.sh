#!/usr/bin/env bash
# Whoever is killed while a checkpoint is written: the former one stays valid, the deployment goes
# on, writers do not wait for ever, and the next checkpoint leaves nothing but itself.
# ctest: timeout=300
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

CP=$T/cp

# What is in the directory.
held()
{
    find "$CP" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | paste -sd ' '
}
ALLOW_LOG='image:|partition [0-9]+:'

number()
{
    sed 's/checkpoint-\([0-9]*\) .*/\1/' "$CP/current"
}

fill()
{
    head -c 150000000 /dev/urandom >"$MNT0/big"
    sum=$(sha256sum <"$MNT0/big")
}

lost_is_told()
{
    memefs_lost --json | says big
}

running()
{
    [ "$(cm_ status --json | jq -r .state)" = running ]
}

# begin MS: a checkpoint in the background that is so many milliseconds old. These are what the test
# is about: the moment of death. Whichever step that is, the outcome is judged in the same way.
begin()
{
    cm checkpoint --name "$NAME" --state-dir "$STATE" "$CP" >"$T/checkpoint.out" 2>&1 &
    checkpoint=$!
    wait_for 10 compgen -G "$CP/*.part" || true
    sleep "$(printf '0.%03d' "$1")"
}

# Either way is right, also when it was the command itself; what must not be is anything in between.
after_death()
{
    local before=$1 rc=0
    wait "$checkpoint" || rc=$?
    case $rc in
    0) equal $((before + 1)) "$(number)" "number of a checkpoint that was made" ;;
    137) [ "$(number)" -eq "$before" ] || equal $((before + 1)) "$(number)" "number of the checkpoint" ;;
    *) equal "$before" "$(number)" "number of the former checkpoint" ;;
    esac
    # A writer that waited for a pause without an end would never return.
    timeout 30 sh -c "echo written >'$MNT1/w' && sync '$MNT1/w'" || fail "writing does not go on"
    equal written "$(cat "$MNT0/w")" "what was written after the death"
}

made_anew()
{
    local before
    before=$(number)
    must_happen 60 cm_ checkpoint "$CP"
    equal $((before + 1)) "$(number)" "number of the next checkpoint"
    equal "checkpoint-$(number) current" "$(held)" "what is in the directory"
}

refused()
{
    expect_fail 1 cm_ checkpoint "$CP"
    grep -q "memefs lost lists" "$T/expect.out" || fail "no reason: $(cat "$T/expect.out")"
}

MEMORY=512M deployment_start 2 --partitions 8
fill
cm_ checkpoint "$CP"

say "cm checkpoint itself"
for ms in 0 60 200; do
    before=$(number)
    begin "$ms"
    kill -KILL "$checkpoint" 2>/dev/null || true # it may be done
    after_death "$before"
done
made_anew

say "cm"
for ms in 0 80; do
    before=$(number)
    begin "$ms"
    kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
    after_death "$before"
    cm_ start
done
made_anew

say "an lm"
for ms in 0 80; do
    before=$(number)
    begin "$ms"
    kill -KILL "$(cut -d' ' -f1 "$STATE/node-1/lm.pid")"
    after_death "$before"
    must_happen 30 running
done
made_anew
equal "$sum" "$(sha256sum <"$MNT1/big")" "content after all that"

say "a redis process"
before=$(number)
begin 60
redis_kill 0
wait "$checkpoint" || equal "$before" "$(number)" "number of the former checkpoint"
must_happen 30 lost_is_told

say "a checkpoint that has the bytes is not replaced by one that lacks them"
before=$(number)
must_happen 60 running
refused
equal "$before" "$(number)" "number of the former checkpoint"
equal "checkpoint-$before current" "$(held)" "what is in the directory"
must_happen 60 cm_ checkpoint "$T/other"
must_happen 60 cm_ checkpoint "$T/other" # it lacks no more than the former one there
cm_ stop

say "what was saved is there, whatever was lost"
MEMORY=512M deployment_start 1 --restore "$CP"
equal "$sum" "$(sha256sum <"$MNT0/big")" "content of what was restored"
must_happen 60 memefs_fsck --pause 1

say "a process that began with an image is replaced like any other"
for ((i = 0; i < 8; i++)); do
    redis_kill "$i"
done
must_happen 60 test -s "$MNT0/big"
equal 150000000 "$(stat -c %s "$MNT0/big")" "size of what was restored and has lost its data"
must_happen 30 lost_is_told # its pages may still be in the kernel, so reading it tells nothing
refused
rm "$MNT0/big" "$MNT0/w"
must_happen 60 cm_ checkpoint "$CP" # none of what was lost is missed any more
must_happen 60 memefs_fsck --pause 1
deployment_stop
