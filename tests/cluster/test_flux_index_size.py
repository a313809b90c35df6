"""The AccessIndex at its limits: what is stored, and that the API server takes it (f-88, without its times)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest
import pytest_asyncio
from times import LEFT_TO_MAKE_WHOLE

from scope_binding.sources.plan import MANAGER, plan_index
from scope_binding.sources.seen import IndexSeen, entry_size
from tenantry.api import Api
from tenantry.engine.write import Writer
from tenantry.model import limits
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT
from tenantry.model.kinds import Object

pytestmark = LEFT_TO_MAKE_WHOLE

WRITES = 10


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def function(identity: Callable[..., Awaitable[Path]]) -> Path:
    """The kubeconfig of the function's own identity: its rights and its fence are in force."""
    return await identity("scope-binding-sources")


def grants(number: int, text: str) -> dict[str, str]:
    """So many sources of teams, shared with one selector each."""
    return {f"GitRepository/dev-team{at // 20:03}/app{at:05}": text for at in range(number)}


async def write(api: Api, read: Mapping[str, str], writable: Mapping[str, str]) -> Object:
    """Write the index as the function does; returns it as it is stored."""
    entries = AccessEntries(read, writable, {}, ("team",), complete=True)
    live = await api.get(ACCESS_INDEX, DEFAULT)
    outcome = await Writer(api, "scope-binding").write(plan_index(IndexSeen(live, entries, frozenset({"GitRepository"}), 10_000)))
    assert (outcome.writes, outcome.refusals, outcome.transient) == (1, [], None)
    stored = await api.get(ACCESS_INDEX, DEFAULT)
    assert stored is not None
    assert AccessEntries.of(stored) == entries
    return stored


@pytest.mark.parametrize(("number", "most_kib"), [(1_000, 64), (10_000, 640)])
async def test_what_is_stored_is_small(function: Path, number: int, most_kib: int) -> None:
    """At one selector for each grant, managed fields included; written again and again it does not grow."""
    async with await Api.connect(field_manager=MANAGER, kubeconfig=function) as api:
        for turn in range(WRITES):
            stored = await write(api, grants(number, f"team=t{turn}wo"), {})
    size = len(json.dumps(stored, separators=(",", ":")))
    assert size <= most_kib * limits.KIB, size


async def test_as_much_as_the_budget_allows_is_taken(function: Path) -> None:
    """10,000 grants for both classes, as long as all of it may be, and again from there to nothing."""
    text = "team=two|team=three"
    read = {f"Bucket/t{at // 20:03}/a{at:07}": text for at in range(10_000)}
    used = 2 * sum(entry_size(name, text) for name in read)
    assert limits.INDEX_BYTES * 0.9 < used <= limits.INDEX_BYTES
    async with await Api.connect(field_manager=MANAGER, kubeconfig=function) as api:
        await write(api, read, read)
        await write(api, {"GitRepository/a/b": "*"}, {})
