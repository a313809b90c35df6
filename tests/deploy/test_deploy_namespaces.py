"""Our namespaces as `install` makes them take restricted pods only, and requests from there have a share of their own (a-61)."""

from __future__ import annotations

import base64
import ssl
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml
from knative_pods import HELM, SYSTEM
from manifests import Document
from plain_pods import CONTROLLER_S, PLAIN, pod

from release_provisioning.jobs import manifest
from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, Forbidden
from tenantry.local.control_plane import ControlPlane
from tenantry.local.install import INSTALL_MANAGER, install
from tenantry.model.config import Config
from tenantry.model.kinds import HELM_CHART, NAMESPACE, POD, SERVICE_ACCOUNT, Kind, Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj

FLOW_SCHEMA = Kind("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "flowschemas", namespaced=False)


def with_container(**more: Any) -> Object:
    (container,) = PLAIN["containers"]
    return {**PLAIN, "containers": [{**container, **more}]}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def said(control_plane: ControlPlane) -> list[str]:
    """What `install` says of an installation whose system namespace somebody else has made; ours are there afterwards."""
    lines: list[str] = []
    async with await Api.connect(field_manager="somebody", kubeconfig=control_plane.kubeconfig) as other:
        await other.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "their-system"}})
    async with await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=control_plane.kubeconfig) as api:
        await install(api, ["release-provisioning"], Config(), lambda _: None)
        theirs = Config.model_validate({"helmProjectOperator": {"systemNamespace": "their-system"}})
        await install(api, [], theirs, lines.append)
        await install(api, [], Config(), lambda _: None)  # its rights and flows are for the default again
    return lines


# -- pod security ------------------------------------------------------------------------------------------


async def refused(admin: Api, body: Object) -> str:
    """The API server's words about a pod that not even an administrator may create."""
    with pytest.raises((Forbidden, AdmissionDenied)) as told:
        await admin.create(POD, body, dry_run=True)
    return str(told.value)


def test_every_namespace_that_we_ship_enforces_restricted(documents: list[Document]) -> None:
    """Each Namespace of the manifests enforces, audits and warns by the profile restricted."""
    ours = [d for d in documents if d.kind == "Namespace"]

    assert {d.name for d in ours} == {SYSTEM, HELM}
    for namespace in ours:
        labels = namespace.body["metadata"]["labels"]
        assert {labels[f"pod-security.kubernetes.io/{mode}"] for mode in ("enforce", "audit", "warn")} == {"restricted"}


@pytest.mark.check("a-61")
@pytest.mark.parametrize("namespace", [SYSTEM, HELM])
async def test_our_namespaces_take_restricted_pods_only(admin: Api, said: list[str], namespace: str) -> None:
    """In the namespaces as they are installed privilege, root, the host's files and network are refused; plain pods are not."""
    del said
    await eventually(lambda: admin.get(SERVICE_ACCOUNT, "default", namespace), within=CONTROLLER_S)
    attacks = {
        "privileged": with_container(securityContext={"privileged": True}),
        "runAsNonRoot": {**PLAIN, "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
        "hostPath": {**PLAIN, "volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
        "host namespaces": {**PLAIN, "hostNetwork": True},
        "seccompProfile": {**PLAIN, "securityContext": {"runAsNonRoot": True}},
        "unrestricted capabilities": with_container(securityContext={"allowPrivilegeEscalation": False}),
    }

    for word, spec in attacks.items():
        told = await refused(admin, pod(namespace, spec))
        assert 'violates PodSecurity "restricted' in told, word
        assert word in told
    assert await admin.create(POD, pod(namespace, PLAIN), dry_run=True)


@pytest.mark.check("a-61")
async def test_helm_jobs_fit_their_namespace(admin: Api, said: list[str]) -> None:
    """The pods that install and uninstall releases are admitted in the system namespace; one with the host's network is not."""
    del said
    spec = {"chart": "shop", "authSecret": {"name": "a"}, "repoCAConfigMap": {"name": "b"}}
    chart = obj(HELM_CHART, "shop", HELM, spec=spec, metadata={"uid": "1"})
    account = manifest.account(chart)
    await admin.create(SERVICE_ACCOUNT, account)
    jobs = [manifest.install_job(chart, None, {}, Config()), manifest.delete_job(chart, Config())]

    for job in jobs:
        assert await admin.create(POD, pod(HELM, job["spec"]["template"]["spec"]), dry_run=True)
    chart["spec"]["bootstrap"] = True
    job = manifest.install_job(chart, None, {}, Config())
    assert "hostNetwork=true" in await refused(admin, pod(HELM, job["spec"]["template"]["spec"]))
    await admin.delete(SERVICE_ACCOUNT, account["metadata"]["name"], HELM)


async def test_a_namespace_of_somebody_else_is_left_as_it_is_and_told(admin: Api, said: list[str]) -> None:
    """A system namespace that others made gets no label of ours; who installs is told which one it lacks."""
    theirs = await admin.get(NAMESPACE, "their-system")

    assert theirs is not None
    assert theirs["metadata"]["labels"] == {"kubernetes.io/metadata.name": "their-system"}
    lacks = "pod-security.kubernetes.io/enforce=restricted"
    assert f"kept Namespace their-system: somebody else made it; give it the label {lacks}" in said


# -- whose requests wait -----------------------------------------------------------------------------------


async def flow_of(control_plane: ControlPlane, token: str) -> tuple[str, str]:
    """The uids of the FlowSchema and of the priority level that a request with this token is put into."""
    cluster = yaml.safe_load(control_plane.kubeconfig.read_text())["clusters"][0]["cluster"]
    trust = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{cluster['server']}/api/v1/namespaces", ssl=trust, headers=headers) as answer,
    ):
        return answer.headers["X-Kubernetes-PF-FlowSchema-UID"], answer.headers["X-Kubernetes-PF-PriorityLevel-UID"]


async def token_of(admin: Api, namespace: str, name: str) -> str:
    """A token of a ServiceAccount, which is made where it is missing."""
    if await admin.get(SERVICE_ACCOUNT, name, namespace) is None:
        await admin.create(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, name, namespace))
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await admin.request("POST", SERVICE_ACCOUNT.path(namespace, name) + "/token", None, body)
    return str(answer["status"]["token"])


@pytest.mark.check("a-61")
async def test_requests_of_our_identities_have_a_share_of_their_own(
    admin: Api, control_plane: ControlPlane, said: list[str], system: str
) -> None:
    """Functions and sources are matched by our FlowSchema, Helm Jobs by a smaller one of theirs, everybody else by neither."""
    del said
    schemas = {name: await admin.get(FLOW_SCHEMA, name) for name in ("tenantry", "tenantry-helm", "service-accounts")}
    uids = {name: schema["metadata"]["uid"] for name, schema in schemas.items() if schema}
    who = {
        (SYSTEM, "release-provisioning"): "tenantry",
        (SYSTEM, "tenantry-source-release-provisioning"): "tenantry",
        (HELM, "helm-shop"): "tenantry-helm",
        (system, "default"): "service-accounts",
    }

    async def schema_of(token: str) -> str:
        return (await flow_of(control_plane, token))[0]

    levels = {}
    for (namespace, name), schema in who.items():
        token = await token_of(admin, namespace, name)

        async def matched(token: str = token, schema: str = schema) -> bool:
            return await schema_of(token) == uids[schema]

        await eventually(matched, within=CONTROLLER_S, what=f"{namespace}/{name} by {schema}")
        levels[schema] = (await flow_of(control_plane, token))[1]
    assert len(set(levels.values())) == 3

    async def dangling(name: str) -> list[str]:
        found = await admin.get(FLOW_SCHEMA, name) or {"status": {}}
        return [each["status"] for each in found["status"].get("conditions", ()) if each["type"] == "Dangling"]

    for name in schemas:  # the API server says so some time after it has both parts
        await eventually(lambda name=name: dangling(name), lambda found: found == ["False"], within=CONTROLLER_S, what=name)
