"""Real programs at work: git, sqlite, tar, rsync, and building this project inside its own mount."""

import hashlib
import multiprocessing
import os
import sqlite3
import time

from .common import Outcome, TOP, missing, version_of


def git(context):
    """Clones this project into the mount, checks every object, and makes a commit there."""
    outcome = Outcome("git", version_of("git"), "git clone; git fsck --full; git gc")
    clone = context.directory() / "clone"
    # The sources may belong to another user than the one who tests.
    env = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}

    def step(case, *command):
        return outcome.check(case, context.run(["git", *command], env=env))

    if not step("clone", "clone", "--no-local", TOP, clone):
        return outcome
    step("fsck", "-C", clone, "fsck", "--full", "--strict")
    status = context.run(["git", "-C", clone, "status", "--porcelain"], env=env)
    if status.ok() and not status.output.strip():
        outcome.good()
    else:
        outcome.fail("clean checkout", status.output[:300] or status.why())
    (clone / "new-file").write_text("something new\n", encoding="utf-8")
    step("add", "-C", clone, "add", "new-file")
    step("commit", "-C", clone, "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-qm", "test")
    step("gc", "-C", clone, "gc", "--aggressive", "--prune=now")
    step("fsck after gc", "-C", clone, "fsck", "--full", "--strict")
    if context.mount2:
        step("fsck on the second mount", "-C", context.on_second(clone), "fsck", "--full", "--strict")
    return outcome


def sqlite_writer(path, journal, writer, transactions):
    """One of several processes that add to one database and change a counter in it."""
    base = sqlite3.connect(path, timeout=120, isolation_level=None)
    base.execute(f"PRAGMA journal_mode={journal}")
    base.execute("PRAGMA synchronous=NORMAL")
    for number in range(transactions):
        base.execute("BEGIN IMMEDIATE")
        base.execute("INSERT INTO entries VALUES (?, ?, ?)", (writer, number, os.urandom(200)))
        base.execute("UPDATE counter SET value = value + 1")
        if number % 10 == 9:
            base.execute("ROLLBACK")
        else:
            base.execute("COMMIT")
    base.close()


def sqlite_case(context, journal, paths, transactions):
    """Several writers on one database; gives back what is wrong with it, or an empty string."""
    base = sqlite3.connect(paths[0], timeout=120, isolation_level=None)
    mode = base.execute(f"PRAGMA journal_mode={journal}").fetchone()[0]
    if mode != journal:
        return f"journal mode is {mode}"
    base.execute("CREATE TABLE entries (writer, number, data, UNIQUE (writer, number))")
    base.execute("CREATE TABLE counter (value)")
    base.execute("INSERT INTO counter VALUES (0)")
    base.close()
    workers = [multiprocessing.Process(target=sqlite_writer, args=(path, journal, i, transactions))
               for i, path in enumerate(paths)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(context.left(600))
        if worker.is_alive():
            worker.kill()
            return "a writer did not end in time"
    if any(worker.exitcode for worker in workers):
        return f"writers ended with {[worker.exitcode for worker in workers]}"
    base = sqlite3.connect(paths[-1], timeout=120)
    check = base.execute("PRAGMA integrity_check").fetchone()[0]
    rows, value = base.execute("SELECT (SELECT count(*) FROM entries), value FROM counter").fetchone()
    base.close()
    expected = len(paths) * (transactions - transactions // 10)
    if check != "ok" or rows != expected or value != expected:
        return f"integrity_check {check}, {rows} rows, counter {value}, expected {expected}"
    return ""


def sqlite(context):
    """Every journal mode with four writers; rollback journals also with writers on both mounts."""
    outcome = Outcome("sqlite", sqlite3.sqlite_version, "4 writers, 10 % rolled back, PRAGMA integrity_check")
    transactions = 30 if context.args.quick else 500
    folder = context.directory()
    for journal in ("wal", "delete", "truncate", "persist"):
        where = {"one mount": [folder] * 4}
        # WAL shares memory between its users and so works on one mount only, on any network file system.
        if context.mount2 and journal != "wal":
            where["both mounts"] = [folder, context.on_second(folder)] * 2
        for place, folders in where.items():
            case = f"{journal}, {place}"
            paths = [f / f"{journal}-{place.replace(' ', '-')}.db" for f in folders]
            wrong = sqlite_case(context, journal, paths, transactions) if context.wanted(case) else ""
            if wrong:
                outcome.fail(case, wrong)
            else:
                outcome.good()
    return outcome


def checksums(folder):
    """Name → checksum of every file below a folder."""
    sums = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            sums[name] = os.readlink(path)
        elif path.is_file():
            sums[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            sums[name] = "directory"
    return sums


def compare(outcome, case, expected, found):
    wrong = sorted(n for n in expected.keys() | found.keys() if expected.get(n) != found.get(n))
    if wrong:
        outcome.fail(case, f"{len(wrong)} of {len(expected)} differ: {', '.join(wrong[:5])}")
    else:
        outcome.good()


def source_tree(context):
    """The tree to copy: a part of it when quick."""
    return (context.args.tree + "/linux") if context.args.quick else context.args.tree


def tar(context):
    """A large tree into the mount by tar, out of it into another place of it, each file compared."""
    tree = source_tree(context)
    outcome = Outcome("tar", version_of("tar"), f"tar -C {tree} -c . | tar -x")
    source, copy, again = (context.directory(name) for name in ("source", "copy", "again"))
    context.run(["cp", "-a", f"{tree}/.", source])
    reference = context.directory("reference", context.reference())
    context.run(["cp", "-a", f"{tree}/.", reference])
    expected = checksums(reference)
    compare(outcome, "cp -a into the mount", expected, checksums(source))
    outcome.check("tar | tar", context.run(["sh", "-c", f"tar -C {source} -c . | tar -C {copy} -xp"]))
    compare(outcome, "tar | tar", expected, checksums(copy))
    archive = context.directory("archive") / "tree.tar.gz"
    outcome.check("tar -z", context.run(["tar", "-C", copy, "-czf", archive, "."]))
    outcome.check("tar -x", context.run(["tar", "-C", again, "-xzpf", archive]))
    seen = context.on_second(again)
    compare(outcome, "tar -x, seen on the second mount", expected, checksums(seen))
    outcome.check("tar --diff", context.run(["tar", "-C", again, "--diff", "-zf", archive]))
    outcome.check("rm -rf", context.run(["rm", "-rf", copy]))
    outcome.note(f"{len(expected)} entries")
    return outcome


def rsync(context):
    """rsync -a there and back, and once more, which must find nothing to do."""
    version = version_of("rsync", r"version (\S+)")
    if not version:
        return missing("rsync", "rsync is not installed")
    tree = source_tree(context)
    outcome = Outcome("rsync", version, f"rsync -aHAX {tree}/ MOUNT/; rsync -aHAX MOUNT/ BACK/")
    there, back = context.directory("there"), context.directory("back", context.reference())
    outcome.check("there", context.run(["rsync", "-aHAX", f"{tree}/", there]))
    outcome.check("back", context.run(["rsync", "-aHAX", f"{context.on_second(there)}/", back]))
    for case, source, target in (("there again", tree, there), ("back again", back, context.on_second(there)),
                                 ("compared", back, tree)):
        result = context.run(["rsync", "-aHAXnci", "--delete", f"{source}/", target])
        if result.ok() and not result.output.strip():
            outcome.good()
        else:
            outcome.fail(case, result.output[:300] or result.why())
    return outcome


def build(context):
    """Builds this project inside the mount and runs its unit tests there."""
    outcome = Outcome("build", version_of("cmake"), "git clone; cmake; build; ctest -R ^unit -LE slow")
    clone, place = context.directory() / "clone", context.directory() / "build"
    env = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    steps = {
        "clone": ["git", "clone", "--no-local", TOP, clone],
        "configure": ["cmake", "-S", clone, "-B", place, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug"],
        "build": ["cmake", "--build", place],
        "unit tests": ["ctest", "--test-dir", place, "-R", "^unit", "-LE", "slow", "--output-on-failure"],
    }
    for case, command in steps.items():
        started = time.monotonic()
        if not outcome.check(case, context.run(command, env=env, timeout=1800)):
            break
        outcome.note(f"{case}: {time.monotonic() - started:.0f} s")
    result = context.run(["cmake", "--build", place])
    if "no work to do" in result.output:
        outcome.good()
    else:
        outcome.fail("second build has nothing to do", result.output[:300] or result.why())
    return outcome


SUITES = {"git": git, "sqlite": sqlite, "tar": tar, "rsync": rsync, "build": build}
