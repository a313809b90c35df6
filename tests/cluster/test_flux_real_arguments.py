"""Arguments that the real controllers of Flux do not take: they end before they ask for an API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from flux_controllers import MODULES, MULTI_TENANT, REAL_FLUX, Controller, exported

from tenantry.local.control_plane import Module

pytestmark = REAL_FLUX


async def ended(module: Module, folder: Path, *arguments: str) -> str:
    """What a controller says that ends by itself, and not well."""
    async with Controller(module, folder / "none", folder, arguments) as running:
        assert await running.ended() != 0
        return running.said()


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
async def test_workload_identity_needs_its_gate(module: Module, tmp_path: Path) -> None:
    """What ``--with=workload-identity`` exports is refused where the gate is off, as it is by default."""
    arguments = exported(module.name, MULTI_TENANT, "--with=workload-identity")
    assert arguments
    assert "feature gate ObjectLevelWorkloadIdentity is not enabled" in await ended(module, tmp_path, *arguments)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
async def test_the_flag_of_the_rfc_does_not_exist(module: Module, tmp_path: Path) -> None:
    """``--enable-source-acl`` of RFC-0003 ends a controller, which is why no export has it."""
    assert "unknown flag: --enable-source-acl" in await ended(module, tmp_path, "--enable-source-acl")
