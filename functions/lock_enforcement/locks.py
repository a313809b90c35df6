"""HelmReleases: which are ours, which release they name, where its lock may act, and what they let others change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lock_enforcement.fields import pointer_problem
from lock_enforcement.helm import Mark, release_in_name
from tenantry.model.config import Config
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import CONFIG_MAP, SECRET, Key, Kind, Object, annotations_of, is_terminating
from tenantry.model.names import LOCK, LOCK_IGNORE, LOCK_PAUSED, RELEASE_MANAGED_BY
from tenantry.model.releases import is_release_name

LONGEST_RELEASE = 53
"""Characters that Helm allows in the name of a release."""


def is_ours(helm_release: Object, config: Config) -> bool:
    """Whether a HelmRelease is for this installation: in the system namespace, and not another's (hpo-75)."""
    operator = config.helm_project_operator
    manager = annotations_of(helm_release).get(RELEASE_MANAGED_BY, operator.controller_name)
    return helm_release["metadata"].get("namespace") == operator.system_namespace and manager == operator.controller_name


def release_named(helm_release: Object) -> Mark | None:
    """The Helm release that a HelmRelease names; None when it names none that can be."""
    release = (helm_release.get("spec") or {}).get("release") or {}
    name, namespace = release.get("name") or "", release.get("namespace") or ""
    possible = len(name) <= LONGEST_RELEASE and is_release_name(name) and is_dns_label(namespace)
    return Mark(name, namespace) if possible else None


def claim_of(helm_release: Object, config: Config) -> Mark | None:
    """The Helm release that a HelmRelease claims: one that is for this installation and is not being deleted."""
    return release_named(helm_release) if is_ours(helm_release, config) and not is_terminating(helm_release) else None


def helm_releases_of(record: Key, helm_releases: Iterable[Object]) -> list[Object]:
    """The HelmReleases whose release a record is of, where Helm keeps it; none for what is no record."""
    release = Mark(release_in_name(record.name), record.namespace)
    return [each for each in helm_releases if release_named(each) == release and storage_of(each).kind == record.kind]


def storage_of(helm_release: Object) -> Kind:
    """Where Helm keeps the records of the release: Secrets, unless an administrator wrote otherwise.

    Never whatever exists: a record that Helm does not use is written by somebody else.
    """
    return CONFIG_MAP if (helm_release.get("spec") or {}).get("storage") == CONFIG_MAP.kind else SECRET


@dataclass(frozen=True, slots=True)
class LockReach:
    """Where the lock of a HelmRelease may read and write: in the namespace of its release, and what the HelmRelease names.

    A record says what Helm made, but whoever may write Secrets beside a release can write a record; only administrators
    write HelmReleases.
    """

    home: str
    namespaces: frozenset[str] = frozenset()
    cluster_kinds: frozenset[str] = frozenset()

    def outside(self, kind: Kind, namespace: str) -> str:
        """The field of ``spec.allow`` that would have to name an object's namespace or kind; empty when it is within reach."""
        if not kind.namespaced:
            return "" if resource_name(kind) in self.cluster_kinds else "clusterKinds"
        return "" if namespace == self.home or namespace in self.namespaces else "namespaces"


def resource_name(kind: Kind) -> str:
    """A kind as ``spec.allow.clusterKinds`` names it: ``ClusterRole.rbac.authorization.k8s.io``, or ``Namespace``."""
    return f"{kind.kind}.{kind.group}" if kind.group else kind.kind


def reach_of(helm_release: Object, release: Mark) -> LockReach:
    """Where the lock of a HelmRelease for this release may act."""
    allowed = (helm_release.get("spec") or {}).get("allow")
    given = allowed if isinstance(allowed, dict) else {}
    return LockReach(release.namespace, _texts(given.get("namespaces")), _texts(given.get("clusterKinds")))


def _texts(value: object) -> frozenset[str]:
    return frozenset(text for text in value if isinstance(text, str)) if isinstance(value, list) else frozenset()


def is_paused(helm_release: Object) -> bool:
    """Whether a whole release is paused, by field or by annotation (hpo-80)."""
    return (helm_release.get("spec") or {}).get("suspend") is True or has_pause(helm_release)


def resumed(helm_release: Object) -> Object:
    """The HelmRelease as if nobody had paused it."""
    annotations = {name: text for name, text in annotations_of(helm_release).items() if name != LOCK}
    metadata = {**helm_release["metadata"], "annotations": annotations}
    return {**helm_release, "metadata": metadata, "spec": {**(helm_release.get("spec") or {}), "suspend": False}}


def has_pause(obj: Object | None) -> bool:
    """Whether an object has the annotation that pauses its lock."""
    return annotations_of(obj).get(LOCK) == LOCK_PAUSED


def ignored(helm_release: Object, wanted: Object, live: Object | None) -> list[str]:
    """The JSON pointers that apply to one object: rules of the HelmRelease, and annotations of the object and its manifest."""
    found = [pointer for rule in _rules(helm_release) if _concerns(rule, wanted) for pointer in rule.get("paths") or ()]
    return list(dict.fromkeys([*found, *_annotated(wanted, live)]))


def _annotated(*objects: Object | None) -> list[str]:
    texts = [annotations_of(obj).get(LOCK_IGNORE, "") for obj in objects]
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def annotation_problems(*objects: Object | None) -> list[str]:
    """What is wrong with the annotations that name ignored fields, a text each."""
    return [f"annotation {LOCK_IGNORE}: {problem}" for part in _annotated(*objects) if (problem := pointer_problem(part))]


def ignore_problems(helm_release: Object) -> list[str]:
    """What is wrong with the ignore rules of a HelmRelease, a text each."""
    return [
        f"spec.ignore[{number}]: {problem}"
        for number, rule in enumerate(_rules(helm_release))
        for pointer in rule.get("paths") or ()
        if (problem := pointer_problem(pointer))
    ]


def _rules(helm_release: Object) -> list[Object]:
    return [rule for rule in (helm_release.get("spec") or {}).get("ignore") or () if isinstance(rule, dict)]


def _concerns(rule: Object, wanted: Object) -> bool:
    metadata = wanted["metadata"]
    asked = {"kind": wanted["kind"], "name": metadata["name"], "namespace": metadata.get("namespace", "")}
    return all(not rule.get(part) or rule[part] == value for part, value in asked.items())
