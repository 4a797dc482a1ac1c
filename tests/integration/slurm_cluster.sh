#!/usr/bin/env bash
# The Slurm cluster of scripts/slurm-cluster: nodes run job steps and share neither /run nor mounts, slurmrestd takes a
# token, what crashes comes back, and nothing is left.
# ctest: release timeout=200
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
need slurmctld slurmd slurmrestd munged sshd curl

slurm_cluster()
{
    "$HARNESS_DIR/../../scripts/slurm-cluster" --name "$NET" --dir "$T/slurm" "$@"
}

is_idle() # NODE. (Asked for one node alone, slurmctld tells what it has told before.)
{
    sinfo --noheader --Node --format '%N %T' | says -x "$1 idle"
}

runs_at() # NODE: a job does
{
    [ -n "$(squeue --noheader --states running --nodelist "$1")" ]
}

ping_rest() # TOKEN CURL-OPTION… URL
{
    local token=$1
    shift
    curl --silent --fail --max-time 10 -H "X-SLURM-USER-NAME: root" -H "X-SLURM-USER-TOKEN: $token" "$@" >/dev/null
}

say "wrong usage"
expect_fail 2 slurm_cluster
expect_fail 2 slurm_cluster up none
expect_fail 2 slurm_cluster boot node-1
expect_fail 1 slurm_cluster exec tux1 -- true

say "up"
chmod 755 "$T" # slurmrestd is not root
slurm_cluster up 2
eval "$(slurm_cluster env)"
equal "tux1 tux2" "$(timeout 20 srun --nodes 2 hostname | sort | paste -sd' ')" "host names of a step"
expect_fail 1 slurm_cluster up 2

say "nodes are machines of their own"
slurm_cluster exec tux1 -- bash -c 'mkdir -p /run/x /mnt && mount -t tmpfs none /mnt && : >/dev/shm/x'
[ -z "$(slurm_cluster exec tux2 -- bash -c 'ls -d /run/x /dev/shm/x 2>/dev/null; mountpoint -q /mnt && echo /mnt')" ] ||
    fail "tux2 sees what tux1 has made"
[ ! -e /run/x ] || fail "the machine sees what tux1 has made"

equal tux2 "$(timeout 20 ssh -F "$(slurm_cluster ssh)" "$SUBNET.2" hostname)" "a login by ssh"

say "slurmrestd"
TOKEN=$(slurm_cluster token root)
ping_rest "$TOKEN" "$SLURM_REST_URL/slurm/v0.0.38/ping" || fail "no answer by TCP"
ping_rest "$TOKEN" --unix-socket "$SLURM_REST_SOCKET" http://localhost/slurm/v0.0.38/ping || fail "no answer by the socket"
expect_fail 22 ping_rest "${TOKEN}x" "$SLURM_REST_URL/slurm/v0.0.38/ping"

say "crashes"
sbatch --quiet --no-requeue --nodes 1 --nodelist tux2 --output /dev/null --wrap 'sleep 1000'
must_happen 20 runs_at tux2
slurm_cluster crash tux2
must_happen 5 eval '! pgrep -f "sleep 1000"'
slurm_cluster boot tux2
scancel --user root
must_happen 60 is_idle tux2
slurm_cluster crash ctld
expect_fail 1 timeout 5 scontrol ping
slurm_cluster boot ctld
must_happen 60 timeout 20 srun --quiet --nodes 2 true

say "down"
slurm_cluster down
[ ! -e "$T/slurm" ] || fail "down leaves $T/slurm"
[ -z "$(pgrep 'munged|slurm')" ] || fail "down leaves $(pgrep -a 'munged|slurm')"
[ -z "$(net list)" ] || fail "down leaves namespaces"
