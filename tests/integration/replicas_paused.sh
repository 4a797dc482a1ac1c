#!/usr/bin/env bash
# --replicas 1: a redis process, and then everything of a node, is stopped (SIGSTOP), replaced, and goes on later.
# What it held is nobody's any more: no closed file is lost or wrong, and the node gets replicas of the others.
# ctest: slow timeout=400
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq

ALLOW_LOG='partition|did not take|client-behind|session|written data are lost'
FILES_MOST=150

MEMORY=512M deployment_start 3 --replicas 1 --partitions 12
await_protected
touch "$T/load.sums"
write_files "$MNT0" load &
files_grow load

say "a redis process is stopped"
read -r victim < <(primaries 1)
since=$(epoch_ms)
kill -STOP "$victim"
must_happen 60 serves_not 1 "$victim"
files_grow load
say "longest pause between two files: $(longest_pause load "$since") ms"
kill -CONT "$victim" 2>/dev/null || true # it may have been ended already
must_happen 60 gone "$victim"
await_protected
check_files "$MNT2" load

say "everything of a node is stopped"
victims="$(primaries 1) $(replicas 1) $(cut -d' ' -f1 "$STATE/node-1/lm.pid")"
count=$(primaries 1 | wc -l)
before=$(events_of failed-over) since=$(epoch_ms)
# shellcheck disable=SC2086
kill -STOP $victims
must_happen 60 more_events failed-over $((before + count - 1))
files_grow load
say "longest pause between two files: $(longest_pause load "$since") ms"
check_files "$MNT2" load

say "it goes on"
# shellcheck disable=SC2086
kill -CONT $victims
await_protected
files_grow load
touch "$T/stop"
wait
check_files "$MNT1" load
fsck_clean
