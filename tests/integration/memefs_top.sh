#!/usr/bin/env bash
# memefs top: on terminals of several sizes, its keys and pages; as text and JSON, and to whom it shows files; a
# client that does not answer; and its end by a signal.
# ctest: waits timeout=90
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq python3 setpriv
/usr/bin/python3 -c 'import pyte' 2>/dev/null || skip "python3-pyte is not installed"

# on SIZE [VARIABLE=VALUE…]: memefs top in a terminal; the script is on standard input.
on()
{
    local size=$1
    shift
    env -u NO_COLOR TERM=xterm-256color LC_ALL=C.UTF-8 "$@" \
        timeout 60 /usr/bin/python3 "$HARNESS_DIR/terminal" "$size" \
        "$MEMEFS_BIN/memefs" top "$MNT0" || fail "on a terminal of $size, $*"
}

deployment_start 2 --partitions 8
mkdir -p "$MNT0/busy/below" "$MNT0/quiet"

# Work that is known: half of it writes to one file, and much of the rest looks for what is not there.
python3 - "$MNT0" <<'PYTHON' &
import os, sys, time
top = sys.argv[1]
fd = os.open(top + "/busy/below/written", os.O_CREAT | os.O_WRONLY, 0o644)
end = time.monotonic() + 80
i = 0
while time.monotonic() < end:
    os.pwrite(fd, b"x" * 3000, 0)
    os.mkdir(f"{top}/quiet/d{i}")
    try:
        os.rmdir(f"{top}/quiet/none{i}")
    except FileNotFoundError:
        pass
    i += 1
    time.sleep(0.002)
PYTHON
worker=$!

say "as text and JSON"
works() # FILTER
{
    memefs top "$MNT0" --json >"$T/json" && jq -e "$@" "$T/json" >/dev/null
}
must_happen 20 works '.operations_rate > 10 and .written_rate > 1000 and
    any(.operations[]; .name == "write" and .rate > 3 and .p50_ms > 0 and .p50_ms <= .p99_ms and .p99_ms <= .max_ms * 2) and
    any(.operations[]; .name == "mkdir" and .rate > 3 and .all > 10) and
    ([.operations[].rate] | add) > .operations_rate * 0.9 and any(.nodes[]; .rate > 0 and .mean_ms > 0)'
must_happen 20 works '.files[0].name == "busy/below/written" and .files[0].share > 0.1 and .files[0].bytes_rate > 0 and
    any(.directories[0:2][]; .name == "quiet") and (.processes[0].name | startswith("python3["))'
memefs top "$MNT0" --once >"$T/text" </dev/null || fail "--once"
grep -qE '^write +[1-9]' "$T/text" || fail "text: $(cat "$T/text")"
grep -qE ' busy/below/written$' "$T/text" || fail "no files: $(cat "$T/text")"
setpriv --reuid 65534 --regid 65534 --clear-groups "$MEMEFS_BIN/memefs" top "$MNT0" --once >"$T/text" 2>&1 ||
    fail "not for everybody: $(cat "$T/text")"
grep -q '^files and processes: only for root' "$T/text" || fail "files for everybody: $(cat "$T/text")"
grep -qE '^mkdir +[1-9]' "$T/text" || fail "no operations for everybody: $(cat "$T/text")"
expect_fail 1 memefs top "$T" --once
# By hand: what memefs top reads.
jq -e '.requests > 0 and (.files | length) > 0' "$MNT0/.memefs/hot.json" >/dev/null || fail "hot.json"
grep -q 'busy/below/written' "$MNT0/.memefs/hot" || fail "hot: $(cat "$MNT0/.memefs/hot")"

say "80x24"
on 80x24 <<END
see ^$MNT0
fits
see [1-9][0-9]* ops/s +read .* write .* p50 .* by rate
see ^OPERATION +OPS/s +ERR/s +P50 +P99 +MAX +BUSY
see ^>.* +[1-9][0-9]* +[0-9]+ +[0-9.]+ [um]s
see ^ (write|mkdir|lookup) +█
see ^ *[0-9.]+% .* busy/below/written
see DIRECTORY
see ^ *[0-9.]+% .* python3\[$worker\]
see ^q quit
color
keys n
see by name
keys j
see ^>
keys \r
see ^since the mount
keys \e
see ^OPERATION
keys f
see ^SHARE .*FILE
keys d
see ^SHARE .*DIRECTORY
keys u
see ^SHARE .*PROCESS
keys o
see ^ *NODE +PARTITIONS +TRIPS/s
keys o
see ^OPERATION
keys h
see operations by rate, time, latency
keys h
keys p
see PAUSED
keys p
gone PAUSED
keys e
see by errors
size 30x6
see too small
size 120x40
see ^OPERATION
fits
keys q
end 0
END

say "other terminals, and a client that hangs"
client=$(cut -d' ' -f1 "$STATE/node-0/client.pid")
on 100x30 LC_ALL=C NO_COLOR=1 <<'END'
see ^.write +#
fits
ascii
nocolor
signal TERM
end 143
END
(
    sleep 1.5
    kill -STOP "$client"
    sleep 8
    kill -CONT "$client"
) &
on 80x24 <<END
see ^OPERATION
see the client does not answer
gone the client does not answer
keys q
end 0
END
wait $!
kill "$worker"
wait "$worker" || true
deployment_stop
