#!/usr/bin/env bash
# What cm keeps of the past: cm report writes it; it is still there after cm was killed, counts no operations that were done before it could see them, and begins anew, with a line in
# the log, where the file is torn.
# ctest: waits long=12
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq python3

deployment_start 2 --partitions 8
head -c 30M /dev/urandom >"$MNT0/file"
sleep 3

report()
{
    cm_ report --csv "$T/report" 2>"$T/said" || fail "cm report: $(cat "$T/said")"
}

field() # NAME: of the newest second
{
    awk -F, -v name="$1" 'NR == 1 {for (i = 1; i <= NF; i++) if ($i == name) at = i} END {print $at}' "$T/report/hour.csv"
}

say "what was"
report
equals_status()
{
    report
    used=$(cm_ status --json | jq '[.nodes[].memory_used] | add')
    awk -v a="$used" -v b="$(field used)" 'BEGIN {exit !(b > 30e6 && a / b > 0.95 && a / b < 1.05)}'
}
wait_for 10 equals_status || fail "used: $(field used), and by cm status $used"
equal 2 "$(field nodes)" nodes
equal "$((2 * 1024 * 1024 * 1024))" "$(field allocated | awk '{printf "%.0f", $1}')" allocated
[ "$(wc -l <"$T/report/day.csv")" -ge 2 ] || fail "the day is empty"
before=$(sed -n 2p "$T/report/hour.csv")

say "pictures"
cm_ report --svg "$T/pictures" || fail "cm report --svg"
equal 10 "$(find "$T/pictures" -name '*.svg' | wc -l)" pictures
python3 - "$T/pictures/hour-nodes.svg" <<'PY' || fail "the picture of nodes: $(cat "$T/pictures/hour-nodes.svg")"
import re, sys, xml.etree.ElementTree as tree
path = [p.get("d") for p in tree.parse(sys.argv[1]).iter() if p.tag.endswith("path") and p.get("fill") == "none"]
heights = {float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", path[0])[1:]}
sys.exit(len(path) != 1 or not heights or min(heights) > 60)
PY

say "a cm that was killed"
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
cm_ start >/dev/null || fail "cm start"
sleep 2
report
equal "$before" "$(sed -n 2p "$T/report/hour.csv")" "the first second"

say "what a client has done before its lm began anew is not done again"
ask() # SECONDS: an operator's command each second has mounts tell
{
    for _ in $(seq "$1"); do
        cm_ clients >/dev/null
        sleep 1
    done
}
for _ in $(seq 20); do (cd "$MNT0" && mkdir $(seq 300) && rmdir $(seq 300)); done
ask 6
operations=$(cm_ clients --json | jq '[.clients[].operations] | max')
[ "$operations" -gt 10000 ] || fail "$operations operations"
kill -KILL "$(cut -d' ' -f1 "$STATE/node-0/lm.pid")"
ask 17
report
most=$(tail -12 "$T/report/hour.csv" | awk -F, -v names="$(head -1 "$T/report/hour.csv")" '
    BEGIN {n = split(names, name); for (i = 1; i <= n; i++) if (name[i] == "operations") at = i}
    $at > most {most = $at} END {print most + 0}')
awk -v most="$most" 'BEGIN {exit !(most < 500)}' || fail "$most operations/s while nothing was done"

say "a torn file"
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
truncate -s 1000 "$STATE/history"
expect_fail 1 cm_ report --csv "$T/report"
cm_ start >/dev/null || fail "cm start"
grep -q "history: .*torn" "$STATE/cm.log" || fail "the log does not say so"
sleep 2
report
! grep -qF "$before" "$T/report/hour.csv" || fail "what was torn is there"
deployment_stop
[ ! -e "$STATE/history" ] || fail "it is there after cm stop"
