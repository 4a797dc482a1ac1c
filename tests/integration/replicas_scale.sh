#!/usr/bin/env bash
# --replicas 1: nodes that are as full as `cm scale` admits. What would leave no room for replicas is
# refused, with the figures, before anything moves. Partitions that move find room, whatever replicas
# are in their way, and in the end each has one again.
# ctest: slow timeout=400
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq

# Replicas wait for room while partitions move.
ALLOW_LOG='partition [0-9]+'
FILE_MIB=3

scale_admitted()
{
    cm_ scale "$1" --dry-run >"$T/dry.out" 2>&1
}

# Fills until so many nodes could not hold all of it twice; then takes away so much that they can, and a
# little more: what processes use besides content changes by itself.
fill_for() # NODES
{
    local n=0
    while scale_admitted "$1"; do
        head -c ${FILE_MIB}M /dev/urandom >"$MNT0/file$n"
        n=$((n + 1))
        sleep 0.2 # cm goes by what nodes report each second
    done
    until wait_for 3 scale_admitted "$1"; do
        n=$((n - 1))
        rm "$MNT0/file$n"
    done
    n=$((n - 3))
    rm "$MNT0/file$n" "$MNT0/file$((n + 1))" "$MNT0/file$((n + 2))"
    (cd "$MNT0" && sha256sum file*) >"$T/sums"
    say "$n files of $FILE_MIB MiB"
}

check_all()
{
    (cd "$1" && sha256sum --quiet -c "$T/sums") || fail "files are not what they were"
}

MEMORY=256M deployment_start 4 --replicas 1 --partitions 12
await_protected
fill_for 3
await_protected

for to in 3 4 3; do
    cm_ scale $to >"$T/scale.out" 2>&1 || fail "cm scale $to: $(cat "$T/scale.out")"
    say "$(cat "$T/scale.out")"
    check_all "$MNT1"
    await_protected
    say "$(cm_ status --json | jq -c '[.nodes[] | [.name, .partitions, .memory_used, .memory_capacity]]')"
done

say "a node loses all its processes, comes back empty, and gets its partitions again"
# shellcheck disable=SC2046
kill -KILL $(primaries 1) $(replicas 1)
await_protected
cm_ rebalance >"$T/scale.out" 2>&1 || fail "cm rebalance: $(cat "$T/scale.out")"
say "$(cat "$T/scale.out")"
check_all "$MNT1"
await_protected
say "replicas that made room: $(cm_ events | grep -c 'no memory left for a partition' || true)"
say "2 nodes: refused, and nothing has moved"
moves=$(events_of move-begins)
! cm_ scale 2 >"$T/scale.out" 2>&1 || fail "2 nodes hold it, too"
grep -q "have room for" "$T/scale.out" || fail "not refused for memory: $(cat "$T/scale.out")"
[ "$(events_of move-begins)" = "$moves" ] || fail "partitions have moved all the same"
check_all "$MNT2"
