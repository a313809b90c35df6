"""Tenants with the real controllers of Flux: their repositories run as themselves, and go with them (2.6, 2.7)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio
from commanding import commanding
from flux_controllers import REAL_FLUX
from flux_declaring import FUNCTIONS, Tenants
from flux_locking import KUSTOMIZATION, LOCKS
from flux_real import GIT, RUN_S, RealFlux, applied_by, config_map, message_of, says
from fluxing import SOURCES
from git_server import BRANCH, GitServer
from people import token

from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.flux.names import MADE_FOR_TENANT, PRUNE, TENANT, TENANT_LABEL
from tenantry.model.kinds import (
    CONFIG_MAP,
    NAMESPACE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Object,
    annotations_of,
    is_terminating,
    labels_of,
)
from tenantry.testing.audit import AuditLog
from tenantry.testing.objects import obj
from tenantry.testing.tls import loopback_context

pytestmark = [REAL_FLUX, pytest.mark.timeout(300)]
CONTROLLER = "system:serviceaccount:flux-system:kustomize-controller"


@pytest.fixture(scope="module")
def control_plane(audited_plane: tuple[ControlPlane, AuditLog]) -> ControlPlane:
    return audited_plane[0]


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def system(delivering: Callable[..., Awaitable[Knative]]) -> Knative:
    """The functions of Tenants, sources and locks, policies and controllers, until the module ends."""
    return await delivering(SOURCES, LOCKS, *FUNCTIONS)


@pytest.fixture
def flux(real_flux: RealFlux) -> RealFlux:
    return real_flux


@pytest.fixture
def tenants(flux: RealFlux) -> Tenants:
    return Tenants(flux.admin, flux.eventually_s)


async def onboarded(flux: RealFlux, tenants: Tenants) -> tuple[str, list[str]]:
    """A Tenant with two namespaces, whose repository has a ConfigMap that is applied; returns both."""
    name = f"t{token()}"
    places = [f"first-{name}", f"second-{name}"]
    await flux.git.commit(
        name, {"deploy/content.yaml": [config_map("delivered", places[0])], "other.yaml": [config_map("other", places[0])]}
    )
    source = {"url": flux.git.url(name), "branch": BRANCH}
    await tenants.declare(name, *places, source=source, kustomization={"path": "./deploy"})
    await tenants.ready(name)
    await flux.applied(places[0], "delivered")
    await flux.ready(await flux.get(KUSTOMIZATION, name, places[0]))
    return name, places


@pytest.mark.check("f-149")
async def test_what_a_tenant_declares_runs_as_itself(
    flux: RealFlux, tenants: Tenants, audited_plane: tuple[ControlPlane, AuditLog]
) -> None:
    """Namespaces, accounts and bindings are there; what is in its repository is applied in the first, by its account."""
    name, places = await onboarded(flux, tenants)
    for place in places:
        assert labels_of(await flux.get(NAMESPACE, place))[TENANT_LABEL] == name
        await flux.get(SERVICE_ACCOUNT, "flux", place)
        binding = await flux.get(ROLE_BINDING, f"{name}-reconciler", place)
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "flux", "namespace": place}]
    who = {(CONTROLLER, f"system:serviceaccount:{places[0]}:flux")}
    assert await applied_by(audited_plane[1], places[0], "delivered") == who
    assert not await flux.is_applied(places[0], "other")
    assert not await flux.is_applied(places[1], "delivered")


@pytest.mark.check("f-57")
async def test_what_a_tenant_had_applied_goes_with_it(flux: RealFlux, tenants: Tenants) -> None:
    """Its Kustomization prunes before account and binding go; nothing labelled for it is left, and the namespaces stay."""
    name, places = await onboarded(flux, tenants)
    kept = await flux.admin.list(ROLE_BINDING, places[0])
    await flux.admin.delete(TENANT, name)
    changes = flux.admin.watch(ROLE_BINDING, places[0], resource_version=kept.resource_version, timeout_s=RUN_S)
    async with aclosing(changes) as seen:  # type: ignore[type-var]
        async for event, changed in seen:
            if event == "DELETED" and changed["metadata"]["name"] == f"{name}-reconciler":
                break
        else:
            raise AssertionError("the RoleBinding did not go")
    assert await flux.admin.get(KUSTOMIZATION, name, places[0]) is None
    assert not await flux.is_applied(places[0], "delivered")
    await flux.away(TENANT, name, within=RUN_S)
    assert await tenants.labelled(name) == []
    for place in places:
        namespace = await flux.get(NAMESPACE, place)
        assert not is_terminating(namespace)
        assert MADE_FOR_TENANT not in labels_of(namespace)


@pytest.mark.check("f-151")
async def test_a_namespace_in_an_inventory_stays(flux: RealFlux, tenants: Tenants) -> None:
    """A Kustomization that applied its own Namespace before the switch is deleted after it; all else of it goes."""
    await flux.release()
    try:
        user, name = await flux.team(), f"t{token()}"
        documents: list[Object] = [obj(NAMESPACE, "any"), config_map("beside")]
        made = await flux.delivered(user, documents, retryInterval="5s")
        found = await flux.ready(made)
        inventory = [each["id"] for each in found["status"]["inventory"]["entries"]]
        assert f"_{user}__Namespace" in inventory
        await tenants.declare(name, user, adoptNamespaces=True)
        await tenants.ready(name)
    finally:
        await flux.enforce()
    assert annotations_of(await flux.get(NAMESPACE, user))[PRUNE] == "disabled"
    await flux.admin.delete(KUSTOMIZATION, made["metadata"]["name"], user)
    await flux.away(KUSTOMIZATION, made["metadata"]["name"], user, within=RUN_S)
    await flux.pruned(user, "beside")
    assert not is_terminating(await flux.get(NAMESPACE, user))


@pytest.mark.check("f-146")
async def test_credentials_that_the_command_makes_are_read(flux: RealFlux, control_plane: ControlPlane, tmp_path: Path) -> None:
    """source-controller fetches from a server that asks for them, by the authority that was named; with others not."""
    user = await flux.team()
    context, authority = loopback_context()
    (tmp_path / "ca.crt").write_text(authority)
    async with GitServer(tmp_path / "git", credentials=("me", "secret"), context=context) as server:
        commit = await server.commit("private", {"content.yaml": [config_map("private")]})
        url = server.url("private")
        for name, password in (("right", "secret"), ("wrong", "guessed")):
            credentials = ("--username=me", f"--password={password}", f"--ca-crt-file={tmp_path / 'ca.crt'}")
            code, _, errors = await commanding(control_plane)(
                "create", "secret", "git", name, "-n", user, f"--url={url}", *credentials
            )
            assert code == 0, errors
            spec = {"url": url, "interval": "1h", "ref": {"branch": BRANCH}, "secretRef": {"name": name}}
            await flux.admin.create(GIT, obj(GIT, name, user, spec=spec))
        made = await flux.consumer(user, spec={"sourceRef": {"kind": "GitRepository", "name": "right"}})
        await flux.ready(made, commit)
        assert await flux.admin.get(CONFIG_MAP, "private", user) is not None
        refused = await flux.until(GIT, "wrong", user, lambda found: says(found, "False"), within=RUN_S)
        assert "authentication required" in message_of(refused)
        assert "artifact" not in refused["status"]
