"""In which order release-provisioning reads what it concludes from."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, cast

import owning
import pytest
from served import Served

from release_provisioning.kept import kept_chart
from release_provisioning.projects import observe
from release_provisioning.projects.dashboards import Dashboards, dashboards_of
from release_provisioning.projects.observe import observe_release
from release_provisioning.projects.texts import Texts
from release_provisioning.projects.unit import Releases
from tenantry.api import Api, Keep, Listing
from tenantry.engine.reader import Reader
from tenantry.engine.unit import OutdatedError
from tenantry.model import limits
from tenantry.model.config import Config
from tenantry.model.digest import Digest
from tenantry.model.kinds import CONFIG_MAP, HELM_CHART, NAMESPACE, PROJECT_HELM_CHART, Key, Kind, Object
from tenantry.model.names import OPERATED, RELEASE_FINALIZER
from tenantry.testing.objects import obj

HOME = "cattle-project-p-a"
CHART: Object = obj(PROJECT_HELM_CHART, "demo", HOME, metadata={"uid": "u"}, spec={"helmApiVersion": "somebody.else/v1"})
MADE: Object = obj(
    HELM_CHART,
    "demo-dummy",
    "cattle-helm-system",
    labels={OPERATED: "true"},
    annotations={"tenantry.dev/project-helm-chart": f"{HOME}/demo"},
)


class Late(Served):
    """A ProjectHelmChart that comes, and is provisioned, after its kind was listed."""

    def __init__(self, *, comes: bool) -> None:
        super().__init__(MADE, *([CHART] if comes else ()))

    async def list(self, *_: Any, **__: Any) -> Listing:
        return Listing([], "1")


async def gone(*, comes: bool) -> frozenset[str]:
    reader = Late(comes=comes).reader()
    assert await reader.all_shared(PROJECT_HELM_CHART) == []
    return (await observe_release("demo-dummy", Config(), reader, Texts())).gone


async def test_who_a_helm_chart_was_made_for_is_read_after_it() -> None:
    """An older list of ProjectHelmCharts says nothing about who is gone; a read that follows does."""
    assert await gone(comes=True) == frozenset()
    assert await gone(comes=False) == {f"{HOME}/demo"}


class Shown(Late):
    """A release whose chart has left dashboard values."""

    def __init__(self) -> None:
        super().__init__(comes=True)
        asked = {**CHART, "spec": {"helmApiVersion": "dummy.cattle.io/v1alpha1"}}
        left = {"metadata": {"name": "left", "namespace": HOME}, "data": {"a.json": '{"k": 1}'}}
        self.lists = {PROJECT_HELM_CHART: [asked], CONFIG_MAP: [left]}

    async def list(self, kind: Kind, namespace: str = "", *, keep: Keep | None = None, **_: Any) -> Listing:
        found = self.lists.get(kind, [])
        return Listing([keep(each) for each in found] if keep else found, "1")


async def test_dashboard_values_do_not_keep_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """While they are made of JSON other work goes on: here it only ends after something else was done meanwhile."""
    begun, gone_on, waited = asyncio.Event(), threading.Event(), list[bool]()
    loop = asyncio.get_running_loop()

    def slowly(found: Sequence[Object]) -> Dashboards:
        loop.call_soon_threadsafe(begun.set)
        waited.append(gone_on.wait(5))
        return dashboards_of(found)

    async def meanwhile() -> None:
        await begun.wait()
        gone_on.set()

    monkeypatch.setattr(observe, "dashboards_of", slowly)
    config = Config.model_validate({"global": {"cattle": {"projectLabel": ""}}, "helmProjectOperator": {"systemNamespace": HOME}})
    observed = observe_release("demo-dummy", config, Reader(cast(Api, Shown())), Texts())
    release, _ = await asyncio.gather(observed, meanwhile())
    assert waited == [True]
    assert release.dashboards.values == {"k": 1}


class Again(Late):
    """A namespace of which the first read is what it was before; its HelmChart is there or not."""

    def __init__(self, *namespaces: Object | None, made: bool) -> None:
        super().__init__(comes=True)
        self.namespaces, self.made = list(namespaces), made

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        if kind == NAMESPACE and name == "demo-dummy":
            return self.namespaces.pop(0)
        return None if kind == HELM_CHART and not self.made else await super().get(kind, name, namespace)


OLD: Object = {"metadata": {"name": "demo-dummy", "uid": "old"}}
NEW: Object = {"metadata": {"name": "demo-dummy", "uid": "new"}}
GOING: Object = {"metadata": {**OLD["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("made", "looks"),
    [
        (True, [[None, NEW], [GOING, NEW], [GOING, GOING], [NEW]]),
        (False, [[OLD, GOING], [OLD, None], [OLD, OLD], [None], [GOING]]),
    ],
    ids=["goes", "stays"],
)
async def test_a_namespace_is_read_again_before_a_release_follows_it(made: bool, looks: list[list[Object | None]]) -> None:
    """One that seems to be missing or on its way out is not believed at once, nor, before a release is made, one that stays."""
    config = Config.model_validate({"global": {"cattle": {"systemProjectId": "p-s"}}})
    for reads in looks:
        api = Again(*reads, made=made)
        release = await observe_release("demo-dummy", config, Reader(cast(Api, api)), Texts())
        assert (release.namespace, api.namespaces) == (reads[-1], [])


class Large(Late):
    """A release of large values, which are those of ``reads`` one after the other when they are read whole."""

    def __init__(self, *reads: Object | None) -> None:
        super().__init__(comes=True)
        self.reads = list(reads)
        self.lists = 0

    async def list(self, kind: Kind, namespace: str = "", **_: Any) -> Listing:
        if kind == PROJECT_HELM_CHART:
            self.lists += 1
            return Listing([kept_chart(asked("1"))], "1")
        return Listing([{"metadata": {"name": "member", "labels": {"team": "x"}}}] if kind == NAMESPACE else [], "1")

    async def get(self, kind: Kind, name: str, namespace: str = "", *, whole: bool = False) -> Object | None:
        return self.reads.pop(0) if whole else await super().get(kind, name, namespace)


def asked(value: str) -> Object:
    values = {"mine": value * limits.VALUES_SMALL_BYTES}
    selector = {"matchLabels": {"team": "x"}}
    spec = {"helmApiVersion": "dummy.cattle.io/v1alpha1", "projectNamespaceSelector": selector, "values": values}
    return {**CHART, "spec": spec}


WITHOUT_PROJECTS = Config.model_validate(
    {
        "global": {"cattle": {"projectLabel": ""}},
        "helmProjectOperator": {
            "systemNamespace": HOME,
            "charts": [{"helmApiVersion": "dummy.cattle.io/v1alpha1", "releaseName": "dummy"}],
        },
    }
)


async def test_large_values_are_read_when_their_text_is_made() -> None:
    """They are not kept with what else is read of a release; the text is made once for each change."""
    api, texts = Large(asked("1")), Texts()
    reader = Reader(cast(Api, api))
    release = await observe_release("demo-dummy", WITHOUT_PROJECTS, reader, texts)
    assert release.holder is not None
    assert isinstance(release.holder.object["spec"]["values"], Digest)
    assert isinstance(release.values, str)
    assert "1" * limits.VALUES_SMALL_BYTES in release.values


@pytest.mark.parametrize("other", [asked("2"), None], ids=["changed", "gone"])
async def test_values_that_change_while_they_are_read_are_to_be_read_anew(other: Object | None) -> None:
    """A text of other values than those that were decided on is never written."""
    with pytest.raises(OutdatedError, match="changed while they were read"):
        await observe_release("demo-dummy", WITHOUT_PROJECTS, Reader(cast(Api, Large(other))), Texts())


async def test_who_can_have_no_release_concerns_none() -> None:
    """A ProjectHelmChart outside of registration namespaces costs nothing, be it there or gone, unless it had a release."""
    unit = Releases(Config.model_validate({"helmProjectOperator": {"charts": WITHOUT_PROJECTS.helm_project_operator.charts}}), {})

    async def concerned(namespace: str, found: Object | None) -> Sequence[Sequence[str]]:
        return await owning.owners(
            unit, Key(PROJECT_HELM_CHART.api_version, PROJECT_HELM_CHART.kind, namespace, "demo"), {}, One(found)
        )

    there = asked("1")
    held = {**there, "metadata": {**there["metadata"], "finalizers": [RELEASE_FINALIZER]}}
    assert await concerned(HOME, there) == [["release/demo-dummy"]]
    assert await concerned(HOME, None) == [["release/demo-dummy"]]
    assert [stage for stage in await concerned("anywhere", there) if "release/" in stage[0]] == []
    assert await concerned("anywhere", None) == []
    elsewhere = {**held, "metadata": {**held["metadata"], "namespace": "anywhere"}}
    assert ["release/demo-dummy"] in list(await concerned("anywhere", elsewhere))


class One(Reader):
    def __init__(self, found: Object | None) -> None:
        super().__init__(cast(Api, None))
        self.found = found

    async def get(self, *_: Any, **__: Any) -> Object | None:
        return self.found


class Nobody(Reader):
    """A cluster without ProjectHelmCharts, whose namespaces may have our mark."""

    def __init__(self, **labels: str) -> None:
        super().__init__(cast(Api, None))
        self.labels = labels
        self.looked: list[str] = []

    async def all_shared(self, *_: Any, **__: Any) -> list[Object] | None:
        return []

    async def list_shared(self, *_: Any, **__: Any) -> list[Object]:
        return []

    async def get(self, kind: Kind, name: str, *_: Any, **__: Any) -> Object | None:
        self.looked.append(name)
        return {"metadata": {"name": name, "labels": self.labels}}


@pytest.mark.parametrize(
    ("name", "hint", "looks"),
    [
        ("shop", {"team": "x"}, []),
        ("shop", {"team": "x", OPERATED: "true"}, ["shop"]),
        ("shop", {}, ["shop"]),
        ("demo-dummy", {"team": "x"}, ["demo-dummy"]),
    ],
)
async def test_while_nobody_asks_a_namespace_that_is_not_ours_costs_no_read(
    name: str, hint: dict[str, str], looks: list[str]
) -> None:
    """One that was made for a release has our mark or its name; of an event without labels nobody knows."""
    charts = [{"helmApiVersion": "dummy.cattle.io/v1alpha1", "releaseName": "dummy"}]
    operator = {"charts": charts, "projectReleaseNamespaces": {"enabled": True}}
    unit, reader = Releases(Config.model_validate({"helmProjectOperator": operator}), {}), Nobody()
    await owning.owners(unit, Key("v1", "Namespace", "", name), hint, reader)
    assert reader.looked == looks
