"""The local source tells every change of a real API server to whoever asks for it."""

from __future__ import annotations

import time
from uuid import uuid4

import pytest
from listening import CONFIG_MAPS, Recorder, config_map, source_of
from times import until

from tenantry.api import Api
from tenantry.model.kinds import CLUSTER_ROLE, CONFIG_MAP, NAMESPACE, Object
from tenantry.testing.objects import obj


@pytest.mark.parametrize("mode", ["Reference", "Resource"])
async def test_add_update_delete(admin: Api, space: str, mode: str) -> None:
    """What exists is told as add at start; later changes as add, update and delete, in both modes."""
    existing = await admin.create(CONFIG_MAP, config_map("existing", space, a="1"))
    sink = Recorder()
    async with source_of(admin, sink, CONFIG_MAPS, mode=mode, namespace=space) as source:
        await source.drain()
        assert sink.told() == [("add", "existing")]
        await admin.apply(CONFIG_MAP, config_map("existing", space, b="2"))
        updated = await sink.hears("update", "existing")
        await admin.create(CONFIG_MAP, config_map("new", space))
        await sink.hears("add", "new")
        await admin.delete(CONFIG_MAP, "existing", space)
        deleted = await sink.hears("delete", "existing")

    assert sink.told("existing") == [("add", "existing"), ("update", "existing"), ("delete", "existing")]
    first = sink.events[0]
    assert first.type == f"dev.knative.apiserver.{'ref' if mode == 'Reference' else 'resource'}.add"
    assert first.source == admin.server
    assert first.subject == f"/apis/v1/namespaces/{space}/configmaps/existing"
    assert first.datacontenttype == "application/json"
    assert first.extensions == {"kind": "ConfigMap", "apiversion": "v1", "name": "existing", "namespace": space}
    assert len({event.id for event in sink.events}) == len(sink.events)
    reference = {"kind": "ConfigMap", "namespace": space, "name": "existing", "apiVersion": "v1"}
    if mode == "Reference":
        assert first.data == updated.data == deleted.data == reference
    else:
        assert isinstance(first.data, dict)
        assert isinstance(deleted.data, dict)
        assert first.data["metadata"]["uid"] == existing["metadata"]["uid"]
        assert first.data["data"] == {"a": "1"}
        assert deleted.data["data"]["b"] == "2"
        assert deleted.data["metadata"]["resourceVersion"] > first.data["metadata"]["resourceVersion"]


async def test_no_change_no_event(admin: Api, space: str) -> None:
    """An apply that changes nothing is not told."""
    body = config_map("same", space, a="1")
    await admin.apply(CONFIG_MAP, body)
    sink = Recorder()
    async with source_of(admin, sink, CONFIG_MAPS, namespace=space) as source:
        await source.drain()
        await admin.apply(CONFIG_MAP, body)
        await admin.create(CONFIG_MAP, config_map("marker", space))
        await sink.hears("add", "marker")

    assert sink.told("same") == [("add", "same")]


async def test_cluster_scoped_kinds(admin: Api) -> None:
    """A cluster-scoped object has an empty namespace attribute, two slashes in its subject, no namespace in its payload."""
    name = f"source test {uuid4().hex[:8]}"  # RBAC names may hold spaces
    sink = Recorder()
    resource = {"apiVersion": CLUSTER_ROLE.api_version, "kind": "ClusterRole"}
    async with source_of(admin, sink, resource) as source:
        await source.drain()
        await admin.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, name, rules=[]))
        event = await sink.hears("add", name)
        await admin.delete(CLUSTER_ROLE, name)

    assert event.extensions["namespace"] == ""
    assert event.subject == f"/apis/rbac.authorization.k8s.io/v1/namespaces//clusterroles/{name}"
    assert event.data == {"kind": "ClusterRole", "name": name, "apiVersion": "rbac.authorization.k8s.io/v1"}


async def test_leaving_and_joining_a_selector(admin: Api, space: str) -> None:
    """An object that stops to match is told as delete while it lives, and as add when it matches again."""
    watched = {**CONFIG_MAPS, "selector": {"matchLabels": {"app": "x"}}}
    await admin.apply(CONFIG_MAP, config_map("joins", space, {"app": "x"}))
    await admin.apply(CONFIG_MAP, config_map("never", space, {"app": "y"}))
    sink = Recorder()
    async with source_of(admin, sink, watched, namespace=space, mode="Resource") as source:
        await source.drain()
        await admin.apply(CONFIG_MAP, config_map("joins", space, {"app": "y"}))
        left = await sink.hears("delete", "joins")
        await admin.apply(CONFIG_MAP, config_map("joins", space, {"app": "x"}))
        await sink.hears("add", "joins", times=2)

    assert sink.told() == [("add", "joins"), ("delete", "joins"), ("add", "joins")]
    assert isinstance(left.data, dict)
    assert left.data["metadata"]["labels"] == {"app": "x"}


async def test_namespace_selectors(admin: Api) -> None:
    """Without a selector only the own namespace is watched, with an empty one all, with labels those that match now."""
    mark = uuid4().hex[:8]
    spaces = [f"ns-{mark}-{letter}" for letter in "abc"]

    def space(name: str, team: str) -> Object:
        return obj(NAMESPACE, name, labels={"team": f"{team}-{mark}"})

    for name, team in zip(spaces, ("red", "blue", "blue"), strict=True):
        await admin.apply(NAMESPACE, space(name, team))
        await admin.create(CONFIG_MAP, config_map(f"in-{name}", name, {"mark": mark}))
    watched = {**CONFIG_MAPS, "selector": {"matchLabels": {"mark": mark}}}
    own, everywhere, red = Recorder(), Recorder(), Recorder()
    matching = {"matchExpressions": [{"key": "team", "operator": "In", "values": [f"red-{mark}"]}]}
    async with (
        source_of(admin, own, watched, namespace=spaces[1]) as first,
        source_of(admin, everywhere, watched, namespaceSelector={}) as second,
        source_of(admin, red, watched, namespaceSelector=matching) as third,
    ):
        for each in (first, second, third):
            await each.drain()
        assert own.told() == [("add", f"in-{spaces[1]}")]
        assert sorted(everywhere.told()) == [("add", f"in-{name}") for name in spaces]
        await red.hears("add", f"in-{spaces[0]}")

        await admin.apply(NAMESPACE, space(spaces[2], "red"))
        await red.hears("add", f"in-{spaces[2]}")
        await admin.delete(NAMESPACE, spaces[0])
        await red.hears("delete", f"in-{spaces[0]}")
        await admin.apply(NAMESPACE, space(spaces[2], "blue"))
        await until(lambda: len(third._tasks) == 1, what="only the watch of namespaces is left")
        await admin.create(CONFIG_MAP, config_map("late", spaces[2], {"mark": mark}))
        await everywhere.hears("add", "late")

    assert sorted(red.told()) == sorted([("add", f"in-{spaces[0]}"), ("add", f"in-{spaces[2]}"), ("delete", f"in-{spaces[0]}")])
    for name in spaces[1:]:
        await admin.delete(NAMESPACE, name)


async def test_owner_lets_only_controlled_objects_pass(admin: Api, space: str) -> None:
    """``owner`` sends only objects whose controller is of that kind; any other owner reference does not count."""
    parent = await admin.create(CONFIG_MAP, config_map("parent", space))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": parent["metadata"]["uid"]}
    for name, references in (("controlled", [{**owner, "controller": True}]), ("owned", [owner]), ("free", [])):
        await admin.create(CONFIG_MAP, obj(CONFIG_MAP, name, space, metadata={"ownerReferences": references}))
    sink = Recorder()
    spec = {"namespace": space, "owner": {"apiVersion": "v1", "kind": "ConfigMap"}}
    async with source_of(admin, sink, CONFIG_MAPS, **spec) as source:
        await source.drain()

    assert sink.told() == [("add", "controlled")]


async def test_overrides_are_added_and_cannot_replace(admin: Api, space: str) -> None:
    """``ceOverrides`` adds its extensions to every event."""
    await admin.create(CONFIG_MAP, config_map("one", space))
    sink = Recorder()
    spec = {"namespace": space, "ceOverrides": {"extensions": {"partitionkey": "p"}}}
    async with source_of(admin, sink, CONFIG_MAPS, **spec) as source:
        await source.drain()

    assert sink.events[0].extensions["partitionkey"] == "p"


async def test_large_objects_are_told(admin: Api, space: str) -> None:
    """An object near the limit of what the API server stores is told from the watch, without a new list."""
    sink, lines = Recorder(), list[str]()
    async with source_of(admin, sink, CONFIG_MAPS, namespace=space, mode="Resource", say=lines.append) as source:
        await source.drain()
        await admin.create(CONFIG_MAP, config_map("large", space, blob="x" * 1_000_000))
        event = await sink.hears("add", "large")
        await admin.create(CONFIG_MAP, config_map("small", space))
        await sink.hears("add", "small")

    assert isinstance(event.data, dict)
    assert len(event.data["data"]["blob"]) == 1_000_000
    assert (source.relists, lines) == (1, [])


@pytest.mark.timeout(180)
async def test_a_burst_costs_little(admin: Api, space: str) -> None:
    """5,000 events take at most 333 us of processor time each in the source, and all of them arrive."""
    sink = Recorder()
    template = await admin.create(CONFIG_MAP, config_map("burst", space))
    async with source_of(admin, sink, CONFIG_MAPS, namespace=space, mode="Resource") as source:
        await source.drain()
        sink.events.clear()
        [reflector] = [each for each in source._tasks if each is not None]
        objects = [
            {**template, "metadata": {**template["metadata"], "name": f"o{n}", "uid": f"u{n}", "resourceVersion": str(n)}}
            for n in range(5000)
        ]
        before = time.process_time()
        for each in objects:
            reflector._tell(each)
        await source.backlog.drain()
        spent = (time.process_time() - before) / len(objects)

    assert len(sink.events) == 5000
    assert spent < 333e-6, f"{spent * 1e6:.0f} us per event"
