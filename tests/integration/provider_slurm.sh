#!/usr/bin/env bash
# Nodes from Slurm, on a real cluster of four (scripts/slurm-cluster): `cm start` in a batch script takes the hosts of its
# allocation and mounts at one path on all; further nodes are jobs, which wait in the queue with their reason, come, go,
# are found by a new cm, and are cancelled when they are not wanted any more; a step stages on all nodes; nothing is left on any node. All of it by a
# user who is not root.
# ctest: release timeout=300 long=30
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/slurm.sh
. "$HARNESS_DIR/slurm.sh"

MNT=$T/mnt

# The allocation: a job that does nothing until it is told to end. Its script is where `cm start` is called.
cat >"$T/job" <<'END'
#!/bin/bash
PATH=$2/bin:$PATH
cm start --name slurm --mount "$1" --slurm-args "--time=10"
echo $? >"$2/started"
until [ -e "$2/end" ]; do sleep 0.2; done
cm stop --name slurm
echo $? >"$2/stopped"
END

say "a cluster, and a job on two of its nodes"
slurm_up 4
job_begins --nodes 2
cm_slurm()
{
    on tux1 cm "$1" --name slurm "${@:2}"
}
equal "10.213.0.1 10.213.0.2" "$(cm_slurm status --json | jq -r "[.nodes[].address] | join(\" \")")" "nodes"

say "one path on all nodes, and nothing of the deployment is shared"
on tux1 bash -c "echo hello >$MNT/a"
equal hello "$(on tux2 cat "$MNT/a")" "what tux2 reads"
[ ! -e "$OWN/slurm" ] || fail "the machine sees what is tux1's"
equal "node-0 node-1" "$(for n in 1 2; do on "tux$n" ls "$OWN/slurm"; done | grep ^node- | paste -sd' ')" "nodes' directories"
on tux1 cat "$OWN/slurm/secret" >"$T/secret"
[ -s "$T/secret" ] || fail "tux1 has no secret"
! grep -sqFf "$T/secret" /proc/[0-9]*/cmdline || fail "a command line shows the secret"
equal hello "$(on tux1 timeout 30 srun --jobid "$(job_of workflow)" --overlap --nodelist tux2 --nodes 1 cat "$MNT/a")" "a step"

say "staging by a step that has a task on each node"
mkdir "$T/data" "$T/staged"
head -c 4000000 /dev/urandom | split -b 20000 -a 3 -d - "$T/data/f"
head -c 20000000 /dev/urandom >"$T/data/large"
chown nobody:nogroup "$T/staged"
launch="srun --jobid $(job_of workflow) --overlap --nodes 2 --ntasks-per-node 1"
on tux1 timeout 100 memefs stage-in --json --launch "$launch" "$T/data" "$MNT/in" >"$T/json" || fail "stage-in: $(cat "$T/json")"
equal "201 0 2" "$(jq -r '"\(.files) \(.failed) \([.nodes[] | select(.whole)] | length)"' "$T/json")" "files, failed, whole nodes"
equal "tux1 tux2" "$(jq -r '[.nodes[].node | split(":")[0]] | sort | join(" ")' "$T/json")" "hosts"
on tux1 timeout 100 memefs stage-out --json --launch "$launch" "$MNT/in/data" "$T/staged" >"$T/json" || fail "stage-out: $(cat "$T/json")"
diff -r "$T/data" "$T/staged/data"
equal "" "$(find "$T/staged" -name '.memefs-stage.*')" "temporary files"
on tux1 rm -r "$MNT/in"

say "a node that is a job of its own"
cm_slurm scale +1
equal memefs-slurm-node-2 "$(jobs_of running | grep memefs)" "jobs"
equal hello "$(on tux3 cat "$MNT/a")" "what tux3 reads"
on tux3 bash -c "head -c 8M /dev/urandom >$MNT/b"
sum=$(on tux1 sha256sum "$MNT/b")
cm_slurm scale -1
must_happen 30 no_jobs_but workflow
on tux3 bash -c "! mountpoint -q $MNT && [ -z \"\$(ls -A $OWN 2>/dev/null)\" ]" || fail "node-2 has left something"
equal "$sum" "$(on tux2 sha256sum "$MNT/b")" "data after the node has gone"

say "a job that waits, a cm that is killed meanwhile, and nobody who wants the node any more"
sbatch --quiet --job-name other --nodes 2 --exclusive --output /dev/null --wrap 'sleep 1000'
must_happen 30 eval 'jobs_of running | says -x other'
cm_slurm scale +1 >"$T/scale.out" 2>&1 &
must_happen 30 eval 'jobs_of pending | says -x memefs-slurm-node-3'
must_happen 30 eval 'cm_slurm status | says -E "node-3 waits: job [0-9]+: "'
# shellcheck disable=SC2016 # for the inner shell
on tux1 bash -c 'kill -9 "$(cut -d" " -f1 "$1/slurm/cm.pid")"' kill "$OWN"
wait $! || true
on tux1 env SLURM_JOB_ID= cm start --name slurm
must_happen 30 eval 'cm_slurm status | says -E "node-3 waits: job [0-9]+: "'
equal 1 "$(jobs_of pending | grep -c memefs)" "jobs that wait"
scancel --name memefs-slurm-node-3
must_happen 60 eval 'cm_slurm status --json | jq -e ".state == \"running\" and (.nodes | length) == 2"'
events=$(cm_slurm events)
[[ $events =~ node-3:\ its\ job\ [0-9]+\ has\ ended\ without ]] || fail "the events do not say why: $events"

say "a queue that gives nothing"
expect_fail 1 cm_slurm scale --name slurm +200
grep -q "need as many partitions" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
cm_slurm scale +1 >"$T/scale.out" 2>&1 &
must_happen 30 eval 'jobs_of pending | says -x memefs-slurm-node-4'
cm_slurm scale --cancel
wait $! && fail "a change that was cancelled succeeds"
grep -q "cancelled by the operator" "$T/scale.out" || fail "says $(cat "$T/scale.out")"
equal 0 "$(jobs_of pending | grep -c memefs)" "jobs that wait"
scancel --name other
must_happen 60 no_jobs_but workflow

say "a job that ends drains its node"
cm_slurm scale +1
scancel --name memefs-slurm-node-5
must_happen 60 eval 'cm_slurm status --json | jq -e ".state == \"running\" and (.nodes | length) == 2"'
equal "$sum" "$(on tux2 sha256sum "$MNT/b")" "data after the job's end"

say "a machine that dies takes what its node held along"
cm_slurm scale +1
equal tux3 "$(squeue --noheader --name memefs-slurm-node-6 --format %N)" "the host of node-6"
slurm_cluster crash tux3
must_happen 60 eval 'cm_slurm status --json | jq -e "[.nodes[] | select(.state == \"lost\")] | length == 1"'

slurm_cluster boot tux3
rm -rf /var/tmp/memefs-slurm-* # of tux3, whose disk is this machine's

say "stop, and nothing is left"
touch "$T/end"
must_happen 120 test -s "$T/stopped"
must_happen 30 no_jobs_but ""
nothing_left_on "$MNT" tux1 tux2 tux4
slurm_cluster down
