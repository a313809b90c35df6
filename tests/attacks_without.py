"""Runs the tests that name an admission policy with that policy switched off: each must fail, or it shows nothing.

    python tests/attacks_without.py NAME [arguments of pytest]   NAME: a policy, a protection of functions, all or each

``all`` switches off all policies and budgets together, ``each`` the protections of functions, one after the other.  A test names
what it fails without: ``@pytest.mark.check("a-33", without="tenantry-guard-projects")``.  Only a test
that fails itself counts; one that is expected to fail anyhow shows nothing, nor does one whose fixtures fail: it runs again by
itself, since what an attack before it has broken stays broken.  Tests that are skipped, as those of full size are without
``TENANTRY_FULL_SIZE=1``, are counted and not judged.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection

import pytest

from attacks_table import BUDGETS, policies, protections, without
from checks_table import ROOT

ALL, EACH = "all", "each"
FAILED, PASSED, SKIPPED, EXPECTED = "failed", "passed", "skipped", "is expected to fail anyhow"
NOT_RUN = "did not run"


class Judge:
    """A pytest plugin: keeps the tests that name the policy, and notes how each ends."""

    def __init__(self, policy: str) -> None:
        self.policy = policy
        self.ended: dict[str, str] = {}
        self.skipped: set[str] = set()

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        concerned = [item for item in items if self.concerns(item)]
        kept = [item for item in concerned if item.get_closest_marker("xfail") is None]
        self.ended |= {item.nodeid: EXPECTED for item in concerned if item not in kept}
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept

    def concerns(self, item: pytest.Item) -> bool:
        """Whether a test says that it fails without the policy."""
        named = {name for mark in item.iter_markers("check") for name in without(mark)}
        return bool(named - apart()) if self.policy == ALL else self.policy in named

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.note(report.nodeid, report.when or "", report.outcome)

    def note(self, test: str, when: str, outcome: str) -> None:
        """How a phase of a test ended."""
        if outcome == SKIPPED:
            self.skipped.add(test)
        elif when == "call":
            self.ended[test] = outcome
        elif outcome != PASSED and test not in self.ended and test not in self.skipped:
            self.ended[test] = f"{NOT_RUN}: {outcome} at {when}"

    def not_run(self) -> list[str]:
        """The tests whose fixtures failed, where others ran before them."""
        return [test for test, how in self.ended.items() if how.startswith(NOT_RUN)] if len(self.ended) > 1 else []

    def findings(self) -> list[str]:
        """What speaks against the tests, a line for each; empty when each of them failed."""
        if not self.ended:
            return [f"no test names {self.policy}"]
        return [f"{test}: {how}, though it must fail" for test, how in sorted(self.ended.items()) if how != FAILED]


def apart() -> set[str]:
    """What is taken away one by one."""
    return protections().keys() - {BUDGETS}


def usage(arguments: Collection[str], known: Collection[str]) -> str:
    """What is wrong with the arguments; else empty."""
    name = next(iter(arguments), "")
    if name and name in {ALL, EACH, *known}:
        return ""
    return f"no policy {name or 'is named'}; there are {', '.join(sorted(known))}, {ALL} and {EACH}"


def main(arguments: list[str]) -> int:
    """Run the tests and judge; 0 when each failed."""
    if wrong := usage(arguments, policies() | protections().keys()):
        print(wrong, file=sys.stderr)
        return 2
    policy, *more = arguments
    if policy == EACH:  # a process each: what is taken away stays away
        return max(subprocess.run([sys.executable, __file__, name, *more], check=False).returncode for name in sorted(apart()))
    os.environ["TENANTRY_WITHOUT"] = policy
    os.chdir(ROOT)
    judge = Judge(policy)
    code = pytest.main(["-q", "--tb=line", "-m", "check", "-p", "no:cacheprovider", *more], plugins=[judge])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        return int(code)
    for test in judge.not_run():
        if subprocess.run([sys.executable, __file__, policy, test], check=False).returncode == 0:
            judge.ended[test] = FAILED
    findings = judge.findings()
    print(
        f"\nwithout {policy}: {sum(how == FAILED for how in judge.ended.values())} of {len(judge.ended)} tests fail, as they must"
    )
    if judge.skipped:
        print(f"{len(judge.skipped)} more were skipped (-rs says why; TENANTRY_FULL_SIZE=1 runs those that take long)")
    for line in findings:
        print(line)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
