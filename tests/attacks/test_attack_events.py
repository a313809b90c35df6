"""Forged events of every kind and shape while a workload of the fault matrix runs: its end state and its writes stay the same.

The oracle of the matrix judges, as for a run that nothing disturbs: state, counts of creations, deletions and writes, safety at
every moment, and that a replay writes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from forgery import Forger, forging
from times import LEFT_TO_MAKE_WHOLE

from tenantry.model.kinds import Key, key_of
from tenantry.testing.arena import Arena
from tenantry.testing.perturbations import Perturbation
from tenantry.testing.runner import Plan, learn, perform
from tenantry.testing.workload import load_workload

WORKLOADS = Path(__file__).parents[1] / "faults" / "workloads"
SCENARIOS = {
    "namespace-registration": ["register", "leave", "drift-chart"],
    "release-provisioning": ["provision", "foreign"],
    "rbac-aggregation": [],
    "scope-binding": ["bind", "narrow"],
    "scope-binding-members": [],
    "lock-enforcement": [],
}
"""The scenarios of each workload; none named: its first two."""
ENOUGH = 100
"""Fewer forged events than this in a run would show little."""

pytestmark = [pytest.mark.timeout(300), LEFT_TO_MAKE_WHOLE]


@pytest.mark.check("a-24", without="live-reads")
@pytest.mark.parametrize("name", SCENARIOS)
async def test_forged_events_change_nothing(name: str, fault_arena: Callable[..., Awaitable[Arena]]) -> None:
    """Events about objects of the run and others, true, false and malformed, end as if nobody had sent them."""
    arena = await fault_arena(load_workload(name, WORKLOADS))
    scenarios = SCENARIOS[name] or list(arena.workload.scenarios)[:2]
    learned = await learn(arena, scenarios)
    assert not learned.failures, learned.failures

    def known() -> list[Key]:
        return [key_of(obj) for tag in arena.runs for obj in arena.world.every(tag)]

    urls = list(arena.pool.shared[0].urls.values())
    async with forging(urls, Forger(arena.workload.function, known, seed=1)) as statuses:
        results = await perform(arena, [Plan(each, Perturbation) for each in scenarios], learned, seed=1)

    assert [(result.plan.scenario, result.failures) for result in results if result.failures] == []
    assert not arena.foreign, [f"{each.verb} {each.path}" for each in arena.foreign]
    assert set(statuses) <= {204, 400, 409, 429, 503}, statuses
    assert sum(statuses.values()) > ENOUGH, statuses
    assert statuses[204] > ENOUGH / 4, statuses
