#!/usr/bin/env bash
# --replicas 1: when a node's partitions have been taken over by others' replicas, and it is back, it gets its share of
# them again. (Faults in turn had left 23 of 32 partitions on one node of four, and writes failed with ENOSPC.)
# ctest: slow release timeout=200
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq

ALLOW_LOG='partition|written data are lost'

# The partitions of the node that serves fewest, and of the one that serves most.
shares()
{
    jq -r '[.nodes[].id as $n | [.parts[] | select(.node == $n)] | length] | "\(min) \(max)"' "$STATE/cm.json"
}

even()
{
    [ "$(shares)" = "$planned" ] && unprotected 0
}

MEMORY=256M deployment_start 3 --replicas 1 --partitions 18
await_protected
planned=$(shares)
for i in {1..20}; do
    head -c 1000000 /dev/urandom >"$T/mnt0/$i"
done
(cd "$T/mnt0" && sha256sum -- *) >"$T/sums"
for pid in $(primaries 1); do
    kill -KILL "$pid"
done
await_protected
say "after failovers: $(shares), planned: $planned"
[ "$(shares)" != "$planned" ] || fail 'nothing was taken over'
must_happen 90 even
say "then: $(shares)"
event_says scaled '3 -> 3 nodes'
(cd "$T/mnt2" && sha256sum --quiet -c "$T/sums") || fail 'files are wrong'
fsck_clean
deployment_stop
