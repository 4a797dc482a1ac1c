"""Tasks in one queue that workers on all nodes take from, each as soon as it is free, as workflow engines do. A task
reads some files, whose content it checks, and writes some."""

import ctypes
import multiprocessing
import os
import random
import sys
import threading
import time
from collections import deque, namedtuple

PIECE = 1 << 20
BASE = memoryview(random.Random(1).randbytes(2 * PIECE))
DONTNEED = 4

Task = namedtuple("Task", "reads writes")  # each a list of (name, bytes)
Done = namedtuple("Done", "node task began ended error")


def content(name, offset, length):
    """A piece of the file of that name, at most PIECE bytes."""
    turn = (sum(name.encode()) * 4099 + int(name.rpartition("-")[2]) * 524287 + offset) % PIECE
    return BASE[turn:turn + length]


def pieces(size):
    return ((at, min(PIECE, size - at)) for at in range(0, size, PIECE))


def write(top, name, size):
    fd = os.open(os.path.join(top, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        for at, length in pieces(size):
            piece = content(name, at, length)
            while piece:
                piece = piece[os.write(fd, piece):]
    finally:
        os.close(fd)


def read(top, name, size):
    fd = os.open(os.path.join(top, name), os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)  # what this node has written itself is to be fetched, too
        for at, length in pieces(size):
            got = b"".join(iter_read(fd, length))
            if got != content(name, at, length):
                raise RuntimeError("%s has other content at %d" % (name, at))
        if os.read(fd, 1):
            raise RuntimeError("%s is longer than %d" % (name, size))
    finally:
        os.close(fd)


def iter_read(fd, length):
    while length:
        got = os.read(fd, length)
        if not got:
            return
        yield got
        length -= len(got)


def perform(top, task):
    for name, size in task.reads:
        read(top, name, size)
    for name, size in task.writes:
        write(top, name, size)


def forget(top, written, keep):
    """All but the last `keep` of what a worker has written, as what has been read is not wanted any more."""
    while len(written) > keep:
        os.unlink(os.path.join(top, written.popleft()))


def worker(node, top, tasks, turn, until, keep, out):
    written = deque()
    while time.monotonic() < until:
        with turn.get_lock():
            index = turn.value
            turn.value += 1
        if index >= len(tasks):
            return
        began, error = time.monotonic(), None
        try:
            perform(top, tasks[index])
            written += [name for name, _ in tasks[index].writes]
            forget(top, written, keep)
        except (OSError, RuntimeError) as e:
            error = str(e)
        out.append(Done(node, index, began, time.monotonic(), error))


def node_main(node, top, tasks, workers, turn, until, keep, pipe):
    ctypes.CDLL(None).prctl(1, 9)  # dies with its parent
    out = []
    threads = [threading.Thread(target=worker, args=(node, top, tasks, turn, until, keep, out)) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pipe.send(out)
    pipe.close()


def run(mounts, folder, tasks, workers, limit, whole=True, threads=(), keep=sys.maxsize):
    """All that was done, in the order of its end. Raises an error when a task fails or the limit (s) has passed; or,
    unless the whole is wanted, does what can be done within it. The threads are started once the workers run: one that
    starts programs must not do so before, as a worker would inherit their pipes and keep them open. Each worker removes
    all but the last `keep` of its files."""
    context = multiprocessing.get_context("fork")
    turn, until, children = context.Value("l", 0), time.monotonic() + limit, []
    for node, mount in enumerate(mounts):
        mine, its = context.Pipe(False)
        child = context.Process(target=node_main, daemon=True,
                                args=(node, os.path.join(mount, folder), tasks, workers, turn, until, keep, its))
        child.start()
        its.close()
        children.append((child, mine))
    for thread in threads:
        thread.start()
    done = []
    for child, pipe in children:
        if not pipe.poll(max(0.1, until + 60 - time.monotonic())):
            raise RuntimeError("a worker hangs")
        done += pipe.recv()
        child.join(10)
    wrong = [d.error for d in done if d.error]
    if wrong or (whole and len(done) < len(tasks)):
        raise RuntimeError("%d of %d tasks in time, errors: %s" % (len(done), len(tasks), wrong[:3]))
    return sorted(done, key=lambda d: d.ended)
