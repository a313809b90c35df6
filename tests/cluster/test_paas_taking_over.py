"""Taking over from opr-paas: what it left stays in place, and what proves nothing is nobody's (4.23)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from admitting import V1, Admitting
from flawless import Calm
from handing_over import OTHER, HandingOver, handing
from left_behind import (
    CAPABILITIES,
    FUNCTIONS,
    KEPT,
    MONITORING,
    PLACES,
    SHARED_QUOTA,
    WITHDRAWN,
    Address,
    Left,
    Upstream,
    missing_for_a_moment,
    quota,
    reference,
    shared,
)
from paasing import CONFIG_NAME, example, make_roles, paas_name, together
from people import may, swept, token
from righting import Change, binding, example_bindings, has_users, history
from rights import cluster_role, user
from times import CONTROLLER_S
from upping import tenantry

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE_BINDING,
    Kind,
    Object,
    annotations_of,
    labels_of,
)
from tenantry.model.names import ADOPT
from tenantry.model.paas.names import (
    APPLICATION_SET,
    CLUSTER_RESOURCE_QUOTA,
    ELEMENTS,
    GROUP,
    MANAGED_BY_PAAS,
    PAAS,
    PAAS_CONFIG,
    PAAS_FINALIZER,
    PAAS_NS,
    PAAS_UID,
    SHARED,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

PART, RIGHTS = "tenantry.dev/Namespaces", "tenantry.dev/Rights"
FINALIZERS = {PAAS_NS: "paasns.cpet.belastingdienst.nl/finalizer", PAAS_CONFIG: "paasconfig.cpet.belastingdienst.nl/finalizer"}


@pytest.fixture(scope="module")
def paasing(admin: Api) -> HandingOver:
    """Authors of Paas, and the administrator of the PaasConfig and of ApplicationSets."""
    return HandingOver(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api, paasing: HandingOver) -> Knative:
    """All functions that have a part in Paas, where Argo CD is."""
    await make_roles(admin, [WITHDRAWN])
    running = await handing(flawlessly, admin, functions=FUNCTIONS)
    await together(paasing.application_set(), paasing.application_set(OTHER))
    await paasing.config(capabilities=CAPABILITIES)
    return running


@asynccontextmanager
async def stopped(system: Knative) -> AsyncIterator[None]:
    """For as long as the block lasts no function is at work; afterwards all start, and sweep as everything does that starts."""
    await system.drain()
    await asyncio.gather(*(each.stop() for each in system.functions.values()))
    try:
        yield
    finally:
        await asyncio.gather(*(each.start() for each in system.functions.values()))
    await sweep(system)


async def sweep(system: Knative) -> None:
    """All functions look at everything."""
    answers = await asyncio.gather(*(swept(system, each) for each in FUNCTIONS))
    assert [status for status, _ in answers] == [204] * len(FUNCTIONS), answers


async def marked(paasing: HandingOver, left: Left) -> None:
    """Wait until everything that stays has our mark, and what it left behind is gone."""

    async def has_mark(address: Address) -> bool:
        found = await paasing.get(address.kind, address.name, address.namespace)
        marks = annotations_of(found)
        if address.kind == APPLICATION_SET:
            return marks.get(ELEMENTS) == "argocd"
        if address.kind == CLUSTER_ROLE_BINDING or address.name == SHARED_QUOTA:
            return SHARED in marks
        paas = left.paas.get(labels_of(found).get(MANAGED_BY_PAAS, ""))
        return paas is not None and marks.get(PAAS_UID) == paas["metadata"]["uid"]

    async def unmarked() -> list[Address]:
        found = await asyncio.gather(*(has_mark(each) for each in left.stays))
        return [each for each, has in zip(left.stays, found, strict=True) if not has]

    await eventually(unmarked, lambda found: not found, within=paasing.eventually_s, what="everything has our mark")
    await together(*(paasing.away(*each) for each in left.goes))


@pytest.mark.parametrize(
    "version",
    [
        pytest.param("v5.9.0", marks=[pytest.mark.check("p-187"), pytest.mark.check("p-190")]),
        pytest.param("v3.2.1", marks=pytest.mark.check("p-188")),
    ],
)
async def test_what_opr_paas_left_is_taken_over_in_place(system: Knative, paasing: HandingOver, version: str) -> None:
    """Three Paas with all that they had: the same objects with our marks, and nothing that is declared is missing at any moment;
    what nobody declares any more goes, and what is others' stays as it is."""
    first = paas_name()
    names = [f"{first}-more", first, paas_name()]
    async with history(paasing.admin, *KEPT) as seen:
        async with stopped(system):
            upstream = Upstream(paasing)
            for name in names:
                await upstream.paas(name, url=f"https://git.example.com/{name}")
            await upstream.together()
            elements = [{"paas": name, "git_url": f"https://git.example.com/{name}"} for name in names]
            await upstream.application_set(elements if version == "v3.2.1" else [])
        left = upstream.left
        await marked(paasing, left)
        await together(*(paasing.ready(name) for name in names))
        await eventually(lambda: _is_seen(left, seen), within=5, what="the watch has seen the marks")
    assert missing_for_a_moment(left, seen) == []

    for address, before in left.stays.items():
        assert (await paasing.get(*address))["metadata"]["uid"] == before["metadata"]["uid"], address
    for name in names:
        for each in await paasing.has_namespaces(name, *PLACES):
            await paasing.bound(each, example_bindings(name))
        homes = (await paasing.namespaces(name)).values()
        assert not any("ownerReferences" in each["metadata"] for each in homes)
        await paasing.element_of(name, {"git_url": f"https://git.example.com/{name}"})
    found = await paasing.get(CLUSTER_ROLE_BINDING, f"paas-{MONITORING}")
    assert [each["namespace"] for each in found["subjects"]] == sorted(f"{name}-argocd" for name in names)
    assert (await paasing.get(CLUSTER_RESOURCE_QUOTA, SHARED_QUOTA))["spec"]["quota"]["hard"] == {"limits.cpu": "3"}
    for address, before in left.theirs.items():
        assert await paasing.get(*address) == before
    await together(*(paasing.leave(name) for name in names))
    await together(paasing.away(CLUSTER_ROLE_BINDING, f"paas-{MONITORING}"), paasing.away(CLUSTER_RESOURCE_QUOTA, SHARED_QUOTA))


async def _is_seen(left: Left, seen: Sequence[Change]) -> bool:
    """Whether a watch has seen a change of everything that stays, and the end of what goes."""
    told = {Address(each.kind, each.found["metadata"]["name"], each.found["metadata"].get("namespace", "")) for each in seen}
    gone = {each.found["metadata"]["uid"] for each in seen if each.gone}
    return told >= {*left.stays, *left.goes} and len(gone) >= len(left.goes)


@pytest.mark.check("p-188")
async def test_what_an_old_release_left_keeps_nothing(system: Knative, paasing: HandingOver, calm: Calm) -> None:
    """Its finalizers are in no deletion's way, and its namespace called like the Paas is told and not deleted."""
    name = paas_name()
    async with stopped(system):
        spec = {"namespaces": {"one": {}}, "quota": {"pods": "9"}}
        body = obj(PAAS, name, spec=spec, metadata={"finalizers": [PAAS_FINALIZER]})
        paas = await paasing.admin.create(PAAS, body, manager="manager")
        bare = obj(NAMESPACE, name, labels={"clusterquotagroup": name}, metadata={"ownerReferences": [reference(paas, V1)]})
        bare = await paasing.admin.create(NAMESPACE, bare)
        home = {"labels": {MANAGED_BY_PAAS: name}, "ownerReferences": [reference(paas, V1)]}
        await paasing.admin.create(NAMESPACE, obj(NAMESPACE, f"{name}-one", metadata=home))
        for key in ("goes", "stays"):
            held = obj(PAAS_NS, key, f"{name}-one", spec={"paas": name}, metadata={"finalizers": [FINALIZERS[PAAS_NS]]})
            await paasing.admin.create(PAAS_NS, held)
    told = await paasing.says(name, f"{PART}Warnings", "Leftover", f"namespace {name} was made", status="True")
    assert "delete it" in told["message"]
    await paasing.has_namespaces(name, "one", "goes", "stays")
    await calm(system)
    await paasing.says(name, "Warnings", "Leftover", status="True")
    assert (await paasing.get(NAMESPACE, name))["metadata"]["resourceVersion"] == bare["metadata"]["resourceVersion"]

    await paasing.admin.delete(PAAS_NS, "goes", f"{name}-one")
    await paasing.away(PAAS_NS, "goes", f"{name}-one")
    await paasing.has_namespaces(name, "one", "stays")
    await paasing.admin.delete(NAMESPACE, name)
    await paasing.gone(name)
    await paasing.says(name, "Warnings", "Reconciling", status="False")
    await paasing.leave(name)
    await paasing.gone(f"{name}-one")

    await paasing.edit(PAAS_CONFIG, CONFIG_NAME, "", ("add", "/metadata/finalizers", [FINALIZERS[PAAS_CONFIG]]))
    await paasing.admin.delete(PAAS_CONFIG, CONFIG_NAME)
    await paasing.away(PAAS_CONFIG, CONFIG_NAME)
    await paasing.config(capabilities=CAPABILITIES)


@pytest.mark.check("p-189")
async def test_what_proves_nothing_is_not_taken_over(system: Knative, paasing: HandingOver, control_plane: ControlPlane) -> None:
    """Another uid, the name alone, the label alone: each stays as it is and is told, and all else is there."""
    name, other, quotas = paas_name(), paas_name(), paas_name()
    label = {MANAGED_BY_PAAS: name}
    kept: list[tuple[Kind, Object]] = []
    # Kubernetes' own collector would delete what has an owner with another uid.
    await asyncio.to_thread(control_plane.stop_controller_manager)
    try:
        async with stopped(system):
            paas, foreign = await paasing.paas(name, **_wanting()), await paasing.paas(other)
            wrong = reference(paas, uid=foreign["metadata"]["uid"])
            proofless = {"uid": {"labels": label, "ownerReferences": [wrong]}, "name": {}, "label": {"labels": label}}
            home = obj(NAMESPACE, f"{name}-ours", metadata={"ownerReferences": [reference(paas)]})
            await paasing.admin.create(NAMESPACE, home)
            for key, metadata in proofless.items():
                kept += [
                    (NAMESPACE, obj(NAMESPACE, f"{name}-{key}", metadata=metadata)),
                    (GROUP, obj(GROUP, f"{name}-{key}", metadata=metadata, users=["root"])),
                    (ROLE_BINDING, binding(f"paas-{ROLE_OF[key]}", f"{name}-ours", ROLE_OF[key], "root", metadata=metadata)),
                ]
            kept.append((CLUSTER_ROLE_BINDING, shared(MONITORING, name, labels={"app.kubernetes.io/part-of": "opr-paas"})))
            nobodys = {**wrong, "uid": NOBODY}
            of_quotas = {"labels": {MANAGED_BY_PAAS: quotas}, "ownerReferences": [{**wrong, "name": quotas}]}
            kept.append((CLUSTER_RESOURCE_QUOTA, quota(quotas, {"pods": "1"}, **of_quotas)))
            kept.append((CLUSTER_RESOURCE_QUOTA, quota(SHARED_QUOTA, {"limits.cpu": "5"}, ownerReferences=[nobodys])))
            made = [(kind, await paasing.admin.create(kind, body)) for kind, body in kept]
        await paasing.paas(quotas, namespaces={"one": {}}, quota={"pods": "9"})
        await together(
            *(paasing.says(name, PART, "NamespaceConflict", f"{name}-{key}", status="False") for key in proofless),
            *(paasing.says(name, RIGHTS, "GroupConflict", f"{name}-{key}") for key in proofless),
            *(paasing.says(name, RIGHTS, "GroupConflict", f"{name}-ours/paas-{role}") for role in ROLE_OF.values()),
            paasing.says(name, "tenantry.dev/ServiceAccounts", "ClusterRoleBindingConflict", MONITORING),
            paasing.says(quotas, PART, "QuotaConflict", quotas),
            paasing.says(CONFIG_NAME, "HasErrors", "QuotaConflict", SHARED_QUOTA, kind=PAAS_CONFIG),
        )
        free = {f"paas-{role}": [f"{name}-free"] for role in ("edit", "alert-routing-edit")}
        await paasing.bound(f"{name}-ours", {**free, **{f"paas-{ROLE_OF[key]}": ["root"] for key in ("uid", "label")}})
        await has_users(paasing, f"{name}-free", ["me"])
        await sweep(system)
        for kind, body in made:
            metadata = body["metadata"]
            assert await paasing.get(kind, metadata["name"], metadata.get("namespace", "")) == body
    finally:
        for kind, body in kept:
            await paasing.admin.delete(kind, body["metadata"]["name"], body["metadata"].get("namespace", ""))
        await asyncio.to_thread(control_plane.start_controller_manager)
    await together(*(paasing.leave(each) for each in (name, other, quotas)))


NOBODY = "00000000-0000-4000-8000-000000000000"
"""No Paas has this uid: any that exists proves that a shared quota is ours."""
ROLE_OF = {"uid": "view", "name": "admin", "label": "monitoring-edit"}
"""The ClusterRole of the binding that is there before, by what it has."""


def _wanting() -> Object:
    """The spec of a Paas that wants all that is there before it."""
    groups = {key: {"users": ["me"], "roles": ["admin", "view"]} for key in ROLE_OF}
    return {
        "groups": {**groups, "free": {"users": ["me"], "roles": ["edit", "admin", "view"]}},
        "namespaces": {"ours": {}, **{key: {} for key in ROLE_OF}},
        "capabilities": {"argocd": {"enabled": True}, "tekton": {"enabled": True}},
        "quota": {"pods": "9"},
    }


# -- what a Paas left ------------------------------------------------------------------------------------------------


@pytest.mark.check("p-192")
async def test_what_a_paas_left_goes_or_is_handed_on(system: Knative, paasing: HandingOver, control_plane: ControlPlane) -> None:
    """With finalizers forced off: rights and quotas go with the next sweep, namespaces stay, are told, and can be adopted."""
    name = paas_name()
    await paasing.paas(name, **example())
    await paasing.ready(name)
    before = await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd")
    await system.drain()
    await asyncio.gather(*(each.stop() for each in system.functions.values()))
    await paasing.admin.delete(PAAS, name)
    await paasing.edit(PAAS, name, "", ("replace", "/metadata/finalizers", []))
    await paasing.away(PAAS, name)
    assert await paasing.bindings(f"{name}-cicd")
    await asyncio.gather(*(each.start() for each in system.functions.values()))
    await sweep(system)
    await together(
        *(paasing.bound(each, {}) for each in before),
        *(paasing.away(kind, f"{name}{end}") for kind, end in ((GROUP, "-us"), (GROUP, "-them"))),
        *(paasing.away(CLUSTER_RESOURCE_QUOTA, f"{name}{end}") for end in ("", "-argocd")),
        eventually(lambda: _named(paasing, name), lambda found: not found, within=paasing.eventually_s, what="no subject"),
        *(paasing.warned(each, "PaasGone") for each in before),
    )
    assert set(await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd")) == set(before)

    await paasing.paas(name, **example())
    await paasing.says(name, PART, "NamespaceConflict", f"namespace {name}-cicd", status="False")
    code, output, errors = await tenantry("paas", "adopt", name, "--yes", "--kubeconfig", str(control_plane.kubeconfig))
    assert (code, errors) == (0, ""), output
    await paasing.ready(name)
    after = await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd")
    assert {each: found["metadata"]["uid"] for each, found in after.items()} == {
        each: found["metadata"]["uid"] for each, found in before.items()
    }
    await together(*(paasing.bound(each, example_bindings(name)) for each in after))
    await paasing.leave(name)


async def _named(paasing: HandingOver, name: str) -> list[Object]:
    """The subjects of ClusterRoleBindings in namespaces of a Paas."""
    found = (await paasing.admin.list(CLUSTER_ROLE_BINDING)).items
    subjects = [each for one in found for each in one.get("subjects") or ()]
    return [each for each in subjects if str(each.get("namespace", "")).startswith(f"{name}-")]


@pytest.mark.check("p-193")
async def test_an_administrator_hands_a_namespace_over(system: Knative, paasing: HandingOver, admitting: Admitting) -> None:
    """Whoever may only label namespaces does not; then it is the Paas' own, with its labels and bindings."""
    name, labeller = paas_name(), f"labeller-{token()}"
    place = f"{name}-test"
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "update", "patch"]}]
    await paasing.admin.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, labeller, rules=rules))
    subjects = [user(labeller)]
    bound = obj(CLUSTER_ROLE_BINDING, labeller, roleRef=cluster_role(labeller), subjects=subjects)
    await paasing.admin.create(CLUSTER_ROLE_BINDING, bound)
    await eventually(lambda: may(paasing.admin, labeller, "patch", "namespaces"), within=CONTROLLER_S)
    before = await paasing.admin.create(NAMESPACE, obj(NAMESPACE, place, labels={"own": "1"}))
    await paasing.paas(name, groups={"us": {"users": ["me"]}}, namespaces={"test": {}}, quota={"pods": "9"})
    await paasing.says(name, PART, "NamespaceConflict", f"tenantry.dev/adopt={name}", status="False")

    merge = "application/merge-patch+json"
    for metadata, allowed in (({"labels": {"team": "x"}}, True), ({"annotations": {ADOPT: name}}, False)):
        path = NAMESPACE.path("", place)
        answer = await admitting.ask("PATCH", path, {"metadata": metadata}, user=labeller, content=merge)
        assert (answer.status == 200) is allowed, answer
        assert allowed or f"metadata.annotations[{ADOPT}]" in answer.message
    assert ADOPT not in annotations_of(await paasing.get(NAMESPACE, place))

    await paasing.label(place, {ADOPT: name}, "annotations")
    await paasing.bound(place, {"paas-view": [f"{name}-us"]})
    await paasing.ready(name)
    found = await paasing.get(NAMESPACE, place)
    assert found["metadata"]["uid"] == before["metadata"]["uid"]
    labels = labels_of(found)
    assert (labels["own"], labels["team"], labels[MANAGED_BY_PAAS], labels["clusterquotagroup"]) == ("1", "x", name, name)
    await paasing.leave(name)
