"""``tenantry sources``: what a tenant finds out by its own rights about sources of others (2.8)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from commanding import Command, account_kubeconfig, commanding
from flux_policing import BITNAMI, SHARED, TWO, Policing, kind_named
from people import token
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.api.errors import Forbidden
from tenantry.local.control_plane import ControlPlane
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, SOURCES_SHOWN
from tenantry.model.kinds import CONFIG_MAP
from tenantry.testing.objects import obj

pytestmark = [LEFT_TO_MAKE_WHOLE, pytest.mark.no_policies]
IMAGES = "ImageRepository/flux-system/img"
CONFIG = "GitRepository/flux-system/config"
CHART = "HelmChart/flux-system/chart"
TRIED = ("Kustomization", "HelmRelease", "ImagePolicy", "ImageUpdateAutomation")

Ask = Callable[..., Awaitable[tuple[int, str, str]]]
"""``await ask("dev-team2", "--try", ...)``: exit code, output and errors, as the account of that namespace."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def kubeconfigs(
    policing: Policing, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Profile multi-tenant with grants for dev-team2; the kubeconfigs of two tenants, by namespace."""
    await policing.enforce()
    folder = tmp_path_factory.mktemp("tenants")
    return {
        each: await account_kubeconfig(policing.admin, control_plane, each, "flux", folder / each)
        for each in ("dev-team1", "dev-team2")
    }


@pytest_asyncio.fixture(loop_scope="session")
async def ask(policing: Policing, kubeconfigs: dict[str, Path], control_plane: ControlPlane) -> Ask:
    """The command as a tenant."""
    read = dict.fromkeys((SHARED, BITNAMI, IMAGES, CHART), TWO)
    await policing.index(read, write={CONFIG: TWO})
    command: Command = commanding(control_plane)

    async def run(namespace: str, *arguments: str) -> tuple[int, str, str]:
        return await command("sources", "-n", namespace, *arguments, kubeconfig=kubeconfigs[namespace])

    return run


async def versions(admin: Api) -> set[tuple[str, str, str]]:
    """All that is there of the kinds that are tried, in two namespaces."""
    listed = [await admin.list(kind_named(kind), each) for kind in TRIED for each in ("dev-team1", "dev-team2")]
    return {
        (item["kind"], item["metadata"]["name"], item["metadata"]["resourceVersion"]) for found in listed for item in found.items
    }


@pytest.mark.check("f-128")
async def test_a_tenant_asks_of_a_source_by_its_own_rights(ask: Ask, policing: Policing, kubeconfigs: dict[str, Path]) -> None:
    """Yes with exit code 0, no with 1, for each kind; nothing is stored, and the index is not for tenants."""
    before = await versions(policing.admin)
    for source in (SHARED, BITNAMI, IMAGES, CHART):
        assert await ask("dev-team2", "--try", source) == (0, f"yes: namespace dev-team2 may use {source}\n", "")
        refused = (1, f"no: {source} is not shared with namespace dev-team1\n", "")
        assert await ask("dev-team1", "--try", source) == refused
        nope = f"{source}-nope"
        assert await ask("dev-team2", "--try", nope) == (1, f"no: {nope} is not shared with namespace dev-team2\n", "")
    assert (await ask("dev-team2", "--try", CONFIG))[0] == 1
    assert await ask("dev-team2", "--try", CONFIG, "--write") == (0, f"yes: namespace dev-team2 may write to {CONFIG}\n", "")
    code, output, errors = await ask("dev-team1", "--try", SHARED, "-o", "json")
    assert (code, errors) == (1, "")
    assert json.loads(output) == {
        "source": SHARED,
        "namespace": "dev-team1",
        "allowed": False,
        "text": f"{SHARED} is not shared with namespace dev-team1",
    }
    assert await versions(policing.admin) == before
    for path in kubeconfigs.values():
        async with await Api.connect(field_manager="tests-tenant", kubeconfig=path) as tenant:
            with pytest.raises(Forbidden):
                await tenant.get(ACCESS_INDEX, DEFAULT)
            with pytest.raises(Forbidden):
                await tenant.list(ACCESS_INDEX)


async def test_another_namespace_cannot_be_tried(
    policing: Policing, ask: Ask, kubeconfigs: dict[str, Path], control_plane: ControlPlane
) -> None:
    """Without the right to make what uses a source there is no answer, and one line says why."""
    command = commanding(control_plane)
    code, output, errors = await command("sources", "-n", "dev-team1", "--try", SHARED, kubeconfig=kubeconfigs["dev-team2"])
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert "cannot create resource" in errors


async def test_other_profiles_answer_the_same(ask: Ask, policing: Policing) -> None:
    """Under Quarantine what would be locked is a no; where an account is required, it is given."""
    await policing.enforce(onDenied="Quarantine")
    assert [(await ask(each, "--try", SHARED))[0] for each in ("dev-team1", "dev-team2")] == [1, 0]
    await policing.enforce(serviceAccountMode="Require")
    code, output, errors = await ask("dev-team2", "--try", SHARED)
    assert (code, output, "spec.serviceAccountName" in errors) == (2, "", True)
    account = ("--service-account", "flux")
    assert [(await ask(each, "--try", SHARED, *account))[0] for each in ("dev-team1", "dev-team2")] == [1, 0]
    await policing.enforce()


async def test_the_list_of_a_namespace_is_printed(ask: Ask, policing: Policing) -> None:
    """As the ConfigMap has it; without one it is told how to get it."""
    code, output, errors = await ask("dev-team2")
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert "tenantry.dev/show-sources=true" in errors
    name = token()
    data = {"read": f"Bucket/a/{name}\nGitRepository/a/{name}\n", "write": ""}
    await policing.admin.create(CONFIG_MAP, obj(CONFIG_MAP, SOURCES_SHOWN, "dev-team2", data=data))
    assert await ask("dev-team2") == (0, f"read Bucket/a/{name}\nread GitRepository/a/{name}\n", "")
    code, output, _ = await ask("dev-team2", "-o", "json")
    assert (code, json.loads(output)) == (0, {"read": [f"Bucket/a/{name}", f"GitRepository/a/{name}"], "write": []})
    await policing.admin.delete(CONFIG_MAP, SOURCES_SHOWN, "dev-team2")
