"""Random operations with their results checked: both kinds of fsx, fsstress, fio with checksums."""

from .common import Outcome, missing, revision, version_of

# What the newer fsx is told to do: every operation that it knows, close and open again among them.
FSX_RS_CONFIG = """\
flen = {length}
[opsize]
max = {operation}
align = {align}
[weights]
close_open = 1
invalidate = 1
mapread = 10
mapwrite = 10
read = 10
write = 10
truncate = 3
fsync = 0.5
fdatasync = 0.5
posix_fallocate = {fallocate}
punch_hole = 3
sendfile = 3
posix_fadvise = 1
copy_file_range = 3
"""


def fsx(context):
    """The classic fsx, with mapped access, holes, ranges of zeros and copies of ranges, in four shapes."""
    path = context.path_of("fsx") or (context.path_of("xfstests") and context.path_of("xfstests") / "ltp/fsx")
    if not path or not path.exists():
        return missing("fsx", "no --fsx PATH or --xfstests PATH")
    operations = context.args.operations
    outcome = Outcome("fsx", revision(path.parent), f"fsx -q -N {operations} -S SEED … FILE")
    shapes = {
        "small": ["-l", 262144, "-o", 65536],
        "stripes": ["-l", 5 << 20, "-o", 1536 << 10],
        "reopen": ["-c", 20, "-l", 3 << 20, "-o", 131072],
        "direct": ["-Z", "-R", "-W", "-r", 4096, "-w", 4096, "-t", 4096, "-l", 4 << 20, "-o", 1 << 20],
    }
    for seed in range(1, context.args.seeds + 1):
        for shape, options in shapes.items():
            # A big operation costs tens of small ones; so does a close that waits for all that was written.
            share = operations if shape == "small" else max(1, operations // 20)
            case = f"{shape} seed {seed}"
            if not context.wanted(case):
                continue
            file = context.directory() / f"fsx-{shape}-{seed}"
            command = [path, "-q", "-N", share, "-S", seed, "-P", context.logs, *options, file]
            if outcome.check(case, context.run(command)):
                outcome.note(f"{case}: {share} operations")
    return outcome


def fsx_rs(context):
    """The rewrite of fsx, whose mix of operations is another one."""
    path = context.path_of("fsx_rs")
    if not path:
        return missing("fsx_rs", "no --fsx-rs PATH")
    operations = context.args.operations
    outcome = Outcome("fsx_rs", version_of(path), f"fsx -f CONFIG -N {operations} -S SEED FILE")
    # Aligned, it asks for ranges of no length, which posix_fallocate(3) refuses: none there. It leaves
    # mappings behind, which slow it down, and the kernel allows 65,530: so no run is longer.
    shapes = {"small": (262144, 65536, 1, 10, 2), "stripes": (5 << 20, 1536 << 10, 1, 20, 2),
              "aligned": (4 << 20, 1 << 20, 4096, 20, 0)}
    for seed in range(1, context.args.seeds + 1):
        for shape, (length, most, align, divisor, fallocate) in shapes.items():
            case = f"{shape} seed {seed}"
            if not context.wanted(case):
                continue
            config = context.logs / f"fsx-rs-{shape}.toml"
            config.write_text(FSX_RS_CONFIG.format(length=length, operation=most, align=align,
                                                    fallocate=fallocate))
            file = context.directory() / f"fsxrs-{shape}-{seed}"
            share = max(1, operations // divisor)
            command = [path, "-q", "-f", config, "-N", share, "-S", seed, "-P", context.logs, file]
            if outcome.check(case, context.run(command)):
                outcome.note(f"{case}: {share} operations")
    return outcome


def fsstress(context):
    """fsstress from both mounts at once in one directory, after which everything must be removable."""
    root = context.path_of("xfstests")
    if not root:
        return missing("fsstress", "no --xfstests PATH")
    count = 1000 if context.args.quick else 5000  # more fills the memory, and then each close waits
    outcome = Outcome("fsstress", revision(root), f"fsstress -d DIR -p 4 -n {count} -s SEED")
    for seed in range(1, context.args.seeds + 1):
        folder = context.directory(f"seed{seed}")
        command = [root / "ltp" / "fsstress", "-d", folder, "-p", 4, "-n", count, "-s", seed]
        outcome.check(f"seed {seed}", context.run(command, timeout=1200))
        outcome.check(f"remove after seed {seed}", context.run(["rm", "-rf", folder], timeout=600))
        if context.mount2:
            both = context.directory(f"both{seed}")
            line = "".join(
                f"{root}/ltp/fsstress -d {where} -p 2 -n {count // 2} -s {seed + i} & p{i}=$!; "
                for i, where in enumerate((both, context.on_second(both))))
            line += "wait $p0; first=$?; wait $p1 && exit $first"
            outcome.check(f"both mounts, seed {seed}", context.run(["sh", "-c", line], timeout=1200))
            outcome.check(f"remove after both, seed {seed}",
                          context.run(["rm", "-rf", context.on_second(both)], timeout=600))
    return outcome


def fio(context):
    """fio writes blocks with checksums by four jobs and reads them back, random and sequential."""
    version = version_of("fio", r"fio-(\S+)")
    if not version:
        return missing("fio", "fio is not installed")
    outcome = Outcome("fio", version, "fio --verify=crc32c --numjobs=4 --bs=4k…4M --rw=write|randwrite|randrw")
    size = "16m" if context.args.quick else "192m"
    folder = context.directory()
    for engine, direct in (("psync", 0), ("psync", 1), ("mmap", 0), ("libaio", 1)):
        for mode in ("write", "randwrite", "randrw"):
            for block in ("4k", "64k", "1m", "4m"):
                case = f"{engine}{' direct' if direct else ''} {mode} {block}"
                if (engine != "psync" and block not in ("4k", "1m")) or not context.wanted(case):
                    continue
                small = block == "4k" and direct and not context.args.quick
                command = [
                    "fio", "--name=verify", f"--directory={folder}", "--numjobs=4", f"--rw={mode}", f"--bs={block}",
                    f"--size={'32m' if small else size}", "--verify=crc32c", "--do_verify=1", "--verify_fatal=1",
                    f"--ioengine={engine}", f"--direct={direct}", "--iodepth=4", "--end_fsync=1", "--group_reporting",
                    "--fallocate=none", "--randseed=7", "--unlink=1",
                ]
                outcome.check(case, context.run(command, timeout=900, cwd=context.logs))
    return outcome


SUITES = {"fsx": fsx, "fsx_rs": fsx_rs, "fsstress": fsstress, "fio": fio}
