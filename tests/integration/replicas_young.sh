#!/usr/bin/env bash
# --replicas 1: what was written while replicas were being made is there when their partitions' processes are killed as
# soon as these replicas may take over.
# ctest: timeout=240
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq

ALLOW_LOG='partition|written data are lost'
NODES=3 WRITERS=9

# make_files MOUNT NAME: empty files, as it is the open that bash looks at; $T/NAME.sure has those that were made.
make_files()
{
    local n=0
    while [ ! -e "$T/stop" ]; do
        n=$((n + 1))
        { : >"$1/$2.$n"; } 2>>"$T/$2.failed" && echo "$n" >>"$T/$2.sure"
        [ "$n" -lt 1000 ] || sleep 0.2
    done
}

check_made() # MOUNT NAME
{
    local n
    while read -r n; do
        [ -e "$1/$2.$n" ] || fail "$2.$n had been made"
    done <"$T/$2.sure"
    equal '' "$(grep -v ': Input/output error$' "$T/$2.failed")" "what failed"
    say "$2: $(wc -l <"$T/$2.sure") files are there, $(wc -l <"$T/$2.failed") could not be made"
}

# Each partition's first process, when its replica has become ready. 0: that was all of them.
strike()
{
    local part node
    while read -r part node; do
        [ -z "${struck[part]-}" ] || continue
        struck[part]=1
        kill -KILL "$(cut -d' ' -f1 "$STATE/node-$node/redis-$part.pid")"
    done < <(jq -r '.parts | to_entries[] | select(.value.replica_step == "ready") | "\(.key) \(.value.node)"' "$STATE/cm.json")
    [ "${#struck[@]}" -eq "$parts" ]
}

struck=()
MEMORY=512M deployment_start "$NODES" --replicas 1 --partitions 12
parts=$(jq '.parts | length' "$STATE/cm.json")
for ((i = 0; i < WRITERS; i++)); do
    touch "$T/young$i.failed"
    make_files "$T/mnt$((i % NODES))" "young$i" &
done
for ((until = SECONDS + 60; SECONDS < until; )); do
    ! strike || break
done
[ "${#struck[@]}" -eq "$parts" ] || fail "only ${#struck[@]} of $parts partitions got replicas"
await_protected
equal "$parts" "$(events_of failed-over)" "replicas that have taken over"
touch "$T/stop"
wait
for ((i = 0; i < WRITERS; i++)); do
    check_made "$T/mnt$(((i + 1) % NODES))" "young$i"
done
fsck_clean
deployment_stop
