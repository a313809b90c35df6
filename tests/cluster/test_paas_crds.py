"""CRDs of Paas that are another system's, and such that go; and uninstallations: what of Paas stays (section 6).

The tests follow one another on a control plane of their own: it begins with the CRDs of opr-paas, and ends without any.
"""

from __future__ import annotations

import copy
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import upping
from flawless import flawless
from paasing import CONFIG, CONFIG_NAME, Paasing, make_roles, make_world, paas_name, together
from people import CORE_EVENT, swept, tell
from righting import history, in_order
from times import LEFT_TO_MAKE_WHOLE, SERVED_S

from tenantry.api import Api
from tenantry.api.errors import RefusedError, TransientError
from tenantry.local.control_plane import ControlPlane
from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.install import until_served
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    ADMISSION_POLICY,
    ADMISSION_POLICY_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    ROLE_BINDING,
    Object,
    finalizers_of,
    is_terminating,
)
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.model.paas.names import (
    CLUSTER_RESOURCE_QUOTA,
    GROUP,
    MANAGED_BY_PAAS,
    OUR_KINDS,
    PAAS,
    PAAS_CONFIG,
    SUBJECTS_FINALIZER,
)
from tenantry.testing import eventually
from tenantry.testing.forks import Forks
from tenantry.testing.objects import obj

FUNCTIONS = ["namespace-registration", "rbac-aggregation", "scope-binding", "release-provisioning"]
OLD, NEW = paas_name(), paas_name()
"""A Paas that upstream stored in its first version, and one in the second."""
SPEC: dict[str, Any] = {
    "requestor": "team",
    "groups": {"us": {"users": ["me"], "roles": ["edit"]}},
    "namespaces": {"a": {}},
    "capabilities": {"argocd": {"enabled": True}},
    "quota": {"limits.cpu": "4"},
}
MADE = (NAMESPACE, ROLE_BINDING, GROUP, CLUSTER_RESOURCE_QUOTA)
WEBHOOK = {
    "strategy": "Webhook",
    "webhook": {
        "clientConfig": {"service": {"namespace": "paas-system", "name": "webhook-service", "path": "/convert"}},
        "conversionReviewVersions": ["v1"],
    },
}

pytestmark = [LEFT_TO_MAKE_WHOLE, pytest.mark.no_policies]


@dataclass
class Cluster:
    """A control plane, and the people of Paas on it."""

    plane: ControlPlane
    admin: Api
    paasing: Paasing
    folder: Path
    forks: Forks

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Knative]:
        """The functions of Paas, installed anew."""
        folder = self.folder / f"run-{len(list(self.folder.iterdir()))}"
        options = {"functions": FUNCTIONS, "spawn": self.forks.spawn}
        async with Knative(self.plane.kubeconfig, folder, config={}, **options) as running, flawless(running):
            yield running

    async def uninstall(self, *options: str) -> str:
        """``tenantry uninstall``, until its namespace is gone; returns what it said."""
        (self.folder / "config.yaml").write_text("{}")
        environment = {"KUBECONFIG": str(self.plane.kubeconfig), "TENANTRY_CONFIG": str(self.folder / "config.yaml")}
        code, output, errors = await upping.tenantry("uninstall", "--yes", *options, within=100, **environment)
        assert code == 0, errors
        await self.paasing.gone(SYSTEM_NAMESPACE)
        return errors + output

    async def made(self) -> dict[tuple[str, str, str], Object]:
        """What stands for Paas."""
        found = [each for kind in MADE for each in (await self.admin.list(kind, label_selector=MANAGED_BY_PAAS)).items]
        found += [await self.paasing.get(CLUSTER_ROLE_BINDING, "paas-monitoring-edit")]
        return {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in found}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """OpenShift's kinds, and nothing of ours."""
    with ControlPlane(ephemeral=True) as plane:
        async with await Api.connect(field_manager="tests-admin", kubeconfig=plane.kubeconfig) as admin:
            await make_world(admin, "os")
            await make_roles(admin)
            yield Cluster(plane, admin, Paasing(admin), tmp_path_factory.mktemp("crds"), forks)


def crds() -> dict[str, Object]:
    """Our CRDs of Paas by plural."""
    found = documents(deployment_folder("knative") / "crds")
    return {each["spec"]["names"]["plural"]: each for each in found if each["spec"]["group"] == PAAS.group}


def upstream(ours: Object, *, stored: str = "v1alpha2", conversion: Object | None = None) -> Object:
    """A CRD of the same names that knows nothing of ours: no category, conditions as a plain list."""
    made = copy.deepcopy({**ours, "metadata": {"name": ours["metadata"]["name"]}})
    made["spec"]["names"].pop("categories", None)
    made["spec"]["conversion"] = conversion or {"strategy": "None"}
    for version in made["spec"]["versions"]:
        version["storage"] = version["name"] == stored
        version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return made


async def replace(admin: Api, crd: Object) -> None:
    """What ``kubectl replace`` does with a CRD."""
    name = crd["metadata"]["name"]
    live = await admin.get(CUSTOM_RESOURCE_DEFINITION, name)
    assert live is not None
    metadata = {**crd["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
    await admin.request("PUT", CUSTOM_RESOURCE_DEFINITION.path("", name), None, {**crd, "metadata": metadata})


async def _is_stored(admin: Api) -> bool:
    """Whether what is written in the second version is stored in it: nobody answers who could convert it."""
    try:
        await admin.create(PAAS, obj(PAAS, NEW, spec=SPEC), dry_run=True)
    except TransientError:
        return False
    return True


@pytest.mark.check("p-191")
async def test_nothing_is_done_under_the_crds_of_another_system(cluster: Cluster) -> None:
    """It is told on the PaasConfig with the command that replaces them; the Paas stay, and then have all that they declare."""
    admin, paasing = cluster.admin, cluster.paasing
    ours = crds()
    for plural, crd in ours.items():
        await admin.create(CUSTOM_RESOURCE_DEFINITION, upstream(crd, stored="v1alpha1" if plural == PAAS.plural else "v1alpha2"))
        await until_served(admin, crd)
    first = {**obj(PAAS, OLD, spec={**SPEC, "namespaces": ["a"]}), "apiVersion": f"{PAAS.group}/v1alpha1"}
    old = await admin.request("POST", f"/apis/{PAAS.group}/v1alpha1/paas", None, first)
    await replace(admin, upstream(ours[PAAS.plural], conversion=WEBHOOK))
    await eventually(lambda: _is_stored(admin), within=SERVED_S, what="the second version is stored")
    await admin.create(PAAS, obj(PAAS, NEW, spec=SPEC))
    config = await admin.create(PAAS_CONFIG, obj(PAAS_CONFIG, CONFIG_NAME, spec=CONFIG))
    before = await paasing.get(PAAS, NEW)

    async with cluster.running() as system:
        said = await paasing.warned(CONFIG_NAME, "ForeignCRD", kind=PAAS_CONFIG)
        assert all(each in said for each in ours)
        for function in FUNCTIONS:
            await tell(system, function, PAAS, NEW)
            await tell(system, function, PAAS_CONFIG, CONFIG_NAME)
            assert (await swept(system, function))[0] == 204
        assert await paasing.get(PAAS, NEW) == before
        assert await paasing.get(PAAS_CONFIG, CONFIG_NAME) == config
        for kind in (*MADE, CLUSTER_ROLE_BINDING):
            found = (await admin.list(kind)).items
            assert not [each for each in found if each["metadata"]["name"].startswith((OLD, NEW, "paas-"))]
        events = (await admin.list(CORE_EVENT, "default")).items
        about = [each for each in events if each["involvedObject"]["kind"] in {kind.kind for kind in OUR_KINDS}]
        assert [each["reason"] for each in about] == ["ForeignCRD"]

        with pytest.raises(RefusedError):
            await admin.apply(CUSTOM_RESOURCE_DEFINITION, ours[PAAS.plural])
        (command,) = re.findall(r"`kubectl replace (.*)`", said)
        files = command.replace("-f ", "").split()
        assert len(files) == len(ours)
        for file in files:
            (crd,) = documents(deployment_folder("knative") / Path(file).relative_to("knative"))
            await replace(admin, crd)

        async def taken_over() -> bool:
            for function in FUNCTIONS:
                assert (await swept(system, function))[0] == 204
            found = await admin.get(PAAS_CONFIG, CONFIG_NAME)
            return bool((found or {}).get("status"))

        await eventually(taken_over, within=SERVED_S, what="the CRDs are ours")
        await together(*(paasing.ready(each) for each in (OLD, NEW)))
        for each in (old, before):
            assert (await paasing.get(PAAS, each["metadata"]["name"]))["metadata"]["uid"] == each["metadata"]["uid"]
        for each in (OLD, NEW):
            await paasing.has_namespaces(each, "a", "argocd")


def content(found: Object) -> Object:
    """All of an object but its finalizers, and who wrote what when."""
    changing = ("finalizers", "managedFields", "resourceVersion")
    return {**found, "metadata": {part: value for part, value in found["metadata"].items() if part not in changing}}


@pytest.mark.check("p-194")
async def test_an_uninstallation_leaves_what_paas_declare(cluster: Cluster) -> None:
    """Finalizers, policies and rights go; Paas can be deleted then; installed again, all is taken over as it is."""
    admin, paasing, name = cluster.admin, cluster.paasing, paas_name()
    async with cluster.running() as system:
        await paasing.paas(name, namespaces={"a": {}}, groups={"us": {"users": ["me"]}})
        await together(*(paasing.ready(each) for each in (OLD, NEW, name)))
        before, paas = await cluster.made(), await paasing.get(PAAS, NEW)
        said = await cluster.uninstall()
        assert system.ended.is_set()
    assert said.index("to end") < said.index(f"took the finalizer off Paas {NEW}")
    for each in (OLD, NEW, name):
        assert not finalizers_of(await paasing.get(PAAS, each))
    after = await cluster.made()
    assert {key: content(each) for key, each in after.items()} == {key: content(each) for key, each in before.items()}
    assert not [key for key, each in after.items() if SUBJECTS_FINALIZER in finalizers_of(each)]
    assert content(await paasing.get(PAAS, NEW)) == content(paas)
    for kind in (ADMISSION_POLICY, ADMISSION_POLICY_BINDING, CLUSTER_ROLE, CLUSTER_ROLE_BINDING):
        assert not [each for each in (await admin.list(kind)).items if each["metadata"]["name"].startswith("tenantry-")]
    await admin.delete(PAAS, name)
    assert await admin.get(PAAS, name) is None
    assert not is_terminating(await paasing.get(NAMESPACE, f"{name}-a"))

    async with cluster.running() as system:
        for function in FUNCTIONS:
            assert (await swept(system, function))[0] == 204
        await together(*(paasing.ready(each) for each in (OLD, NEW)))
        again = await cluster.made()
        held = {("Namespace", "", f"{each}-argocd") for each in (OLD, NEW)}
        for key, each in after.items():
            if key[1].startswith(name) or key[2].startswith(name):
                continue
            if key in held:
                assert SUBJECTS_FINALIZER in finalizers_of(again[key])
                assert content(again[key]) == content(each)
            else:
                assert again[key]["metadata"]["resourceVersion"] == each["metadata"]["resourceVersion"], key
        await cluster.uninstall("--crds")
    for plural in crds():
        assert await admin.get(CUSTOM_RESOURCE_DEFINITION, f"{plural}.{PAAS.group}") is None
    left = await cluster.made()
    assert left.keys() == again.keys()
    assert not [key for key, each in left.items() if is_terminating(each)]


@pytest.mark.check("p-195")
async def test_crds_that_go_are_the_deletion_of_every_paas(cluster: Cluster) -> None:
    """Bindings, then Groups, then namespaces; and afterwards no function fails for the kinds that it misses."""
    admin, paasing = cluster.admin, cluster.paasing
    names = [paas_name() for _ in range(3)]
    async with cluster.running() as system:
        await paasing.config()
        await together(*(paasing.paas(each, **SPEC) for each in names))
        await together(*(paasing.ready(each) for each in names))
        await together(*(paasing.until(NAMESPACE, f"{each}-a", "", lambda _: True) for each in names))
        async with history(admin, NAMESPACE, ROLE_BINDING, GROUP, CLUSTER_ROLE_BINDING) as seen:
            for plural in crds():
                await admin.delete(CUSTOM_RESOURCE_DEFINITION, f"{plural}.{PAAS.group}")
            for plural in crds():
                await paasing.away(CUSTOM_RESOURCE_DEFINITION, f"{plural}.{PAAS.group}", within=SERVED_S)
            for each in names:
                await paasing.gone(f"{each}-a")
                await paasing.gone(f"{each}-argocd")
        for each in names:
            ours = [change for change in in_order(seen) if each in str(change.found["metadata"])]
            steps = [
                change.found["kind"]
                for change in ours
                if (change.gone and change.found["kind"] in (ROLE_BINDING.kind, GROUP.kind))
                or (change.found["kind"] == NAMESPACE.kind and is_terminating(change.found))
            ]
            order = list(dict.fromkeys(steps))
            assert order == [ROLE_BINDING.kind, GROUP.kind, NAMESPACE.kind]
            first = steps.index(GROUP.kind)
            assert ROLE_BINDING.kind not in steps[first : steps.index(NAMESPACE.kind)]
        assert await admin.get(CLUSTER_ROLE_BINDING, "paas-monitoring-edit") is None
        for kind in (GROUP, CLUSTER_RESOURCE_QUOTA):
            assert not [each for each in (await admin.list(kind)).items if each["metadata"]["name"].startswith(tuple(names))]
        for function in FUNCTIONS:
            status, text = await swept(system, function)
            assert status == 204, f"{function}: {text}"
            await tell(system, function, NAMESPACE, "default")
