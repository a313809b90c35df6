"""Whom an event touches, which owners a request may name, and whom a sweep looks at."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any, cast

import owning
import pytest

from namespace_registration.projects.plan import Project, SystemNamespace
from namespace_registration.projects.unit import Projects
from tenantry.api import Api
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.model.config import Config
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT, Key, Kind, Object
from tenantry.model.names import NAMESPACE_NAME, OPERATED, PROJECT_ID
from tenantry.model.plan import NOTHING
from tenantry.model.projects import ChartFiles

LABEL = "field.cattle.io/projectId"
CHARTS = (ChartFiles("dummy.cattle.io.v1alpha1"), ChartFiles("other.io.v1"))


def projects(label: str = LABEL, **operator: Any) -> Projects:
    config = Config.model_validate(
        {
            "global": {"cattle": {"systemProjectId": "p-system", "projectLabel": label}},
            "helmProjectOperator": {"otherSystemProjectLabelValues": ["p-denied"], **operator},
        }
    )
    return Projects(config, CHARTS)


UNIT = projects()
SINGLE = projects(label="")


def namespace(name: str, labels: dict[str, str] | None = None, **metadata: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": "u", "labels": labels or {}, **metadata}}


def registration(project: str) -> Object:
    name = f"cattle-project-{project}"
    return namespace(name, {OPERATED: "true", PROJECT_ID: project, LABEL: project, NAMESPACE_NAME: name})


class Fixed(Reader):
    """A reader over these namespaces, without any API server: what it does not know is not there."""

    def __init__(self, *namespaces: Object, causes: Sequence[Key] = ()) -> None:
        super().__init__(cast(Api, None), causes)
        self.known |= {key(NAMESPACE, item["metadata"]["name"]): item for item in namespaces}
        self.asked: builtins.list[tuple[Kind, str]] = []

    async def _fetch(self, kind: Kind, name: str, namespace: str) -> Object | None:
        self.asked.append((kind, name))
        return None

    async def list(
        self, kind: Kind, namespace: str = "", *, labels: Mapping[str, str] | None = None, name: str = ""
    ) -> builtins.list[Object]:
        assert (kind, namespace, name) == (NAMESPACE, "", "")
        wanted = (labels or {}).items()
        return [item for item in self.known.values() if item is not None and wanted <= item["metadata"]["labels"].items()]


def key(kind: Kind, name: str, namespace: str = "") -> Key:
    return Key(kind.api_version, kind.kind, namespace, name)


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
        (registration("p-a"), [["project/p-a"]]),
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
        registration("p-orphan"),
        registration("p-denied"),
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


# -- what is observed ------------------------------------------------------------------------------------------


def a(name: str, project: str = "p-a", **metadata: Any) -> Object:
    return namespace(name, {LABEL: project}, **metadata)


@pytest.mark.parametrize(
    ("causes", "there", "alive", "members"),
    [
        ([], [a("a1"), a("a2"), a("b1", "p-b")], True, ["a1", "a2"]),
        ([], [a("b1", "p-b")], False, []),
        ([], [a("a1", deletionTimestamp="now")], False, []),
        ([key(NAMESPACE, "a2")], [a("a1"), a("a2")], True, ["a2"]),
        ([key(NAMESPACE, "a1"), key(NAMESPACE, "a2")], [a("a1"), a("a2")], True, ["a1"]),
        ([key(NAMESPACE, "gone")], [a("a1")], True, ["a1"]),
        ([key(NAMESPACE, "gone")], [], False, []),
        ([key(NAMESPACE, "b1")], [a("b1", "p-b")], False, []),
        ([key(NAMESPACE, "cattle-project-p-a")], [a("a1")], True, ["a1"]),
        ([key(CONFIG_MAP, "c", "cattle-project-p-a")], [a("a1")], None, []),
        ([key(CONFIG_MAP, "c", "cattle-project-p-b")], [a("a1")], True, ["a1"]),
        ([key(CONFIG_MAP, "c", "cattle-project-p-a"), key(NAMESPACE, "gone")], [a("a1")], True, ["a1"]),
    ],
)
async def test_whether_a_project_is_alive(causes: list[Key], there: list[Object], alive: bool | None, members: list[str]) -> None:
    """Who woke the run is asked first, else all are listed; what lives inside the registration namespace does not ask."""
    seen = await owning.observe(UNIT, "project/p-a", Fixed(*there, registration("p-a"), causes=causes))
    assert isinstance(seen, Project)
    assert (seen.alive, [member["metadata"]["name"] for member in seen.members], seen.ours) == (alive, members, True)


async def test_an_object_inside_without_its_namespace_asks() -> None:
    """When the registration namespace is gone, its objects' events do ask, so that a living project gets it back."""
    seen = await owning.observe(UNIT, "project/p-a", Fixed(a("a1"), causes=[key(CONFIG_MAP, "c", "cattle-project-p-a")]))
    assert isinstance(seen, Project)
    assert (seen.alive, seen.registration) == (True, None)


async def test_a_denied_project_is_not_alive() -> None:
    """A project on the deny list has no members, whatever namespaces say."""
    seen = await owning.observe(UNIT, "project/p-denied", Fixed(a("a1", "p-denied"), registration("p-denied")))
    assert isinstance(seen, Project)
    assert (seen.alive, seen.members, seen.ours) == (False, (), True)


@pytest.mark.parametrize(
    ("found", "ours"),
    [
        (None, False),
        (namespace("cattle-project-p-a"), False),
        ({**registration("p-a"), "metadata": {**registration("p-a")["metadata"], "deletionTimestamp": "now"}}, True),
    ],
)
async def test_contents_are_read_only_where_they_are_ours(found: Object | None, ours: bool) -> None:
    """Nothing inside a missing, foreign or terminating namespace is read."""
    reader = Fixed(*([] if found is None else [found]))
    seen = await owning.observe(UNIT, "project/p-a", reader)
    assert isinstance(seen, Project)
    assert (seen.ours, seen.config_maps, {kind for kind, _ in reader.asked} - {NAMESPACE}) == (ours, {}, set())


async def test_hardening_objects_are_read_only_when_they_are_wanted() -> None:
    """With hardening off neither ServiceAccount nor NetworkPolicy is read."""
    on, off = Fixed(registration("p-a")), Fixed(registration("p-a"))
    await owning.observe(UNIT, "project/p-a", on)
    await owning.observe(projects(hardenedNamespaces={"enabled": False}), "project/p-a", off)
    assert {kind for kind, _ in on.asked} == {CONFIG_MAP, SERVICE_ACCOUNT, NETWORK_POLICY}
    assert {kind for kind, _ in off.asked} == {CONFIG_MAP}


async def test_a_witness_must_still_be_there_after_the_writes() -> None:
    """The member that carries the decision is an input: when it leaves, the run starts over."""
    reader = Fixed(a("a1"), registration("p-a"), causes=[key(NAMESPACE, "a1")])
    await owning.observe(UNIT, "project/p-a", reader)
    ((compute, before),) = reader._inputs
    assert before is True
    assert await compute(Fixed(a("a1"))) is True
    assert await compute(Fixed(a("a1", "p-b"))) is False
    assert await compute(Fixed()) is False


async def test_that_nobody_is_left_must_still_hold_after_the_writes() -> None:
    """An orphaned project is an input too: when somebody joins, the run starts over."""
    reader = Fixed(registration("p-a"))
    await owning.observe(UNIT, "project/p-a", reader)
    ((compute, before),) = reader._inputs
    assert before is False
    assert await compute(Fixed(a("a1"))) is True


async def test_each_kind_of_owner_is_observed_planned_and_reported() -> None:
    """The wiring gives every observed value to its own plan and report."""
    member = await owning.observe(UNIT, "namespace/a1", Fixed(a("a1")))
    assert member == a("a1")
    assert [write.key.name for write in owning.handler(UNIT, "namespace/a1").plan(member).writes()] == ["a1"]
    assert owning.handler(UNIT, "namespace/a1").report(member, ()) == NOTHING
    system = await owning.observe(SINGLE, "system/cattle-helm-system", Fixed(namespace("cattle-helm-system")))
    assert isinstance(system, SystemNamespace)
    assert [write.key.name for write in owning.handler(SINGLE, "system/x").plan(system).writes()] == [
        chart.config_map_name for chart in CHARTS
    ]
    assert owning.handler(SINGLE, "system/x").report(system, ()) == NOTHING
    nowhere = await owning.observe(SINGLE, "system/cattle-helm-system", Fixed())
    assert nowhere == SystemNamespace(None)
    project = await owning.observe(UNIT, "project/p-a", Fixed(a("a1")))
    assert next(owning.handler(UNIT, "project/p").plan(project).writes()).key.kind == "Namespace"
    assert owning.handler(UNIT, "project/p").report(project, ()) == NOTHING


def managed(found: Object) -> Object:
    """Return the object as one that we have applied before."""
    entry = {"manager": "tenantry-namespace-registration", "operation": "Apply", "fieldsV1": {"f:metadata": {}}}
    return {**found, "metadata": {**found["metadata"], "managedFields": [entry]}}


async def test_a_member_of_before_saves_the_list() -> None:
    """A namespace that was a member last time is looked at before all are listed, while the project is served."""
    unit, reg = projects(), managed(registration("p-a"))
    await owning.observe(unit, "project/p-a", Fixed(a("a1"), reg, causes=[key(NAMESPACE, "a1")]))
    reader = Fixed(a("a1"), reg, causes=[key(NAMESPACE, "cattle-project-p-a")])
    reader.list = None  # type: ignore[assignment,method-assign]
    seen = await owning.observe(unit, "project/p-a", reader)
    assert isinstance(seen, Project)
    assert seen.alive is True


@pytest.mark.parametrize("there", [[a("a2")], [a("a1", "p-b"), a("a2")], [a("a1", deletionTimestamp="now"), a("a2")]])
async def test_a_member_of_before_is_only_a_hint(there: list[Object]) -> None:
    """When it is no member any more all namespaces are listed."""
    unit, reg = projects(), managed(registration("p-a"))
    await owning.observe(unit, "project/p-a", Fixed(a("a1"), reg, causes=[key(NAMESPACE, "a1")]))
    seen = await owning.observe(unit, "project/p-a", Fixed(*there, reg, causes=[key(NAMESPACE, "cattle-project-p-a")]))
    assert isinstance(seen, Project)
    assert (seen.alive, [member["metadata"]["name"] for member in seen.members]) == (True, ["a2"])


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
