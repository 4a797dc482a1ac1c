#!/usr/bin/env bash
# A change that is given up while partitions move: no more of them do, the node stays, files are as they
# were, and the next change is as any other. (While nodes come: provider_slurm.)
# ctest: timeout=120
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

moves() # EVENT: how often it has happened
{
    cm_ events --json | jq -s "map(select(.what == \"$1\")) | length"
}

have_moved() # AT-LEAST
{
    [ "$(moves moved)" -ge "$1" ]
}

deployment_start 2 --partitions 16
head -c 96M /dev/urandom >"$T/data"
cp "$T/data" "$MNT0/data"

expect_fail 2 cm_ scale --cancel 3
expect_fail 1 cm_ scale --cancel
grep -q "no change of nodes is under way" "$T/expect.out" || fail "says $(cat "$T/expect.out")"

say "no more partitions move, and the node stays"
cm_ scale 1 --rate 3M >"$T/scale.out" 2>&1 &
scaling=$!
must_happen 30 have_moved 1
cm_ scale --cancel
if wait "$scaling"; then
    fail "the change that was cancelled has succeeded: $(cat "$T/scale.out")"
fi
grep -q "cancelled by the operator" "$T/scale.out" || fail "says $(cat "$T/scale.out")"
equal "running 2" "$(cm_ status --json | jq -r '"\(.state) \(.nodes | length)"')" "state and nodes"
[ "$(moves moved)" -lt 8 ] || fail "all partitions have moved all the same"
cmp "$T/data" "$MNT1/data" || fail "the file has changed"

say "then it is as any other"
cm_ scale 1
cmp "$T/data" "$MNT0/data" || fail "the file has changed"
deployment_stop
