#!/usr/bin/env bash
# A redis process is killed, with or without its Local Manager, while files are made on two mounts:
# another one takes its place, with all names; exactly the files that had stripes there are damaged,
# memefs lost lists these, and they can be removed and made anew. ctest: timeout=150
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# What was being written to a process that is killed is lost, and its client says so.
ALLOW_LOG='lm\[.*can.t|partition [0-9]+|written data are lost'
need jq setfattr

MEMORY=512M deployment_start 2 --partitions 6
FILES=60

# Sizes from nothing to some stripes; sums are of what was closed.
make_files() # MOUNT DIR
{
    local n
    mkdir "$1/$2"
    for ((n = 0; n < FILES; n++)); do
        head -c $((n * n * 1500)) /dev/urandom >"$1/$2/$n"
    done
}

sums() # MOUNT DIR
{
    (cd "$1" && md5sum "$2"/*)
}

# Names and attributes of all: what must survive.
listing() # MOUNT
{
    (cd "$1" && find . -printf '%p %y %s %n %m %T@\n' | sort)
}

# The files of which some byte can't be read; what can be read must be right. A mount may still have
# in its caches what it wrote or read itself, so each is read by the other one.
damaged() # SUMS
{
    local sum name mount out
    while read -r sum name; do
        mount=$MNT0
        [[ $name != a/* ]] || mount=$MNT1
        if ! out=$(md5sum "$mount/$name" 2>"$T/why"); then
            grep -q 'Input/output error' "$T/why" || fail "$name: $(cat "$T/why")"
            printf '%s\n' "$name"
        elif [ "${out%% *}" != "$sum" ]; then
            fail "$name has wrong bytes on $mount"
        fi
    done <"$1" | sort
}

revivals()
{
    grep -c '"redis-revived"' "$STATE/events.jsonl" || true
}

has_revived() # TIMES
{
    [ "$(revivals)" -ge "$1" ]
}

make_files "$MNT0" a
make_files "$MNT1" b
mkdir "$MNT0/a/sub"
ln "$MNT0/a/7" "$MNT0/a/link"
ln -s 8 "$MNT0/a/symlink"
setfattr -n user.test -v value "$MNT0/a/9" 2>/dev/null || true
{
    sums "$MNT0" a 2>/dev/null || true
    sums "$MNT1" b
} >"$T/sums"
listing "$MNT0" >"$T/before"

say "killed under load"
exec 8>"$MNT1/open"
printf 'before ' >&8
(
    n=0
    while [ ! -e "$T/halt" ]; do
        # What a call says is what counts; the file that was being written may fail.
        { mkdir -p "$MNT1/load" && printf '%s' "$n" >"$MNT1/load/$n"; } 2>/dev/null || true
        n=$((n + 1))
    done
) &
LOAD=$!
must_happen 20 test -e "$MNT1/load/20"
redis_kill 1
must_happen 30 has_revived 1
redis_kill 4
must_happen 30 has_revived 2
say "twice in a row"
redis_kill 4
must_happen 30 has_revived 3
touch "$T/halt"
wait "$LOAD"
printf 'after' >&8
exec 8>&-
listing "$MNT0" | grep -v ' d \|\./load\|\./open' >"$T/after"
grep -v ' d ' "$T/before" | diff - "$T/after" >"$T/diff" || fail "names or attributes changed: $(head "$T/diff")"
# Times of directories may be a second late.
mounts_agree()
{
    listing "$MNT0" >"$T/one"
    listing "$MNT1" | diff "$T/one" - >"$T/diff"
}
wait_for 20 mounts_agree || fail "mounts differ: $(head "$T/diff")"

say "exactly the damaged files are listed"
damaged "$T/sums" >"$T/damaged"
memefs_lost "$MNT0" >"$T/lost"
[ -s "$T/damaged" ] || fail "nothing is damaged: nothing was tested"
[ "$(wc -l <"$T/damaged")" -lt $((2 * FILES)) ] || fail "nothing is left"
# Of the load some may be damaged, too.
grep -v "^$MNT0/\(load\|open\)" "$T/lost" | sed "s|^$MNT0/||" | sort >"$T/listed"
diff "$T/damaged" "$T/listed" >"$T/diff" || fail "damaged (<) and listed (>): $(cat "$T/diff")"
memefs_lost | sed "s|^|$MNT0|" | diff "$T/lost" - || fail "not the same without a directory"
memefs_lost "$MNT1/b" | sed "s|^$MNT1/||" | sort | diff - <(grep '^b/' "$T/listed") || fail "below b"
memefs_lost --json | jq -e --argjson n "$(wc -l <"$T/lost")" \
    '(.files | length) == $n and all(.files[]; .bytes > 0 and .stripes > 0 and
        (.partitions | length > 0 and . - [1, 4] == []))' >/dev/null ||
    fail "--json: $(memefs_lost --json)"
stripes=$(memefs_lost --json | jq '[.files | unique_by(.inode)[].stripes] | add')
cm_knows()
{
    [ "$(cm_ status --json | jq .lost_stripes)" -ge "$stripes" ] # those of before, and of files that are gone, too
}
must_happen 10 cm_knows
FSCK=$(memefs_fsck) || fail "fsck: $FSCK"
[[ $FSCK = *lost*clean* ]] || fail "fsck does not tell: $FSCK"

say "they can be removed, emptied, renamed and made anew"
mapfile -t names <"$T/damaged"
for ((n = 0; n < ${#names[@]}; n++)); do
    file=$MNT1/${names[n]}
    case $((n % 3)) in
    0) rm "$file" && cp "$T/one" "$file" ;;
    1) cp "$T/one" "$file" ;;
    2) mv "$file" "$file.moved" && truncate -s 0 "$file.moved" && mv "$file.moved" "$file" &&
        cp "$T/one" "$file" ;;
    esac || fail "${names[n]}: $((n % 3))"
    cmp "$MNT0/${names[n]}" "$T/one" || fail "${names[n]} is not what was written anew"
done
rm -rf "$MNT0/load" "$MNT0/open"
equal "" "$(memefs_lost)" "lost after all was made anew"
damaged <(grep -vFf "$T/damaged" "$T/sums") >"$T/still"
[ ! -s "$T/still" ] || fail "still damaged: $(cat "$T/still")"

say "a Local Manager and a redis together"
printf 'here' >"$MNT0/here"
read -r lm _ <"$STATE/node-1/lm.pid"
pid='' dir=''
redis_serving 5
kill -KILL "$lm" "$pid"
must_happen 60 has_revived 4
listing "$MNT0" >"$T/one"
grep -q '/here' "$T/one" || fail "a name is gone"
must_happen 30 touch "$MNT1/there"

say "how often files have been read is known to the process that takes the place"
mkdir "$MNT0/read"
setfattr -n user.memefs.delete-after-reads -v 2 "$MNT0/read"
for n in {1..40}; do echo "$n" >"$MNT0/read/$n"; done
cat "$MNT1"/read/* >/dev/null
sleep 1 # partitions are told
redis_kill 5
must_happen 60 has_revived 5
must_happen 30 touch "$MNT1/read/now"
equal 41 "$(find "$MNT0/read" -type f | wc -l)" "files that were read once"
cat "$MNT0"/read/* >/dev/null 2>&1 || true # what the process had is lost
are_read() { [ "$(find "$MNT1/read" -type f)" = "$MNT1/read/now" ]; } # which is empty
must_happen 60 are_read

say "a large file is staged in the end, though a process has lost a stripe of two pieces of it"
head -c 150000000 /dev/urandom >"$T/large"
mkdir "$MNT0/staged"
memefs stage-in --jobs 2 "$T/large" "$MNT0/staged" >/dev/null 2>&1 &
stage=$!
until gone "$stage" || [ -n "$(getfattr -n user.memefs-stage "$MNT0/staged"/.memefs-stage.* 2>/dev/null)" ]; do :; done
kill -KILL "$stage" 2>/dev/null || true
wait "$stage" 2>/dev/null || true
for file in "$MNT0/staged"/.memefs-stage.*[0-9a-f]; do
    [ -e "$file" ] || continue # it was faster
    lost=$(memefs layout --json "$file" | jq '.stripes[64].partition') # 64 MiB are in it
    redis_kill "$lost"
done
is_staged() { timeout 60 memefs stage-in "$T/large" "$MNT0/staged"; }
must_happen 60 is_staged
cmp "$T/large" "$MNT1/staged/large" || fail "what was staged"

say "a partition that can't be asked is named, and what others have lost is listed"
read -r lm _ <"$STATE/node-1/lm.pid"
kill -STOP "$lm"
redis_serving 6
kill -KILL "$pid"
expect_fail 1 memefs_lost --json
grep -q "^memefs: lost: 1 partition can't be read (6): " "$T/expect.out" || fail "lost says: $(cat "$T/expect.out")"
grep -v '^memefs: ' "$T/expect.out" | jq -e '.unread == [6] and (.files | length > 0)' >/dev/null ||
    fail "lost lists: $(head -c 500 "$T/expect.out")"
kill -CONT "$lm"
must_happen 60 has_revived 6
rm -rf "${MNT0:?}"/*
fsck_silent
deployment_stop
