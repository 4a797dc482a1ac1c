# Machines for tests, for the scripts that source this file (slurm-cluster, ssh-hosts): a machine is a network namespace
# (netns-cluster) with its own processes, mounts, /run, /dev/shm and host name, and an sshd; machines share what is on disk.
# The sourcing script has set -euo pipefail, NAME and DIR, and defines die. Machines are tux1, tux2, …, at $SUBNET.1 and on.
# shellcheck shell=bash disable=SC2034,SC2153 # what the sourcing script has, or uses

SUBNET=10.213.0
HERE_ADDRESS=$SUBNET.254 # of the machine that all of this is on
WAIT=60                  # seconds that anything may take

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

net() { "$here/netns-cluster" --name "$NAME" "$@"; }

check_machine_tools() {
    local tool
    for tool in sshd ssh-keygen ip unshare nsenter; do
        command -v "$tool" >/dev/null || die "$tool is not installed; scripts/setup --slurm installs it"
    done
}

# until_ok SECONDS COMMAND...
until_ok() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}

# ---- processes: each has a file with its pid ---------------------------------------------------------

# By its environment a process is one of these machines', not another that was given the number since.
is_ours() { tr '\0' '\n' 2>/dev/null <"/proc/$1/environ" | grep -xF "MACHINES=$DIR" >/dev/null; }
is_gone() { ! is_ours "$1"; }

end_process() { # NAME SIGNAL
    local pid
    pid=$(cat "$DIR/$1.pid" 2>/dev/null) || return 0
    if is_ours "$pid"; then
        kill "-$2" "$pid" 2>/dev/null || true
        until_ok 10 is_gone "$pid" || kill -KILL "$pid" 2>/dev/null || true
    fi
    rm -f "$DIR/$1.pid"
}

# run NAME COMMAND...: in the background, with its output in NAME.log
run() {
    local name=$1
    shift
    MACHINES=$DIR setsid "$@" >>"$DIR/$name.log" 2>&1 </dev/null &
    echo $! >"$DIR/$name.pid"
}

# ---- files -------------------------------------------------------------------------------------------

write_hosts() {
    local i
    echo "127.0.0.1 localhost"
    for ((i = 1; i <= $1; i++)); do
        echo "$SUBNET.$i tux$i"
    done
}

# Keys of these machines alone: one for all hosts, one for root.
write_ssh() {
    ssh-keygen -q -t ed25519 -N '' -C "$NAME" -f "$DIR/ssh.host"
    ssh-keygen -q -t ed25519 -N '' -C "$NAME" -f "$DIR/ssh.user"
    echo "tux*,$SUBNET.* $(cut -d' ' -f1,2 "$DIR/ssh.host.pub")" >"$DIR/ssh.known"
    cat >"$DIR/sshd.conf" <<EOF
HostKey $DIR/ssh.host
AuthorizedKeysFile $DIR/ssh.user.pub
PermitRootLogin prohibit-password
PasswordAuthentication no
StrictModes no
UsePAM no
PidFile none
EOF
    cat >"$DIR/ssh.conf" <<EOF
User root
IdentityFile $DIR/ssh.user
IdentitiesOnly yes
UserKnownHostsFile $DIR/ssh.known
GlobalKnownHostsFile /dev/null
EOF
}

# write_machines N: all files of theirs, in a directory that is made
write_machines() {
    mkdir -m 755 "$DIR" || die "$DIR is there already; down removes it"
    write_hosts "$1" >"$DIR/hosts"
    write_ssh
    mknod -m 666 "$DIR/fuse" c 10 229 # as udev has it, which not every machine has
}

# ---- machines ----------------------------------------------------------------------------------------

# start_machine NAME COMMAND...: which is its first process, and with which all others end
start_machine() {
    # shellcheck disable=SC2016 # for the inner shell
    run "$1" "$here/netns-cluster" --name "$NAME" exec $((${1#tux} - 1)) -- \
        unshare --mount --uts --pid --fork --kill-child --mount-proc bash -c '
            hostname "$1" && mount --bind "$2/hosts" /etc/hosts &&
                mount -t tmpfs -o mode=755 none /run && mount -t tmpfs -o mode=1777 none /dev/shm &&
                mount --bind "$2/fuse" /dev/fuse && mkdir -m 755 /run/sshd && "$3" -f "$2/sshd.conf" -E "$2/$1.sshd.log" &&
                exec "${@:4}"' machine "$1" "$DIR" "$(command -v sshd)" "${@:2}"
}

# The first process of a machine's own: the child of the unshare(1) that `run` has started.
init_of() {
    local pid
    pid=$(cat "$DIR/$1.pid" 2>/dev/null) || die "$1 is not up"
    is_ours "$pid" || die "$1 is not up"
    ps -o pid= --ppid "$pid" | awk '{print $1; exit}'
}

# exec_on MACHINE COMMAND...
exec_on() {
    local pid
    pid=$(init_of "$1")
    exec nsenter --target "$pid" --mount --uts --net --pid -- "${@:2}"
}

end_machines() {
    local file
    for file in "$DIR"/tux*.pid; do
        file=${file##*/}
        [[ $file == *-own.pid ]] || end_process "${file%.pid}" KILL # unshare(1) ignores SIGTERM
    done
}
