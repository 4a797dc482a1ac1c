#!/usr/bin/env bash
# What mounts count: operations that are known in number are found, exactly, in what lm has of the mount that
# did them, in none else's, and in the logs after SIGUSR1. Figures come again to a Local Manager that was
# killed or stopped, tables are not held up meanwhile, and they go with their client.
# ctest: timeout=120 waits
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq python3

deployment_start 2 --partitions 8

# stats NODE [ARGUMENT…]
stats()
{
    local node=$1
    shift
    timeout 30 memefs stats --name "$NAME" --state-dir "$STATE" --lm "$STATE/node-$node/lm.sock" "$@"
}

# figure NODE MOUNT NAME [LABELS]: its value, 0 when there is none.
figure()
{
    stats "$1" --json | jq --arg mount "$2" --arg name "$3" --arg labels "${4:-}" '
        [.sources[] | select(.mount == $mount) | .figures[] |
         select(.name == $name and .labels == $labels) | .value] | add // 0'
}

is_figure() # VALUE NODE MOUNT NAME [LABELS]
{
    [ "$(figure "${@:2}")" = "$1" ]
}

# counted VALUE OPERATION: so often has the first mount done it.
counted()
{
    must_happen 20 is_figure "$1" 0 "$MNT0" memefs_operation_duration_seconds "operation=\"$2\""
}

python3 - "$MNT0" <<'PYTHON' || fail "the operations"
import errno, os, sys

top = sys.argv[1]
for i in range(7):
    os.mkdir(f"{top}/dir{i}")
for i in range(5):
    os.rmdir(f"{top}/dir{i}")
for i in range(11):
    fd = os.open(f"{top}/file{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    for _ in range(3):
        assert os.write(fd, b"x" * 1000) == 1000
    os.close(fd)
for i in range(4):
    os.rename(f"{top}/file{i}", f"{top}/renamed{i}")
for i in range(3):
    os.unlink(f"{top}/renamed{i}")
for i in range(6):
    os.symlink("somewhere", f"{top}/symlink{i}")
for i in range(9):
    try:
        os.removexattr(f"{top}/file10", "user.none")
        raise SystemExit("an attribute that nobody has set")
    except OSError as e:
        assert e.errno == errno.ENODATA
PYTHON
counted 7 mkdir
counted 5 rmdir
counted 11 create
counted 33 write
counted 4 rename
counted 3 unlink
counted 6 symlink
equal 33000 "$(figure 0 "$MNT0" memefs_written_bytes_total)" "bytes written"
equal 9 "$(figure 0 "$MNT0" memefs_operation_errors_total 'operation="removexattr",errno="ENODATA"')" "errors"
equal 0 "$(figure 0 "$MNT0" memefs_operation_errors_total 'operation="mkdir",errno="ENOSPC"')" "other errors"
equal 0 "$(figure 1 "$MNT1" memefs_operation_duration_seconds 'operation="mkdir"')" "the other mount's"
equal 4 "$(stats 1 --json | jq '.sources[] | select(.program == "lm").figures[] |
    select(.name == "memefs_lm_partitions").value')" "the Local Manager's own"

# By node, what .memefs/nodes has of it at some time between.
trips()
{
    jq -c '[.sources[].figures[]? | select(.name == "memefs_partition_round_trip_seconds") |
        {node: (.labels | capture("to=\"node-(?<n>[0-9]+)\"").n | tonumber), n: .value}] | sort_by(.node)' "$MNT0/.memefs/stats.json"
}
trips >"$T/before"
jq -c '[.nodes[] | {node, n: .round_trips}]' "$MNT0/.memefs/nodes.json" >"$T/nodes"
trips >"$T/after"
jq -es 'map(length) == [2, 2, 2] and ([range(2) as $i | .[0][$i].n - 5 <= .[1][$i].n and .[1][$i].n <= .[2][$i].n and
    .[1][$i].n > 10] | all)' "$T/before" "$T/nodes" "$T/after" >/dev/null || # -5: of calls that failed
    fail "round trips by node: $(cat "$T/before" "$T/nodes" "$T/after")"

# What it knows already, by kind; and what it has to ask for, as another mount has made it.
for i in 1 2 3; do : >"$MNT1/elsewhere$i"; done
before=$(figure 0 "$MNT0" memefs_cache_misses_total 'cache="names"')
python3 - "$MNT0" <<'PYTHON' || fail "the caches"
import os, sys, time

top = sys.argv[1]
for i in range(10):
    assert not os.path.lexists(f"{top}/dir5/none{i}")
with open(f"{top}/dir5/file", "wb") as f:
    f.write(b"x" * 3000)
for i in range(3):
    time.sleep(0.3) # the kernel has attributes for a quarter of a second at most
    os.stat(f"{top}/dir5/file")
    os.stat(f"{top}/elsewhere{i + 1}")
PYTHON
hits() { figure 0 "$MNT0" memefs_cache_hits_total "cache=\"$1\""; }
are_hits() { [ "$(hits absent)" -ge 10 ] && [ "$(hits attributes)" -ge 3 ] && [ "$(hits names)" -ge 1 ]; }
are_misses() { [ "$(figure 0 "$MNT0" memefs_cache_misses_total 'cache="names"')" -ge $((before + 3)) ]; }
must_happen 20 are_hits
must_happen 20 are_misses
grep -E '^memefs_cache_hits_total\{cache="absent"\} ' "$MNT0/.memefs/stats" >/dev/null || fail "$(cat "$MNT0/.memefs/stats")"

# Who waits for a lock, and only who does.
equal 0 "$(figure 0 "$MNT0" memefs_lock_wait_seconds)" "waits for locks"
flock "$MNT0/file10" sleep 1 &
sleep 0.3
flock "$MNT0/file10" true
wait
must_happen 20 is_figure 1 0 "$MNT0" memefs_lock_wait_seconds

# A duration is in one bucket, and none is below or beyond what this took.
stats 0 --json | jq -e --arg mount "$MNT0" '.sources[] | select(.mount == $mount) | .figures[] |
    select(.labels == "operation=\"create\"") |
    .kind == "histogram" and ([.buckets[].count] | add) == .value and .sum > 0 and .p50 > 0 and .p50 <= .p90 and .p90 <= .p99 and .p99 < 60' \
    >/dev/null || fail "the durations: $(stats 0 --json)"

# For people: of one mount, or of all.
stats 0 "$MNT0" >"$T/text"
grep -qE 'operation_duration_seconds\{operation="mkdir"\} +7 +[0-9.]+ ' "$T/text" || fail "text: $(cat "$T/text")"
! grep -q '^lm ' "$T/text" || fail "more than was asked for"
stats 0 >"$T/text"
grep -q '^lm ' "$T/text" || fail "not all: $(cat "$T/text")"
expect_fail 1 stats 0 "$MNT1"
expect_fail 1 memefs stats --name "$NAME" --state-dir "$STATE" --lm "$T/none.sock"

# Another Local Manager takes the place of a dead one, and is told all of it.
kill -KILL "$(cut -d' ' -f1 "$STATE/node-0/lm.pid")"
mkdir "$MNT0/without"
counted 8 mkdir

# One that hangs costs its clients nothing, and has what is new when it goes on.
lm=$(cut -d' ' -f1 "$STATE/node-0/lm.pid")
kill -STOP "$lm"
for i in $(seq 30); do
    mkdir "$MNT0/meanwhile$i"
done
sleep 5
kill -CONT "$lm"
counted 38 mkdir

# With a new table, too, and from the next mount's beginning.
cm_ scale 3 || fail "cm scale"
mkdir "$MNT0/after"
counted 39 mkdir
timeout 30 memefs umount "$MNT1" || fail "memefs umount"
no_figures()
{
    ! stats 1 "$MNT1"
}
must_happen 20 no_figures

# logged FILE REGEX: a line of the log.
logged()
{
    grep -qE "$2" "$1"
}
kill -USR1 "$(cut -d' ' -f1 "$STATE/node-0/client.pid")" "$(cut -d' ' -f1 "$STATE/node-0/lm.pid")" \
    "$(cut -d' ' -f1 "$STATE/cm.pid")"
must_happen 10 logged "$STATE/node-0/client.log" 'stats: memefs_operation_duration_seconds\{operation="mkdir"\} count=39 '
must_happen 10 logged "$STATE/node-0/lm.log" 'stats: memefs_lm_tables_total [1-9]'
must_happen 10 logged "$STATE/cm.log" 'stats: memefs_cm_moved_partitions_total [1-9]'
deployment_stop
