#!/usr/bin/env bash
# A client that was stopped for longer than its session lives answers nothing by what it knew before: neither
# what waits for it already when it goes on, nor what comes right after that. The others have changed a file
# that it has open, renamed a file and a directory, and made a name that was not there.
# ctest: timeout=240 waits long=25
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need python3

# The stopped client loses its session, and the others say that they waited for it.
ALLOW_LOG='session|client|notice|answer'
deployment_start 4

read -r stopped _ <"$STATE/node-1/client.pid"
python3 - "$MNT0" "$MNT1" "$stopped" <<'PYTHON' || fail "the client showed what was no more so"
import mmap, os, signal, sys, threading, time

changer, client, pid = sys.argv[1], sys.argv[2], int(sys.argv[3])
OLD, NEW = b"o" * 8192, b"n" * 4096
FILES = 40


def put(path, data):
    with open(path, "wb", buffering=0) as f:
        f.write(data)


def direct(fd):
    """What the file begins with, as the client has it, not the kernel."""
    with mmap.mmap(-1, len(OLD)) as buf:
        return buf[: os.preadv(fd, [buf], 0)]


def exists(name):
    return os.path.exists(f"{client}/{name}")


os.mkdir(f"{changer}/dir")
for i in range(FILES):
    put(f"{changer}/open{i}", OLD)
    put(f"{changer}/dir/name{i}", OLD)
fds = [os.open(f"{client}/open{i}", os.O_RDONLY | os.O_DIRECT) for i in range(FILES)]
os.mkdir(f"{client}/mine")  # whose names it knows
put(f"{client}/mine/one", OLD)
for i in range(FILES):
    assert os.fstat(fds[i]).st_size == len(OLD) and exists(f"dir/name{i}")
    assert direct(fds[i]) == OLD
    assert not exists(f"mine/new{i}")

os.kill(pid, signal.SIGSTOP)
try:
    began = time.monotonic()
    for i in range(FILES):
        put(f"{changer}/open{i}", NEW)
        os.rename(f"{changer}/dir/name{i}", f"{changer}/dir/renamed{i}")
        put(f"{changer}/mine/new{i}", NEW)
    print(f"# the others had to wait {time.monotonic() - began:.0f} s")
    time.sleep(max(0, began + 24 - time.monotonic()))

    wrong = []

    def look(i):
        """One look waits for the client, the next come right after it."""
        for turn in range(3):
            data = direct(fds[i])
            if data != NEW:
                wrong.append(f"open{i} has {len(data)} bytes of {data[:1]}, look {turn}")
            if exists(f"dir/name{i}"):
                wrong.append(f"dir/name{i} is there, look {turn}")
            size = os.fstat(fds[i]).st_size
            if size != len(NEW):
                wrong.append(f"open{i} is {size} bytes long, look {turn}")
            if not exists(f"dir/renamed{i}") or not exists(f"mine/new{i}"):
                wrong.append(f"dir/renamed{i} or mine/new{i} is not there, look {turn}")

    threads = [threading.Thread(target=look, args=(i,)) for i in range(FILES)]
    for t in threads:
        t.start()
    time.sleep(1)
finally:
    os.kill(pid, signal.SIGCONT)
for t in threads:
    t.join()
print("\n".join(wrong), file=sys.stderr)
sys.exit(len(wrong) > 0)
PYTHON
deployment_stop
