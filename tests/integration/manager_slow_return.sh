#!/usr/bin/env bash
# A Local Manager that ends at once each time it is started, and then takes long to connect, as on a loaded machine:
# cm counts the silence of the new process, not of those before it, and does not kill it.
# ctest: timeout=180 waits long=35
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"

ALLOW_LOG='lm-gone|killed|exited|connect|closed'
MEMORY=128M
events_of() { jq -rs --arg what "$1" 'map(select(.what == $what)) | length' "$STATE/events.jsonl"; }
more_events() { [ "$(events_of "$1")" -gt "$2" ]; }

# cm takes the lm beside itself.
mkdir "$T/bin"
cp "$MEMEFS_BIN/cm" "$T/bin"
ln -s "$MEMEFS_BIN/memefs" "$MEMEFS_BIN/memefs-partition.so" "$T/bin"
cat >"$T/bin/lm" <<END
#!/bin/sh
[ ! -e $T/ends ] || exit 1
[ ! -e $T/slow ] || sleep 6
exec $MEMEFS_BIN/lm "\$@"
END
chmod +x "$T/bin/lm"
MEMEFS_BIN=$T/bin
PATH=$MEMEFS_BIN:$PATH

deployment_start 1
say "the Local Manager ends, and ends again"
touch "$T/ends"
kill -KILL "$(cut -d' ' -f1 "$STATE/node-0/lm.pid")"
must_happen 60 more_events lm-restarted 3 # after 1, 2, 4 and 8 s, so that the next comes after 16 s
touch "$T/slow"
rm "$T/ends"
say "it takes 6 s to connect"
must_happen 40 more_events joined 1
equal 0 "$(events_of lm-hung)" "Local Managers taken for hung"
equal 5 "$(events_of lm-restarted)" "starts of a Local Manager"
fsck_silent
deployment_stop
