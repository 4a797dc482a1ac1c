#!/usr/bin/env bash
# 2 → 4 → 8 → 3 → 1 → 4 nodes, hot and cold, while one program writes and another checks: nothing is
# lost, nothing is wrong, nobody sees an error, and the nodes end up with equal shares.
# ctest: release timeout=400 long=60
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

# Connections to processes that move end.
ALLOW_LOG='no messages for now|connect|Connection'
MEMORY=256M

# writer DIRECTORY: files that each hold their own name many times, renamed when whole, until $T/end.
writer()
{
    local n=0
    while [ ! -e "$T/end" ]; do
        n=$((n + 1))
        head -c 300000 < <(yes "$1 file $n" 2>/dev/null) >"$1/new" || return 1
        mv "$1/new" "$1/file$((n % 40))" || return 1
        mkdir "$1/d$n" && rmdir "$1/d$n" || return 1
        echo "$n" >>"$T/written"
    done
}

# checker: what never changes, and that a file that is there is whole.
checker()
{
    while [ ! -e "$T/end" ]; do
        (cd "$MNT0" && sha256sum --quiet -c "$T/sums") || return 1
        for file in "$MNT0"/w/file*; do
            [ -e "$file" ] || continue
            [ "$(sort -u "$file" | wc -l)" -le 2 ] || { # the last line is cut off
                echo "$file is mixed" >&2
                return 1
            }
        done
        date >>"$T/checked"
    done
}

scale_to() # NODES HOW
{
    local before
    before=$(wc -l <"$T/written")
    cm_ scale "$1" --migration "$2" --json >"$T/report" || fail "cm scale $1 ($2): $(cm_ events | tail -n 30)"
    say "to $1 $2: $(jq -c 'del(.moves)' "$T/report")"
    equal "$1" "$(jq .to "$T/report")" "nodes in the report"
    cm_ status --json >"$T/status"
    equal "$1" "$(jq '.nodes | length' "$T/status")" "nodes"
    jq -e '[.nodes[].partitions] | (max - min <= 1) and (add == 16)' "$T/status" >/dev/null ||
        fail "uneven: $(jq -c '[.nodes[].partitions]' "$T/status")"
    jq -e '.state == "running" and all(.nodes[]; .state == "up")' "$T/status" >/dev/null ||
        fail "not well: $(cat "$T/status")"
    kill -0 "$writer" "$checker" 2>/dev/null || fail "a program has ended: $(cat "$T/errors")"
    must_happen 20 later_than "$before"
}

later_than() # NUMBER: of files, the writer is beyond it
{
    [ "$(wc -l <"$T/written")" -gt "$1" ]
}

deployment_start 2 --max-nodes 16 --beta 4
mkdir "$MNT0/w"
for i in 1 2 3 4; do
    head -c 8000000 /dev/urandom >"$MNT0/data$i"
done
(cd "$MNT0" && sha256sum data? >"$T/sums")
writer "$MNT0/w" 2>>"$T/errors" &
writer=$!
checker 2>>"$T/errors" &
checker=$!
must_happen 20 test -e "$T/written"

for how in hot cold; do
    for nodes in 4 8 3 1 4 2; do
        scale_to "$nodes" "$how"
    done
done

: >"$T/end"
wait "$writer" || fail "writer: $(cat "$T/errors")"
wait "$checker" || fail "checker: $(cat "$T/errors")"
[ ! -s "$T/errors" ] || fail "errors: $(cat "$T/errors")"
say "$(wc -l <"$T/written") files written, $(wc -l <"$T/checked") times checked"
equal 2 "$(pids_of lm | wc -l)" "Local Managers"
for mount in "$T"/mnt[2-9]; do
    ! mountpoint -q "$mount" || fail "$mount is still mounted"
done
