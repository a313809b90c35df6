"""Functions without their budgets, for the tests that must fail then."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tenantry.local.processes import FunctionProcess
from tenantry.testing import plugin
from tenantry.testing.unbounded import BOUNDLESS

UNBOUNDED = "tenantry.testing.unbounded"

PROGRAM = f"""
from tenantry.model import limits
from tenantry.testing.unbounded import lift
lifted = lift()
assert limits.VALUES_BYTES == limits.PAGE_BYTES == {BOUNDLESS}
assert limits.MIB == 2**20 and limits.NOTE_BYTES == 1024
from tenantry.engine import write
assert write.limits.WRITES_AT_ONCE == {BOUNDLESS}
print(len(lifted))
"""


def test_all_limits_are_lifted_but_those_of_the_api_server() -> None:
    """In the process that asks for it, and in no other."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 40


def test_whoever_leaves_budgets_out_runs_functions_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """``TENANTRY_WITHOUT`` with ``budgets`` or ``all``; policies alone leave them as they are."""
    for text, program in (("tenantry-guard-records", "tenantry.cli"), ("budgets", UNBOUNDED), ("all", UNBOUNDED)):
        monkeypatch.setattr(FunctionProcess, "program", "tenantry.cli")
        monkeypatch.setenv(plugin.WITHOUT, text)
        plugin.pytest_configure()
        assert FunctionProcess.program == program
