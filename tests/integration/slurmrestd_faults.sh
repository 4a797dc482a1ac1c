#!/usr/bin/env bash
# What stands where slurmrestd should, and lies (tests/support/slurmrestd_liar): answers that are cut, huge, late, no JSON, or
# JSON of a gateway that says nothing of jobs. No node is given up for such an answer, and no job is left behind.
# (The real one: provider_slurm_rest.)
# ctest: release waits timeout=150 long=55
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
need python3

ALLOW_LOG='slurm|lm-gone|join|connect|closed|ended|killed'
LIAR=$T/liar
HERE=10.99.0.1
GATEWAY='"status": 503, "body": "{\"message\": \"Service Unavailable\"}"'
export SLURM_JWT=a.b.c
unset SLURM_JOB_ID

fault() # JSON
{
    printf '%s\n' "$1" >"$LIAR/faults"
}

calls() # WHAT STATUS
{
    grep -cx "$1 $2" "$LIAR/calls" || true
}

has_called() # WHAT STATUS MORE-THAN
{
    [ "$(calls "$1" "$2")" -gt "$3" ]
}

no_jobs()
{
    [ -z "$(ls "$LIAR/jobs")" ]
}

start()
{
    cm_ start --provider slurm --slurm-rest "http://$HERE:6820" --listen "$HERE:0" --memory 64M --partitions 4 \
        --node-state-dir "$T/n" "$@"
}

ip address add "$HERE/24" dev lo
mkdir "$LIAR"
"$HARNESS_DIR/slurmrestd_liar" "$LIAR" "$HERE" 6820 &
liar=$!
must_happen 20 test -e "$LIAR/ready"

say "looks that tell nothing: the job is asked for again"
start --nodes 1
must_happen 20 has_called look OK 0
for lie in "$GATEWAY" '"body": "{}"' '"body": "{\"jobs\": []}"' '"body": "{\"jobs\": \"none\"}"' '"body": "[]"' '"cut": true' '"huge": 20' \
    '"body": "{\"jobs\": [{\"job_id\": 7, \"job_state\": \"RUNNING\"}]}"' '"status": 500, "body": "{\"errors\": [{}]}"'; do
    lies=$(calls look fault)
    told=$(calls look OK)
    fault "{\"look\": {\"times\": 1, $lie}}"
    must_happen 20 has_called look fault "$lies"
    must_happen 20 has_called look OK "$told" # it is still looked after
    equal "running up" "$(cm_ status --json | jq -r '"\(.state) \(.nodes[0].state)"')" "after $lie"
done

say "a job is cancelled however often that fails on the way"
fault "{\"cancel\": {\"times\": 2, $GATEWAY}}"
cm_ stop
no_jobs || fail "a job is left"
equal "2 1" "$(calls cancel fault) $(calls cancel OK)" "cancels"

say "and what Slurm itself refuses is named"
start --nodes 1
fault '{"cancel": {"times": 9, "status": 500, "body": "{\"errors\": [{\"error_number\": 2010, \"description\": \"Access denied\"}]}"}}'
expect_fail 1 cm_ stop
grep -qE "not given back: node-0: job [0-9]+ may still run: Access denied" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
must_happen 30 no_jobs # its lm has ended

say "a submission whose answer is lost: cancelled by its name, and what could not be ends itself"
fault '{"submit": {"times": 1, "after": true, "cut": true}}'
expect_fail 1 start --nodes 1
no_jobs || fail "a job is left"
fault "{\"submit\": {\"times\": 1, \"after\": true, \"body\": \"{}\"}, \"list\": {\"times\": 9, $GATEWAY}}"
expect_fail 1 start --nodes 1
grep -q "a job may wait all the same, which .scancel --name memefs-$NAME-node-0. cancels" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
must_happen 40 no_jobs

say "what was never sent is no job"
fault "{\"ping\": {\"times\": 1, $GATEWAY}}"
expect_fail 1 start --nodes 1
grep -q "is not slurmrestd, or has failed: status 503" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
expect_fail 1 start --nodes 1 --slurm-rest "http://$HERE:1"
! grep -q "may wait all the same" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
mkfifo "$T/pipe"
expect_fail 1 start --nodes 1 --slurm-token-file "$T/pipe"
grep -q "$T/pipe: Operation not supported" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
kill "$liar"
wait || true
check_nothing_left
