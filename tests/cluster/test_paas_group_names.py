"""Names of groups between Paas, the identity provider and the cluster: a name never has two meanings (4.9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from paasing import Paasing, paas_name, together
from people import swept, token
from righting import SHAPE, Change, anyway, group_names, has_users, history, in_order, named, refused, righting, sweep
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, NAMESPACE, ROLE_BINDING, Object, is_terminating, labels_of
from tenantry.model.paas.names import GROUP, MANAGED_BY_PAAS, PAAS, PAAS_UID, SUBJECTS_FINALIZER
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

RIGHTS = "tenantry.dev/Rights"
CONFLICT = "GroupConflict"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(knative: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """Namespaces and rights, with OpenShift's kinds."""
    return await righting(knative, admin, "os")


async def in_cluster(paasing: Paasing, group: str) -> Object:
    """Bind a group in the whole cluster."""
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    return await paasing.admin.create(
        CLUSTER_ROLE_BINDING, obj(CLUSTER_ROLE_BINDING, f"b-{token()}", roleRef=reference, subjects=[subject])
    )


@pytest.mark.check("p-97")
async def test_a_query_gives_the_name_that_is_bound(system: Knative, paasing: Paasing) -> None:
    """The rows of the table of 2.3: a subject, or nothing and InvalidGroup; other groups are bound all the same."""
    good = {
        "CN=a1,OU=x": "a1",
        "CN=a2,..": "a2",
        "a3": "a3",
        "cn = a4 ,OU=x": "a4",
        "CN=a=5,OU=x": "a=5",
        r"CN=Doe\, John,OU=x": "Doe, John",
    }
    bad = ["CN=", ",OU=x", "CN=a+OU=b", "CN=system:authenticated", r"CN=\73ystem:masters"]
    for query in bad:
        await refused(paasing, "query", groups={"x": {"query": query}})
    name = paas_name()
    groups = {f"k{number}": {"query": query} for number, query in enumerate([*good, *bad])}
    await anyway(paasing, (SHAPE,), PAAS, obj(PAAS, name, spec={"quota": {}, "groups": groups, "namespaces": {"a": {}}}))
    await paasing.bound(f"{name}-a", {"paas-view": sorted(good.values())})
    told = await paasing.says(name, RIGHTS, "InvalidGroup", status="False")
    assert all(f"'k{len(good) + number}'" in told["message"] for number in range(len(bad)))


@pytest.mark.check("p-49")
@pytest.mark.check("p-80")
async def test_names_of_kubernetes_are_bound_at_no_moment(system: Knative, paasing: Paasing) -> None:
    """Whatever way they are written; it is told, and nothing else suffers."""
    queries = ["CN=system:authenticated", r"CN=\73ystem:authenticated", "system:masters", "CN=system:serviceaccounts,OU=x"]
    for query in queries:
        await refused(paasing, groups={"x": {"query": query}})
    name = paas_name()
    groups = {"us": {"users": ["me"]}, **{f"k{number}": {"query": query} for number, query in enumerate(queries)}}
    spec = {"quota": {}, "groups": groups, "namespaces": {"a": {}}}
    async with history(paasing.admin, ROLE_BINDING) as seen:
        await anyway(paasing, (SHAPE,), PAAS, obj(PAAS, name, spec=spec))
        await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-us"]})
        await paasing.says(name, RIGHTS, "InvalidGroup", status="False")
        await sweep(system)
        await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-us"]})
        await eventually(lambda: _has(seen, f"{name}-us"), within=5, what="the watch has the binding")
    names = {each for change in seen if labels_of(change.found).get(MANAGED_BY_PAAS) for each in group_names(change.found)}
    assert not [each for each in names if each.startswith("system:")]


async def _has(seen: list[Change], group: str) -> bool:
    return any(group in group_names(change.found) for change in seen)


@pytest.mark.check("p-98")
async def test_names_that_do_not_show_are_not_bound(system: Knative, paasing: Paasing) -> None:
    """Keys and queries with characters that end lines or turn them round."""
    characters = ["\n", "\r", "\t", "\u2028", "\u202e"]  # no NUL: the API server itself takes no such text
    name = paas_name()
    groups: dict[str, dict[str, object]] = {f"a{each}b": {} for each in characters}
    groups |= {f"q{number}": {"query": f"CN=a{each}b"} for number, each in enumerate([*characters, "\\00"])}
    for key, group in groups.items():
        await refused(paasing, groups={key: group})
    spec = {"quota": {}, "groups": {**groups, "us": {}}, "namespaces": {"a": {}}}
    await anyway(paasing, (SHAPE,), PAAS, obj(PAAS, name, spec=spec), anew=True)
    await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-us"]})
    await paasing.says(name, RIGHTS, "InvalidGroup", status="False")


@pytest.mark.check("p-48")
async def test_a_group_that_is_not_ours_is_left_alone(system: Knative, paasing: Paasing) -> None:
    """Also one with our label: nothing of it changes, nothing names it, and the other groups are bound."""
    name = paas_name()
    theirs = [
        await paasing.admin.create(GROUP, obj(GROUP, f"{name}-admins", users=["root"])),
        await paasing.admin.create(GROUP, obj(GROUP, f"{name}-marked", labels={MANAGED_BY_PAAS: name}, users=["root"])),
    ]
    groups = {"admins": {"users": ["mallory"]}, "marked": {"users": ["mallory"]}, "us": {"users": ["me"]}}
    await paasing.paas(name, groups=groups, namespaces={"a": {}})
    await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-us"]})
    await paasing.says(name, RIGHTS, CONFLICT, f"{name}-admins", status="False")
    await paasing.says(name, "HasErrors", CONFLICT, status="True")
    await sweep(system)
    for before in theirs:
        assert (await paasing.get(GROUP, before["metadata"]["name"])) == before
    await paasing.leave(name)
    for before in theirs:
        assert (await paasing.get(GROUP, before["metadata"]["name"])) == before


@pytest.mark.check("p-70")
async def test_what_was_there_before_a_paas_stays_as_it_is(system: Knative, paasing: Paasing) -> None:
    """Namespaces with and without a controller, and a Group; what is left of the Paas is there, and each conflict is told."""
    name, admin = paas_name(), paasing.admin
    view = await paasing.get(CLUSTER_ROLE, "view")
    owner = {"apiVersion": CLUSTER_ROLE.api_version, "kind": CLUSTER_ROLE.kind, "name": "view", "uid": view["metadata"]["uid"]}
    owned = {"ownerReferences": [{**owner, "controller": True}]}
    before = {
        (NAMESPACE, f"{name}-one"): await admin.create(NAMESPACE, obj(NAMESPACE, f"{name}-one")),
        (NAMESPACE, f"{name}-two"): await admin.create(NAMESPACE, obj(NAMESPACE, f"{name}-two", metadata=owned)),
        (GROUP, f"{name}-admins"): await admin.create(GROUP, obj(GROUP, f"{name}-admins", labels={"a": "b"}, users=["root"])),
    }
    groups = {"admins": {"users": ["mallory"]}, "us": {"users": ["me"]}}
    await paasing.paas(name, groups=groups, namespaces={"one": {}, "two": {}, "three": {}})
    await paasing.bound(f"{name}-three", {"paas-view": [f"{name}-us"]})
    for words in (f"{name}-one", f"{name}-two", f"{name}-admins"):
        await paasing.says(name, "HasErrors", "NamespaceConflict", words, status="True")
    await sweep(system)
    for (kind, called), found in before.items():
        assert await paasing.get(kind, called) == found
    assert not await paasing.bindings(f"{name}-one")


MANAGER = "tenantry-namespace-registration-paas"


@pytest.mark.check("p-166")
async def test_a_namespace_with_forged_marks_is_not_the_paas(system: Knative, paasing: Paasing) -> None:
    """Made before a Paas wants its name, by somebody whom no policy stops, with each mark but for the proof, and with all: each
    stays as it is, nothing is bound in it, and it is told."""
    name, admin = paas_name(), paasing.admin
    uid = "e1d8f1a2-0000-4000-8000-000000000000"  # a Paas that is not there yet has none that anybody could know
    other = await paasing.paas(paas_name())
    owner = {"apiVersion": PAAS.api_version, "kind": "Paas", **{part: other["metadata"][part] for part in ("name", "uid")}}
    fields = {"f:metadata": {"f:labels": {f"f:{MANAGED_BY_PAAS}": {}}}}
    by_hand = {"manager": MANAGER, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    forged: dict[str, Object] = {
        "label": {"labels": {MANAGED_BY_PAAS: name}},
        "annotation": {"annotations": {PAAS_UID: uid}},
        "finalizer": {"finalizers": [SUBJECTS_FINALIZER]},
        "owner": {"ownerReferences": [owner]},
        "fields": {"labels": {MANAGED_BY_PAAS: name}, "managedFields": [{**by_hand, "time": "2026-01-01T00:00:00Z"}]},
    }
    forged["all"] = {part: value for each in forged.values() for part, value in each.items()}
    before = {}
    for entry, metadata in forged.items():
        before[entry] = await admin.create(NAMESPACE, obj(NAMESPACE, f"{name}-{entry}", metadata=metadata))
    await paasing.paas(name, groups={"us": {"users": ["me"]}}, namespaces={"good": {}, **{each: {} for each in forged}})
    await paasing.bound(f"{name}-good", {"paas-view": [f"{name}-us"]})
    for type_ in ("tenantry.dev/Namespaces", "HasErrors"):
        told = await paasing.says(name, type_, "NamespaceConflict")
        assert [each for each in forged if f"namespace {name}-{each} " not in told["message"]] == []
    await sweep(system)
    assert (await swept(system, "namespace-registration"))[0] == 204
    for entry, made in before.items():
        assert await paasing.get(NAMESPACE, f"{name}-{entry}") == made
        assert await paasing.bindings(f"{name}-{entry}") == {}
    await paasing.leave(name)
    for entry in forged:
        assert not is_terminating(await paasing.get(NAMESPACE, f"{name}-{entry}"))
    for entry in ("finalizer", "all"):
        await paasing.edit(NAMESPACE, f"{name}-{entry}", "", ("remove", "/metadata/finalizers", None))


@pytest.mark.check("p-99")
@pytest.mark.parametrize("order", ["one after the other", "at the same moment"])
async def test_two_paas_that_generate_one_name(system: Knative, paasing: Paasing, order: str) -> None:
    """Exactly one has the Group with its users; no binding of the other names it, and the other says so."""
    first = f"{paas_name()}"
    longer, group = f"{first}-b", f"{first}-b-c"
    specs = {
        first: {"groups": {"b-c": {"users": ["one"]}}, "namespaces": {"x": {}}},
        longer: {"groups": {"c": {"users": ["two"]}}, "namespaces": {"y": {}}},
    }
    async with history(paasing.admin, ROLE_BINDING) as seen:
        if order == "at the same moment":
            await together(*(paasing.paas(name, **spec) for name, spec in specs.items()))
        else:
            await paasing.paas(longer, **specs[longer])
            await paasing.paas(first, **specs[first])
        found = await paasing.until(GROUP, group, "", lambda _: True)
        has = labels_of(found)[MANAGED_BY_PAAS]
        (lacks,) = set(specs) - {has}
        place = {first: "x", longer: "y"}
        await paasing.bound(f"{has}-{place[has]}", {"paas-view": [group]})
        await paasing.says(lacks, RIGHTS, CONFLICT, group, status="False")
        await sweep(system)
    assert await paasing.users(group) == (["one"] if has == first else ["two"])
    assert await named(paasing, group, lacks) == []
    bindings = [change.found for change in seen if change.found["metadata"]["namespace"] == f"{lacks}-{place[lacks]}"]
    assert not [each for each in bindings if group in group_names(each)]

    await paasing.leave(has)  # the name is free
    await paasing.bound(f"{lacks}-{place[lacks]}", {"paas-view": [group]})
    await paasing.says(lacks, RIGHTS, "Reconciling", status="True")


@pytest.mark.check("p-100")
@pytest.mark.parametrize("younger", [True, False])
async def test_a_name_that_a_query_binds_is_not_generated(system: Knative, paasing: Paasing, younger: bool) -> None:
    """Whoever is older: users of one Paas never get what another has bound."""
    asking, name = paas_name(), paas_name()
    if not younger:
        await paasing.paas(name, namespaces={"a": {}})
    await paasing.paas(asking, groups={"x": {"query": f"CN={name}-admins"}}, namespaces={"a": {}})
    await paasing.bound(f"{asking}-a", {"paas-view": [f"{name}-admins"]})
    await paasing.paas(name, groups={"admins": {"users": ["mallory"]}}, namespaces={"a": {}})
    await paasing.says(name, RIGHTS, CONFLICT, f"{name}-admins", status="False")
    assert await paasing.users(f"{name}-admins") is None
    await paasing.bound(f"{asking}-a", {"paas-view": [f"{name}-admins"]})
    assert await named(paasing, f"{name}-admins", name) == []


@pytest.mark.check("p-101")
async def test_a_query_does_not_bind_the_group_of_another_paas(system: Knative, paasing: Paasing) -> None:
    """It is told to whoever asks for it; the other Paas is unchanged."""
    name, asking = paas_name(), paas_name()
    await paasing.paas(name, groups={"us": {"users": ["me"]}}, namespaces={"a": {}})
    await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-us"]})
    before = await paasing.get(GROUP, f"{name}-us")
    await paasing.paas(asking, groups={"x": {"query": f"CN={name}-us"}, "y": {"query": "free"}}, namespaces={"a": {}})
    await paasing.says(asking, RIGHTS, CONFLICT, f"{name}-us", status="False")
    await paasing.bound(f"{asking}-a", {"paas-view": ["free"]})
    assert await paasing.get(GROUP, f"{name}-us") == before
    await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-us"]})


@pytest.mark.check("p-102")
async def test_a_name_that_the_cluster_binds_is_not_generated(system: Knative, paasing: Paasing) -> None:
    """No Group fills a name that somebody has given rights everywhere; when that binding goes, the next sweep makes it."""
    name = paas_name()
    everywhere = await in_cluster(paasing, f"{name}-admins")
    await paasing.paas(name, groups={"admins": {"users": ["mallory"]}}, namespaces={"a": {}})
    await paasing.says(name, RIGHTS, CONFLICT, "ClusterRoleBinding", status="False")
    await sweep(system)
    assert await paasing.users(f"{name}-admins") is None
    await paasing.admin.delete(CLUSTER_ROLE_BINDING, everywhere["metadata"]["name"])
    await sweep(system)
    await has_users(paasing, f"{name}-admins", ["mallory"])
    await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-admins"]})


@pytest.mark.check("p-103")
async def test_a_name_passes_from_one_paas_to_another(system: Knative, paasing: Paasing) -> None:
    """At no moment has a namespace of the first a binding to the name while the Group has the users of the second."""
    first = paas_name()
    second, group = f"{first}-b", f"{first}-b-c"
    await paasing.paas(first, groups={"b-c": {"users": ["one"]}}, namespaces={"x": {}, "y": {}, "z": {}})
    await together(*(paasing.bound(f"{first}-{each}", {"paas-view": [group]}) for each in "xyz"))
    await paasing.paas(second, groups={"c": {"users": ["two"]}}, namespaces={"x": {}})
    await paasing.says(second, RIGHTS, CONFLICT, group, status="False")
    async with history(paasing.admin, ROLE_BINDING, GROUP) as seen:
        await paasing.paas(first, namespaces={"x": {}, "y": {}, "z": {}})
        await paasing.bound(f"{second}-x", {"paas-view": [group]})
        await eventually(lambda: _has_bound(seen, f"{second}-x", group), within=5, what="the watch has the binding")
    bound: set[str] = {f"{first}-{each}" for each in "xyz"}
    users: list[str] = ["one"]
    for change in in_order(seen):
        metadata = change.found["metadata"]
        if change.kind == GROUP and metadata["name"] == group:
            users = [] if change.gone else list(change.found.get("users") or ())
        elif change.kind == ROLE_BINDING and metadata["namespace"].startswith(f"{first}-") and metadata["name"] == "paas-view":
            (bound.discard if change.gone or group not in group_names(change.found) else bound.add)(metadata["namespace"])
        theirs = {each for each in bound if not each.startswith(f"{second}-")}
        assert not (theirs and users == ["two"]), change
    assert users == ["two"]
    assert (await paasing.get(GROUP, group))["metadata"]["annotations"][PAAS_UID]


async def _has_bound(seen: list[Change], namespace: str, group: str) -> bool:
    return any(
        change.kind == ROLE_BINDING and change.found["metadata"]["namespace"] == namespace and group in group_names(change.found)
        for change in seen
    )
