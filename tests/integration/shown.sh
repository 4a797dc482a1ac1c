#!/usr/bin/env bash
# What an operator is shown: cm status --watch through cm's death, cm describe, and cm list, which touches nothing.
# ctest: waits timeout=90
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

# Below the default place, as list looks there; it is this test's own.
mkdir -p /run/memefs
mount -t tmpfs none /run/memefs
STATE=/run/memefs/$NAME
deployment_start 2 --replicas 1 --partitions 4

say "describe"
cm_ describe node-1 >"$T/text"
grep -q '^Node: *node-1$' "$T/text" || fail "$(cat "$T/text")"
grep -qE '^Serves: +[0-9]+ partitions?, .*: [0-9 ]+$' "$T/text" || fail "$(cat "$T/text")"
grep -qE 'node-1 +mounted +'"$MNT1" "$T/text" || fail "no events: $(cat "$T/text")"
cm_ describe --json node-1 | jq -e --arg mount "$MNT1" '.kind == "node" and .nodes[0].mount == $mount and
    (.partitions | length) == .nodes[0].partitions and all(.partitions[]; .node == "node-1") and
    any(.events[]; .what == "joined" and .who == "node-1")' >/dev/null || fail "$(cm_ describe --json node-1)"
is_described()
{
    cm_ describe --json 0 | jq -e '.kind == "partition" and .partitions[0].partition == 0 and (.nodes | length) == 2 and
        .partitions[0].bytes > 0 and .nodes[0].name == .partitions[0].node and
        .nodes[1].name == .partitions[0].replica'
}
must_happen 20 is_described
mkdir "$T/by-hand"
memefs mount --name "$NAME" --state-dir "$STATE" --lm "$STATE/node-1/lm.sock" "$T/by-hand" || fail "memefs mount"
mkdir "$T/by-hand/dir"
by_hand_is_described()
{
    cm_ describe --json "$T/by-hand" | jq -e '.kind == "mount" and .nodes[0].name == "node-1" and
        .clients[0].operations > 0 and .clients[0].connected'
}
must_happen 15 by_hand_is_described
cm_ describe "$T/by-hand" | says -E "^Client: +$T/by-hand, process [0-9]+ of user 0, " || fail "$(cm_ describe "$T/by-hand")"
equal 2 "$(cm_ describe --json node-1 | jq '.clients | length')" "clients of node-1"
memefs umount "$T/by-hand"
cm_ describe "$MNT0" | says -E '^Node: +node-0$' || fail "$(cm_ describe "$MNT0")"
expect_fail 1 cm_ describe node-7
grep -q "there is no node node-7" "$T/expect.out" || fail "$(cat "$T/expect.out")"
expect_fail 1 cm_ describe 4096
expect_fail 1 cm_ describe /elsewhere
expect_fail 2 cm_ describe

say "list"
mkdir -m 700 /run/memefs/old /run/memefs/-odd
echo x >/run/memefs/old/secret
# What cm and nodes write of themselves meanwhile is none of list's doing.
files()
{
    find /run/memefs -path '*/node-*' -prune -o ! -name '*.log' ! -name 'cm.json*' ! -name 'events.jsonl*' ! -name 'history*' \
        ! -path "$STATE" -printf '%p %T@ %C@ %s\n' | sort
    find /run/memefs -printf '%p %u %m\n' | grep -vF .new. | sort
}
before=$(files)
cm list >"$T/text"
equal "$before" "$(files)" "files"
grep -qE "^$NAME +running +2 +[0-9]+ +1.0 GiB +[0-9]+s +$T/mnt%n +$STATE\$" "$T/text" || fail "$(cat "$T/text")"
grep -qE "^old +remains " "$T/text" || fail "$(cat "$T/text")"
! grep -q odd "$T/text" || fail "what is no deployment's"
state_is() # STATE
{
    cm list --json | jq -e --arg name "$NAME" --arg state "$1" \
        '[.deployments[] | select(.name == $name)] | length == 1 and .[0].state == $state and .[0].nodes == 2' >/dev/null
}
state_is running || fail "$(cm list --json)"

say "watch"
expect_fail 2 cm_ status 5
expect_fail 2 cm_ status --watch 0
timeout 100 cm status --name "$NAME" --watch 1 >"$T/watched" &
watch=$!
blocks()
{
    [ "$(grep -cE "^$NAME: running" "$T/watched")" -ge "$1" ]
}
must_happen 10 blocks 2
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
must_happen 10 grep -qE "^[0-9:]{8}  $NAME: the cm of deployment $NAME does not run" "$T/watched"
state_is no-cm || fail "$(cm list)"
# One whose nodes can't be seen from here may live; one whose nodes would be here does not.
for provider in ssh local; do
    mkdir -m 700 "/run/memefs/at-$provider"
    echo x >"/run/memefs/at-$provider/secret"
    jq --arg provider "$provider" '.provider = $provider' "$STATE/cm.json" >"/run/memefs/at-$provider/cm.json"
done
equal "at-local dead, at-ssh no-cm" "$(cm list --json |
    jq -r '[.deployments[] | select(.name | startswith("at-")) | "\(.name) \(.state)"] | join(", ")')" "without cms"
rm -r /run/memefs/at-*
cm_ start || fail "cm start"
must_happen 20 grep -qE "^[0-9:]{8}  $NAME: cm was restarted" "$T/watched"
{ timeout 3 cm status --name "$NAME" --json --watch 1 || true; } | sed -n 1,2p | jq -se 'length == 2 and .[1].nodes[1].name == "node-1"' >/dev/null ||
    fail "watched as JSON"
if /usr/bin/python3 -c 'import pyte' 2>/dev/null; then # the first line stays, however long others are
    env TERM=xterm-256color /usr/bin/python3 "$HARNESS_DIR/terminal" 30x9 \
        "$MEMEFS_BIN/cm" status --name "$NAME" --watch 1 <<END || fail "on a terminal"
see ^[0-9:]{8}  $NAME
see ^$NAME: running
see ^\.\.\. [0-9]+ more lines
size 200x40
see ^node-1 +127.* $MNT1
gone more lines
signal TERM
end -15
END
fi
expect_fail 124 timeout --signal INT 3 cm status --name "$NAME" --watch
deployment_stop
must_happen 10 gone "$watch"
equal "$NAME: stopped" "$(tail -n 1 "$T/watched")" "the end"
rm -rf /run/memefs/old
equal "" "$(cm list | tail -n +2)" "after the end"
umount /run/memefs
