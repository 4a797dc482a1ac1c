#!/usr/bin/env bash
# Hints by extended attributes, with two mounts: which are taken, what directories hand on, where files are then, also when nodes
# come and go, and what a full node makes of it.
# ctest: waits timeout=120
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
ALLOW_LOG='No space left'
need jq setfattr getfattr python3

MEMORY=256M
PLACE=user.memefs.place
READS=user.memefs.delete-after-reads
readers=()

place() # DIRECTORY VALUE
{
    setfattr -n $PLACE -v "$2" "$1" || fail "$1: $2"
}

is_placed() # VALUE FILE…
{
    local value=$1 file
    shift
    for file in "$@"; do
        equal "$value" "$(getfattr --absolute-names --only-values -n $PLACE "$file" 2>/dev/null || true)" "hint of $file"
    done
}

nodes_of() # FILE…: which nodes have bytes of them
{
    local file
    for file in "$@"; do
        memefs layout --json "$file" | jq -r '.nodes[].node'
    done | sort -nu | xargs
}

refused() # ERROR WORDS NAME VALUE PATH
{
    expect_fail 1 setfattr -n "user.memefs.$3" -v "$4" "$5"
    grep -q "$1" "$T/expect.out" || fail "$3=$4: $(cat "$T/expect.out")"
    tail -n 1 "$STATE/node-0/client.log" | says "warn .* hints: user.memefs.$3=.*$2" ||
        fail "$3=$4: $(tail -n 1 "$STATE/node-0/client.log")"
}

files() # DIRECTORY: some of all sizes, the same under all mounts
{
    local size
    for size in 0 1 100 4096 200000 1044480 3000000 5000000; do
        head -c $size /dev/urandom >"$1/f$size"
    done
}

deployment_start 4
cd "$MNT0"

say "what is taken"
mkdir d
refused "Invalid argument" "local, spread, or node:NAME with one of node-0, node-1, node-2, node-3" place locale d
refused "Invalid argument" "one of node-0" place node:node-9 d
refused "Invalid argument" "one of node-0" place "$(head -c 300 /dev/zero | tr '\0' x)" d
refused "Invalid argument" "there are user.memefs.place, user.memefs.ttl, .* and user.memefs.stripe" color red d
for value in 0 -1 3s 4294967296 1.5; do
    refused "Invalid argument" "seconds, from 1 to 4294967295" ttl $value d
done
for value in 0 -1 256 two; do
    refused "Invalid argument" "a number from 1 to 255" delete-after-reads $value d
done
for value in 0 2 yes; do
    refused "Invalid argument" "is to be 1; to take it away, remove" pin $value d
done
is_placed "" d
expect_fail 1 setfattr -x $PLACE d
place d node:2
is_placed node:node-2 d "$MNT1/d"
equal $PLACE "$(getfattr -d d | sed -n 's/=.*//p')" "attributes"
equal "$(stat -c '%t %T' "$MNT1/d")" "0 0" "device of a directory"

say "what is handed on"
mkdir -p d/in/side
is_placed node:node-2 d/in "$MNT1/d/in/side"
place "$MNT1/d/in" spread
mkdir "$MNT0/d/in/after"
is_placed spread d/in d/in/after
is_placed node:node-2 d/in/side
setfattr -x $PLACE d/in
mkdir "$MNT1/d/in/none"
is_placed "" d/in d/in/none
ln -s nowhere d/link
mkfifo d/fifo
touch d/in/plain
mv d/in/plain d/moved # stays what it was
is_placed "" d/moved

say "where files are"
mkdir here
place here local
for mount in 0 1; do
    mkdir "here/$mount"
    files "$T/mnt$mount/here/$mount"
    equal $mount "$(nodes_of here/$mount/f*[1-9]*)" "nodes of local files"
done
files d
equal 2 "$(nodes_of d/f*[1-9]*)" "nodes of files at node-2"
is_placed node:node-2 d/f0 "$MNT1/d/f5000000"
memefs layout d/f5000000 | says '^   hints place=node:node-2$' || fail "$(memefs layout d/f5000000)"
memefs layout d/f5000000 | says '^node 2    5000000 bytes in 5 stripes$' || fail "$(memefs layout d/f5000000)"
memefs layout --json d/f5000000 | jq -e '.hints == {place: "node:node-2"} and (.stripes | length) == 5 and
    .nodes == [{node: 2, stripes: 5, bytes: 5000000}] and ([.stripes[].partition] | unique) == [.home]' >/dev/null ||
    fail "$(memefs layout --json d/f5000000)"
memefs layout --json d | jq -e '.hints.place == "node:node-2" and .nodes == []' >/dev/null || fail "$(memefs layout --json d)"
mkdir d/in/far
place d/in/far spread
files d/in/far
memefs layout --json d/in/far/f5000000 | jq -e '(.nodes | length) > 1 and ([.nodes[].bytes] | add) == .size' >/dev/null ||
    fail "$(memefs layout --json d/in/far/f5000000)"
refused "Operation not supported" "stays where it was made" place spread d/f100
place d/f100 node:2
cp -a d/f100 d/f5000000 d/in/none
equal "" "$(cd d && cmp f5000000 in/none/f5000000)" "a copy"

say "files whose time is over" # … while the rest goes on
mkdir -p short keep
setfattr -n user.memefs.ttl -v 3 short
mkdir "$MNT1/short/sub"
equal 3 "$(getfattr --only-values -n user.memefs.ttl "$MNT0/short/sub")" "time of a directory below"
equal "user.memefs.ttl" "$(getfattr -d short | sed -n 's/=.*//p')" "attributes"
memefs layout --json short | jq -e '.hints == {ttl: "3"}' >/dev/null || fail "$(memefs layout --json short)"
head -c 3000000 /dev/urandom >short/one
echo two >"$MNT1/short/two"
echo three >short/sub/three
echo linked >short/linked
echo moved >short/moved
ln short/linked keep/linked
ln -s nowhere short/link
echo pinned >short/pinned
setfattr -n user.memefs.pin -v 1 "$MNT1/short/pinned"
cp -a short/pinned short/copied
memefs layout --json short/copied | jq -e '.hints == {pin: "1"}' >/dev/null || fail "$(memefs layout --json short/copied)"
head -c 3000000 short/one >"$T/one"
exec 5<"$MNT1/short/one" # stays readable
mv short/moved keep/moved
refused "Operation not supported" "a directory's, for the files in it" ttl 5 keep/moved
expect_fail 1 getfattr -n user.memefs.ttl short/one
while sleep 1; do echo again >>"$MNT1/short/fresh"; done &
writer=$!

say "files that have been read"
mkdir read out
setfattr -n user.memefs.ttl -v 86400 read
setfattr -n $READS -v 3 read
mkdir read/placed read/late "$MNT1/read/linked"
place read/placed node:1
memefs layout --json "$MNT1/read/placed" | jq -e '.hints == {place: "node:node-1", ttl: "86400", "delete-after-reads": "3"}' >/dev/null ||
    fail "$(memefs layout --json "$MNT1/read/placed")"
equal "$READS $PLACE user.memefs.ttl" "$(getfattr -d read/placed | sed -n 's/=.*//p' | sort | xargs)" "attributes"
refused "Operation not supported" "a directory's, for the files that are made in it" delete-after-reads 3 d/f100
for n in {1..24}; do head -c $((n * n * 2000)) /dev/urandom | tee "read/f$n" >"$T/f$n"; done
for n in {1..6}; do echo "$n" >"read/placed/f$n"; echo "$n" >"$MNT1/read/twice$n"; echo "$n" >"read/late/f$n"; done
for name in held mapped written moved linked/name; do cp "$T/f9" "read/$name"; done
ln read/linked/name read/name
mv read/moved out/moved
exec 6<"$MNT1/read/held"
for top in "$MNT0" "$MNT1" "$MNT0"; do # 3 readers of each at the same time
    (cd "$top/read" && printf '%s\n' f{1..24} placed/f{1..6} held name | xargs -P 4 -n 4 sha256sum) >"$T/read.${#readers[@]}" &
    readers+=($!)
done
for pid in "${readers[@]}"; do wait "$pid" || fail "a reader did not find all files"; done
for n in 0 1 2; do
    for f in {1..24}; do equal "$(sha256sum <"$T/f$f" | cut -d ' ' -f 1)" "$(sed -n "s/  f$f\$//p" "$T/read.$n")" "f$f as reader $n saw it"; done
done
for _ in 1 2; do
    cat "$MNT1"/read/twice* read/late/* >/dev/null
done
for _ in {1..5}; do
    cat out/moved >/dev/null
    exec 7<>read/written # who may write does not count
    exec 7<&-
done
python3 - "$MNT0/read/mapped" <<'END' || fail "a mapped file"
import mmap, os, sys, time
path = sys.argv[1]
fd = os.open(path, os.O_RDONLY)
content = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
os.close(fd)  # mapped: it is not closed for the kernel
for _ in range(2):
    whole = open(path, "rb").read()
time.sleep(1)
assert os.path.exists(path) and content[:] == whole
content.close()
END
has_open() # PID PATH
{
    [ "$(readlink "/proc/$1/fd/0")" = "$2" ]
}
reader_dies() # the kernel closes what it had open
{
    python3 -c 'import time; time.sleep(60)' <read/written &
    must_happen 10 has_open $! "$MNT0/read/written"
    kill -9 $!
    wait $! 2>/dev/null || true
}
reader_dies
reader_dies
have_been_read()
{
    [ "$(cd "$MNT1/read" && echo f* placed/* held mapped name)" = "f* placed/* held mapped name" ] &&
        [ "$(cd "$MNT0/read" && echo f* placed/* [hmn]*)" = "f* placed/* [hmn]*" ]
}
must_happen 60 have_been_read
cmp "$T/f9" <&6 || fail "what was open is not readable any more"
exec 6<&-
equal "late linked placed twice1 twice2 twice3 twice4 twice5 twice6 written" "$(cd read && echo *)" "what is to be read"
equal 6 "$(find read/late -type f | wc -l)" "files that may be read once more"
equal "$(sha256sum <"$T/f9")" "$(sha256sum <out/moved)" "what was moved out"

say "staging is no reading of what it makes, and one of what it copies"
mkdir staged again shared "$T/src" "$T/src/sub"
setfattr -n $READS -v 1 staged
setfattr -n $READS -v 1 shared
setfattr -n $READS -v 2 again
for n in {1..40}; do echo "$n" >"$T/src/sub/f$n"; done
head -c 150000000 /dev/urandom >"$T/src/large" # in pieces
is_staged() # DIRECTORY: all of it is there, and stays so
{
    sleep 1
    diff <(cd "$T/src" && find . -type f | sort) <(cd "$1" && find . -type f | sort) || fail "files of $1"
}
for option in '' '' --verify; do
    timeout 60 memefs stage-in ${option:+"$option"} "$T/src" staged/ >/dev/null || fail "stage-in $option"
done
(cd "$T" && find src -type f -exec sha256sum {} +) >"$T/list"
(cd "$T" && timeout 60 memefs stage-in --manifest list "$MNT0/staged") >/dev/null || fail "stage-in of a list"
chmod 600 "$T/src/large" "$T/src/sub/f1" # is mended
timeout 60 memefs stage-in "$T/src" staged/ >/dev/null || fail "stage-in"
is_staged staged/src
for _ in 1 2; do
    timeout 60 memefs stage-in --shared "$T/src" shared/ >/dev/null &
    one=$!
    timeout 60 memefs stage-in --shared "$T/src" "$MNT1/shared/" >/dev/null || fail "stage-in --shared"
    wait $one || fail "stage-in --shared"
done
is_staged "$MNT1/shared/src"
timeout 60 memefs stage-in "$T/src" again/ >/dev/null || fail "stage-in"
for _ in 1 2 3; do # the last two copy nothing
    timeout 60 memefs stage-out again/src "$T/out1" >/dev/null || fail "stage-out"
done
timeout 60 memefs stage-out --verify again/src "$T/out1" >/dev/null || fail "stage-out --verify"
is_staged again/src
timeout 60 memefs stage-out again/src "$T/out2" >/dev/null || fail "stage-out"
cmp "$T/src/large" "$T/out2/src/large" || fail "what was staged out"
are_staged_out() { [ -z "$(find "$MNT1/again" -type f)" ]; }
must_happen 40 are_staged_out
rm -r staged shared again "$T/src" "$T/out1" "$T/out2"

say "what copies them takes no offence"
equal "" "$(getfattr -d d/f100)" "attributes of a file"
cp --preserve=xattr d/f100 d/in/none/preserved || fail "cp"
tar -C d --xattrs --xattrs-include='user.*' -cf "$T/d.tar" f100 f4096
tar -C d/in/none --xattrs --xattrs-include='user.*' -xf "$T/d.tar" 2>"$T/tar.out" || fail "tar"
equal "" "$(cat "$T/tar.out")" "what tar says"
if command -v rsync >/dev/null; then
    mkdir d/synced
    for _ in 1 2; do
        rsync -aX d/in/none/ d/synced 2>"$T/rsync.out" || fail "rsync to a directory with a hint: $(cat "$T/rsync.out")"
        rsync -aX d/f100 d/f4096 d/in 2>"$T/rsync.out" || fail "rsync from a directory with a hint: $(cat "$T/rsync.out")"
    done
fi

say "they are files like others"
echo more >>d/f5000000
echo more >>"$MNT1/d/f5000000"
truncate -s 2000000 "$MNT1/d/f3000000"
truncate -s 4000000 d/f3000000
ln d/f4096 d/linked
mv d/f200000 d/in/far/renamed
ln -f d/f100 d/in/far/f100
rm "$MNT1/d/f1"
equal 2 "$(nodes_of d/f5000000 d/f3000000 d/in/far/renamed)" "nodes of what was changed"
python3 - "$MNT0/d" "$MNT1/d" <<'END' || fail "made by two mounts"
import os, sys, threading
one, other = sys.argv[1:]
for n in range(40):  # O_EXCL: one wins; without it both have the same file
    won, inos = [], []
    def make(top):
        try:
            os.close(os.open(f"{top}/excl{n}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            won.append(top)
        except FileExistsError:
            pass
        fd = os.open(f"{top}/both{n}", os.O_CREAT | os.O_RDWR | os.O_APPEND)
        os.write(fd, top[-3:].encode())
        inos.append(os.fstat(fd).st_ino)
        os.close(fd)
    threads = [threading.Thread(target=make, args=(top,)) for top in (one, other)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(won) == 1 and len(set(inos)) == 1, (n, won, inos)
    assert os.stat(f"{one}/both{n}").st_size == 6 and os.stat(f"{other}/both{n}").st_nlink == 1
fd = os.open(one, os.O_TMPFILE | os.O_RDWR, 0o600)
os.write(fd, b"x" * 3000000)
os.link(f"/proc/self/fd/{fd}", f"{one}/tmp", src_dir_fd=fd)
END
equal 2 "$(nodes_of d/both* d/tmp)" "nodes of raced files"
are_over()
{
    [ "$(cd "$MNT1/short" && echo * sub/*)" = "copied fresh link pinned sub sub/*" ] &&
        [ "$(cd "$MNT0/short" && echo * sub/*)" = "copied fresh link pinned sub sub/*" ]
}
must_happen 30 are_over
kill $writer
wait $writer || true
cmp "$T/one" <&5 || fail "what was open is not readable any more"
exec 5<&-
equal "linked moved" "$(cat keep/linked keep/moved | xargs)" "other names"
equal 1 "$(stat -c %h keep/linked)" "links"
grep -h "had not changed for 3 s" "$STATE"/node-*/client.log || fail "nothing in the logs"
setfattr -x user.memefs.ttl short
touch -d 2001-01-01 short/sub/old # … the time of which is not what counts
sleep 2
[ -e "$MNT1/short/sub/old" ] || fail "a new file with an old time is gone"
rm -r short
(cd "$MNT0" && find . -path ./read -prune -o -type f -print0 | sort -z | xargs -0 sha256sum) >"$T/sums"
fsck_silent

say "nodes come and go"
cm_ scale +1 >/dev/null || fail "cm scale"
cm_ drain node-2 >/dev/null || fail "cm drain"
(cd "$MNT1" && sha256sum --quiet -c "$T/sums") || fail "files have changed"
equal 1 "$(nodes_of d/f5000000 | wc -w)" "nodes of a file"
is_placed node:node-2 "$MNT1/d"
head -c 5000000 /dev/urandom >d/late # where there is no such node, as without a hint
[ "$(nodes_of d/late | wc -w)" -gt 1 ] || fail "$(memefs layout d/late)"
equal "1 2 3 4 5 6" "$(cat "$MNT1"/read/late/* | xargs)" "files with one reading left"
cat read/written >/dev/null
are_read() # also by the name that no reader came by
{
    [ "$(cd "$MNT0/read" && echo late/* linked/* written* twice?)" = "late/* linked/* written* $(echo twice{1..6})" ]
}
refused "Invalid argument" "one of node-0, node-1, node-3, node-4" place node:2 d
place d/f4096 node:2 # it is one of those: nothing to do

say "a full node"
fill() # grows a file at node 3 to where it has no memory
{
    head -c 400M /dev/zero 2>"$T/fill.out" >>full/large && fail "node 3 was to be full"
    grep -q 'No space left' "$T/fill.out" || fail "$(cat "$T/fill.out")"
}
one_is_left() # of its partitions at node 3, which has given the others away
{
    [ "$(cm_ status --json | jq '.nodes[] | select(.id == 3) | .partitions')" = 1 ]
}
mkdir full
place full node:3
fill
wait_for 40 one_is_left || fail "$(cm_ status)"
fill
made=0 # one of 32 goes where the large file is, by its name
for n in {1..32}; do
    if head -c 300000 /dev/urandom 2>/dev/null >"full/f$n"; then made=$((made + 1)); fi
done
[ "$made" -ge 24 ] || fail "of 32 files at a full node $made could be made"
must_happen 60 are_read
rm -r full d here keep read out
equal "" "$(ls -A "$MNT1")" "what is left"
fsck_silent
grep -q ' 0 stripes: clean$' "$T/fsck.out" || fail "stripes are left: $(cat "$T/fsck.out")"
cd /
deployment_stop
