#!/usr/bin/env bash
# The config file, events, logs that are kept, and a cm in the foreground.
# ctest: timeout=100
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

mkdir "$T/app.log.1" # is no log, and nothing in it is for that
STATE=$T/app.log.1/s

say "wrong files are refused, with the key and what was meant"
refused() # TEXT SAYS
{
    printf '%s' "$1" >"$T/config.json"
    expect_fail 2 cm_ start --config "$T/config.json"
    grep -q -- "$2" "$T/expect.out" || fail "$1: $(cat "$T/expect.out")"
    equal 1 "$(wc -l <"$T/expect.out")" "lines of the message about $1"
}
refused '{"node": 4}' 'did you mean nodes?'
refused '{"nodes": "many"}' 'nodes: "many"'
refused '{"memory": "12 parsecs"}' 'not a size'
refused '{"memory": {}}' 'memory'
refused '[]' 'not a JSON object'
refused '' 'not JSON'
refused $'{"nodes": 2,\n  "memory": 4G}' 'line 2, column 14: not JSON'
refused '{"nodes": 2} []' 'line 1, column 14: the JSON object has ended before this'
expect_fail 2 cm_ start --config "$T/nowhere.json"
expect_fail 2 cm_ start --nodes 4 --memory 20M
grep -q 'memory: 20.0 MiB is too little for the redis processes of 8 partitions on node-0: give 56M or more' "$T/expect.out" ||
    fail "too little memory: $(cat "$T/expect.out")"
expect_fail 2 cm_ start --policy csx
expect_fail 2 cm_ start --provider exec
[ ! -e "$STATE" ] || fail "left: $(ls -R "$STATE")"

say "a right one; the command line wins"
printf '{"nodes": 7, "memory": "128M", "beta": 2, "max-nodes": 9}' >"$T/config.json"
cm_ start --config "$T/config.json" --nodes 2 || fail "cm start"
equal "2 9 2" "$(cm_ status --json | jq -r '"\(.nodes | length) \(.partitions) \(.beta)"')" "shape"

say "events"
cm_ events --json | jq -es 'all(.[]; has("time") and has("who") and has("what") and has("text"))' >/dev/null ||
    fail "events --json"
grep -q running <<<"$(cm_ events)" || fail "events do not tell that it runs"
cm_ events --follow >"$T/followed" &
follower=$!
must_happen 5 grep -q running "$T/followed"

say "secrets are for their owner"
equal 700 "$(stat -c %a "$STATE")" "mode of the state directory"
for file in secret cm.json; do
    equal 600 "$(stat -c %a "$STATE/$file")" "mode of $file"
done
for pid in $(daemon_pids); do
    ! tr '\0' ' ' <"/proc/$pid/cmdline" | grep -F "$(cat "$STATE/secret")" || fail "the secret is in a command line"
done

say "logs can be kept"
cm_ stop --keep-logs || fail "cm stop --keep-logs"
must_happen 10 gone "$follower"
grep -q stopping "$T/followed" || fail "events --follow missed the end"
for log in cm.log node-0/lm.log events.jsonl; do
    [ -s "$STATE/$log" ] || fail "$log was not kept: $(ls -R "$STATE")"
done
[ -z "$(find "$STATE" -type f ! -name '*.log' ! -name events.jsonl)" ] || fail "more than logs kept: $(ls -R "$STATE")"
cm_ stop || fail "second stop"

say "in the foreground"
cm_ start --nodes 2 --memory 128M --foreground 2>"$T/foreground.log" &
running()
{
    [ "$(cm_ status --json | jq -r .state)" = running ]
}
must_happen 20 running
kill -INT "$(cut -d' ' -f1 "$STATE/cm.pid")"
wait "$!" || fail "cm start --foreground ended with $?: $(tail -3 "$T/foreground.log")"
must_happen 10 no_daemons
