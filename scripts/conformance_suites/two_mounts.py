"""This project's own tests of consistency between two mounts."""

import re

from .common import Outcome, TOP, missing


def two_mounts(context):
    """Every tests/fs/two_mounts* program, with as many rounds as the options ask for."""
    if not context.mount2:
        return missing("two_mounts", "there is no second mount")
    folder = TOP / "build" / context.args.preset / "tests"
    programs = sorted(p for p in folder.glob("fs_two_mounts*") if p.is_file())
    if not programs:
        return missing("two_mounts", f"no programs in {folder}")
    rounds = 200 if context.args.quick else 5000
    outcome = Outcome("two_mounts", "", f"fs_two_mounts_* MOUNT MOUNT2 --rounds {rounds}")
    for program in programs:
        if not context.wanted(program.name):
            continue
        if context.over():
            outcome.skip(program.name, "the suite's time was over")
            continue
        command = [program, context.mount, context.mount2, "--rounds", rounds, "--seconds", 300]
        result = context.run(command, part=program.name)
        scenarios = re.findall(r"^(ok|FAILED|skipped)\s+(\S+)(.*)$", result.output, re.MULTILINE)
        for verdict, scenario, rest in scenarios:
            case = f"{program.name} {scenario}"
            if verdict == "ok":
                outcome.good()
                outcome.note(f"{case}: {rest.strip()}")
            elif verdict == "skipped":
                outcome.skip(case, rest.strip())
            else:
                outcome.fail(case, rest.strip())
        if result.code is None and context.over():
            outcome.skip(program.name, "the suite's time was over while it ran")
        elif not result.ok() and not any(v == "FAILED" for v, _, _ in scenarios):
            outcome.fail(program.name, result.why())
    return outcome


SUITES = {"two_mounts": two_mounts}
