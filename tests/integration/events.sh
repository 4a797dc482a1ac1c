#!/usr/bin/env bash
# Events that are asked for by time, type and number, and the bound of their files, through which followers
# follow; the types are those that the documents list.
# ctest: timeout=60
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq

deployment_start 1 --partitions 2 --events-size 64K
began=$(date -u +%Y-%m-%dT%H:%M:%S.%6NZ)

say "which"
equal joined "$(cm_ events --type joined --json | jq -r .what)" "of a type"
equal "joined running" "$(cm_ events --type joined,running --json | jq -r .what | xargs)" "of two types"
equal "joined running" "$(cm_ events --type joined --type running --json | jq -r .what | xargs)" "of two types"
equal running "$(cm_ events --type joined,running --tail 1 --json | jq -r .what)" "the last one"
cm_ events --since "$began" >"$T/since" # such as a link that was measured
! grep -qE ' (starting|joined|mounted|running) ' "$T/since" || fail "since now: $(cat "$T/since")"
[ -z "$(cm_ events --until 1h)" ] || fail "before it began"
cm_ events --since "1h ago" --until "$began" >"$T/until"
cmp "$T/until" <(cm_ events | sed -n "1,$(wc -l <"$T/until")p") || fail "not all of them"
grep -q ' running ' "$T/until" || fail "not all of them: $(cat "$T/until")"
expect_fail 2 cm_ events --since yesterday
expect_fail 2 cm_ events --type joined,joind
sed -n 's/^  \([a-z-]*\)$/\1/p' "$T/expect.out" >"$T/types"
cd "$HARNESS_DIR/../.."
# shellcheck disable=SC2016
sed -n 's/^| \(`[^|]*`\) |.*/\1/p' docs/reference/events.md >"$T/documented"
cd /
for word in starting running scaling degraded stopping; do # states of a deployment
    sed -i "0,/^\`$word\`\$/{/^\`$word\`\$/d}" "$T/documented"
done
# shellcheck disable=SC2016
equal "$(cat "$T/types")" "$(grep -o '`[^`]*`' "$T/documented" | tr -d '`' | LC_ALL=C sort -u)" "types"

say "a bound, and followers"
cm_ events --follow --json --type policy >"$T/followed" &
for i in $(seq 1 60); do
    jq -nc --arg i "$i" '{time: "2026-01-01T00:00:00.000Z", who: "cm", what: "policy", text: ($i + " " + ("x" * 480))}'
done >>"$STATE/events.jsonl"
cm_ policy nso
cm_ policy none
[ -s "$STATE/events.jsonl.1" ] || fail "it has not been changed"
[ "$(cat "$STATE"/events.jsonl* | wc -c)" -lt 65536 ] || fail "too large: $(ls -l "$STATE")"
cm_ policy nso
all_followed()
{
    [ "$(wc -l <"$T/followed")" -eq 63 ]
}
must_happen 10 all_followed
equal "$(jq -s length "$T/followed")" 63 "events that were followed"
cmp "$T/followed" <(cm_ events --json --type policy) || fail "another look shows others"
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
must_happen 10 none_of cm
cm_ start || fail "cm start"
must_happen 10 event_says adopted .
equal starting "$(cm_ events --json | sed -n 1p | jq -r .what)" "the first one"
deployment_stop
must_happen 10 gone $!
