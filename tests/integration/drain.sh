#!/usr/bin/env bash
# cm drain: any node leaves, not only the last; files stay, also while two mounts write, and while cm, the
# node's lm or a target's is killed. What can't work is refused before anything changes.
# ctest: release timeout=300 long=30
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq

ALLOW_LOG='lm-gone|scale|killed|connect|closed'
MEMORY=256M
FILES_MOST=60

nodes()
{
    cm_ status --json | jq -r '[.nodes[].name] | sort | join(" ")'
}

settled() # NODES: these and no others, whole; nothing of the others is left
{
    cm_ status --json | jq -e --arg nodes "$1" '.state == "running" and ([.nodes[].name] | sort | join(" ")) == $nodes and
        all(.nodes[]; .state == "up" and .partitions > 0)' >/dev/null &&
        [ "$(pids_of lm | wc -l)" = "$(wc -w <<<"$1")" ] &&
        [ "$(find "$STATE" -name 'node-*' -printf '%f\n' | sort | xargs)" = "$1" ]
}

intact() # MOUNT WHEN
{
    (cd "$1" && sha256sum --quiet -c "$T/sums") || fail "files have changed $2"
}

pid_in() # NODE PROGRAM
{
    cut -d' ' -f1 "$STATE/$1/$2.pid"
}

drain_slowly() # NODE
{
    cm_ drain --rate 4M "$1" >"$T/drain.out" 2>&1 &
    drain=$!
    must_happen 20 grep -q '"step":[[:space:]]*"copy"' "$STATE/cm.json"
}

deployment_start 4 --max-nodes 8 --beta 4 --rebalance off # what moves by itself would stand in the way
for i in 1 2 3 4 5 6; do
    head -c 12000000 /dev/urandom >"$MNT3/data$i"
done
(cd "$MNT3" && sha256sum data? >"$T/sums")

say "what can't work"
before=$(jq -S . "$STATE/cm.json" | grep -v bandwidth_seen)
expect_fail 1 cm_ drain node-7
grep -q 'no node has the name or address "node-7"' "$T/expect.out" || fail "$(cat "$T/expect.out")"
expect_fail 1 cm_ drain node-0 127.0.0.2 node-2 node-3
grep -q "at least 1 of the 4 nodes must stay" "$T/expect.out" || fail "$(cat "$T/expect.out")"
expect_fail 2 cm_ drain
equal "$before" "$(jq -S . "$STATE/cm.json" | grep -v bandwidth_seen)" "cm.json after refusals"

say "a dry run, by address"
cm_ drain --dry-run --json 127.0.0.1 >"$T/plan" || fail "dry run: $(cat "$T/plan")"
jq -e '.from == 4 and .to == 3 and .partitions_moved == 8 and all(.moves[]; .from == 0 and .to != 0)' "$T/plan" ||
    fail "plan: $(cat "$T/plan")"
equal "node-0 node-1 node-2 node-3" "$(nodes)" "nodes after a dry run"

say "node 0 leaves while two mounts write"
write_files "$MNT1" one &
one=$!
write_files "$MNT2" two &
two=$!
must_happen 10 [ -e "$T/two.sums" -a -e "$T/one.sums" ]
files_grow one
files_grow two
cm_ drain node-0 --json >"$T/report" || fail "drain: $(cat "$T/report")"
jq -e '.from == 4 and .to == 3 and .partitions_moved == 8' "$T/report" || fail "report: $(cat "$T/report")"
touch "$T/stop"
wait "$one" "$two"
settled "node-1 node-2 node-3" || fail "not settled: $(cm_ status)"
event_says scale 'by the operator \(drain node-0\)' || fail "the event does not say what leaves"
! mountpoint -q "$MNT0" || fail "$MNT0 is still mounted"
for name in one two; do
    check_files "$MNT3" "$name"
    [ ! -s "$T/$name.failed" ] || fail "writes failed: $(head -3 "$T/$name.failed")"
done
intact "$MNT1" "when node-0 left"

say "cm is killed in the middle, and another drain is refused meanwhile; the same one waits"
drain_slowly node-1
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
! wait "$drain" || fail "cm drain says all is well: $(cat "$T/drain.out")"
must_happen 10 none_of cm
cm_ start || fail "cm start"
expect_fail 1 cm_ drain node-2
grep -q "under way (by the operator (drain node-1)" "$T/expect.out" || fail "$(cat "$T/expect.out")"
cm_ drain node-1 || cm_ status --json | jq -e 'all(.nodes[]; .name != "node-1")' || fail "the same drain"
must_happen 60 settled "node-2 node-3"
intact "$MNT2" "when cm was killed"

say "the first place is taken by the next node"
cm_ scale +2 || fail "cm scale +2"
must_happen 20 settled "node-2 node-3 node-4 node-5"
mountpoint -q "$MNT0" || fail "no node is mounted at $MNT0"

say "the lm that gives is killed, then one that takes"
drain_slowly node-3
kill -KILL "$(pid_in node-3 lm)"
wait "$drain" || fail "drain: $(cat "$T/drain.out")"
must_happen 30 settled "node-2 node-4 node-5"
drain_slowly node-2
kill -KILL "$(pid_in node-4 lm)"
wait "$drain" || fail "drain: $(cat "$T/drain.out")"
must_happen 30 settled "node-4 node-5"
intact "$MNT0" "when an lm was killed"

say "the others have no room: refused, with figures"
for ((i = 0; i < 8; i++)); do
    head -c 12000000 /dev/zero >"$MNT0/fill$i"
done
used() # MORE-THAN LESS-THAN
{
    cm_ status --json | jq -e --argjson more "$1" --argjson less "$2" '[.nodes[].memory_used] | add | . > $more and . < $less'
}
must_happen 20 used 160000000 1e12
expect_fail 1 cm_ drain node-4
grep -qE "1 node can't hold the data: .* are used, and those that stay have room for" "$T/expect.out" ||
    fail "$(cat "$T/expect.out")"
settled "node-4 node-5" || fail "something has changed: $(cm_ status)"
intact "$MNT1" "when it was refused"
rm -r "$MNT0"/fill* "$MNT0"/one "$MNT0"/two
must_happen 30 used 0 130000000
cm_ drain node-5 || fail "drain of all but one"
intact "$MNT0" "on the last node"
fsck_silent
deployment_stop
