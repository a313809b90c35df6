"""The local source tells what happens while a kind, its sink, the API server or the source itself is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from listening import CONFIG_MAPS, Recorder, config_map, source_of
from slow_proxy import Gate
from times import SERVED_S, until

from tenantry.api import Api
from tenantry.api.errors import Expired, KindNotServed, TransientError
from tenantry.local.control_plane import ControlPlane
from tenantry.local.followed import STAND_IN, FollowedSources
from tenantry.local.install import until_served
from tenantry.local.sinks import NoAnswer
from tenantry.local.source import ApiServerSource
from tenantry.local.specs import SourceSpec
from tenantry.model.kinds import API_SERVER_SOURCE, CLUSTER_ROLE, CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, NAMESPACE, Object
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.testing import eventually
from tenantry.testing.objects import obj

SLOW = pytest.mark.timeout(180)


class Kinds:
    """Kinds of a group of their own, which come and go."""

    def __init__(self, admin: Api) -> None:
        self.group = f"g{uuid4().hex[:8]}.test"
        self._admin = admin

    def watched(self, name: str) -> dict[str, Any]:
        return {"apiVersion": f"{self.group}/v1", "kind": name}

    async def come(self, name: str, *, scope: str = "Cluster") -> None:
        """Make a CRD; returns when the kind is served."""
        plural = f"{name.lower()}s"
        schema = {"openAPIV3Schema": {"type": "object"}}
        crd = obj(
            CUSTOM_RESOURCE_DEFINITION,
            f"{plural}.{self.group}",
            spec={
                "group": self.group,
                "scope": scope,
                "names": {"plural": plural, "singular": name.lower(), "kind": name, "listKind": f"{name}List"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
            },
        )
        await self._admin.create(CUSTOM_RESOURCE_DEFINITION, crd)
        await until_served(self._admin, crd)

    async def go(self, name: str) -> None:
        """Delete a CRD; returns when it is gone, and its objects with it."""
        crd = f"{name.lower()}s.{self.group}"
        await self._admin.delete(CUSTOM_RESOURCE_DEFINITION, crd)
        await eventually(
            lambda: self._admin.get(CUSTOM_RESOURCE_DEFINITION, crd), lambda found: found is None, within=SERVED_S, what="gone"
        )

    async def make(self, kind: str, name: str, namespace: str = "") -> None:
        """Make an object; a kind that has just come back may refuse it for a moment."""
        body = {**self.watched(kind), "metadata": {"name": name}}
        where = f"namespaces/{namespace}/" if namespace else ""

        async def made() -> bool:
            try:
                await self._admin.request("POST", f"/apis/{self.group}/v1/{where}{kind.lower()}s", body=body)
            except (KindNotServed, TransientError):
                return False
            return True

        await eventually(made, within=SERVED_S)


async def reported(lines: list[str], text: str, times: int = 1, within: float = 5.0) -> None:
    """Wait for lines that have the text."""
    await until(lambda: sum(text in line for line in lines) >= times, within=within, what=text)


@SLOW
async def test_nothing_is_watched_until_every_group_is_served(admin: Api, space: str) -> None:
    """As with Knative's adapter, one group that nobody serves keeps the whole source from watching; it says so."""
    kinds, sink, lines, other = Kinds(admin), Recorder(), list[str](), Recorder()
    await admin.create(CONFIG_MAP, config_map("there", space))
    async with (
        source_of(admin, sink, CONFIG_MAPS, kinds.watched("Probe"), say=lines.append, namespace=space) as source,
        source_of(admin, other, CONFIG_MAPS, namespace=space),
    ):
        await reported(lines, f"nothing is watched until the server serves {kinds.group}/v1")
        await source.synced()
        await admin.create(CONFIG_MAP, config_map("meanwhile", space))
        await other.hears("add", "meanwhile")
        assert (sink.tried, source.relists) == ([], 0)

        await kinds.come("Probe")
        await kinds.make("Probe", "late")
        event = await sink.hears("add", "late")
        await source.drain()

    assert sorted(sink.told()) == [("add", "late"), ("add", "meanwhile"), ("add", "there")]
    assert event.extensions["namespace"] == ""
    await kinds.go("Probe")


@SLOW
async def test_a_kind_that_comes_later(admin: Api, space: str) -> None:
    """A kind that its group does not have yet costs the others nothing; it is waited for, said so, and told once it is served."""
    kinds, sink, lines = Kinds(admin), Recorder(), list[str]()
    await kinds.come("Soon")
    resources = (kinds.watched("Soon"), kinds.watched("Probe"))
    async with source_of(admin, sink, *resources, say=lines.append, namespace=space):
        await reported(lines, "does not serve Probe")
        await kinds.make("Soon", "first")
        await sink.hears("add", "first")
        await kinds.come("Probe", scope="Namespaced")
        await kinds.make("Probe", "late", space)
        event = await sink.hears("add", "late")

    assert event.extensions["namespace"] == space
    for name in ("Soon", "Probe"):
        await kinds.go(name)


@SLOW
async def test_a_kind_that_goes_away(admin: Api, space: str) -> None:
    """A kind whose CRD goes while it is watched takes no other kind with it, and is watched again when the CRD is made anew."""
    kinds, sink, lines = Kinds(admin), Recorder(), list[str]()
    await kinds.come("Probe", scope="Namespaced")
    await kinds.make("Probe", "before", space)
    async with source_of(admin, sink, CONFIG_MAPS, kinds.watched("Probe"), say=lines.append, namespace=space) as source:
        await sink.hears("add", "before")
        for number in range(2):
            await kinds.go("Probe")
            await sink.hears("delete", "before", times=number + 1)
            await reported(lines, "does not serve Probe", number + 1, SERVED_S)
            await admin.create(CONFIG_MAP, config_map(f"other-{number}", space))
            await sink.hears("add", f"other-{number}")
            await kinds.come("Probe", scope="Namespaced")
            await kinds.make("Probe", "before", space)
            await sink.hears("add", "before", times=number + 2)
        await source.drain()
        assert not source.lost

    assert sink.told("before") == [("add", "before"), ("delete", "before")] * 2 + [("add", "before")]
    await kinds.go("Probe")


@pytest.mark.parametrize("failure", [NoAnswer("refused"), 503, 429])
async def test_what_the_sink_does_not_take_stays_queued(admin: Api, space: str, failure: int | Exception) -> None:
    """An event without an answer, or with a status that is tried again, is sent again with the same id until it is taken."""
    await admin.create(CONFIG_MAP, config_map("one", space))
    sink = Recorder(failure, failure)
    async with source_of(admin, sink, CONFIG_MAPS, namespace=space) as source:
        await source.drain()

    assert sink.told() == [("add", "one")]
    assert len(sink.tried) == 3
    assert len(set(sink.tried)) == 1


async def test_a_refusal_ends_the_event(admin: Api, space: str) -> None:
    """A status that Knative's source does not try again ends the event, and is counted and said."""
    await admin.create(CONFIG_MAP, config_map("one", space))
    sink, lines = Recorder(500), list[str]()
    async with source_of(admin, sink, CONFIG_MAPS, namespace=space, say=lines.append) as source:
        await source.drain()

    assert sink.events == []
    assert source.backlog.refused == 1
    assert any("dropped add" in line for line in lines)


async def test_a_changed_source_misses_no_deletion(admin: Api, control_plane: ControlPlane, space: str, tmp_path: Path) -> None:
    """While the changed source cannot list yet the old one still tells: what is deleted in between is told."""
    await admin.apply(CUSTOM_RESOURCE_DEFINITION, STAND_IN)
    await admin.apply(NAMESPACE, obj(NAMESPACE, SYSTEM_NAMESPACE))
    await until_served(admin, STAND_IN)
    name, sink = f"changed-{space}", Recorder()
    spec: Object = {
        "resources": [CONFIG_MAPS],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space}},
        "sink": {"uri": "http://unused"},
    }
    document: Object = obj(API_SERVER_SOURCE, name, SYSTEM_NAMESPACE, spec=spec)
    async with Gate(control_plane.server_url) as gate:
        path = gate.kubeconfig(control_plane.kubeconfig, tmp_path / "kubeconfig")
        async with await Api.connect(field_manager="tests-gated", kubeconfig=path) as late:
            apis = [late, admin]

            async def start(spec: SourceSpec) -> ApiServerSource:
                return await ApiServerSource(apis.pop(), spec, sink).__aenter__()

            async with FollowedSources(admin, start, lambda _: None) as followed:
                await admin.create(CONFIG_MAP, config_map("one", space))
                await admin.create(API_SERVER_SOURCE, document)
                await sink.hears("add", "one")
                gate.close()
                more = [CONFIG_MAPS, {"apiVersion": "v1", "kind": "ServiceAccount"}]
                await admin.apply(API_SERVER_SOURCE, {**document, "spec": {**spec, "resources": more}}, force=True)
                await asyncio.wait_for(gate.waiting.wait(), 30)
                await admin.delete(CONFIG_MAP, "one", space)
                gate.open()
                await sink.hears("delete", "one")
                await followed.drain()
                await admin.delete(API_SERVER_SOURCE, name, SYSTEM_NAMESPACE)


@pytest.fixture
async def gated(control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[tuple[Gate, Api]]:
    """A client of the same API server through a proxy that can be stopped."""
    async with Gate(control_plane.server_url) as gate:
        path = gate.kubeconfig(control_plane.kubeconfig, tmp_path / "gated")
        async with await Api.connect(field_manager="tests-gated", kubeconfig=path, timeout_s=5) as api:
            yield gate, api


async def test_a_watch_that_breaks_off_is_resumed(admin: Api, gated: tuple[Gate, Api], space: str) -> None:
    """After a cut connection the watch goes on where it was: every change is told, nothing twice, without a new list."""
    gate, api = gated
    sink = Recorder()
    async with source_of(api, sink, CONFIG_MAPS, namespace=space) as source:
        await admin.create(CONFIG_MAP, config_map("before", space))
        await sink.hears("add", "before")
        relists = source.relists
        gate.cut()
        await admin.create(CONFIG_MAP, config_map("after", space))
        await sink.hears("add", "after")

    assert sink.told() == [("add", "before"), ("add", "after")]
    assert source.relists == relists


async def test_a_server_that_is_away_is_said_once(admin: Api, gated: tuple[Gate, Api], space: str) -> None:
    """Losing and regaining the server is said once each; what changed meanwhile is told."""
    gate, api = gated
    lines: list[str] = []
    sink = Recorder()
    await admin.create(CONFIG_MAP, config_map("goes", space, a="1"))
    role = {"apiVersion": CLUSTER_ROLE.api_version, "kind": "Role"}
    async with source_of(api, sink, CONFIG_MAPS, role, namespace=space, mode="Resource", say=lines.append) as source:
        await source.drain()
        gate.stop()
        await until(lambda: len(source._lost) == 2)
        await admin.delete(CONFIG_MAP, "goes", space)
        await admin.create(CONFIG_MAP, config_map("comes", space))
        await gate.start()
        await sink.hears("add", "comes")
        await sink.hears("delete", "goes")
        await until(lambda: not source.lost)

    assert [line for line in lines if "lost the API server" in line] == lines[:1]
    assert lines[1:] == ["source source: the API server answers again"]


@SLOW
async def test_changes_in_the_hole_of_a_restart_are_told(
    control_plane: ControlPlane, admin: Api, gated: tuple[Gate, Api], space: str
) -> None:
    """After an API server restart the differences are told: additions, updates, and deletions with the last known state."""
    gate, api = gated
    for name in ("stays", "changes", "goes"):
        await admin.create(CONFIG_MAP, config_map(name, space, state="old"))
    sink = Recorder()
    async with source_of(api, sink, CONFIG_MAPS, namespace=space, mode="Resource") as source:
        await source.drain()
        sink.events.clear()
        gate.stop()
        await admin.delete(CONFIG_MAP, "goes", space)
        await admin.apply(CONFIG_MAP, config_map("changes", space, state="new"))
        await admin.create(CONFIG_MAP, config_map("comes", space))
        await asyncio.to_thread(control_plane.restart_api_server)
        await gate.start()
        gone = await sink.hears("delete", "goes")
        changed = await sink.hears("update", "changes")
        await sink.hears("add", "comes")
        await source.drain()

    assert sorted(sink.told()) == [("add", "comes"), ("delete", "goes"), ("update", "changes")]
    assert isinstance(gone.data, dict)
    assert isinstance(changed.data, dict)
    assert gone.data["data"] == {"state": "old"}
    assert changed.data["data"] == {"state": "new"}


async def test_an_expired_version_leads_to_differences(admin: Api, gated: tuple[Gate, Api], space: str) -> None:
    """A resource version that is too old (410) gives a new list, whose differences alone are told."""

    async def forgotten() -> bool:
        """A server that has just started asks etcd, which remembers everything for five minutes."""
        try:
            async with aclosing(admin.watch(CONFIG_MAP, space, resource_version="1", timeout_s=1)) as changes:
                async for _ in changes:
                    break
        except Expired:
            return True
        return False

    gate, api = gated
    for name in ("stays", "goes"):
        await admin.create(CONFIG_MAP, config_map(name, space))
    sink = Recorder()
    async with source_of(api, sink, CONFIG_MAPS, namespace=space) as source:
        await source.drain()
        gate.stop()
        await until(lambda: source.lost)
        await admin.delete(CONFIG_MAP, "goes", space)
        [reflector] = [each for each in source._tasks if each is not None]
        await eventually(forgotten, within=SERVED_S, what="the version is too old")
        reflector._resource_version = "1"
        await gate.start()
        await sink.hears("delete", "goes")

    assert source.relists == 2
    assert sorted(sink.told()) == [("add", "goes"), ("add", "stays"), ("delete", "goes")]
