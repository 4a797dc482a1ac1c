#!/usr/bin/env bash
# What a user does with a deployment in Slurm, from its begin to its end, on a real cluster (scripts/slurm-cluster), by a user who is not
# root: `cm start --mount` in a batch script, with no other option, puts files at one path on the job's four nodes; Snakemake and
# Nextflow run their 40 tasks each by srun there, one while the deployment grows by jobs of nodes' own; then the first job ends, and
# all is still there on their nodes; it shrinks, is stopped, and nothing is left.
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

# The batch script, as its user writes it. Each engine has its directory in the mount.
cat >"$T/job" <<'END'
#!/bin/bash
set -eu
top=$1 mount=$2
PATH=$top/bin:$PATH
cm start --mount "$mount"
srun --chdir / --ntasks 4 --ntasks-per-node 1 stat -f -c %T "$mount" >"$top/types"

counted() # ENGINE: about how many pieces are
{
    find "$mount/$1" -name 'counted.*' -type f 2>/dev/null | wc -l
}

# run ENGINE [CHANGE]: the workflow, and a change of nodes in its middle
run()
{
    local began=$SECONDS
    mkdir "$mount/$1"
    cp "$top/text" "$mount/$1"
    HOSTS=$mount/$1/hosts "$mount/workflows/run" "$1" "$top/tools" "$mount/$1" &
    if [ -n "${2-}" ]; then
        until [ "$(counted "$1")" -ge 8 ] || [ -e "$mount/$1/counts" ] || ! kill -0 $! 2>/dev/null; do sleep 0.1; done
        cm scale "$2"
        [ -e "$mount/$1/counts" ] || echo "$1 goes on"
    fi
    wait $!
    echo "$1: $((SECONDS - began)) s"
    "$mount/workflows/run" "$1" "$top/tools" "$mount/$1" >"$top/$1.again"
    cp "$mount/$1/counts" "$top/$1.counts"
    cp "$mount/$1/hosts" "$top/$1.hosts"
}

cp -r "$top/workflows" "$mount"
change=+2
for engine in $3; do
    run "$engine" $change
    change=
done
cm events >"$top/events"
(cd "$mount" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$top/sums"
touch "$top/done"
END

say "a text of three million words, and their count"
awk 'BEGIN { srand(7); for (i = 0; i < 3e6; i++) printf "w%d%s", int(rand() * rand() * 5000), i % 12 ? " " : "\n" }' >"$T/text"
tr -cs '[:alnum:]' '\n' <"$T/text" | LC_ALL=C sort | uniq -c | awk '{ print $1, $2 }' >"$T/want"

say "a cluster, and the job"
mkdir "$T/tools" "$MNT"
mount --bind "$TOOLS" "$T/tools"
slurm_up 6
chmod 755 "$T/job"
cp -r "$HARNESS_DIR/workflows" "$T"
chown nobody:nogroup "$MNT"
engines=
[[ $missing == *snakemake* ]] || engines+=" snakemake"
[[ $missing == *nextflow* ]] || engines+=" nextflow"
sbatch --quiet --uid nobody --gid nogroup --chdir "$T" --job-name workflow --nodes 4 --ntasks-per-node 2 --output "$T/job.out" \
    "$T/job" "$T" "$MNT" "$engines"
must_happen 800 no_jobs_but "memefs-memefs-node-4 memefs-memefs-node-5"
cat "$T/job.out"
[ -e "$T/done" ] || fail "the job has failed"
say "cm start on 4 nodes: $(grep -oE 'per node, [0-9]+ ms' "$T/events" | cut -d' ' -f3-)"
equal "4 fuseblk" "$(sort "$T/types" | uniq -c | awk '{ print $1, $2 }')" "file systems at one path"

say "results"
for engine in $engines; do
    cmp "$T/want" "$T/$engine.counts" || fail "$engine has counted otherwise"
    say "$engine's tasks on each host: $(sort "$T/$engine.hosts" | uniq -c | awk '{ print $2, $1 }' | paste -sd,)"
    [ "$(sort -u "$T/$engine.hosts" | wc -l)" -gt 1 ] || fail "all tasks of $engine ran on one host"
    equal 40 "$(wc -l <"$T/$engine.hosts")" "tasks of $engine"
    grep -qx "nothing to do" "$T/$engine.again" || fail "$engine runs tasks again: $(cat "$T/$engine.again")"
done
grep -q " goes on$" "$T/job.out" || fail "the workflow was done before nodes had come"

say "the first job has ended, and all is still there"
host_of() # NODE-ID
{
    squeue --noheader --name "memefs-memefs-node-$1" --states running --format %N
}

two_nodes()
{
    on "$first" cm status --json | jq -e '.state == "running" and (.nodes | length) == 2'
}

whole() # HOST
{
    on "$1" sh -c "cd $MNT && sha256sum --quiet --check $T/sums" || fail "files on $1 are not what they were"
}

first=$(host_of 4) second=$(host_of 5)
must_happen 60 two_nodes
whole "$first"
whole "$second"
nothing_left_on "$MNT" tux{1..4}

say "it shrinks, and is stopped"
on "$second" cm scale 1
must_happen 60 no_jobs_but memefs-memefs-node-4
whole "$first"
on "$first" cm stop
must_happen 60 no_jobs_but ""
nothing_left_on "$MNT" tux{1..6}
slurm_cluster down
umount "$T/tools"
[ -z "$missing" ] || say "not tried, as not installed (scripts/setup --workflows):$missing"
