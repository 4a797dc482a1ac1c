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

# Without a pause, as some steps are short.
catch() # STEP
{
    local deadline=$((SECONDS + 60))
    until grep -q "\"step\":[[:space:]]*\"$1\"" "$STATE/cm.json"; do
        [ "$SECONDS" -lt "$deadline" ] || fail "step $1 was never seen"
    done
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
must_happen 20 in_step move
kill -KILL "$(pgrep -P "$scale")" # of timeout: cm scale itself
wait "$scale" || true
is .state scaling || fail "not scaling: $(status .state)"
status '.moves[] | "\(.partition) \(.from) \(.to) \(.step) \(.bytes) \(.bytes_total)"' >"$T/moves"
grep -qE '^[0-7] [01] 2 (waiting|copying) ' "$T/moves" || fail "moves: $(cat "$T/moves")"
expect_fail 1 cm_ scale 5
grep -q "from 2 to 3 nodes is under way" "$T/expect.out" || fail "names no change: $(cat "$T/expect.out")"
cm_ scale 3 --json >"$T/report" || fail "joining the change under way"
equal "2 3" "$(jq -r '"\(.from) \(.to)"' "$T/report")" "joined report"
must_happen 20 settled 3
intact "when cm scale was killed"

for step in come move go; do
    say "cm killed -9 in step $step"
    before=$(status '.nodes | length')
    case $step in
    come | move) to=$((before + 1)) ;;
    go) to=$((before - 2)) ;;
    esac
    scale_slowly 4M "$to"
    catch "$step"
    kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
    ! wait "$scale" || fail "cm scale says all is well: $(cat "$T/scale.out")"
    must_happen 10 none_of cm
    cm_ start || fail "cm start after the kill in step $step"
    must_happen 60 settled "$to"
    event scale-resumed || fail "no event of the new cm"
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
must_happen 20 settled "$nodes"
event scale-undone || fail "no event"
intact "when a node did not come"

say "a node that can't mount is undone, and its log is shown"
rmdir "$T/mnt$nodes" # of an earlier node: the next index is the number of nodes
: >"$T/mnt$nodes"
expect_fail 1 cm_ scale +1
grep -q "^cm: scale: node-.*mnt$nodes" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
grep -q "^--- the end of .*lm.log" "$T/expect.out" || fail "shows no log: $(cat "$T/expect.out")"
must_happen 20 settled "$nodes"
rm "$T/mnt$nodes"
intact "when a node did not mount"

say "cm stop in the middle"
scale_slowly 4M +3
must_happen 20 in_step move
deployment_stop
! wait "$scale" || fail "cm scale says all is well"
