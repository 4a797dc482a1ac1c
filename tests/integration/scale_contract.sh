#!/usr/bin/env bash
# cm scale and cm rebalance for those who call them: what is refused, with which words, the plan of
# a dry run, and the JSON of the report.
# ctest: timeout=200
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

MEMORY=224M

refused() # STATUS WORDS ARGUMENT…
{
    local status=$1 words=$2
    shift 2
    expect_fail "$status" cm_ scale "$@"
    equal 1 "$(wc -l <"$T/expect.out")" "lines of the message of 'scale $*'"
    grep -qE -- "$words" "$T/expect.out" || fail "scale $*: says $(cat "$T/expect.out")"
    equal "$shape" "$(shape)" "deployment after 'scale $*'"
}

shape()
{
    cm_ status --json | jq -c '[.nodes[] | [.id, .partitions]]'
}

degraded()
{
    [ "$(cm_ status --json | jq -r .state)" = degraded ]
}

figures() # BYTES: cm has heard of so many
{
    cm_ status --json | jq -e --argjson least "$1" '[.nodes[].memory_used] | add > $least' >/dev/null
}

expect_fail 1 cm_ scale 3
grep -q "not running" "$T/expect.out" || fail "without a deployment: $(cat "$T/expect.out")"

deployment_start 2 --max-nodes 4 --link-rate 100M
partitions=$(cm_ status --json | jq .partitions)
shape=$(shape)

say "wrong usage"
refused 2 "how many nodes"
refused 2 "how many nodes" none
refused 2 "how many nodes" 0
refused 2 "how many nodes" +0
refused 2 "how many nodes" 2x
refused 2 "migration" 3 --migration lukewarm
refused 2 "unexpected" 3 4

say "what can't be"
refused 1 "at least 1 of the 2 nodes" -2
refused 1 "this deployment has $partitions" $((partitions + 1))
head -c 180000000 /dev/urandom >"$MNT0/data"
must_happen 20 figures 180000000
refused 1 "can't hold the data: .*[0-9]{9} bytes.* are used.* room for .*[0-9]{9} bytes" 1
refused 1 "can't hold the data" -1 --dry-run

say "a dry run"
cm_ scale +1 --dry-run >"$T/plan" || fail "dry run"
grep -q "from 2 to 3 nodes" "$T/plan" || fail "plan: $(cat "$T/plan")"
grep -qE "partition [0-9]+ +node-[01] -> node-2" "$T/plan" || fail "plan: $(cat "$T/plan")"
cm_ scale 3 --dry-run --json >"$T/plan" || fail "dry run as JSON"
jq -e '.from == 2 and .to == 3 and (.moves | length) == .partitions_moved and .partitions_moved > 0
    and ([.moves[].bytes] | add) == .bytes_moved and all(.moves[]; .to == 2)' "$T/plan" >/dev/null ||
    fail "plan: $(cat "$T/plan")"
equal "$shape" "$(shape)" "deployment after a dry run"

say "the report"
cm_ scale +1 --json >"$T/report" 2>"$T/progress" || fail "cm scale +1: $(cat "$T/progress")"
[ ! -s "$T/progress" ] || fail "progress in a pipe: $(cat "$T/progress")"
jq -e '[.from, .to, .partitions_moved, .bytes_moved, .duration_ms, .blocked_ms_max,
    .blocked_ms_total, .lower_bound_ms] | all(type == "number")' "$T/report" >/dev/null ||
    fail "report: $(cat "$T/report")"
jq -e '.from == 2 and .to == 3 and .bytes_moved > 0 and .duration_ms > 0 and
    .blocked_ms_total >= .blocked_ms_max and .blocked_ms_max > 0' "$T/report" >/dev/null ||
    fail "report: $(cat "$T/report")"
# (D/S)·max(n,x)/(n+x) with n = 2, x = 1, and D about 90 MB per node: some 600 ms
jq -e '.lower_bound_ms > 400 and .lower_bound_ms < 900' "$T/report" >/dev/null ||
    fail "lower bound: $(cat "$T/report")"
cm_ events --json | jq -se 'any(.what == "scale" and (.text | test("2 -> 3 nodes, by the operator: .* used")))
    and any(.what == "scaled") and any(.what == "left") == false' >/dev/null ||
    fail "events: $(cm_ events)"

say "what is so already"
shape=$(shape)
cm_ scale 3 --json | jq -e '.from == 3 and .to == 3 and .partitions_moved == 0' >/dev/null ||
    fail "the same number again"
cm_ rebalance --json | jq -e '.from == 3 and .to == 3 and .partitions_moved == 0' >/dev/null ||
    fail "rebalance of what is balanced"
cm_ rebalance --dry-run >/dev/null || fail "dry run of rebalance"
equal "$shape" "$(shape)" "deployment after nothing to do"

say "a node that is not there"
ALLOW_LOG='lm-gone'
for try in 1 2 3 4 5; do # a slow machine may have it back before it is asked
    kill -KILL "$(cut -d' ' -f1 "$STATE/node-1/lm.pid")"
    must_happen 5 degraded
    cm_ scale 4 >"$T/out" 2>&1 || break
    cm_ scale 3 >/dev/null || fail "back to 3 nodes after try $try"
done
grep -q "node-1 is not there" "$T/out" || fail "says $(cat "$T/out")"
