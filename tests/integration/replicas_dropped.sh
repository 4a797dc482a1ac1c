#!/usr/bin/env bash
# --replicas 1: a replica whose lm is stopped is given up and can't be told so; its process goes on following. What a mount
# writes then is confirmed by the new replica alone: while that does not follow, fsync does not return, and what it has
# confirmed is there when the partition's process dies (decisions/0026).
# ctest: slow timeout=300
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq redis-cli

ALLOW_LOG='partition|did not take|client-behind|session|replica|cm:|Lost connection'
ROUNDS=5
QUIET=3 # s that a write has to wait in vain

# of PARTITION FIELD: as cm.json says.
of()
{
    jq -r ".parts[$1].$2" "$STATE/cm.json"
}

pid_at() # NODE PARTITION
{
    cut -d' ' -f1 "$STATE/node-$1/redis-$2.pid"
}

# at NODE PASSWORD WORD…: as the administrator of the process that the node has of the partition.
at()
{
    local node=$1 password=$2
    shift 2
    redis-cli -s "$STATE/node-$node/redis-$part.sock" --user memefs-lm --pass "$password" --no-auth-warning "$@"
}

serving()
{
    at "$node" "$password" "$@"
}

replacing()
{
    at "$(of "$part" replica_node)" "$(of "$part" replica_admin_password)" "$@"
}

# a_file ROUND: leaves `file`, and `part`, where it is: not on the node that writes.
a_file()
{
    local n
    for ((n = 0; n < 500; n++)); do
        file=r$1.$n
        echo old >"$MNT0/$file"
        part=$(home_of "$MNT0/$file")
        [ "$(of "$part" node)" != 0 ] || return 0
    done
    fail "no such file"
}

# It is another one than before.
is_replaced()
{
    [ "$(of "$part" replica_step)" = ready ] && [ "$(of "$part" replica_node)" != "$old" ]
}

old_follows()
{
    at "$old" "$old_password" info replication | grep -F 'master_link_status:up'
}

new_follows()
{
    replacing info replication | grep -F 'master_link_status:up'
}

executed()
{
    [ "$(serving eval "return redis.call('getrange', 'S' .. struct.pack('>I8I4', ARGV[1], 0), 0, 2)" 0 "$ino")" = new ]
}

write_there()
{
    local status=0
    echo new | timeout 60 dd of="$MNT0/$file" conv=notrunc,fsync 2>"$T/dd.err" || status=$?
    echo "$status" >"$T/status"
}

# once ROUND: 1: the machine was too slow for it.
once()
{
    local lm word drops status
    await_protected
    a_file "$1"
    ino=$(stat -c %i "$MNT0/$file")
    node=$(of "$part" node) password=$(of "$part" admin_password)
    old=$(of "$part" replica_node) old_password=$(of "$part" replica_admin_password)
    say "partition $part: the lm of its replica is stopped until there is another one"
    lm=$(cut -d' ' -f1 "$STATE/node-$old/lm.pid")
    kill -STOP "$lm"
    must_happen 90 is_replaced

    say "the new one does not follow any more, and its mount writes"
    word=$(replacing config get masterauth | tail -1)
    drops=$(events_of replica-dropped)
    replacing config set masterauth - >/dev/null
    serving client kill type replica >/dev/null
    # Redis connects again within a second or two, if it may.
    ! wait_for 4 old_follows || say "the replica that was given up follows"
    rm -f "$T/status"
    write_there &
    local writer=$!
    wait_for 10 executed || say "it is not executed"
    sleep "$QUIET"
    if [ -s "$T/status" ] && [ "$(cat "$T/status")" = 0 ]; then
        fail "fsync has returned, and the replica lacks what was written"
    fi
    replacing config set masterauth "$word" >/dev/null
    wait "$writer"
    status=$(cat "$T/status")
    if [ "$(events_of replica-dropped)" != "$drops" ] || ! wait_for 10 new_follows; then
        kill -CONT "$lm"
        return 1
    fi
    equal 0 "$status" "the write, once the replica follows again: $(cat "$T/dd.err")"

    say "the partition's process dies"
    local before
    before=$(events_of failed-over)
    kill -KILL "$(pid_at "$node" "$part")"
    must_happen 20 more_events failed-over "$before"
    equal new "$(cat "$MNT0/$file")" "what was confirmed"
    kill -CONT "$lm"
}

MEMORY=512M deployment_start 4 --replicas 1 --partitions 12
for ((round = 0; round < ROUNDS; round++)); do
    ! once "$round" || break
    say "the replica was given up meanwhile"
done
[ "$round" -lt "$ROUNDS" ] || skip "the machine is too busy"
await_protected
fsck_clean
deployment_stop
