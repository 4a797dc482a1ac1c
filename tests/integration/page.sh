#!/usr/bin/env bash
# The page of cm start --ui, in a real browser: it shows what cm status says, follows a change of the nodes and a restart
# of cm, asks nobody else, complains of nothing, and can be read in light, dark and on a phone. Its stream for ten
# readers of which one does not read; who may see it; cm report, which is the page as a file.
# ctest: timeout=120 long=55
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
need curl jq python3

at=127.0.0.1:9480
outside=10.48.0.1
out=${MEMEFS_TEST_OUTPUT:-$MEMEFS_BIN/../Testing/page}
mkdir -p "$out"
deployment_start 3 --partitions 24 --ui $at
hostile="$T/<img src=x onerror=stop()>"
mkdir "$hostile"
memefs mount --name "$NAME" --state-dir "$STATE" "$hostile" || fail "another mount"
sed 's/^[0-9]*/999999/' "$STATE/node-0/lm.pid" >"$STATE/node-0/gone.pid" # for cm doctor to find
for i in 1 2 3; do head -c 20M /dev/urandom >"$MNT0/file$i"; done

status() # CURL'S ARGUMENTS
{
    curl -s -o /dev/null -w '%{http_code}' --max-time 10 "$@"
}

say "without a browser"
curl -sD "$T/head" -o "$T/page" "http://$at/ui"
grep -qi "^content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';" "$T/head" ||
    fail "no policy: $(cat "$T/head")"
equal 404 "$(status http://$at/metrics)" "figures, which nobody asked for"
equal 403 "$(status -H 'Host: memefs.example' http://$at/ui)" "another name"
has_past()
{
    curl -s "http://$at/ui/history.json" | jq -e '(.hour.used | length >= 899) and (.day.used | length == 1440) and (.nodes | length == 3) and (.hour.paid | max == 3)'
}
wait_for 5 has_past || fail "history.json"

say "a report, where there is a link, and who may read it"
ln -s "$T/behind" "$T/link"
: >"$T/behind"
cm_ report "$T/link" || fail "cm report to a link"
[ -L "$T/link" ] || fail "the link is gone"
grep -q '</html>' "$T/behind" || fail "nothing behind the link"
cm_ report "$T/plain" || fail "cm report"
equal 640 "$(stat -c %a "$T/plain")" "the report's mode"

say "ten readers, one of which does not read"
readers=()
for i in $(seq 9); do
    args=()
    [ "$i" -le 4 ] || args=(--compressed) # as browsers take it
    curl -sN "${args[@]}" --max-time 3 "http://$at/ui/stream" >"$T/stream$i" &
    readers+=($!)
done
timeout 20 python3 "$HARNESS_DIR/metrics_http.py" deaf 127.0.0.1 9480 /ui/stream >"$T/deaf" &
deaf=$!
pid=$(cut -d' ' -f1 "$STATE/cm.pid")
ticks()
{
    awk '{print $14 + $15}' "/proc/$pid/stat"
}
before=$(ticks)
wait "${readers[@]}" || true
took=$(($(ticks) - before))
for i in $(seq 9); do
    n=$(grep -c '^data: ' "$T/stream$i")
    if [ "$n" -lt 2 ] || [ "$n" -gt 6 ]; then fail "reader $i got $n documents in 3 s"; fi
    grep -m1 '^data: ' "$T/stream$i" | cut -c7- | jq -e '.status.nodes | length == 3' >/dev/null || fail "reader $i got something else"
done
say "ten readers for 3 s took $took ticks of cm"
[ "$took" -lt 20 ] || sanitized || fail "ten readers for 3 s took $took ticks of cm"
kill "$deaf" 2>/dev/null || true
bytes_of() # ENCODING: of the stream, in 3 s
{
    curl -sN -H "Accept-Encoding: $1" -o /dev/null -w '%{size_download}' --max-time 3 "http://$at/ui/stream" || true
}
given() # are the places of those that have gone free?
{
    (curl -sN --max-time 2 "http://$at/ui/stream" || true) | says '^data: '
}
must_happen 20 given
small=$(bytes_of gzip)
large=$(bytes_of identity)
say "three seconds of the stream are $large bytes, as gzip $small"
[ "$((2 * small))" -lt "$large" ] || fail "gzip takes $small bytes, the text $large"

say "asking for the stream makes nothing, and one address has 10"
before=$(ticks)
for _ in $(seq 4); do
    curl -sI --max-time 5 "http://$at/ui/stream?[1-100]" | grep -c '^HTTP/1.1 200' | says -x 100 || fail "HEAD of the stream"
done
took=$(($(ticks) - before))
say "asking 400 times took $took ticks of cm"
readers=()
for _ in $(seq 10); do
    curl -sN --max-time 3 -o /dev/null "http://$at/ui/stream" &
    readers+=($!)
done
eleventh()
{
    [ "$(status --max-time 0.5 "http://$at/ui/stream")" = 503 ]
}
wait_for 3 eleventh || fail "an eleventh watches"
equal 200 "$(status "http://$at/ui/history.json")" "beside ten that watch"
wait "${readers[@]}" || true

say "cm doctor beside cm"
has_looked()
{
    curl -s "http://$at/ui/doctor.json" | jq -e '.findings | map(select(.check == "remains" and .status == "warn" and (.advice | length > 0))) | length == 1'
}
wait_for 20 has_looked || fail "doctor.json: $(curl -s "http://$at/ui/doctor.json")"
! pgrep -aP "$pid" --runstates Z || fail "cm has children that it does not wait for"

skipped=""
browse()
{
    local answer
    jq -cn '$ARGS.positional' --args "$@" >&"${browser[1]}"
    IFS= read -r -t 50 answer <&"${browser[0]}" || fail "the browser is gone"
    printf '%s\n' "$answer" >"$T/answer"
}
is() # FILTER WHAT
{
    jq -e "$1" "$T/answer" >/dev/null || fail "$2: $(head -c 3000 "$T/answer")"
}

in_browser()
{
    say "in a browser"
    coproc browser { exec python3 "$HARNESS_DIR/browser.py" "$chromium" "$T/profile" "$out" 2>"$T/browser.log"; }
    # shellcheck disable=SC2154 # by coproc
    browser_pid=$browser_PID
    IFS= read -r -t 50 _ <&"${browser[0]}" || { skipped="chromium does not run here: $(tail -3 "$T/browser.log")"; return 0; }
    browse open "http://$at/ui" 'document.querySelectorAll("#nodes tbody tr").length === 3'
    is .is "three nodes"
    browse until 'document.getElementById("link").textContent === "live"'
    is .is "live"
    tile="[...document.querySelectorAll('#tiles div')].find((d) => d.firstChild.textContent === 'Memory used').lastChild.firstChild.textContent"
    shows_used()
    {
        used=$(cm_ status --json | jq '[.nodes[].memory_used] | add / 1048576')
        browse value "$tile"
        jq -e --argjson used "$used" '.is | split(" ") | .[1] == "MiB" and ((.[0] | tonumber) / $used | . > 0.95 and . < 1.05)' "$T/answer"
    }
    wait_for 10 shows_used || fail "memory used: $(jq .is "$T/answer"), by cm status $used MiB"
    browse value 'document.querySelectorAll("#map .cell").length'
    is '.is == 24' "partitions"
    browse until 'document.querySelectorAll("#mounts tbody tr").length === 4' 10
    is .is "mounts"
    browse value 'document.getElementById("mounts").textContent.includes("<img src=x") && !document.querySelector("img")'
    is .is "the name of a mount is not shown as text"
    browse value 'document.querySelectorAll("#charts svg path.c1").length > 3'
    is .is "curves"
    browse value '[...document.querySelectorAll("#charts svg")].map((e) => e.getAttribute("aria-label")).find((t) => t.startsWith("Memory"))'
    is '.is | test("used [0-9.]+ MiB, [0-9.]+ .?i?B to [0-9.]+ MiB")' "what a curve says of itself"
    browse value '(document.querySelector("#charts details").open = true, true)'
    browse until 'document.querySelectorAll("#charts details[open] tr").length > 5 && document.querySelector("#charts details[open] tr:last-child td").textContent.includes("MiB")' 5
    is .is "a curve as a table"

    browse until 'document.getElementById("doctor").textContent.includes("remains: 1 records") && document.getElementById("looked").textContent.includes("found something")' 20
    is .is "what cm doctor finds: $(curl -s "http://$at/ui/doctor.json")"
    browse value '[...document.querySelectorAll("#doctor li")].find((e) => e.textContent.includes("remains")).textContent.includes("cm stop --name")'
    is .is "what to do about it"

    say "a change of the nodes"
    cm_ scale +1 >/dev/null || fail "scale"
    browse until 'document.querySelectorAll("#nodes tbody tr").length === 4 && document.getElementById("events").textContent.includes("scaled")' 5
    is .is "four nodes"

    say "how it looks"
    for view in "light 1200 light" "dark 1200 dark" "phone 375 light"; do
        read -r name width scheme <<<"$view"
        browse look "$name" "$width" "$scheme"
        is '.contrast >= 4.5' "contrast, $name"
        is '.wide <= 0' "$name is wider than the screen"
        is '.lang == "en" and .landmarks == 3 and (.title | length > 3)' "what it says of itself"
        [ -s "$out/$name.png" ] || fail "no picture $name"
    done
    is '.errors == []' "it complains"
    is "[.requests[] | select(startswith(\"http://$at/ui\") or startswith(\"data:,\") | not)] == []" "requests to elsewhere"

    say "a report, as a file"
    cm_ report "$T/report.html" || fail "cm report"
    browse open "file://$T/report.html" 'document.title.endsWith(": report")'
    is .is "the report"
    browse look report 1200 light
    is '(.text | contains("Node-hours")) and (.text | contains("scaled")) and .contrast >= 4.5 and .errors == []' "what the report says"
    is "[.requests[] | select(startswith(\"http\")) | select(startswith(\"http://$at/ui\") | not)] == []" "it asks elsewhere"
    ! grep -q unsafe-inline "$T/report.html" || fail "the report runs any script that is in it"
    browse value '(a = document.createElement("script"), a.textContent = "window.planted = 1", document.head.append(a), window.planted === undefined)'
    is .is "the report runs a script that is not its own"
    browse value 'document.querySelectorAll("#charts svg path.c1").length > 3'
    is .is "the report's curves"
    browse open "http://$at/ui" 'document.getElementById("link").textContent === "live"'

    say "cm that was killed"
    rm "$STATE/node-0/gone.pid"
    kill -KILL "$pid"
    browse until 'document.getElementById("link").className.includes("lost")' 10
    is .is "the page does not say that cm is lost"
    cm_ start >/dev/null || fail "cm start"
    browse until 'document.getElementById("link").textContent === "live"' 15
    is .is "the page does not come back"
    browse until 'document.getElementById("looked").textContent.includes("looked at") && !document.getElementById("doctor").textContent.includes("remains:")' 20
    is .is "a finding that is mended stays: $(curl -s "http://$at/ui/doctor.json")"
    end=${browser[1]}
    exec {end}>&-
    wait "$browser_pid" || true
}

if chromium=$(command -v chromium || command -v google-chrome); then
    in_browser
else
    skipped="chromium is not installed"
fi

say "cm stop while readers ask for more and more"
pids=()
for _ in $(seq 4); do
    python3 "$HARNESS_DIR/metrics_http.py" greedy 127.0.0.1 9480 /ui/history.json >"$T/greedy" &
    pids+=($!)
done
curl -sN "http://$at/ui/stream" >/dev/null &
pids+=($!)
wait_for 30 test -s "$T/greedy" || fail "nobody asks"
deployment_stop
wait "${pids[@]}" || true
! pgrep -af "cm doctor --json --name $NAME --state-dir $STATE" || fail "cm doctor goes on without cm"
if [ -e "$STATE/cm.pid" ] || [ -e "$STATE/token" ]; then fail "cm has not cleared away: $(ls "$STATE")"; fi

say "at an address that others reach"
ip link add outside type bridge
ip addr add $outside/24 dev outside
ip link set outside up
cm_ start --memory 256M --ui $outside:9480 --metrics $outside:9480 >/dev/null || fail "cm start there"
token=$(cat "$STATE/token")
equal 401 "$(status http://$outside:9480/ui)" "no token"
equal 401 "$(status "http://$outside:9480/ui?token=${token//[0-9]/0}")" "another token"
equal 401 "$(status "http://$outside:9480/ui/stream?token=$token")" "a token where none is asked for"
curl -s http://$outside:9480/ui | grep 'name="token"' >/dev/null || fail "no field for it"
curl -s -D "$T/entered" -o /dev/null -c "$T/cookies" "http://$outside:9480/ui?token=$token"
grep -qi '^location: /ui.$' "$T/entered" || fail "it stays where the token is: $(cat "$T/entered")"
grep -qi '^set-cookie: memefs_9480=.*HttpOnly; SameSite=Strict' "$T/entered" || fail "the cookie: $(cat "$T/entered")"
equal 200 "$(status -b "$T/cookies" http://$outside:9480/ui)" "with the cookie"
equal 200 "$(status -b "$T/cookies" http://$outside:9480/ui/page.js)" "with the cookie, the script"
cookie=$(sed -n 's/^set-cookie: memefs_9480=\([0-9a-f]*\);.*/\1/Ip' "$T/entered")
equal 200 "$(status -H "Cookie: memefs_9480=$cookie" http://$outside:9480/ui/history.json)" "the cookie, as it was given"
for path in /metrics /targets /uix; do equal 401 "$(status -H "Cookie: memefs_9480=$cookie" http://$outside:9480$path)" "the cookie, for $path"; done
equal 401 "$(status -H "Cookie: memefs_9480=$token" http://$outside:9480/ui)" "the token as a cookie"
equal 401 "$(status -H "Authorization: Bearer $cookie" http://$outside:9480/metrics)" "the cookie as the token"
equal 200 "$(status -H "Authorization: Bearer $token" http://$outside:9480/metrics)" "one address for both"
cm_ stop >/dev/null
[ -z "$skipped" ] || skip "$skipped: the page itself was not looked at"
