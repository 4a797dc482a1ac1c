#!/usr/bin/env bash
# Nodes from Slurm by slurmrestd, on a real one (scripts/slurm-cluster): by TCP and by its UNIX socket, with a token that is
# shown nowhere; jobs come, wait with their reason, are cancelled, count as they were while slurmrestd is away or refuses a
# token that has ended, which is renewed while cm runs. All of it by a user who is not root.
# ctest: release waits timeout=300 long=30
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/slurm.sh
. "$HARNESS_DIR/slurm.sh"
need curl

MNT=$T/mnt
TOKEN=$T/token

renew() # SECONDS
{
    slurm_cluster token nobody "$1" >"$TOKEN.new"
    chown nobody "$TOKEN.new"
    chmod 600 "$TOKEN.new"
    mv "$TOKEN.new" "$TOKEN"
}

cm_rest()
{
    on tux1 cm "$1" --name rest "${@:2}"
}

# The allocation: a job that does nothing until it is told to end. Its script is where `cm start` is called.
cat >"$T/job" <<'END'
#!/bin/bash
PATH=$2/bin:$PATH
cm start --name rest --mount "$1" --partitions 8 --slurm-rest "$SLURM_REST_URL" --slurm-token-file "$2/token" --slurm-time 10 --slurm-partition main
echo $? >"$2/started"
until [ -e "$2/end" ]; do sleep 0.2; done
cm stop --name rest
echo $? >"$2/stopped"
END

say "a cluster, and a deployment in a job on one of its nodes"
slurm_up 3
renew 600
job_begins --nodes 1 --nodelist tux1

say "a node that is a job, and a token that nobody sees"
cm_rest scale +1
equal memefs-rest-node-1 "$(jobs_of running | grep memefs)" "jobs"
details=$(scontrol show job "$(job_of memefs-rest-node-1)")
[[ $details =~ TimeLimit=00:10:00 && $details =~ Partition=main && $details =~ OverSubscribe=NO && $details =~ Requeue=0 ]] || fail "the job is $details"
on tux1 bash -c "head -c 8M /dev/urandom >$MNT/a"
sum=$(on tux1 sha256sum "$MNT/a")
! grep -sqFf "$TOKEN" /proc/[0-9]*/cmdline || fail "a command line shows the token"
! on tux1 grep -rqFf "$TOKEN" "$OWN" || fail "a file of the deployment shows the token"

say "a job that waits, slurmrestd that is away meanwhile, and nobody who wants the node any more"
sbatch --quiet --job-name other --nodelist tux3 --exclusive --output /dev/null --wrap 'sleep 1000'
must_happen 30 eval 'jobs_of running | says -x other'
cm_rest scale +1 >"$T/scale.out" 2>&1 &
must_happen 30 eval 'cm_rest status | says -E "node-2 waits: job [0-9]+: "'
slurm_cluster crash rest
must_happen 30 on tux1 grep -q "count as they were" "$OWN/rest/cm.log"
slurm_cluster boot rest
must_happen 30 on tux1 grep -q "looked after again" "$OWN/rest/cm.log"
equal memefs-rest-node-2 "$(jobs_of pending)" "jobs that wait"
cm_rest scale --cancel
wait $! && fail "a change that was cancelled succeeds"
must_happen 30 no_jobs_but memefs-rest-node-1 other workflow
scancel --name other

say "a new cm, and a token that ends"
renew 5
# shellcheck disable=SC2016 # for the inner shell
on tux1 bash -c 'kill -9 "$(cut -d" " -f1 "$1/rest/cm.pid")"' kill "$OWN"
on tux1 env SLURM_JOB_ID= cm start --name rest
must_happen 30 on tux1 grep -q "refuses the token, which may have ended; write a new one into $TOKEN" "$OWN/rest/cm.log"
expect_fail 1 cm_rest scale +1
grep -q "refuses the token" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
equal "started started" "$(cm_rest status --json | jq -r '[.nodes[].state] | join(" ")' | sed 's/up/started/g')" "nodes"
equal "$sum" "$(on tux2 sha256sum "$MNT/a")" "data meanwhile"
renew 600
cm_rest scale +1
must_happen 30 no_jobs_but memefs-rest-node-1 memefs-rest-node-4 workflow

say "a job that is cancelled drains its node"
scancel --name memefs-rest-node-4
must_happen 60 eval 'cm_rest status --json | jq -e ".state == \"running\" and (.nodes | length) == 2"'
cm_rest scale 1
must_happen 30 no_jobs_but workflow
equal "$sum" "$(on tux1 sha256sum "$MNT/a")" "data at the end"

say "by the UNIX socket, outside of any allocation, with the token of the environment"
# shellcheck disable=SC2016 # for the inner shell
on tux1 env SLURM_JWT="$(cat "$TOKEN")" cm start --name unix --provider slurm --nodes 1 --memory 128M --partitions 4 --listen 10.213.0.1:0 \
    --slurm-rest "unix:$SLURM_REST_SOCKET"
equal memefs-unix-node-0 "$(jobs_of running | grep memefs)" "jobs"
on tux1 cm stop --name unix
must_happen 30 no_jobs_but workflow

say "what is refused"
expect_fail 2 on tux1 cm start --name refused --provider slurm --nodes 1 --memory 128M --slurm-rest "$SLURM_REST_URL"
grep -q "a token is needed" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
expect_fail 2 on tux1 cm start --name refused --provider slurm --nodes 1 --memory 128M --slurm-rest "$SLURM_REST_URL" --slurm-token-file "$TOKEN" --slurm-args --qos=a
grep -q "these are for sbatch" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
expect_fail 1 on tux1 cm start --name refused --provider slurm --nodes 1 --memory 128M --slurm-rest "$SLURM_REST_URL" --slurm-token-file "$TOKEN" --slurm-partition none --listen 10.213.0.1:0
grep -qi "invalid partition" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
no_jobs_but workflow || fail "jobs are left"

say "stop, and nothing is left"
touch "$T/end"
must_happen 120 test -s "$T/stopped"
equal 0 "$(cat "$T/stopped")" "exit status of cm stop"
must_happen 30 no_jobs_but ""
nothing_left_on "$MNT" tux1 tux2 tux3
slurm_cluster down
