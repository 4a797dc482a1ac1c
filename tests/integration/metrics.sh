#!/usr/bin/env bash
# Figures over HTTP: what cm and lms serve is good for promtool, in both formats; a Prometheus that knows cm alone finds
# the lms, also one that comes, and reads as many operations as were done; at an address that others reach
# nothing comes without the token; idle connections, readers that do not read, garbage and heads without end hold
# nothing up; it goes on after cm was killed.
# ctest: timeout=180 long=60 waits
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
need curl jq prometheus promtool python3

client=$HARNESS_DIR/metrics_http.py
at=127.0.0.1:9470
deployment_start 2 --partitions 8 --metrics $at --node-metrics 9471

served() # ADDRESS [CURL'S ARGUMENTS]
{
    curl -sf --max-time 10 "${@:2}" "http://$1/metrics" # fails when what reads it ends before: no "grep -q"
}

say "both formats"
for address in $at 127.0.0.1:9471 127.0.0.2:9471; do
    served "$address" >"$T/plain" || fail "$address does not serve"
    promtool check metrics <"$T/plain" >"$T/lint" 2>&1 || fail "$address: $(cat "$T/lint")"
    equal "" "$(cat "$T/lint")" "promtool of $address"
    served "$address" -H 'Accept: application/openmetrics-text; version=1.0.0,text/plain;q=0.5' >"$T/open"
    equal "# EOF" "$(tail -1 "$T/open")" "the end of OpenMetrics"
done

say "Prometheus"
cat >"$T/prometheus.yml" <<YAML
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [$HARNESS_DIR/../../docs/grafana/alerts.yml]
scrape_configs:
  - job_name: cm
    static_configs: [{targets: ["$at"]}]
  - job_name: lm
    http_sd_configs: [{url: "http://$at/targets", refresh_interval: 1s}]
YAML
promtool check config "$T/prometheus.yml" >/dev/null || fail "the configuration"
prometheus --config.file "$T/prometheus.yml" --storage.tsdb.path "$T/tsdb" --web.listen-address 127.0.0.1:9090 \
    >"$T/prometheus.log" 2>&1 &
prometheus=$!

query() # PROMQL: the value, "" when there is none
{
    curl -sf --get --data-urlencode "query=$1" http://127.0.0.1:9090/api/v1/query | jq -r '.data.result[0].value[1] // ""'
}

is() # VALUE PROMQL
{
    [ "$(query "$2")" = "$1" ]
}

must_happen 20 is 3 'sum(up)'
for i in $(seq 23); do mkdir "$MNT0/dir$i"; done
for i in $(seq 5); do mkdir "$MNT1/other$i"; done
head -c 100000 /dev/zero >"$MNT0/file"
if rmdir "$MNT0/none" 2>/dev/null; then fail "rmdir of nothing"; fi
must_happen 20 is 23 "sum(memefs_operation_duration_seconds_count{mount=\"$MNT0\",operation=\"mkdir\"})"
must_happen 20 is 5 "sum(memefs_operation_duration_seconds_bucket{node=\"node-1\",operation=\"mkdir\",le=\"+Inf\"})"
must_happen 20 is 28 'sum(memefs_mount_operations_total{operation="mkdir"})'
must_happen 20 is 100000 "sum(memefs_mount_written_bytes_total{mount=\"$MNT0\"})"
must_happen 20 is 100000 'sum(memefs_written_bytes_total)'
must_happen 20 is 23 "sum(memefs_mount_operation_duration_seconds_count{mount=\"$MNT0\",operation=\"mkdir\"})"
must_happen 5 is 2 "sum(memefs_node_up{deployment=\"$NAME\"})"
must_happen 5 is 8 'sum(memefs_lm_partitions)'
must_happen 5 is 8 'count(memefs_partition_keys{role="serving"})'
inodes=$(stat -f -c '%c %d' "$MNT0" | awk '{print $1 - $2}')
[ "$inodes" -ge 29 ] || fail "$inodes inodes" # 28 directories and a file, at least
must_happen 10 is "$inodes" 'sum(memefs_partition_inodes)'
must_happen 10 is "$inodes" memefs_cm_inodes
must_happen 10 is 0 memefs_cm_lost_stripes
must_happen 10 is 2 'sum(memefs_cm_provider_call_seconds_count{call="start",result="ok"})'

say "cm clients, cm status"
cm_ clients --json | jq -e --arg mount "$MNT0" --argjson pid "$(cut -d' ' -f1 "$STATE/node-0/client.pid")" '
    (.clients | length) == 2 and any(.clients[]; .node == "node-0" and .path == $mount and .pid == $pid and .uid == 0 and
    .host == "127.0.0.1" and .connected and .ready and .version != "" and (now - .since | . >= 0 and . < 100) and
    .age_ms < 60000 and .operations > 25 and .errors >= 1 and .written_bytes == 100000 and .p50 > 0 and .p99 <= .max * 2)' \
    >"$T/clients" || fail "cm clients --json: $(cm_ clients --json)"
cm_ clients | says "^node-0 .* root .* $MNT0\$" || fail "cm clients: $(cm_ clients)"
cm_ status --json | jq -e '(.mounts | length) == 2 and (.timestamp | fromdate | now - . | . >= -1 and . < 100) and .uptime_s > 0 and
    .version != "" and .errors >= 1 and .restarts == 0 and .lost_bytes == 0 and .no_space == 0' >/dev/null ||
    fail "cm status --json: $(cm_ status --json)"

say "documents"
docs=$HARNESS_DIR/../../docs
for address in $at 127.0.0.1:9471; do served "$address"; done | sed -n 's/^# TYPE \([a-z0-9_]*\) .*/\1/p' | sort -u >"$T/served"
# shellcheck disable=SC2016
grep -o '`memefs_[a-z0-9_]*`' "$docs/reference/metrics.md" | tr -d '`' | sort -u >"$T/described"
equal "" "$(comm -3 "$T/served" "$T/described" | tr '\n' ' ')" "served, and described in docs/reference/metrics.md"
cat "$docs"/grafana/* | grep -o 'memefs_[a-z0-9_]*' | sed 's/_\(bucket\|count\)$//' | sort -u >"$T/used"
equal "" "$(comm -13 "$T/served" "$T/used" | tr '\n' ' ')" "used by the dashboard and the rules, and not served"
promtool check rules "$docs/grafana/alerts.yml" >/dev/null || fail "the rules"
promtool test rules "$HARNESS_DIR/alerts.yml" >"$T/rules" 2>&1 || fail "what the rules say: $(cat "$T/rules")"
equal 0 "$(served $at | awk '/^memefs_cm_policy_threshold_ratio{action="scale_out",/ {print $2}')" "threshold of no policy"
jq -e '.panels | length > 20' "$docs/grafana/memefs.json" >/dev/null || fail "the dashboard"
for title in 'p99, by mount' 'Answered from caches'; do
    expr=$(jq -r --arg title "$title" '.panels[] | select(.title == $title).targets[0].expr |
        gsub("[$]__rate_interval"; "1m") | gsub("[$][a-z]+"; ".*")' "$docs/grafana/memefs.json")
    must_happen 20 is 1 "count($expr) > bool 0"
done

say "a flood, and readers that do not read, beside a change of the nodes"
timeout 100 python3 "$client" idle 127.0.0.1 9470 1000 127.0.0.3 >"$T/idle" &
flood=$!
timeout 100 python3 "$client" slow 127.0.0.1 9470 - 127.0.0.4 >"$T/slow" &
reader=$!
wait_for 20 grep -q held "$T/idle" || fail "no connections"
wait_for 20 grep -q full "$T/slow" || fail "all was read"
cm_ scale +1 >/dev/null || fail "scale"
served $at --interface 127.0.0.5 >/dev/null || fail "others are not served beside a flood"
rss=$(awk '/^VmRSS/ {print $2}' "/proc/$(cut -d' ' -f1 "$STATE/cm.pid")/status")
[ "$rss" -lt 100000 ] || [ -n "${ASAN_OPTIONS:-}" ] || fail "cm has $rss KiB"
kill "$flood" "$reader"
must_happen 20 is 4 'sum(up)'
must_happen 20 is 3 'sum(memefs_node_up)'

say "1,000 requests that never end, from 100 addresses, beside a change of the nodes"
timeout 100 python3 "$client" half 127.0.0.1 9470 1000 "$(printf '127.0.1.%s,' $(seq 100))127.0.1.101" >"$T/half" &
flood=$!
wait_for 20 grep -q held "$T/half" || fail "no connections"
began=$SECONDS
cm_ scale +1 >/dev/null || fail "scale"
say "scaled in $((SECONDS - began)) s, $(cat "$T/half")"
began=$SECONDS
must_happen 40 served $at --interface 127.0.0.5 --max-time 30 # they are cut off after 10 s, then others of them come in
say "served after $((SECONDS - began)) s"
kill "$flood"
cm_ scale -1 >/dev/null || fail "scale"
must_happen 20 is 4 'sum(up)'
must_happen 20 is 3 'sum(memefs_node_up)'
python3 "$client" oversize 127.0.0.1 9470 >"$T/over"
grep -Eq '^(HTTP/1.1 4|hung up)' "$T/over" || fail "a head of 100 KB: $(cat "$T/over")"
equal well "$(python3 "$client" garbage 127.0.0.1 9470)" garbage

status() # CURL'S ARGUMENTS
{
    curl -s -o /dev/null -w '%{http_code}' --max-time 10 "$@"
}

equal 405 "$(status -X DELETE http://$at/metrics)" "DELETE"
equal 404 "$(status http://$at/)" "no page"
equal 403 "$(status -H 'Host: memefs.example' http://$at/metrics)" "another name"
equal 200 "$(status -H 'Host: localhost:1' http://$at/metrics)" "localhost"
equal 200 "$(status -I http://$at/metrics)" "HEAD"

samples() # NODE: how many there are of it of a counter that it tells, and of one of its mounts
{
    served $at >"$T/now" || return
    echo "$(grep -c "^memefs_node_partition_deaths_total{node=\"$1\"," "$T/now")" \
        "$(grep -c "^memefs_mount_written_bytes_total{node=\"$1\"," "$T/now")"
}

samples_are() # NODE TOLD MOUNTS
{
    [ "$(samples "$1")" = "$2 $3" ]
}

say "cm that was killed, while a node is stopped"
lm2=$(cut -d' ' -f1 "$STATE/node-2/lm.pid")
kill -STOP "$lm2"
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
(cm_ start >/dev/null 2>&1 || true) &
must_happen 20 samples_are node-0 1 1
samples_are node-2 0 0 || fail "node-2 has not told, and there is: $(grep node-2 "$T/now")"
cm_ status --json | jq -e '(.nodes[2] | .memory_used == null and .bandwidth_in == null and .clients_behind == null) and
    .silent_nodes == 1 and .unknown_partitions == .nodes[2].partitions and .silent_partitions == .nodes[2].partitions and
    (.placement | map(select(.bytes == null)) | length) == .nodes[2].partitions and .inodes > 0 and .utilization > 0' >/dev/null ||
    fail "what node-2 has not told is not null: $(cm_ status --json)"
cm_ status >"$T/status"
grep -E '^node-2 .* - +[0-9.]+ [MG]iB +- +- +- ' "$T/status" || fail "cm status: $(cat "$T/status")"
grep -E '^no answer: 1 node, ' "$T/status" || fail "cm status: $(cat "$T/status")"
cm_ describe node-2 | grep -E '^Memory: +- of .* \(-\)' || fail "$(cm_ describe node-2)"
equal 3 "$(curl -sf http://$at/targets | jq 'map(.targets) | flatten | unique | length')" "targets"
kill -CONT "$lm2"
wait $!
must_happen 20 samples_are node-2 1 1
must_happen 20 is 3 'count(memefs_node_up == 1)'

say "a partition whose process is stopped, also for an lm that is new"
redis_serving 0
kill -STOP "$pid"
must_happen 40 is 1 'ALERTS{alertname="MemefsPartitionSilent",partition="0"}'
equal 0 "$(query 'min(memefs_partition_up{role="serving"})')" "the partition that does not answer"
told=$(cm_ status --json | jq -c '.placement[0].bytes')
kill -KILL "$(cut -d' ' -f1 "$dir/lm.pid")"
lm_is_back()
{
    cm_ status --json >"$T/status" && jq -e '.silent_nodes == 0 and .silent_partitions == 1' "$T/status" >/dev/null
}
must_happen 40 lm_is_back
jq -e --argjson told "$told" '.unknown_partitions == 0 and .placement[0].bytes == $told' "$T/status" >/dev/null ||
    fail "told was $told: $(cat "$T/status")"
must_happen 20 is 1 'count(memefs_partition_up{partition="0"} == 0)'
must_happen 20 is 0 'count(memefs_partition_memory_used_bytes{partition="0"}) or vector(0)' # nobody knows
kill -CONT "$pid"
must_happen 40 is 1 'count(memefs_partition_memory_used_bytes{partition="0"})'
expect_fail 1 cm_ start --metrics 127.0.0.1:9999
kill "$prometheus"
wait "$prometheus" || true

say "all connections there may be, from where readers are, too; then no descriptor is left"
cm_pid=$(cut -d' ' -f1 "$STATE/cm.pid")
served $at >/dev/null || fail "cm does not serve"
timeout 100 python3 "$client" idle 127.0.0.1 9470 100 127.0.0.1,127.0.0.3,127.0.0.4,127.0.0.5 >"$T/idle" &
flood=$!
wait_for 20 grep -q held "$T/idle" || fail "no connections"
! served $at --max-time 1 >/dev/null || fail "there are more connections than there may be"
must_happen 20 served $at
kill "$flood"
sleep 1 # until cm has closed its own ends, too

cpu() # ticks that cm has used
{
    sed 's/.*) //' "/proc/$cm_pid/stat" | awk '{print $12 + $13}'
}

free=0
while [ -e "/proc/$cm_pid/fd/$free" ]; do free=$((free + 1)); done
limit=$(prlimit --pid "$cm_pid" --nofile --noheadings --output SOFT)
prlimit --pid "$cm_pid" --nofile="$free:"
used=$(cpu)
! served $at --max-time 2 >/dev/null || fail "it has descriptors"
used=$(($(cpu) - used))
[ "$used" -lt 100 ] || fail "cm has used $used ticks while it could not accept"
prlimit --pid "$cm_pid" --nofile="$limit:"
must_happen 5 served $at
cm_ stop

say "at an address that others reach"
ip link add outside type bridge
ip addr add 10.47.0.1/24 dev outside
ip link set outside up
cm_ start --memory 64M --partitions 4 --mount "$MNT0" --metrics 10.47.0.1:9470 >/dev/null || fail "cm start there"
equal 401 "$(status http://10.47.0.1:9470/metrics)" "no token"
equal 401 "$(status -H "Authorization: Bearer $(tr 0-9a-f 1-9a-f0 <"$STATE/token")" http://10.47.0.1:9470/targets)" \
    "another token"
equal 600 "$(stat -c %a "$STATE/token")" "mode of the token's file"
curl -si http://10.47.0.1:9470/metrics | grep -i '^WWW-Authenticate: Bearer' >/dev/null || fail "no WWW-Authenticate"
served 10.47.0.1:9470 -H "Authorization: Bearer $(cat "$STATE/token")" | grep '^memefs_cm_uptime_seconds{' >/dev/null ||
    fail "the token does not open"

more_than_0() # NAME
{
    served 10.47.0.1:9470 -H "Authorization: Bearer $(cat "$STATE/token")" | awk -v name="$1" '
        index($1, name) == 1 && $2 > 0 {found = 1} END {exit !found}'
}

say "memory that is full"
! more_than_0 memefs_mount_no_space_total || fail "ENOSPC before anything was written"
if head -c 200M /dev/zero >"$MNT0/big" 2>/dev/null; then fail "200 MB into 64"; fi
must_happen 20 more_than_0 memefs_node_out_of_memory_total
must_happen 20 more_than_0 memefs_mount_no_space_total
must_happen 20 more_than_0 memefs_mount_write_back_failures_total
cm_ stop
[ ! -e "$STATE/token" ] || fail "the token is left"

say "an address that is taken"
python3 "$client" take 127.0.0.1 9471 >"$T/taken" &
must_happen 10 grep -q taken "$T/taken"
expect_fail 1 cm_ start --memory 256M --metrics 127.0.0.1:9471
grep -q 'metrics: can.t listen at 127.0.0.1:9471' "$T/expect.out" || fail "$(cat "$T/expect.out")"

say "a port that is taken, and IPv6"
cm_ start --memory 256M --metrics '[::1]:9470' --node-metrics 9471 >/dev/null || fail "cm start at [::1]"
equal '["127.0.0.1:9472"]' "$(curl -sg 'http://[::1]:9470/targets' | jq -c '[.[].targets[]]')" "the next port that is free"
served 127.0.0.1:9472 | grep '^memefs_lm_connected_to_cm{node="node-0"} 1$' >/dev/null || fail "lm at the next port"
cm_ stop
kill %%
