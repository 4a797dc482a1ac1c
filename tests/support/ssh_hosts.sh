# For tests on machines that are reached by ssh (scripts/ssh-hosts). Sourced after own_net.sh.
#
#   ssh_hosts ARG…          scripts/ssh-hosts for the test's own machines
#   on MACHINE COMMAND…     there, as root
#   nothing_on MACHINE…     no program of ours, nothing in $OWN, and no mount at $MNT
# shellcheck shell=bash

need sshd ssh

ssh_hosts()
{
    "$HARNESS_DIR/../../scripts/ssh-hosts" --name "$NET" --dir "$T/hosts.d" "$@"
}

on() # MACHINE COMMAND…
{
    ssh_hosts exec "$1" -- "${@:2}"
}

nothing_on() # MACHINE…
{
    local machine left
    for machine in "$@"; do
        left=$(on "$machine" ps -eo args= | grep -E '^(/[^ ]*/)?(cm|lm|redis-server|memefs)( |$)' || true)
        [ -z "$left" ] && [ -z "$(on "$machine" ls -A "$OWN" 2>/dev/null)" ] && ! on "$machine" mountpoint -q "$MNT" || return 1
    done
}
