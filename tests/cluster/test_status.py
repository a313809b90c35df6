"""``tenantry status`` and ``tenantry tree`` over a cluster with something of everything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest_asyncio
from commanding import Command, commanding
from people import C1
from standing import World

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(knative: Callable[..., Awaitable[Knative]], admin: Api) -> World:
    made = World(admin, await knative(C1))
    await made.make()
    return made


async def test_explore(world: World, control_plane: ControlPlane, admin: Api) -> None:
    """Look."""
    import time

    from tenantry.model.paas.names import PAAS

    command: Command = commanding(control_plane)
    out = Path("/tmp/b/h-status.out")
    out.mkdir(exist_ok=True)
    import yaml

    (out / "paas.yaml").write_text(yaml.safe_dump(await admin.get(PAAS, world.paas)))
    for name, args in {
        "status": ("status",),
        "tree": ("tree",),
        "statusjson": ("status", "-o", "yaml"),
        "project": ("tree", f"project/{world.good}"),
        "treejson": ("tree", "-o", "json"),
        "none": ("tree", "project/x"),
        "bad": ("tree", "x"),
        "help": ("--help",),
    }.items():
        at = time.monotonic()
        code, text, errors = await command(*args)
        (out / name).write_text(f"{code} {time.monotonic() - at:.2f}s\n{text}\n--\n{errors}")
