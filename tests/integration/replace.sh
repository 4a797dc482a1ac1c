#!/usr/bin/env bash
# cm replace: a node comes in the place of one, while files are written; of one that is dead, with replicas, nothing is lost.
# When none comes, and when it is given up, all is as before; a new cm goes on with it. (On a machine that is named:
# provider_ssh; refused without replicas: forget_lost.)
# ctest: release timeout=240
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq

ALLOW_LOG='partition|did not take|client-behind|session|replica|lm-gone|joining failed|disconnected|expired|beat|scale|status 7'
MEMORY=256M
FILES_MOST=40
START="test ! -e $T/broken-{name} || exit 7; while [ -e $T/late-{name} ]; do sleep 0.1; done; exec {lm}"

settled() # NODES: these and no others, whole, none of them about to leave
{
    cm_ status --json | jq -e --arg nodes "$1" '.state == "running" and ([.nodes[].name] | sort | join(" ")) == $nodes and
        all(.nodes[]; .state == "up" and .partitions > 0) and .unprotected == 0' >/dev/null
}

deployment_start 3 --replicas 1 --partitions 19 --rebalance off --provider exec --first-address 127.0.0.1 --exec-start "$START"
head -c 20M /dev/urandom >"$MNT0/data"
sum=$(sha256sum <"$MNT0/data")
await_protected

say "what can't work"
expect_fail 2 cm_ replace
expect_fail 1 cm_ replace node-7
grep -q 'no node has the name or address "node-7"' "$T/expect.out" || fail "$(cat "$T/expect.out")"
expect_fail 1 cm_ replace node-1 tux4
grep -q "tux4: the provider exec chooses the machine itself" "$T/expect.out" || fail "$(cat "$T/expect.out")"
cm_ replace --dry-run --json node-1 >"$T/plan"
jq -e '.from == 3 and .to == 3 and .partitions_moved == 6 and all(.moves[]; .from == 1 and .to == 3)' "$T/plan" ||
    fail "plan: $(cat "$T/plan")"
settled "node-0 node-1 node-2" || fail "something has changed: $(cm_ status)"

say "while a mount writes"
write_files "$MNT0" one &
writer=$!
must_happen 10 [ -e "$T/one.sums" ]
files_grow one
mkdir "$T/mnt3"
cm_ replace 127.0.0.2 --json >"$T/report" || fail "replace: $(cat "$T/report")"
jq -e '.from == 3 and .to == 3 and .partitions_moved == 6' "$T/report" || fail "report: $(cat "$T/report")"
touch "$T/stop"
wait "$writer"
must_happen 30 settled "node-0 node-2 node-3"
event_says scale 'by the operator \(replace 127.0.0.2\)' || fail "no event says what is replaced"
! mountpoint -q "$MNT1" || fail "$MNT1 is still mounted"
[ ! -s "$T/one.failed" ] || fail "writes failed: $(head -3 "$T/one.failed")"
check_files "$T/mnt3" one

say "none comes"
touch "$T/broken-node-4"
expect_fail 1 cm_ replace node-3
grep -q "node-4" "$T/expect.out" || fail "$(cat "$T/expect.out")"
must_happen 10 settled "node-0 node-2 node-3"

say "given up before it has come"
touch "$T/late-node-5"
cm_ replace node-3 >"$T/replace.out" 2>&1 &
replace=$!
must_happen 10 jq -e '.scale.step == "come"' "$STATE/cm.json"
cm_ scale --cancel
! wait "$replace" || fail "a change that was cancelled has succeeded"
must_happen 10 settled "node-0 node-2 node-3"

say "cm is killed, and a machine too"
await_protected
die node-2
touch "$T/late-node-6"
cm_ replace node-2 >"$T/replace.out" 2>&1 &
replace=$!
must_happen 30 jq -e '.scale.step == "come"' "$STATE/cm.json"
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
! wait "$replace" || fail "cm replace says all is well: $(cat "$T/replace.out")"
must_happen 10 none_of cm
cm_ start || say "cm start: what is dead is missing"
rm "$T/late-node-6"
must_happen 60 settled "node-0 node-3 node-6"
equal "$sum" "$(sha256sum <"$MNT0/data")" "data at the end"
fsck_clean
deployment_stop
