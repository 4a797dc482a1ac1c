#!/usr/bin/env bash
# cm stop in the middle of input and output: programs get errors, not hangs, and nothing is left.
# ctest: timeout=240
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"

# What clients say when their servers go is not judged here.
ALLOW_LOG='.*'

keep_writing()
{
    local i
    for ((i = 0; ; i = (i + 1) % 20)); do
        head -c 3000000 /dev/zero >"$1/file$i" || return 0
    done
}

keep_reading()
{
    while cat "$1"/* >/dev/null && ls -lR "$1" >/dev/null; do
        :
    done
}

for round in 1 2; do
    say "round $round"
    deployment_start 4
    workers=()
    for mount in "$MNT0" "$MNT1" "$MNT2"; do
        mkdir "$mount/${mount##*/}"
        printf 'start' >"$mount/${mount##*/}/first"
        keep_writing "$mount/${mount##*/}" 2>/dev/null &
        workers+=($!)
        keep_reading "$mount/${mount##*/}" >/dev/null 2>&1 &
        workers+=($!)
    done
    exec 8>"$MNT3/open" # and a file that is open all the while
    printf 'data' >&8
    sleep 2

    SECONDS=0
    deployment_stop
    [ "$SECONDS" -le 30 ] || fail "cm stop took $SECONDS s"
    exec 8>&- || true
    for pid in "${workers[@]}"; do
        must_happen 20 gone "$pid"
    done
    for mount in "$MNT0" "$MNT1" "$MNT2" "$MNT3"; do
        # What the workers wrote after the unmount went into the empty mount points.
        rm -rf "${mount:?}"/*
    done
done
