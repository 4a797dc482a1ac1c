#!/usr/bin/env bash
# The directory as upper layer of an overlay, as container engines have it (overlayfs refused it without
# RENAME_WHITEOUT): copying up, whiteouts, opaque directories, all of it there when it is mounted again.
# ctest: timeout=100
# shellcheck source=tests/support/fs_script.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/fs_script.sh"
need getfattr mount perl setfattr

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
programs=(4711:0:42 2755:0:42 4755:42:43 2755:42:43 6755:42:0 0755:42:43) # mode and owner
capability=0x0100000200200000000000000000000000000000 # cap_net_raw
make_tree "$scratch/lower" 60
printf 'lower\n' >"$scratch/lower/appended"
chmod 640 "$scratch/lower/appended"
for program in "${programs[@]}"; do
    printf 'program\n' >"$scratch/lower/$program"
    chown "${program#*:}" "$scratch/lower/$program"
    chmod "${program%%:*}" "$scratch/lower/$program"
done
setfattr -n security.capability -v "$capability" "$scratch/lower/0755:42:43"
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

# By the owner, by a write that keeps all, and by a mode: chown(2) would take away what makes these programs other users'.
for program in "${programs[@]}"; do
    [ "$(stat -c %04a:%u:%g "$merged/$program")" = "$program" ] || fail "$program is not seen with its mode"
    case $program in
    *:0:*) touch "$merged/$program" ;;
    4*) printf 'more\n' >>"$merged/$program" ;;
    *) chmod "${program%%:*}" "$merged/$program" ;;
    esac
    [ "$(stat -c %04a:%u:%g "$there/upper/$program")" = "$program" ] ||
        fail "$program was copied up with $(stat -c %04a:%u:%g "upper/$program")"
done
[ "$(getfattr --only-values -n security.capability "$there/upper/0755:42:43" --absolute-names | od -An -tx1 -v | tr -d ' \n')" = \
    "${capability#0x}" ] || fail "copied up without its capabilities"

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
