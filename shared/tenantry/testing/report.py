"""What the matrix found, as a table, and every failure with the command that plays it again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from tenantry.testing.catalogue import ALL, PASSING
from tenantry.testing.runner import Learned, Result

_ORDER = {perturbation.name: number for number, perturbation in enumerate([*ALL, *PASSING])}


@dataclass(slots=True)
class Report:
    """Everything that one matrix of one function, or part of it, did."""

    workload: str
    seed: int
    planned: int
    learned: Learned
    results: list[Result] = field(default_factory=list)
    seconds: float = 0.0
    processes: int = 0
    commit: str = ""
    """What was tried, where it is known."""

    @property
    def failed(self) -> list[Result]:
        """The plans that something did not hold for."""
        return [result for result in self.results if result.failures]

    @property
    def ok(self) -> bool:
        """Whether everything held, in the undisturbed runs too."""
        return not self.failed and not self.learned.failures

    def replay(self, result: Result) -> str:
        """The command that plays a plan again."""
        return f"python -m tenantry.testing.matrix {self.workload} --seed {self.seed} --replay {shlex.quote(result.plan.id)}"

    def told(self, result: Result) -> str:
        """One failure and the command that performs it again."""
        lines = [f"FAILED {result.plan.id} (seed {self.seed})", *(f"    {failure}" for failure in result.failures)]
        return "\n".join([*lines, f"    again: {self.replay(result)}"])

    def text(self) -> str:
        """The failures, for people at a terminal."""
        lines = [f"undisturbed {name}: {failure}" for name, failure in self.learned.failures]
        lines += [self.told(result) for result in self.failed]
        unmet = [result.plan.id for result in self.results if not result.reached]
        if unmet:
            lines.append(f"{len(unmet)} targets did not occur again, for example {', '.join(unmet[:3])}")
        lines.append(self.summary())
        return "\n".join(lines)

    def summary(self) -> str:
        """One line."""
        return (
            f"{self.workload}: {len(self.results)} of {self.planned} plans, {len(self.failed)} failures"
            f" (and {len(self.learned.failures)} undisturbed), seed {self.seed}, {self.seconds:.0f} s"
        )

    def markdown(self) -> str:
        """The table of docs/faults-<workload>.md."""
        groups: dict[str, list[Result]] = {}
        for result in sorted(self.results, key=lambda each: _ORDER[each.plan.perturbation.name]):
            groups.setdefault(result.plan.perturbation.name, []).append(result)
        lines = [
            f"# Faults: {self.workload}",
            "",
            f"Written by `python -m tenantry.testing.matrix {self.workload} --seed {self.seed}`; see [faults.md](faults.md).",
            "",
            "| Perturbation | Plans | Failures | Target met | As declared before the sweep | Seconds, mean |",
            "|---|---:|---:|---:|---:|---:|",
        ]
        lines += [_row(name, found) for name, found in groups.items()]
        lines += [
            _row("**all**", self.results),
            "",
            f"{len(self.learned.references)} scenarios: {', '.join(self.learned.references)}.",
            f"Undisturbed runs: 3 of each, {len(self.learned.failures)} failures (two on the same path, one on another).",
            f"Seed {self.seed}; {self.seconds:.0f} s in all, runs in parallel{f'; commit {self.commit}' if self.commit else ''}.",
            *([f"A sample of {len(self.results)} of {self.planned} plans."] if len(self.results) < self.planned else ()),
            f"{self.processes} processes were started for runs that kill theirs.",
            "",
            f"The mask that was learned: {self.learned.mask}.",
        ]
        if self.learned.failures or self.failed:
            lines += ["", "## Failures", ""]
            lines += [f"- undisturbed `{name}`: {failure}" for name, failure in self.learned.failures]
            for result in self.failed:
                lines.append(f"- `{result.plan.id}`: {'; '.join(map(str, result.failures[:2]))}")
        return "\n".join(lines) + "\n"


def _row(name: str, found: Sequence[Result]) -> str:
    failed, met = sum(bool(result.failures) for result in found), sum(result.reached for result in found)
    early = sum(result.healed_early for result in found)
    seconds = sum(result.seconds for result in found) / max(1, len(found))
    return f"| {name} | {len(found)} | {failed} | {met} | {early} | {seconds:.1f} |"
