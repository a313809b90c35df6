"""``python -m tenantry.testing.matrix FUNCTION``: every perturbation of every scenario of a function's workload, judged.

The undisturbed runs are learned first; the plans follow from them.  Plans that take long together, the rest mixed by the seed.
Exit code 1 when anything did not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from tenantry.local.control_plane import Lines, ensure_binaries
from tenantry.testing.arena import SETTLE_S, Arena
from tenantry.testing.catalogue import plans_for
from tenantry.testing.planes import ControlPlanes
from tenantry.testing.report import Report
from tenantry.testing.runner import Learned, Plan, acclimatise, learn, perform, rounds_of
from tenantry.testing.workload import NoWorkload, Workload, load_workload

ROUND = 40
LONG_S = 4.0
LINE_EVERY_S = 20.0
Say = Callable[[int, int, int], None]
Tell = Callable[[str], None]


async def run_matrix(
    workload: Workload,
    *,
    seed: int = 1,
    sample: int = 0,
    replay: str = "",
    apart: bool = False,
    only: Callable[[Plan], bool] = lambda _: True,
    scenarios: Sequence[str] = (),
    bug: str = "",
    say: Say = lambda *_: None,
    tell: Tell = lambda _: None,
    stop_at_failure: bool = False,
    settle_s: float = SETTLE_S,
    planes: ControlPlanes | None = None,
) -> Report:
    """Learn, plan, perform and judge.

    Args:
        sample: perform only so many plans, chosen by the seed, spread over the perturbations; 0: all.
        replay: perform only the plan with this id.
        apart: plan each answer that passes by itself, too.
        only: further choice.
        scenarios: keep to these; default: all of the workload.
        bug: a seeded mutation to run with.
        say: told about progress: plans done, plans in all, failures.
        tell: told each failure as soon as it is known.
        stop_at_failure: end after the first round with a failure.
        settle_s: how long it may take until nothing goes on any more.
        planes: where control planes come from; default: a new one for each arena.
    """
    began = time.monotonic()
    names = list(scenarios) or list(workload.scenarios)
    if replay:
        names = [replay.partition("/")[0]]
    report: Report | None = None
    waiting: list[list[Plan]] = []
    while report is None or waiting:
        with tempfile.TemporaryDirectory(prefix="tenantry-") as folder:
            async with Arena(workload, Path(folder), bug=bug, settle_s=settle_s, planes=planes) as arena:
                if report is None:
                    learned = await learn(arena, names)
                    found = [plan for plan in plans_for(workload, learned.references, apart=apart) if only(plan)]
                    plans = _chosen(found, seed, sample, replay)
                    report = Report(workload.name or workload.function, seed, len(found), learned)
                    waiting = _rounds(workload, plans, learned, seed)
                    say(0, len(plans), len(learned.failures))
                    if stop_at_failure and learned.failures:
                        waiting.clear()
                else:
                    await acclimatise(arena, report.learned, names[0])
                while waiting and arena.size < workload.largest:
                    performed = await perform(arena, waiting.pop(0), report.learned, seed)
                    report.results += performed
                    for result in performed:
                        if result.failures:
                            tell(report.told(result))
                    say(len(report.results), len(plans), len(report.failed))
                    if stop_at_failure and not report.ok:
                        waiting.clear()
                report.processes += arena.pool.started
    report.seconds = time.monotonic() - began
    return report


def _chosen(plans: list[Plan], seed: int, sample: int, replay: str) -> list[Plan]:
    if replay:
        found = [plan for plan in plans if plan.id == replay]
        if not found:
            near = ", ".join(plan.id for plan in plans[:5])
            raise SystemExit(f"no plan {replay!r} follows from the undisturbed run; there are, for example: {near}")
        return found
    if not sample or sample >= len(plans):
        return plans
    chance = random.Random(seed)  # noqa: S311 (reproducible on purpose)
    by_name: dict[str, list[Plan]] = {}
    for plan in chance.sample(plans, len(plans)):
        by_name.setdefault(plan.perturbation.name, []).append(plan)
    chosen: list[Plan] = []
    while len(chosen) < sample:
        for name in sorted(by_name):
            if by_name[name] and len(chosen) < sample:
                chosen.append(by_name[name].pop())
    return chosen


def _rounds(workload: Workload, plans: list[Plan], learned: Learned, seed: int) -> list[list[Plan]]:
    """Rounds of plans: those of long scenarios together, so that nobody else waits for them."""
    chance = random.Random(seed)  # noqa: S311 (reproducible on purpose)

    def is_long(plan: Plan) -> bool:
        return learned.references[plan.scenario].evidence[0].seconds > LONG_S

    made: list[list[Plan]] = []
    for long in (False, True):
        some = chance.sample(found := [plan for plan in plans if is_long(plan) is long], len(found))
        made += rounds_of(workload, some, ROUND)
    return made


def progress() -> Say:
    """Tell on standard error: a live line on a terminal, else a line every 20 s."""
    began, last = time.monotonic(), 0.0

    def say(done: int, total: int, failures: int) -> None:
        nonlocal last
        now = time.monotonic()
        line = f"{done}/{total} plans, {failures} failures, {now - began:.0f} s"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{line} " + ("\n" if done == total else ""))
        elif now - last >= LINE_EVERY_S or done == total:
            last = now
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    return say


def _part(text: str) -> tuple[int, int]:
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is no part such as 1/2")
    return int(number), int(parts)


def _is_in(plan: Plan, number: int, parts: int) -> bool:
    return zlib.crc32(plan.id.encode()) % parts == number - 1


def _commit() -> str:
    """The commit that is tried, short, with a plus where its code is not as committed; empty where there is none."""
    program = shutil.which("git")
    if program is None:
        return ""

    def git(*words: str) -> str:
        return subprocess.run([program, *words], capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--", "functions", "shared", "knative", "triggers", "tests/faults")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def _write(stream: TextIO, text: str) -> None:
    stream.write(f"{text}\n")
    stream.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tenantry.testing.matrix", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("function", help="such as namespace-registration")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="only N plans, chosen by the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", default="", metavar="ID", help="only the plan with this id")
    parser.add_argument(
        "--apart", action="store_true", help="plan answers that pass (429, 500, 503, reset, slow) one by one, too"
    )
    parser.add_argument("--perturbation", default="", help="only perturbations whose name contains this")
    parser.add_argument(
        "--part", type=_part, default=(1, 1), metavar="K/N", help="only this part of N: parts may be run beside one another"
    )
    parser.add_argument("--bug", default="", help="run with a seeded mutation (tenantry.testing.seeded)")
    parser.add_argument("--workloads", type=Path, default=Path("tests/faults/workloads"), help="folder of workload files")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    given = parser.parse_args(arguments)
    try:
        workload = load_workload(given.function, given.workloads)
    except NoWorkload as error:
        parser.error(str(error))
    ensure_binaries(Lines())
    report = asyncio.run(
        run_matrix(
            workload,
            seed=given.seed,
            sample=given.sample,
            replay=given.replay,
            apart=given.apart,
            bug=given.bug,
            only=lambda plan: given.perturbation in plan.perturbation.name and _is_in(plan, *given.part),
            say=progress(),
            tell=lambda text: _write(sys.stderr, text),
        )
    )
    report.commit = _commit()
    if given.markdown is not None:
        given.markdown.write_text(report.markdown())
    _write(sys.stdout, report.text())
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
