#!/usr/bin/env bash
# memefs stage-in and stage-out: what cp -a keeps is kept both ways; calls that are killed are repeated and finish,
# and nothing is ever half under its own name; what can't be copied is named, and all else is there.
# ctest: waits long=20
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
ALLOW_LOG='No space left'
need rsync setfacl setfattr sha256sum jq

stage_in() { timeout 60 memefs stage-in "$@"; }
stage_out() { timeout 60 memefs stage-out "$@"; }

# same A B: nothing that rsync knows of differs
same()
{
    rsync -aHAXSn --delete --checksum --itemize-changes "$1/" "$2/" >"$T/differs"
    [ ! -s "$T/differs" ] || fail "$1 and $2 differ: $(head -5 "$T/differs")"
}

no_temporaries() # DIRECTORY
{
    equal "" "$(find "$1" -name '.memefs-stage.*')" "temporary files in $1"
}

# What is under its own name has the source's content; $1: the copy of $T/src
whole()
{
    local file
    while read -r -d '' file; do
        cmp -s "$T/src/$file" "$1/$file" || fail "$file is not whole"
    done < <(cd "$1" 2>/dev/null && find . -type f ! -name '.memefs-stage.*' -print0)
}

deployment_start 2
mkdir "$T/src" "$T/plain"
cd "$T/src"
long=$(printf 'n%.0s' {1..255})
mkdir -p a/b/c d empty
for i in {1..60}; do head -c $((i * 2999)) /dev/urandom >"a/f$i"; done
: >a/none
echo long >"a/$long"
printf '%s' 'x' >$'a/a\nline \xff'
head -c 150000000 /dev/urandom >large
ln a/f1 d/l1
ln a/f1 a/b/l2
ln -s nowhere a/b/dangling
ln -s ../a/f2 d/link
ln d/link d/link2
mkfifo d/fifo
mknod d/null c 1 3
truncate -s 5M d/sparse
printf 'middle' | dd of=d/sparse bs=1 seek=3000000 conv=notrunc status=none
truncate -s 100M d/hole
setfattr -n user.colour -v green a/f2
setfattr -n user.of.directory -v yes d
setfacl -m u:1000:rw a/f3
setfacl -d -m g:1000:rx a/b/c
chmod 4711 a/f4
chown 1000:1001 a/f5 d
chown -h 1000:1001 d/link
chmod 0500 a/b
touch -d '2001-02-03 04:05:06.123456789' a/b/c a/f6
touch -h -d '2002-02-03 04:05:06.987654321' a/b/dangling
cd "$T"
cp -a src "$T/cp"

say "what cp -a keeps"
stage_in src "$MNT0/in"
same cp "$MNT1/in/src"
stage_out "$MNT0/in/src/" "$T/plain/out"
same cp "$T/plain/out"
[ "$(stat -c %b plain/out/d/hole)" -eq 0 ] || fail "a hole has got blocks"
[ "$(stat -c %b "$MNT0/in/src/d/hole")" -eq 0 ] || fail "a hole has got blocks in memory"
no_temporaries "$MNT0"
no_temporaries "$T/plain"

say "hints"
mkdir -p hinted/far
setfattr -n user.memefs.place -v node:node-1 hinted
setfattr -n user.memefs.place -v node:node-77 hinted/far # of another deployment
for i in {1..6}; do head -c 1500000 src/large >"hinted/f$i"; done
touch -d 2003-04-05 hinted/far
chmod 0750 hinted/far
stage_in hinted "$MNT0/in"
for i in {1..6}; do
    equal 1 "$(memefs layout --json "$MNT0/in/hinted/f$i" | jq -r '.nodes[].node' | xargs)" "nodes of a file with a place"
done
equal "$(stat -c '%a %Y' hinted/far)" "$(stat -c '%a %Y' "$MNT1/in/hinted/far")" "a directory whose hint is refused"

say "a second time there is nothing to do"
stage_in --json src "$MNT0/in" >"$T/json"
equal '[0,0,66,0]' "$(jq -c '[.files, .bytes, .skipped, .failed]' "$T/json")" "repeated"
stage_in -T src/large "$MNT0/other"
cmp src/large "$MNT1/other"

say "what is there is compared where that is asked for"
printf 'X' | dd of="$MNT0/in/src/large" bs=1 seek=100000000 conv=notrunc status=none
touch -r src/large "$MNT0/in/src/large"
stage_in src "$MNT0/in" >/dev/null
! cmp -s src/large "$MNT0/in/src/large" || fail "compared without --verify"
stage_in --verify src "$MNT0/in" >"$T/said"
cmp src/large "$MNT0/in/src/large"
chmod 600 src/a/f7
stage_in src "$MNT0/in" >/dev/null
equal 600 "$(stat -c %a "$MNT0/in/src/a/f7")" "a mode that has changed"
chmod 644 src/a/f7
rm -r "$MNT0/in" "$MNT0/other"

say "killed anywhere, it goes on"
for _ in {1..10}; do
    memefs stage-in --jobs 4 src "$MNT0/in" >/dev/null 2>&1 &
    sleep "0.0$((RANDOM % 90 + 10))"
    kill -KILL $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    whole "$MNT1/in/src"
done
stage_in src "$MNT0/in"
same cp "$MNT1/in/src"
no_temporaries "$MNT0"
# Of a large file what is there is not copied again.
rm "$MNT0/in/src/large"
memefs stage-in --jobs 1 src/large "$MNT0/in/src" >/dev/null 2>&1 &
pid=$!
until gone "$pid" || [ -n "$(getfattr -n user.memefs-stage "$MNT0/in/src/".memefs-stage.* 2>/dev/null)" ]; do :; done
if kill -KILL "$pid" 2>/dev/null; then
    wait "$pid" 2>/dev/null || true
    stage_in --json src/large "$MNT0/in/src" >"$T/json"
    jq -e '.bytes < 150000000 and .bytes + .skipped_bytes == 150000000' "$T/json" >/dev/null ||
        fail "begun anew: $(cat "$T/json")"
fi
cmp src/large "$MNT1/in/src/large"

say "lists"
(cd src && sha256sum a/f1 a/f2 d/sparse) >sums
(cd src && stage_in --manifest ../sums "$MNT0/list" >/dev/null)
printf x >$'a\nnew \\line'
sha256sum $'a\nnew \\line' >odd
stage_in --manifest odd "$MNT0/list" >/dev/null
equal x "$(cat "$MNT0/list/"$'a\nnew \\line')" "a file whose name has a newline"
mkdir t
# shellcheck disable=SC2016 # for the inner shell
expect_fail 1 unshare -m --propagation private bash -c 'mount -t tmpfs none t && truncate -s 1E t/huge && memefs stage-in t/huge "$0"' "$MNT0/list"
grep -q 'huge: File too large' "$T/expect.out" || fail "says $(cat "$T/expect.out")"
rmdir t
cmp src/a/f2 "$MNT0/list/a/f2"
cmp src/d/sparse "$MNT0/list/d/sparse"
printf '%s\n' 'src/a/f3	here/f three' src/a/f4 >lines
stage_in --manifest lines "$MNT0/list" >/dev/null
cmp src/a/f3 "$MNT0/list/here/f three"
cmp src/a/f4 "$MNT0/list/src/a/f4"
cd src
sed -n '1s/^......../00000000/p' ../sums >../wrong
expect_fail 1 stage_in --manifest ../wrong "$MNT0/wrong"
grep -q 'checksum' "$T/expect.out" || fail "no word of the checksum: $(cat "$T/expect.out")"
[ ! -e "$MNT0/wrong/a/f1" ] || fail "what has the wrong checksum is there"
cd ..
printf '%s\n' 'src/a/f3	../out' >lines
expect_fail 1 stage_in --manifest lines "$MNT0/list"
[ ! -e "$MNT0/out" ] || fail "a list leads out of the target"

say "what can't be copied is named, and all else is there"
mkdir src2
for i in {1..20}; do echo "$i" >"src2/$i"; done
head -c 30000000 /dev/zero >src2/grows
while [ -e src2/grows ]; do
    echo more >>src2/grows
done &
mkdir -p "$MNT0/two/src2/7"
printf '%s\n' src2 src2/vanished >lines
expect_fail 1 stage_in --json --manifest lines "$MNT0/two"
kill $! # not by the file's end: it may be made once more between the look and the write
wait $! 2>/dev/null || true
rm -f src2/grows
grep -q 'grows: changed while it was read' "$T/expect.out" || fail "no word of what grows: $(cat "$T/expect.out")"
grep -q 'vanished: No such file' "$T/expect.out" || fail "no word of what vanished"
grep -q '7: Is a directory' "$T/expect.out" || fail "no word of what is in the way"
equal '[19,3,3]' "$(grep '^{' "$T/expect.out" | jq -c '[.files, .failed, (.errors | length)]')" "all else"
no_temporaries "$MNT0"
chmod 777 "$MNT0"
chmod 000 src2/3
install -D "$MEMEFS_BIN/memefs" "$T/bin/memefs"
expect_fail 1 setpriv --reuid 65534 --regid 65534 --clear-groups timeout 60 "$T/bin/memefs" stage-in src2 "$MNT0/three"
grep -q '3: Permission denied' "$T/expect.out" || fail "no word of what is not readable: $(cat "$T/expect.out")"
equal 19 "$(find "$MNT0/three/src2" -type f | wc -l)" "files of another user"
expect_fail 1 stage_in src2 "$T/plain/in"
grep -q 'not on a MemEFS mount' "$T/expect.out" || fail "no word of the place: $(cat "$T/expect.out")"
expect_fail 1 stage_out src2 "$T/plain/in"
expect_fail 2 stage_in "$MNT0/in"
expect_fail 2 stage_in -T src src2 "$MNT0/in"
cp -r src2 "$MNT0/own"
expect_fail 1 stage_out "$MNT0/own" "$MNT0/own" # into itself
grep -q 'target itself' "$T/expect.out" || fail "copied into itself: $(cat "$T/expect.out")"
deployment_stop

say "full memory"
MEMORY=96M deployment_start 1
expect_fail 1 stage_in src/large "$MNT0/full"
grep -q 'cm scale +1' "$T/expect.out" || fail "does not say what to do: $(cat "$T/expect.out")"
[ ! -e "$MNT0/full/large" ] || fail "half a file"
no_temporaries "$MNT0"
stage_in src/a/f1 "$MNT0/full" >/dev/null
deployment_stop
