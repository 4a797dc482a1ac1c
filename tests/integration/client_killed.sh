#!/usr/bin/env bash
# A client killed -9 in the middle of its work: its locks go, what it renamed has exactly one name,
# what it closed is whole, what it held open without a name is freed, and others work on with all
# of it.
# ctest: release timeout=300 waits long=80
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq flock

ALLOW_LOG='client|memefs|mount'
FILES=60
deployment_start 4

client_of()
{
    local line
    read -r line <"$STATE/node-$1/client.pid"
    printf '%s\n' "${line%% *}"
}

used()
{
    cm_ status --json | jq '[.nodes[].memory_used] | add'
}

is_locked()
{
    ! flock -n "$MNT1/lock" true
}

# Renames files between directories, over others and by exchange, until its mount is gone.
rename_for_ever()
{
    local i n=0
    while :; do
        for ((i = 0; i < FILES; i++)); do
            mv -T "$1/a/f$i" "$1/b/g$i" 2>/dev/null || return 0
            mv -T "$1/b/g$i" "$1/a/f$i" 2>/dev/null || return 0
            n=$((n + 1))
            mkdir "$1/a/d$i" 2>/dev/null && mv -T "$1/a/d$i" "$1/b/d$i" 2>/dev/null && rmdir "$1/b/d$i" 2>/dev/null
            printf '%s' "$n" >"$1/b/new" 2>/dev/null && mv "$1/b/new" "$1/a/replaced" 2>/dev/null
        done
    done
}

say "names, locks and an open file on mount 0"
mkdir "$MNT0/a" "$MNT0/b"
for ((i = 0; i < FILES; i++)); do
    printf 'file %d' "$i" >"$MNT0/a/f$i"
done
printf '0' >"$MNT0/a/replaced"
: >"$MNT0/lock"
flock "$MNT0/lock" sleep 600 &
must_happen 10 is_locked
sleep 2 # the first measurement is in the status
empty=$(used)
exec 9>"$MNT0/orphan"
head -c 50000000 /dev/zero >&9
sync "$MNT0/orphan"
rm "$MNT1/orphan"
for ((i = 0; i < 3; i++)); do
    rename_for_ever "$MNT0" &
done
sleep 1.5

say "kill -9 the client"
flock -w 30 "$MNT1/lock" true &
waiter=$!
kill -KILL "$(client_of 0)"
wait "$waiter" || fail "the dead client's lock is still held"

say "every file has one name, and its content"
for ((i = 0; i < FILES; i++)); do
    names=0
    for name in "$MNT1/a/f$i" "$MNT2/b/g$i"; do
        if [ -e "$name" ]; then
            names=$((names + 1))
            equal "file $i" "$(cat "$name")" "$name"
            equal 1 "$(stat -c %h "$name")" "links of $name"
        fi
    done
    equal 1 "$names" "names of file $i"
done
equal "$FILES" "$(find "$MNT1/a" "$MNT1/b" -name '[fg][0-9]*' | wc -l)" "names listed"
[ -s "$MNT1/a/replaced" ] || fail "what was renamed over is empty"

say "others go on with them"
for ((i = 0; i < FILES; i++)); do
    if [ -e "$MNT2/b/g$i" ]; then
        mv "$MNT2/b/g$i" "$MNT2/a/f$i" || fail "rename of file $i"
    fi
    mv "$MNT1/a/f$i" "$MNT1/b/h$i" || fail "rename of file $i"
done
equal "$FILES" "$(find "$MNT3/b" -name 'h*' | wc -l)" "names after the others' renames"
rm -r "$MNT1/a" "$MNT1/b" || fail "remove everything"

say "what only the dead client had open is freed"
is_near_empty()
{
    [ "$(used)" -lt $((empty + (16 << 20))) ]
}
must_happen 90 is_near_empty

say "what it left is no damage, and goes"
fsck_clean

say "a client killed while it waits for its own mount to answer, which a partition keeps it from"
is_mounted()
{
    grep " $MNT0 fuse.memefs " /proc/self/mounts >/dev/null
}
redis_serving 1
stopped=$pid
kill -STOP "$stopped"
first=$(client_of 0)
kill -KILL "$first"
is_new()
{
    [ "$(client_of 0)" != "$first" ] && is_mounted
}
must_happen 20 is_new
sleep 1 # it asks as soon as the kernel has said hello
second=$(client_of 0)
kill -KILL "$second"
must_happen 10 gone "$second"
kill -CONT "$stopped"
must_happen 60 ls "$MNT0"

say "a client killed while the kernel waits for a page that it was to fill"
# Where notices to the client of a node go: its session's number modulo 32 partitions.
session_at()
{
    local said
    said=$(grep -o "session [0-9a-f]\{16\}, table [1-9]" "$STATE/node-$1/lm.log" | tail -n 1)
    printf '%s' $((16#${said:22:2} % 32))
}
name=page
: >"$MNT1/$name"
# Neither the file itself nor what the mounts tell each other is in the partition that hangs.
apart=1 # nor is the root in it
while [[ " $(home_of "$MNT1/$name") $(session_at 0) $(session_at 1) " == *" $apart "* ]]; do
    apart=$((apart + 1))
done
head -c 200000000 /dev/zero | tr '\0' A >"$MNT1/$name"
sync "$MNT1/$name"
head -c 10 "$MNT0/$name" >/dev/null # a lease
redis_serving "$apart"
stopped=$pid
kill -STOP "$stopped"
cat "$MNT0/$name" >/dev/null 2>&1 & # stops where a stripe is in that partition, as one of 192 is
sleep 1
printf B | timeout 20 dd of="$MNT1/$name" bs=1 conv=notrunc,fsync status=none &
is_invalidating()
{
    grep -h ' (notify) D ' /proc/"$third"/task/*/stat >/dev/null 2>&1
}
third=$(client_of 0)
must_happen 10 is_invalidating
kill -KILL "$third"
is_broken()
{
    timeout 1 stat -f "$MNT0" >/dev/null 2>&1 || [ $? -ne 124 ]
}
must_happen 15 is_broken
must_happen 10 gone "$third"
kill -CONT "$stopped"
must_happen 60 [ -e "$MNT0/$name" ]
equal B "$(head -c 1 "$MNT0/$name")" "the first byte"

# Never closed, so what is stored is made known only each second.
write_for_ever()
{
    local block
    block=$(head -c 1000000 /dev/zero | tr '\0' X)
    while printf '%s' "$block"; do
        sleep 0.05
    done 1<>"$1" 2>/dev/null
}

other_bytes()
{
    tr -d "$1" | wc -c
}

say "what a dead client had stored, and not made known, never shows"
: >"$MNT1/half"
write_for_ever "$MNT3/half" &
writer=$!
must_happen 30 [ -s "$MNT1/half" ]
sleep 0.7
kill -KILL "$(client_of 3)"
wait "$writer" || true # by now it has no standard output
size=$(stat -c %s "$MNT1/half")
truncate -s $((size + 40000000)) "$MNT1/half"
printf end | dd of="$MNT2/half" bs=1 seek=$((size + 50000000)) conv=notrunc status=none
for ((i = 1; i <= 2; i++)); do
    mount=MNT$i
    equal 0 "$(head -c "$size" "${!mount}/half" | other_bytes X)" "other bytes than were written"
    equal 0 "$(dd if="${!mount}/half" bs=1M iflag=skip_bytes,count_bytes skip="$size" count=50000000 status=none | other_bytes '\0')" "bytes behind the end"
    equal end "$(tail -c 3 "${!mount}/half")" "the last bytes"
done
