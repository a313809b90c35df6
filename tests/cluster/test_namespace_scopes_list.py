"""Operators read a list of the members that exist, and restart when it changes (sb-48, 53, 57 to 60, 62 to 64, 80, 82)."""

from __future__ import annotations

import pytest
from flawless import Calm
from operators import HASH, LIST, USES_LIST, Operators, chosen, container, name_of, template, workload
from people import People
from times import SCOPES_S
from watching import history

from scope_binding.namespace_scopes.config_map import WORKLOADS
from scope_binding.namespace_scopes.names import value_hash
from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CONFIG_MAP,
    DAEMON_SET,
    DEPLOYMENT,
    NAMESPACE_SCOPE,
    POD,
    STATEFUL_SET,
    Object,
    annotations_of,
    labels_of,
)
from tenantry.testing import eventually
from tenantry.testing.awaiting import deadline
from tenantry.testing.objects import obj

SCOPE_BINDING = "scope-binding"


@pytest.mark.check("sb-48")
@pytest.mark.check("sb-53")
async def test_missing_member_is_left_out_until_it_exists(own: Operators, people: People) -> None:
    """The list has the from namespace and the members that exist, sorted; one that is created joins at once."""
    await own.begin(1)
    ghost = own.member(9)
    await own.scope(1, ghost, 1)
    await own.listed(1)
    scope = await own.ready("False", "MembersMissing", text=ghost)
    assert scope["status"]["validatedMembers"] == sorted([own.home, own.member(1)])
    await people.namespace(ghost)
    await own.consent(ghost)
    await own.listed(1, ghost)
    await own.given(9, name_of(own, "managed"))
    await own.ready()


@pytest.mark.check("sb-57")
@pytest.mark.check("sb-62")
async def test_every_kind_of_workload_is_restarted_if_it_uses_the_list(own: Operators, admin: Api) -> None:
    """StatefulSets, DaemonSets and Deployments restart, however they use the list; those that do not use it never do."""
    await own.begin(2)
    sources = {
        "init": {"initContainers": [{**container(USES_LIST), "name": "i"}], "containers": [container()]},
        "from": {"containers": [{**container(), "envFrom": [{"configMapRef": {"name": LIST}}]}]},
        "volume": {"containers": [container()], "volumes": [{"name": "v", "configMap": {"name": LIST, "optional": True}}]},
        "projected": {
            "containers": [container()],
            "volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": LIST, "optional": True}}]}}],
        },
    }
    made = {name: workload(DEPLOYMENT, own.home, name, template(**spec)) for name, spec in sources.items()}
    made["stateful"] = workload(STATEFUL_SET, own.home, "stateful", template())
    made["daemon"] = workload(DAEMON_SET, own.home, "daemon", template())
    untouched = {
        "other-list": workload(DEPLOYMENT, own.home, "other-list", template(containers=[container()])),
        "other-label": workload(DEPLOYMENT, own.home, "other-label", template({"intent": "none"})),
        "reads-itself": workload(
            DEPLOYMENT, own.home, "reads-itself", template(annotations={"scope-binding/no-restart": "true"})
        ),
    }
    for body in (*made.values(), *untouched.values()):
        await admin.create(WORKLOADS[body["kind"]], body)
    await own.scope(1)
    await own.listed(1)
    first = {name: await own.restarted_for(WORKLOADS[body["kind"]], name) for name, body in made.items()}
    assert len(set(first.values())) == 1
    await own.scope(1, 2)
    await own.listed(1, 2)
    second = {name: await own.restarted_for(WORKLOADS[body["kind"]], name) for name, body in made.items()}
    assert len(set(second.values())) == 1
    assert set(second.values()) != set(first.values())
    assert [await own.restarted_for(DEPLOYMENT, name) for name in untouched] == [None, None, None]


@pytest.mark.check("sb-58")
async def test_pods_of_olm_are_deleted_once(own: Operators, admin: Api, scopes: Knative, calm: Calm) -> None:
    """When the members change, each pod that OLM runs and that uses the list is deleted, and the one in its place stays."""
    await own.begin(2)
    await own.scope(1)
    await own.listed(1)
    olm = {"olm.operatorGroup": "ops"}
    controlled = await own.running("by-olm", template({"intent": "projected", "app": "by-olm"}, annotations=olm))
    alone = await own.pod("alone", template(annotations=olm))
    others = [
        await own.pod("no-list", template(annotations=olm, containers=[container()])),
        await own.pod("no-label", template({"intent": "none"}, annotations=olm)),
        await own.pod("reads-itself", template(annotations={**olm, "scope-binding/no-restart": "true"})),
        await own.pod("not-of-olm", template()),
    ]
    await calm(scopes)
    since = (await admin.list(POD, own.home)).resource_version
    await own.scope(1, 2)
    with deadline(SCOPES_S):
        for pod in (controlled, alone):
            await eventually(lambda pod=pod: _is_gone(admin, pod), what=f"{pod['metadata']['name']} deleted")
        await own.listed(1, 2)
    again = await own.pod("alone", template(annotations=olm))
    instead = await own.running("by-olm")
    await calm(scopes)
    for _ in range(2):
        await scopes.sweep(SCOPE_BINDING)
    await scopes.drain()

    told = await history(admin, POD, since, own.home)
    uids = [obj["metadata"]["uid"] for change, obj in told if change == "DELETED"]
    assert sorted(uids) == sorted(pod["metadata"]["uid"] for pod in (controlled, alone))
    for pod in (*others, again, instead):
        live = await own.people.get(POD, pod["metadata"]["name"], own.home)
        assert (live["metadata"]["uid"], live["metadata"].get("deletionTimestamp")) == (pod["metadata"]["uid"], None)


@pytest.mark.check("sb-60")
async def test_first_list_is_right_at_once(own: Operators, admin: Api, scopes: Knative, calm: Calm) -> None:
    """The ConfigMap of a new NamespaceScope never has another value than the right one, and causes one restart at most."""
    await own.begin(2)
    kinds = (DEPLOYMENT, STATEFUL_SET, DAEMON_SET)
    for kind in kinds[1:]:
        await admin.create(kind, workload(kind, own.home, "my-op", template()))
    olm = template({"intent": "projected", "app": "by-olm"}, annotations={"olm.operatorGroup": "ops"})
    first = await own.running("by-olm", olm)
    await calm(scopes)
    since = {kind: (await admin.list(kind, own.home)).resource_version for kind in (*kinds, POD, CONFIG_MAP)}
    await own.scope(1, 2)
    with deadline(SCOPES_S):
        await own.listed(1, 2)
        await own.ready()
    await calm(scopes)
    for _ in range(2):
        await scopes.sweep(SCOPE_BINDING)
    await scopes.drain()

    value = ",".join(sorted((own.home, own.member(1), own.member(2))))
    lists = [obj for _, obj in await history(admin, CONFIG_MAP, since[CONFIG_MAP], own.home) if obj["metadata"]["name"] == LIST]
    assert {each["data"]["namespaces"] for each in lists} == {value}
    assert len({each["metadata"]["uid"] for each in lists}) == 1
    for kind in kinds:
        changes = [obj for _, obj in await history(admin, kind, since[kind], own.home) if obj["metadata"]["name"] == "my-op"]
        hashes = [annotations_of(obj["spec"]["template"]).get(HASH) for obj in changes]
        assert set(hashes) - {None} == {hashes[-1]} == {value_hash(value)}
        assert max(obj["metadata"]["generation"] for obj in changes) == 2, "one restart"
    deleted = [obj["metadata"]["uid"] for change, obj in await history(admin, POD, since[POD], own.home) if change == "DELETED"]
    assert deleted == [first["metadata"]["uid"]]


@pytest.mark.check("sb-59")
async def test_members_that_do_not_exist_cause_one_restart(own: Operators, admin: Api, scopes: Knative) -> None:
    """While no listed member exists OLM's pods are deleted once and workloads get one new template; sweeps add none."""
    await own.begin(1)
    olm = template(annotations={"olm.operatorGroup": "ops"})
    before = await own.pod("by-olm", olm)
    stays = await own.pod("by-olm-other", template({"intent": "none"}, annotations={"olm.operatorGroup": "ops"}))
    generation = (await admin.get(DEPLOYMENT, "my-op", own.home) or {})["metadata"]["generation"]
    await own.scope("ghost1", "ghost2")
    await own.listed()
    await eventually(lambda: _is_gone(admin, before), what="the pod is deleted")
    assert (await admin.get(DEPLOYMENT, "my-op", own.home) or {})["metadata"]["generation"] == generation + 1

    again = await own.pod("by-olm", olm)
    for _ in range(3):
        await scopes.sweep(SCOPE_BINDING)
    await scopes.drain()
    assert (await admin.get(DEPLOYMENT, "my-op", own.home) or {})["metadata"]["generation"] == generation + 1
    for pod in (again, stays):
        live = await admin.get(POD, pod["metadata"]["name"], own.home) or {}
        assert (live["metadata"]["uid"], live["metadata"].get("deletionTimestamp")) == (pod["metadata"]["uid"], None)


async def _is_gone(admin: Api, pod: Object) -> bool:
    live = await admin.get(POD, pod["metadata"]["name"], pod["metadata"]["namespace"])
    return live is None or live["metadata"]["uid"] != pod["metadata"]["uid"]


@pytest.mark.one_variant("projection")
@pytest.mark.check("sb-63")
@pytest.mark.check("sb-64")
async def test_two_share_a_list(own: Operators, people: People, projection: str, admin: Api) -> None:
    """The list is the union, whatever changes both sets of pods restart, and one that goes takes only its own with it."""
    await own.begin(2)
    await admin.create(DEPLOYMENT, workload(DEPLOYMENT, own.home, "blue", template({"team": "blue"})))
    await own.scope(1, name="one", annotations=chosen(projection))
    await own.listed(1)
    await own.scope(2, name="two", annotations=chosen(projection), restartLabels={"team": "blue"})
    config_map = await own.listed(1, 2)
    assert {owner["name"] for owner in config_map["metadata"]["ownerReferences"]} == {"one", "two"}
    assert await own.restarted_for(DEPLOYMENT, "blue") == await own.restarted_for(DEPLOYMENT, "my-op")
    await own.given(1, name_of(own, projection, "one"))
    await own.given(2, name_of(own, projection, "two"))
    await own.scope(2, own.member(1), name="two", annotations=chosen(projection), restartLabels={"team": "blue"})
    await own.ready(name="two")

    await people.delete(NAMESPACE_SCOPE, "two", own.home)
    await own.people.away(NAMESPACE_SCOPE, "two", own.home)
    await own.listed(1)
    await own.emptied(2)
    await own.given(1, name_of(own, projection, "one"))
    config_map = await people.get(CONFIG_MAP, LIST, own.home)
    assert {owner["name"] for owner in config_map["metadata"]["ownerReferences"]} == {"one"}
    assert await own.restarted_for(DEPLOYMENT, "blue") != await own.restarted_for(DEPLOYMENT, "my-op")


@pytest.mark.check("sb-80")
@pytest.mark.parametrize("data", [None, {"mine": "stays"}, {"namespaces": "a,b", "mine": "stays"}])
async def test_list_made_by_hand_is_adopted(own: Operators, admin: Api, data: dict[str, str] | None) -> None:
    """A ConfigMap that is there already is used, whatever it has; other keys stay, also when it is given up again."""
    await own.begin(1)
    before = await admin.create(CONFIG_MAP, obj(CONFIG_MAP, LIST, own.home, **({"data": data} if data is not None else {})))
    await own.scope(1)
    found = await own.listed(1)
    assert found["metadata"]["uid"] == before["metadata"]["uid"]
    assert labels_of(found)["managedby-namespace-scope"] == "true"
    assert found["data"].get("mine") == (data or {}).get("mine")
    await own.scope(1, configmapName="another")
    await own.listed(1, config_map="another")
    if data is not None:
        left = await own.people.until(CONFIG_MAP, LIST, own.home, lambda found: "ownerReferences" not in found["metadata"])
        assert left["data"]["mine"] == "stays"


@pytest.mark.check("sb-82")
async def test_long_name_of_the_list(own: Operators, projection: str) -> None:
    """A ConfigMap name of 60 characters gives valid labels, also where the cut falls on a dash."""
    await own.begin(1)
    config_map = "a" * 59 + "b"
    await own.scope(1, annotations=chosen(projection), configmapName=config_map)
    await own.listed(1, config_map=config_map)
    role, _ = await own.given(1, name_of(own, projection))
    assert labels_of(role)["namespace-scope-configmap"] == f"{config_map}-{own.home}"[:63].rstrip("-.")
    renamed = "c" * 62 + "-" + "d" * 20
    await own.scope(1, annotations=chosen(projection), configmapName=renamed)
    await own.listed(1, config_map=renamed)
    await own.people.away(CONFIG_MAP, config_map, own.home)
    await own.given(1, name_of(own, projection), lambda found: labels_of(found)["app.kubernetes.io/name"] == "c" * 62)
