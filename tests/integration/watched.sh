#!/usr/bin/env bash
# A run that is watched: Snakemake's 40 jobs on two nodes (network namespaces) whose policy adds some while data come and
# gives them back when they are gone, seen by a real Prometheus, by the page in a real browser and by cm top on a
# terminal, all at the same time. They say the same within 1 %, and so does the kernel of what it knows:
#
#   memory in use       the page, Prometheus of cm and of lms, cm top. Partitions count it; the kernel has no such figure
#   resident memory     Prometheus; VmRSS of the partitions' processes. It is more than memory in use: their code, what
#                       malloc keeps, and what a process takes that holds nothing
#   bytes on links      Prometheus of cm and of lms; /proc/net/dev of each node
#   bytes written, read the page, Prometheus of cm and of lms, cm top, .memefs/stats; wchar of /proc/PID/io of a program
#                       that writes nowhere else. What the kernel reads from its pages is not read again: no rchar
#   operations          the page, Prometheus of cm and of lms, cm top, .memefs/stats
#   nodes               all three, and the namespaces that have partitions
#
# Prometheus' graph, the page and cm top are kept as pictures in MEMEFS_TEST_OUTPUT.
# ctest: slow timeout=300 long=100
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
need curl jq python3 prometheus
chromium=$(command -v chromium || command -v google-chrome) || skip "chromium is not installed"
/usr/bin/python3 -c 'import pyte' 2>/dev/null || skip "python3-pyte is not installed"
tools=$HARNESS_DIR/../../build/workflows
"$tools/bin/python3" -m snakemake --version >/dev/null 2>&1 || skip "Snakemake is not installed (scripts/setup --workflows)"

MEMORY=128M
at=127.0.0.1:9480
out=${MEMEFS_TEST_OUTPUT:-$MEMEFS_BIN/../Testing/watched}
mkdir -p "$out"

net up 12
deployment_start 2 --max-nodes 6 --partitions 24 --policy cso+csi --scale-window 5 --provider exec --listen "$SUBNET.254:0" \
    --first-address "$SUBNET.1" --exec-start "nsenter --net=/run/netns/$NET-{node} {lm}" --ui $at --metrics $at --node-metrics 9471

# ---- those that watch ----

cat >"$T/prometheus.yml" <<YAML
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: cm
    static_configs: [{targets: ["$at"]}]
  - job_name: lm
    authorization: {credentials_file: $STATE/token}
    http_sd_configs: [{url: "http://$at/targets", refresh_interval: 1s}]
YAML
prometheus --config.file "$T/prometheus.yml" --storage.tsdb.path "$T/tsdb" --web.listen-address 127.0.0.1:9090 \
    >"$T/prometheus.log" 2>&1 &
prometheus=$!

query() # PROMQL: the value, 0 when there is none
{
    curl -sf --get --data-urlencode "query=$1" http://127.0.0.1:9090/api/v1/query | jq -r '.data.result[0].value[1] // "0"'
}

coproc browser { exec python3 "$HARNESS_DIR/browser.py" "$chromium" "$T/profile" "$out" 2>"$T/browser.log"; }
# shellcheck disable=SC2154 # by coproc
browser_pid=$browser_PID
IFS= read -r -t 50 _ <&"${browser[0]}" || skip "chromium does not run here: $(tail -3 "$T/browser.log")"
exec {to_browser}>&"${browser[1]}" {from_browser}<&"${browser[0]}"
to=${browser[1]}
exec {to}>&-
browse()
{
    jq -cn '$ARGS.positional' --args "$@" >&"$to_browser"
    IFS= read -r -t 50 answer <&"$from_browser" || fail "the browser is gone"
}
shown() # FILTER: of what the page shows
{
    jq -r "$1" <<<"$answer"
}

mkfifo "$T/keys"
TERM=xterm-256color LC_ALL=C.UTF-8 /usr/bin/python3 "$HARNESS_DIR/terminal" 110x40 "$MEMEFS_BIN/cm" top --name "$NAME" \
    --state-dir "$STATE" <"$T/keys" >"$T/top.log" 2>&1 &
top=$!
exec {keys}>"$T/keys"
keys()
{
    printf '%s\n' "$@" >&"$keys"
}

browse open "http://$at/ui" 'document.getElementById("link").textContent === "live"'
shown '.is' | grep -x true >/dev/null || fail "the page: $answer"
keys 'see ^NODE'
all_up()
{
    [ "$(query 'sum(up)')" = 3 ] && [ "$(query 'sum(memefs_node_up)')" = 2 ]
}
must_happen 20 all_up

# ---- what they say ----

# The page as it is read, in bytes and numbers.
read -r -d '' READ_PAGE <<'JS' || true
(() => {
  const units = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };
  const number = (text) => { const [n, unit] = text.replace(/,/g, "").split(" "); return parseFloat(n) * (units[unit] || 1); };
  const tile = (name) => [...document.querySelectorAll("#tiles div")].find((d) => d.firstChild.textContent === name).lastChild.firstChild.textContent;
  const column = (k) => [...document.querySelectorAll("#mounts tbody tr")].reduce((a, r) => a + (number(r.cells[k].textContent) || 0), 0);
  return { used: number(tile("Memory used")), nodes: Number(tile("Nodes")), rows: document.querySelectorAll("#nodes tbody tr").length,
    operations: column(3), read: column(5), written: column(6) };
})()
JS

# near WHAT FIGURE...: all within 1 % of the first.
near()
{
    awk -v what="$1" 'BEGIN {
        for (i = 3; i < ARGC; i++) {
            d = (ARGV[i] - ARGV[2]) / (ARGV[2] ? ARGV[2] : 1)
            if (d > 0.01 || d < -0.01) bad = 1
            line = line sprintf(" %.0f", ARGV[i])
        }
        printf "%s: %.0f%s\n", what, ARGV[2], line
        exit bad
    }' "${@:1}"
}

rss()
{
    local pid sum=0
    for pid in $(pids_of redis-server); do
        sum=$((sum + $(awk '/^VmRSS/ {print $2}' "/proc/$pid/status") * 1024))
    done
    echo $sum
}

links() # of the nodes that there are: bytes received and sent, by /proc/net/dev of their namespaces
{
    local node
    for node in $(jq -r '.status.nodes[].id // 0' "$T/top.json"); do
        net exec "$node" -- cat /proc/net/dev
    done | awk '$1 == "eth0:" {received += $2; sent += $10} END {print received, sent}'
}

figure() # NAME: of what the mounts say themselves
{
    jq -r '.mounts[].path + "/.memefs/stats.json"' "$T/top.json" | xargs cat |
        jq -s --arg name "$1" '[.[].sources[].figures[] | select(.name == $name) | .value] | add // 0'
}

nodes_agree()
{
    cm_ top --json >"$T/top.json"
    browse value "$READ_PAGE"
    near "nodes: cm top, page twice, Prometheus, namespaces" "$(jq '.status.nodes | length' "$T/top.json")" "$(shown .is.nodes)" \
        "$(shown .is.rows)" "$(query 'sum(memefs_node_up)')" "$(pids_of redis-server | xargs -I{} readlink /proc/{}/ns/net | sort -u | wc -l)" \
        >"$T/figures" 2>&1
}

all_agree()
{
    local used received sent
    nodes_agree || return
    read -r received sent < <(links)
    used=$(jq '[.status.nodes[].memory_used] | add' "$T/top.json")
    {
        near "memory in use: cm top, page, Prometheus of cm and of lms" "$used" "$(shown .is.used)" \
            "$(query 'sum(memefs_node_memory_used_bytes)')" "$(query 'sum(memefs_lm_memory_used_bytes)')" &&
            near "resident: /proc, Prometheus of cm" "$(rss)" "$(query 'sum(memefs_node_memory_resident_bytes)')" &&
            near "links, received: /proc/net/dev, Prometheus of cm" "$received" "$(query 'sum(memefs_node_received_bytes_total)')" &&
            near "links, sent: /proc/net/dev, Prometheus of cm" "$sent" "$(query 'sum(memefs_node_sent_bytes_total)')" &&
            near "written: the mounts, page, Prometheus of cm and of lms, cm top" "$(figure memefs_written_bytes_total)" \
                "$(shown .is.written)" "$(query 'sum(memefs_mount_written_bytes_total)')" \
                "$(query 'sum(memefs_written_bytes_total)')" "$(jq '[.mounts[].written_bytes] | add' "$T/top.json")" &&
            near "read: the mounts, page, Prometheus of cm and of lms, cm top" "$(figure memefs_read_bytes_total)" \
                "$(shown .is.read)" "$(query 'sum(memefs_mount_read_bytes_total)')" \
                "$(query 'sum(memefs_read_bytes_total)')" "$(jq '[.mounts[].read_bytes // 0] | add' "$T/top.json")" &&
            near "operations: the mounts, page, Prometheus of cm and of lms, cm top" "$(figure memefs_operation_duration_seconds)" \
                "$(shown .is.operations)" "$(query 'sum(memefs_mount_operations_total)')" \
                "$(query 'sum(memefs_operation_duration_seconds_count)')" "$(jq '[.mounts[].operations] | add' "$T/top.json")"
    } >>"$T/figures" 2>&1
}

must_agree() # WHEN [nodes]
{
    wait_for 25 "${2:-all}_agree" || fail "$1: $(tail -1 "$T/figures")"
    say "$1"
    sed 's/^/#   /' "$T/figures"
}

nodes_are() # FILTER
{
    cm_ status --json | jq -e "(.nodes | length $1) and .state == \"running\""
}

# ---- the run ----

began=$(date +%s)
for i in $(seq 1000); do printf 'word-%04d is one of a thousand that come again and again, as in any text %d\n' "$i" "$i"; done >"$T/lines"
mkdir "$MNT0/run"
bash -c 'for i in $(seq 1200); do cat "$1"; done >"$2"; cat /proc/$$/io' - "$T/lines" "$MNT0/run/text" >"$T/io"
written=$(stat -c %s "$MNT0/run/text")
near "written: the file, wchar of /proc/PID/io" "$written" "$(awk '/^wchar/ {print $2}' "$T/io")" || fail "the writer wrote elsewhere, too"
must_happen 60 nodes_are '> 2'
must_agree "data have come"

say "Snakemake"
LAUNCH="env" timeout 200 "$HARNESS_DIR/workflows/run" snakemake "$tools" "$MNT0/run" >"$T/snakemake" 2>&1 &
workflow=$!
split()
{
    [ -s "$MNT0/run/piece.37" ]
}
must_happen 60 split
keys "picture $T/top.html"
browse look page 1200 light
wait "$workflow" || fail "Snakemake: $(tail -5 "$T/snakemake")"
equal 1200 "$(awk '$2 == "word" {exit} $2 == "0001" {print $1}' "$MNT0/run/counts")" "a word's count"
must_agree "the workflow has ended"

say "data go, and nodes with them"
rm "$MNT0/run/text"
must_happen 60 nodes_are '< 4'
must_agree "data have gone" nodes

# ---- all of it ----

past=$(($(date +%s) - began))
browse value 'Math.max(...past.hour.nodes)' # what it draws
near "nodes at most: page, Prometheus" "$(shown .is)" "$(query "max_over_time(sum(memefs_node_up)[${past}s:1s])")" || fail "nodes at most"
cm_ report --csv "$T/csv" || fail "cm report"
curl -sf "http://127.0.0.1:9090/api/v1/query_range?query=sum(memefs_node_memory_used_bytes)&start=$began&end=$((began + past))&step=1" >"$T/range"
# Means over the seconds that both know. What Prometheus has of one, cm had been told by then, or in the second before.
python3 - "$T/csv/hour.csv" "$T/range" <<'PY' >"$T/means" || fail "cm report or Prometheus has no seconds"
import calendar, csv, json, sys, time
kept = {calendar.timegm(time.strptime(r["time"], "%Y-%m-%dT%H:%M:%SZ")): float(r["used"]) for r in csv.DictReader(open(sys.argv[1])) if r["used"]}
seen = {int(t): float(v) for t, v in json.load(open(sys.argv[2]))["data"]["result"][0]["values"]}
means = []
for late in 0, 1:
    both = [(kept[t], seen[t + late]) for t in sorted(kept) if t + late in seen][:-1]
    assert len(both) > 20
    means.append([sum(v) / len(both) for v in zip(*both)])
print(*(f"{v:.0f}" for v in min(means, key=lambda m: abs(m[0] - m[1]))))
PY
read -r used seen <"$T/means"
near "memory in use over ${past} s, mean: cm report, Prometheus" "$used" "$seen" || fail "memory in use over the run"

keys "picture $T/end.html" 'keys q' 'end 0'
exec {keys}>&-
wait "$top" || fail "cm top: $(cat "$T/top.log")"
browse open "file://$T/top.html" 'document.title === "terminal"'
browse look top 900 dark
graph="http://127.0.0.1:9090/classic/graph?g0.range_input=$((past / 60 + 1))m&g0.tab=0&g0.expr=sum(memefs_node_memory_used_bytes)"
graph+="&g1.range_input=$((past / 60 + 1))m&g1.tab=0&g1.expr=sum(memefs_node_up)"
browse open "$graph" 'document.querySelectorAll("svg path").length > 1'
shown .is
browse look prometheus 1100 light
for picture in page top prometheus; do [ -s "$out/$picture.png" ] || fail "no picture $picture"; done
exec {to_browser}>&- {from_browser}<&-
wait "$browser_pid" || true
kill "$prometheus"
deployment_stop
