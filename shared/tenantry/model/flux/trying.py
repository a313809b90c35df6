"""The object that shows, by a dry run, whether a namespace may use a source: a consumer that names it (2.8)."""

from __future__ import annotations

from typing import NamedTuple

from tenantry.model.flux.access import NamedObject
from tenantry.model.flux.consumers import AUTOMATION_GROUP, HELM_GROUP, KUSTOMIZE_GROUP
from tenantry.model.flux.names import IMAGE_REPOSITORY, SOURCES
from tenantry.model.kinds import Object, can_be_name

TRIED_KINDS = (*SOURCES, IMAGE_REPOSITORY)
"""The kinds that can be tried."""
_INTERVAL = "1h"


class TriedConsumer(NamedTuple):
    """The kind of consumer by group and name, and the spec of one."""

    group: str
    kind: str
    spec: Object


def named_in(text: str) -> NamedObject:
    """``Kind/namespace/name``, as people type it.

    Raises:
        ValueError: it is none; the message says what to type.
    """
    kind, *rest = text.split("/")
    named = {each.lower(): each for each in TRIED_KINDS}.get(kind.lower())
    if named is None or len(rest) != 2 or not all(can_be_name(each) for each in rest):
        raise ValueError(f"{text!r} names no source: write KIND/NAMESPACE/NAME, KIND one of {', '.join(TRIED_KINDS)}")
    return NamedObject(named, *rest)


def consumer_of(source: NamedObject, *, account: str = "", writes: bool = False) -> TriedConsumer:
    """A consumer of a source; one that writes is an ImageUpdateAutomation.

    Raises:
        ValueError: nothing writes to this kind of source.
    """
    reference = {"kind": source.kind, "name": source.name, "namespace": source.namespace}
    applied = {"interval": _INTERVAL, **({"serviceAccountName": account} if account else {})}
    if writes:
        if source.kind != "GitRepository":
            raise ValueError(f"nothing writes to a {source.kind}: only a GitRepository can be asked for with --write")
        return TriedConsumer(AUTOMATION_GROUP, "ImageUpdateAutomation", {"interval": _INTERVAL, "sourceRef": reference})
    match source.kind:
        case "ImageRepository":
            image = {"name": source.name, "namespace": source.namespace}
            policy: Object = {"alphabetical": {}}
            return TriedConsumer(AUTOMATION_GROUP, "ImagePolicy", {"imageRepositoryRef": image, "policy": policy})
        case "HelmRepository":
            chart = {"spec": {"chart": "any", "sourceRef": reference}}
            return TriedConsumer(HELM_GROUP, "HelmRelease", {**applied, "chart": chart})
        case "HelmChart":
            return TriedConsumer(HELM_GROUP, "HelmRelease", {**applied, "chartRef": reference})
    return TriedConsumer(KUSTOMIZE_GROUP, "Kustomization", {**applied, "prune": False, "sourceRef": reference})
