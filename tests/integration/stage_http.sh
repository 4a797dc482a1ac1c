#!/usr/bin/env bash
# memefs stage-in and stage-out by HTTP: ranges at a time, what breaks off goes on, what is there is skipped; servers
# that fail, cut their answers or change meanwhile are survived or told of, and never leave half a file.
# ctest: waits long=50
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need python3 curl jq sha256sum setfattr
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY all_proxy

stage_in() { timeout 60 memefs stage-in "$@"; }
stage_out() { timeout 60 memefs stage-out "$@"; }

W=$T/web
mkdir -p "$W/files/sub"
head -c 150000000 /dev/urandom >"$W/files/large"
echo small >"$W/files/small"
: >"$W/files/none"
echo 'of a name' >"$W/files/sub/a name%"
touch -d '2011-02-03 04:05:06' "$W/files/small"
"$HARNESS_DIR/http_files" "$W" &
server=$!
must_happen 20 test -e "$W/port"
U=http://127.0.0.1:$(cat "$W/port")
deployment_start 2

say "files"
stage_in "$U/large" "$U/small" "$U/none" "$U/sub/a%20name%25" "$MNT0/in"
cmp "$W/files/large" "$MNT1/in/large"
cmp "$W/files/sub/a name%" "$MNT1/in/a name%"
[ -e "$MNT1/in/none" ] || fail "an empty file"
equal "$(stat -c %Y "$W/files/small")" "$(stat -c %Y "$MNT0/in/small")" "time of change"
[ "$(grep -c '^GET /large bytes=' "$W/calls")" -ge 3 ] || fail "not in ranges"
: >"$W/calls"
stage_in --json "$U/large" "$U/small" "$MNT0/in" >"$T/json"
equal '[0,2]' "$(jq -c '[.files, .skipped]' "$T/json")" "repeated"
! grep GET "$W/calls" || fail "what is there was read again"
stage_in --verify -T "$U/large" "$MNT0/other" >/dev/null
cmp "$W/files/large" "$MNT1/other"
(cd "$W/files" && sha256sum small) | sed "s| small| $U/small|" >"$T/list"
stage_in --manifest "$T/list" "$MNT0/list" >/dev/null
sed 's/^......../00000000/' "$T/list" >"$T/wrong"
expect_fail 1 stage_in --manifest "$T/wrong" "$MNT0/wrong"
grep -q checksum "$T/expect.out" || fail "no word of the checksum"
rm -r "$MNT0/in" "$MNT0/other"

say "what breaks off goes on"
faults() { printf '%s\n' "$1" >"$W/faults"; }
faults '{"GET": {"times": 3, "cut": true}, "HEAD": {"times": 2, "status": 503}}'
stage_in "$U/large" "$MNT0/in" >/dev/null
cmp "$W/files/large" "$MNT1/in/large"
rm "$MNT0/in/large"
memefs stage-in --jobs 1 "$U/large" "$MNT0/in" >/dev/null 2>&1 &
pid=$!
until gone "$pid" || [ -n "$(getfattr -n user.memefs-stage "$MNT0/in/".memefs-stage.* 2>/dev/null)" ]; do :; done
kill -KILL "$pid" 2>/dev/null || true
wait "$pid" 2>/dev/null || true
stage_in "$U/large" "$MNT0/in" >/dev/null
cmp "$W/files/large" "$MNT1/in/large"
rm "$MNT0/in/large"
faults '{"GET": {"times": 1, "plain": true}, "HEAD": {"times": 1, "plain": true}}'
stage_in "$U/large" "$MNT0/in" >/dev/null
cmp "$W/files/large" "$MNT1/in/large"
rm -r "$MNT0/in"
faults '{"GET": {"times": 1, "broken": true}, "HEAD": {"plain": true}}'
stage_in "$U/small" "$MNT0/in" >/dev/null
cmp "$W/files/small" "$MNT1/in/small"
rm -r "$MNT0/in"
faults '{"GET": {"weak": true}, "HEAD": {"weak": true}}'
stage_in "$U/large" "$MNT0/in" >/dev/null
cmp "$W/files/large" "$MNT1/in/large"
rm -r "$MNT0/in"

say "what can't be had is told"
refused() # FAULTS WORDS
{
    faults "$1"
    expect_fail 1 stage_in "$U/small" "$U/sub/a%20name%25" "$MNT0/in"
    grep -qE "$2" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
    equal "" "$(find "$MNT0/in" -name '.memefs-stage.*')" "temporary files"
    [ ! -e "$MNT0/in/small" ] || fail "$1: half a file"
}
refused '{"GET": {"status": 403}}' 'small: status 403'
refused '{"GET": {"longer": true}}' 'small: the answer is longer'
refused '{"GET": {"status": 412}}' 'small: .*run the same again'
refused '{"HEAD": {"weak": true}, "GET": {"weak": true, "later": 5}}' 'small: changed while it was read'
faults '{"GET": {"status": 500}}'
expect_fail 1 stage_in "$U/small" "$MNT0/in" # some seconds: it is tried again
grep -q 'small: 6 tries: status 500' "$T/expect.out" || fail "says $(cat "$T/expect.out")"
faults '{}'
expect_fail 1 stage_in "$U/nothing" "$U/" "$U/small" "$MNT0/in"
grep -q 'nothing: status 404' "$T/expect.out" || fail "says $(cat "$T/expect.out")"
cmp "$W/files/small" "$MNT0/in/small"
expect_fail 1 stage_in --json "http://u:SECRET@${U#http://}/nothing?X-Amz-Signature=SECRET" "$MNT0/in"
grep -q 'nothing?: status 404' "$T/expect.out" || fail "says $(cat "$T/expect.out")"
! grep SECRET "$T/expect.out" || fail "a secret is printed"
expect_fail 1 stage_in file:///etc/passwd "$MNT0/in"

say "out"
mkdir -p "$MNT0/out/a b"
echo one >"$MNT0/out/one"
echo two >"$MNT0/out/a b/two?"
head -c 30000000 /dev/urandom >"$MNT0/out/big"
ln -s one "$MNT0/out/link"
faults '{"PUT": {"times": 2, "status": 503}}'
expect_fail 1 stage_out --verify "$MNT0/out" "$U/up"
grep -q 'link: a server keeps files only' "$T/expect.out" || fail "says $(cat "$T/expect.out")"
rm "$MNT0/out/link"
diff -r "$MNT0/out" "$W/files/up/out"
sleep 1.1 # HTTP has whole seconds
touch -d '5 seconds ago' "$MNT0"/out/*
stage_out --json "$MNT0/out" "$U/up" >"$T/json"
equal 0 "$(jq .failed "$T/json")" "failed"
faults '{"PUT": {"status": 507}}'
echo three >"$MNT0/out/three"
expect_fail 1 stage_out "$MNT0/out" "$U/up"
grep -q 'three: .*status 507' "$T/expect.out" || fail "says $(cat "$T/expect.out")"
faults '{}'

say "what is sent has been read once, what is there already has not"
mkdir "$MNT0/twice"
setfattr -n user.memefs.delete-after-reads -v 2 "$MNT0/twice"
for n in {1..20}; do echo "$n" >"$MNT0/twice/$n"; done
head -c 30000000 /dev/urandom >"$MNT0/twice/big"
sleep 1.1 # HTTP has whole seconds
faults '{"PUT": {"times": 2, "status": 503}}'
stage_out "$MNT0/twice" "$U/up" >/dev/null
for option in --json --verify; do
    equal '[0,21]' "$(stage_out --json $option "$MNT0/twice" "$U/up" | jq -c '[.files, .skipped]')" "again, $option"
done
sleep 1 # partitions are told, and names would go
equal 21 "$(find "$MNT1/twice" -type f | wc -l)" "files that were sent once"
stage_out "$MNT0/twice" "$U/other" >/dev/null
are_gone() { [ -z "$(find "$MNT1/twice" -type f)" ]; }
must_happen 60 are_gone
deployment_stop
kill "$server"
wait "$server" 2>/dev/null || true
