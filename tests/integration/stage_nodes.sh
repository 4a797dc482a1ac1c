#!/usr/bin/env bash
# memefs stage-in and stage-out --nodes and --shared: the same call on several nodes copies everything once; a node that does not
# see the source, or that dies, leaves its part to the others.
# ctest: release waits long=35
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need rsync jq
ALLOW_LOG='killed|signal|client .* is gone|mount|died'

stage() # VERB NODE ARGUMENT…
{
    timeout 60 memefs "stage-$1" --json --shared "${@:3}" >"$T/json$2" 2>"$T/err$2"
}

same()
{
    rsync -aHAXSn --delete --exclude '.memefs-stage.*' --checksum --itemize-changes "$1/" "$2/" >"$T/differs"
    [ ! -s "$T/differs" ] || fail "$1 and $2 differ: $(head -5 "$T/differs")"
}

no_temporaries() # DIRECTORY
{
    equal "" "$(find "$1" -name '.memefs-stage.*')" "temporary files in $1"
}

deployment_start 3
D=$T/data/src
mkdir -p "$D/a/b" "$D/c"
head -c 40000000 /dev/urandom | split -b 100000 -a 3 -d - "$D/a/f"
for i in {1..3}; do head -c 20000000 /dev/urandom >"$D/c/large$i"; done
head -c 100000000 /dev/urandom >"$D/a/b/larger"
ln "$D/a/f001" "$D/c/l1"
ln "$D/a/f001" "$D/a/b/l2"
ln -s ../f002 "$D/a/b/s"
mkfifo "$D/c/fifo"
touch -d '2001-02-03 04:05:06.5' "$D/a/b" "$D/c" "$D/a" "$D"
cp -a "$D" "$T/cp"

say "one is stopped: another one waits for it, of which the end of this test tells"
mkdir "$MNT0/bigs"
head -c 100000000 /dev/urandom >"$MNT0/bigs/big"
unfinished()
{
    compgen -G "$T/stopped/bigs/.memefs-stage.*.????????????????" || true
}
begin()
{
    rm -rf "$T/stopped"
    memefs stage-out --shared --jobs 1 "$MNT0/bigs" "$T/stopped" >/dev/null 2>&1 &
    stopped=$!
    until gone "$stopped" || [ -n "$(unfinished)" ]; do :; done
    kill -STOP "$stopped" 2>/dev/null && [ ! -e "$T/stopped/bigs/big" ] && [ -n "$(unfinished)" ]
}
for _ in {1..20}; do
    ! begin || break
    kill -CONT "$stopped" 2>/dev/null || true
    wait "$stopped" || true
done
left=$(basename "$(unfinished)")
[ -n "$left" ] || fail "it is too fast to be stopped"
timeout 110 memefs stage-out --shared "$MNT0/bigs" "$T/stopped" >/dev/null 2>"$T/waits.err" &
waits=$!

say "one call, on all nodes"
rm -rf "$MNT0/in"
memefs stage-in --json --nodes all "$D" "$MNT0/in" >"$T/json0" || fail "fails: $(cat "$T/json0")"
cat "$T/json0"
equal "404 3 true" "$(jq -r '"\(.files) \(.nodes | length) \([.nodes[].whole] | all)"' "$T/json0")" "files, nodes, all whole"
[ "$(jq '[.nodes[] | select(.files > 0)] | length' "$T/json0")" -ge 2 ] || fail "one has done it all"
same "$T/cp" "$MNT1/in/src"
mkdir "$T/out"
touch "$T/out/.memefs-stage.token.new" # outside of deployments its lock may be another node's alone
touch -d '1 hour ago' "$T/out/.memefs-stage.token.old"
# shellcheck disable=SC2016 # for the inner shell
(cd "$MNT1/in" && memefs stage-out --json --nodes node-0,node-1 --launch 'false {host}' src "$T/out") >"$T/json0" ||
    fail "stage-out fails: $(cat "$T/json0")"
equal "404 2" "$(jq -r '"\(.files) \(.nodes | length)"' "$T/json0")" "files, nodes"
same "$T/cp" "$T/out/src"
equal .memefs-stage.token.new "$(find "$T/out" -name '.memefs-stage.*' -printf '%f\n')" "tokens that stay"
rm "$T/out/.memefs-stage.token.new"
touch "$MNT2/in/.memefs-stage.token.new"
memefs stage-in --json --nodes all "$D" "$MNT2/in" >"$T/json0" || fail "repeated: $(cat "$T/json0")"
equal "0 404 200000000" "$(jq -r '"\(.files) \(.skipped) \(.skipped_bytes)"' "$T/json0")" "files, skipped, bytes of them"
expect_fail 1 memefs stage-in --nodes node-1,node-7 "$D" "$MNT0/in"
grep -q 'no node node-7 has a mount' "$T/expect.out" || fail "says $(cat "$T/expect.out")"
expect_fail 1 memefs stage-in --nodes all "$D/none" "$D/a" "$MNT0/in"
grep -q 'node-2: .*none: No such file' "$T/expect.out" || fail "says $(cat "$T/expect.out")"
grep -q '1 file failed; all else is there' "$T/expect.out" || fail "says $(cat "$T/expect.out")"
no_temporaries "$MNT0"
no_temporaries "$T/out"
rm -r "$MNT0/in" "$T/out"

say "two that start the same call at once share it, and neither takes the other's token for an old one"
memefs stage-in --json --nodes all "$D" "$MNT0/in" >"$T/json1" 2>"$T/err1" &
one=$!
memefs stage-in --json --nodes all "$D" "$MNT1/in" >"$T/json0" || fail "fails: $(cat "$T/json0")"
wait $one || fail "fails: $(cat "$T/json1" "$T/err1")"
equal "404 true" "$(jq -rs '"\(map(.files) | add) \([.[].nodes[].whole] | all)"' "$T/json0" "$T/json1")" "files of both, all whole"
same "$T/cp" "$MNT2/in/src"
no_temporaries "$MNT0"
rm -r "$MNT0/in"

say "a launcher that chooses the nodes"
# shellcheck disable=SC2016 # for the inner shell
echo 'exec 3>&1; tee >("$@" >&3) | "$@"' >"$T/launch"
memefs stage-in --json --launch "bash $T/launch" "$D" "$MNT0/in" >"$T/json0" || fail "fails: $(cat "$T/json0")"
equal "404 2" "$(jq -r '"\(.files) \(.nodes | length)"' "$T/json0")" "files, processes"
same "$T/cp" "$MNT1/in/src"
rm -r "$MNT0/in"
expect_fail 1 memefs stage-in --launch false "$D" "$MNT0/in"
grep -q 'ended before its part was done (status 1)' "$T/expect.out" || fail "says $(cat "$T/expect.out")"
mkdir "$T/a b"
cp "$(command -v memefs)" "$T/a b/memefs"
expect_fail 1 "$T/a b/memefs" stage-in --launch true "$D" "$MNT0/in"
grep -q "the program's path $T/a b/memefs has characters" "$T/expect.out" || fail "says $(cat "$T/expect.out")"

say "what is in a directory comes with the directory's times"
memefs stage-in --nodes all "$D/" "$MNT0/in" || fail "fails"
same "$T/cp" "$MNT2/in"
no_temporaries "$MNT0"

say "one has an empty directory in place of the source"
cat >"$T/launch1" <<'EOF' # EMPTY PROGRAM…: once as it is, once with nothing in EMPTY
plan=$(sed -u '/^go$/q')
run() # PROGRAM…: its input has no end
{
    mkfifo "$STAGE_TEST/fifo$BASHPID"
    exec <>"$STAGE_TEST/fifo$BASHPID"
    echo "$plan" >&0
    exec "$@"
}
run "${@:2}" &
# shellcheck disable=SC2016
run unshare -m --propagation private bash -c 'mount -t tmpfs none "$0" && exec "$@"' "$@" &
wait
EOF
export STAGE_TEST=$T
rm -r "$MNT0/in"
expect_fail 1 timeout 50 memefs stage-in --launch "bash $T/launch1 $D" "$D" "$MNT0/in"
grep -q 'has found 1 of the 41[0-9] names that another node has found' "$T/expect.out" || fail "says $(cat "$T/expect.out")"
grep -q 'have not found the same sources' "$T/expect.out" || fail "says $(cat "$T/expect.out")"
same "$T/cp" "$MNT1/in/src"

say "one has another directory in place of the target, and says so before the other one begins"
mkdir "$T/out"
# shellcheck disable=SC2016 # for the inner shell
echo 'exec 3>&1; tee >(unshare -m --propagation private bash -c '\''mount -t tmpfs none "$0" && exec "$@"'\'' "$@" >&3) |
    { sleep 1; exec "${@:2}"; }' >"$T/launch2"
timeout 50 memefs stage-out --launch "bash $T/launch2 $T/out" "$MNT0/in/src" "$T/out" >"$T/out0" 2>&1 || fail "fails: $(cat "$T/out0")"
grep -q "$T/out is not shared" "$T/out0" || fail "says $(cat "$T/out0")"
same "$T/cp" "$T/out/src"
no_temporaries "$T/out"
rm -r "$MNT0/in"

workers() # of this test
{
    local pid
    for pid in $(pgrep -f "^[^ ]*/memefs stage-(in|out) --worker"); do
        if grep -zqx "STAGE_TEST=$T" "/proc/$pid/environ" 2>/dev/null; then echo "$pid"; fi
    done
}

gone()
{
    [ -z "$(workers)" ]
}

say "a node dies; who follows them is interrupted, and dies"
memefs stage-in --jobs 1 --nodes all "$D" "$MNT0/in" >"$T/out0" 2>&1 &
pid=$!
must_happen 20 test -e "$MNT2/in/src/a"
kill -KILL "$(workers | sed -n 1p)"
wait "$pid" || fail "the others fail: $(cat "$T/out0")"
grep -q 'ended before its part was done (.*9)' "$T/out0" || fail "says $(cat "$T/out0")"
same "$T/cp" "$MNT1/in/src"
for signal in INT KILL; do
    rm -r "$MNT0/in"
    memefs stage-in --jobs 1 --nodes all "$D" "$MNT0/in" >"$T/out0" 2>&1 &
    pid=$!
    must_happen 20 test -e "$MNT2/in/src/a"
    kill -"$signal" "$pid"
    ! wait "$pid" || fail "SIG$signal: succeeds"
    must_happen 20 gone
    [ "$signal" = KILL ] || grep -q 'the same call goes on' "$T/out0" || fail "says $(cat "$T/out0")"
done
memefs stage-in --nodes all "$D" "$MNT0/in" || fail "repeated it fails"
same "$T/cp" "$MNT1/in/src"
no_temporaries "$MNT0"
rm -r "$MNT0/in"

say "one does not see the source"
unshare -m --propagation private bash -c "mount -t tmpfs none '$T/data' && exec timeout 60 memefs stage-in --json --shared '$D' '$MNT1/in'" >"$T/json1" 2>"$T/err1" &
pid=$!
stage in 0 "$D" "$MNT0/in" || fail "fails: $(cat "$T/err0")"
! wait "$pid" || fail "a node that sees nothing succeeds"
grep -q "$D: No such file" "$T/err1" || fail "says $(cat "$T/err1")"
same "$T/cp" "$MNT2/in/src"
no_temporaries "$MNT0"
rm -r "$MNT0/in"

say "one dies"
memefs stage-in --shared --jobs 4 "$D" "$MNT1/in" >/dev/null 2>&1 &
pid=$!
stage in 0 --jobs 4 "$D" "$MNT0/in" &
other=$!
must_happen 20 test -e "$MNT2/in/src/a/f005"
kill -KILL "$pid" "$(cut -d' ' -f1 "$STATE/node-1/client.pid")" 2>/dev/null || true
wait "$pid" 2>/dev/null || true
wait "$other" || fail "the other one fails: $(cat "$T/err0")"
same "$T/cp" "$MNT2/in/src"
stage in 0 "$D" "$MNT0/in" || fail "fails: $(cat "$T/err0")"
# An unfinished copy of the dead node may be left until its locks end, of a file that another one has finished.

say "without --shared it is one's own"
rm -r "$MNT0/in"
memefs stage-in --jobs 1 "$D" "$MNT0/in" >/dev/null 2>&1 &
pid=$!
must_happen 20 test -e "$MNT2/in/src"
if kill -STOP "$pid" 2>/dev/null; then
    expect_fail 1 timeout 20 memefs stage-in --shared "$D" "$MNT2/in"
    grep -q 'being staged there already' "$T/expect.out" || fail "says $(cat "$T/expect.out")"
    kill -CONT "$pid"
fi
wait "$pid" || fail "the first one fails"
say "the one that is stopped is named, and goes on"
must_happen 60 grep -q 'bigs/big: another process has begun it, and has not gone on for 30 s' "$T/waits.err"
kill -CONT "$stopped"
wait "$stopped" || fail "the one that was stopped fails"
wait "$waits" || fail "the one that waited fails: $(cat "$T/waits.err")"
cmp "$MNT0/bigs/big" "$T/stopped/bigs/big"

say "what the dead have left of files that are there is removed"
touch "$T/stopped/$left" "$T/stopped/bigs/$left"
memefs stage-out --shared "$MNT0/bigs" "$T/stopped" >/dev/null
no_temporaries "$T/stopped"
expect_fail 1 timeout 20 memefs stage-out --shared "$MNT0/in" http://127.0.0.1:1/x
deployment_stop
