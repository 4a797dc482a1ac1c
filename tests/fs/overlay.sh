#!/usr/bin/env bash
# The directory as upper layer of an overlay, as container engines have it (overlayfs refused it without
# RENAME_WHITEOUT): copying up, whiteouts, opaque directories, all of it there when it is mounted again.
# ctest: timeout=100
# shellcheck source=tests/support/fs_script.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/fs_script.sh"
need getfattr mount perl

grep -qw overlay /proc/filesystems || {
    printf 'SKIP: the kernel has no overlayfs\n'
    exit 77
}
merged=$scratch/merged
trap 'cd /; umount "$merged" 2>/dev/null || :; rm -rf "$scratch" "$work"' EXIT

mount_overlay()
{
    mount -t overlay overlay "$merged" \
        -o "lowerdir=$scratch/lower,upperdir=$work/upper,workdir=$work/work,redirect_dir=off,index=off"
}

# rename FROM TO: prints errno, 0 when it was done; mv would copy.
rename_errno()
{
    perl -e 'printf "%d\n", rename($ARGV[0], $ARGV[1]) ? 0 : $!' "$merged/$1" "$merged/$2"
}

# is_whiteout NAME: also for the other mount.
is_whiteout()
{
    local dir
    for dir in "$work" "$there"; do
        [ "$(stat -c '%F %t:%T %a' "$dir/upper/$1")" = 'character special file 0:0 0' ] ||
            fail "upper/$1 is no whiteout"
    done
    [ ! -e "$merged/$1" ] || fail "$1 is still there"
}

is_opaque()
{
    [ "$(getfattr --absolute-names --only-values -n trusted.overlay.opaque "$work/upper/$1")" = y ] || fail "$1 is not opaque"
}

mkdir "$scratch/lower" "$merged" upper work
make_tree "$scratch/lower" 60
printf 'lower\n' >"$scratch/lower/appended"
chmod 640 "$scratch/lower/appended"
for mode in 4711 2755; do
    printf 'program\n' >"$scratch/lower/mode$mode"
    chgrp 42 "$scratch/lower/mode$mode"
    chmod "$mode" "$scratch/lower/mode$mode"
done
describe "$scratch/lower" >"$scratch/before"
mount_overlay
describe "$merged" >"$scratch/seen"
cmp "$scratch/before" "$scratch/seen" || fail "the lower layer is not what is seen"

# Copied up with all that belongs to it: by a write, by an attribute, by a name.
printf 'upper\n' >>"$merged/appended"
[ "$(stat -c %a upper/appended)" = 640 ] || fail "mode $(stat -c %a upper/appended) of what was written to"
[ "$(cat "$merged/appended")" = "$(printf 'lower\nupper')" ] || fail "appended: $(cat "$merged/appended")"
touch -d '2002-03-04 05:06:07.123456789' "$merged/d4/e1/file 4"
cmp "$scratch/lower/d4/e1/file 4" "$there/upper/d4/e1/file 4" || fail "copied up badly"
ln "$merged/large" "$merged/another name"
[ "$(stat -c %h "$merged/large")" -eq 2 ] || fail "no second name"

for mode in 4711 2755; do
    [ "$(stat -c %a "$merged/mode$mode")" = "$mode" ] || fail "mode$mode is not seen with its mode"
    touch "$merged/mode$mode"
    [ "$(stat -c '%a %g' "$there/upper/mode$mode")" = "$mode 42" ] ||
        fail "mode$mode was copied up with $(stat -c '%a %g' "upper/mode$mode")"
done

# Removed, moved, replaced.
rm "$merged/dangling"
is_whiteout dangling
[ "$(rename_errno 'd0/e0/file 0' moved)" -eq 0 ] || fail "a lower file can't be moved"
is_whiteout 'd0/e0/file 0'
cmp "$scratch/lower/d0/e0/file 0" "$merged/moved"
[ "$(rename_errno moved 'd0/e0/file 0')" -eq 0 ] || fail "it can't be moved back"
[ -f 'upper/d0/e0/file 0' ] || fail "no file in the whiteout's place"
[ "$(rename_errno d5 d5.moved)" -eq 18 ] || fail "a lower directory was moved without redirect_dir"
mv "$merged/d5" "$merged/d5.moved" # copies, and removes
is_whiteout d5
for dir in d1 d3 d6; do
    rm -r "${merged:?}/$dir"
    is_whiteout "$dir"
    mkdir "$merged/$dir"
    is_opaque "$dir"
    [ -z "$(ls -A "$merged/$dir")" ] || fail "$dir is not empty"
done
printf 'new\n' >"$merged/d3/new"
[ -z "$(find work/work -mindepth 1 -type d)" ] || fail "left in work: $(find work)"

describe "$merged" >"$scratch/before"
umount "$merged"
mount_overlay
[ "$(stat -c %h "$merged/another name")" -eq 2 ] || fail "no second name"
describe "$merged" >"$scratch/seen"
cmp "$scratch/before" "$scratch/seen" || fail "another content after it was mounted again"
# overlayfs goes by the first name that it has looked up of a file: where names are looked up again at each use, none of
# the others is to be had without it.
rm "$merged/large"
rm -r "${merged:?}"/*
[ -z "$(ls -A "$merged")" ] || fail "not all can be removed"
umount "$merged"
