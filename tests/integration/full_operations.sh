#!/usr/bin/env bash
# With memory full to the last partition: names still move, files shrink and go, partitions move to a new node,
# and nothing but what needs memory is refused; no node takes more than its limit.
# ctest: footprint timeout=300 long=30
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

MEMORY=160M
ALLOW_LOG='No space left|ENOSPC|out of memory|OOM|no memory'
deployment_start 2

used()
{
    cm_ status --json | jq '[.nodes[].memory_used] | add'
}

is_near_empty()
{
    [ "$(used)" -lt $((empty + (24 << 20))) ]
}

measured()
{
    [ "$(used)" -gt 0 ]
}

# fill NAME: large files, then ever smaller ones, each until one finds no room.
fill()
{
    local size i refused
    for size in 8388608 262144 16384 1024; do
        refused=0
        for ((i = 0; i < 400 && refused < 1; i++)); do
            { head -c $size "$T/data" >"$MNT0/$1.$size.$i"; } 2>/dev/null || refused=$((refused + 1))
        done
        say "$1: $i files of $size bytes, $refused refused"
        [ "$size" -lt 262144 ] || [ "$refused" -eq 1 ] || fail "there is room for $i files of $size bytes"
    done
}

# or_full COMMAND…: what needs memory may be refused for want of it, and for nothing else.
or_full()
{
    "$@" 2>"$T/error" || grep -q 'No space left' "$T/error" || fail "$*: $(cat "$T/error")"
}

intact()
{
    (cd "$1" && sha256sum --quiet -c "$T/sums") || fail "content has changed"
}

must_happen 20 measured
empty=$(used)
head -c 8388608 /dev/urandom >"$T/data"
mkdir "$MNT0/kept" "$MNT0/a" "$MNT0/b" "$MNT0/none" "$MNT0/a/sub"
for ((i = 0; i < 40; i++)); do
    head -c $((i * 9000)) "$T/data" >"$MNT0/kept/$i"
    echo "$i" | tee "$MNT0/a/$i" >"$MNT0/b/old$i"
done
(cd "$MNT0/kept" && sha256sum -- *) >"$T/sums"
fill first
within_limit $((160 << 10))

say "full: names move"
for ((i = 0; i < 40; i++)); do
    mv "$MNT0/a/$i" "$MNT0/a/moved$i" || fail "rename in a directory"
    mv "$MNT1/a/moved$i" "$MNT1/b/$i" || fail "rename to another directory"
    equal "$i" "$(cat "$MNT0/b/$i")" "content of b/$i"
    mv "$MNT0/b/$i" "$MNT0/b/old$i" || fail "rename over another"
    chmod 600 "$MNT1/b/old$i" || fail "chmod"
    touch -d 2020-01-01 "$MNT0/b/old$i" || fail "utimes"
done
mv "$MNT0/a/sub" "$MNT0/b/sub" || fail "rename of a directory"
rmdir "$MNT1/none" "$MNT0/b/sub" || fail "rmdir"
for ((i = 0; i < 10; i++)); do
    or_full mkdir "$MNT0/new$i"
    or_full ln "$MNT0/kept/$i" "$MNT0/b/link$i"
    or_full ln -s kept "$MNT1/b/symlink$i"
done
intact "$MNT1/kept"

say "full: a node comes, and partitions move to it"
cm_ scale +1 || fail "cm scale +1 with full memory"
equal 3 "$(cm_ status --json | jq '.nodes | length')" "nodes"
intact "$MNT1/kept"
fill second
within_limit $((160 << 10))
cm_ rebalance || fail "cm rebalance with full memory"
intact "$MNT0/kept"

say "full: files shrink and go"
for file in "$MNT0"/first.8388608.*; do
    truncate -s 1000000 "$file" || fail "truncate"
    : >"$MNT1/${file##*/}" || fail "truncate to nothing"
done
rm "$MNT0"/first.* || fail "rm"
for ((i = 0; i < 20; i++)); do
    head -c 300000 "$T/data" >"$MNT0/again$i" || fail "no room after much was deleted"
done
within_limit $((160 << 10))
intact "$MNT1/kept"
rm -rf "${MNT1:?}"/*
[ -z "$(ls -A "$MNT0")" ] || fail "not empty: $(ls -A "$MNT0")"
must_happen 30 is_near_empty
fsck_clean
deployment_stop
