#!/usr/bin/env bash
# What a stranger gets at every socket of a running deployment: nothing; and what he can read of its files, arguments,
# environments and logs: no secret. docs/design/security.md has the table that this prints.
# ctest: timeout=300 long=35
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq ss python3 setpriv

KNOCK=$HARNESS_DIR/knock
NODES=2
deployment_start $NODES --partitions 8
printf 'content' >"$MNT0/file"
read -r cm <"$STATE/cm.addr"

# The sockets that processes of the deployment listen at: ADDRESS PROGRAM.
listening()
{
    ss -ltnpH | sed -nE 's/^LISTEN +[0-9]+ +[0-9]+ +([^ ]+) .*\(\("([^"]+)",pid=.*/\1 \2/p' |
        grep -E ' (cm|lm|memefs|redis-server)$' | sort -u
}

# password_of PARTITION: its client's.
password_of()
{
    jq -er --argjson p "$1" '.table.partitions[$p].password' "$STATE/cm.json"
}

say "nothing listens but at its own address"
listening >"$T/listening"
cat "$T/listening"
equal "$cm" "$(awk '$2 == "cm" { print $1 }' "$T/listening")" "where cm listens"
equal 8 "$(grep -c 'redis-server$' "$T/listening")" "redis processes that listen"
! grep -qE '(lm|memefs)$' "$T/listening" || fail "lm or memefs listens at a port"
! grep -vE '^127\.[0-9.]+:[0-9]+ ' "$T/listening" || fail "listens at more than its own address"

say "no secret in arguments, environments, logs, or files that others may read"
{
    cat "$STATE/secret"
    jq -r '.. | objects | .password?, .admin_password? | strings' "$STATE/cm.json" "$STATE"/node-*/lm.json
} | sort -u | grep -E '^.{16,}' >"$T/secrets"
[ "$(wc -l <"$T/secrets")" -ge 17 ] || fail "not all secrets were found: $(wc -l <"$T/secrets")"
for pid in $(daemon_pids); do
    ! grep -qaFf "$T/secrets" "/proc/$pid/cmdline" "/proc/$pid/environ" ||
        fail "a secret in arguments or environment of $(tr '\0' ' ' <"/proc/$pid/cmdline")"
done
! find "$STATE" -name '*.log' -exec grep -laFf "$T/secrets" {} + || fail "a secret in a log"
! grep -qaFf "$T/secrets" "$STATE/events.jsonl" || fail "a secret in the events"
equal "" "$(find "$STATE" /var/tmp/memefs-"$NAME"-* -maxdepth 0 -perm /077 2>/dev/null)" "directories that are open to others"
equal "" "$(find "$STATE" -type s -perm /077)" "sockets that others may use"
! find "$STATE" -type f -perm /077 -exec grep -laFf "$T/secrets" {} + || fail "a secret in a file that others may read"

say "another user of the machine gets no further than the door"
as_nobody()
{
    setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}
for path in secret cm.json node-0/lm.json node-0/lm.sock; do
    ! as_nobody cat "$STATE/$path" 2>/dev/null || fail "$path can be read"
done
for sock in "$STATE"/node-0/*.sock; do
    ! as_nobody "$KNOCK" hold "unix:$sock" 1 </dev/null 2>/dev/null || fail "$sock can be connected to"
done
! as_nobody ls "$STATE" 2>/dev/null || fail "the state directory can be listed"

say "what a stranger gets"
status=0
"$KNOCK" control "$cm" "$STATE/secret" >"$T/table.cm" & # half a minute, of waiting
at_cm=$!
"$KNOCK" control "unix:$STATE/node-0/lm.sock" "$STATE/secret" >"$T/table.lm" || status=1
wait "$at_cm" || status=1
for part in 0 1 2 3 4 5 6 7; do
    { password_of "$part" && password_of $(((part + 1) % 8)); } >"$T/passwords.$part"
done
knock_redis() # ADDRESS PARTITION
{
    "$KNOCK" redis "$1" "$T/passwords.$2" >>"$T/table.redis" || status=1
}
for sock in "$STATE"/node-*/redis-*.sock; do
    part=${sock##*redis-}
    knock_redis "unix:$sock" "${part%.sock}"
done
while read -r address part; do
    knock_redis "$address" "$part"
done < <(jq -r '.table.partitions | to_entries[] | "\(.value.host):\(.value.port) \(.key)"' "$STATE/cm.json")
# The same at all of a kind is told once.
sed -e "s|$cm|cm|" -e 's|unix:.*/lm.sock|lm.sock|' -e 's|unix:.*/redis-[0-9]*.sock|redis, UNIX socket|' \
    -e 's|^127[^ ]*|redis, TCP|' "$T"/table.* | awk '!seen[$0]++'
equal 0 "$status" "a stranger got more than he should"

say "a crowd of strangers at every port keeps nobody out"
mkfifo "$T/hold"
holders=()
while read -r address _; do
    "$KNOCK" hold "$address" 1500 <"$T/hold" >"$T/held.${address##*:}" &
    holders+=($!)
done <"$T/listening"
exec 8>"$T/hold"
while read -r address _; do
    must_happen 60 grep -q holding "$T/held.${address##*:}"
done <"$T/listening"
cm_ status >/dev/null || fail "cm status beside a crowd"
equal content "$(cat "$MNT1/file")" "content"
dd if=/dev/urandom of="$T/data" bs=1M count=16 status=none
cp "$T/data" "$MNT0/data"
cmp "$T/data" "$MNT1/data" || fail "what was written beside a crowd"
# Each second lm closes them from 1024 on; who comes after its look may stay.
few_descriptors()
{
    local pid
    [ "$(find "/proc/$(pids_of cm)/fd" -mindepth 1 | wc -l)" -lt 400 ] || return 1
    for pid in $(pids_of redis-server); do
        [ "$(find "/proc/$pid/fd" -mindepth 1 | wc -l)" -lt 1124 ] || return 1
    done
}
must_happen 60 few_descriptors
exec 8>&-
wait "${holders[@]}"

say "somebody else at the port of a cm that died is taken for nobody, and a new cm goes elsewhere"
kill -KILL "$(pids_of cm)"
must_happen 10 none_of cm
"$KNOCK" pose "$cm" "HTTP/1.1 400 Bad Request" >"$T/pose" &
poser=$!
must_happen 30 grep -q listening "$T/pose"
expect_fail 1 cm_ status
grep -q 'cm start' "$T/expect.out" || fail "cm status does not say what to do: $(cat "$T/expect.out")"
cm_ start || fail "cm start beside somebody else at its port"
[ "$(cat "$STATE/cm.addr")" != "$cm" ] || fail "two at one port"
nodes_up()
{
    [ "$(cm_ status --json | jq -r '[.nodes[].state] | unique | join(" ")')" = up ]
}
must_happen 30 nodes_up
kill "$poser"
wait "$poser" || true

say "it is as it was"
equal content "$(cat "$MNT1/file")" "content"
cm_ status >/dev/null
fsck_clean
deployment_stop
