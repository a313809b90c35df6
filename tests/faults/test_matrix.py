"""A seeded part of the fault matrix, and two seeded bugs that it must find; ``make faults`` runs all of both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from times import LEFT_TO_MAKE_WHOLE

from tenantry.testing.arena import Arena
from tenantry.testing.hunt import hunt
from tenantry.testing.planes import ControlPlanes
from tenantry.testing.player import Drop
from tenantry.testing.report import Report
from tenantry.testing.workload import load_workload, workload_names

WORKLOADS = Path(__file__).parent / "workloads"
NAMES = workload_names(WORKLOADS)
IN_EACH_RUN = (
    "namespace-registration",
    "release-provisioning",
    "rbac-aggregation",
    "scope-binding",
    "lock-enforcement",
    "namespace-registration-paas",
)
"""One of each function, and one of Paas."""
FURTHER = (
    "-upkeep",
    "-operators",
    "-drift",
    "-consents",
    "-repairs",
    "-members",
    "-leaving",
    "-refusals",
    "-withdrawals",
    "-switches",
    "-templates",
    "-injection",
    "helm-rights",
    "-paas-mappings",
    "rbac-aggregation-tenants",
    "release-provisioning-tenants",
)


def _marks(name: str) -> list[pytest.MarkDecorator]:
    of_paas = [pytest.mark.check("p-181")] if "-paas" in name else []
    return of_paas if name in IN_EACH_RUN else [*of_paas, LEFT_TO_MAKE_WHOLE]


SAMPLED = [pytest.param(name, marks=_marks(name)) for name in NAMES if not name.endswith(FURTHER)]
"""One of each unit; further stories of it are left to `make faults`."""
QUICK = [
    "register",
    "move",
    "leave",
    "drift-chart",
    "drift-immutable",
    "bad-id",
    "come",
    "rights",
    "begin",
    "hand-over",
    "delete",
    "revoke",
    "own-suspension",
]
SEED = 1

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_is_short(name: str) -> None:
    """Adding a function to the matrix takes one file of under 60 lines."""
    workload = load_workload(name, WORKLOADS)
    assert workload.name == name
    assert workload.scenarios
    assert len((WORKLOADS / f"{name.replace('-', '_')}.py").read_text().splitlines()) < 60


@pytest.mark.parametrize("function", SAMPLED)
async def test_a_sample_of_the_matrix_holds(function: str, fault_matrix: Callable[..., Awaitable[Report]]) -> None:
    """Whatever disturbs a function, one sweep later the cluster is as declared, and stays so without a write."""
    workload = load_workload(function, WORKLOADS)
    scenarios = [name for name in workload.scenarios if name in QUICK] or list(workload.scenarios)[:1]
    sample = 6 if len(scenarios) > 2 else 4
    report = await fault_matrix(workload, seed=SEED, sample=sample, scenarios=scenarios)
    assert report.ok, report.text()
    assert len(report.results) == sample
    assert sum(result.reached for result in report.results) > sample * 0.7, report.text()


@pytest.mark.one_variant("bug")
@pytest.mark.parametrize("bug", ["drop-the-trailing-run", "write-on-every-run"])
async def test_the_matrix_finds_a_seeded_bug(bug: str, arena_planes: ControlPlanes) -> None:
    """The kit finds a bug that was planted in the function's process."""
    workload = load_workload("namespace-registration", WORKLOADS)
    catch = await hunt(workload, bug, seed=SEED, sample=24, scenarios=["register", "move", "leave"], planes=arena_planes)
    assert catch.by, catch.report.summary()


async def test_the_arena_is_for_tests_of_ones_own(fault_arena: Callable[..., Awaitable[Arena]]) -> None:
    """An event that the player loses comes to nothing, and a sweep makes up for it."""
    arena = await fault_arena(load_workload("namespace-registration", WORKLOADS))
    run, lane = await arena.open(arena.pool.shared[0])
    lane.disturb()
    lane.policy = Drop(lambda _: True)
    await run.apply("Namespace", "a-@", labels={"field.cattle.io/projectId": "p-@"})
    await arena.announced(run.tag)
    await arena.settle(run.tag)
    assert [key.name for key in arena.world.of(run.tag) if key.kind == "Namespace"] == [run.named("a-@")]

    assert await arena.sweep() == [204]
    await arena.settle(run.tag)
    assert run.named("cattle-project-p-@") in [key.name for key in arena.world.of(run.tag)]
