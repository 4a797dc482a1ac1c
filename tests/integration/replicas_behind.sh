#!/usr/bin/env bash
# --replicas 1: a mount whose lm is stopped does not hear that a partition has got a replica, and yet waits for it: what
# its fsync has confirmed is there when the partition's process dies and the replica takes over, which lacks all that was not
# waited for (decisions/0023).
# ctest: slow timeout=300
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq redis-cli

ALLOW_LOG='partition|did not take|client-behind|session|written data are lost'
AWAY=2 ROUNDS=6 ENOUGH=2

# of PARTITION FIELD: as cm.json says.
of()
{
    jq -r ".parts[$1].$2" "$STATE/cm.json"
}

pid_at() # NODE PARTITION
{
    cut -d' ' -f1 "$STATE/node-$1/redis-$2.pid"
}

# admin WORD…: as the administrator of the process that serves the partition.
admin()
{
    redis-cli -s "$STATE/node-$node/redis-$part.sock" --user memefs-lm --pass "$password" --no-auth-warning "$@"
}

drops()
{
    cm_ events | grep -c " replica-dropped .*partition $part:" || true
}

is_without_replica()
{
    [ -z "$(of "$1" replica_step)" ]
}

# It is another one than before, not on the node that is away.
has_replica()
{
    [ "$(of "$1" replica_step)" = ready ] && [ "$(of "$1" replica_node)" != "$AWAY" ]
}

away_has_table()
{
    grep -F "partition table of epoch $(jq .table.epoch "$STATE/cm.json")" "$STATE/node-$AWAY/client.log"
}

# a_file: makes one whose home is a partition with neither of its processes on that node: leaves `file` and `part`.
a_file()
{
    local n
    for ((n = 0; n < 500; n++)); do
        file=r$1.$n
        echo old >"$MNT0/$file"
        part=$(home_of "$MNT0/$file")
        [ "$(of "$part" node)" = "$AWAY" ] || [ "$(of "$part" replica_node)" = "$AWAY" ] || return 0
    done
    fail "no such file"
}

executed()
{
    [ -s "$T/status" ] || [ "$(admin eval \
        "return redis.call('getrange', 'S' .. struct.pack('>I8I4', ARGV[1], 0), 0, 2)" 0 "$ino")" = new ]
}

write_there()
{
    local status=0
    echo new | timeout 60 dd of="${!mount}/$file" conv=notrunc,fsync 2>"$T/dd.err" || status=$?
    echo "$status" >"$T/status"
}

MEMORY=512M deployment_start 3 --replicas 1 --partitions 12
mount=MNT$AWAY
valid=0
for ((round = 0; round < ROUNDS && valid < ENOUGH; round++)); do
    await_protected
    a_file "$round"
    ino=$(stat -c %i "$MNT0/$file")
    say "partition $part loses its replica, and the lm of node $AWAY is stopped before there is another one"
    before=$(events_of failed-over)
    kill -KILL "$(pid_at "$(of "$part" replica_node)" "$part")"
    must_happen 30 is_without_replica "$part"
    must_happen 1 away_has_table
    lm=$(cut -d' ' -f1 "$STATE/node-$AWAY/lm.pid")
    kill -STOP "$lm"
    must_happen 60 has_replica "$part"

    say "its mount writes what that replica does not get, and the process dies"
    rm -f "$T/status"
    node=$(of "$part" node) password=$(of "$part" admin_password)
    primary=$(pid_at "$node" "$part") replica=$(pid_at "$(of "$part" replica_node)" "$part")
    dropped=$(drops)
    kill -STOP "$replica" # so that it can't take over yet, nor follow again
    admin client kill type replica >/dev/null
    write_there &
    writer=$!
    wait_for 2 executed || true # else the process' term was over before, and it refuses
    kill -KILL "$primary"
    kill -CONT "$replica"
    wait_for 20 more_events failed-over "$before" || true
    kill -CONT "$lm"
    wait "$writer"
    await_protected
    if [ "$(drops)" != "$dropped" ]; then
        say "that took too long: the replica was given up before"
        continue
    fi
    valid=$((valid + 1))
    say "written: $(cat "$T/status")"
    if [ "$(cat "$T/status")" = 0 ]; then
        equal new "$(cat "$MNT0/$file")" "what was confirmed"
    else
        grep 'Input/output error' "$T/dd.err" >&2 || fail "another error"
    fi
done
[ "$valid" -gt 0 ] || skip "the machine is too busy"
fsck_clean
deployment_stop
