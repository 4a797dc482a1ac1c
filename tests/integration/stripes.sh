#!/usr/bin/env bash
# Files with stripes of their own size, with two mounts: written at random and read back, cut, moved over each other, saved,
# moved to another node while they are written, lost with a process, and removed with all of their keys.
# ctest: waits timeout=240
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
ALLOW_LOG='partition|session|disconnected|expired|lost|leases|unreachable|connect'
need jq setfattr getfattr python3

STRIPE=user.memefs.stripe
MEMORY=512M
sizes=(124 252 508 1020)

stripe_of() # FILE: bytes
{
    memefs layout --json "$1" | jq .stripe_size
}

stripe_keys()
{
    memefs_fsck --json | jq .stripes
}

# at_random FILE OTHER STEPS [SECONDS]: writes, cuts, holes, appends and reads of one mount, compared with what they should be,
# and now and then as the other mount sees it.
at_random()
{
    python3 - "$@" <<'END'
import ctypes, os, random, sys, time

path, other, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
until = time.monotonic() + float(sys.argv[4]) if len(sys.argv) > 4 else None
seed = int(os.environ.get("SEED", time.time_ns() % 1000000))
print("seed", seed, flush=True)
r = random.Random(seed)
libc = ctypes.CDLL(None, use_errno=True)
most = 5 << 20
edge = int(os.popen(f"memefs layout --json {path} | jq .stripe_size").read())
want = bytearray()
fd = os.open(path, os.O_RDWR | os.O_TRUNC)


def place():
    """Near an edge of a stripe as a rule."""
    if r.random() < 0.6:
        return max(0, min(most - 1, r.randrange(0, most // edge + 1) * edge + r.choice((-4096, -7, -1, 0, 1, 5, 4096))))
    return r.randrange(most)


def put(off, data):
    if off > len(want):
        want.extend(bytes(off - len(want)))
    want[off:off + len(data)] = data


def check(fd, off, n):
    have = os.pread(fd, n, off)
    assert have == want[off:off + n], f"seed {seed}: {n} bytes at {off} differ"


def punch(off, n):
    if libc.fallocate(fd, 3, ctypes.c_long(off), ctypes.c_long(n)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


step = 0
while step < steps and (until is None or time.monotonic() < until):
    step += 1
    dice, off = r.random(), place()
    if dice < 0.45:
        data = r.randbytes(r.choice((1, 100, 4096, 70000, edge, 2 * edge + 10)))[:most - off]
        assert os.pwrite(fd, data, off) == len(data)
        put(off, data)
    elif dice < 0.5 and len(want) < most:
        end = os.open(path, os.O_WRONLY | os.O_APPEND)
        data = r.randbytes(r.choice((10, 3000, 200000)))
        assert os.write(end, data) == len(data)
        os.close(end)
        put(len(want), data)
    elif dice < 0.6:
        os.ftruncate(fd, off)
        del want[off:]
        put(off, b"")
    elif dice < 0.68:
        n = r.choice((1, 4096, edge, 3 * edge))
        punch(off, n)
        n = max(0, min(n, len(want) - off))
        want[off:off + n] = bytes(n)
    elif dice < 0.72:
        at = 0
        while at < len(want):  # what is in a hole is zeros
            try:
                data = os.lseek(fd, at, os.SEEK_DATA)
            except OSError:
                data = len(want)
            assert not any(want[at:data]), f"seed {seed}: data in a hole from {at} to {data}"
            at = os.lseek(fd, data, os.SEEK_HOLE) if data < len(want) else len(want)
    elif dice < 0.76:
        os.close(fd)
        with open(other, "rb") as f:
            assert f.read() == want, f"seed {seed}: the other mount sees something else"
        fd = os.open(path, os.O_RDWR)
    elif dice < 0.78:
        os.fsync(fd)
    else:
        check(fd, off, r.choice((1, 4096, 131072, 2 * edge, most)))
    assert os.fstat(fd).st_size == len(want), f"seed {seed}: size {os.fstat(fd).st_size}, not {len(want)}"
os.close(fd)
with open(other, "rb") as f:
    assert f.read() == want, f"seed {seed}: the other mount sees something else in the end"
print(step, "steps", flush=True)
END
}

deployment_start 3 --partitions 6
cd "$MNT0"
head -c 5000000 /dev/urandom >"$T/content"
keys=$(stripe_keys)

say "what is taken"
mkdir d
for value in 0 123K 1G 2M large 124Q; do
    expect_fail 1 setfattr -n $STRIPE -v $value d
    grep 'Invalid argument' "$T/expect.out" >/dev/null || fail "$value: $(cat "$T/expect.out")"
    tail -n 1 "$STATE/node-0/client.log" | says "hints: $STRIPE=$value: is to be a size from 124K to 1020K" ||
        fail "$(tail -n 1 "$STATE/node-0/client.log")"
done
setfattr -n $STRIPE -v 300K d
equal 252K "$(getfattr --only-values -n $STRIPE "$MNT1/d")" "the largest that is not above it"
cp "$T/content" d/f
mkdir d/in
equal 252K "$(getfattr --only-values -n $STRIPE "$MNT1/d/in")" "a directory in it"
equal 252K "$(getfattr --only-values -n $STRIPE "$MNT1/d/f")" "a file in it"
setfattr -n $STRIPE -v 252K d/f
expect_fail 1 setfattr -n $STRIPE -v 124K d/f
grep 'not supported' "$T/expect.out" >/dev/null || fail "$(cat "$T/expect.out")"
expect_fail 1 setfattr -x $STRIPE d/f
memefs layout --json d/f | jq -e '.hints.stripe == "252K" and (.stripes | length) == 20 and
    .stripes[1].offset == 258048 and .stripes[19].length == (5000000 - 19 * 258048)' >/dev/null || fail "$(memefs layout --json d/f)"
setfattr -x $STRIPE d
cp "$T/content" d/usual
equal 1044480 "$(stripe_of d/usual)" "a file that was made without"
mv d/usual d/in/usual
mv d/f f
equal "1044480 258048" "$(stripe_of d/in/usual) $(stripe_of f)" "moved files"

say "random"
for size in "${sizes[@]}"; do
    mkdir "$size"
    setfattr -n $STRIPE -v "${size}K" "$size"
    : >"$size/random"
    equal $((size << 10)) "$(stripe_of "$MNT1/$size/random")" "stripes of $size"
    at_random "$size/random" "$MNT1/$size/random" 250 || fail "random steps with $size"
    cp "$T/content" "$MNT1/$size/f"
    cmp "$T/content" "$size/f" || fail "$size/f"
    truncate -s $((size * 2048 + 1)) "$size/f"
    truncate -s 5000000 "$size/f"
    cmp -n $((size * 2048 + 1)) "$T/content" "$MNT2/$size/f" || fail "$size/f was cut"
    equal 0 "$(tail -c +$((size * 2048 + 2)) "$MNT1/$size/f" | tr -d '\0' | wc -c)" "zeros behind the cut of $size"
    cat "$T/content" >>"$size/f"
    tail -c 5000000 "$MNT1/$size/f" | cmp - "$T/content" || fail "appended to $size/f"
    cp "$T/content" "$size/g"
    mv "$MNT2/$size/g" "$MNT2/$size/f" # the one that goes has other stripes than the mover knows
    cmp "$T/content" "$size/f" || fail "$size/f was replaced"
done
setfattr -n $STRIPE -v 124K d
cp "$T/content" d/local
truncate -s $((124 * 1024 * 4294967295)) d/local
expect_fail 1 truncate -s $((124 * 1024 * 4294967295 + 1)) d/local
expect_fail 1 fallocate -l 1 -o $((124 * 1024 * 4294967295)) d/local
truncate -s 5000000 d/local
cmp "$T/content" "$MNT1/d/local" || fail "d/local"
fsck_silent

say "a node goes while they are written"
for size in "${sizes[@]}"; do
    at_random "$size/random" "$MNT1/$size/random" 1000000 12 >"$T/random.$size" 2>&1 &
done
cm_ drain node-2
cm_ rebalance || true
wait -n || fail "$(cat "$T"/random.*)"
wait -n || fail "$(cat "$T"/random.*)"
wait -n || fail "$(cat "$T"/random.*)"
wait -n || fail "$(cat "$T"/random.*)"
cat "$T"/random.* | paste -sd ' '
for size in "${sizes[@]}"; do
    cmp "$T/content" "$MNT1/$size/f" || fail "$size/f after the move"
done
fsck_silent

say "a checkpoint"
cd /
cm_ checkpoint "$T/cp" || fail "checkpoint"
deployment_stop
deployment_start 2 --restore "$T/cp"
cd "$MNT0"
for size in "${sizes[@]}"; do
    cmp "$T/content" "$MNT1/$size/f" || fail "$size/f was restored"
    equal "$((size << 10))" "$(stripe_of "$size/f")" "stripes of $size, restored"
    equal "${size}K" "$(getfattr --only-values -n $STRIPE "$size")" "the hint, restored"
done

say "a process dies"
memefs layout --json 124/f | jq -r '.home as $home | [.stripes[] | .partition] | unique | map(select(. != $home)) | .[0]' >"$T/part"
redis_kill "$(cat "$T/part")"
damaged()
{
    ! cat 124/f >/dev/null 2>&1 # the other mount has pages of it
}
must_happen 60 damaged
memefs_lost --json >"$T/lost"
memefs layout --json 124/f | jq --argjson part "$(cat "$T/part")" --slurpfile lost "$T/lost" '
    [.stripes[] | select(.partition == $part)] as $gone | (.ino | tostring) as $ino | $lost[0].files[] | select(.inode == $ino) |
    .stripes == ($gone | length) and .bytes == ($gone | map(.length) | add)' >"$T/same"
[ "$(cat "$T/same")" = true ] || fail "124/f: $(cat "$T/lost")"

say "all goes"
all_gone()
{
    [ "$(stripe_keys)" -le "$keys" ]
}
rm -rf ./*
must_happen 60 all_gone

say "a client dies"
mkdir 124
setfattr -n $STRIPE -v 124K 124
dd if=/dev/urandom of="$MNT1/124/dies" bs=1M count=64 2>/dev/null &
writer=$!
sleep 0.3
kill -KILL "$(cut -d' ' -f1 "$STATE/node-1/client.pid")"
wait $writer || true
must_happen 30 test -e 124/dies
cp 124/dies "$T/dies" || fail "what a dead client has written"
memefs_fsck --json >"$T/fsck.out" || true
[ -s "$T/fsck.out" ] || fail "memefs fsck"
! grep -F '"leak": false' "$T/fsck.out" || fail "more than a crash explains"
cd /
deployment_stop
