"""Figures of Flux tenancy: milliseconds of requests, and what a test says where one is over its target."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from statistics import median
from typing import Any

import psutil
from admitting import Answer
from flux_policing import Policing
from times import POLICY_S, SIDE_BY_SIDE

from tenantry.model.flux.policies import GENERATED
from tenantry.model.flux.policies.parts import LABELS
from tenantry.model.kinds import Object
from tenantry.testing import eventually

MINE = ",".join(f"{key}={value}" for key, value in LABELS.items())
BINDINGS = [each for each in GENERATED if each.kind.endswith("Binding")]


_LOOK_S, _AT_REST_PERCENT, _PATIENCE_S = 0.5, 10.0, 20.0


async def idle_machine() -> None:
    """Wait till the machine does little else: policies that were just made are compiled and checked for seconds.

    Where tests run side by side it never does: then for as long as that takes at most.
    """
    give_up_at = time.monotonic() + _PATIENCE_S
    psutil.cpu_percent()  # each call tells of the time since the one before
    while time.monotonic() < give_up_at:
        await asyncio.sleep(_LOOK_S)
        if psutil.cpu_percent() <= _AT_REST_PERCENT:
            return


def p99(values: Sequence[float]) -> float:
    """The value that one of a hundred is over."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(0.99 * (len(ordered) - 1)))]


def within(what: str, value: float, target: float, values: Sequence[float]) -> None:
    """A figure keeps to its target, which is for an idle machine: as many times longer as there are tests side by side."""
    of = f"p50 {median(values):.2f}, p99 {p99(values):.2f} of {len(values)}"
    print(f"{what}: {value:.2f}, target {target} ({of})")
    assert value <= target * SIDE_BY_SIDE, f"{what}: {value:.2f}, more than {target} ({of})"


async def timed(ask: Callable[[], Awaitable[Answer]], status: int) -> float:
    """The milliseconds of a request, which has to be answered so."""
    began = time.perf_counter()
    answer = await ask()
    spent = (time.perf_counter() - began) * 1000
    assert answer.status == status, answer
    return spent


@asynccontextmanager
async def unbound(policing: Policing, refused: Callable[[], Awaitable[Answer]]) -> AsyncIterator[None]:
    """Without any binding of ours; ``refused`` is a request that policies refuse, by which both ends are known."""
    kept: list[tuple[Any, Object]] = [
        (kind, each) for kind in BINDINGS for each in (await policing.admin.list(kind, label_selector=MINE)).items
    ]
    assert kept

    async def is_refused() -> bool:
        return (await refused()).status == 403

    for kind, each in kept:
        await policing.admin.delete(kind, each["metadata"]["name"])
    await eventually(is_refused, lambda found: not found, within=POLICY_S, what="no policy in force")
    try:
        yield
    finally:
        for kind, each in kept:
            metadata = {part: each["metadata"][part] for part in ("name", "labels")}
            await policing.admin.create(kind, {**each, "metadata": metadata})
        await eventually(is_refused, within=POLICY_S, what="policies in force")
