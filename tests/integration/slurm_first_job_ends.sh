#!/usr/bin/env bash
# The job that started a deployment ends before it, on a real Slurm cluster of six (scripts/slurm-cluster), as a user who
# is not root: started in a batch script, used by steps on all hosts, grown by jobs of their own; then the script ends, cm
# goes on in another job, and all files are there; it shrinks and is stopped from there, and nothing is left.
# ctest: release timeout=300
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/slurm.sh
. "$HARNESS_DIR/slurm.sh"

MNT=$T/mnt

status_is() # NODE JQ-EXPRESSION
{
    on "$1" timeout 20 cm status --json | jq -e "$2"
}

whole() # NODE NODES
{
    wait_for 60 status_is "$1" ".state == \"running\" and (.nodes | length) == $2" ||
        fail "not whole: $(on "$1" cm status; on "$1" sh -c "tail -n 30 $OWN/*/cm.log $OWN/*/node-*/lm.log")"
}

sums() # NODE
{
    on "$1" timeout 60 sh -c "cd $MNT && sha256sum out.* | sort"
}

nothing_on() # NODE
{
    local left
    left=$(on "$1" ps -eo args= | grep -E '^(/[^ ]*/)?(cm|lm|redis-server|memefs)( |$)' || true)
    [ -z "$left" ] && [ -z "$(on "$1" ls -A "$OWN" 2>/dev/null)" ] && on "$1" bash -c "! mountpoint -q $MNT"
}

# No option but the mount (and what makes it small).
cat >"$T/job" <<'END'
#!/bin/bash
PATH=$2/bin:$PATH
cm start --mount "$1" --memory 160M --partitions 16 --beta 1 || exit
srun --chdir / --ntasks 4 sh -c 'head -c 4M /dev/urandom >"$0/out.$SLURM_PROCID"' "$1"
cm scale +2 || exit
touch "$2/grown"
until [ -e "$2/end" ]; do sleep 0.2; done
cm leave
echo $? >"$2/left"
END

say "a job on four hosts, grown by jobs of their own"
slurm_up 6
chmod 755 "$T/job"
mkdir "$MNT"
chown nobody:nogroup "$MNT"
sbatch --quiet --uid nobody --gid nogroup --chdir "$T" --job-name workflow --nodes 4 --ntasks-per-node 1 --output "$T/job.out" "$T/job" "$MNT" "$T"
wait_for 120 test -e "$T/grown" || fail "did not start and grow: $(cat "$T/job.out")"
whole tux5 6
before=$(sums tux6)
equal 4 "$(echo "$before" | wc -l)" "files that the steps have made"

say "the script ends, and the deployment goes on"
touch "$T/end"
must_happen 60 test -s "$T/left"
equal 0 "$(cat "$T/left")" "exit status of cm leave: $(cat "$T/job.out")"
must_happen 60 no_jobs_but "memefs-memefs-node-4 memefs-memefs-node-5"
whole tux5 2
equal "$before" "$(sums tux5)" "files on tux5"
equal "$before" "$(sums tux6)" "files on tux6"
for i in 1 2 3 4; do
    wait_for 30 nothing_on "tux$i" || fail "left on tux$i: $(on "tux$i" ps -eo args=; on "tux$i" ls -R "$OWN")"
done

say "it shrinks and is stopped where its nodes are"
on tux6 cm scale 1 || fail "cm scale 1"
must_happen 60 no_jobs_but memefs-memefs-node-4
equal "$before" "$(sums tux5)" "files on the last node"
on tux5 cm stop || fail "cm stop"
must_happen 60 no_jobs_but ""
for i in 5 6; do
    wait_for 30 nothing_on "tux$i" || fail "left on tux$i: $(on "tux$i" ps -eo args=; on "tux$i" ls -R "$OWN")"
done
slurm_cluster down
