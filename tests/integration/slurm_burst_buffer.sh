#!/usr/bin/env bash
# A batch script asks for a file system by #BB (scripts/packaging/slurm), on a real Slurm cluster, as a user who is not
# root: it is there on all hosts when the script begins, and gone with the job. What can't be had is said.
# ctest: slow timeout=240
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/slurm.sh
. "$HARNESS_DIR/slurm.sh"
PLUGIN=/usr/lib/$(uname -m)-linux-gnu/slurm-wlm/burst_buffer_lua.so
[ -e "$PLUGIN" ] || skip "Slurm's plug-in burst_buffer/lua is not installed"

MNT=$T/mnt # the hosts share what is on disk, so /mnt/memefs would be this machine's
RECIPE=$HARNESS_DIR/../../scripts/packaging/slurm

# The recipe as an operator sets it up, but for the place.
set_up() # DIR
{
    local file
    mkdir "$1"
    for file in "$RECIPE"/*; do
        sed "s#/mnt/memefs#$MNT#" "$file" >"$1/${file##*/}"
    done
    chmod 755 "$1"/{prolog,task_prolog,epilog}
    cat >"$1/slurm.conf" <<END
BurstBufferType=burst_buffer/lua
Prolog=$1/prolog
PrologFlags=Alloc
TaskProlog=$1/task_prolog
Epilog=$1/epilog
END
}

# submit NAME LINE ARG…: a job of two hosts whose script has that line; it writes on one and reads on both.
submit()
{
    cat >"$T/$1" <<END
#!/bin/bash
$2
mountpoint -q $MNT || exit 3
echo "of \$SLURM_JOB_ID" >$MNT/file
srun --chdir / --ntasks 2 cat $MNT/file
END
    PATH=$T/bin:$PATH sbatch --quiet --uid nobody --gid nogroup --chdir "$T" --job-name "$1" --nodes 2 --ntasks 2 --exclusive \
        --output "$T/$1.out" "${@:3}" "$T/$1"
}

state_is() # NAME STATE
{
    [ "$(squeue --noheader --states all --name "$1" --format %T)" = "$2" ]
}

becomes() # NAME STATE
{
    wait_for 90 state_is "$1" "$2" ||
        fail "$1 is $(squeue --noheader --states all --name "$1" --format '%T %r'), not $2: $(cat "$T/$1.out"; tail -n 20 "$T/slurm"/*.log)"
}

set_up "$T/conf"
slurm_up 2 --conf "$T/conf"

say "asked for by #BB, there when the script begins, gone with the job"
submit asked '#BB memefs --memory 96M --beta 1'
becomes asked COMPLETED
equal "2" "$(grep -c '^of [0-9]*$' "$T/asked.out")" "hosts that have read it, by $(cat "$T/asked.out")"
nothing_left_on "$MNT" tux1 tux2
must_happen 20 test ! -e "$MNT"

say "by a variable"
submit variable '' "--export=ALL,MEMEFS_BB=--mount $MNT --memory 96M --beta 1"
becomes variable COMPLETED
nothing_left_on "$MNT" tux1 tux2

say "not asked for"
submit none ''
becomes none FAILED
equal "" "$(cat "$T/none.out")" "output of a job that asks for nothing"

say "what is wrong is said when it is submitted"
# shellcheck disable=SC2016 # nothing is to be run
for line in '#BB lustre' '#BB memefs --memory $(reboot)' $'#BB memefs\n#BB memefs'; do
    expect_fail 1 submit wrong "$line"
    grep -qi "burst buffer\|BB" "$T/expect.out" || fail "$line: $(cat "$T/expect.out")"
done

say "what cm start refuses fails the job, and stands in its output"
submit refused '#BB memefs --memory 1'
becomes refused FAILED
grep -q "^memefs: .*memory" "$T/refused.out" || fail "output: $(cat "$T/refused.out")"
nothing_left_on "$MNT" tux1 tux2
slurm_cluster down
