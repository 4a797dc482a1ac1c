#!/usr/bin/env bash
# memefs fsck of a deployment that works: clean, also under load and while partitions move; what is
# wrong is told and mended, and the exit status says so. Once nobody uses it, looks need not be far
# apart.
# ctest: timeout=300 waits long=50
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq redis-cli

deployment_start 2 --max-nodes 3

# Everything that files are used for, until told to stop.
load() # MOUNT NAME
{
    local dir=$1/$2 i=0
    while [ ! -e "$T/halt" ]; do
        i=$(((i + 1) % 20))
        mkdir -p "$dir/a$i/b" "$dir/c" || return 1
        head -c $((i * 300000 + 1)) /dev/zero >"$dir/a$i/f" || return 1
        ln -f "$dir/a$i/f" "$dir/c/l$i" || return 1
        mv "$dir/a$i/f" "$dir/a$i/b/g" || return 1
        printf 'line\n' >>"$dir/c/l$i" || return 1
        mv -T "$dir/a$i/b" "$dir/c/b$i" || return 1
        rm -r "$dir/c/b$i" "$dir/a$i" "$dir/c/l$i" || return 1
    done
}

say "an empty one, and one with files"
equal 0 "$(memefs_fsck --json | jq '.findings | length')" "findings"
mkdir "$MNT0/dir"
head -c 3000000 /dev/urandom >"$MNT0/dir/data"
cp "$MNT0/dir/data" "$T/data"
memefs_fsck >"$T/out" || fail "memefs fsck"
grep -q 'clean$' "$T/out" || fail "no word of it: $(cat "$T/out")"
equal true "$(memefs_fsck --json | jq .clean)" "clean"

say "under load"
load "$MNT0" zero &
LOADS=($!)
load "$MNT1" one &
LOADS+=($!)
for ((i = 0; i < 3; i++)); do
    fsck_silent
done

say "while partitions move"
cm_ scale 3 >/dev/null &
scale=$!
fsck_silent
wait "$scale" || fail "cm scale"
fsck_silent
touch "$T/halt"
wait "${LOADS[@]}" || fail "the load had errors"

say "something wrong"
# The process that a partition has moved from is removed a moment after the move.
part0_is_known()
{
    socket=$(find "$STATE" -name redis-0.sock)
    password=$(jq -r '.. | objects | select(.index? == 0 and .admin_password?) | .admin_password' "${socket%/*}/lm.json")
    [ -S "$socket" ] && [ -n "$password" ]
}
must_happen 10 part0_is_known
part0() # COMMAND…
{
    redis-cli -s "$socket" --user memefs-lm --no-auth-warning --pass "$password" "$@" >"$T/reply" ||
        fail "redis-cli: $*"
}
part0 SADD '#orphans' nobody!!
expect_fail 1 memefs_fsck
grep -q '^stale-orphan: ' "$T/expect.out" || fail "not told: $(cat "$T/expect.out")"
part0 SET unknown key
memefs_fsck --pause 1 --json >"$T/out" && fail "status 0 in spite of findings"
equal '"bad-key" "stale-orphan"' "$(jq -r '[.findings[].kind] | sort | map(tojson) | join(" ")' "$T/out")" "kinds"

say "repair"
expect_fail 1 memefs_fsck --repair --pause 1 # the key is nobody's
grep -q '^stale-orphan: .*(mended)' "$T/expect.out" || fail "not mended: $(cat "$T/expect.out")"
grep -q '^bad-key: .*(left: ' "$T/expect.out" || fail "not left: $(cat "$T/expect.out")"
part0 DEL unknown
fsck_silent
cmp "$T/data" "$MNT1/dir/data" || fail "content"
