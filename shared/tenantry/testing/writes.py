"""What functions wrote, as far as their fences ask: labels, annotations, finalizers, roles, fields.

From the audit log, so from what was really asked for: the body of a request is all that a fence's lists are about.  Secrets are
in the log without their contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tenantry.local.fence_policy import POLICY
from tenantry.model.names import REGISTRATION_PREFIX

_WRITES = frozenset({"create", "update", "patch", "delete"})
_WORKLOADS = frozenset({"deployments", "statefulsets", "daemonsets"})


@dataclass(frozen=True, slots=True, order=True)
class Written:
    """One value that a function wrote, by the list of its fence that has to have it."""

    function: str
    list: str
    value: str


@dataclass(frozen=True, slots=True)
class Request:
    """One write: what it is about, and its body; the operations of a JSON patch as a list."""

    resource: str
    namespace: str
    name: str
    body: Any

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata that are written; empty for a JSON patch."""
        found = self.body.get("metadata") if isinstance(self.body, dict) else None
        return found if isinstance(found, dict) else {}

    def at(self, *path: str) -> Any:
        """What the body has there; None when nothing."""
        found = self.body
        for part in path:
            found = found.get(part) if isinstance(found, dict) else None
        return found


def _keys(part: str) -> Callable[[Request], Iterable[str]]:
    """The keys of labels or annotations that a request writes or takes off."""

    def find(request: Request) -> Iterator[str]:
        yield from request.metadata.get(part) or ()
        for step in request.body if isinstance(request.body, list) else ():
            head, _, key = str(step.get("path", "")).partition(f"/metadata/{part}")
            if head or step.get("op") == "test":
                continue
            if key:
                yield key.removeprefix("/").replace("~1", "/").replace("~0", "~")
            elif isinstance(step.get("value"), dict):
                yield from step["value"]

    return find


def _finalizers(request: Request) -> Iterator[str]:
    yield from request.metadata.get("finalizers") or ()
    steps = request.body if isinstance(request.body, list) else []
    mine = [step for step in steps if step.get("path") == "/metadata/finalizers" and isinstance(step.get("value"), list)]
    before = {name for step in mine if step.get("op") == "test" for name in step["value"]}
    after = {name for step in mine if step.get("op") != "test" for name in step["value"]}
    if after or len(mine) > 1:
        yield from before ^ after


def _of(*resources: str) -> Callable[[Callable[[Request], Iterable[str]]], Callable[[Request], Iterable[str]]]:
    """The same for some resources only."""

    def narrowed(find: Callable[[Request], Iterable[str]]) -> Callable[[Request], Iterable[str]]:
        return lambda request: find(request) if request.resource in resources else ()

    return narrowed


def _subjects(request: Request) -> Iterator[str]:
    yield from (each["kind"] for each in request.at("subjects") or ())


def _role(request: Request) -> Iterator[str]:
    if name := request.at("roleRef", "name"):
        yield name


def _verbs(request: Request) -> Iterator[str]:
    yield from (verb for rule in request.at("rules") or () for verb in rule.get("verbs") or ())


def _spec(request: Request) -> Iterator[str]:
    yield from request.at("spec") or ()


def _containers(request: Request) -> Iterator[Mapping[str, Any]]:
    yield from request.at("spec", "template", "spec", "containers") or ()


def _images(request: Request) -> Iterator[str]:
    yield from (each["image"] for each in _containers(request))


def _environment(request: Request) -> Iterator[str]:
    yield from (entry["name"] for each in _containers(request) for entry in each.get("env") or ())


def _restarts(request: Request) -> Iterator[str]:
    yield from request.at("spec", "template", "metadata", "annotations") or ()


_LABELS, _ANNOTATIONS = _keys("labels"), _keys("annotations")


def _member_labels(request: Request) -> Iterable[str]:
    return () if request.name.startswith(REGISTRATION_PREFIX) else _LABELS(request)


LISTS: dict[tuple[str, str], Callable[[Request], Iterable[str]]] = {
    ("namespace-registration", "labels"): _LABELS,
    ("namespace-registration", "memberLabels"): _of("namespaces")(_member_labels),
    ("namespace-registration", "annotations"): _ANNOTATIONS,
    ("rbac-aggregation", "labels"): _LABELS,
    ("rbac-aggregation", "annotations"): _ANNOTATIONS,
    ("rbac-aggregation", "subjects"): _subjects,
    ("rbac-aggregation-paas", "annotations"): _ANNOTATIONS,
    ("rbac-aggregation-paas", "finalizers"): _finalizers,
    ("release-provisioning", "labels"): _LABELS,
    ("release-provisioning", "annotations"): _ANNOTATIONS,
    ("release-provisioning", "finalizers"): _finalizers,
    ("release-provisioning", "chartFields"): _of("helmcharts")(_spec),
    ("release-provisioning-helm-jobs", "labels"): _LABELS,
    ("release-provisioning-helm-jobs", "annotations"): _ANNOTATIONS,
    ("release-provisioning-helm-jobs", "finalizers"): _finalizers,
    ("release-provisioning-helm-jobs", "environment"): _of("jobs")(_environment),
    ("release-provisioning-helm-jobs", "images"): _of("jobs")(_images),
    ("release-provisioning-helm-jobs", "roles"): _of("rolebindings")(_role),
    ("release-provisioning-helm-jobs", "clusterRoles"): _of("clusterrolebindings")(_role),
    ("release-provisioning-paas", "annotations"): _ANNOTATIONS,
    ("release-provisioning-paas", "finalizers"): _finalizers,
    ("scope-binding", "labels"): _LABELS,
    ("scope-binding-namespace-scopes", "labels"): _LABELS,
    ("scope-binding-namespace-scopes", "annotations"): _ANNOTATIONS,
    ("scope-binding-namespace-scopes", "finalizers"): _finalizers,
    ("scope-binding-namespace-scopes", "verbs"): _of("roles")(_verbs),
    ("scope-binding-namespace-scopes", "restarts"): _of(*_WORKLOADS)(_restarts),
    ("scope-binding-olm", "labels"): _LABELS,
    ("scope-binding-paas", "labels"): _LABELS,
    ("scope-binding-sources", "labels"): _LABELS,
    ("scope-binding-paas", "annotations"): _ANNOTATIONS,
    ("scope-binding-paas", "finalizers"): _finalizers,
    ("lock-enforcement-access", "annotations"): _ANNOTATIONS,
    ("lock-enforcement-access", "finalizers"): _finalizers,
    ("lock-enforcement", "annotations"): _of("helmreleases")(_ANNOTATIONS),
    ("lock-enforcement", "finalizers"): _of("helmreleases")(_finalizers),
}
"""How the entries of a fence's list are found in a request.  Lists that are not here refuse, or come from the configuration."""


def written(event: Mapping[str, Any], function: str) -> tuple[set[Written], bool]:
    """What a request of a function wrote or wanted to, and whether it was refused by the function's fence.

    A request that came to nothing for another reason tells nothing.
    """
    status, reference = event.get("responseStatus") or {}, event["objectRef"]
    refused = f"'{POLICY}" in status.get("message", "")
    if event["verb"] not in _WRITES or reference.get("subresource") or not (refused or status.get("code", 500) < 300):
        return set(), False
    body = event.get("requestObject")
    request = Request(reference["resource"], reference.get("namespace", ""), reference.get("name", ""), body)
    found = {
        Written(function, name, value) for (of, name), find in LISTS.items() if of == function and body for value in find(request)
    }
    return found, refused
