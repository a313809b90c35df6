"""The arguments that profiles export, given to the real controllers of Flux: they start with them (2.5)."""

from __future__ import annotations

import pytest
import pytest_asyncio
from flux_controllers import MULTI_TENANT, REAL_FLUX, install_real_flux, running_flux

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane

pytestmark = [REAL_FLUX, pytest.mark.timeout(300)]
GATE = "--feature-gates=ObjectLevelWorkloadIdentity=true"
"""Off by default; an installation that has accounts for the identity of a cloud has switched it on."""
WITH = "--with=workload-identity"


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def installed(admin: Api) -> None:
    """Kinds and accounts of Flux."""
    await install_real_flux(admin)


@pytest.mark.parametrize(
    "options",
    [
        ("--security-profile=single-tenant",),
        (MULTI_TENANT,),
        (MULTI_TENANT, "--default-service-account=x"),
        (MULTI_TENANT, "--with=no-remote-bases"),
        (MULTI_TENANT, "--with=least-privilege"),
        (MULTI_TENANT, "--with=no-sharing"),
        (MULTI_TENANT, WITH),
        (MULTI_TENANT, f"{WITH},no-remote-bases,least-privilege,no-sharing", "--default-service-account=x"),
    ],
    ids=" ".join,
)
@pytest.mark.check("f-132")
async def test_controllers_start_with_what_is_exported(
    admin: Api, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory, options: tuple[str, ...]
) -> None:
    """Both become ready; for workload identity where its gate is on, as the export's page says."""
    own = [GATE] if any(each.startswith(WITH) for each in options) else []
    async with running_flux(admin, control_plane, tmp_path_factory, *options, own=own) as running:
        assert [each.code for each in running] == [None, None]
