"""A project from its namespace to rights in its release, and ``tenantry uninstall``, on a control plane of its own (hpo-67)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from people import LABEL, PROJECT_ID, People, registration
from releases import CONFIG, PROVISIONING, REGISTRATION, SYSTEM, Owners
from rights import AGGREGATION, Project, cluster_role, named, user

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    NETWORK_POLICY,
    PROJECT_HELM_CHART,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Object,
    labels_of,
)
from tenantry.testing.settling import settle, snapshot

OURS = (NAMESPACE, CONFIG_MAP, NETWORK_POLICY, SERVICE_ACCOUNT, ROLE, ROLE_BINDING, CLUSTER_ROLE, CLUSTER_ROLE_BINDING)
PROJECT = "p-a"


@dataclass
class Cluster:
    """A control plane with the whole system, and a project with a release in it."""

    plane: ControlPlane
    admin: Api
    knative: Knative
    owners: Owners
    project: Project
    folder: Path

    async def tenantry(self, *arguments: str, answer: str = "") -> tuple[int, str, str]:
        """The command line with this cluster's kubeconfig and configuration."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tenantry.cli", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={
                **os.environ,
                "KUBECONFIG": str(self.plane.kubeconfig),
                "TENANTRY_CONFIG": str(self.folder / "config.yaml"),
            },
        )
        output, errors = await asyncio.wait_for(process.communicate(answer.encode()), 100)
        return process.returncode or 0, output.decode(), errors.decode()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """All functions that a release needs, and people who use them."""
    del control_plane  # the programs are there
    folder = tmp_path_factory.mktemp("uninstall")
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    plane = ControlPlane(ephemeral=True)
    await asyncio.to_thread(plane.start)
    try:
        async with (
            await Api.connect(field_manager="tests-admin", kubeconfig=plane.kubeconfig) as admin,
            Knative(plane.kubeconfig, folder, config=CONFIG, functions=[REGISTRATION, PROVISIONING, AGGREGATION]) as knative,
        ):
            owners = Owners(admin)
            project = Project(People(admin), project=PROJECT, chart="demo")
            await owners.project(name=PROJECT)
            await owners.ask("demo", PROJECT)
            await owners.provisioned("demo-dummy")
            yield Cluster(plane, admin, knative, owners, project, folder)
    finally:
        await asyncio.to_thread(plane.stop)


async def test_from_a_binding_in_the_project_to_rights_in_its_release(cluster: Cluster) -> None:
    """Who is bound in the registration namespace has the Role in the release namespace that the chart was given."""
    await cluster.project.role()
    await cluster.project.bind("alice", "admin", user("alice"))
    await cluster.project.bound("User alice")


@pytest.mark.check("hpo-67")
async def test_foreign_binding_does_not_hold_up_the_release(cluster: Cluster) -> None:
    """A RoleBinding of a user under a Role's name stays as it is, the HelmChart is provisioned all the same, and it is told."""
    theirs = await cluster.project.bind("r-edit", cluster_role("view"), user("carol"), namespace=cluster.project.place)
    await cluster.project.role("r-edit", "edit")
    await cluster.project.bind("bob", "edit", user("bob"))
    message = await cluster.project.told("RoleBindingConflict")
    before = await cluster.owners.provisioned("demo-dummy")
    await cluster.admin.delete(HELM_CHART, "demo-dummy", SYSTEM)
    uid = before["metadata"]["uid"]
    await cluster.owners.provisioned("demo-dummy", holds=lambda found: found["metadata"]["uid"] != uid)
    await cluster.project.bound("User alice")

    assert f"RoleBinding {cluster.project.place}/r-edit" in message
    found = await cluster.project.binding("r-edit")
    assert found is not None
    assert found["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]


async def _users_things(cluster: Cluster) -> dict[str, Any]:
    """What people made, as it is: uid and content."""
    home, place = cluster.project.home, cluster.project.place
    wanted = (
        (NAMESPACE, f"a1-{PROJECT}", ""),
        (NAMESPACE, home, ""),
        (NAMESPACE, place, ""),
        (ROLE_BINDING, "alice", home),
        (ROLE_BINDING, "r-edit", place),
        (ROLE, "r-admin", place),
        (CONFIG_MAP, "mine", home),
        (CONFIG_MAP, "mine", "tenantry-system"),
    )
    found: dict[str, Any] = {}
    for kind, name, namespace in wanted:
        live: Object = await cluster.admin.get(kind, name, namespace) or {"metadata": {}}
        content = {part: live.get(part) for part in ("data", "rules", "subjects", "roleRef")}
        found[f"{kind.kind} {namespace}/{name}"] = (live["metadata"].get("uid"), content)
    return found


async def test_dry_run_and_refusal_change_nothing(cluster: Cluster) -> None:
    """A dry run shows what would be done, and a no to the question ends it; neither writes anything."""
    for namespace in (cluster.project.home, "tenantry-system"):
        body: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": namespace}}
        await cluster.admin.create(CONFIG_MAP, {**body, "data": {"a": "b"}})
    await settle(cluster.knative, cluster.admin)
    kinds = (*OURS, PROJECT_HELM_CHART, HELM_CHART, HELM_RELEASE, CUSTOM_RESOURCE_DEFINITION)
    before = await snapshot(cluster.admin, kinds)
    code, output, errors = await cluster.tenantry("uninstall", "--dry-run", "-o", "json")
    assert code == 0, errors
    shown = json.loads(output)
    assert shown["cleaned_up"] == [f"ProjectHelmChart {cluster.project.home}/demo"]
    assert "ClusterRole tenantry-rbac-aggregation" in shown["removed"]
    assert not [line for line in shown["removed"] if "/mine" in line or "r-edit" in line]
    code, _, errors = await cluster.tenantry("uninstall", answer="n\n")
    assert code == 1
    assert "Go on?" in errors
    assert before == await snapshot(cluster.admin, kinds)


async def test_uninstall_ends_with_nothing_of_ours_and_everything_of_theirs(cluster: Cluster) -> None:
    """Releases, functions, rights, what the functions made and our kinds are gone; what people made is as it was."""
    before = await _users_things(cluster)
    assert all(uid for uid, _ in before.values()), before
    code, output, errors = await cluster.tenantry("uninstall", "--yes", "-o", "json", "--timeout", "60")
    assert code == 0, errors + output
    done = json.loads(output)

    admin, home, place = cluster.admin, cluster.project.home, cluster.project.place
    assert before == await _users_things(cluster)
    for kind in (HELM_CHART, HELM_RELEASE):
        assert (await admin.list(kind, SYSTEM)).items == []
    assert [named(each) for each in (await admin.list(ROLE_BINDING, place)).items] == [["User carol"]]
    assert await admin.get(NETWORK_POLICY, "hpo-generated-default", home) is None
    assert PROJECT_ID not in labels_of(await admin.get(NAMESPACE, f"a1-{PROJECT}"))
    assert labels_of(await admin.get(NAMESPACE, f"a1-{PROJECT}"))[LABEL] == PROJECT
    for kind in (CLUSTER_ROLE, CLUSTER_ROLE_BINDING, SERVICE_ACCOUNT):
        items = (await admin.list(kind, label_selector="app.kubernetes.io/part-of=tenantry")).items
        assert [each["metadata"]["name"] for each in items] == []
    assert any(line.startswith(f"Namespace {registration(PROJECT)}") for line in done["kept"])
    assert "Namespace tenantry-system: it has ConfigMap tenantry-system/mine" in done["kept"], done["kept"]
    chart = await admin.get(PROJECT_HELM_CHART, "demo", home)
    assert chart is not None
    assert not chart["metadata"].get("finalizers"), "nobody would take it off"

    code, output, errors = await cluster.tenantry("uninstall", "--yes", "--crds", "-o", "yaml")
    assert code == 0, errors + output
    names = [each["metadata"]["name"] for each in (await admin.list(CUSTOM_RESOURCE_DEFINITION)).items]
    assert [name for name in names if name.endswith("cattle.io")] == []
    code, output, errors = await cluster.tenantry("uninstall", "--yes", "--crds", "-o", "json")
    assert (code, json.loads(output)["removed"]) == (0, []), "a third time there is nothing, kinds that are not served included"
