#!/usr/bin/env bash
# Nodes that are told to end and take along what no other has room for: it is said before, and --on-end checkpoint:DIR saves
# it before; likewise when all are told. Nothing is lost that way.
# ctest: release waits timeout=180
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

ALLOW_LOG='lm-gone|scale|killed|connect|closed|partition|drain|is gone|left-behind|unreachable|departures'
MEMORY=256M
SAVE=$T/save

end_job() # NODE…
{
    local node
    for node in "$@"; do
        kill -TERM "$(cut -d' ' -f1 "$STATE/$node/lm.pid")"
    done
}

fill() # COUNT, each of 10 MB
{
    local i
    for ((i = 0; i < $1; i++)); do
        head -c 10000000 /dev/urandom >"$MNT0/fill$i"
    done
    (cd "$MNT0" && sha256sum fill*) >"$T/sums"
}

intact()
{
    (cd "$MNT0" && sha256sum --quiet -c "$T/sums") || fail "files have changed $1"
}

say "what is refused"
expect_fail 2 cm_ start --nodes 1 --memory 128M --on-end "checkpoint:relative"
grep -q "give checkpoint:/DIR" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
expect_fail 2 cm_ start --nodes 1 --memory 128M --mount "$T/mnt%n" --on-end "checkpoint:$T/mnt0/save"
grep -q "is in the mount" "$T/expect.out" || fail "says $(cat "$T/expect.out")"

mkdir -m 777 "$T/open"
mkdir "$T/others"
cm start --name other --state-dir "$T/o" --nodes 1 --memory 64M
cm checkpoint --name other --state-dir "$T/o" "$T/others"
cm stop --name other --state-dir "$T/o"
for dir in /dev/null "$T/open" "$T/others"; do
    expect_fail 1 cm_ start --nodes 1 --memory 128M --on-end "checkpoint:$dir"
    grep -qE "on-end: .*(Not a directory|others may write|holds a checkpoint of deployment other)" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
done

say "all of them are told: what is stored is saved first"
deployment_start 2 --partitions 8 --grace 60 --on-end "checkpoint:$SAVE"
fill 3
end_job node-0 node-1
must_happen 60 none_of lm
event_says checkpointed "$SAVE" || fail "no checkpoint: $(cm_ events)"
! event_says checkpoint-failed . || fail "two at once: $(cm_ events)"
event_says all-leave "what is stored is in the checkpoint in $SAVE" || fail "$(cm_ events)"
deployment_stop

say "no room for all of it: it is said, and saved, and what fits moves"
deployment_start 2 --partitions 8 --grace 60 --restore "$SAVE" --on-end "checkpoint:$SAVE"
intact "in the checkpoint"
fill 26
used() { cm_ status --json | jq -e '[.nodes[].memory_used] | add > 250000000'; }
must_happen 20 used
moved_there() { grep -c '"moved".*node-0 to node-1' "$STATE/events.jsonl" || true; }
before=$(moved_there)
end_job node-1
must_happen 30 event_says will-lose "others have room for .*a checkpoint is written to $SAVE"
will_lose() { cm_ status --json | jq -e '.will_lose > 0' && cm_ status | says "^will lose: "; }
must_happen 30 will_lose
must_happen 60 event_says checkpointed "$SAVE"
must_happen 60 event_says moved "node-1 to node-0"
one_lm() # told again, which ends it at once where a second has gone by
{
    [ "$(pids_of lm | wc -l)" = 1 ] || { end_job node-1 && false; }
}
must_happen 60 one_lm
equal "$before" "$(moved_there)" "partitions that have moved to the node that leaves: $(cm_ events)"
deployment_stop
deployment_start 3 --partitions 8 --restore "$SAVE"
intact "in the second checkpoint"
deployment_stop
