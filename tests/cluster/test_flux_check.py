"""``tenantry check manifests``: what of a tenant's manifests is for others (2.4)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from commanding import Command, commanding
from people import People, token
from times import LEFT_TO_MAKE_WHOLE

from tenantry.local.control_plane import ControlPlane
from tenantry.model.flux.names import TENANT, TENANT_LABEL
from tenantry.model.kinds import CLUSTER_ROLE, CUSTOM_RESOURCE_DEFINITION, NAMESPACE, Kind, Object
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def served(identity: Callable[..., Awaitable[Path]]) -> None:
    """Our kinds."""
    await identity("namespace-registration")


@pytest.fixture
def command(control_plane: ControlPlane) -> Command:
    """The command."""
    return commanding(control_plane)


def manifest(folder: Path, *documents: Object) -> Path:
    """A folder with manifests."""
    (folder / "deploy").mkdir()
    (folder / "deploy" / "all.yaml").write_text(yaml.safe_dump_all(documents))
    return folder


def named(kind: Kind, name: str, namespace: str = "") -> Object:
    return obj(kind, name, namespace) if namespace else obj(kind, name)


DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")


@pytest.mark.check("f-44")
async def test_what_a_tenant_cannot_apply_is_listed(command: Command, people: People, tmp_path: Path) -> None:
    """A ClusterRole and a Namespace, not a Deployment; and a document for another tenant's namespace."""
    one, two = f"dev-team1-{token()}", f"dev-team2-{token()}"
    await people.namespace(one)
    await people.namespace(two)
    own = [named(DEPLOYMENT, "mine"), named(DEPLOYMENT, "mine-too", one)]
    foreign = [named(CLUSTER_ROLE, "evil"), named(NAMESPACE, "extra"), named(DEPLOYMENT, "theirs", two)]
    folder = manifest(tmp_path, *own, *foreign)
    code, output, _ = await command("check", "manifests", folder, "--tenant", one, "-o", "json")
    assert code == 1
    assert [(each["kind"], each["name"]) for each in json.loads(output)] == [
        ("ClusterRole", "evil"),
        ("Namespace", "extra"),
        ("Deployment", "theirs"),
    ]
    code, output, _ = await command("check", "manifests", folder, "--tenant", one)
    assert (code, len(output.splitlines())) == (1, 3)
    assert "deploy/all.yaml: ClusterRole evil is cluster-scoped" in output
    assert f"Deployment theirs is for namespace {two}, which is not the tenant's" in output
    (folder / "deploy" / "all.yaml").write_text(yaml.safe_dump_all(own))
    code, output, _ = await command("check", "manifests", folder, "--tenant", one)
    assert (code, output) == (0, f"{folder}: everything can be applied by tenant {one}\n")


async def test_a_tenants_namespaces_are_known_in_three_ways(command: Command, people: People, tmp_path: Path) -> None:
    """By the Tenant, by the label, or as they are named; an unknown tenant is told."""
    tenant = f"t{token()}"
    places = [f"{prefix}-{tenant}" for prefix in ("declared", "labelled", "other")]
    folder = manifest(tmp_path, *(named(DEPLOYMENT, "d", place) for place in places))

    async def foreign(*options: str) -> list[str]:
        code, output, _ = await command("check", "manifests", folder, "--tenant", tenant, "-o", "json", *options)
        found = [each["namespace"] for each in json.loads(output)]
        assert code == (1 if found else 0)
        return found

    code, _, errors = await command("check", "manifests", folder, "--tenant", tenant)
    assert (code, errors.count("\n")) == (2, 1)
    assert f"no namespace belongs to tenant {tenant}" in errors
    await people.namespace(places[1], labels={TENANT_LABEL: tenant})
    assert await foreign() == [places[0], places[2]]
    await people.admin.create(TENANT, obj(TENANT, tenant, spec={"namespaces": [places[0]]}))
    assert await foreign() == [places[2]]
    assert await foreign("-n", places[2]) == places[:2]
    await people.admin.delete(TENANT, tenant)


async def test_kinds_that_are_not_served_are_listed(command: Command, people: People, tmp_path: Path) -> None:
    """Unless their CRD is among the manifests."""
    tenant = f"t{token()}"
    await people.namespace(tenant)
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    crd = obj(
        CUSTOM_RESOURCE_DEFINITION,
        "things.example.com",
        spec={"group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing"}, "versions": [{"name": "v1"}]},
    )
    folder = manifest(tmp_path, thing)
    code, output, _ = await command("check", "manifests", folder, "--tenant", tenant)
    assert (code, "example.com/v1 Thing is not served by this cluster" in output) == (1, True)
    (folder / "crd.yaml").write_text(yaml.safe_dump(crd))
    code, output, _ = await command("check", "manifests", folder, "--tenant", tenant)
    assert (code, len(output.splitlines())) == (1, 1)
    assert "CustomResourceDefinition things.example.com is cluster-scoped" in output
