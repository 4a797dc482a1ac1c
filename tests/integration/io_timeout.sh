#!/usr/bin/env bash
# A partition that hangs, and then dies, costs the callers a bounded wait and an error, never more: everything
# else goes on, and what hung is there again when it goes on. Names of one directory that have not been looked up
# yet are among what goes on: Linux looked them up one after the other (FUSE_PARALLEL_DIROPS).
# ctest: timeout=300 waits
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"

ALLOW_LOG='partition|session|written data are lost'
TIMEOUT=3
# The command's own timeout, the search for a newer table, a busy machine; a call may need several commands.
BOUND=$((3 * TIMEOUT + 10))
FILES=64
deployment_start 2 --partitions 8 --mount-options "io_timeout=$TIMEOUT"

# bounded WHAT COMMAND…: it may fail, but not last; its exit status.
bounded()
{
    local what=$1 status=0
    shift
    timeout -k 1 "$BOUND" "$@" >"$T/out" 2>&1 || status=$?
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
        fail "$what took more than $BOUND s"
    fi
    return "$status"
}

# attempt WHAT COMMAND…: bounded; counts in `failed`, and in `waited` those that failed after a wait.
attempt()
{
    local begun=${EPOCHREALTIME/./} status=0
    bounded "$@" || status=$?
    [ "$status" -eq 0 ] || failed=$((failed + 1))
    [ "$status" -eq 0 ] || [ $((${EPOCHREALTIME/./} - begun)) -lt $((TIMEOUT * 900000)) ] || waited=$((waited + 1))
    return "$status"
}

# seldom_waited SECONDS: once a wait was in vain, for 5 s nobody but one waits for that partition (docs/how-to/survive-faults.md).
seldom_waited()
{
    [ "$waited" -le $((3 + $1 / 10)) ] || fail "$waited of $failed that failed in $1 s waited for the partition"
}

# read_all: leaves in `right` and `failed` how many files have the right content, and how many fail; none is wrong.
read_all()
{
    local n
    right=0 failed=0 waited=0
    for ((n = 0; n < FILES; n++)); do
        if ! attempt "reading a file" cat "$MNT1/dir/$n"; then
            continue
        elif [ "$(cat "$T/out")" = "content of $n" ]; then
            right=$((right + 1))
        else
            fail "file $n has another content: $(head -c 100 "$T/out")"
        fi
    done
}

say "files in all partitions"
mkdir "$MNT0/dir"
for ((n = 0; n < FILES; n++)); do
    printf 'content of %s' "$n" >"$MNT0/dir/$n"
done
head -c 20000000 /dev/urandom >"$T/large"
cp "$T/large" "$MNT0/large"
record=$(find "$STATE/node-1" -name 'redis-*.pid' | sort | tail -1)
read -r hung _ <"$record"
partition=${record##*-}
partition=${partition%.pid}

# home_of PATH: the partition that its inode is in, and so its entry.
home_of()
{
    memefs layout --json "$1" | grep -o '"home": [0-9]*' | tr -dc 0-9
}

# file_in YES: leaves in `file` one of $side whose entry is in that partition (1), or in another (0).
file_in()
{
    for file in "$MNT0/$side"/*; do
        if [ "$(($(home_of "$file") == partition))" -eq "$1" ]; then
            file=${file##*/}
            return
        fi
    done
    fail "no such file in $side"
}

say "names that the other mount has not looked up"
side=side
while mkdir "$MNT0/$side" && [ "$(home_of "$MNT0/$side")" -eq "$partition" ]; do
    side+=x
done
touch "$MNT0/$side"/{0..63}
file_in 1
slow=$file
file_in 0
quick=$file
stat "$MNT1/$side" >"$T/out"

say "one hangs: the others serve, nobody waits for long"
kill -STOP "$hung"
stat "$MNT1/$side/$slow" >"$T/slow.out" 2>&1 &
slow=$!
wait_for 1 grep -qx request_wait_answer "/proc/$slow/wchan" || true # it has asked; Linux may not tell
bounded "looking up another name" stat "$MNT1/$side/$quick" || fail "stat: $(cat "$T/out")"
gone "$slow" && fail "a look-up waited for that of another name"
! wait "$slow" || fail "what hangs was looked up"
started=$SECONDS
read_all
took=$((SECONDS - started))
say "$right files were read, $failed failed, $waited of these after a wait, in $took s"
[ "$right" -gt 0 ] || fail "nothing can be read any more"
[ "$failed" -gt 0 ] || fail "the partition that hangs has no file: nothing was tested"
seldom_waited "$took"
! bounded "reading a large file" cmp "$MNT1/large" "$T/large" || fail "a stripe of what hangs was read"
! bounded "writing a large file" cp "$T/large" "$MNT1/new" || fail "a copy without some stripes had no error"
bounded "df" df "$MNT1" || true
bounded "ls" ls -l "$MNT1/dir" || true
bounded "rm" rm -f "$MNT1/new" || true
bounded "cm status" cm status --name "$NAME" --state-dir "$STATE" || fail "cm status: $(cat "$T/out")"

say "it goes on: everything is there"
kill -CONT "$hung"
all_right()
{
    read_all
    [ "$right" -eq "$FILES" ]
}
must_happen 30 all_right
bounded "reading a large file" cmp "$MNT1/large" "$T/large" || fail "the large file: $(cat "$T/out")"
cp "$T/large" "$MNT1/again" || fail "writing"
cmp "$MNT0/again" "$T/large" || fail "what was written"

# make_files PREFIX: leaves in `made`, `failed` and `waited` how many there are, in `took` for how many seconds.
make_files()
{
    local n started=$SECONDS
    made=0 failed=0 waited=0
    for ((n = 0; n < FILES; n++)); do
        if attempt "making a file" sh -c "echo >'$MNT1/dir/$1-$n'"; then
            made=$((made + 1))
        fi
    done
    took=$((SECONDS - started))
    say "$made files were made, $failed failed, $waited of these after a wait, in $took s"
    if [ "$made" -eq 0 ] || [ "$failed" -eq 0 ]; then
        fail "$made and $failed of $FILES"
    fi
}

say "it dies: who changes what the other mount knew waits once, if that one's session was there"
rm "${record%.pid}.journal" # else another one would take its place
kill -KILL "$hung"
BOUND=40
make_files one
make_files two
seldom_waited "$took"
! bounded "reading past the cache" dd if="$MNT0/large" of=/dev/null bs=1M iflag=direct ||
    fail "a stripe of what is gone was read"
