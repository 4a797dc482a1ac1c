"""Load: stress-ng's file system stressors, dbench, a million small files."""

import json
import multiprocessing
import os
import pathlib
import re
import time

from .common import Outcome, missing, run, version_of

# Stressors of the class that need no directory or that test another part of the kernel.
NOT_OURS = {"binderfs", "bind-mount", "eventfd", "ioprio", "procfs"}

STRESS_FAILED, STRESS_NOT_HERE = (2,), (3, 4, 5)


def stress_one(context, stressor, base):
    seconds = context.args.seconds
    command = ["stress-ng", f"--{stressor}", 2, "--timeout", f"{seconds}s", "--verify", "--metrics-brief",
               "--hdd-bytes", "64m", "--iomix-bytes", "64m", "--fallocate-bytes", "64m", "--oomable",
               "--temp-path", context.directory(stressor, base)]
    return context.run(command, timeout=seconds + 180, part=stressor)


def stress_ng(context):
    """Every file system stressor by itself; one that fails is tried on the reference as well."""
    version = version_of("stress-ng", r"version (\S+)")
    if not version:
        return missing("stress_ng", "stress-ng is not installed")
    outcome = Outcome("stress_ng", version, f"stress-ng --STRESSOR 2 --timeout {context.args.seconds}s --verify")
    listing = run(["stress-ng", "--class", "filesystem?"], timeout=10).output
    for stressor in listing.split(":", 1)[1].split():
        if stressor in NOT_OURS or not context.wanted(stressor):
            continue
        if context.over():
            outcome.skip(stressor, "the suite's time was over")
            continue
        result = stress_one(context, stressor, None)
        if result.ok():
            outcome.good()
        elif result.code in STRESS_NOT_HERE:
            outcome.skip(stressor, f"stress-ng says it can't run here: {why(result)}")
        elif stress_one(context, stressor, context.reference()).code != 0:
            outcome.skip(stressor, f"fails on {context.reference()} as well")
        else:
            outcome.fail(stressor, why(result))
    return outcome


def why(result):
    """What stress-ng said went wrong."""
    lines = re.findall(r"(?:fail|error|skipped)[:\]].*", result.output)
    return lines[0][:250] if lines else result.why()


def dbench(context):
    """dbench's office load with eight clients."""
    version = version_of("dbench", r"version (\S+)")
    if not version:
        return missing("dbench", "dbench is not installed")
    seconds = 5 if context.args.quick else 60
    outcome = Outcome("dbench", version, f"dbench -t {seconds} 8")
    result = context.run(["dbench", "-D", context.directory(), "-t", seconds, 8], timeout=seconds * 3 + 120)
    outcome.check("8 clients", result)
    rate = re.search(r"Throughput (.*)", result.output)
    if rate:
        outcome.note(rate.group(1))
    return outcome


def make_files(folder, first, count, size):
    data = os.urandom(size)
    for number in range(first, first + count):
        with open(f"{folder}/file-{number:07d}", "xb", buffering=0) as file:
            if size:
                file.write(data)


def read_files(folder, first, count, size):
    for number in range(first, first + count):
        with open(f"{folder}/file-{number:07d}", "rb", buffering=0) as file:
            if len(file.read(size + 1)) != size:
                raise RuntimeError(f"file-{number:07d} has not {size} bytes")


def remove_files(folder, first, count, _size):
    for number in range(first, first + count):
        os.unlink(f"{folder}/file-{number:07d}")


def in_parallel(work, folder, count, size, timeout):
    """Runs work over the files by four processes; gives back seconds, or None when one of them failed."""
    share, started = count // 4, time.monotonic()
    workers = [multiprocessing.Process(target=work, args=(str(folder), i * share, share, size)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(max(1, timeout - (time.monotonic() - started)))
        if worker.is_alive():
            worker.kill()
    return None if any(w.exitcode for w in workers) else time.monotonic() - started


def status(context):
    result = run(context.status_command, timeout=30)
    return json.loads(result.output) if result.ok() else None


def memory_used(state):
    return sum(node["memory_used"] for node in state["nodes"])


def settled_memory(context, seconds=20):
    """The deployment's memory in use, once it has stopped changing."""
    last, until = None, time.monotonic() + seconds
    while time.monotonic() < until:
        state = status(context)
        if not state:
            return None
        if memory_used(state) == last:
            return last
        last = memory_used(state)
        time.sleep(2.5)
    return last


def balance(state):
    """The fullest partition's share over the mean, by node, as far as the status tells."""
    loads = [node["memory_used"] / max(1, node["partitions"]) for node in state["nodes"]]
    return max(loads) / (sum(loads) / len(loads))


def small_files_of(context, outcome, size):
    """Creates, lists, reads and removes; says what a file costs in memory."""
    count = context.args.files // 4 * 4
    folder = context.directory(f"files-{size}")
    case, before = f"{count} files of {size} bytes", settled_memory(context)
    for name, work in (("create", make_files), ("list", None), ("read", read_files), ("remove", remove_files)):
        if work:
            seconds = in_parallel(work, folder, count, size, context.left())
        else:
            started = time.monotonic()
            listed = {entry.name for entry in os.scandir(context.on_second(folder))}
            seconds = time.monotonic() - started if len(listed) == count else None
        if seconds is None:
            outcome.fail(f"{case}: {name}", "a process failed, see the log" if work else f"{len(listed)} listed")
            return
        outcome.good()
        outcome.note(f"{case}: {name} {count / seconds:,.0f} files/s")
        after = settled_memory(context) if name in ("create", "remove") else None
        if after is not None and before is not None:
            what = "memory per file" if name == "create" else "memory not given back, per file"
            outcome.note(f"{case}: {what} {(after - before) / count:.0f} bytes")
        if name == "create" and (state := status(context)):
            outcome.note(f"{case}: fullest partition over mean {balance(state):.3f}")
    left = os.listdir(context.on_second(folder))
    if left:
        outcome.fail(f"{case}: empty at the end", f"{len(left)} left")


def small_files(context):
    """Many small files in one directory: all operations, memory, balance."""
    outcome = Outcome("small_files", "", f"{context.args.files} files by 4 processes")
    for size in (0, 4096):
        small_files_of(context, outcome, size)
    return outcome


def full(context):
    """Fills the memory: ENOSPC, then removing works and frees at once, and writing works again."""
    outcome = Outcome("full", "", "dd until ENOSPC; rm; dd")
    if context.args.mount:
        outcome.skip("full", "only on a deployment of its own")
        return outcome
    folder = context.directory()
    free = os.statvfs(folder)
    result = context.run(["dd", "if=/dev/zero", f"of={folder}/big", "bs=1M",
                          f"count={free.f_frsize * free.f_blocks // (1 << 20) + 64}"], timeout=900)
    if "No space left" in result.output:
        outcome.good()
    else:
        outcome.fail("ENOSPC when full", result.why())
    small = pathlib.Path(folder, "big")
    outcome.check("truncate when full", context.run(["truncate", "-s", small.stat().st_size // 2, small], timeout=60))
    outcome.check("write after truncate", context.run(["dd", "if=/dev/zero", f"of={folder}/more", "bs=1M", "count=64"]))
    outcome.check("remove", context.run(["rm", small, folder / "more"], timeout=60))
    outcome.check("write after remove", context.run(["dd", "if=/dev/zero", f"of={folder}/again", "bs=1M", "count=256"]))
    return outcome


SUITES = {"stress_ng": stress_ng, "dbench": dbench, "small_files": small_files, "full": full}
