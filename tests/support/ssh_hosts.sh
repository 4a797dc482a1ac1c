# For tests on machines that are reached by ssh (scripts/ssh-hosts). Sourced after own_net.sh.
#
#   ssh_hosts ARG…          scripts/ssh-hosts for the test's own machines
#   on MACHINE COMMAND…     there, as root
#   $SSH                    what cm is to call there
#   cm_on MACHINE VERB ARGUMENT…, status_is MACHINE JQ-EXPRESSION
#   nothing_on MACHINE…     no program of ours, nothing in $OWN, and no mount at $MNT
# shellcheck shell=bash

need sshd ssh

# shellcheck disable=SC2034 # for those that start deployments
SSH="ssh -F $T/hosts.d/ssh.conf -o ConnectTimeout=2"

ssh_hosts()
{
    "$HARNESS_DIR/../../scripts/ssh-hosts" --name "$NET" --dir "$T/hosts.d" "$@"
}

on() # MACHINE COMMAND…
{
    ssh_hosts exec "$1" -- "${@:2}"
}

cm_on() # MACHINE VERB ARGUMENT…
{
    on "$1" timeout 90 cm "$2" --name "$NAME" "${@:3}"
}

status_is() # MACHINE JQ-EXPRESSION
{
    cm_on "$1" status --json | jq -e "$2" >/dev/null
}

nothing_on() # MACHINE…
{
    local machine left
    for machine in "$@"; do
        left=$(on "$machine" ps -eo args= | grep -E '^(/[^ ]*/)?(cm|lm|redis-server|memefs)( |$)' || true)
        [ -z "$left" ] && [ -z "$(on "$machine" ls -A "$OWN" 2>/dev/null)" ] && ! on "$machine" mountpoint -q "$MNT" || return 1
    done
}
