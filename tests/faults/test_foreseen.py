"""What `tenantry plan` foresees is what then happens: over the scenarios of the fault workloads, step by step."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from foreseeing import compare

from tenantry.testing.arena import Arena
from tenantry.testing.workload import load_workload, workload_names

WORKLOADS = Path(__file__).parent / "workloads"
NAMES = workload_names(WORKLOADS)

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("name", NAMES)
async def test_what_is_foreseen_happens(name: str, fault_arena: Callable[..., Awaitable[Arena]]) -> None:
    """The writes that a plan names before a step are those that functions make after it, and leave what it foresaw."""
    workload = load_workload(name, WORKLOADS)
    arena = await fault_arena(workload)
    lines, explained = [], []
    for scenario in workload.scenarios.values():
        try:
            for each in await compare(arena, scenario):
                lines += each.differences
                explained += each.explained
        except Exception as error:
            lines.append(f"{scenario.name}: {type(error).__name__}: {error}")
            if os.environ.get("RAISE"):
                raise
    if path := os.environ.get("FORESEEN_OUT"):
        Path(path, f"{name}.txt").write_text("\n".join([*lines, "-- explained", *explained]) + "\n")
    assert not lines, "\n".join(lines)
