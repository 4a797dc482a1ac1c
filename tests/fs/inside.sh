#!/usr/bin/env bash
# .memefs, the files about a mount: no listing shows it, what walks trees does not see it, its files can be
# read and by nobody changed, trace goes on while it is read, and ends with its reader.
# ctest: timeout=60
# shellcheck source=tests/support/fs_script.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/fs_script.sh"
need jq python3 setpriv

inside=$1/.memefs

refused() # ERRNO COMMAND…
{
    local want=$1
    shift
    if "$@" 2>"$scratch/error"; then
        fail "was possible: $*"
    fi
    grep -q "$want" "$scratch/error" || fail "$*: $(cat "$scratch/error")"
}

# Walkers of trees.
mkdir -p tree/below
printf 'text' >tree/below/file
# shellcheck disable=SC2010 # ls is what is asked for
! ls -a "$1" | grep memefs >/dev/null || fail "ls -a shows it"
[ -z "$(find "$1" -name .memefs)" ] || fail "find shows it"
tar -C "$1" -cf "$scratch/tar" . 2>/dev/null
! tar -tf "$scratch/tar" | grep '\.memefs' >/dev/null || fail "tar takes it along"
cp -a "$1/." "$scratch/copy"
[ ! -e "$scratch/copy/.memefs" ] || fail "cp -a takes it along"
! du -a "$1" | grep '\.memefs' >/dev/null || fail "du counts it"

# Contents. The kernel has not asked for the time of birth of anything before.
[ "$(stat --cached=never -c '%F %a %s %W' "$inside/stats")" = "regular empty file 444 0 0" ] || fail "stat: $(stat "$inside/stats")"
[ "$(find "$inside" -type f | wc -l)" -eq 14 ] || fail "find: $(find "$inside")"
grep -q 'memefs_operation_duration_seconds{operation="mkdir"}' "$inside/stats" || fail "stats"
jq -e '.sources[0].figures | length > 3' "$inside/stats.json" >/dev/null || fail "stats.json"
jq -e '.sources[0].figures | map({(.name): .value}) | add | .memefs_requests_under_way == 0 and (.memefs_requests_waiting // 0) == 0' \
    "$inside/stats.json" >/dev/null || fail "who reads is counted: $(tail -2 "$inside/stats")"
grep -q '^ *node partitions' "$inside/nodes" || fail "nodes: $(cat "$inside/nodes")"
jq -e '[.nodes[].round_trips] | add > 0' "$inside/nodes.json" >/dev/null || fail "nodes.json"
cat "$inside/slow" "$inside/slow.json" >/dev/null
jq -e --arg path "$1" 'any(.clients[]; .path == $path)' "$inside/clients.json" >/dev/null || fail "clients.json: $(cat "$inside/clients.json")"
grep -qE ' mounted ' "$inside/events" || fail "events: $(cat "$inside/events")"
cp "$inside/stats" "$scratch/stats"
[ -s "$scratch/stats" ] || fail "cp copies nothing"

# Nobody changes it.
refused denied touch "$inside/new"
refused denied rm -f "$inside/stats"
refused denied rm -rf "$inside"
refused denied rmdir "$inside"
refused exists mkdir "$inside"
refused denied mv "$inside" "$1/else"
refused denied mv "$inside/stats" "$1/else"
refused denied mv -T tree "$inside"
refused denied ln "$inside/stats" hard
refused denied ln -s x "$inside/link"
refused denied chmod 777 "$inside/trace"
refused denied setfattr -n user.x -v y "$inside/stats"
refused denied truncate -s 0 "$inside/stats"
for how in '>' '>>'; do
    ! bash -c "echo x $how '$inside/stats'" 2>/dev/null || fail "it can be written to with $how"
done
python3 - "$inside" <<'PYTHON'
import errno, os, sys
for flags in (os.O_RDWR, os.O_WRONLY, os.O_RDONLY | os.O_TRUNC, os.O_CREAT | os.O_EXCL | os.O_WRONLY):
    try:
        os.open(sys.argv[1] + "/stats", flags)
        raise SystemExit(f"opened with {flags:o}")
    except OSError as e:
        assert e.errno in (errno.EACCES, errno.EEXIST), e
assert os.listxattr(sys.argv[1] + "/stats") == []
PYTHON
[ -e "$inside/stats" ] || fail "it is gone"

# Of others' paths only the owner reads.
as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
"${as_nobody[@]}" cat "$inside/nodes" >/dev/null || fail "nodes is not for everybody"
refused denied "${as_nobody[@]}" cat "$inside/trace"
refused denied "${as_nobody[@]}" cat "$inside/slow"
refused denied "${as_nobody[@]}" cat "$inside/hot"

# A line for each request, live.
cat "$inside/trace.json" >"$scratch/trace" &
reader=$!
sleep 0.3
mkdir dir
printf 'some text' >dir/file
stat dir/none 2>/dev/null || true
mv dir/file dir/renamed
read -r _ <dir/renamed || true
printf 'two' >dir/two
python3 -c 'import ctypes
assert ctypes.CDLL(None).renameat2(-100, b"dir/renamed", -100, b"dir/two", 2) == 0 # RENAME_EXCHANGE'
printf 'more text' >>dir/renamed
traced()
{
    jq -e -s --arg path "${work##*/}/$2" "any(.[]; .op == \"$1\" and .path == \$path ${3:-})" "$scratch/trace" >/dev/null
}
sleep 0.3
traced mkdir dir || fail "mkdir is not told: $(cat "$scratch/trace")"
traced write dir/file 'and .bytes == 9 and .client_ms > 0' || fail "write: $(cat "$scratch/trace")"
traced create dir/file 'and .trips > 0 and (.places | length) > 0 and .partition_ms > 0 and .program == "bash"' ||
    fail "create: $(cat "$scratch/trace")"
traced lookup dir/none 'and .error == "ENOENT" and .program == "stat"' || fail "lookup: $(cat "$scratch/trace")"
traced open dir/renamed || fail "the new name: $(cat "$scratch/trace")"
traced write dir/renamed 'and .bytes == 9' || fail "names exchanged: $(cat "$scratch/trace")"

# What a process has open since before: of all its files at once, as one look at them has to do.
python3 - "$inside/trace.json" "${work##*/}" <<'PYTHON' || fail "paths of files that were open"
import json, os, sys, time
files = [os.open(f"open{i}", os.O_RDWR | os.O_CREAT) for i in range(100)]
trace = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
for fd in files:
    os.pwrite(fd, b"x", 0)
time.sleep(0.1)
got = b""
try:
    while True:
        got += os.read(trace, 1 << 20)
except BlockingIOError:
    pass
paths = {line["path"] for line in map(json.loads, got.splitlines()) if line["op"] == "write"}
assert paths >= {f"{sys.argv[2]}/open{i}" for i in range(100)}, paths
PYTHON

# A reader that waits can be killed.
kill -KILL "$reader"
SECONDS=0
wait "$reader" 2>/dev/null || true
[ "$SECONDS" -lt 3 ] || fail "a reader of trace was not to be killed"

# One that is too slow hears how much it has missed; one that goes by signals is interrupted.
python3 - "$inside/trace" <<'PYTHON'
import os, select, signal, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
try:
    os.read(fd, 65536)
    raise SystemExit("there should be nothing")
except BlockingIOError:
    pass
for i in range(6000):
    try:
        os.stat(f"none{i}")
    except FileNotFoundError:
        pass
got = b""
try:
    while True:
        got += os.read(fd, 1 << 20)
except BlockingIOError:
    pass
lines = got.decode().splitlines()
lost = [int(line.split()[0]) for line in lines if " lost: " in line]
assert lost and lost[0] > 1500, (len(lines), lost)
assert len(lines) + sum(lost) >= 6000, (len(lines), lost)
class Alarm(Exception):
    pass
def alarm(*_):
    raise Alarm
os.set_blocking(fd, True)
signal.signal(signal.SIGALRM, alarm)
signal.setitimer(signal.ITIMER_REAL, 0.3)
began = time.monotonic()
try:
    while True:
        os.read(fd, 65536)
except Alarm:
    pass
assert time.monotonic() - began < 3
PYTHON

# Each mount has its own.
if [ $# -gt 1 ]; then
    one=$(jq '.sources[0].pid' "$inside/stats.json") two=$(jq '.sources[0].pid' "$2/.memefs/stats.json")
    [ "$one" != "$two" ] || fail "both mounts tell of one"
fi
