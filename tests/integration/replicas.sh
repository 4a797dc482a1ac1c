#!/usr/bin/env bash
# --replicas 1: a redis process that is killed, and a node of which everything is killed, cost nobody a file that
# was closed; what was unprotected is protected again; scaling goes on as without replicas.
# ctest: timeout=240
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq python3 setfattr

ALLOW_LOG='partition|lm-gone|a client did not take|client-behind|written data are lost'
FILES_MOST=150

MEMORY=512M deployment_start 3 --replicas 1 --partitions 12
await_protected
equal 1 "$(cm_ status --json | jq .replicas)" "replicas"
parts=$(cm_ status --json | jq .partitions)
equal "$parts" "$(cm_ status --json | jq '[.nodes[].replicas] | add')" "replicas on nodes"
placed()
{
    cm_ status --json | jq -c "[.placement[] | $1] | sort"
}
equal "$(jq -c '[.parts[] | "node-\(.node)", "node-\(.replica_node)"] | sort' "$STATE/cm.json")" \
    "$(placed '.node, .replica')" "nodes by cm status"
equal "[]" "$(placed 'select(.node == .replica)')" "replicas beside their partition"
grep -q '^  node-0, replica on node-[12]:\( [0-9]*\)*$' <(cm_ status) || fail "cm status names no replica's node"

# Files that go when they have been read twice: those of "read" were once before the process is killed, those of "held" are open
# meanwhile.
mkdir "$MNT0/read" "$MNT0/held"
setfattr -n user.memefs.delete-after-reads -v 2 "$MNT0/read"
setfattr -n user.memefs.delete-after-reads -v 2 "$MNT0/held"
for n in {1..60}; do echo "$n" | tee "$MNT0/read/$n" >"$MNT0/held/$n"; done
cat "$MNT1"/read/* >/dev/null
python3 - "$MNT1/held" "$T/let-go" <<'END' &
import os, sys, time
held = [open(f"{sys.argv[1]}/{name}") for name in os.listdir(sys.argv[1])]
open(sys.argv[2] + ".held", "w").close()
while not os.path.exists(sys.argv[2]):
    time.sleep(0.05)
assert [file.read() for file in held] == [os.path.basename(file.name) + "\n" for file in held]
END
holder=$!
must_happen 30 test -e "$T/let-go.held"
sleep 1 # partitions are told

say "a redis process is killed under load"
touch "$T/load.sums"
write_files "$MNT0" load &
files_grow load
read -r victim < <(primaries 1)
since=$(epoch_ms)
kill -KILL "$victim"
must_happen 30 more_events failed-over 0
files_grow load
await_protected
say "longest pause between two files: $(longest_pause load "$since") ms"
check_files "$MNT2" load

say "readings are counted by the replica, but not those of what the process had that was killed"
failed=$(cm_ events | sed -n 's/.* failed-over.*partition \([0-9]*\).*/\1/p' | sort -u | xargs)
[ -n "$failed" ] || fail "which partition has failed over? $(cm_ events)"
touch "$T/let-go"
wait $holder || fail "what was open when its partition failed over"
sleep 1 # partitions are told, and names would go
equal "60 60" "$(find "$MNT0/read" -type f | wc -l) $(find "$MNT2/held" -type f | wc -l)" "files that were read once"
find "$MNT0/held" -type f | while read -r file; do
    [[ " $failed " != *" $(home_of "$file") "* ]] || echo "${file##*/}"
done | sort >"$T/uncounted"
cat "$MNT2"/read/* "$MNT2"/held/* >/dev/null
are_left() # DIRECTORY NAMES
{
    [ "$(find "$MNT0/$1" -type f -printf '%f\n' | sort | xargs)" = "$2" ]
}
must_happen 60 are_left read ""
must_happen 60 are_left held "$(xargs <"$T/uncounted")"
xargs -r -I {} cat "$MNT1/held/{}" <"$T/uncounted" >/dev/null
must_happen 60 are_left held ""

say "a replica is killed: nothing happens but that there is another one"
read -r victim < <(replicas 0)
kill -KILL "$victim"
must_happen 30 more_events replica-dropped 0
files_grow load
await_protected

say "a replica hangs: its partition goes without it after a while"
read -r victim < <(replicas 1)
before=$(events_of replica-dropped) since=$(epoch_ms)
kill -STOP "$victim"
must_happen 60 more_events replica-dropped "$before"
files_grow load
must_happen 60 gone "$victim"
await_protected
say "longest pause between two files: $(longest_pause load "$since") ms"

say "everything of a node is killed"
before=$(events_of failed-over)
victims="$(primaries 2) $(replicas 2) $(cut -d' ' -f1 "$STATE/node-2/lm.pid")"
since=$(epoch_ms)
# shellcheck disable=SC2086
kill -KILL $victims
must_happen 30 more_events failed-over "$before"
files_grow load
await_protected
say "longest pause between two files: $(longest_pause load "$since") ms"
check_files "$MNT0" load

say "the nodes change"
cm_ scale 4 >/dev/null || fail "scale to 4"
cm_ scale 2 >/dev/null || fail "scale to 2"
files_grow load
await_protected
touch "$T/stop"
wait
check_files "$MNT1" load
# What was under way when a process was killed may fail (docs/design/consistency.md, "Replicas").
equal '' "$(grep -v ': Input/output error$' "$T/load.failed")" "writes that failed"
[ "$(wc -l <"$T/load.failed")" -le 2 ] || fail "writes that failed: $(tail -3 "$T/load.failed")"
fsck_clean
