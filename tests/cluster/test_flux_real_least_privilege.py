"""kustomize-controller with the rights of ``--with=least-privilege`` and no others: it impersonates (RFC-0003, story 1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
import yaml
from admitting import DRY
from click.testing import CliRunner
from flux_controllers import MULTI_TENANT, REAL_FLUX
from flux_locking import KUSTOMIZATION, LOCKS
from flux_real import RUN_S, RealFlux, config_map
from fluxing import SOURCES

from tenantry.cli import main
from tenantry.local.knative import Knative
from tenantry.model.kinds import CLUSTER_ROLE, CONFIG_MAP, Object, labels_of
from tenantry.testing.objects import obj

pytestmark = [REAL_FLUX, pytest.mark.timeout(300)]
LEAST = "--with=least-privilege"
CONTROLLER = "system:serviceaccount:flux-system:kustomize-controller"


def least_privilege() -> list[Object]:
    """What the export adds with that option: rights, their bindings, and the account of the platform."""
    result = CliRunner().invoke(main, ["profile", "export", "--part=cluster", MULTI_TENANT, LEAST])
    assert result.exit_code == 0, result.output
    documents = [each for each in yaml.safe_load_all(result.stdout) if each]
    return [each for each in documents if labels_of(each).get("app.kubernetes.io/name") == "flux-least-privilege"]


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def system(delivering: Callable[..., Awaitable[Knative]]) -> Knative:
    """Both functions, policies and controllers, until the module ends."""
    return await delivering(SOURCES, LOCKS, options=[LEAST], rights=least_privilege())


@pytest.mark.check("f-135")
async def test_a_controller_that_only_impersonates_delivers(real_flux: RealFlux) -> None:
    """It applies and prunes as the tenant, is Forbidden where that is, and may do nothing of the kind itself."""
    user, other = await real_flux.team(), await real_flux.team()
    made = await real_flux.delivered(user, [config_map("first", user)], targetNamespace=None)
    await real_flux.ready(made)
    await real_flux.applied(user, "first")
    commit = await real_flux.commit(user, [config_map("second", user)], "own")
    await real_flux.ready(made, commit)
    await real_flux.applied(user, "second")
    await real_flux.pruned(user, "first")

    doomed = await real_flux.delivered(user, [config_map("third", user)], name="doomed", targetNamespace=None)
    await real_flux.ready(doomed)
    await real_flux.admin.delete(KUSTOMIZATION, doomed["metadata"]["name"], user)
    await real_flux.away(KUSTOMIZATION, doomed["metadata"]["name"], user, within=RUN_S)
    await real_flux.pruned(user, "third")

    await real_flux.commit(user, [config_map("second", user), config_map("elsewhere", other)], "own")
    await real_flux.failed(made, f"ConfigMap/{other}/elsewhere", "(Forbidden)", f'"system:serviceaccount:{user}:flux"')
    assert not await real_flux.is_applied(other, "elsewhere")

    for kind, body in ((CONFIG_MAP, obj(CONFIG_MAP, "own", user)), (CLUSTER_ROLE, obj(CLUSTER_ROLE, "own", rules=[]))):
        path = kind.path(body["metadata"].get("namespace", ""))
        answer = await real_flux.admitting.ask("POST", path, body, user=CONTROLLER, query=DRY)
        assert answer.status == 403, answer
        assert "cannot create resource" in answer.message
