#!/usr/bin/env bash
# Appends that a mount gathers under a lease of a file's end: another mount that opens, cuts or locks the file
# finds all that was appended before, and whole records in their order, also after the appending client was killed.
# ctest: timeout=120 long=15
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need python3

# A client is killed in the middle of appends.
ALLOW_LOG='session|client|notice|answer|append|lost'
deployment_start 4

read -r appender _ <"$STATE/node-0/client.pid"
python3 - "$MNT0" "$MNT1" "$appender" <<'PYTHON' || fail "appends went wrong"
import fcntl, os, signal, sys, threading, time

a, b, pid = sys.argv[1], sys.argv[2], int(sys.argv[3])
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def record(side, number, length=100):
    return (b"%s%09d " % (side, number)).ljust(length - 1, b".") + b"\n"


def put(fd, data):
    assert os.write(fd, data) == len(data)


def content(mount, name):
    with open(f"{mount}/{name}", "rb", buffering=0) as f:
        data = b""
        while more := f.read(1 << 20):
            data += more
        return data


def appended(name, first, count):
    """Often enough that they are gathered."""
    fd = os.open(f"{a}/{name}", APPEND)
    for i in range(first, first + count):
        put(fd, record(b"a", i))
    return fd


def expect(data, records):
    want = b"".join(records)
    assert data == want, f"{len(data)} bytes, wanted {len(want)}: {data[-200:]} {want[-200:]}"


# A read of this mount that goes past the end while others append finds what was appended, or less, and no zeros.
def read_beside():
    writer, over = appended("beside", 0, 10), threading.Event()
    reader, wrong = os.open(f"{a}/beside", os.O_RDONLY | os.O_DIRECT), []

    def read():
        while not over.is_set():
            end = os.fstat(writer).st_size
            data = os.pread(reader, 1 << 16, max(0, end - 1000))
            if b"\0" in data:
                wrong.append(data)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for t in threads:
        t.start()
    until = time.monotonic() + 2
    number = 10
    while time.monotonic() < until and not wrong:
        put(writer, record(b"a", number))
        number += 1
    over.set()
    for t in threads:
        t.join()
    os.close(reader)
    os.close(writer)
    assert not wrong, f"zeros after {number} appends: {wrong[0][-300:]}"


# An open elsewhere finds all of it, and then each append at once; when it is closed they are gathered anew.
def opened_elsewhere():
    fd = appended("open", 0, 300)
    assert os.fstat(fd).st_size == 30000
    expect(content(a, "open"), [record(b"a", i) for i in range(300)])
    for i in range(300, 600):
        put(fd, record(b"a", i))
    reader = os.open(f"{b}/open", os.O_RDONLY)
    assert os.fstat(reader).st_size == 60000, os.fstat(reader).st_size
    expect(os.pread(reader, 1 << 20, 0), [record(b"a", i) for i in range(600)])
    for i in range(600, 620):
        put(fd, record(b"a", i))
        assert os.fstat(reader).st_size == 100 * (i + 1)
    os.close(reader)
    time.sleep(1.5)
    for i in range(620, 900):
        put(fd, record(b"a", i))
    expect(content(b, "open"), [record(b"a", i) for i in range(900)])
    for i in range(900, 1000):
        put(fd, record(b"a", i))
    os.fsync(fd)
    assert os.stat(f"{b}/open").st_size == 100000
    for i in range(1000, 1100):
        put(fd, record(b"a", i))
    os.close(fd)
    assert os.stat(f"{b}/open").st_size == 110000


# By path, without an open: what was appended before is cut, what is appended after stays.
def cut_elsewhere():
    fd = appended("cut", 0, 200)
    os.truncate(f"{b}/cut", 50)
    for i in range(200, 300):
        put(fd, record(b"a", i))
    os.close(fd)
    expect(content(b, "cut"), [record(b"a", 0)[:50]] + [record(b"a", i) for i in range(200, 300)])


# The same mount overwrites, reads and cuts what it has just appended.
def changed_here():
    fd = appended("here", 0, 200)
    with open(f"{a}/here", "r+b", buffering=0) as f:
        f.seek(19950)
        f.write(b"x" * 100)
        f.seek(19900)
        assert f.read() == record(b"a", 199)[:50] + b"x" * 100
    put(fd, b"end")
    assert content(a, "here")[-103:] == b"x" * 100 + b"end"
    os.truncate(f"{a}/here", 10)
    put(fd, b"end")
    put(fd, b"end")
    os.close(fd)
    expect(content(b, "here"), [record(b"a", 0)[:10], b"endend"])


# Two mounts at once, and two processes' descriptors on one: none lost, none torn, each in order.
def all_at_once():
    sides = {b"a": a, b"b": a, b"c": b}

    def run(side, mount):
        fd = os.open(f"{mount}/both", APPEND)
        for i in range(1000):
            put(fd, record(side, i))
            if i % 250 == 0:
                time.sleep(0.05)
        os.close(fd)

    threads = [threading.Thread(target=run, args=i) for i in sides.items()]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    data = content(b, "both")
    assert data == content(a, "both")
    found = {side: [] for side in sides}
    for at in range(0, len(data), 100):
        found[data[at : at + 1]].append(data[at : at + 100])
    for side in sides:
        expect(b"".join(found[side]), [record(side, i) for i in range(1000)])


# Under a lock, the next holder finds what the former one has appended.
def locked():
    fds = [os.open(f"{m}/locked", APPEND) for m in (a, b)]
    looks = [os.open(f"{m}/locked", os.O_RDONLY) for m in (a, b)]
    for turn in range(40):
        i = turn // 4 % 2
        fcntl.lockf(fds[i], fcntl.LOCK_EX)
        assert os.fstat(looks[i]).st_size == 100 * turn
        put(fds[i], record(b"l", turn))
        fcntl.lockf(fds[i], fcntl.LOCK_UN)
    for fd in fds + looks:
        os.close(fd)
    expect(content(a, "locked"), [record(b"l", i) for i in range(40)])


# Over the ends of stripes: whole records, and none missing between them.
def killed():
    length, done = 7777, 0
    fd = os.open(f"{a}/killed", APPEND)
    threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()
    try:
        while done < 200000:
            put(fd, record(b"k", done, length))
            done += 1
            if done % 100 == 0:
                time.sleep(0.01)
    except OSError:
        pass
    data = content(b, "killed")
    count = len(data) // length
    assert 0 < count <= done + 1, (count, done)
    expect(data, [record(b"k", i, length) for i in range(count)])
    with open(f"{b}/killed", "ab", buffering=0) as f:
        f.write(b"more")
    assert content(b, "killed") == data + b"more"


read_beside()
opened_elsewhere()
cut_elsewhere()
changed_here()
all_at_once()
locked()
killed()
PYTHON

must_happen 60 memefs_fsck --pause 1
