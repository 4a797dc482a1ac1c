#!/usr/bin/env bash
# The state directory's file system fills during a cold move, when a partition is fenced already: who calls that
# partition gets on, though it stays full; once there is room the partition moves all the same, and the report adds up
# how long it was fenced in all attempts. (Callers waited for as long as it was full, 95 s, and the last attempt was told.)
# ctest: slow release timeout=200
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq

IO_TIMEOUT=8 # s
ALLOW_LOG='No space left|partition [0-9]+'

# All that the test writes is there as well, so that the logs can be kept by second names.
mount -t tmpfs -o size=64m,mode=755 memefs-test "$T"
MEMORY=256M deployment_start 4 --replicas 1 --partitions 8 --beta 1 --mount-options "io_timeout=$IO_TIMEOUT"
await_protected
for i in {1..40}; do
    head -c 50000 /dev/urandom >"$MNT0/$i"
    file[$(home_of "$MNT0/$i")]=$MNT1/$i
done
(cd "$MNT0" && sha256sum -- *) >"$T/sums"

cm_ scale 5 --migration cold --rate 500K --json >"$T/report" 2>&1 &
scale=$!
must_happen 30 more_events move-begins 0
moving=$(jq -sr 'map(select(.what == "move-begins"))[0].text | capture("partition (?<part>[0-9]+)").part' "$STATE/events.jsonl")
while true; do # whatever else goes
    cat /dev/zero >>"$T/fill" 2>/dev/null || sleep 0.01
done &
filler=$!
waited=0
while [ "$waited" -lt 500 ]; do # else it is not fenced yet
    ! gone "$scale" || fail "no call has waited: $(cat "$T/report")"
    begun=${EPOCHREALTIME/./}
    touch "${file[moving]}" || fail "a call fails, as the state directory is full"
    waited=$(((${EPOCHREALTIME/./} - begun) / 1000))
done
kill "$filler"
wait "$filler" 2>/dev/null || true
rm "$T/fill"
wait "$scale" || fail "cm scale: $(cat "$T/report"; cm_ events)"
blocked=$(jq '.blocked_ms_total | floor' "$T/report")
say "partition $moving: a call waited $waited ms; told is that moves took $blocked ms"
cm_ events | grep -E 'move|migrated' || true
[ "$waited" -lt $((IO_TIMEOUT * 1000)) ] || fail "a call waited $waited ms while the state directory was full"
[ "$blocked" -gt $((waited + 1000)) ] || fail 'what the first attempt fenced is not told'
must_happen 10 more_events scaled 0
await_protected
(cd "$MNT2" && sha256sum --quiet -c "$T/sums") || fail 'files are wrong'
fsck_clean
deployment_stop
