#!/usr/bin/env bash
# Trees survive the way in and out: tar, cp -a, rsync -a there and back, with everything that a file
# has.
# ctest: timeout=240
# shellcheck source=tests/support/fs_script.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/fs_script.sh"
need rsync tar

same() # DIRECTORY WHAT
{
    describe "$1" >"$scratch/got"
    diff -u "$scratch/want" "$scratch/got" | sed -n 1,20p >"$scratch/diff" || true
    [ ! -s "$scratch/diff" ] || {
        cat "$scratch/diff" >&2
        fail "$2: the tree differs"
    }
}

make_tree "$scratch/tree"
describe "$scratch/tree" >"$scratch/want"

tar -C "$scratch" --format=posix -cf - tree | tar -xpf -
same tree "untar"
same "$there/tree" "untar, seen from the other mount"
tar --format=posix -czf tree.tar.gz tree
mkdir "$scratch/back"
tar -C "$scratch/back" -xpzf tree.tar.gz
same "$scratch/back/tree" "tar and untar"

cp -a tree copy
same copy "cp -a"

rsync -aH "$scratch/tree/" synced/
same synced "rsync there"
rsync -aH synced/ "$scratch/synced/"
same "$scratch/synced" "rsync back"
changes=$(rsync -aHi --checksum "$scratch/tree/" synced/)
[ -z "$changes" ] || fail "rsync finds changes where there are none: $changes"

rm -r tree copy synced tree.tar.gz

# On two mounts of one machine a file is two to programs, and they lose it: what docs/reference/limits.md warns of.
if [ ! "$work" -ef "$there" ]; then
    printf 'content' >file
    [ "$(stat -c %i file)" = "$(stat -c %i "$there/file")" ] || fail "another inode on the other mount"
    cp file "$there/file"
    [ "$(stat -c %s file)" = 0 ] || fail "cp from mount to mount does not empty a file"
    for command in mv "install -m 644" "rsync -a --remove-source-files"; do
        printf 'content' >file
        $command file "$there/file" 2>/dev/null || :
        [ ! -e file ] || fail "$command from mount to mount does not remove a file"
    done
fi
[ -z "$(ls -A .)" ] || fail "rm -r left something: $(ls -A .)"
