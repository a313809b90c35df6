"""Whom an event touches, which owners a request may name, and whom a sweep looks at."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import owning
import pytest
from project_objects import CHARTS, LABEL, SINGLE, UNIT, Fixed, key, namespace, projects, registered

from tenantry.engine.snapshot import Prefetch
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT, Key, Object
from tenantry.model.names import NAMESPACE_NAME, OPERATED, PROJECT_ID


async def owners(found: Object | None, hint: dict[str, str] | None = None, name: str = "a1") -> Sequence[Sequence[str]]:
    reader = Fixed() if found is None else Fixed(found)
    name = name if found is None else found["metadata"]["name"]
    return await owning.owners(UNIT, key(NAMESPACE, name), hint or {}, reader)


@pytest.mark.parametrize(
    ("found", "stages"),
    [
        (namespace("a1"), [["namespace/a1"]]),
        (namespace("a1", {LABEL: "p-a"}), [["project/p-a", "namespace/a1"]]),
        (namespace("a1", {LABEL: "p-a", PROJECT_ID: "p-a"}), [["project/p-a", "namespace/a1"]]),
        pytest.param(
            namespace("a1", {LABEL: "p-b", PROJECT_ID: "p-a"}),
            [["project/p-a"], ["project/p-b", "namespace/a1"]],
            marks=pytest.mark.check("hpo-13"),
        ),
        pytest.param(
            namespace("a1", {PROJECT_ID: "p-a"}), [["project/p-a"], ["namespace/a1"]], marks=pytest.mark.check("hpo-12")
        ),
        pytest.param(
            namespace("a1", {LABEL: "p-denied", PROJECT_ID: "p-a"}),
            [["project/p-a"], ["namespace/a1"]],
            marks=pytest.mark.check("hpo-14"),
        ),
        (namespace("a1", {LABEL: "Foo_Bar", PROJECT_ID: "p-a"}), [["project/p-a"], ["namespace/a1"]]),
        (namespace("a1", {LABEL: "p-a", PROJECT_ID: "Foo_Bar"}), [["project/p-a", "namespace/a1"]]),
        pytest.param(namespace("bad", {LABEL: "../../x"}), [["namespace/bad"]], marks=pytest.mark.check("hpo-17")),
        (namespace("bad", {LABEL: ""}), [["namespace/bad"]]),
        pytest.param(namespace("kube-system", {LABEL: "p-a"}), [["namespace/kube-system"]], marks=pytest.mark.check("hpo-9")),
        (namespace("a1", {LABEL: "p-b", PROJECT_ID: "p-a"}, deletionTimestamp="now"), [["project/p-a"], ["project/p-b"]]),
        (namespace("a1", {LABEL: "p-a", PROJECT_ID: "p-a"}, deletionTimestamp="now"), [["project/p-a"]]),
        (registered("p-a"), [["project/p-a"]]),
        (namespace("cattle-project-p-x"), [["project/p-x", "namespace/cattle-project-p-x"]]),
        (namespace("cattle-project-p-x", {LABEL: "p-b"}), [["project/p-b", "project/p-x", "namespace/cattle-project-p-x"]]),
        (namespace("cattle-project-p-x", {LABEL: "p-x"}), [["project/p-x", "namespace/cattle-project-p-x"]]),
        (
            namespace("cattle-project-p-x", {LABEL: "p-system", OPERATED: "true", PROJECT_ID: "p-a"}),
            [["project/p-a"], ["project/p-x", "namespace/cattle-project-p-x"]],
        ),
    ],
)
async def test_whom_a_namespace_touches(found: Object, stages: Sequence[Sequence[str]]) -> None:
    """The project that was left comes first, then those it is in or blocks, with the memory in its own label."""
    assert [list(stage) for stage in await owners(found)] == stages


@pytest.mark.parametrize(
    ("name", "hint", "stages"),
    [
        ("a1", {}, []),
        ("a1", {PROJECT_ID: "p-a"}, [["project/p-a"]]),
        ("a1", {LABEL: "p-a"}, [["project/p-a"]]),
        ("a1", {LABEL: "p-b", PROJECT_ID: "p-a"}, [["project/p-a"], ["project/p-b"]]),
        ("a1", {LABEL: "../../x", PROJECT_ID: "Foo_Bar"}, []),
        pytest.param("cattle-project-p-a", {}, [["project/p-a"]], marks=pytest.mark.check("hpo-15")),
        pytest.param("a1", {PROJECT_ID: "p-a", LABEL: "p-a"}, [["project/p-a"]]),
        pytest.param("cattle-project-p-a", {PROJECT_ID: "p-a", LABEL: "p-a"}, [["project/p-a"]]),
        ("../../x", {}, []),
        ("cattle-project-../../x", {LABEL: "p-a"}, [["project/p-a"]]),
        ("..", {}, []),
    ],
)
async def test_whom_a_vanished_namespace_touches(name: str, hint: dict[str, str], stages: Sequence[Sequence[str]]) -> None:
    """The labels of the payload name the projects to look at; what cannot be a project is left out."""
    assert [list(stage) for stage in await owners(None, hint, name)] == stages


async def test_live_labels_come_before_the_hint() -> None:
    """While the namespace is there, what the payload said about it does not count."""
    found = await owners(namespace("a1", {LABEL: "p-a"}), {LABEL: "p-z", PROJECT_ID: "p-y"})
    assert found == [["project/p-a", "namespace/a1"]]


@pytest.mark.parametrize(
    ("touched", "stages"),
    [
        (key(CONFIG_MAP, "dummy.cattle.io.v1alpha1", "cattle-project-p-a"), [["project/p-a"]]),
        (key(CONFIG_MAP, "other.io.v1", "cattle-project-p-a"), [["project/p-a"]]),
        (key(CONFIG_MAP, "kube-root-ca.crt", "cattle-project-p-a"), []),
        (key(CONFIG_MAP, "dummy.cattle.io.v1alpha1", "a1"), []),
        (key(SERVICE_ACCOUNT, "default", "cattle-project-p-a"), [["project/p-a"]]),
        (key(SERVICE_ACCOUNT, "other", "cattle-project-p-a"), []),
        (key(NETWORK_POLICY, "hpo-generated-default", "cattle-project-p-a"), [["project/p-a"]]),
        (key(NETWORK_POLICY, "other", "cattle-project-p-a"), []),
        (key(NETWORK_POLICY, "hpo-generated-default", ""), []),
        (key(CONFIG_MAP, "dummy.cattle.io.v1alpha1", "cattle-project-../../x"), []),
    ],
)
async def test_whom_an_object_inside_touches(touched: Key, stages: Sequence[Sequence[str]]) -> None:
    """Our objects in registration namespaces touch their project, without a single read."""
    reader = Fixed()
    assert [list(stage) for stage in await owning.owners(UNIT, touched, {}, reader)] == stages
    assert reader.asked == []


@pytest.mark.parametrize(
    ("touched", "concerned"),
    [
        (key(NAMESPACE, "cattle-helm-system"), True),
        (key(NAMESPACE, "a1"), False),
        (key(NAMESPACE, "cattle-project-p-a"), False),
        (key(CONFIG_MAP, "dummy.cattle.io.v1alpha1", "cattle-helm-system"), True),
        (key(CONFIG_MAP, "x", "cattle-helm-system"), False),
        (key(CONFIG_MAP, "dummy.cattle.io.v1alpha1", "a1"), False),
    ],
)
async def test_whom_an_event_touches_in_single_namespace_mode(touched: Key, concerned: bool) -> None:
    """Only the system namespace and the charts' ConfigMaps in it."""
    found = await owning.owners(SINGLE, touched, {LABEL: "p-a", PROJECT_ID: "p-b"}, Fixed())
    assert [list(stage) for stage in found] == ([["system/cattle-helm-system"]] if concerned else [])


@pytest.mark.parametrize(
    ("owner", "with_projects", "single"),
    [
        ("project/p-a", True, False),
        ("project/" + "a" * 48, True, False),
        ("project/" + "a" * 49, False, False),
        ("project/", False, False),
        ("project", False, False),
        ("project/../../x", False, False),
        ("project/Foo_Bar", False, False),
        ("project/p-a/x", False, False),
        ("namespace/a1", True, False),
        ("namespace/", False, False),
        ("namespace/../../x", False, False),
        ("namespace/..", False, False),
        ("namespace/" + "a" * 64, False, False),
        ("system/cattle-helm-system", False, True),
        ("system/kube-system", False, False),
        ("", False, False),
        ("other/x", False, False),
        ("Project/p-a", False, False),
    ],
)
def test_owners_that_a_request_may_name(owner: str, with_projects: bool, single: bool) -> None:
    """Only well-formed owners of the mode in force; a forged name reaches no path."""
    assert (owning.accepts(UNIT, owner), owning.accepts(SINGLE, owner)) == (with_projects, single)


async def test_every_owner_of_an_event_is_acceptable() -> None:
    """What a fan-out would send as a request is taken by the same unit."""
    for found in (namespace("a1", {LABEL: "p-b", PROJECT_ID: "p-a"}), namespace("cattle-project-p-x", {LABEL: "p-x"})):
        assert all(owning.accepts(UNIT, owner) for stage in await owners(found) for owner in stage)


def test_pauses() -> None:
    """Projects pause after a run, since their own writes come back as events; a single namespace does not."""
    assert owning.handler(UNIT, "project/p-a").pause_s > 0
    assert owning.handler(UNIT, "namespace/a1").pause_s == 0


async def test_a_sweep_looks_at_everything_once_projects_first() -> None:
    """Projects that have, had or remember a namespace, those of orphans and denied ones too, then every namespace."""
    reader = Fixed(
        namespace("a1", {LABEL: "p-b", PROJECT_ID: "p-a"}),
        namespace("a2", {LABEL: "p-b"}),
        namespace("kube-system"),
        namespace("bad", {LABEL: "Foo_Bar"}),
        namespace("gone", {LABEL: "p-c"}, deletionTimestamp="now"),
        registered("p-orphan"),
        registered("p-denied"),
    )
    found = list(await owning.sweep(UNIT, reader))
    assert len(set(found)) == len(found)
    cut = found.index("namespace/a1")
    assert set(found[:cut]) == {f"project/{name}" for name in ("p-a", "p-b", "p-c", "p-orphan", "p-denied")}
    assert found[cut:] == ["namespace/a1", "namespace/a2", "namespace/kube-system", "namespace/bad"]
    assert all(owning.accepts(UNIT, owner) for owner in found)
    assert list(await owning.sweep(SINGLE, Fixed())) == ["system/cattle-helm-system"]


def test_what_a_sweep_reads_once() -> None:
    """All namespaces, and our objects by label and name; hardening objects only when they are wanted."""
    ours = ((OPERATED, "true"),)
    maps = [Prefetch(CONFIG_MAP, ours, chart.config_map_name) for chart in CHARTS]
    hardening = [Prefetch(SERVICE_ACCOUNT, ours, "default"), Prefetch(NETWORK_POLICY, ours, "hpo-generated-default")]
    assert list(UNIT.prefetch()) == [Prefetch(NAMESPACE), *maps, *hardening]
    assert list(projects(hardenedNamespaces={"enabled": False}).prefetch()) == [Prefetch(NAMESPACE), *maps]
    assert list(SINGLE.prefetch()) == []


async def test_a_remembered_project_is_not_looked_at_again() -> None:
    """A namespace whose memory we wrote needs no look at a project that this process has put right."""
    fields = {"f:metadata": {"f:labels": {f"f:{PROJECT_ID}": {}}}}
    entry = {"manager": "tenantry-namespace-registration", "operation": "Apply", "fieldsV1": fields}
    ours = namespace("a1", {LABEL: "p-a", PROJECT_ID: "p-a"}, managedFields=[entry])
    theirs = namespace("a1", {LABEL: "p-a", PROJECT_ID: "p-a"})
    leaving = namespace("a1", {LABEL: "p-a", PROJECT_ID: "p-a"}, managedFields=[entry], deletionTimestamp="now")
    unit = projects()

    async def stages(found: Object) -> list[list[str]]:
        return [list(stage) for stage in await owning.owners(unit, key(NAMESPACE, "a1"), {}, Fixed(found))]

    assert await stages(ours) == [["project/p-a", "namespace/a1"]]
    owning.ended(unit, "project/p-a", succeeded=True)
    owning.ended(unit, "namespace/a1", succeeded=True)
    assert await stages(ours) == [["namespace/a1"]]
    assert await stages(theirs) == [["project/p-a", "namespace/a1"]]
    assert await stages(leaving) == [["project/p-a"]]
    owning.ended(unit, "project/p-a", succeeded=False)
    assert await stages(ours) == [["project/p-a", "namespace/a1"]]


@pytest.mark.parametrize(("remembered_by_us", "stages"), [(False, []), (True, [["project/p-a"]])])
async def test_whose_release_a_namespace_holds_is_no_memory(remembered_by_us: bool, stages: list[list[str]]) -> None:
    """A namespace made for a release was never in its project; one that was a member before is looked at as left."""
    label = {f"f:{PROJECT_ID}": {}}
    made = {"f:metadata": {"f:labels": {f"f:{NAMESPACE_NAME}": {}, **label}}}
    entries = [{"manager": "tenantry-release-provisioning", "operation": "Update", "fieldsV1": made}]
    if remembered_by_us:
        fields = {"f:metadata": {"f:labels": label}}
        entries.append({"manager": "tenantry-namespace-registration", "operation": "Apply", "fieldsV1": fields})
    labels = {OPERATED: "true", PROJECT_ID: "p-a", LABEL: "p-system"}
    found = namespace("demo-dummy", labels, managedFields=entries)
    assert [list(stage) for stage in await owners(found)] == [*stages, ["namespace/demo-dummy"]]


async def test_a_sweep_looks_at_every_project() -> None:
    """What this process believes to have put right is looked at by the sweep all the same."""
    fields = {"f:metadata": {"f:labels": {f"f:{PROJECT_ID}": {}}}}
    entry = {"manager": "tenantry-namespace-registration", "operation": "Apply", "fieldsV1": fields}
    ours = namespace("a1", {LABEL: "p-a", PROJECT_ID: "p-a"}, managedFields=[entry])
    unit = projects()
    owning.ended(unit, "project/p-a", succeeded=True)

    class Listed(Fixed):
        async def list(self, *_: Any, **__: Any) -> builtins.list[Object]:
            return [ours]

    assert await owning.sweep(unit, Listed(ours)) == ["project/p-a", "namespace/a1"]
