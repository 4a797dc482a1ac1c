#!/usr/bin/env bash
# How start and stop speak to an operator: a start never advises what loses files, a stop on a terminal asks
# before it does, and a start from a checkpoint goes on as that deployment was.
# ctest: timeout=120
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq script

MEMORY=128M

# on_terminal ANSWER ARGUMENT…: cm stop on a terminal, at which that is typed. What is shown goes to $T/shown.
on_terminal()
{
    local answer=$1 status=0
    shift
    rm -f "$T/typed"
    mkfifo "$T/typed"
    timeout 60 script -qec "cm stop --name $NAME --state-dir $STATE $*" /dev/null <"$T/typed" >"$T/shown" 2>&1 &
    exec 9>"$T/typed" # open to the end: the terminal hangs up with it
    printf '%s\n' "$answer" >&9
    wait $! || status=$?
    exec 9>&-
    return $status
}

shows() # REGEX
{
    grep -qE "$1" "$T/shown" || fail "shown: $(cat "$T/shown")"
}

# differs REGEX ARGUMENT…: cm start is refused, as it runs already, and says that.
differs()
{
    local says=$1
    shift
    expect_fail 1 cm_ start "$@"
    grep -qE "runs already.*$says" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
    ! grep -q 'cm stop' "$T/expect.out" || fail "advises to stop: $(cat "$T/expect.out")"
}

deployment_start 2 --policy cso+csi --scale-in-at 40 --max-nodes 3 --partitions 6

say "a start on what runs names what helps"
differs 'cm scale' --nodes 3
differs 'cm policy' --policy aso
differs 'memefs mount' --mount "$T/elsewhere"
differs 'leave the option out' --memory 64M
differs 'leave the option out' --scale-in-at 30
differs 'leave the option out' --rebalance off

say "a stop on a terminal asks where files are"
mkdir "$MNT0/dir"
printf 'content' >"$MNT0/dir/file"
! on_terminal n || fail "it stops without a yes"
shows "$NAME holds 2 files and directories.*lost"
shows "Go on"
shows 'nothing was stopped'
equal content "$(cat "$MNT1/dir/file")" "content"

say "a checkpoint is gone on with"
cm_ checkpoint "$T/saved"
on_terminal y || fail "it does not stop: $(cat "$T/shown")"
shows 'stopped'
cm_ start --restore "$T/saved" >"$T/out"
grep -q "as in the checkpoint: .*--mount $T/mnt%n.*--nodes 2 --memory 128M" "$T/out" || fail "says $(cat "$T/out")"
equal content "$(cat "$MNT1/dir/file")" "content"
equal 2 "$(cm_ status --json | jq '.nodes | length')" "nodes"
equal cso+csi "$(cm_ policy)" "policy"
equal 0.4 "$(jq .scaling.in_at "$STATE/cm.json")" "what was given for it"
on_terminal n --yes || fail "it asks in spite of --yes: $(cat "$T/shown")"
must_happen 10 no_daemons

say "unless told otherwise"
cm_ start --restore "$T/saved" --nodes 1 --memory 256M --policy none --mount "$T/mnt0" >"$T/out"
! grep -qE -- '--(nodes|memory|policy|mount) ' "$T/out" || fail "says $(cat "$T/out")"
equal 1 "$(cm_ status --json | jq '.nodes | length')" "nodes"
equal none "$(cm_ policy)" "policy"
equal content "$(cat "$MNT0/dir/file")" "content"
rm -r "$MNT0/dir"
on_terminal n || fail "it asks though nothing is there: $(cat "$T/shown")"
shows 'stopped'
check_nothing_left

say "without a terminal nobody is asked"
deployment_start 1
printf 'content' >"$MNT0/file"
deployment_stop
