#!/usr/bin/env bash
# --replicas 1, and files of which no replica is wanted (user.memefs.replicas=0): what replicas get of them, moves that bring
# all of it, and a node that dies: right bytes or EIO, never others, and everything else is whole (decisions/0046).
# ctest: timeout=300
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq redis-cli setfattr getfattr python3

ALLOW_LOG='partition|lm-gone|a client did not take|client-behind|written data are lost|session|can.t'
HINT=user.memefs.replicas
STRIPE=1044480
SIZE=6000000
WANT=$T/want # what the files are to have

# of_all serving|replica SECTION FIELD: the sum over all processes of that kind.
of_all()
{
    local node=node password=admin_password part n word
    [ "$1" = serving ] || node=replica_node password=replica_admin_password
    while read -r part n word; do
        redis-cli -s "$STATE/node-$n/redis-$part.sock" --user memefs-lm --pass "$word" --no-auth-warning info "$2"
    done < <(jq -r --arg n $node --arg p $password '.parts | to_entries[] | "\(.key) \(.value[$n]) \(.value[$p])"' "$STATE/cm.json") |
        tr -d '\r' | awk -F: -v field="$3" '$1 == field { sum += $2 } END { printf "%d\n", sum }'
}

# check DIRECTORY: of each stripe of each file either the bytes are right or reading gives EIO; prints how many do, how
# many files have such, and these, each with where the first one begins.
check()
{
    python3 - "$WANT" "$1" $STRIPE <<'END' || fail "files below $1"
import errno, os, sys
want, have, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
lost, names = 0, []
for name in sorted(os.listdir(want)):
    with open(f"{want}/{name}", "rb") as file:
        right = file.read()
    fd = os.open(f"{have}/{name}", os.O_RDONLY)
    assert os.fstat(fd).st_size == len(right), f"{name}: {os.fstat(fd).st_size} bytes instead of {len(right)}"
    first = None
    for at in range(0, len(right), size):
        end, off = min(at + size, len(right)), at
        try:
            while off < end:
                part = os.pread(fd, min(end - off, 65536), off)
                assert part and part == right[off:off + len(part)], f"{name}: wrong bytes from {off} on"
                off += len(part)
        except OSError as e:
            assert e.errno == errno.EIO and at > 0, f"{name}: {e} at {off}"
            lost += 1
            first = first or at
    os.close(fd)
    if first:
        names.append(f"{name}:{first}")
print(lost, len(names), *names)
END
}

new() # FILE…: new bytes, on MNT0
{
    local file
    for file in "$@"; do
        head -c $SIZE /dev/urandom >"$WANT/$file"
        cp "$WANT/$file" "$MNT0/scratch/$file"
    done
}

# both COMMAND… FILE: in both places.
both()
{
    "${@:1:$#-1}" "$WANT/${*: -1}" && "${@:1:$#-1}" "$MNT0/scratch/${*: -1}"
}

piece() # BYTES OFFSET FILE: some other bytes there
{
    head -c "$1" /dev/urandom >"$T/piece"
    both put "$2" "$3"
}

put() # OFFSET PATH
{
    dd if="$T/piece" of="$2" bs=65536 oflag=seek_bytes seek="$1" conv=notrunc,fsync status=none
}

# rewrite: all ways of changing what is there; `plain` stays.
rewrite()
{
    local n
    head -c $SIZE /dev/urandom >"$T/piece"
    both put 0 whole
    for ((n = 0; n < SIZE - 4096; n += 700000)); do
        piece 4096 $n parts
        piece 40000 $((n + 100000)) parts
    done
    both truncate -s 2500000 cut
    piece 1500000 2500000 cut
    both truncate -s $SIZE cut
    both fallocate -p -o 1200000 -l 3000000 hole
    piece 100 2000000 hole
    piece 30000 3000000 local
}

MEMORY=512M deployment_start 3 --replicas 1 --partitions 12
await_protected
parts=$(jq '.parts | length' "$STATE/cm.json")
mkdir "$WANT" "$MNT0/scratch" "$MNT0/scratch/with" "$MNT0/kept"

say "the hint"
expect_fail 1 setfattr -n $HINT -v 2 "$MNT0/scratch"
setfattr -n $HINT -v 1 "$MNT0/scratch"
expect_fail 1 getfattr -n $HINT "$MNT1/scratch"
setfattr -n $HINT -v 0 "$MNT0/scratch"
equal 0 "$(getfattr --absolute-names --only-values -n $HINT "$MNT1/scratch")" "hint"
memefs layout --json "$MNT1/scratch" | jq -e '.hints == {replicas: "0"}' >/dev/null || fail "$(memefs layout --json "$MNT1/scratch")"

say "what replicas get"
sent=$(of_all serving replication master_repl_offset) memory=$(of_all replica memory used_memory_dataset)
new whole parts cut hole plain moved
sent_alone=$(($(of_all serving replication master_repl_offset) - sent))
memory_alone=$(($(of_all replica memory used_memory_dataset) - memory))
sent=$(of_all serving replication master_repl_offset) memory=$(of_all replica memory used_memory_dataset)
cp "$WANT"/* "$MNT0/kept/"
cp -r "$WANT" "$T/kept"
sent_both=$(($(of_all serving replication master_repl_offset) - sent))
memory_both=$(($(of_all replica memory used_memory_dataset) - memory))
say "of $((6 * SIZE)) bytes $sent_alone were sent to replicas, and take $memory_alone there; with replicas $sent_both, and $memory_both"
[ "$sent_alone" -lt $((6 * SIZE / 4)) ] || fail "$sent_alone bytes were sent to replicas"
[ $((3 * memory_alone)) -lt "$memory_both" ] || fail "replicas take $memory_alone bytes more"
[ "$sent_both" -gt $((6 * SIZE)) ] || fail "$sent_both bytes were sent of files with replicas"
setfattr -n user.memefs.place -v local "$MNT0/scratch"
new local
equal "0 0" "$(check "$MNT1/scratch")" "lost stripes"

say "replicas that are made later have the bytes of then, which are changed"
victims="$(replicas 0) $(replicas 1) $(replicas 2)"
# shellcheck disable=SC2086
kill -KILL $victims
must_happen 30 more_events replica-dropped $((parts - 1))
await_protected
rewrite
equal "0 0" "$(check "$MNT1/scratch")" "lost stripes"

say "partitions move while files are written"
while [ ! -e "$T/stop" ]; do
    piece 200000 $((RANDOM * 150)) moved
done &
writer=$!
cm_ scale 4 >/dev/null || fail "scale to 4"
cm_ drain node-3 >/dev/null || fail "drain"
touch "$T/stop"
wait $writer || fail "a writer while partitions moved"
equal "0 0" "$(check "$MNT1/scratch")" "lost stripes"
await_protected

say "a checkpoint has everything"
rewrite
cm_ checkpoint "$T/cp" >/dev/null || fail "checkpoint"
cp -r "$WANT" "$T/saved"

say "everything of a node is killed"
rewrite
victims="$(primaries 2) $(replicas 2) $(cut -d' ' -f1 "$STATE/node-2/lm.pid")"
before=$(events_of failed-over)
# shellcheck disable=SC2086
kill -KILL $victims
must_happen 30 more_events failed-over "$before"
await_protected
read -r stripes damaged names < <(check "$MNT1/scratch")
say "$stripes stripes of $damaged files are lost: $names"
[ "$stripes" -gt 0 ] || fail "no stripe is lost"
diff -r "$T/kept" "$MNT1/kept" >"$T/diff" || fail "files with replicas: $(cat "$T/diff")"
memefs_lost --json >"$T/lost" || true
for name in $names; do
    says "/scratch/${name%:*}\b" <"$T/lost" || fail "memefs lost does not tell of $name: $(cat "$T/lost")"
done
cm_ doctor >"$T/doctor" 2>&1 || true # other things may be wrong
says "^warn  damaged files: $damaged;" <"$T/doctor" || fail "doctor does not tell of $damaged files: $(grep damaged "$T/doctor")"
! grep /kept/ "$T/lost" || fail "files with replicas are lost"

say "what is lost is refused, removed, cut, and made anew"
read -r first others <<<"$names"
expect_fail 1 dd if=/dev/zero of="$MNT0/scratch/${first%:*}" bs=4096 count=1 seek=$((${first#*:} + 8192)) conv=notrunc,fsync oflag=seek_bytes status=none
both truncate -s "${first#*:}" "${first%:*}"
piece 2000000 "${first#*:}" "${first%:*}"
both truncate -s $((SIZE - 1)) "${first%:*}"
for name in $others; do
    new "${name%:*}"
done
equal "0 0" "$(check "$MNT1/scratch")" "lost stripes"
memefs_lost --json >"$T/lost" || fail "lost: $(cat "$T/lost")"

say "a process that is killed"
rewrite
before=$(events_of failed-over)
read -r victim < <(primaries 1)
kill -KILL "$victim"
must_happen 30 more_events failed-over "$before"
await_protected
check "$MNT1/scratch" >"$T/check"
say "lost stripes, files: $(cat "$T/check")"
rm -r "$MNT0/scratch"
equal "$parts" "$(jq '[.parts[] | select(.replica_step == "ready")] | length' "$STATE/cm.json")" "replicas"
! grep -rl 'CRITICAL' "$STATE"/node-*/*.log || fail "a replica could not execute what it was sent"
fsck_clean
deployment_stop

say "restored"
cm_ start --restore "$T/cp" --mount "$T/mnt%n" >/dev/null || fail "restore"
WANT=$T/saved
equal "0 0" "$(check "$MNT1/scratch")" "lost stripes"
deployment_stop
