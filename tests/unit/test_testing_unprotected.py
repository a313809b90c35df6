"""Functions without one of their protections, for the tests that must fail then."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tenantry.local.jobs import JobRunner
from tenantry.local.processes import FunctionProcess
from tenantry.testing import plugin, unprotected
from tenantry.testing.plugin import WITHOUT
from tenantry.testing.unprotected import AROUND, BOUNDLESS, PROTECTIONS, concerned

LIFTED = f"""
from tenantry.testing.unprotected import take_away
take_away()
from tenantry.model import limits
assert limits.VALUES_BYTES == limits.PAGE_BYTES == {BOUNDLESS}
assert limits.MIB == 2**20 and limits.NOTE_BYTES == 1024
from tenantry.engine import write
assert write.limits.WRITES_AT_ONCE == {BOUNDLESS}
assert sum(value == {BOUNDLESS} for value in vars(limits).values()) > 40
"""


def run(program: str, without: str) -> str:
    """What a process complains of that leaves this out."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, WITHOUT: without},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stderr


def test_all_limits_are_lifted_but_those_of_the_api_server() -> None:
    """In the process that asks for it, and in no other."""
    assert run(LIFTED, "budgets") == run(LIFTED, "all") == ""


def test_every_protection_can_be_taken_away() -> None:
    """Each names what there is in the code: a name that is gone is found here, not by an attack that goes on to fail."""
    program = "from tenantry.testing.unprotected import take_away\ntake_away()\nimport tenantry.cli"
    assert run(program, ",".join(PROTECTIONS)) == ""


def test_whoever_leaves_protections_out_runs_functions_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """``TENANTRY_WITHOUT`` with the name of one; ``all`` takes the budgets, policies alone leave functions as they are."""
    token = JobRunner._token
    monkeypatch.setattr(JobRunner, "_token", token)
    for text, program in (
        ("tenantry-guard-records", "tenantry.cli"),
        ("first-come", unprotected.__name__),
        ("all", unprotected.__name__),
    ):
        monkeypatch.setattr(FunctionProcess, "program", "tenantry.cli")
        monkeypatch.setenv(WITHOUT, text)
        plugin.pytest_configure()
        assert FunctionProcess.program == program
        assert JobRunner._token is token
    monkeypatch.setenv(WITHOUT, "rights-of-jobs")
    plugin.pytest_configure()
    assert JobRunner._token is not token


def test_all_means_the_budgets_and_no_other_protection() -> None:
    """Others are taken away one by one: two together could hide one another."""
    assert concerned({"all"}) == ["budgets"]
    assert concerned({"first-come", "one-storage", "x"}) == ["first-come", "one-storage"]
    assert not PROTECTIONS.keys() & AROUND.keys()
