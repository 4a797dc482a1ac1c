"""What every suite of scripts/conformance shares: running bounded commands, and counting what came out."""

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

TOP = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Result:
    """How a command ended; code is None when it ran out of time."""

    code: int | None
    output: str
    seconds: float

    def ok(self):
        return self.code == 0

    def why(self):
        """A line for people."""
        if self.code is None:
            return f"did not end within {self.seconds:.0f} s"
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        return f"exit {self.code}: {' / '.join(lines[-2:])[:300]}"


def run(command, log=None, timeout=600, cwd=None, env=None, shell=False):
    """Runs a command in a session of its own, so that at the time's end all of it can be ended."""
    started = time.monotonic()
    command = command if shell else [str(word) for word in command]
    process = subprocess.Popen(
        command, shell=shell, cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        start_new_session=True,
    )
    code = None
    try:
        output, _ = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        output = end_session(process)
    except BaseException:
        end_session(process)
        raise
    if log:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"$ {command}\n{output}\n")
    return Result(code, output, time.monotonic() - started)


def end_session(process):
    """Ends a process and all that it started; gives back what it had printed."""
    for which in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, which)
        try:
            return process.communicate(timeout=10)[0]
        except subprocess.TimeoutExpired:
            continue
    return "(it could not be ended)"


class Outcome:
    """What a suite found: counts, and each failure with what is known of it."""

    def __init__(self, name, version="", command=""):
        self.name = name
        self.version = version
        self.command = command
        self.passed = 0
        self.failed = 0
        self.skipped = 0
        self.seconds = 0.0
        self.failures = []
        self.notes = []

    def good(self, count=1):
        self.passed += count

    def fail(self, case, detail, count=1):
        self.failed += count
        self.failures.append({"case": case, "detail": detail})

    def skip(self, case, why, count=1):
        self.skipped += count
        self.note(f"{case}: skipped, {why}")

    def note(self, text):
        self.notes.append(text)

    def check(self, case, result):
        """Counts a command's result as one case."""
        if result.ok():
            self.good()
        else:
            self.fail(case, result.why())
        return result.ok()

    def line(self):
        verdict = "FAILED" if self.failed else "passed" if self.passed else "skipped"
        return (f"    {verdict}: {self.passed} passed, {self.failed} failed, {self.skipped} skipped, "
                f"{self.seconds:.0f} s")

    def row(self):
        return (f"| {self.name} | {self.version} | {self.passed} | {self.failed} | {self.skipped} | "
                f"{self.seconds:.0f} |")

    def details(self):
        lines = [f"## {self.name}", ""]
        if self.command:
            lines += [f"    {self.command}", ""]
        lines += [f"- FAILED {f['case']}: {f['detail']}" for f in self.failures]
        lines += [f"- {note}" for note in self.notes]
        return lines + [""]


class Context:
    """What a suite gets: the mounts, the options, a directory of its own, and the time it has left."""

    def __init__(self, args, mount, mount2, logs, status):
        self.args = args
        self.mount = mount
        self.mount2 = mount2
        self.logs = logs
        self.status_command = status
        self.name = ""
        self.deadline = 0.0

    def begin(self, name):
        self.name = name
        self.deadline = time.monotonic() + self.args.timeout

    def end(self):
        shutil.rmtree(self.mount / self.stem(), ignore_errors=True)
        shutil.rmtree(self.reference() / self.stem(), ignore_errors=True)

    def stem(self):
        return f"conformance-{self.name}-{os.getpid()}"

    def reference(self):
        return pathlib.Path(self.args.reference)

    def directory(self, name="", base=None):
        """A fresh directory on the mount (or on base)."""
        path = (base or self.mount) / self.stem() / name
        if name and path.exists():
            shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True, exist_ok=True)
        os.chmod(path.parent if name else path, 0o777)
        os.chmod(path, 0o777)
        return path

    def on_second(self, path):
        """The same path seen through the second mount, or through the first where there is none."""
        return (self.mount2 or self.mount) / path.relative_to(self.mount)

    def left(self, most=None):
        """Seconds until the suite's time is over, at least 1, at most the given."""
        remaining = max(1.0, self.deadline - time.monotonic())
        return remaining if most is None else min(most, remaining)

    def over(self):
        return time.monotonic() >= self.deadline

    def wanted(self, case):
        return not self.args.only or re.search(self.args.only, case) is not None

    def log(self, part=""):
        return self.logs / f"{self.name}{'-' + part if part else ''}.log"

    def run(self, command, timeout=None, part="", **keywords):
        return run(command, log=self.log(part), timeout=self.left(timeout), **keywords)

    def path_of(self, name):
        """Where a suite from outside was built, or None."""
        value = getattr(self.args, name)
        return pathlib.Path(value).resolve() if value else None


def missing(name, what):
    """The outcome of a suite that can't run here."""
    outcome = Outcome(name)
    outcome.skip(name, what)
    return outcome


def version_of(program, pattern=r"(\d[\w.]*)"):
    """The version that a program states, or an empty string."""
    if not shutil.which(str(program)):
        return ""
    found = re.search(pattern, run([program, "--version"], timeout=10).output)
    return found.group(1) if found else ""


def revision(path):
    """The commit of a checked-out suite, shortened."""
    result = run(["git", "-C", path, "rev-parse", "--short=12", "HEAD"], timeout=10)
    return result.output.strip() if result.ok() else ""
