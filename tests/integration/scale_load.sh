#!/usr/bin/env bash
# Nodes come and go, hot and cold, under load on two mounts that checks every byte, name and errno:
# large and small files, rewrites in place, renames, appends and locks from both.
# ctest: timeout=150 long=30
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

# Connections to processes that move end.
ALLOW_LOG='no messages for now|connect|Connection'
MEMORY=256M

scale_to() # NODES HOW
{
    local before
    cm_ scale "$1" --migration "$2" --json >"$T/report" || fail "cm scale $1 ($2): $(cm_ events | tail -n 30)"
    say "to $1 $2: $(jq -c 'del(.moves)' "$T/report")"
    jq -e --argjson to "$1" '.to == $to and .partitions_moved > 0' "$T/report" >/dev/null || fail "the report"
    before=$(seconds)
    must_happen 20 later_than "$before" # also notices a load that has ended
}

# seconds: lines that the load has written
seconds()
{
    kill -0 "$load" 2>/dev/null || fail "the load has ended: $(cat "$T/load")"
    wc -l <"$T/load"
}

later_than() # LINES
{
    [ "$(wc -l <"$T/load")" -gt "$1" ]
}

deployment_start 1 --max-nodes 4 --partitions 12
mkdir "$T/by-hand"
memefs mount --name "$NAME" --state-dir "$STATE" "$T/by-hand"
"$MEMEFS_BIN/../tests/elastic_load" -m 64 "$MNT0" "$T/by-hand" 1000 "${SEED:-$RANDOM}" >"$T/load" 2>&1 &
load=$!
must_happen 30 later_than 2

for how in hot cold; do
    for nodes in 2 4 1; do
        scale_to "$nodes" "$how"
    done
done

kill -TERM "$load"
wait "$load" || fail "the load: $(tail -n 20 "$T/load")"
say "$(tail -n 1 "$T/load")"
