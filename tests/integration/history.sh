#!/usr/bin/env bash
# What cm keeps of the past: cm report writes it, also by the stages that cm mark noted; it is still there after cm was killed, counts no operations that were done before it could see them, and begins anew, with a line in
# the log, where the file is torn.
# ctest: release waits long=45 timeout=180
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

ask() # SECONDS: an operator's command each second has mounts tell
{
    for _ in $(seq "$1"); do
        cm_ clients >/dev/null
        sleep 1
    done
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

say "stages"
expect_fail 2 cm_ mark $'two\nlines'
grep -q 'without control characters' "$T/expect.out" || fail "what it says of two lines: $(cat "$T/expect.out")"
cm_ mark '=write, "the" first' || fail "cm mark"
ask 6
head -c 40M /dev/urandom >"$MNT0/of-stage"
ask 11
cm_ mark 'read ü' || fail "cm mark"
cat "$MNT1/of-stage" >/dev/null
ask 11
cm_ report --svg "$T/marked" || fail "cm report --svg"
python3 - "$T/marked/hour-memory.svg" <<'PY' || fail "the marks of a picture: $(cat "$T/marked/hour-memory.svg")"
import sys, xml.etree.ElementTree as tree
space = "{http://www.w3.org/2000/svg}"
titles = [p.find(space + "title").text for p in tree.parse(sys.argv[1]).iter(space + "path") if p.get("class") == "stage"]
late = next(t for t in tree.parse(sys.argv[1]).iter(space + "text") if t.text == "read ü")
sys.exit('=write, "the" first' not in titles or late.get("text-anchor") != "end" or not 80 < float(late.get("x")) < 708)
PY
equal 2 "$(cm_ events --type mark --json | wc -l)" "marks"
report
cm_ report "$T/report.html" || fail "cm report"
python3 - "$T/report" "$T/report.html" <<'PY' || fail "stages: $(cat "$T/report/stages.csv")"
import csv, json, re, sys
rows = list(csv.DictReader(open(sys.argv[1] + "/stages.csv", encoding="utf-8")))
first, second = rows
assert [r["stage"] for r in rows] == ['=write, "the" first', "read ü"], rows
assert first["to"] == second["from"] and 16 <= int(first["seconds"]) <= 120, rows
assert 0.95 * 40 * 2**20 < float(first["written"]) < 1.3 * 40 * 2**20, rows
assert float(second["written"]) < 2**20 and 0.95 * 40 * 2**20 < float(second["read"]) < 1.3 * 40 * 2**20, rows
assert float(second["memory_most"]) > 70e6 and first["nodes_most"] == second["nodes_most"] == "2", rows
assert abs(float(first["node_hours"]) / (2 * int(first["seconds"]) / 3600) - 1) < 0.15, rows
text = open(sys.argv[2], encoding="utf-8").read()
data = json.loads(re.search(r'<script type="application/json" id="report">(.*?)</script>', text, re.S).group(1))
assert [s["stage"] for s in data["stages"]] == [r["stage"] for r in rows], data["stages"]
PY

say "a cm that was killed"
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
cm_ start >/dev/null || fail "cm start"
sleep 2
report
equal "$before" "$(sed -n 2p "$T/report/hour.csv")" "the first second"

say "what a client has done before its lm began anew is not done again"
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
