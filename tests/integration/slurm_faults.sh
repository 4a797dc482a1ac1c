#!/usr/bin/env bash
# Faults while nodes come from Slurm and go: slurmctld is away while a change asks for nodes, waits for them, gives them
# back; jobs are cancelled; cm is killed in each step of growing and draining, and started again. No byte is lost, and no
# job is left.
# ctest: slow timeout=600
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/slurm.sh
. "$HARNESS_DIR/slurm.sh"

MNT=$T/mnt
JOB=memefs-faults-node

cm_faults()
{
    on tux1 cm "$1" --name faults "${@:2}"
}

kill_cm()
{
    # shellcheck disable=SC2016 # for the inner shell
    on tux1 bash -c 'kill -9 "$(cut -d" " -f1 "$1/faults/cm.pid")"' kill "$OWN"
}

start_again()
{
    on tux1 env SLURM_JOB_ID= cm start --name faults || fail "cm does not start again"
}

nodes_are() # COUNT
{
    cm_faults status --json | jq -e --argjson n "$1" '.state == "running" and (.nodes | length) == $n and all(.nodes[]; .state == "up")'
}

whole() # WHEN
{
    equal "$sum" "$(on tux1 sha256sum "$MNT/a")" "data $1"
}

job_waits()
{
    jobs_of pending | says "^$JOB"
}

# slurmctld writes changes within 5 s; jobs and steps that it has not written when it is killed it forgets, and has ended.
restartable()
{
    sleep 7
}

in_step() # STEP: of the change, or of its moves
{
    on tux1 grep -q "\"step\":[[:space:]]*\"$1\"" "$OWN/faults/cm.json"
}

# The allocation: a job that does nothing until it is told to end. Its script is where `cm start` is called.
cat >"$T/job" <<'END'
#!/bin/bash
PATH=$2/bin:$PATH
cm start --name faults --mount "$1" --partitions 8 --migration-rate 2M --slurm-time 10
echo $? >"$2/started"
until [ -e "$2/end" ]; do sleep 0.2; done
cm stop --name faults
echo $? >"$2/stopped"
END

say "a cluster, and a deployment in a job on one of its nodes"
slurm_up 3
job_begins --nodes 1 --nodelist tux1
on tux1 bash -c "head -c 24M /dev/urandom >$MNT/a"
sum=$(on tux1 sha256sum "$MNT/a")

say "slurmctld is away when a change asks for a node"
restartable
slurm_cluster crash ctld
expect_fail 1 cm_faults scale +1
slurm_cluster boot ctld
must_happen 60 no_jobs_but workflow
must_happen 30 nodes_are 1
whole "without slurmctld"

say "slurmctld restarts while a job waits"
sbatch --quiet --job-name other --nodelist tux2,tux3 --exclusive --output /dev/null --wrap 'sleep 1000'
must_happen 30 eval 'jobs_of running | says -x other'
cm_faults scale +1 >"$T/scale.out" 2>&1 &
must_happen 30 job_waits
restartable
slurm_cluster crash ctld
slurm_cluster boot ctld
scancel --name other
wait $! || fail "the change failed: $(cat "$T/scale.out")"
must_happen 30 nodes_are 2
whole "after it came"

say "a running job is cancelled: its node is drained"
scancel --name "$(jobs_of running | grep "^$JOB")"
must_happen 120 nodes_are 1
must_happen 30 no_jobs_but workflow
whole "after the job was cancelled"

for step in come move; do
    say "cm is killed while a change grows, in the step $step"
    cm_faults scale +1 >"$T/scale.out" 2>&1 &
    must_happen 60 in_step "$step"
    kill_cm
    wait $! || true
    start_again
    must_happen 120 nodes_are 2
    whole "after $step"
    say "cm is killed while a change shrinks"
    cm_faults scale -1 >"$T/scale.out" 2>&1 &
    must_happen 60 in_step "$([ "$step" = come ] && echo move || echo go)"
    kill_cm
    wait $! || true
    start_again
    must_happen 120 nodes_are 1
    must_happen 30 no_jobs_but workflow
    whole "after the node has gone"
done

say "slurmctld is away when a node is given back"
cm_faults scale +1
restartable
slurm_cluster crash ctld
cm_faults scale -1 >"$T/scale.out" 2>&1 || true
slurm_cluster boot ctld
must_happen 120 nodes_are 1
must_happen 60 no_jobs_but workflow
whole "at the end"

say "stop, and nothing is left"
touch "$T/end"
must_happen 120 test -s "$T/stopped"
must_happen 30 no_jobs_but ""
nothing_left_on "$MNT" tux1 tux2 tux3
slurm_cluster down
