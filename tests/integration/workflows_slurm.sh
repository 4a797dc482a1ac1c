#!/usr/bin/env bash
# Workflow engines in a Slurm job, on a real cluster (scripts/slurm-cluster), by a user who is not root: Snakemake and Nextflow run
# their 40 tasks by srun on the job's four nodes, in files that `cm start --mount` alone has put at one path; the deployment grows by two
# nodes beside the one, and shrinks beside the other. The results are those of a plain count on a disk, an engine that is started
# again finds nothing to do, and `cm stop` leaves nothing.
# ctest: slow timeout=900
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/slurm.sh
. "$HARNESS_DIR/slurm.sh"
TOOLS=$HARNESS_DIR/../../build/workflows # bound to $T, as the user may not see where this is
missing=
"$TOOLS/bin/python3" -m snakemake --version >/dev/null 2>&1 || missing+=" snakemake"
{ [ -d "$TOOLS/nextflow" ] && command -v java >/dev/null; } || missing+=" nextflow"
[ "$missing" != " snakemake nextflow" ] || skip "not installed:$missing (scripts/setup --workflows)"

MNT=$T/mnt

# The batch script, as its user writes it. Each engine has its directory in the mount; `again` shows that it finds all there.
cat >"$T/job" <<'END'
#!/bin/bash
set -eu
top=$1 mount=$2
PATH=$top/bin:$PATH
trap 'cm stop; echo $? >"$top/stopped"' EXIT
cm start --mount "$mount"

counted() # ENGINE: about how many pieces are
{
    find "$mount/$1" -name 'counted.*' -type f 2>/dev/null | wc -l
}

# run ENGINE CHANGE: the workflow, and a change of nodes in its middle
run()
{
    local began=$SECONDS
    mkdir "$mount/$1"
    cp "$top/text" "$mount/$1"
    HOSTS=$mount/$1/hosts "$mount/workflows/run" "$1" "$top/tools" "$mount/$1" &
    until [ "$(counted "$1")" -ge 8 ] || [ -e "$mount/$1/counts" ] || ! kill -0 $! 2>/dev/null; do sleep 0.1; done
    cm scale "$2"
    [ -e "$mount/$1/counts" ] || echo "$1 goes on"
    wait $!
    echo "$1: $((SECONDS - began)) s, with cm scale $2 in its middle"
    "$mount/workflows/run" "$1" "$top/tools" "$mount/$1" >"$top/$1.again"
    cp "$mount/$1/counts" "$top/$1.counts"
    cp "$mount/$1/hosts" "$top/$1.hosts"
}

cp -r "$top/workflows" "$mount"
for engine in $3; do
    case $engine in
    snakemake) run snakemake +2 ;;
    nextflow) run nextflow -2 ;;
    esac
done
cm status --json >"$top/status"
cm events >"$top/events"
touch "$top/done"
END

say "a text of three million words, and their count"
awk 'BEGIN { srand(7); for (i = 0; i < 3e6; i++) printf "w%d%s", int(rand() * rand() * 5000), i % 12 ? " " : "\n" }' >"$T/text"
tr -cs '[:alnum:]' '\n' <"$T/text" | LC_ALL=C sort | uniq -c | awk '{ print $1, $2 }' >"$T/want"

say "a cluster, and the job"
slurm_up 6
chmod 755 "$T/job"
mkdir "$T/tools" "$MNT"
mount --bind "$TOOLS" "$T/tools"
cp -r "$HARNESS_DIR/workflows" "$T"
chown nobody:nogroup "$MNT"
engines=
[[ $missing == *snakemake* ]] || engines+=" snakemake"
[[ $missing == *nextflow* ]] || engines+=" nextflow"
sbatch --quiet --uid nobody --gid nogroup --chdir "$T" --job-name workflow --nodes 4 --ntasks-per-node 2 --output "$T/job.out" \
    "$T/job" "$T" "$MNT" "$engines"
must_happen 800 test -s "$T/stopped"
cat "$T/job.out"
[ -e "$T/done" ] || fail "the job has failed"
equal 0 "$(cat "$T/stopped")" "exit status of cm stop"

say "cm start on 4 nodes: $(grep -oE 'per node, [0-9]+ ms' "$T/events" | cut -d' ' -f3-)"

say "results"
for engine in $engines; do
    cmp "$T/want" "$T/$engine.counts" || fail "$engine has counted otherwise"
    grep -qx "$engine goes on" "$T/job.out" || fail "$engine was done before nodes had changed"
    say "$engine's tasks on each host: $(sort "$T/$engine.hosts" | uniq -c | awk '{ print $2, $1 }' | paste -sd,)"
    [ "$(sort -u "$T/$engine.hosts" | wc -l)" -gt 1 ] || fail "all tasks of $engine ran on one host"
    equal 40 "$(wc -l <"$T/$engine.hosts")" "tasks of $engine"
    grep -qx "nothing to do" "$T/$engine.again" || fail "$engine runs tasks again: $(cat "$T/$engine.again")"
done

say "nothing is left"
must_happen 30 no_jobs_but ""
nothing_left_on "$MNT" tux{1..6}
slurm_cluster down
umount "$T/tools"
[ -z "$missing" ] || say "not tried, as not installed (scripts/setup --workflows):$missing"
