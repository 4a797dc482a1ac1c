# What the scripts in tests/fs share: a fresh directory on the file system under test ($1), which they
# enter, and a scratch directory elsewhere. Sourced.
# shellcheck shell=bash
set -euo pipefail

[ $# -ge 1 ] || {
    printf 'usage: %s DIRECTORY [SAME-DIRECTORY-ON-ANOTHER-MOUNT]\n' "$0" >&2
    exit 2
}

# shellcheck disable=SC2034
source_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d "$1/fs.XXXXXX")
scratch=$(mktemp -d)
trap 'cd /; rm -rf "$scratch" "$work"' EXIT
cd "$work"
# The same directory seen through the other mount, if there is one.
# shellcheck disable=SC2034
there=${2:-$1}/${work##*/}

need()
{
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || {
            printf 'SKIP: %s is not installed\n' "$tool"
            exit 77
        }
    done
}

fail()
{
    printf 'FAIL: %s\n' "$*" >&2
    exit 1
}

# make_tree DIRECTORY [FILES]: a tree with files of many sizes, links, odd names, modes and times.
make_tree()
{
    local top=$1 files=${2:-300} i dir
    for ((i = 0; i < files; i++)); do
        dir=$top/d$((i % 7))/e$((i % 3))
        mkdir -p "$dir"
        head -c $(((i * i * 37) % 70000)) /dev/urandom >"$dir/file $i"
    done
    head -c 5000000 /dev/urandom >"$top/large"
    ln "$top/large" "$top/d1/hard link to large"
    ln -s ../large "$top/d2/symbolic link"
    ln -s nowhere "$top/dangling"
    mkfifo "$top/fifo"
    mkdir -m 1777 "$top/empty directory"
    printf 'odd' >"$top/$(printf 'tab\there, \303\244\303\266')"
    chmod 4755 "$top/d0/e0/file 0"
    touch -d '2001-02-03 04:05:06.789012345' "$top/d3/e0/file 3"
}

# describe DIRECTORY: content, type, mode, owner, size, time and link targets of all that is in it.
describe()
{
    (
        cd "$1"
        find . -type f -print0 | sort -z | xargs -0 sha256sum
        find . ! -type d -printf '%p %y %m %U:%G %s %n %T@ %l\n' | sort
        find . -type d -printf '%p %y %m %U:%G\n' | sort
    )
}
