"""What `tenantry plan` foresees is what then happens: over the scenarios of the fault workloads, step by step.

With ``FORESEEN`` the name of a folder the differences of each workload are written there, those that are explained, too.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from foreseeing import compare
from times import LEFT_TO_MAKE_WHOLE

from tenantry.testing.arena import Arena
from tenantry.testing.workload import load_workload, workload_names

WORKLOADS = Path(__file__).parent / "workloads"
SAMPLE = "namespace-registration"
OF_SAMPLE = ("register", "move")
FOLDER = os.environ.get("FORESEEN", "")

pytestmark = pytest.mark.timeout(600)


async def differences_of(name: str, arena: Arena, *only: str) -> list[str]:
    """What of a workload's scenarios, or of some, comes otherwise than foreseen and is not explained."""
    lines, explained = [], []
    for scenario in arena.workload.scenarios.values():
        if not only or scenario.name in only:
            for each in await compare(arena, scenario):
                lines += each.differences
                explained += each.explained
    if FOLDER:
        Path(FOLDER, f"{name}.txt").write_text("\n".join([*lines, "-- explained", *explained]) + "\n")
    return lines


async def test_a_sample_of_what_is_foreseen_happens(fault_arena: Callable[..., Awaitable[Arena]]) -> None:
    """The writes that a plan names before a step are those that functions make after it, and leave what it foresaw."""
    arena = await fault_arena(load_workload(SAMPLE, WORKLOADS))
    lines = await differences_of(SAMPLE, arena, *OF_SAMPLE)

    assert not lines, "\n".join(lines)


@LEFT_TO_MAKE_WHOLE
@pytest.mark.parametrize("name", workload_names(WORKLOADS))
async def test_what_is_foreseen_happens(name: str, fault_arena: Callable[..., Awaitable[Arena]]) -> None:
    """The same over every step of every scenario."""
    arena = await fault_arena(load_workload(name, WORKLOADS))
    lines = await differences_of(name, arena)

    assert not lines, "\n".join(lines)
