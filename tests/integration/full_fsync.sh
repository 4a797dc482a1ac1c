#!/usr/bin/env bash
# Memory gets full while a file is written through several descriptors on one mount: fsync and close say
# so, each of them once; then both mounts show the same of it, which is for each block what was there
# before, what was written, or zeros behind the old end; and when there is room again, what an fsync says
# 0 of is there. A mapping that is larger than the memory (numpy.memmap of a sparse file) ends with an error
# soon, and does not look hung.
# ctest: timeout=240
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need python3

MEMORY=128M
# The clients may say in their logs that the memory is full.
ALLOW_LOG='No space left'
deployment_start 2

python3 - "$MNT0" "$MNT1" <<'PYTHON' || fail "what fsync said does not fit what is there"
import errno, mmap, os, sys, time

writer, reader = sys.argv[1:]
BLOCK, BEFORE, AFTER = 65536, 64, 640
old, new = b"o" * BLOCK, b"n" * BLOCK


def says(call, *args):
    try:
        call(*args)
        return 0
    except OSError as e:
        return e.errno


def content(path, flags=0):
    fd = os.open(path, os.O_RDONLY | flags)
    try:
        size = os.fstat(fd).st_size
        data = bytearray()
        while len(data) < size:
            piece = os.pread(fd, min(1 << 20, size - len(data)), len(data))
            assert piece, "ends before its size"
            data += piece
        return bytes(data)
    finally:
        os.close(fd)


def alike(name, when):
    """The content that both mounts show; by the page cache, too."""
    mine, theirs = content(f"{writer}/{name}"), content(f"{reader}/{name}")
    assert len(mine) == len(theirs), f"{when}: {len(mine)} and {len(theirs)} bytes"
    for at in range(0, len(mine), BLOCK):
        assert mine[at:at + BLOCK] == theirs[at:at + BLOCK], f"{when}: mounts differ at {at}"
    return mine


file = os.open(f"{writer}/file", os.O_RDWR | os.O_CREAT)
os.pwrite(file, old * BEFORE, 0)
os.fsync(file)
other = os.open(f"{writer}/file", os.O_RDWR)

# All of it but so much that the file's next blocks are taken by the client.
filler, said = os.open(f"{writer}/filler", os.O_WRONLY | os.O_CREAT), 0
while not said:
    said = says(os.write, filler, b"f" * (1 << 20))
assert said == errno.ENOSPC, os.strerror(said)
said = says(os.close, filler)
assert said in (0, errno.ENOSPC), os.strerror(said)

wrote = [says(os.pwrite, file, new, n * BLOCK) for n in range(AFTER)]
print(f"# {wrote.count(0)} of {AFTER} writes were taken")
said = [says(os.fsync, fd) for fd in (other, file, other, file)]
print(f"# fsync by the other, the writer, and again: {[errno.errorcode.get(e, 0) for e in said]}")
assert said[2:] == [0, 0], "told twice"
lost = alike("file", "after the failure")
assert (said[0] == 0) == (said[1] == 0), "only one descriptor was told"
zeros = bytes(BLOCK)
for n in range(len(lost) // BLOCK):
    block, before = lost[n * BLOCK:(n + 1) * BLOCK], old if n < BEFORE else zeros
    if said[1] == 0 and wrote[n] == 0:
        assert block == new, f"block {n}: fsync said 0, and it is {block[:1]}"
    for at in range(0, BLOCK, 4096):
        assert block[at:at + 4096] in (new[:4096], before[:4096]), f"block {n}: {block[at:at + 1]}"
print(f"# {len(lost) // BLOCK} blocks long, {sum(lost[n * BLOCK:(n + 1) * BLOCK] == new for n in range(AFTER))} new")

os.unlink(f"{reader}/filler")
assert says(os.fsync, file) == 0
assert alike("file", "after fsync with room again") == lost
for n in range(AFTER):
    os.pwrite(file, new, n * BLOCK)
os.fsync(file)
assert alike("file", "written once more") == new * AFTER
os.close(other)
os.close(file)
os.unlink(f"{writer}/file")

PAGE, SIZE = 4096, 384 << 20
file = os.open(f"{writer}/map", os.O_RDWR | os.O_CREAT)
os.ftruncate(file, SIZE)
mapped, since = mmap.mmap(file, SIZE), time.monotonic()
for at in range(0, SIZE, PAGE):
    mapped[at:at + PAGE] = new[:PAGE]
said = says(mapped.flush)
took = time.monotonic() - since
print(f"# mapping: {errno.errorcode.get(said, 0)} after {took:.1f} s")
assert said == errno.ENOSPC, "msync of more than there is memory"
assert took < 100, "which is 10 on a machine with nothing else to do"
mapped.close()
os.close(file)
data = alike("map", "after the mapping")
assert all(data[at:at + PAGE] in (new[:PAGE], zeros[:PAGE]) for at in range(0, len(data), PAGE))
PYTHON
deployment_stop
