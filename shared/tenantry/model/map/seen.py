"""What was read of a cluster for its map, and what of each object is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tenantry.model.config import Config
from tenantry.model.descriptor import OwnerMark, Tells
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE_BINDING,
    Kind,
    Object,
    annotations_of,
    labels_of,
)
from tenantry.model.paas.names import PAAS_UID

READ_ALWAYS = (NAMESPACE, ROLE_BINDING, CLUSTER_ROLE_BINDING)
_LARGE = frozenset({"HelmChart", "Kustomization", "HelmRelease", "Alert", "Receiver"})
"""Kinds whose spec is not shown and can be large; of Flux' kinds and ours by one name."""


@dataclass(frozen=True, slots=True)
class MapSeen:
    """The lists.

    ``objects`` has an entry for each kind that was read; ``unread`` says by kind why one was not; ``missing`` are kinds of ours
    that the cluster does not serve.
    """

    objects: Mapping[Kind, Sequence[Object]]
    config: Config = field(default_factory=Config)
    unread: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    tells: tuple[Tells, ...] = ()
    marks: tuple[OwnerMark, ...] = ()

    def of(self, kind: Kind) -> Sequence[Object]:
        """The objects of a kind; none where it was not read."""
        return self.objects.get(kind, ())


def kinds_of(tells: Iterable[Tells]) -> dict[Kind, bool]:
    """All kinds to read, and whether each is ours: those of other systems need not be served."""
    found = dict.fromkeys(READ_ALWAYS, True)
    for each in tells:
        found[each.kind] = not each.reasons
    return found


def kept(obj: Object, keys: frozenset[str]) -> Object:
    """What of an object the map needs: names, marks, spec where it is shown, and conditions; ``keys`` are labels of marks."""
    metadata = obj["metadata"]
    whole = obj["kind"] == NAMESPACE.kind
    small = {
        name: metadata[name]
        for name in ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "generation")
        if name in metadata
    }
    labels, annotations = labels_of(obj), annotations_of(obj)
    marked = labels if whole else {key: value for key, value in labels.items() if key in keys}
    noted = {
        key: value for key, value in annotations.items() if key in keys or key.startswith("tenantry.dev/") or key == PAAS_UID
    }
    if marked:
        small["labels"] = dict(marked)
    if noted:
        small["annotations"] = noted
    if whole and metadata.get("managedFields"):
        small["managedFields"] = metadata["managedFields"]  # of ours alone: they say whose a namespace is
    left: Object = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": small}
    for part in ("roleRef", "subjects"):
        if part in obj:
            left[part] = obj[part]
    if "spec" in obj and not whole and obj["kind"] not in _LARGE:
        left["spec"] = obj["spec"]
    if status := obj.get("status"):
        left["status"] = {name: value for name, value in status.items() if name not in ("notes", "dashboardValues", "lastDrift")}
    return left


def named_namespaces(obj: Object) -> Iterator[str]:
    """The namespaces that an object names, by the fields in which our kinds do."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    for part, names in (
        (spec, ("namespaces", "namespaceMembers")),
        (status, ("namespaces", "namespace", "validatedMembers", "unboundNamespaces", "targetNamespaces")),
    ):
        for name in names:
            found = part.get(name)
            if isinstance(found, str):
                yield found
            elif isinstance(found, list | dict):
                yield from (each for each in found if isinstance(each, str) and each)
