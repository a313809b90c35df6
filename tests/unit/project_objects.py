"""Projects as they are observed, what is planned and told for them, and their namespaces, for tests without a cluster."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from namespace_registration.projects.plan import Project, plan_project
from namespace_registration.projects.unit import Projects
from tenantry.api import Api
from tenantry.engine.reader import Reader
from tenantry.model.config import Config
from tenantry.model.hardening import HARDENED_BY, Hardening
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Key, Kind, Object, labels_of
from tenantry.model.names import NAMESPACE_NAME, OPERATED, ORPHANED, PROJECT_ID, REGISTERED_CONDITION
from tenantry.model.plan import Apply, Cause, Plan, Refusal
from tenantry.model.projects import REGISTRATION_MANAGER as US
from tenantry.model.projects import ChartFiles
from tenantry.testing.objects import obj

LABEL = "field.cattle.io/projectId"
NAME = "cattle-project-p-a"
CHARTS = (ChartFiles("dummy.cattle.io.v1alpha1", "a: 1\n", "questions: []\n"), ChartFiles("other.io.v1"))


def config(cluster_id: str = "c-test", label: str = LABEL, **operator: Any) -> Config:
    """A configuration with the project labels ``p-system`` and ``p-denied`` on the deny list."""
    cattle = {"clusterId": cluster_id, "systemProjectId": "p-system", "projectLabel": label}
    return Config.model_validate(
        {
            "global": {"cattle": cattle},
            "helmProjectOperator": {"otherSystemProjectLabelValues": ["p-denied"], **operator},
        }
    )


CONFIG = config()


def namespace(name: str = "a1", labels: dict[str, str] | None = None, **metadata: Any) -> Object:
    """A namespace as it is observed."""
    return obj(NAMESPACE, name, labels=labels or {}, metadata={"uid": f"u-{name}", **metadata})


def marks(project: str) -> dict[str, str]:
    """The labels of a project's registration namespace."""
    return {OPERATED: "true", PROJECT_ID: project, LABEL: project, NAMESPACE_NAME: f"cattle-project-{project}"}


MARKS = marks("p-a")
ANNOTATIONS = {LABEL: "c-test:p-a"}
A1 = namespace("a1", {LABEL: "p-a"})


def owned(obj: Object, fields: Object, manager: str = US, operation: str = "Apply", subresource: str = "") -> Object:
    """Return the object with one more entry of managedFields."""
    entry = {"manager": manager, "operation": operation, "fieldsV1": fields, "subresource": subresource}
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "managedFields": [*metadata.get("managedFields", ()), entry]}}


def registration(labels: dict[str, str] | None = None, **metadata: Any) -> Object:
    """Return p-a's registration namespace as our create leaves it, with further labels."""
    live = namespace(NAME, {**MARKS, **(labels or {})}, annotations=ANNOTATIONS, **metadata)
    names: Object = {"f:labels": {f"f:{name}": {} for name in MARKS}, "f:annotations": {f"f:{LABEL}": {}}}
    return owned(live, {"f:metadata": names}, operation="Update")


def project(**fields: Any) -> Project:
    """Return p-a as alive, with its registration namespace and nothing in it, unless said otherwise."""
    return Project(**{"id": "p-a", "registration": registration(), "ours": True, "alive": True, **fields})


def settled(seen: Project, used: Config = CONFIG) -> Project:
    """The project with everything in place that its plan wants inside its registration namespace."""
    made = {
        (write.kind, write.key.name): write.wanted
        for write in plan_project(seen, CHARTS, used).writes()
        if isinstance(write, Apply)
    }
    maps: dict[str, Object | None] = {name: obj for (kind, name), obj in made.items() if kind is CONFIG_MAP}
    hardening = Hardening(*(made.get(hardened) for hardened in HARDENED_BY.items()))
    return replace(seen, config_maps=maps, hardening=hardening)


def orphan(manager: str, *more: str) -> Object:
    """Return an orphaned registration namespace whose orphan label these managers own."""
    live = registration({ORPHANED: "true"})
    for owner in (manager, *more):
        live = owned(live, {"f:metadata": {"f:labels": {f"f:{ORPHANED}": {}}}}, owner)
    return live


def changes(plan: Plan) -> list[str]:
    """The changes of a plan, as texts."""
    return [str(change) for change in plan.changes(US)]


def reasons(plan: Plan) -> list[str]:
    """The reasons of the Events that go with the changes of a plan."""
    return [change.write.event.reason for change in plan.changes(US) if change.write.event is not None]


def wanted(plan: Plan, kind: Kind, name: str = "") -> Object:
    """The object of a kind, and of a name if there is one, that a plan applies."""
    found = [write.wanted for write in plan.writes() if isinstance(write, Apply) and write.kind is kind]
    return next(obj for obj in found if not name or obj["metadata"]["name"] == name)


def refusal(cause: Cause, kind: Kind = CONFIG_MAP, name: str = "c", message: str = "no room") -> Refusal:
    """Return a refused write: of a namespace, or of something inside p-a's."""
    place = ("", NAME) if kind is NAMESPACE else (NAME, name)
    return Refusal(Key(kind.api_version, kind.kind, *place), cause, message)


def told(plan: Plan) -> list[tuple[str, str, str]]:
    """Return object, reason and message of each condition that a report sets."""
    found = []
    for write in plan.writes():
        assert isinstance(write, Apply)
        assert write.subresource == "status"
        assert write.event is not None
        for made in write.wanted.get("status", {}).get("conditions", ()):
            assert (made["type"], made["status"]) == (REGISTERED_CONDITION, "False")
            assert (write.event.reason, write.event.note, write.event.type) == (made["reason"], made["message"], "Warning")
            assert set(write.wanted["metadata"]) == {"name"}
            found.append((write.key.name, made["reason"], made["message"]))
    return found


def unwell(obj: Object, reason: str = "QuotaExceeded", message: str = "m") -> Object:
    """The namespace with a condition of ours that it is not registered, for this reason."""
    said = {"type": REGISTERED_CONDITION, "status": "False", "reason": reason, "message": message, "lastTransitionTime": "then"}
    key = 'k:{"type":"%s"}' % REGISTERED_CONDITION  # noqa: UP031
    fields: Object = {"f:status": {"f:conditions": {key: {".": {}, **{f"f:{name}": {} for name in said}}}}}
    return owned({**obj, "status": {"phase": "Active", "conditions": [said]}}, fields, subresource="status")


def projects(label: str = LABEL, **operator: Any) -> Projects:
    """The unit of projects, configured like this."""
    return Projects(config(label=label, **operator), CHARTS)


UNIT = projects()
SINGLE = projects(label="")


def registered(project: str) -> Object:
    """A project's registration namespace by its marks alone: nobody owns its fields."""
    return namespace(f"cattle-project-{project}", marks(project))


def key(kind: Kind, name: str, namespace: str = "") -> Key:
    """The key of an object."""
    return Key(kind.api_version, kind.kind, namespace, name)


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
        return [item for item in self.known.values() if item is not None and wanted <= labels_of(item).items()]
