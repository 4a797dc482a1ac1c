#!/usr/bin/env bash
# While requests come one after the other, and only then, a client in a virtual machine asks for processors
# that do not halt.
# ctest: timeout=60
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"

[ "$(cat /sys/devices/system/cpu/cpuidle/current_driver 2>/dev/null)" = haltpoll ] || skip "processors do not poll here"
[ -w /dev/cpu_dma_latency ] || skip "no /dev/cpu_dma_latency"

deployment_start 1
mkdir "$T/plain"
memefs mount --name "$NAME" --state-dir "$STATE" -o noawake "$T/plain"

# client_at PATH: leaves the client's process in `client`.
client_at()
{
    for client in $(pids_of memefs); do
        ! tr '\0' '\n' <"/proc/$client/cmdline" | says -x "$1" || return 0
    done
    fail "no client at $1"
}

asks()
{
    find "/proc/$client/fd" -lname /dev/cpu_dma_latency | says .
}

asks_not()
{
    ! asks
}

# use PATH: looks for files there until it is ended.
use()
{
    (while :; do [ ! -e "$1/there is no such file" ]; done) &
    user=$!
}

client_at "$MNT0"
say "nobody uses it"
asks_not || fail "it keeps processors awake for nobody"
say "it is used"
use "$MNT0"
must_happen 5 asks
kill "$user"
wait "$user" || true
say "no longer"
must_happen 5 asks_not

client_at "$T/plain"
say "noawake"
use "$T/plain"
sleep 1
asks_not || fail "it keeps processors awake in spite of noawake"
kill "$user"
wait "$user" || true
memefs umount "$T/plain"
