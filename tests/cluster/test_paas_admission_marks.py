"""Marks of Paas: who may write a namespace, or has everything in it, changes none of them, in no way that the API has."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

import pytest
import pytest_asyncio
from admitting import DRY, MERGE, V2, Admitting, Answer, paas, says
from paasing import CONFIG, make_world, paas_name
from people import may, token
from rights import account, cluster_role, user
from times import CONTROLLER_S

from tenantry.api import Api
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    RESOURCE_QUOTA,
    ROLE_BINDING,
    Kind,
    Object,
)
from tenantry.model.names import ADOPT
from tenantry.model.paas.names import (
    ASKED_BY,
    CLUSTER_RESOURCE_QUOTA,
    GROUP,
    MANAGED_BY_PAAS,
    PAAS_UID,
    SHARED,
    SUBJECTS_FINALIZER,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

MARKS, QUOTA_LABEL = "tenantry-guard-paas-marks", "tenantry-guard-paas-quota-label"
LABEL = "clusterquotagroup"
WRITE = ["get", "list", "create", "update", "patch"]
OWNER = {"apiVersion": V2, "kind": "Paas", "name": "my-paas", "uid": "e1d8f1a2-0000-4000-8000-000000000000"}
MANAGER = "tenantry-namespace-registration-paas"
WRITTEN = "written by the functions of Tenantry, and by who may update every Paas"


class Scene(NamedTuple):
    """A namespace of a Paas as the functions leave it, and the Paas; a tenant who has everything in it; who may write all
    namespaces; and who may update every Paas besides."""

    home: str
    owner: Object
    tenant: str
    labeller: str
    author: str


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scene(admitting: Admitting, admin: Api) -> AsyncIterator[Scene]:
    await make_world(admin, "os")
    await admitting.configure(**CONFIG)
    name, run = paas_name(), token()
    stored, home = await admitting.made(paas(name)), f"{name}-cicd"
    owner = {**OWNER, "name": name, "uid": stored["metadata"]["uid"]}
    marks = {PAAS_UID: "uid-1", ASKED_BY: "a/b"}
    more = {"finalizers": [SUBJECTS_FINALIZER]}
    labels = {MANAGED_BY_PAAS: name, LABEL: "q"}
    await admin.create(NAMESPACE, obj(NAMESPACE, home, labels=labels, annotations=marks, metadata=more))
    subject = account("tenant", home)
    await admin.create(ROLE_BINDING, obj(ROLE_BINDING, "tenant", home, roleRef=cluster_role("cluster-admin"), subjects=[subject]))
    labeller, author = f"labeller-{run}", f"author-{run}"
    rules = [
        {"apiGroups": [""], "resources": ["namespaces", "namespaces/status", "namespaces/finalize"], "verbs": WRITE},
        {"apiGroups": [""], "resources": ["resourcequotas", "resourcequotas/status"], "verbs": WRITE},
        {"apiGroups": [ROLE_BINDING.group], "resources": ["rolebindings", "clusterrolebindings"], "verbs": WRITE},
        {"apiGroups": [ROLE_BINDING.group], "resources": ["clusterroles"], "verbs": ["bind"]},
        {
            "apiGroups": [GROUP.group, CLUSTER_RESOURCE_QUOTA.group],
            "resources": ["groups", "clusterresourcequotas"],
            "verbs": WRITE,
        },
    ]
    one = {"apiGroups": ["cpet.belastingdienst.nl"], "resources": ["paas"], "resourceNames": ["my-paas"], "verbs": ["update"]}
    every = {"apiGroups": ["cpet.belastingdienst.nl"], "resources": ["paas"], "verbs": ["update"]}
    for name, more_rules in ((labeller, [one]), (author, [every])):
        await grant(admin, name, [*rules, *more_rules], user(name))
    await eventually(lambda: may(admin, author, "update", "paas", group="cpet.belastingdienst.nl"), within=CONTROLLER_S)
    tenant = f"system:serviceaccount:{home}:tenant"
    await eventually(lambda: may(admin, tenant, "update", "namespaces", home, name=home), within=CONTROLLER_S)
    yield Scene(home, owner, tenant, labeller, author)
    await admin.json_patch(NAMESPACE, home, "", [{"op": "remove", "path": "/metadata/finalizers"}])
    await admin.delete(NAMESPACE, home)
    await admitting.forget()


async def grant(admin: Api, name: str, rules: Sequence[Object], subject: Object) -> None:
    await admin.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, name, rules=list(rules)))
    await admin.create(CLUSTER_ROLE_BINDING, obj(CLUSTER_ROLE_BINDING, name, roleRef=cluster_role(name), subjects=[subject]))


async def put(admitting: Admitting, home: str, who: str, subresource: str, **metadata: object) -> Answer:
    """Write a namespace as a whole, with other metadata; through a subresource if one is named."""
    live = await admitting.admin.get(NAMESPACE, home)
    assert live is not None
    body = copy.deepcopy(live)
    for part, value in metadata.items():
        body["metadata"][part] = {**(body["metadata"].get(part) or {}), **value} if isinstance(value, dict) else value
        if isinstance(value, dict):
            body["metadata"][part] = {key: text for key, text in body["metadata"][part].items() if text is not None}
    path = NAMESPACE.path("", home) + (f"/{subresource}" if subresource else "")
    return await admitting.ask("PUT", path, body, user=who, query=DRY)


@pytest.mark.check("p-60", without=(MARKS, QUOTA_LABEL))
@pytest.mark.parametrize("subresource", ["", "status", "finalize"])
async def test_a_tenant_with_everything_in_his_namespace_does_not_change_its_marks(
    admitting: Admitting, scene: Scene, subresource: str
) -> None:
    """A ServiceAccount with cluster-admin by RoleBinding: label, quota label, annotations, finalizer and owner of the namespace
    stay, whichever way he takes; a label of his own he writes."""
    changes: list[tuple[str, dict[str, object]]] = [
        (f"metadata.labels[{MANAGED_BY_PAAS}]", {"labels": {MANAGED_BY_PAAS: "other"}}),
        (f"metadata.labels[{MANAGED_BY_PAAS}]", {"labels": {MANAGED_BY_PAAS: None}}),
        (f"metadata.labels[{LABEL}]", {"labels": {LABEL: "other"}}),
        (f"metadata.labels[{LABEL}]", {"labels": {LABEL: None}}),
        (f"metadata.annotations[{PAAS_UID}]", {"annotations": {PAAS_UID: "other"}}),
        (f"metadata.annotations[{PAAS_UID}]", {"annotations": {PAAS_UID: None}}),
        (f"metadata.annotations[{ASKED_BY}]", {"annotations": {ASKED_BY: "other/b"}}),
        (f"metadata.finalizers[{SUBJECTS_FINALIZER}]", {"finalizers": []}),
        ("metadata.ownerReferences[Paas]", {"ownerReferences": [OWNER]}),
    ]
    for path, metadata in changes:
        says(await put(admitting, scene.home, scene.tenant, subresource, **metadata), path)
    own = await put(admitting, scene.home, scene.tenant, subresource, labels={"team": "x"}, annotations={"team": "x"})
    assert own.status == 200, own


@pytest.mark.parametrize("change", [{MANAGED_BY_PAAS: "my-paas"}, {LABEL: "my-paas"}])
async def test_a_namespace_is_not_labelled_into_a_paas(admitting: Admitting, scene: Scene, change: Object) -> None:
    """Who may write namespaces puts no label of a Paas on one, new or there: it would use up a quota that is not his."""
    (key,) = change
    names = NAMESPACE.path()
    new = obj(NAMESPACE, f"n-{token()}", labels=change)
    says(await admitting.ask("POST", names, new, user=scene.labeller, query=DRY), f"metadata.labels[{key}]")
    says(await put(admitting, "default", scene.labeller, "", labels=change), f"metadata.labels[{key}]")
    for who in ("", scene.author):
        assert (await admitting.ask("POST", names, new, user=who, query=DRY)).status == 201
        assert (await put(admitting, "default", who, "", labels=change)).status == 200


@pytest.mark.check("p-166", without=MARKS)
@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ({"labels": {MANAGED_BY_PAAS: "my-paas"}}, f"metadata.labels[{MANAGED_BY_PAAS}]"),
        ({"annotations": {PAAS_UID: "uid"}}, f"metadata.annotations[{PAAS_UID}]"),
        ({"annotations": {ASKED_BY: "a/b"}}, f"metadata.annotations[{ASKED_BY}]"),
        ({"annotations": {SHARED: "permissions"}}, f"metadata.annotations[{SHARED}]"),
        ({"finalizers": [SUBJECTS_FINALIZER]}, f"metadata.finalizers[{SUBJECTS_FINALIZER}]"),
        ({"ownerReferences": [OWNER]}, "metadata.ownerReferences[Paas]"),
        ({}, f"metadata.managedFields[{MANAGER}]"),
    ],
)
async def test_a_namespace_is_not_made_with_marks(admitting: Admitting, scene: Scene, metadata: Object, path: str) -> None:
    """Who may only create namespaces makes none that looks like one of a Paas, nor any under the name of a field manager of ours;
    administrators and authors may."""
    body = obj(NAMESPACE, f"{paas_name()}-x", metadata=metadata)
    names, query = NAMESPACE.path(), DRY if metadata else {**DRY, "fieldManager": MANAGER}
    says(await admitting.ask("POST", names, body, user=scene.labeller, query=query), path, WRITTEN)
    for who in ("", scene.author):
        assert (await admitting.ask("POST", names, body, user=who, query=query)).status == 201


@pytest.mark.check("p-166", without=MARKS)
async def test_no_entry_of_our_managers_is_written_by_hand(admitting: Admitting, scene: Scene) -> None:
    """In a new namespace the API server itself drops what somebody writes as managedFields; later it would be taken, and is
    refused."""
    owned = {"f:metadata": {"f:labels": {"f:kubernetes.io/metadata.name": {}}}}
    fields = {"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": owned}
    by_hand = {"manager": MANAGER, "operation": "Apply", "time": "2026-01-01T00:00:00Z", **fields}
    body = obj(NAMESPACE, f"{paas_name()}-x", labels={"team": "a"}, metadata={"managedFields": [by_hand]})
    answer = await admitting.ask("POST", NAMESPACE.path(), body, user=scene.labeller, query=DRY)
    assert answer.status == 201, answer
    assert MANAGER not in [each["manager"] for each in answer.body["metadata"]["managedFields"]]
    written = await put(admitting, "default", "", "", managedFields=[by_hand])
    assert MANAGER in [each["manager"] for each in written.body["metadata"]["managedFields"]], written
    written = await put(admitting, "default", scene.labeller, "", managedFields=[by_hand])
    says(written, f"metadata.managedFields[{MANAGER}]", WRITTEN)


async def test_who_may_only_label_hands_no_namespace_to_a_paas(admitting: Admitting, scene: Scene) -> None:
    """Adoption by a Paas is refused to him, and not to an administrator (p-193)."""
    adoption = {ADOPT: "my-paas"}
    says(await put(admitting, "default", scene.labeller, "", annotations=adoption))
    assert (await put(admitting, "default", "", "", annotations=adoption)).status == 200
    keeper = f"keeper-{token()}"  # may write the marks of projects, and not those of Paas
    namespaces = {"apiGroups": [""], "resources": ["namespaces"], "verbs": WRITE}
    marks = {"apiGroups": ["tenantry.dev"], "resources": ["marks"], "verbs": ["write"]}
    await grant(admitting.admin, keeper, [namespaces, marks], user(keeper))
    await eventually(lambda: may(admitting.admin, keeper, "write", "marks", group="tenantry.dev"), within=CONTROLLER_S)
    says(await put(admitting, "default", keeper, "", annotations=adoption), f"metadata.annotations[{ADOPT}]", WRITTEN)
    assert (await put(admitting, "default", keeper, "", annotations={ADOPT: "true"})).status == 200


# -- on what functions make ------------------------------------------------------------------------------------------

BINDING = {"roleRef": cluster_role("view"), "subjects": [user("eve")]}
CARRIERS: list[tuple[Kind, Object]] = [
    (ROLE_BINDING, BINDING),
    (CLUSTER_ROLE_BINDING, BINDING),
    (RESOURCE_QUOTA, {"spec": {"hard": {"pods": "1"}}}),
    (CLUSTER_RESOURCE_QUOTA, {"spec": {}}),
    (GROUP, {"users": ["eve"]}),
]
SET: list[Object] = [
    {"labels": {MANAGED_BY_PAAS: "a"}},
    {"annotations": {PAAS_UID: "u"}},
    {"annotations": {SHARED: "quota"}},
    {"ownerReferences": [OWNER]},
]


@pytest.mark.parametrize(("kind", "fields"), CARRIERS, ids=[kind.kind for kind, _ in CARRIERS])
async def test_marks_on_what_functions_make_are_theirs(admitting: Admitting, scene: Scene, kind: Kind, fields: Object) -> None:
    """On bindings, quotas and Groups nobody else sets, changes or removes one; other labels are his who may write the object."""
    namespace = "default" if kind.namespaced else ""
    marked = obj(kind, f"m-{token()}", namespace, {MANAGED_BY_PAAS: "a"}, {PAAS_UID: "u", SHARED: "x"}, **fields)
    await admitting.admin.create(kind, {**marked, "metadata": {**marked["metadata"], "ownerReferences": [scene.owner]}})

    async def change(**metadata: object) -> Answer:
        path = kind.path(namespace, marked["metadata"]["name"])
        return await admitting.ask("PATCH", path, {"metadata": metadata}, user=scene.labeller, content=MERGE, query=DRY)

    for metadata in SET:
        new = obj(kind, f"n-{token()}", namespace, metadata=metadata, **fields)
        says(await admitting.ask("POST", kind.path(namespace), new, user=scene.labeller, query=DRY), WRITTEN)
        (part,) = metadata
        says(await change(**({part: []} if part == "ownerReferences" else {part: dict.fromkeys(metadata[part])})), WRITTEN)
        if part != "ownerReferences":
            says(await change(**{part: dict.fromkeys(metadata[part], "other")}), WRITTEN)
    answer = await change(labels={"team": "x"}, annotations={"team": "x"})
    assert answer.status == 200, answer
    plain = obj(kind, f"n-{token()}", namespace, {"team": "x"}, **fields)
    assert (await admitting.ask("POST", kind.path(namespace), plain, user=scene.labeller, query=DRY)).status == 201
    await admitting.admin.delete(kind, marked["metadata"]["name"], namespace)


async def test_a_tenant_takes_no_mark_off_his_quota_by_its_status(admitting: Admitting, scene: Scene) -> None:
    """Labels and annotations of a ResourceQuota can be written through its status, too."""
    body = obj(RESOURCE_QUOTA, "paas-quota", scene.home, annotations={PAAS_UID: "u"}, spec={"hard": {"pods": "1"}})
    stored = await admitting.admin.create(RESOURCE_QUOTA, body)
    path = RESOURCE_QUOTA.path(scene.home, "paas-quota")
    kept = ("name", "namespace")
    bare = {**stored, "metadata": {key: stored["metadata"][key] for key in kept}}
    for subresource in ("", "/status"):
        answer = await admitting.ask("PUT", path + subresource, bare, user=scene.tenant, query=DRY)
        says(answer, f"metadata.annotations[{PAAS_UID}]")


async def test_bindings_of_a_paas_are_not_made_by_tenants(admitting: Admitting, scene: Scene) -> None:
    """An admin of a Paas' namespace makes RoleBindings of his own, but none that is called paas-*, which elsewhere anybody does
    (p-167)."""

    async def made(name: str, namespace: str, who: str) -> Answer:
        body = obj(ROLE_BINDING, name, namespace, **BINDING)
        return await admitting.ask("POST", ROLE_BINDING.path(namespace), body, user=who, query=DRY)

    owner = f"owner-{token()}"
    subjects = [user(owner)]
    await admitting.admin.create(
        ROLE_BINDING, obj(ROLE_BINDING, owner, scene.home, roleRef=cluster_role("admin"), subjects=subjects)
    )
    await eventually(
        lambda: may(admitting.admin, owner, "create", "rolebindings", scene.home, group=ROLE_BINDING.group), within=10
    )
    for who in (owner, scene.tenant):
        said = says(await made("paas-admin", scene.home, who))
        assert "metadata.name: paas-admin" in said
        assert (await made("mine", scene.home, who)).status == 201
    assert (await made("paas-admin", "default", scene.labeller)).status == 201
    assert (await made("paas-admin", scene.home, "")).status == 201


# -- who works on them -----------------------------------------------------------------------------------------------


async def test_functions_and_controllers_are_let_pass(admitting: Admitting, scene: Scene) -> None:
    """scope-binding's identity for Paas holds a namespace and lets it go; the garbage collector takes owners off; another
    identity of Tenantry, and an account that is only called like one, do neither."""
    await admitting.admin.create(NAMESPACE, obj(NAMESPACE, held := f"n-{token()}", metadata={"ownerReferences": [scene.owner]}))
    system = "system:serviceaccount:tenantry-system:"
    namespaces = {"apiGroups": [""], "resources": ["namespaces"], "verbs": WRITE}
    pass_by = f"{system}scope-binding-paas"
    collector = "system:serviceaccount:kube-system:generic-garbage-collector"
    others = (f"{system}dead-letters", f"system:serviceaccount:{scene.home}:scope-binding-paas")
    for who in (pass_by, collector, *others):
        await grant(admitting.admin, f"g-{token()}", [namespaces], user(who))
        await eventually(lambda who=who: may(admitting.admin, who, "update", "namespaces"), within=CONTROLLER_S)  # type: ignore[misc]

    async def change(who: str, name: str, **metadata: object) -> Answer:
        patch = {"metadata": metadata}
        return await admitting.ask("PATCH", NAMESPACE.path("", name), patch, user=who, content=MERGE, query=DRY)

    await admitting.namespace(free := f"{scene.owner['name']}-x", scene.owner["name"])
    for name, finalizers in ((free, [SUBJECTS_FINALIZER]), (scene.home, [])):
        answer = await change(pass_by, name, finalizers=finalizers)
        assert answer.status == 200, answer
        for who in others:
            says(await change(who, name, finalizers=finalizers), f"metadata.finalizers[{SUBJECTS_FINALIZER}]")
    assert (await change(collector, held, ownerReferences=[])).status == 200
    for who in others:
        says(await change(who, held, ownerReferences=[]), "metadata.ownerReferences[Paas]")
    for name in (free, held):
        await admitting.admin.delete(NAMESPACE, name)


async def test_the_quota_label_follows_the_configuration(admitting: Admitting, scene: Scene) -> None:
    """Guarded is the key that is configured, and without a PaasConfig none."""
    await admitting.configure(quota_label="example.com/quota")
    says(
        await put(admitting, "default", scene.labeller, "", labels={"example.com/quota": "a"}),
        "metadata.labels[example.com/quota]",
    )
    assert (await put(admitting, "default", scene.labeller, "", labels={LABEL: "a"})).status == 200
    await admitting.forget()
    assert (await put(admitting, "default", scene.labeller, "", labels={"example.com/quota": "a"})).status == 200
    await admitting.configure(**CONFIG)
