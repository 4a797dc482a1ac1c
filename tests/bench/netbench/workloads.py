"""What the tasks are: phases of (name, tasks), by bytes in all and the size of a file of the micro-benchmark."""

import random

from netbench.work import Task


def micro(total, size, source):
    """Each task writes a file; then each reads one, in another order."""
    files = [("f-%d" % i, size) for i in range(max(1, total // size))]
    mixed = source.sample(files, len(files))
    return [("write", [Task([], [f]) for f in files]), ("read", [Task([f], []) for f in mixed])]


def montage(total, size, source):
    """Many files of one to four sizes; then tasks that read two of them, of anybody, and write another one."""
    files, have = [], 0
    while have < total // 2:
        files.append(("m-%d" % len(files), source.randint(size, 4 * size)))
        have += files[-1][1]
    mixed = source.sample(files, len(files))
    mix = [Task([f, source.choice(files)], [("n-%d" % i, source.randint(size, 4 * size))])
           for i, f in enumerate(mixed[:len(mixed) // 3 * 2])]
    return [("write", [Task([], [f]) for f in files]), ("mix", mix)]


def blast(total, size, source):
    """A few large files, each read twice, with a small result. (Where both readers are on one node at the same time
    it is fetched once, so a time may be below its bound.)"""
    files = [("b-%d" % i, 32 * size) for i in range(max(2, total // (64 * size)))]
    reads = [f for _ in range(2) for f in source.sample(files, len(files))]
    return [("write", [Task([], [f]) for f in files]),
            ("search", [Task([f], [("r-%d" % i, size // 4)]) for i, f in enumerate(reads)])]


WORKLOADS = {"micro": micro, "montage": montage, "blast": blast}


def make(name, total, size, seed):
    return WORKLOADS[name](total, size, random.Random(seed))


def volume(tasks):
    """Bytes that are written and read."""
    return (sum(n for t in tasks for _, n in t.writes), sum(n for t in tasks for _, n in t.reads))
