"""What is run on each file system. A workload gives a value for each of its rows; all are rates.

Caches are emptied before whatever is called cold: the kernel's pages, entries and attributes."""

import json
import os
import pathlib
import re
import subprocess
import time

from .targets import needed

TICKS = os.sysconf("SC_CLK_TCK")
MIB = 1 << 20


def drop_caches():
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")


def busy_seconds():
    """Seconds that the processors have worked since boot, for anyone."""
    with open("/proc/stat", encoding="ascii") as f:
        ticks = list(map(int, f.readline().split()[1:9]))
    return (sum(ticks) - ticks[3] - ticks[4]) / TICKS


def must(command, cwd=None):
    done = subprocess.run([str(w) for w in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, cwd=cwd, timeout=900)
    if done.returncode:
        raise RuntimeError("%s: %s" % (command[0], (done.stderr or done.stdout).strip()[-300:]))
    return done.stdout


class Meter:
    """Wall-clock and processor seconds, everyone's."""

    def __enter__(self):
        self.busy, self.began = busy_seconds(), time.monotonic()
        return self

    def __exit__(self, *_):
        self.seconds = time.monotonic() - self.began
        self.busy = busy_seconds() - self.busy


class Workload:
    """rows: names of what run() gives, in order. run() gets the target and a directory on each of its
    mounts, which are the same one, empty before, and removed after it."""

    mounts = 1

    def __init__(self, name):
        self.name = name

    def run(self, args, places):
        """{row: (value, unit)}"""
        raise NotImplementedError


# --- fio: large files, and blocks within ---------------------------------------------------------


def fio(args, place, rw, block, jobs, size, *more):
    """Bytes/s, operations/s and processor seconds per GiB of one job description."""
    command = [needed("fio", args.fio), "--name=j", "--directory=%s" % place, "--filename_format=fio.$jobnum",
               "--rw=%s" % rw, "--bs=%s" % block, "--size=%d" % size, "--numjobs=%d" % jobs, "--ioengine=psync",
               "--fallocate=none", "--group_reporting", "--output-format=json", "--invalidate=0", *more]
    with Meter() as meter:
        out = must(command)
    job = json.loads(out[out.index("{"):])["jobs"][0]
    side = job["write" if "write" in rw else "read"]
    return side["bw_bytes"], side["iops"], meter.busy / (side["io_bytes"] / (1 << 30))


class Sequential(Workload):
    """One file per job, written from its beginning and fsynced, read cold, and read again."""

    def __init__(self, block, jobs):
        super().__init__("seq-%s-%d" % (block, jobs))
        self.block, self.jobs = block, jobs

    def run(self, args, places):
        total = args.size * MIB if self.block != "4k" else args.size * MIB // 4
        size, rows = total // self.jobs, {}
        for row, rw, more in (("write", "write", ["--end_fsync=1"]), ("cold-read", "read", []), ("warm-read", "read", [])):
            if row == "cold-read":
                drop_caches()
            rate, _, cpu = fio(args, places[0], rw, self.block, self.jobs, size, *more)
            rows["%s-%s-%d" % (row, self.block, self.jobs)] = rate / 1e6, "MB/s"
            if self.block == "1M" and row != "warm-read":
                rows["cpu-%s-%d" % (row, self.jobs)] = 1 / cpu, "GiB/CPU s"
        return rows


class Random(Workload):
    """4 KiB blocks of one file that is there already."""

    def __init__(self, jobs):
        super().__init__("random-%d" % jobs)
        self.jobs = jobs

    def run(self, args, places):
        size, rows = args.size * MIB // 4 // self.jobs, {}
        fio(args, places[0], "write", "1M", self.jobs, size, "--end_fsync=1")
        timed = ["--time_based", "--runtime=%d" % args.seconds]
        for row, rw, more in (("read", "randread", timed), ("write", "randwrite", [*timed, "--end_fsync=1"]),
                              ("write-fsync", "randwrite", [*timed, "--fsync=1"])):
            drop_caches()
            rows["random-%s-%d" % (row, self.jobs)] = fio(args, places[0], rw, "4k", self.jobs, size, *more)[1], "op/s"
        return rows


class Files(Workload):
    """Many files of one kind: written, and read cold; MB/s."""

    def __init__(self, name, number, least, most):
        super().__init__(name)
        self.number, self.least, self.most = number, least, most

    def run(self, args, places):
        rows = {}
        more = ["--nrfiles=%d" % self.number, "--filesize=%d-%d" % (self.least, self.most), "--openfiles=1",
                "--file_service_type=sequential", "--filename_format=fio.$jobnum.$filenum", "--create_on_open=1"]
        total = self.number * (self.least + self.most) // 2
        for row, rw in (("write", "write"), ("cold-read", "read")):
            if row == "cold-read":
                drop_caches()
            rate = fio(args, places[0], rw, "1M", 1, total, *more)[0]
            rows["%s-%s" % (self.name, row)] = rate / 1e6, "MB/s"
        return rows


# --- names and small files -----------------------------------------------------------------------


class Names(Workload):
    """md_bench: see there for its phases."""

    def __init__(self, processes, size, shared=False, tail=""):
        self.tail = tail or "-shared" * shared
        super().__init__("md-%d-%d%s" % (processes, size, self.tail))
        self.processes, self.size, self.shared = processes, size, shared

    def options(self, _):
        return ["-s"] * self.shared

    def run(self, args, places):
        out = must([args.tests / "md_bench", "-c", *self.options(places), places[0], self.processes, args.files, self.size])
        rows = {}
        for line in out.splitlines():
            phase, _, _, _, _, rate, _ = line.split()
            tail = "%s-%d%s" % ("4k" if self.size else "empty", self.processes, self.tail)
            rows["%s-%s" % (phase, tail)] = float(rate), "op/s"
        return rows


class NamesOfAnother(Names):
    """The same of what the other mount has made."""

    mounts = 2

    def __init__(self, processes, size):
        super().__init__(processes, size, tail="-other")

    def options(self, places):
        return ["-o", places[1]]


# --- programs ------------------------------------------------------------------------------------


class Tree(Workload):
    """tar of a source tree out of tmpfs and into nothing; rm -rf."""

    def run(self, args, places):
        tar = pathlib.Path(args.scratch) / "tree.tar"
        if not tar.exists():
            must(["tar", "-cf", tar, "-C", args.tree, "."])
        rows, at = {}, places[0] / "tree"
        at.mkdir()
        with Meter() as m:
            must(["tar", "-xf", tar, "-C", at])
        rows["untar"] = 60 / m.seconds, "per minute"
        drop_caches()
        with Meter() as m:
            must(["tar", "-cf", pathlib.Path(args.scratch) / "again.tar", "-C", at, "."])
        rows["tar-cold"] = 60 / m.seconds, "per minute"
        with Meter() as m:
            must(["rm", "-rf", at])
        rows["rm-rf"] = 60 / m.seconds, "per minute"
        return rows


class Git(Workload):
    """A clone of this repository, and the status of it."""

    def run(self, args, places):
        at, source = places[0] / "clone", args.repository
        git = [needed("git"), "-c", "safe.directory=*"]
        with Meter() as m:
            must([*git, "clone", "-q", "--no-local", source, at])
        rows = {"git-clone": (60 / m.seconds, "per minute")}
        drop_caches()
        with Meter() as m:
            must([*git, "-C", at, "status", "--short"])
        rows["git-status-cold"] = 60 / m.seconds, "per minute"
        return rows


class Compile(Workload):
    """src/base of this repository, compiled file by file, without optimisation."""

    def run(self, args, places):
        at, compiler = places[0] / "compile", needed("gcc")
        at.mkdir()
        git = [needed("git"), "-c", "safe.directory=*", "-C", args.repository]
        archive = pathlib.Path(args.scratch) / "sources.tar"
        if not archive.exists():
            must([*git, "archive", "-o", archive, "HEAD", "src", "include"])
        must(["tar", "-xf", archive, "-C", at])
        sources = sorted((at / "src" / "base").rglob("*.c"))
        with Meter() as m:
            for source in sources:
                must([compiler, "-std=gnu11", "-D_GNU_SOURCE", "-O0", "-Isrc", "-Iinclude", "-c", source], cwd=at)
        return {"compile": (60 / m.seconds, "per minute")}


class Lmdb(Workload):
    """tests/bench/lmdb_puts: a memory map of 1 TiB, and an fsync for each 100 records."""

    def run(self, args, places):
        needed("mdb_stat")
        put, got = must([args.repository / "tests/bench/lmdb_puts", places[0], args.files]).split()
        return {"lmdb-put": (float(put), "/s"), "lmdb-get": (float(got), "/s")}


class RocksDb(Workload):
    """db_bench: records of 16 + 100 bytes, each a write to the log, without sync; and with."""

    def run(self, args, places):
        rows = {}
        for row, count, more in (("rocksdb-put", args.files * 5, []), ("rocksdb-put-sync", args.files // 4, ["--sync=1"])):
            out = must([needed("db_bench"), "--benchmarks=fillrandom", "--num=%d" % count, "--db=%s" % (places[0] / row),
                        "--compression_type=none", *more])
            rows[row] = float(re.search(r"fillrandom.*?(\d+) ops/sec", out).group(1)), "/s"
        return rows


# --- two mounts ----------------------------------------------------------------------------------


class TwoMounts(Workload):
    """Both mounts at once: a large file by each, and each reads the other's."""

    mounts = 2

    def both(self, args, places, rw):
        size = args.size * MIB // 2
        command = [needed("fio", args.fio), "--ioengine=psync", "--fallocate=none", "--bs=1M", "--size=%d" % size,
                   "--rw=%s" % rw, "--invalidate=0", "--end_fsync=1", "--output-format=json"]
        for k, place in enumerate(places):
            which = k if rw == "write" else 1 - k
            command += ["--name=j%d" % k, "--filename=%s/file.%d" % (place, which)]
        out = must(command)
        jobs = json.loads(out[out.index("{"):])["jobs"]
        side = "write" if rw == "write" else "read"
        return sum(j[side]["io_bytes"] for j in jobs) / max(j[side]["runtime"] for j in jobs) / 1e3

    def run(self, args, places):
        rows = {"two-mounts-write-1M": (self.both(args, places, "write"), "MB/s")}
        drop_caches()
        rows["two-mounts-read-other's-1M"] = self.both(args, places, "read"), "MB/s"
        return rows


# --- logs, and the ranks of a parallel program ---------------------------------------------------


class SmallWrites(Workload):
    """tests/bench/small_writes.c: many small writes through one open file per process."""

    def __init__(self, how, size, processes):
        Workload.__init__(self, "%s-%dB-p%d" % (how, size, processes))
        self.how, self.size, self.processes = how, size, processes

    def run(self, args, places):
        count = args.files // self.processes
        rate = must([args.tests / "small_writes", self.how, places[0] / "file", self.size, count, self.processes])
        return {self.name: (float(rate), "/s")}


def all_of_them():
    listed = [Sequential(block, jobs) for block in ("1M", "128k", "4k") for jobs in (1, 4)]
    listed += [Random(jobs) for jobs in (1, 4)]
    listed += [Names(processes, size) for size in (0, 4096) for processes in (1, 4)]
    listed += [NamesOfAnother(processes, 4096) for processes in (1, 4)]
    listed += [Names(4, 0, shared=True), Files("files-1-4M", 500, MIB, 4 * MIB), Files("files-300M", 4, 300 * MIB, 300 * MIB)]
    listed += [SmallWrites(how, 120, processes) for how in ("append", "sequential", "shared") for processes in (1, 4)]
    listed += [SmallWrites("append", 4096, processes) for processes in (1, 4)]
    listed += [Tree("tree"), Git("git"), Compile("compile"), Lmdb("lmdb"), RocksDb("rocksdb"), TwoMounts("two-mounts")]
    return listed
