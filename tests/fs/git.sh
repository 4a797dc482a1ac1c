#!/usr/bin/env bash
# git works in the file system: a repository with a history, a clone, fsck, branches, gc.
# ctest: timeout=240
# shellcheck source=tests/support/fs_script.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/fs_script.sh"
need git

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=t GIT_COMMITTER_NAME=t
export GIT_AUTHOR_EMAIL=t@localhost GIT_COMMITTER_EMAIL=t@localhost
git="git -c init.defaultBranch=main -c safe.directory=* -c gc.auto=0"

mkdir "$scratch/origin"
make_tree "$scratch/origin" 100
rm "$scratch/origin/fifo"
(
    cd "$scratch/origin"
    $git init -q .
    for round in 1 2 3 4 5; do
        printf '%s\n' "$round" >>"d0/e0/file 0"
        $git add -A
        $git commit -q -m "round $round"
    done
)

$git clone -q "$scratch/origin" clone
cd clone
$git fsck --strict --full
[ -z "$($git status --porcelain)" ] || fail "the clone differs from what was checked in"
$git checkout -q -b branch HEAD~3
printf 'branch\n' >>"d1/e1/file 1"
$git commit -q -a -m branch
$git checkout -q main
$git merge -q -m merge branch
$git gc -q --aggressive --prune=now
$git fsck --strict --full
[ "$($git rev-list --count HEAD)" -eq 7 ] || fail "commits are missing"
cd ..
$git clone -q clone second
[ "$($git -C second rev-parse HEAD)" = "$($git -C clone rev-parse HEAD)" ] || fail "clones differ"
