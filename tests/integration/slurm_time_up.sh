#!/usr/bin/env bash
# The time of a node's job is up soon: it is told a minute before, by Slurm, or by cm where slurmrestd is asked, and drained:
# nothing is lost, no job is left.
# ctest: slow waits timeout=300
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/slurm.sh
. "$HARNESS_DIR/slurm.sh"

one_node() # NAME
{
    on tux1 cm status --name "$1" --json | jq -e '.state == "running" and (.nodes | length) == 1'
}

# The allocation: a job that does nothing until it is told to end. Its script is where `cm start` is called.
cat >"$T/job" <<'END'
#!/bin/bash
T=$1
PATH=$T/bin:$PATH
cm start --name commands --mount "$T/one" --partitions 4 --slurm-time 2 --memory 64M
echo $? >"$T/started.1"
cm start --name rest --mount "$T/two" --partitions 4 --slurm-time 2 --memory 64M --slurm-rest "unix:$SLURM_REST_SOCKET" --slurm-token-file "$T/token"
echo $? >"$T/started.2"
until [ -e "$T/end" ]; do sleep 0.2; done
cm stop --name commands
cm stop --name rest
echo $? >"$T/stopped"
END

slurm_up 3
chmod 755 "$T/job"
mkdir "$T/one" "$T/two"
chown nobody:nogroup "$T/one" "$T/two"
slurm_cluster token nobody 600 >"$T/token"
chown nobody "$T/token"
sbatch --quiet --uid nobody --gid nogroup --chdir "$T" --job-name workflow --nodes 1 --nodelist tux1 --output "$T/job.out" "$T/job" "$T"
must_happen 90 test -s "$T/started.2"
equal "0 0" "$(cat "$T/started.1" "$T/started.2" | paste -sd' ')" "exit status of cm start: $(cat "$T/job.out")"
on tux1 cm scale +1 --name commands
on tux1 cm scale +1 --name rest
for mount in one two; do
    on tux1 bash -c "head -c 8M /dev/urandom >$T/$mount/a"
done
sums=$(on tux1 sha256sum "$T/one/a" "$T/two/a")

say "a minute before the end"
for name in commands rest; do
    must_happen 110 one_node "$name"
    on tux1 cm events --name "$name" | says told-to-end || fail "$name: $(on tux1 cm events --name "$name")"
done
equal "$sums" "$(on tux1 sha256sum "$T/one/a" "$T/two/a")" "data"
must_happen 30 no_jobs_but workflow
touch "$T/end"
must_happen 120 test -s "$T/stopped"
nothing_left_on "$T/one" tux1 tux2 tux3
nothing_left_on "$T/two" tux1 tux2 tux3
slurm_cluster down
