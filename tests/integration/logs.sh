#!/usr/bin/env bash
# Logs for programs: JSON of cm, lm and mounts, whatever a path has in it; opened anew on SIGHUP, as logrotate asks
# for; and entries of the journal with fields, where stderr is journald's.
# ctest: timeout=60
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq python3 logrotate

deployment_start 1 --log-format json --partitions 2
logs=("$STATE/cm.log" "$STATE/node-0/lm.log" "$STATE/node-0/client.log")
pids=("$STATE/cm.pid" "$STATE/node-0/lm.pid" "$STATE/node-0/client.pid")

say "each line is an object"
odd=$T/$'m\xff"\\\n\xc3\xa9'
mkdir "$odd"
memefs mount --name "$NAME" --state-dir "$STATE" --log "$T/hand.log" -o log_format=json "$odd" || fail "memefs mount"
for log in "${logs[@]}" "$T/hand.log"; do
    jq -se 'length > 0 and all(.[]; (.time | test("^[0-9-]{10}T[0-9:]{8}[.][0-9]{6}Z$")) and
        (.level | IN("error", "warn", "info", "debug")) and .pid > 1 and .program and .thread and .area and .message)' \
        "$log" >/dev/null || fail "$log: $(cat "$log")"
    equal "$(wc -l <"$log")" "$(jq -s length "$log")" "objects in $log"
    iconv -f UTF-8 -t UTF-8 "$log" >/dev/null || fail "$log is no UTF-8"
done
# shellcheck disable=SC1003
jq -se --arg name '/m\xff"\'$'\n\xc3\xa9: mounted' 'any(.[]; .message | endswith($name))' "$T/hand.log" >/dev/null ||
    fail "the path: $(grep mounted "$T/hand.log")"
memefs umount "$odd"

say "SIGHUP"
for i in 0 1 2; do
    mv "${logs[i]}" "$T/moved"
    kill -HUP "$(cut -d' ' -f1 "${pids[i]}")"
    must_happen 10 grep -q "log opened anew" "${logs[i]}"
    kill -USR1 "$(cut -d' ' -f1 "${pids[i]}")" # has it log its figures
    must_happen 10 grep -q '"area":"stats"' "${logs[i]}"
    ! grep -q '"area":"stats"' "$T/moved" || fail "the old ${logs[i]} goes on"
done

say "logrotate"
memefs mount --name "$NAME" --state-dir "$STATE" "$odd" || fail "memefs mount"
hand=$(compgen -G "$STATE/mount-*.log") || fail "no log of a mount by hand"
sed "s,/run/memefs/\*,$STATE,g; s/size 10M/size 10/" "$HARNESS_DIR/../../scripts/packaging/logrotate" >"$T/logrotate.conf"
chmod 644 "$T/logrotate.conf"
for i in 1 2 3; do
    logrotate --state "$T/logrotate.state" "$T/logrotate.conf" || fail "logrotate"
    for log in "${logs[@]}"; do
        must_happen 10 grep -q "log opened anew" "$log"
        [ -s "$log.1" ] || fail "$log is not rotated: $(ls "$STATE" "$STATE/node-0")"
    done
    # shellcheck disable=SC2046
    kill -USR1 $(pids_of memefs)
    must_happen 10 grep -q "end of figures" "$hand"
    [ -s "$hand.1" ] || fail "$hand is not rotated"
done
[ ! -e "$STATE/cm.log.3" ] || fail "more than two old ones"
memefs umount "$odd"
deployment_stop
[ ! -e "$STATE" ] || fail "cm stop leaves: $(ls -R "$STATE")"

say "the journal"
mkdir -p /run/systemd
mount -t tmpfs none /run/systemd
mkdir /run/systemd/journal
python3 - >"$T/entries" <<'PYTHON' &
import json, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("/run/systemd/journal/socket")
while True:
    data, entry = s.recv(1 << 16), {}
    while data:
        head, data = data.split(b"\n", 1)
        if b"=" in head:
            name, value = head.split(b"=", 1)
        else:
            n = int.from_bytes(data[:8], "little")
            name, value, data = head, data[8:8 + n], data[9 + n:]
        entry[name.decode()] = value.decode()
    print(json.dumps(entry), flush=True)
PYTHON
journal=$!
must_happen 10 [ -S /run/systemd/journal/socket ]
: >"$T/stderr"
# The very stream that the variable names, as a service has it; what cm starts has another stderr.
stream=$(stat -c %d:%i "$T/stderr")
JOURNAL_STREAM=$stream cm start --foreground --name "$NAME" --state-dir "$STATE" --nodes 1 \
    --memory 64M --partitions 1 2>"$T/stderr" &
has_entry() # FILTER
{
    jq -se "any(.[]; $1)" "$T/entries" >/dev/null
}
must_happen 20 has_entry '.SYSLOG_IDENTIFIER == "cm" and .PRIORITY == "6" and .MEMEFS_AREA == "event" and
    .MEMEFS_THREAD and .CODE_FILE == "events.c" and .CODE_FUNC and (.MESSAGE | test("^cm: running"))'
! grep "Z info cm" "$T/stderr" || fail "it is in stderr, too"
! has_entry '.SYSLOG_IDENTIFIER == "lm"' || fail "lm has a file, and writes to the journal"
cm=$(cut -d' ' -f1 "$STATE/cm.pid")
kill -HUP "$cm"
kill -USR1 "$cm"
must_happen 10 has_entry '.MEMEFS_AREA == "stats"'
! has_entry '.MESSAGE | test("opened anew")' || fail "without a file one is opened anew"
kill -TERM "$cm"
must_happen 20 gone "$cm"
kill "$journal"
wait "$journal" || true
umount /run/systemd
