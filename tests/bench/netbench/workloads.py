"""What the tasks are: phases of (name, tasks), by bytes in all and the size of a file of the micro-benchmark."""

import random

from netbench.work import Task

# A kernel makes one file at a time in a directory: it keeps the directory's lock for the round trip. Where links are
# scaled down round trips take a hundred times as long, and the workers of a node would wait for each other.
FOLDERS = [str(i) for i in range(32)]


def make_folders(top):
    for folder in FOLDERS:
        (top / folder).mkdir(parents=True)


def path(kind, number):
    return "%s/%s-%d" % (FOLDERS[number % len(FOLDERS)], kind, number)


def warm_up(workers, size):
    """What comes before, as connections are there in a run that takes minutes: four files of each worker."""
    return [Task([], [(path("w", i), size)]) for i in range(4 * workers)]


def micro(total, size, source):
    """Each task writes a file; then each reads one, in another order."""
    files = [(path("f", i), size) for i in range(max(1, total // size))]
    mixed = source.sample(files, len(files))
    return [("write", [Task([], [f]) for f in files]), ("read", [Task([f], []) for f in mixed])]


def montage(total, size, source):
    """Many files of one to four sizes; then tasks that read two of them, of anybody, and write another one."""
    files, have = [], 0
    while have < total // 2:
        files.append((path("m", len(files)), source.randint(size, 4 * size)))
        have += files[-1][1]
    mixed = source.sample(files, len(files))
    mix = [Task([f, source.choice(files)], [(path("n", i), source.randint(size, 4 * size))])
           for i, f in enumerate(mixed[:len(mixed) // 3 * 2])]
    return [("write", [Task([], [f]) for f in files]), ("mix", mix)]


def blast(total, size, source):
    """A few large files, each read twice, with a small result. (Where both readers are on one node at the same time
    it is fetched once, so a time may be below its bound.)"""
    files = [(path("b", i), 32 * size) for i in range(max(2, total // (64 * size)))]
    reads = [f for _ in range(2) for f in source.sample(files, len(files))]
    return [("write", [Task([], [f]) for f in files]),
            ("search", [Task([f], [(path("r", i), size // 4)]) for i, f in enumerate(reads)])]


WORKLOADS = {"micro": micro, "montage": montage, "blast": blast}


def make(name, total, size, seed):
    return WORKLOADS[name](total, size, random.Random(seed))


def volume(tasks):
    """Bytes that are written and read."""
    return (sum(n for t in tasks for _, n in t.writes), sum(n for t in tasks for _, n in t.reads))
