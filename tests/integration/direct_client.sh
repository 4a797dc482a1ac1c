#!/usr/bin/env bash
# A client without a kernel, beside mounts: each sees at once what the other has done, and nothing is left of it.
# ctest: timeout=120
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"

walk_bench()
{
    "$MEMEFS_BIN/../tests/walk_bench" "$STATE" "$@"
}

deployment_start 2
mkdir -p "$MNT0/a/b"
ln -s a/b "$MNT0/short"
[ ! -e "$MNT1/a/b/f" ] || fail "there is a file already"
say "$(walk_bench short/f "from no mount" 1000)"
equal "from no mount" "$(cat "$MNT0/a/b/f")" "the file on a mount"
equal "from no mount" "$(cat "$MNT1/short/f")" "the file on another mount"
printf 'more' >>"$MNT1/a/b/f"
walk_bench a/../short/f "less" 1 | says ' 4 bytes$' || fail "the file's size, made anew"
equal "less" "$(cat "$MNT0/a/b/f")" "the file made anew"
ln -s loop "$MNT0/loop"
walk_bench loop/f "" 1 2>"$T/out" && fail "a walk in a loop ends well"
grep -q 'Too many levels of symbolic links' "$T/out" || fail "a loop: $(cat "$T/out")"
fsck_clean
