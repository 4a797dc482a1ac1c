#!/usr/bin/env bash
# The job that started a deployment ends before it, on a real Slurm cluster (scripts/slurm-cluster), as a user who is not
# root: by `cm leave`, as its script just ends, and by scancel, each in a deployment of its own. cm goes on in the job of
# another node, all files are there, and nothing is left on the host of the first job.
# ctest: release timeout=300
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/slurm.sh
. "$HARNESS_DIR/slurm.sh"

ENDINGS="leave exit cancel"

# tells NAME COMMAND…: a verb of cm for that deployment, on the host of the node that stays
tells()
{
    on "${stays[$1]}" timeout 20 cm "${@:2}" --name "$1"
}

whole() # NAME NODES
{
    tells "$1" status --json | jq -e ".state == \"running\" and (.nodes | length) == $2 and all(.nodes[]; .state == \"up\")"
}

sums() # NAME
{
    on "${stays[$1]}" timeout 60 sh -c "cd $T/$1 && sha256sum out.* | sort"
}

host_of() # JOB-NAME
{
    squeue --noheader --name "$1" --states running --format %N
}

nothing_of() # NAME HOST
{
    local left
    left=$(on "$2" ps -eo args= | grep -E "^(/[^ ]*/)?(cm|lm|redis-server|memefs)( |\$)" || true)
    [ -z "$left" ] && [ -z "$(on "$2" ls -A "$OWN" 2>/dev/null)" ] && on "$2" bash -c "! mountpoint -q $T/$1"
}

gone_from() # NAME HOST
{
    wait_for 60 nothing_of "$@" || fail "$1 has left on $2: $(on "$2" ps -eo args=; on "$2" sh -c "tail -n 20 $OWN/$1/*.log $OWN/$1/events.jsonl; ls -R $OWN")"
}

# No option but the mount (and what tells three of them apart, and makes them small).
cat >"$T/job" <<'END'
#!/bin/bash
T=$1 name=$2
PATH=$T/bin:$PATH
cm start --name "$name" --mount "$T/$name" --memory 160M --partitions 8 --beta 1 || exit
srun --chdir / --ntasks 2 sh -c 'head -c 4M /dev/urandom >"$0/out.$SLURM_PROCID"' "$T/$name"
cm scale +1 --name "$name" || exit
touch "$T/grown.$name"
until [ -e "$T/end" ]; do sleep 0.2; done
case $name in
    leave)
        cm leave --name leave
        echo $? >"$T/left"
        ;;
    cancel) sleep 600 ;;
esac
END

say "three jobs, each grown by a job of a node's own"
slurm_up 6
chmod 755 "$T/job"
declare -A first stays before
for name in $ENDINGS; do
    mkdir "$T/$name"
    chown nobody:nogroup "$T/$name"
    sbatch --quiet --uid nobody --gid nogroup --chdir "$T" --job-name "$name" --nodes 1 --ntasks 2 --exclusive --output "$T/$name.out" \
        "$T/job" "$T" "$name"
done
for name in $ENDINGS; do
    wait_for 90 test -e "$T/grown.$name" || fail "did not start and grow: $(cat "$T/$name.out")"
    first[$name]=$(host_of "$name")
    stays[$name]=$(host_of "memefs-$name-node-1")
    must_happen 60 whole "$name" 2
    before[$name]=$(sums "$name")
    equal 2 "$(echo "${before[$name]}" | wc -l)" "files that the steps have made"
done

say "they end, by cm leave, with the script, and by scancel, and the deployments go on"
touch "$T/end"
scancel --name cancel
for name in $ENDINGS; do
    wait_for 60 whole "$name" 1 ||
        fail "$name: $(tells "$name" status; on "${stays[$name]}" sh -c "tail -n 30 $OWN/$name/cm.log $OWN/$name/node-*/lm.log")"
    equal "${before[$name]}" "$(sums "$name")" "files of $name"
    gone_from "$name" "${first[$name]}"
done
equal 0 "$(cat "$T/left")" "exit status of cm leave: $(cat "$T/leave.out")"
must_happen 60 no_jobs_but "memefs-cancel-node-1 memefs-exit-node-1 memefs-leave-node-1"

say "they are stopped where their nodes are"
for name in $ENDINGS; do
    tells "$name" stop
    gone_from "$name" "${stays[$name]}"
done
must_happen 60 no_jobs_but ""

say "where srun can't begin a step, cm start says so, and leaves nothing"
mkdir "$T/broken"
printf '#!/bin/sh\necho "srun: error: Unable to create step" >&2\nexit 1\n' >"$T/broken/srun"
chmod 755 "$T/broken/srun"
expect_fail 1 on tux1 env SLURM_JOB_ID=7 SLURM_JOB_NODELIST=tux1 SLURMD_NODENAME=tux1 "PATH=$T/broken:$T/bin:$PATH" cm start --memory 64M
grep -qF "srun, by which cm is to run here, has failed; it said: srun: error: Unable to create step" "$T/expect.out" ||
    fail "says: $(cat "$T/expect.out")"
gone_from exit tux1
slurm_cluster down
