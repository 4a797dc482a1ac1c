#!/usr/bin/env bash
# A client takes no more memory than its share of the node, whatever is written, read and listed; a
# given memory= counts instead.
# ctest: footprint timeout=200
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"

MEMORY=448M # a client's share is an eighth: 56 MiB
FILES=1500

# most_of PID: KiB that were resident at the most, beyond the program's own text.
most_of()
{
    awk '/^VmHWM/ { most = $2 } /^RssFile/ { file = $2 } END { print most - file }' "/proc/$1/status"
}

# client_of INDEX
client_of()
{
    cut -d' ' -f1 "$STATE/node-$1/client.pid"
}

# within MIB PID: an eighth more is for the allocator's fragments.
within()
{
    local most
    most=$(most_of "$2")
    say "client took $((most >> 10)) MiB of $1"
    ! sanitized || return 0
    [ "$most" -le $(($1 * 1024 * 9 / 8)) ] || fail "a client took $((most >> 10)) MiB, its share is $1"
}

use() # A mount, and another that reads what it has written.
{
    local i
    for i in 1 2 3; do
        head -c 33554432 /dev/urandom >"$1/large$i" &
    done
    wait
    mkdir "$1/small"
    for ((i = 0; i < FILES; i++)); do
        echo "$i" >"$1/small/$i"
        [ $((i % 50)) -ne 0 ] || head -c 60000 /dev/urandom >"$1/small/$i.more"
    done
    cat "$2"/small/* >"$T/all"
    cat "$1"/small/* | cmp - "$T/all" || fail "small files differ"
    for i in 1 2 3; do
        cmp "$1/large$i" "$2/large$i" &
    done
    wait
    find "$2" -size +1M | wc -l >"$T/listed"
    rm -r "$1"/small "$1"/large*
}

deployment_start 2
use "$MNT0" "$MNT1"
within 56 "$(client_of 0)"
within 56 "$(client_of 1)"

say "a client that is told so gets by with the least"
mkdir "$T/least"
memefs mount --name "$NAME" --state-dir "$STATE" -o memory=24M "$T/least"
pid=$(pids_of memefs | tr ' ' '\n' | sort -n | tail -1)
use "$T/least" "$MNT1"
within 24 "$pid"
expect_fail 2 memefs mount --name "$NAME" --state-dir "$STATE" -o memory=23M "$T/least"
memefs umount "$T/least"
deployment_stop
