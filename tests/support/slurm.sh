# For tests on a Slurm cluster (scripts/slurm-cluster). Sourced after own_net.sh. What the deployments are for
# runs as a user who is not root.
#
#   OWN                   where that user's deployments are, on each node
#   slurm_cluster ARG…    scripts/slurm-cluster for the test's own cluster
#   slurm_up N [ARG…]     the cluster (ARG: options of slurm-cluster), with the programs of the build in $T/bin; sets what Slurm's commands need
#   on NODE COMMAND…      as that user
#   job_begins ARG…       that user's batch script $T/job, with $MNT and $T, up to its `cm start`; ARG is sbatch's
#   jobs_of STATE, no_jobs_but NAME…, job_of NAME
#   nothing_left_on MOUNT NODE…
# shellcheck shell=bash

need slurmctld slurmd slurmrestd munged sshd

OWN=/dev/shm/memefs-$(id -u nobody)

slurm_cluster()
{
    "$HARNESS_DIR/../../scripts/slurm-cluster" --name "$NET" --dir "$T/slurm" "$@"
}

slurm_up() # N ARG…
{
    chmod 755 "$T"
    mkdir -p "$T/bin"
    chown nobody:nogroup "$T"
    cp "$MEMEFS_BIN"/{cm,lm,memefs,memefs-partition.so} "$T/bin"
    slurm_cluster "${@:2}" up "$1"
    eval "$(slurm_cluster env)"
}

on() # NODE COMMAND…
{
    slurm_cluster exec "$1" -- setpriv --reuid nobody --regid nogroup --clear-groups env -C "$T" "PATH=$T/bin:$PATH" "${@:2}"
}

job_begins() # ARG…
{
    chmod 755 "$T/job"
    mkdir "$MNT"
    chown nobody:nogroup "$MNT"
    sbatch --quiet --uid nobody --gid nogroup --chdir "$T" --job-name workflow "$@" --output "$T/job.out" "$T/job" "$MNT" "$T"
    must_happen 60 test -s "$T/started"
    equal 0 "$(cat "$T/started")" "exit status of cm start: $(cat "$T/job.out")"
}

jobs_of() # STATE: names of jobs in it
{
    squeue --noheader --states "$1" --format %j | sort
}

no_jobs_but() # NAME…
{
    [ "$(squeue --noheader --format %j | sort | paste -sd' ')" = "$*" ]
}

job_of() # NAME: its number
{
    squeue --noheader --name "$1" --format %i
}

nothing_left_on() # MOUNT NODE…
{
    local node left
    for node in "${@:2}"; do
        on "$node" bash -c "! mountpoint -q $1" || fail "$node still has $1"
        left=$(on "$node" ps -eo args= | grep -E '^(/[^ ]*/)?(cm|lm|redis-server|memefs)' || true)
        [ -z "$left" ] || fail "$node still runs $left"
        left=$(on "$node" ls -A "$OWN" 2>/dev/null || true)
        [ -z "$left" ] || fail "$node still has $left in $OWN"
    done
}
