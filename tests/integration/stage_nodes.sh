#!/usr/bin/env bash
# memefs stage-in and stage-out --shared: the same call on several nodes copies everything once; a node that does not
# see the source, or that dies, leaves its part to the others.
# ctest: release waits long=15
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
for i in {1..400}; do head -c $((i * 499)) /dev/urandom >"$D/a/f$i"; done
for i in {1..3}; do head -c 20000000 /dev/urandom >"$D/c/large$i"; done
head -c 100000000 /dev/urandom >"$D/a/b/larger"
ln "$D/a/f1" "$D/c/l1"
ln "$D/a/f1" "$D/a/b/l2"
ln -s ../f2 "$D/a/b/s"
mkfifo "$D/c/fifo"
touch -d '2001-02-03 04:05:06.5' "$D/a/b" "$D/c" "$D/a" "$D"
cp -a "$D" "$T/cp"

say "each copies its part"
rm -rf "$MNT0/in"
pids=()
for node in 0 1 2; do
    mount=MNT$node
    stage in "$node" "$D" "${!mount}/in" &
    pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || fail "a node fails: $(cat "$T"/err*)"; done
cat "$T"/json?
equal 404 "$(jq -s 'map(.files) | add' "$T"/json?)" "files that all have copied"
[ "$(jq -s 'map(select(.files > 0)) | length' "$T"/json?)" -ge 2 ] || fail "one has done it all"
same "$T/cp" "$MNT1/in/src"
no_temporaries "$MNT0"
mkdir "$T/out"
stage out 0 "$MNT0/in/src" "$T/out" &
stage out 1 "$MNT1/in/src" "$T/out" || true # of another path: another call
wait $! || true
same "$T/cp" "$T/out/src"
no_temporaries "$T/out"
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
must_happen 20 test -e "$MNT2/in/src/a/f5"
kill -KILL "$pid" "$(cut -d' ' -f1 "$STATE/node-1/client.pid")" 2>/dev/null || true
wait "$pid" 2>/dev/null || true
wait "$other" || fail "the other one fails: $(cat "$T/err0")"
same "$T/cp" "$MNT2/in/src"
stage in 0 "$D" "$MNT0/in" || fail "fails: $(cat "$T/err0")"
# An unfinished copy of the dead node may be left, of a file that another one has finished.

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
expect_fail 1 timeout 20 memefs stage-out --shared "$MNT0/in" http://127.0.0.1:1/x
deployment_stop
