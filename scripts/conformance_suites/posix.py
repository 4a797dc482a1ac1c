"""Suites about single calls: pjdfstest, the Linux Test Project."""

import os
import re
import shlex

from .common import Outcome, missing, revision

# System calls of the Linux Test Project that concern a file system; the rest tests other parts of a kernel.
FILE_CALLS = re.compile(
    r"^(access|chdir|chmod|chown|close|copy_file_range|creat|dup|faccessat|fallocate|fchdir|fchmod|fchmodat|"
    r"fchown|fchownat|fcntl|fdatasync|fgetxattr|flistxattr|flock|fpathconf|fremovexattr|fsetxattr|fstat|"
    r"fstatat|fstatfs|fsync|ftruncate|futimesat|getcwd|getdents|getxattr|inotify|ioctl_fiemap|io_submit|lchown|"
    r"lgetxattr|link|linkat|listxattr|llistxattr|llseek|lremovexattr|lseek|lstat|mkdir|mkdirat|mknod|mknodat|"
    r"mmap|mremap|msync|munmap|nftw|open|openat|pathconf|posix_fadvise|pread|preadv|pwrite|pwritev|read|"
    r"readahead|readdir|readlink|readlinkat|readv|realpath|removexattr|rename|renameat|rmdir|sendfile|"
    r"setxattr|splice|stat|statfs|statvfs|statx|symlink|symlinkat|sync|sync_file_range|syncfs|truncate|"
    r"umask|unlink|unlinkat|ustat|utime|utimensat|utimes|write|writev)[a-z_]*\d*(_\d+)?$"
)

# Of the file system tests, those that work in a directory given to them.
DIRECTORY_TESTS = re.compile(
    r"^(gf\d+|rwtest\d+|iogen\d+|fs_inod\d+|linker\d+|openfile\d+|inode\d+|stream\d+|ftest\d+|lftest\d+|"
    r"fs_di|fs_racer)$"
)

# How a program of the Linux Test Project ends: bits of its exit status.
LTP_FAIL, LTP_BROKEN, LTP_WARN, LTP_CONF = 1, 2, 4, 32


def pjdfstest(context):
    """All of pjdfstest by prove(1), each assertion counted."""
    path = context.path_of("pjdfstest")
    if not path:
        return missing("pjdfstest", "no --pjdfstest PATH")
    outcome = Outcome("pjdfstest", revision(path), "prove -r pjdfstest/tests")
    tests = sorted(str(t) for t in (path / "tests").rglob("*.t") if context.wanted(str(t)))
    if context.args.quick:
        tests = [t for t in tests if "/rename/" in t or "/unlink/" in t or "/utimensat/" in t]
    result = context.run(["prove", *tests], cwd=context.directory())
    total = re.search(r"Tests=(\d+)", result.output)
    if not total:
        outcome.fail("prove", result.why())
        return outcome
    for name, count, which in re.findall(
        r"^(\S+\.t)\s+\(Wstat.*?Failed: (\d+)\)\n(?:\s+(Failed tests?:[^\n]*))?", result.output, re.MULTILINE
    ):
        case = "/".join(name.split("/")[-2:])
        if int(count):
            outcome.fail(case, which, int(count))
    for name, why in re.findall(r"^(\S+\.t)\s.*\n\s+(Parse errors:.*|Non-zero exit status:.*)$",
                                result.output, re.MULTILINE):
        outcome.fail("/".join(name.split("/")[-2:]), why)
    outcome.good(int(total.group(1)) - outcome.failed)
    return outcome


def runtest_entries(root, name):
    """The lines (name, command) of one of the Linux Test Project's lists."""
    entries = []
    for line in (root / "runtest" / name).read_text(encoding="utf-8").splitlines():
        line = line.strip()
        if line and not line.startswith("#") and len(line.split(None, 1)) == 2:
            entries.append(tuple(line.split(None, 1)))
    return entries


def ltp_run(context, root, base, entry, most):
    """One test of the Linux Test Project in a directory of its own on base."""
    name, command = entry
    folder = context.directory(name, base)
    env = {
        "LTPROOT": str(root), "TMPDIR": str(folder), "LTP_COLORIZE_OUTPUT": "n", "LTP_DEV_FS_TYPE": "tmpfs",
        "LTP_SINGLE_FS_TYPE": "tmpfs", "PATH": f"{root}/testcases/bin:{os.environ['PATH']}",
        "TST_NO_DEFAULT_RUN": "", "LTP_TIMEOUT_MUL": "4",
    }
    return context.run(f"cd {shlex.quote(str(folder))} && {command}", timeout=most, env=env, shell=True)


def ltp_count(context, outcome, root, entry, most):
    """Runs one test and counts it; a failure is tried on the reference, where it may fail as well."""
    name = entry[0]
    if context.over():
        outcome.skip(name, "the suite's time was over")
        return
    result = ltp_run(context, root, None, entry, most)
    code = result.code
    if code == 0:
        outcome.good()
    elif code == LTP_CONF or (code is not None and code & ~LTP_WARN == LTP_CONF):
        outcome.skip(name, "not for this machine or file system: " + last_of(result.output, "TCONF"))
    elif code is None and context.over():
        outcome.skip(name, "the suite's time was over while it ran")
    elif not ltp_run(context, root, context.reference(), entry, most).ok():
        outcome.skip(name, f"fails on {context.reference()} as well")
    else:
        outcome.fail(name, last_of(result.output, "TFAIL|TBROK|FAIL|BROK") or result.why())


def last_of(output, pattern):
    """The first line that tells why."""
    lines = [line.strip() for line in output.splitlines() if re.search(pattern, line)]
    return lines[0][:300] if lines else ""


def shortened(entry):
    """The test with its times cut to some seconds."""
    name, command = entry
    command = re.sub(r"-L \d+", "-L 5", command)
    command = re.sub(r"-i \d+s", "-i 5s", command)
    return name, command


def ltp(context, name, lists, most):
    root = context.path_of("ltp")
    if not root:
        return missing(name, "no --ltp PATH (the directory with runtest and testcases/bin)")
    outcome = Outcome(name, "", f"{', '.join(lists)} of runtest/, TMPDIR on the mount")
    for list_name, pattern in lists.items():
        for entry in runtest_entries(root, list_name):
            if pattern.match(entry[0]) and context.wanted(entry[0]):
                if context.args.quick:
                    entry = shortened(entry)
                ltp_count(context, outcome, root, entry, most)
    return outcome


def ltp_syscalls(context):
    """The Linux Test Project's tests of system calls about files, run in a directory on the mount."""
    return ltp(context, "ltp_syscalls", {"syscalls": FILE_CALLS}, 120)


def ltp_fs(context):
    """The Linux Test Project's file system stress tests that take a directory."""
    return ltp(context, "ltp_fs", {"fs": DIRECTORY_TESTS}, 120 if context.args.quick else 600)


def ltp_locks(context):
    """The Linux Test Project's fcntl lock test: a hundred clients on one file."""
    root = context.path_of("ltp")
    program = root / "testcases" / "bin" / "locktests" if root else None
    if not program or not program.exists():
        return missing("ltp_locks", "no --ltp PATH with locktests in it")
    outcome = Outcome("ltp_locks", "", "locktests -n 50 -f FILE")
    for clients in (2, 10, 50):
        file = context.directory() / f"locks{clients}"
        outcome.check(f"{clients} clients", context.run([program, "-n", clients, "-f", file], timeout=600))
    return outcome


SUITES = {"pjdfstest": pjdfstest, "ltp_syscalls": ltp_syscalls, "ltp_fs": ltp_fs, "ltp_locks": ltp_locks}
