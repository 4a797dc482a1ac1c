#!/usr/bin/env bash
# A change of the nodes outlives who asked for it, and cm: both are killed in the middle, and a new
# cm goes on. A node that does not come is undone. cm stop works in the middle, too.
# ctest: release timeout=300 long=50
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

ALLOW_LOG='lm-gone|scale|killed|connect|closed'
MEMORY=256M

status() # FIELD
{
    cm_ status --json | jq -r "$1"
}

is() # FIELD WANT
{
    [ "$(status "$1")" = "$2" ]
}

in_step() # STEP: of the change under way, as it stands on disk
{
    [ "$(jq -r '.scale.step' "$STATE/cm.json")" = "$1" ]
}

# 1: the change ended before that step was seen. Without a pause and without a process, as some steps are short.
catch() # STEP
{
    local state
    while kill -0 "$scale" 2>/dev/null; do
        state=$(<"$STATE/cm.json") || continue # while a new one takes its place
        [[ ! $state =~ \"step\":[[:space:]]*\"$1\" ]] || return 0
    done
    return 1
}

event() # WORD
{
    cm_ events --json | jq -se --arg what "$1" 'any(.what == $what)' >/dev/null
}

intact()
{
    (cd "$MNT0" && sha256sum --quiet -c "$T/sums") || fail "files have changed $1"
}

# Both must be there in the end: as many nodes as asked for, and nothing of those that went.
settled() # NODES
{
    is .state running && is '.nodes | length' "$1" && is '[.nodes[].state] | unique | join(" ")' up &&
        [ "$(pids_of lm | wc -l)" = "$1" ] && [ "$(find "$STATE" -name 'node-*' | wc -l)" = "$1" ]
}

scale_slowly() # RATE ARGUMENT…: in the background, so slow that one can hit its middle
{
    cm_ scale --rate "$@" >"$T/scale.out" 2>&1 &
    scale=$!
}

deployment_start 2 --max-nodes 8 --beta 4
for i in 1 2 3 4 5 6; do
    head -c 15000000 /dev/urandom >"$MNT0/data$i"
done
(cd "$MNT0" && sha256sum data? >"$T/sums")

say "who asked is killed: the change goes on"
scale_slowly 1M 3 # a dozen commands are to be done meanwhile, by a busy machine
must_happen 60 in_step move
kill -KILL "$(pgrep -P "$scale")" # of timeout: cm scale itself
wait "$scale" || true
is .state scaling || fail "not scaling: $(status .state)"
status '.moves[] | "\(.partition) \(.from) \(.to) \(.step) \(.bytes) \(.bytes_total)"' >"$T/moves"
grep -qE '^[0-7] [01] 2 (waiting|copying) ' "$T/moves" || fail "moves: $(cat "$T/moves")"
expect_fail 1 cm_ scale 5
grep -q "from 2 to 3 nodes is under way" "$T/expect.out" || fail "names no change: $(cat "$T/expect.out")"
cm_ scale 3 --json >"$T/report" || fail "joining the change under way"
equal "2 3" "$(jq -r '"\(.from) \(.to)"' "$T/report")" "joined report"
must_happen 60 settled 3
intact "when cm scale was killed"

resumed() # how often a new cm has gone on with a change
{
    cm_ events --json | jq -s 'map(select(.what == "scale-resumed")) | length'
}

# kill_in STEP: cm is killed in that step of a change to $to nodes; 1: the change was over before.
kill_in()
{
    local pid
    read -r pid _ <"$STATE/cm.pid"
    scale_slowly 4M "$to"
    if catch "$1"; then
        kill -KILL "$pid"
        must_happen 10 none_of cm
        [ "$(jq -r '.scale.step // ""' "$STATE/cm.json")" = "" ] || {
            ! wait "$scale" || fail "cm scale says all is well: $(cat "$T/scale.out")"
            return 0
        }
        cm_ start || fail "cm start after the change"
    fi
    wait "$scale" || true # it may have ended without its answer
    must_happen 60 settled "$to"
    return 1
}

for step in come move go; do
    say "cm killed -9 in step $step"
    for ((try = 0; ; try++)); do # a busy machine may let a step pass by
        [ "$try" -lt 4 ] || fail "step $step was never seen"
        case $step in
        come | move) from=$((3 + try)) to=$((4 + try)) ;;
        go) from=5 to=3 ;;
        esac
        [ "$step" != move ] || from=$((from + 1)) to=$((to + 1))
        is '.nodes | length' "$from" || cm_ scale "$from" || fail "cm scale $from"
        must_happen 60 settled "$from"
        before=$(resumed)
        ! kill_in "$step" || break
    done
    cm_ start || fail "cm start after the kill in step $step"
    must_happen 60 settled "$to"
    [ "$(resumed)" -gt "$before" ] || fail "no event of the new cm"
    intact "when cm was killed in step $step"
done

say "cm killed -9 while a node takes its time to come"
nodes=$(status '.nodes | length')
newest=$STATE/node-$(jq .next_node "$STATE/cm.json")
cm_ scale +1 >"$T/scale.out" 2>&1 &
scale=$!
must_happen 20 [ -s "$newest/lm.pid" ]
read -r pid _ <"$newest/lm.pid"
kill -STOP "$pid"
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
wait "$scale" || true
must_happen 10 none_of cm
cm_ start || fail "cm start while a node comes"
is .state scaling || fail "not scaling: $(status .state)"
kill -CONT "$pid"
must_happen 60 settled $((nodes + 1))
intact "when a node took its time"

say "a node that does not come is undone"
nodes=$(status '.nodes | length')
: >"$STATE/node-$(jq .next_node "$STATE/cm.json")" # where its directory should be
expect_fail 1 cm_ scale +2
grep -q "^cm: scale: node-" "$T/expect.out" || fail "names no node: $(cat "$T/expect.out")"
must_happen 60 settled "$nodes"
event scale-undone || fail "no event"
intact "when a node did not come"

say "a node that can't mount is undone, and its log is shown"
rmdir "$T/mnt$nodes" # of an earlier node: the next index is the number of nodes
: >"$T/mnt$nodes"
expect_fail 1 cm_ scale +1
grep -q "^cm: scale: node-.*mnt$nodes" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
grep -q "^--- the end of .*lm.log" "$T/expect.out" || fail "shows no log: $(cat "$T/expect.out")"
must_happen 60 settled "$nodes"
rm "$T/mnt$nodes"
intact "when a node did not mount"

say "cm stop in the middle"
scale_slowly 4M +3
must_happen 60 in_step move
deployment_stop
! wait "$scale" || fail "cm scale says all is well"
