#!/usr/bin/env bash
# Full memory: writers get ENOSPC, nothing that was acknowledged is lost or evicted, deleting and
# truncating go on working and make room at once, and nothing stays behind.
# ctest: footprint timeout=300 long=60
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

MEMORY=192M
# The clients may say in their logs that the memory is full.
ALLOW_LOG='No space left|ENOSPC|out of memory|OOM'
deployment_start 4

used()
{
    cm_ status --json | jq '[.nodes[].memory_used] | add'
}

is_near_empty()
{
    [ "$(used)" -lt $((empty + (32 << 20))) ]
}

sleep 2 # the first measurement is in the status
empty=$(used)

say "fill"
head -c 1048576 /dev/urandom >"$T/piece"
count=0
until [ "$count" -gt 2000 ]; do
    { cat "$T/piece" >"$MNT0/piece$count"; } 2>"$T/error" || break
    count=$((count + 1))
done
grep -q 'No space left on device' "$T/error" || fail "no ENOSPC, but: $(cat "$T/error")"
say "$count pieces of 1 MiB"
[ "$count" -ge 300 ] || fail "full after only $count MiB of 768"
[ "$count" -le 768 ] || fail "took $count MiB, more than there is"

say "all that was acknowledged is there, on the other mount, too"
for ((i = 0; i < count; i++)); do
    cmp "$T/piece" "$MNT1/piece$i" || fail "piece $i"
done
within_limit $((192 << 10))

say "delete and truncate make room at once"
: >"$MNT1/piece0"
rm "$MNT0/piece1" "$MNT0/piece2" "$MNT1/piece3"
rm -f "$MNT0/piece$count"
for ((i = 4; i < count / 2; i++)); do
    rm "$MNT0/piece$i" || fail "rm with full memory"
done
for ((i = 0; i < 50; i++)); do
    cp "$T/piece" "$MNT0/again$i" || fail "no room after half was deleted"
done
for ((i = 0; i < 50; i++)); do
    cmp "$T/piece" "$MNT1/again$i" || fail "again$i"
done

say "what was freed can be written at once, also when the rest of the memory is full of small files"
rm -f "$MNT0"/again* "$MNT1"/piece*
mkdir "$MNT0/small"
head -c $((4000 * 65536)) /dev/zero | split -b 65536 -a 4 - "$MNT0/small/" || fail "4000 small files" # a process for each takes longer
for writer in "$MNT0" "$MNT1" "$MNT0"; do
    dd if=/dev/zero of="$MNT0/big" bs=1M count=1000 2>"$T/error" && fail "no ENOSPC"
    dd if=/dev/zero of="$MNT1/also" bs=1M count=1000 2>"$T/error" && fail "no ENOSPC on mount 1"
    rm -f "$MNT1/also" # there may not have been room for the file itself
    half=$(($(stat -c %s "$MNT0/big") / 2))
    truncate -s $half "$MNT0/big"
    # Stripes are spread by a hash, so the fullest node may hold a third more than the mean: with half
    # of what was freed it would be full once in some hundred times.
    dd if=/dev/zero of="$writer/more" bs=1M count=$((half >> 22)) 2>"$T/error" ||
        fail "$writer: $((half >> 20)) MiB truncated, no room for a quarter of that: $(cat "$T/error")"
    rm "$MNT0/big" "$MNT0/more"
    dd if=/dev/zero of="$writer/more" bs=1M count=$((half >> 20)) 2>"$T/error" ||
        fail "$writer: $((half >> 19)) MiB removed, no room for half of that: $(cat "$T/error")"
    rm "$MNT1/more"
done

say "everything deleted: the memory is back"
rm -rf "${MNT0:?}"/*
[ -z "$(ls -A "$MNT1")" ] || fail "not empty: $(ls -A "$MNT1")"
must_happen 30 is_near_empty
say "empty: $empty bytes, after: $(used) bytes"
deployment_stop
