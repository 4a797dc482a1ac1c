#!/usr/bin/env bash
# What cm and lm say to the service manager that started them: READY=1 when they serve, WATCHDOG=1 twice in the
# time that it asks for, nothing while they hang, STOPPING=1 when they end; and nothing they start speaks for them.
# ctest: timeout=60
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need python3

# listen NAME: what comes to the socket $T/NAME goes to $T/NAME.said, as lines "PID TEXT".
listen()
{
    python3 - "$T/$1" >"$T/$1.said" <<'PYTHON' &
import os, socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
s.bind(sys.argv[1])
while True:
    text, extra, _, _ = s.recvmsg(4096, 100)
    print(struct.unpack("iII", extra[0][2])[0], text.decode(), flush=True)
PYTHON
    must_happen 10 [ -S "$T/$1" ]
}

said() # NAME TEXT
{
    grep -q " $2\$" "$T/$1.said"
}

count() # NAME
{
    grep -c ' WATCHDOG=1$' "$T/$1.said" || true
}

more_than() # NAME COUNT
{
    [ "$(count "$1")" -gt "$2" ]
}

speakers() # NAME
{
    cut -d' ' -f1 "$T/$1.said" | sort -u
}

listen cm
listen lm
mkdir "$T/mnt0"
NOTIFY_SOCKET=$T/cm WATCHDOG_USEC=200000 cm start --foreground --name "$NAME" --state-dir "$STATE" --nodes 1 \
    --memory 64M --mount "$T/mnt%n" --provider exec --partitions 1 \
    --exec-start "env NOTIFY_SOCKET=$T/lm WATCHDOG_USEC=200000 {lm}" >"$T/cm.out" 2>&1 &

say "ready"
must_happen 20 said cm READY=1
mountpoint -q "$T/mnt0" || fail "cm is ready, and there is no mount"
must_happen 5 said lm READY=1
must_happen 5 more_than cm 3
must_happen 5 more_than lm 3

say "no process that they start can"
client=$(cut -d' ' -f1 "$STATE/node-0/client.pid")
! grep -azE 'NOTIFY|WATCHDOG' "/proc/$client/environ" >&2 || fail "the mount has it from lm"

say "one that hangs says nothing"
lm=$(cut -d' ' -f1 "$STATE/node-0/lm.pid")
kill -STOP "$lm"
sleep 0.3
before=$(count lm)
sleep 0.7
equal "$before" "$(count lm)" "what lm says while it is stopped"
kill -CONT "$lm"
must_happen 5 more_than lm "$before"

say "the end"
cm=$(cut -d' ' -f1 "$STATE/cm.pid")
echo "$T" >"$T/mnt0/file"
kill -TERM "$cm"
must_happen 20 gone "$cm"
said cm STOPPING=1 || fail "cm said: $(sort "$T/cm.said" | uniq -c)"
said lm STOPPING=1 || fail "lm said: $(sort "$T/lm.said" | uniq -c)"
equal "$cm" "$(speakers cm)" "processes that spoke for cm"
equal "$lm" "$(speakers lm)" "processes that spoke for lm"
pkill -P $$ python3
rm -f "$T/cm" "$T/lm"
