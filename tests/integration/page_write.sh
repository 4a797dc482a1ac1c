#!/usr/bin/env bash
# What the page may change with --ui-write, and who by it: hostile requests, each of which lacks one thing, change nothing
# and are told why; in a real browser the buttons ask first, and then scale, drain and set the policy. Without the flag
# there is nothing to post to.
# ctest: timeout=120 long=20
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need curl jq python3

at=127.0.0.1:9482
expect_fail 2 cm_ start --memory 256M --ui-write
grep -q 'give both' "$T/expect.out" || fail "--ui-write without --ui: $(cat "$T/expect.out")"
deployment_start 2 --partitions 8 --ui $at --ui-write
read_token=$(cat "$STATE/token") token=$(cat "$STATE/token-write")
equal 600 "$(stat -c %a "$STATE/token-write")" "mode of the token's file"
[ "$read_token" != "$token" ] || fail "one token for both"
key=$(curl -sf "http://$at/ui/key") || fail "no key"

nodes()
{
    cm_ status --json | jq '.nodes | length'
}

# posted STATUS BODY [WORD…]: what comes of it, where WORDs are headers in place of the good ones ("Name: value", or "Name:"
# for none) and curl's arguments.
posted()
{
    local want=$1 body=$2 word header arguments=()
    local -A headers=([Origin]="http://$at" [Content-Type]=application/json [Authorization]="Bearer $token" [X-Memefs-Key]="$key")
    shift 2
    for word; do
        case $word in
        [A-Z]*:*) headers[${word%%:*}]=${word#*:} ;;
        *) arguments+=("$word") ;;
        esac
    done
    for header in "${!headers[@]}"; do arguments+=(-H "$header:${headers[$header]}"); done
    status=$(curl -s -o "$T/said" -w '%{http_code}' --max-time 10 --data-binary "$body" "${arguments[@]}" "http://$at/ui/change") || true
    [ "$status" = "$want" ] || fail "$status instead of $want for $(head -c 100 <<<"$body") $*: $(cat "$T/said")"
}

say "requests that lack something"
good='{"do":"scale","nodes":3,"from":2}'
for header in Origin:403 Content-Type:415 Authorization:401 X-Memefs-Key:403; do posted "${header#*:}" "$good" "${header%:*}:"; done
fresh=$(curl -sf "http://$at/ui/key")
for wrong in 'Origin: http://memefs.example' 'Origin: null' "Origin: http://127.0.0.1:9483" 'Host: memefs.example' \
    'Sec-Fetch-Site: same-site' 'Sec-Fetch-Site: cross-site' "X-Memefs-Key: ${fresh//[0-9]/0}" 'X-Memefs-Key: x'; do
    posted 403 "$good" "$wrong"
done
for wrong in 'text/plain' 'application/x-www-form-urlencoded' 'application/jsonx'; do posted 415 "$good" "Content-Type: $wrong"; done
posted 401 "$good" "Authorization: Bearer ${token//[0-9]/0}"
posted 401 "$good" "Authorization: Basic $token"
posted 401 "$good" "Authorization: Bearer $read_token"
grep -q 'for reading' "$T/said" || fail "it does not say which: $(cat "$T/said")"
posted 401 "$good" Authorization: "Cookie: memefs_9482=$token"
for body in '' '{' '[]' '{}' '{"do":"stop"}' '{"do":"scale"}' '{"do":"scale","nodes":0,"from":2}' '{"do":"scale","nodes":-1,"from":2}' '{"do":"scale","nodes":1.5,"from":2}' \
    '{"do":"scale","nodes":1e99,"from":2}' '{"do":"scale","nodes":"3","from":2}' '{"do":"scale","nodes":3}' '{"do":"scale","nodes":3,"from":"2"}' '{"do":"drain"}' '{"do":"policy","name":"csi","from":"none"}' '{"do":"policy","name":"cso"}' '{"do":["scale"],"nodes":3}' \
    "$good$good" "{\"do\":\"drain\",\"node\":\"$(printf 'n%.0s' $(seq 3000))\"}"; do
    posted 400 "$body"
done
posted 409 '{"do":"drain","node":"node-9"}'
posted 400 '{"do":"marker-in-the-log","policy":"marker-in-the-log"}'
posted 400 '{"do":"policy","from":"none","name":"marker-in-the-log"}'
if grep 'marker-in-the-log' "$STATE/cm.log"; then fail "what was posted is in the log as it came"; fi
posted 409 '{"do":"scale","nodes":3,"from":4}'
equal "not from 4 nodes, there are 2 now: ask again" "$(cat "$T/said")" "from another number"
posted 409 '{"do":"policy","name":"cso","from":"aso"}'
equal "not from aso, the policy is none now: ask again" "$(cat "$T/said")" "from another policy"
head -c 5000 /dev/zero | tr '\0' ' ' >"$T/long"
posted 413 "@$T/long"
posted 413 "@$T/long" 'Transfer-Encoding: chunked'
head -c 10000000 /dev/zero >"$T/endless"
posted 413 "@$T/endless" 'Transfer-Encoding: chunked'
for method in PUT DELETE PATCH OPTIONS; do posted 405 "$good" -X $method; done
for page in / /ui /ui/stream /ui/key /ui/history.json; do
    got=$(curl -s -o /dev/null -w '%{http_code}' -X POST -H "Origin: http://$at" -H "Authorization: Bearer $token" "http://$at$page")
    equal 405 "$got" "POST $page"
done
equal 404 "$(curl -s -o /dev/null -w '%{http_code}' "http://$at/ui/change")" "GET"
equal 2 "$(nodes)" "nodes after all of these"
equal none "$(cm_ policy)" "policy after all of these"

say "as it should be"
posted 202 '{"do":"scale","nodes":2,"from":2}'
equal "it is so already" "$(cat "$T/said")" "where nothing is to be done"
posted 202 '{"do":"policy","name":"cso+csi","from":"none"}'
equal cso+csi "$(cm_ policy)" policy
event_says policy 'cso\+csi instead of none, by the page, at 127.0.0.1' || fail "no event says who"
posted 202 '{"do":"policy","name":"none","from":"cso+csi"}' 'Transfer-Encoding: chunked'
equal none "$(cm_ policy)" policy

browse()
{
    jq -cn '$ARGS.positional' --args "$@" >&"${browser[1]}"
    IFS= read -r -t 50 answer <&"${browser[0]}" || fail "the browser is gone"
    jq -e .is <<<"$answer" >/dev/null || fail "$*: $answer"
}

# begins ANSWER WHAT FIELD VALUE: the button, with that in its field, is pressed, and cm answers so; where a node has just
# come and not told its figures yet the page waits for that.
begins()
{
    local want=$1
    shift
    browse value "(document.getElementById('$2').value = '$3', document.querySelector('[data-do=$1]').click(), document.getElementById('yes').click(), true)"
    browse until '!["asking …", "That would change nothing."].includes(document.getElementById("changed").textContent)' 10
    jq -cn '["value", "document.getElementById(\"changed\").textContent"]' >&"${browser[1]}"
    IFS= read -r -t 50 answer <&"${browser[0]}"
    equal "$want" "$(jq -r .is <<<"$answer")" "$*"
}

in_browser()
{
    say "in a browser"
    coproc browser { exec python3 "$HARNESS_DIR/browser.py" "$chromium" "$T/profile" "$T" 2>"$T/browser.log"; }
    # shellcheck disable=SC2154 # by coproc
    browser_pid=$browser_PID
    IFS= read -r -t 50 _ <&"${browser[0]}" || { skipped="chromium does not run here: $(tail -3 "$T/browser.log")"; return 0; }
    browse open "http://$at/ui" '!document.getElementById("change").hidden && document.getElementById("node").length === 2 && change.key'
    browse value "(document.querySelector('[data-do=scale]').click(), document.getElementById('changed').textContent.includes('token is needed'))"
    browse value "(document.getElementById('token').value = '$token', document.getElementById('to').value = 3, document.querySelector('[data-do=scale]').click(), document.getElementById('sure').open)"
    browse value 'document.getElementById("question").textContent === "Scale from 2 to 3 nodes?"'
    browse value '(document.querySelector("#sure button[value=no]").click(), !document.getElementById("sure").open)'
    equal 2 "$(nodes)" "nodes when it was cancelled"
    begins begun scale to 3
    browse until 'document.querySelectorAll("#nodes tbody tr").length === 3 && !last.changing' 20
    begins begun drain node node-1
    browse until '[...document.getElementById("node").options].map((o) => o.value).join() === "node-0,node-2" && !last.changing' 20
    begins 'it is set' policy policy aso
    browse until 'document.getElementById("facts").textContent.includes("policy aso")' 5
    equal aso "$(cm_ policy)" "policy"
    browse value 'document.cookie === "" && sessionStorage.length + localStorage.length === 0'
    for view in "light 1200" "dark 375"; do
        read -r scheme width <<<"$view"
        jq -cn '$ARGS.positional' --args look change "$width" "$scheme" >&"${browser[1]}"
        IFS= read -r -t 50 answer <&"${browser[0]}"
        jq -e '.contrast >= 4.5 and .wide <= 0' <<<"$answer" >/dev/null || fail "how it looks: $answer"
    done

    say "another cm has other keys"
    browse value '(before = change.key, true)'
    kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
    cm_ start --ui-write >"$T/started" || fail "cm start"
    grep -q "page at http://$at/ui may change it" "$T/started" || fail "it does not say that the page writes: $(cat "$T/started")"
    posted 403 "$good"
    browse until 'document.getElementById("link").textContent === "live" && change.key && change.key !== before' 20
    browse value 'document.getElementById("token").value === "" && document.getElementById("changed").textContent.includes("give the token again")'
    browse value '(document.getElementById("token").value = "wrong", document.getElementById("policy").value = "none", document.querySelector("[data-do=policy]").click(), document.getElementById("yes").click(), true)'
    browse until 'document.getElementById("changed").textContent.startsWith("Refused: this is not")' 5
    equal aso "$(cm_ policy)" "policy"
    end=${browser[1]}
    exec {end}>&-
    wait "$browser_pid" || true
}

skipped=""
if chromium=$(command -v chromium || command -v google-chrome); then
    in_browser
else
    skipped="chromium is not installed"
fi

say "taken back"
cm_ start >"$T/started" || fail "cm start"
grep -q "may change it" "$T/started" || fail "it goes on without a word: $(cat "$T/started")"
expect_fail 1 cm_ start --ui-write=no
grep -q 'kill -KILL' "$T/expect.out" || fail "it does not say how: $(cat "$T/expect.out")"
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
cm_ start --ui-write=no >"$T/started" || fail "cm start"
if grep 'may change it' "$T/started"; then fail "it is not taken back"; fi
[ ! -e "$STATE/token-write" ] || fail "the token is left"
posted 405 "$good"
deployment_stop
[ ! -e "$STATE/token-write" ] || fail "the token is left"

say "without the flag"
cm_ start --memory 256M --partitions 4 --mount "$MNT0" --ui $at >/dev/null || fail "cm start"
expect_fail 1 cm_ start --ui-write
[ ! -e "$STATE/token-write" ] || fail "a token for nothing"
posted 405 "$good"
equal 404 "$(curl -s -o /dev/null -w '%{http_code}' "http://$at/ui/key")" "a key"
equal 1 "$(nodes)" nodes
cm_ stop >/dev/null
[ -z "$skipped" ] || skip "$skipped: the page itself was not looked at"
