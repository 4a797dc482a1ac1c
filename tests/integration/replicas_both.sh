#!/usr/bin/env bash
# --replicas 1: when a partition's process and that of its replica die at once, the bytes of its files are lost, as
# without replicas, and its names are not: another process takes its place, and gets a replica.
# ctest: timeout=200
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq

ALLOW_LOG='partition|replica|did not take'

of() # PARTITION FIELD: as cm.json says.
{
    jq -r ".parts[$1].$2" "$STATE/cm.json"
}

pid_at() # NODE PARTITION
{
    cut -d' ' -f1 "$STATE/node-$1/redis-$2.pid"
}

MEMORY=256M deployment_start 3 --replicas 1 --partitions 6
for ((n = 0; n < 60; n++)); do
    echo "content of $n" >"$MNT0/$n"
done
await_protected
for part in 0 1; do
    kill -KILL "$(pid_at "$(of "$part" node)" "$part")" "$(pid_at "$(of "$part" replica_node)" "$part")"
done
must_happen 30 more_events redis-revived 1
await_protected
equal running "$(cm_ status --json | jq -r .state)" "the deployment"

lost=0
for ((n = 0; n < 60; n++)); do
    [ -e "$MNT1/$n" ] || fail "the name $n is lost"
    if ! content=$(cat "$MNT1/$n" 2>"$T/cat.err"); then
        lost=$((lost + 1))
    else
        equal "content of $n" "$content" "what is in $n"
    fi
done
[ "$lost" -gt 0 ] || fail "both processes of two partitions were killed, and nothing is lost"
say "$lost of 60 files are damaged"
equal "$lost" "$(memefs_lost --json | jq ".files | length")" "files that memefs lost lists"
rm "$MNT1"/*
fsck_clean
deployment_stop
