"""``python -m tenantry.testing.hunt FUNCTION [BUG ...]``: does the matrix find the bugs that are planted?

Each bug gets a small part of the matrix, spread over all perturbations by the seed, or the part that it is for (`AIMS`); the
first round in which something does not hold ends its hunt.  Exit code 1 when a bug was not found.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tenantry.local.control_plane import Lines, ensure_binaries
from tenantry.testing.matrix import run_matrix
from tenantry.testing.planes import ControlPlanes
from tenantry.testing.report import Report
from tenantry.testing.seeded import BUGS, bugs_of
from tenantry.testing.workload import Workload, load_workload

SAMPLE = 120
SETTLE_S = 25.0
AIMS = {"write-the-index-blindly": ("another replica", "update accessindices ")}
"""Bugs that show where one sort of request is disturbed in one way: of that a part spread over the matrix has too little.
They are looked for by these words of a perturbation's name and of a target."""


@dataclass(frozen=True, slots=True)
class Catch:
    """What became of the hunt for one bug; ``by`` is the first thing that did not hold, empty when all did."""

    bug: str
    by: str
    report: Report


async def hunt(
    workload: Workload,
    bug: str,
    *,
    seed: int = 1,
    sample: int = SAMPLE,
    scenarios: Sequence[str] = (),
    planes: ControlPlanes | None = None,
) -> Catch:
    """Look for one planted bug."""
    perturbation, target = AIMS.get(bug, ("", ""))
    report = await run_matrix(
        workload,
        seed=seed,
        sample=sample,
        only=lambda plan: perturbation in plan.perturbation.name and target in plan.target,
        scenarios=scenarios,
        bug=bug,
        stop_at_failure=True,
        settle_s=SETTLE_S,
        planes=planes,
    )
    by = ""
    if report.learned.failures:
        scenario, failure = report.learned.failures[0]
        by = f"undisturbed {scenario}: {failure}"
    elif report.failed:
        by = f"{report.failed[0].plan.id}: {report.failed[0].failures[0]}"
    return Catch(bug, by, report)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tenantry.testing.hunt", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("function")
    parser.add_argument("bugs", nargs="*", metavar="BUG", help=f"default: all that the function can have ({', '.join(BUGS)})")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=SAMPLE)
    parser.add_argument("--workloads", type=Path, default=Path("tests/faults/workloads"))
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    given = parser.parse_args(arguments)
    ensure_binaries(Lines())
    catches = []
    workload = load_workload(given.function, given.workloads)
    for name in given.bugs or bugs_of(workload.function, workload.name):
        catches.append(asyncio.run(hunt(workload, name, seed=given.seed, sample=given.sample)))
        last = catches[-1]
        sys.stdout.write(f"{'found ' if last.by else 'MISSED'} {name} ({last.report.seconds:.0f} s) {last.by}\n")
        sys.stdout.flush()
    found = sum(bool(each.by) for each in catches)
    sys.stdout.write(f"found {found} of {len(catches)} seeded bugs\n")
    if given.markdown is not None:
        given.markdown.write_text(table(given.function, catches, given.seed))
    return 0 if found == len(catches) else 1


def table(function: str, catches: Sequence[Catch], seed: int) -> str:
    """The catches as Markdown."""
    found = sum(bool(each.by) for each in catches)
    lines = [
        f"# Seeded bugs in {function}: {found} of {len(catches)} found (seed {seed})",
        "",
        "| Bug | What it does | Found by |",
        "|---|---|---|",
    ]
    for each in catches:
        what = (BUGS[each.bug].__doc__ or "").strip()
        lines.append(f"| {each.bug} | {what} | {each.by.replace('|', '/') or '**not found**'} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
