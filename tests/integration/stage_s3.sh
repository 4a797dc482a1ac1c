#!/usr/bin/env bash
# memefs stage-out and stage-in with S3 (moto, with signatures checked): trees there and back, large objects in parts,
# more names than an answer has; wrong keys, another region, and servers that fail or cut their answers.
# ctest: release waits long=40 timeout=240
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq rsync setfattr
PYTHON=$HARNESS_DIR/../../build/venv/bin/python3
"$PYTHON" -c 'import moto.s3' 2>/dev/null || skip "moto is not installed (scripts/setup --tests)"
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY all_proxy AWS_PROFILE

stage_in() { timeout 60 memefs stage-in "$@"; }
stage_out() { timeout 60 memefs stage-out "$@"; }

C=$T/cloud
mkdir "$C"
"$PYTHON" "$HARNESS_DIR/s3_cloud" "$C" &
server=$!
must_happen 60 test -e "$C/port"
AWS_ENDPOINT_URL=http://127.0.0.1:$(cat "$C/port")
export AWS_ENDPOINT_URL HOME=$T AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=AKRIGHT AWS_SECRET_ACCESS_KEY=secret/of+right
deployment_start 2
S=$MNT0/src
mkdir -p "$S/sub/deep" "$S/many"
for i in {1..50}; do echo "$i" >"$S/many/$i"; done
head -c 50000000 /dev/urandom >"$S/large"
: >"$S/none"
echo plus >"$S/sub/a + b&c=d?é#"
chmod 751 "$S/sub/deep"
echo mode >"$S/sub/deep/mode"
chmod 640 "$S/sub/deep/mode"
touch -d '2012-03-04 05:06:07.123456789' "$S/sub/deep/mode"

say "there and back"
stage_out --json "$S" s3://data/runs/7 >"$T/json"
equal '[54,0]' "$(jq -c '[.files, .failed]' "$T/json")" "out"
[ "$(grep -c '^PUT .*partNumber=' "$C/calls")" -eq 3 ] || fail "not in parts"
stage_in --json s3://data/runs/7/src/ "$MNT0/back" >"$T/json"
equal '[54,0]' "$(jq -c '[.files, .failed]' "$T/json")" "in"
diff -r "$S" "$MNT1/back"
equal "640 $(stat -c %y "$S/sub/deep/mode")" "$(stat -c '%a %y' "$MNT0/back/sub/deep/mode")" "mode and time"
stage_in --verify s3://data/runs/7/src/large "$MNT0/one" >/dev/null
cmp "$S/large" "$MNT1/one/large"

say "what changes meanwhile replaces nothing"
head -c 50000000 /dev/zero >"$S/torn"
while touch -c "$S/torn" && [ ! -e "$T/enough" ]; do :; done &
expect_fail 1 stage_out "$S/torn" s3://data
: >"$T/enough"
wait $!
grep -q 'changed while' "$T/expect.out" || fail "says $(cat "$T/expect.out")"
expect_fail 1 stage_in s3://data/torn "$MNT0/back"
grep -q 'no such object' "$T/expect.out" || fail "a torn object is there"
rm "$S/torn"

say "a directory that becomes a link meanwhile leads nowhere"
mkdir -p "$MNT0/race/src/d" "$T/outside"
for i in {1..100}; do
    echo inside >"$MNT0/race/src/d/$i"
    echo secret >"$T/outside/$i"
done
ln -s "$T/outside" "$MNT0/race/link"
"$PYTHON" - "$MNT0/race" "$T/enough2" <<'EOF' &
import os, sys
os.chdir(sys.argv[1])
while not os.path.exists(sys.argv[2]):
    for a, b in ("src/d", "real"), ("link", "src/d"), ("src/d", "link"), ("real", "src/d"):
        os.rename(a, b)
EOF
for i in {1..3}; do stage_out "$MNT0/race/src" "s3://data/race$i" >/dev/null 2>&1 || true; done
: >"$T/enough2"
wait $!
for i in {1..3}; do stage_in "s3://data/race$i/" "$MNT0/raced/$i" >/dev/null; done
! grep -rq secret "$MNT0/raced" || fail "files from outside of the source were sent"
grep -rq inside "$MNT0/raced" || fail "nothing was sent"

say "what a server is not given is counted"
mkdir -p "$S/left/empty" "$S/left/full"
echo x >"$S/left/full/x"
echo x >"$S/left/full/.memefs-stage.0123456789abcdef.0123456789abcdef"
equal '[1,2,0]' "$(stage_out --json "$S/left" s3://data/left | jq -c '[.files, .left_out, .failed]')" "left out"
stage_out "$S/left" s3://data/left | grep '^2 left out: empty directories' >/dev/null || fail "says no word of it"
stage_in --json s3://data/left/ "$MNT0/left" >"$T/json"
equal '[1,0]' "$(jq -c '[.files, .failed]' "$T/json")" "that were sent"
rm -r "$S/left" "$MNT0/left"

say "no set-user-ID comes from a server"
install -m 4755 /bin/true "$S/own"
stage_out "$S/own" s3://data/own >/dev/null
stage_in s3://data/own/own "$MNT0/own" >/dev/null
equal 755 "$(stat -c %a "$MNT0/own/own")" "mode"
rm -r "$S/own" "$MNT0/own"

say "again"
stage_out --json "$S" s3://data/runs/7 >"$T/json"
equal '[0,54]' "$(jq -c '[.files, .skipped]' "$T/json")" "out again"
stage_in --json s3://data/runs/7/src/ "$MNT0/back" >"$T/json"
equal '[0,54]' "$(jq -c '[.files, .skipped]' "$T/json")" "in again"

say "servers that fail"
faults() { printf '%s\n' "$1" >"$C/faults"; }
rm "$MNT0/back/large" "$MNT0/back/many/1"
faults '{"GET": {"times": 2, "status": 503, "code": "SlowDown"}, "HEAD": {"times": 2, "status": 500}}'
stage_in s3://data/runs/7/src/large "$MNT0/back" >/dev/null
cmp "$S/large" "$MNT1/back/large"
rm "$MNT0/back/large"
faults '{"GET": {"times": 2, "cut": true}}'
stage_in s3://data/runs/7/src/large "$MNT0/back" >/dev/null
cmp "$S/large" "$MNT1/back/large"
faults '{"PUT": {"times": 2, "status": 500}, "POST": {"times": 1, "status": 503}}'
stage_out --verify -T "$S/large" s3://data/second >/dev/null
stage_in -T s3://data/second "$MNT0/second" >/dev/null
cmp "$S/large" "$MNT1/second"
refused() # WORDS COMMAND…
{
    expect_fail 1 "${@:2}"
    grep -qE "$1" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
}
faults '{"PUT": {"status": 403, "code": "AccessDenied"}}'
refused 'large: .*AccessDenied' stage_out -T "$S/large" s3://data/third
grep -q '^DELETE .*uploadId' "$C/calls" || fail "the parts that were sent are left there"
faults '{"GET": {"body": "<html>no</html>"}}'
refused 'runs/7/src/: what answers is not S3' stage_in s3://data/runs/7/src/ "$MNT0/x"
page() # TOKEN KEY…
{
    printf '<ListBucketResult>%s<NextContinuationToken>%s</NextContinuationToken></ListBucketResult>' \
        "$(printf '<Contents><Key>%s</Key></Contents>' "${@:2}")" "$1"
}
faults "{\"GET\": {\"body\": \"$(page same loop/one/two/)\"}}"
refused 'loop/: the server.s list repeats itself' stage_in s3://data/loop/ "$MNT0/x"
faults "{\"GET\": {\"body\": \"$(page '%' loop/one/ loop/two/)\", \"number\": true}}"
refused 'loop/: the server.s list repeats itself' stage_in s3://data/loop/ "$MNT0/x"
faults '{"HEAD": {"region": "eu-west-1"}}'
refused 'AWS_REGION=eu-west-1' stage_in s3://data/second "$MNT0/x"
faults '{}'
refused 'no such object .a prefix' stage_in s3://data/nothing "$MNT0/x"
refused 'no bucket has such a name|Invalid argument' stage_in 's3://da ta/nothing/' "$MNT0/x"
refused 'NoSuchBucket' stage_in s3://other/things/ "$MNT0/x"
equal "" "$(find "$MNT0/x" -type f)" "files of calls that failed"

say "what is sent has been read once, what is there already has not"
mkdir "$MNT0/twice"
setfattr -n user.memefs.delete-after-reads -v 2 "$MNT0/twice"
for n in {1..20}; do echo "$n" >"$MNT0/twice/$n"; done
head -c 30000000 /dev/urandom >"$MNT0/twice/big"
sleep 1.1
faults '{"PUT": {"times": 2, "status": 503}}'
stage_out "$MNT0/twice" s3://data/counted >/dev/null
for option in --json --verify; do
    equal '[0,21]' "$(stage_out --json $option "$MNT0/twice" s3://data/counted | jq -c '[.files, .skipped]')" "again, $option"
done
sleep 1 # partitions are told, and names would go
equal 21 "$(find "$MNT1/twice" -type f | wc -l)" "files that were sent once"
stage_out "$MNT0/twice" s3://data/counted2 >/dev/null
are_gone() { [ -z "$(find "$MNT1/twice" -type f)" ]; }
must_happen 60 are_gone

say "keys"
AWS_SECRET_ACCESS_KEY=wrong refused 'is the key right' stage_in s3://data/runs/ "$MNT0/x"
AWS_ACCESS_KEY_ID=AKOTHER refused 'InvalidAccessKeyId' stage_in s3://data/runs/ "$MNT0/x"
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
refused 'there is no key for S3' stage_in s3://data/second "$MNT0/x"
mkdir "$T/.aws"
printf '[default]\naws_access_key_id = AKFILE\naws_secret_access_key=secret-of-file\naws_session_token=token+of/session==\n' \
    >"$T/.aws/credentials"
stage_in s3://data/runs/7/src/sub/ "$MNT0/file" >/dev/null
diff -r "$S/sub" "$MNT0/file"
deployment_stop
kill "$server"
wait "$server" 2>/dev/null || true
