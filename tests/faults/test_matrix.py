"""A seeded part of the fault matrix, and two seeded bugs that it must find; ``make faults`` runs all of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenantry.testing.hunt import hunt
from tenantry.testing.matrix import run_matrix
from tenantry.testing.workload import load_workload

WORKLOADS = Path(__file__).parent / "workloads"
FUNCTIONS = sorted(path.stem.replace("_", "-") for path in WORKLOADS.glob("*.py"))
QUICK = ["register", "move", "leave", "drift-chart", "drift-immutable", "bad-id"]
SEED, SAMPLE = 1, 30

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_workload_is_short(function: str) -> None:
    """Adding a function to the matrix takes one file of under 60 lines."""
    assert len((WORKLOADS / f"{function.replace('-', '_')}.py").read_text().splitlines()) < 60


@pytest.mark.parametrize("function", FUNCTIONS)
async def test_a_sample_of_the_matrix_holds(function: str) -> None:
    """Whatever disturbs a function, one sweep later the cluster is as declared, and stays so without a write."""
    workload = load_workload(function, WORKLOADS)
    scenarios = [name for name in workload.scenarios if name in QUICK] or list(workload.scenarios)
    report = await run_matrix(workload, seed=SEED, sample=SAMPLE, scenarios=scenarios)
    assert report.ok, report.text()
    assert len(report.results) == SAMPLE
    assert sum(result.reached for result in report.results) > SAMPLE * 0.8, report.text()


@pytest.mark.parametrize("bug", ["drop-the-trailing-run", "write-on-every-run"])
async def test_the_matrix_finds_a_seeded_bug(bug: str) -> None:
    """The kit finds a bug that was planted in the function's process."""
    workload = load_workload("namespace-registration", WORKLOADS)
    catch = await hunt(workload, bug, seed=SEED, sample=40, scenarios=["register", "move", "leave"])
    assert catch.by, catch.report.summary()
