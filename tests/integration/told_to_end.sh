#!/usr/bin/env bash
# SIGTERM to a node's lm, as at the end of a job: what it has moves to the others, and it leaves, bounded by --grace.
# What has not moved by then is said.
# ctest: release timeout=240
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq

ALLOW_LOG='lm-gone|scale|killed|connect|closed|partition|drain|is gone|left-behind|unreachable'
MEMORY=384M

settled() # NODES: these and no others
{
    cm_ status --json | jq -e --arg nodes "$1" '.state == "running" and ([.nodes[].name] | sort | join(" ")) == $nodes and
        all(.nodes[]; .state == "up" and .partitions > 0)' >/dev/null && [ "$(pids_of lm | wc -l)" = "$(wc -w <<<"$1")" ]
}

pid_in() # NODE PROGRAM
{
    cut -d' ' -f1 "$STATE/$1/$2.pid"
}

# end_job NODE…: SIGTERM to all that runs there, as a batch system does, but to the mounts' clients.
end_job()
{
    local node file
    for node in "$@"; do
        for file in "$STATE/$node"/{lm,redis-*}.pid; do
            kill -TERM "$(cut -d' ' -f1 "$file" 2>/dev/null)" 2>/dev/null || true # it may be gone by now
        done
    done
}

intact() # MOUNT WHEN
{
    (cd "$1" && sha256sum --quiet -c "$T/sums") || fail "files have changed $2"
}

fill() # COUNT
{
    local i
    for ((i = 0; i < $1; i++)); do
        head -c 3000000 /dev/urandom >"$MNT2/data$i"
    done
    (cd "$MNT2" && sha256sum data* >"$T/sums")
}

deployment_start 5 --max-nodes 8 --migration-rate 8M --grace 60
fill 8

say "one leaves while two mounts write"
touch "$T/one.sums" "$T/two.sums"
FILES_MOST=40 write_files "$MNT1" one &
one=$!
FILES_MOST=40 write_files "$MNT2" two &
two=$!
files_grow one
lm=$(pid_in node-0 lm)
end_job node-0
must_happen 30 settled "node-1 node-2 node-3 node-4"
touch "$T/stop"
wait "$one" "$two"
gone "$lm" || fail "its lm is still there"
event_says told-to-end "leaves within 60" || fail "no event"
for name in one two; do
    check_files "$MNT3" "$name"
    [ ! -s "$T/$name.failed" ] || fail "writes failed: $(head -3 "$T/$name.failed")"
done
intact "$MNT1" "when node-0 was told to end"
rm -r "$MNT1/one" "$MNT1/two"

say "two at once, and a third one meanwhile, with cm killed in the middle"
end_job node-1 node-3
must_happen 20 grep -q '"step":[[:space:]]*"copy"' "$STATE/cm.json"
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
must_happen 10 none_of cm
cm_ start >/dev/null || fail "cm start"
end_job node-4
must_happen 60 settled "node-2"
intact "$MNT2" "when three were told to end"
! event_says left-behind . || fail "something was left behind"
fsck_silent

say "all of them: nobody waits"
began=$SECONDS
end_job node-2
must_happen 20 none_of lm
[ $((SECONDS - began)) -lt 20 ] || fail "it took $((SECONDS - began)) s"
event_says all-leave "every node has been told to end" || fail "no event"
deployment_stop

say "no room for all of it: what fits moves, what does not is said when the grace is over"
rm -rf "$T/stop"
deployment_start 2 --partitions 8 --grace 4
for ((i = 0; i < 11; i++)); do
    head -c 30000000 /dev/zero >"$MNT0/fill$i"
done
used() { cm_ status --json | jq -e '[.nodes[].memory_used] | add > 250000000'; }
must_happen 20 used
lm=$(pid_in node-1 lm)
end_job node-1
must_happen 20 gone "$lm"
event_says left-behind "the grace is over: [1-9] partitions?, .* have not moved" || fail "$(cm_ events | tail)"
event_says moved "node-1 to node-0" || fail "nothing has moved"
deployment_stop

say "two at once are one, as of srun and Slurm; a later SIGTERM ends it at once"
deployment_start 2 --grace 600 --migration-rate 1M
fill 4
lm=$(pid_in node-1 lm)
kill -TERM "$lm"
sleep 0.1
kill -TERM "$lm"
must_happen 10 event_says told-to-end .
sleep 1.5
gone "$lm" && fail "it has ended at once"
kill -TERM "$lm"
must_happen 20 gone "$lm"
event_says left-behind "told to end twice" || fail "no event"
deployment_stop
