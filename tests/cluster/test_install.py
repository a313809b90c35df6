"""What an installation leaves as it is, and what it leaves out: CRDs of somebody else, and admission policies by name."""

from __future__ import annotations

import copy
import shutil
from collections.abc import AsyncIterator, Collection
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from people import token
from times import LEFT_TO_MAKE_WHOLE, SERVED_S

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, ConflictError
from tenantry.local import deployment, policies
from tenantry.local import install as installing
from tenantry.local.control_plane import ControlPlane
from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.fence_policy import POLICY
from tenantry.local.fences import fence_policies
from tenantry.local.install import INSTALL_MANAGER, install
from tenantry.local.policies import guard_names, names_of
from tenantry.model.config import Config
from tenantry.model.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING, CLUSTER_ROLE, CUSTOM_RESOURCE_DEFINITION, Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj

NAME = "helmcharts.helm.cattle.io"
GUARD = "tenantry-guard-test"
KINDS = (ADMISSION_POLICY, ADMISSION_POLICY_BINDING)

pytestmark = [pytest.mark.no_policies, LEFT_TO_MAKE_WHOLE]


@pytest_asyncio.fixture(loop_scope="session")
async def theirs() -> AsyncIterator[tuple[ControlPlane, Object]]:
    """A cluster that brings a HelmChart CRD with labels, columns and a schema of its own."""
    (ours,) = [found for found in documents(deployment_folder("knative") / "crds") if found["metadata"]["name"] == NAME]
    crd = copy.deepcopy(ours)
    crd["metadata"] = {"name": NAME, "labels": {"objectset.rio.cattle.io/hash": "1234"}}
    (version,) = crd["spec"]["versions"]
    version["additionalPrinterColumns"] = [{"name": "Job", "type": "string", "jsonPath": ".status.jobName"}]
    version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    with ControlPlane(ephemeral=True) as plane:
        async with await Api.connect(field_manager="k3s", kubeconfig=plane.kubeconfig) as api:
            await api.create(CUSTOM_RESOURCE_DEFINITION, crd)

            async def established() -> Object:
                found = await api.get(CUSTOM_RESOURCE_DEFINITION, NAME)
                assert found is not None
                conditions = (found.get("status") or {}).get("conditions") or ()
                true = {each["type"] for each in conditions if each["status"] == "True"}
                return found if {"Established", "NamesAccepted"} <= true else {}

            yield plane, await eventually(established, within=SERVED_S, what="the foreign CRD is established")


async def test_a_foreign_crd_is_kept_and_the_installation_says_so(theirs: tuple[ControlPlane, Object]) -> None:
    """Our CRDs are installed around it, it stays as it was to the last field, and kubectl's way of applying ours conflicts."""
    plane, before = theirs
    said: list[str] = []
    async with await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=plane.kubeconfig) as api:
        await install(api, ["release-provisioning"], Config(), said.append)
        first, said[:] = list(said), []
        await install(api, ["release-provisioning"], Config(), said.append)
        after = await api.get(CUSTOM_RESOURCE_DEFINITION, NAME)

        assert after == before
        kept = f"kept CustomResourceDefinition {NAME}: somebody else manages it"
        assert [line for line in first if line.startswith("kept")] == [kept]
        assert any("helmchartconfigs.helm.cattle.io" in line and line.startswith("installed") for line in first)
        assert said == [kept]
        (ours,) = [found for found in documents(deployment_folder("knative") / "crds") if found["metadata"]["name"] == NAME]
        with pytest.raises(ConflictError, match="k3s"):
            await api.apply(CUSTOM_RESOURCE_DEFINITION, ours, force=False)


def guard(refuses: str, name: str = GUARD) -> list[Object]:
    """A policy for everybody that refuses a ClusterRole with the name ``refuses``, and its binding, as one file has them."""
    rule = {
        "apiGroups": [CLUSTER_ROLE.group],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": [CLUSTER_ROLE.plural],
    }
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "resourceNames": [refuses]}]},
        "validations": [{"expression": "false", "message": "guarded"}],
    }
    return policies.with_binding(name, spec)


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Deployment files with one guard, which refuses a ClusterRole of the name that this returns."""
    name = f"guarded-{token()}"
    shutil.copytree(deployment_folder("knative"), tmp_path / "knative", ignore=shutil.ignore_patterns("guards"))
    (tmp_path / "knative" / "guards").mkdir()
    (tmp_path / "knative" / "guards" / "test.yaml").write_text(yaml.safe_dump_all(guard(name)))
    for module in (deployment, installing, policies):
        monkeypatch.setattr(module, "deployment_folder", lambda folder: tmp_path / folder)
    return name


async def refused(admin: Api, name: str) -> bool:
    """Whether the guard is in force at this moment."""
    try:
        await admin.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, name, rules=[]), dry_run=True)
    except AdmissionDenied:
        return True
    return False


async def test_policies_are_in_force_when_an_installation_ends(control_plane: ControlPlane, admin: Api, guarded: str) -> None:
    """Guards and fences are installed and count at once; those that are named are left out or taken out, and that counts too;
    a second installation changes nothing, and nothing but the policies is left behind.  Fences of an earlier version go."""
    said: list[str] = []
    async with await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=control_plane.kubeconfig) as api:

        async def policies_after(without: Collection[str] = ()) -> tuple[bool, set[str]]:
            said.clear()
            await install(api, ["scope-binding"], Config(), said.append, without=without)
            in_force = await refused(admin, guarded)
            policies, bindings = [(await admin.list(kind)).items for kind in KINDS]
            names = {each["metadata"]["name"] for each in policies}
            assert {each["spec"]["policyName"] for each in bindings} == names
            return in_force, names

        for kind, earlier in zip(KINDS, guard("nobody", name=f"{POLICY}-scope-binding"), strict=True):
            await api.apply(kind, earlier)
        apart = names_of(fence_policies(Config()))
        fences = apart | (guard_names() - {GUARD})
        assert await policies_after() == (True, fences | {GUARD})
        assert [line for line in said if GUARD in line]
        assert await policies_after() == (True, fences | {GUARD})
        assert said == []
        assert await policies_after([GUARD]) == (False, fences)
        assert {line.partition(":")[0] for line in said} == {f"removed {each.kind} {GUARD}" for each in KINDS}
        assert await policies_after(["another"]) == (True, fences | {GUARD})
        assert await policies_after(["all"]) == (False, set())
        assert await policies_after(guard_names()) == (False, apart)
        await policies_after(["all"])


async def test_an_identity_of_before_is_taken_away(control_plane: ControlPlane, admin: Api) -> None:
    """That of all sources together goes with its rights, if it is ours; each function's sources have one of their own."""
    name, labels = "tenantry-source", {"app.kubernetes.io/part-of": "tenantry"}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    said: list[str] = []
    async with await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=control_plane.kubeconfig) as api:
        await admin.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, name, rules=rules))
        await install(api, ["rbac-aggregation"], Config(), said.append)
        assert await admin.get(CLUSTER_ROLE, name) is not None, "somebody else's"
        await admin.apply(CLUSTER_ROLE, obj(CLUSTER_ROLE, name, labels=labels, rules=rules))
        await install(api, ["rbac-aggregation"], Config(), said.append)
    assert await admin.get(CLUSTER_ROLE, name) is None
    assert await admin.get(CLUSTER_ROLE, f"{name}-rbac-aggregation") is not None
    assert [line for line in said if line.startswith(f"removed ClusterRole {name}:")]
