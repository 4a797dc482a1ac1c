#!/usr/bin/env bash
# Memory is written full while nodes come, with replicas. Those of the newest node's partitions find no room, as only
# the newest node has some; others go there then, writers wait meanwhile, and memory is used nearly to its end.
# ctest: slow timeout=180
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../support/replicas.sh"
need jq

MEMORY=512M
ALLOW_LOG='written data are lost|can.t free|partition'

# fill N: one of the writers, each with files of its own, until memory is full.
fill()
{
    local i=0
    mkdir "$MNT0/writer-$1"
    while [ ! -e "$T/full" ] && cp "$T/content" "$MNT0/writer-$1/$i" 2>>"$T/refused"; do
        i=$((i + 1))
    done
    touch "$T/full"
}

# used: the part of all nodes' memory that is, in per cent.
used()
{
    cm_ status --json | jq '100 * ([.nodes[].memory_used] | add) / ([.nodes[].memory_capacity] | add) | floor'
}

# as_full_as_can_be: no partition waits for a replica for which there is room.
as_full_as_can_be()
{
    [ "$(used)" -ge 92 ] || unprotected 0
}

head -c 2M /dev/urandom >"$T/content"
deployment_start 3 --replicas 1 --max-nodes 6 --policy cso+csi
for i in 0 1 2 3; do
    fill "$i" &
done
wait
say "$(used) % used: $(cm_ status --json | jq -c '[.nodes[] | 100 * .memory_used / .memory_capacity | floor]')"
grep -q "No space left" "$T/refused" || fail "writers ended, but not by ENOSPC: $(cat "$T/refused")"
must_happen 30 as_full_as_can_be
equal 6 "$(cm_ status --json | jq '.nodes | length')" nodes
deployment_stop
