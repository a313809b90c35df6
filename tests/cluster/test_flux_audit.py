"""``tenantry audit``: what the profile multi-tenant would refuse, asked before it is switched on (2.5), and under mode Audit."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from commanding import Command, account_kubeconfig, commanding
from flux_locking import LOCKS, FluxLocks
from flux_policing import APP1, FLUX, TEAM2, Policing, admitted, denied, flux_object, helm_release, kustomization
from fluxing import SOURCES, TWO
from people import token
from times import FLUX_S, LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.flux.names import (
    ACCESS_INDEX,
    CHART_OWNER_NAME,
    CHART_OWNER_NAMESPACE,
    DEFAULT,
    PRUNE,
    SOURCE_GRANT,
    SOURCE_KINDS,
)
from tenantry.model.flux.policies.parts import LABELS
from tenantry.model.kinds import (
    ADMISSION_MUTATION_BINDING,
    CLUSTER_ROLE,
    DEPLOYMENT,
    NAMESPACE,
    SERVICE_ACCOUNT,
    Object,
    annotations_of,
    finalizers_of,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = [LEFT_TO_MAKE_WHOLE, pytest.mark.no_policies]
READER = "system:serviceaccount:flux-system:auditor"
BITNAMI = {"kind": "HelmRepository", "name": "bitnami"}
FLAG = "--no-cross-namespace-refs=true"
(REPOSITORIES,) = (each for each in SOURCE_KINDS if each.kind == "HelmRepository")


@pytest.fixture(scope="module")
def flux(admin: Api) -> FluxLocks:
    """Owners of sources, teams that use them, and the platform."""
    return FluxLocks(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def system(policing: Policing, flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """scope-binding and lock-enforcement with Flux' kinds; no profile is switched on."""
    await policing.enforce(profile="single-tenant")
    running = await flawlessly({}, functions=[SOURCES, LOCKS])
    await running.drain()
    return running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reader(policing: Policing, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kubeconfig of somebody who may read everything, and write nothing."""
    admin, name = policing.admin, READER.rpartition(":")[2]
    await admin.apply(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, name, FLUX))
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]
    await admin.apply(CLUSTER_ROLE, obj(CLUSTER_ROLE, "auditor", rules=rules))
    await policing.bound(READER, "auditor")
    await policing.may(READER, "list", obj(NAMESPACE, ""))
    return await account_kubeconfig(admin, control_plane, FLUX, name, tmp_path_factory.mktemp("audit") / "kubeconfig")


class Auditing:
    """Asks, as somebody who may write nothing."""

    def __init__(self, command: Command, kubeconfig: Path) -> None:
        self._command = command
        self._kubeconfig = kubeconfig

    async def text(self) -> tuple[int, str]:
        """Exit code and output for people; no errors."""
        code, output, errors = await self._command("audit", kubeconfig=self._kubeconfig)
        assert errors == ""
        return code, output

    async def found(self) -> list[dict[str, Any]]:
        """The findings; the exit code says whether there are any."""
        code, output, errors = await self._command("audit", "-o", "json", kubeconfig=self._kubeconfig)
        found: list[dict[str, Any]] = json.loads(output)
        assert (code, errors) == (1 if found else 0, "")
        return found

    async def listed(self) -> set[tuple[str, str]]:
        """Reason and object of each finding."""
        return {(each["reason"], _about(each)) for each in await self.found()}

    async def until(self, wanted: set[tuple[str, str]]) -> None:
        """Wait until exactly these are found: what functions have to do first they have done then."""
        await eventually(self.listed, lambda found: found == wanted, within=FLUX_S, what=f"found {wanted}")


def _about(finding: dict[str, Any]) -> str:
    return "/".join(finding[part] for part in ("kind", "namespace", "name") if part in finding)


@pytest.fixture
def auditing(control_plane: ControlPlane, reader: Path) -> Auditing:
    """Who asks."""
    return Auditing(commanding(control_plane), reader)


def controller(name: str, *arguments: str) -> Object:
    """The Deployment of a controller of Flux."""
    container = {"name": "manager", "image": "example.com/controller:1", "args": list(arguments)}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
    return obj(DEPLOYMENT, name, FLUX, spec=spec)


@pytest.mark.check("f-141")
async def test_all_is_listed_before_the_switch(auditing: Auditing, policing: Policing, flux: FluxLocks) -> None:
    """Nothing in a clean cluster, then each finding that was made, by somebody who can write nothing; mended, it is gone."""
    assert await auditing.text() == (0, "nothing would be refused with the profile multi-tenant\n")
    assert await auditing.found() == []
    admin = policing.admin
    await admin.create(NAMESPACE, obj(NAMESPACE, "bare"))
    await policing.tenant("dev")
    await flux.source("dev-team1")
    await flux.source(FLUX, "bitnami", "HelmRepository")
    await flux.grant(FLUX, {}, sourceRef=BITNAMI)
    owner = {CHART_OWNER_NAMESPACE: "dev-team2", CHART_OWNER_NAME: "redis"}
    made = [
        await policing.made(each)
        for each in (
            kustomization("dev-team2", APP1, "app1"),
            kustomization("bare", name="k", serviceAccountName=None),
            kustomization("dev-team1", name="own"),
            flux_object("HelmChart", FLUX, "dev-team2-redis", spec={"chart": "redis"}, labels=owner),
            helm_release("dev", chart="HelmRepository/flux-system/bitnami", name="team1-x"),
            helm_release("dev-team1", chart="HelmRepository/flux-system/bitnami", name="x"),
            kustomization(FLUX, "GitRepository//flux-system", FLUX, serviceAccountName=None),
            # what is as it is to be
            kustomization("dev-team1", name="fine", serviceAccountName=None),
            kustomization(FLUX, APP1, "exempt"),
        )
    ]
    inventory = {"status": {"inventory": {"entries": [{"id": "_dev-team1__Namespace", "v": "v1"}]}}}
    assert (await policing.merge(made[2], inventory, dry=False, subresource="status")).status == 200
    await admin.create(DEPLOYMENT, controller("helm-controller", FLAG))
    refused = ("AccessDenied", "Kustomization/dev-team2/app1")
    others = {
        ("AccountMissing", "Kustomization/bare/k"),
        ("PlatformAccountMissing", "Kustomization/flux-system/flux-system"),
        ("OwnNamespaceInInventory", "Kustomization/dev-team1/own"),
        ("ForeignHelmChart", "HelmChart/flux-system/dev-team2-redis"),
        ("HelmChartConflict", "HelmRelease/dev-team1/x"),
        ("FlagMakesGrantVoid", "Deployment/flux-system/helm-controller"),
    }
    await auditing.until({refused, *others})
    code, output = await auditing.text()
    assert (code, len(output.splitlines())) == (1, 7)
    assert f"spec.sourceRef: {APP1} is not shared with namespace dev-team2; make a SourceGrant in namespace dev-team1" in output

    (grant,) = (each["grant"] for each in await auditing.found() if "grant" in each)
    await admin.apply(SOURCE_GRANT, grant)
    await auditing.until(others)
    await admin.apply(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, "flux", "bare"))
    sync = {"spec": {"serviceAccountName": "kustomize-controller"}}
    marked = {"metadata": {"annotations": {PRUNE: "disabled"}}}
    for body, change in ((made[6], sync), (obj(NAMESPACE, "dev-team1"), marked)):
        assert (await policing.merge(body, change, dry=False)).status == 200
    for each in (made[3], made[4]):
        assert (await policing.delete(each, dry=False)).status == 200
    await admin.delete(DEPLOYMENT, "helm-controller", FLUX)
    await auditing.until(set())
    await policing.enforce()
    await policing.until(lambda: policing.create(kustomization("dev-team2", APP1), user=TEAM2), 201)
    assert await auditing.text() == (0, "nothing would be refused with the profile multi-tenant\n")
    await policing.enforce(profile="single-tenant")


@pytest.mark.check("f-142")
async def test_a_flag_that_makes_a_grant_void_is_named(auditing: Auditing, policing: Policing, flux: FluxLocks) -> None:
    """With its Deployment and the grant; without a grant, or without the flag, nothing is told."""
    admin, name = policing.admin, f"app-{token()}"
    await admin.create(DEPLOYMENT, controller("kustomize-controller", "--default-service-account=flux"))
    source = await flux.source("dev-team3", name)
    key = f"GitRepository/dev-team3/{name}"

    async def told() -> list[str]:
        found = [each for each in await auditing.found() if each["reason"] == "FlagMakesGrantVoid"]
        assert {_about(each) for each in found} <= {"Deployment/flux-system/kustomize-controller"}
        return [each["text"] for each in found if key in each["text"]]

    async def flagged(*arguments: str) -> None:
        await admin.apply(DEPLOYMENT, controller("kustomize-controller", *arguments))

    await flagged(FLAG)
    assert await told() == []
    grant = await flux.grant("dev-team3", TWO, sourceRef={"kind": source["kind"], "name": name})
    (text,) = await eventually(told, within=FLUX_S, what="the flag is told")
    assert text.startswith(f"Deployment kustomize-controller has {FLAG}, which makes void: ")
    await flagged("--no-cross-namespace-refs=false")
    assert await told() == []
    await flagged(FLAG)
    assert len(await told()) == 1
    await admin.delete(SOURCE_GRANT, grant["metadata"]["name"], "dev-team3")
    await eventually(told, lambda found: found == [], within=FLUX_S, what="nothing is told")
    await admin.delete(DEPLOYMENT, "kustomize-controller", FLUX)


@pytest.mark.check("f-122")
async def test_labels_that_tenants_could_set_are_named(auditing: Auditing, policing: Policing, flux: FluxLocks) -> None:
    """Denied while no grant selects by it; listed it is theirs and grants nothing; listed no more it counts, and is named."""
    source, key = f"app-{token()}", f"env-{token()}"
    team, uses = obj(NAMESPACE, "dev-team2"), kustomization("dev-team2", f"GitRepository/dev-team1/{source}")
    labelled = {"metadata": {"labels": {key: "prod"}}}
    await policing.enforce()
    denied(await policing.merge(team, labelled, user=TEAM2), key)
    await policing.enforce(tenantLabelKeys=[key])
    admitted(await policing.merge(team, labelled, user=TEAM2, dry=False))
    await flux.source("dev-team1", source)
    grant = await flux.grant("dev-team1", {key: "prod"}, sourceRef={"kind": "GitRepository", "name": source})
    assert key in await flux.valid(grant, "TenantSettableKey")
    await policing.denied(uses, user=TEAM2)
    named = ("FormerTenantLabel", "Namespace/dev-team2")
    assert named not in await auditing.listed()

    await policing.enforce()
    await flux.valid(grant)
    await policing.until(lambda: policing.create(uses, user=TEAM2), 201)
    (finding,) = await auditing.found()
    assert (finding["reason"], _about(finding), f"{key}=prod" in finding["text"]) == (*named, True)
    index = await policing.admin.get(ACCESS_INDEX, DEFAULT)
    assert index is not None
    kept = [each for each in index["spec"]["tenantKeys"] if each != key]
    step = {"op": "replace", "path": "/spec/tenantKeys", "value": kept}
    await policing.admin.json_patch(ACCESS_INDEX, DEFAULT, "", [step])
    await auditing.until(set())
    await flux.grant("dev-team1", TWO, sourceRef={"kind": "GitRepository", "name": source})

    async def text() -> str:
        return (await flux.index()).read.get(f"GitRepository/dev-team1/{source}", "")

    await eventually(text, lambda found: found == f"{key}=prod|team=two", within=FLUX_S, what="the index is made anew")
    assert await auditing.found() == []
    await policing.labelled("dev-team2", **{key: None})
    await policing.enforce(profile="single-tenant")


@pytest.mark.check("f-36")
async def test_mode_audit_warns_lists_and_changes_nothing(
    auditing: Auditing, system: Knative, policing: Policing, flux: FluxLocks
) -> None:
    """f-4 is admitted with a warning, and listed in the status and by the command; nothing is suspended, filled or marked."""
    await policing.enforce(mode="Audit")
    name, source = f"k-{token()}", f"app-{token()}"
    await flux.source("dev-team1", source)
    body = kustomization("dev-team2", f"GitRepository/dev-team1/{source}", name, serviceAccountName=None)
    answer = await policing.create(body, user=TEAM2, dry=False)
    assert answer.status == 201, answer
    assert f"GitRepository/dev-team1/{source} is not shared with namespace dev-team2" in answer.told
    await flux.listed(body)
    assert ("AccessDenied", f"Kustomization/dev-team2/{name}") in await auditing.listed()
    await system.drain()
    live = (await policing.ask("GET", policing.path(body))).body
    assert (live["spec"], [*finalizers_of(live)], annotations_of(live)) == (answer.body["spec"], [], {})
    assert "serviceAccountName" not in live["spec"]
    assert "suspend" not in live["spec"]
    mine = ",".join(f"{key}={value}" for key, value in LABELS.items())
    assert (await policing.admin.list(ADMISSION_MUTATION_BINDING, label_selector=mine)).items == []
    assert await policing.admin.get(ACCESS_INDEX, DEFAULT)
    await policing.delete(body, dry=False)
    await policing.enforce(profile="single-tenant")
