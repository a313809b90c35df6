"""What an audit knows of a cluster, and what it says: values, and what is kept of objects as they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.consumers import Consumer
from tenantry.model.flux.names import PRUNE
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import Object, annotations_of, labels_of

INVENTORY = "_{namespace}__Namespace"
"""The id of a Namespace in the inventory of a Kustomization."""


class AuditFinding(NamedTuple):
    """What would be refused, or would not do what it is there for; ``grant``: the manifest that would allow it."""

    reason: str
    kind: str
    namespace: str
    name: str
    text: str
    fix: str
    grant: Object | None = None

    @property
    def about(self) -> str:
        """The object, as people write it."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    def shown(self) -> dict[str, Any]:
        """As programs read it."""
        return {key: value for key, value in self._asdict().items() if value not in ("", None)}


class AuditedConsumer(NamedTuple):
    """An object with its row of the table."""

    row: Consumer
    live: Object

    @property
    def namespace(self) -> str:
        """Where it is."""
        found: str = self.live["metadata"]["namespace"]
        return found

    @property
    def name(self) -> str:
        """Its own."""
        found: str = self.live["metadata"]["name"]
        return found

    @property
    def spec(self) -> Mapping[str, Any]:
        """What it says, as far as it was kept."""
        return self.live.get("spec") or {}

    def finding(self, reason: str, text: str, fix: str, grant: Object | None = None) -> AuditFinding:
        """One about it."""
        return AuditFinding(reason, self.live["kind"], self.namespace, self.name, text, fix, grant)


@dataclass(frozen=True, slots=True)
class AuditSeen:
    """A cluster, as far as the profile ``multi-tenant`` concerns it; the profile is as it would be switched on.

    Objects that are going are left out.  ``charts`` are HelmCharts that were made for a HelmRelease of another namespace;
    ``accounts`` are the ServiceAccounts that are there, of those that were asked for, by namespace and name.
    """

    profile: Profile
    entries: AccessEntries = field(default_factory=AccessEntries)
    namespaces: Mapping[str, Object] = field(default_factory=dict)
    consumers: tuple[AuditedConsumer, ...] = ()
    charts: tuple[Object, ...] = ()
    deployments: tuple[Object, ...] = ()
    accounts: frozenset[tuple[str, str]] = frozenset()

    def labels(self, namespace: str) -> Mapping[str, str] | None:
        """Those of a Namespace; None: it was not there when they were read."""
        found = self.namespaces.get(namespace)
        return labels_of(found) if found is not None else None


def kept_consumer_fields(live: Object, row: Consumer) -> Object:
    """Of a consumer what an audit judges by: references, account, and whether its own Namespace is in its inventory."""
    written = live.get("spec") or {}
    names = {each.path.removeprefix("spec.").partition(".")[0].removesuffix("[]") for each in row.references}
    spec = {name: written[name] for name in (*names, "serviceAccountName") if name in written}
    if written.get("kubeConfig"):
        spec["kubeConfig"] = {}
    kept: Object = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": _identity(live), "spec": spec}
    own = INVENTORY.format(namespace=live["metadata"]["namespace"])
    status = live.get("status") or {}
    entries = ((status.get("inventory") or {}).get("entries") or ()) if isinstance(status, Mapping) else ()
    if any(isinstance(each, Mapping) and each.get("id") == own for each in entries):
        kept["status"] = {"inventory": {"entries": [{"id": own}]}}
    return kept


def kept_namespace_marks(live: Object) -> Object:
    """Of a Namespace its labels, and whether Kustomizations prune it."""
    metadata = {**_identity(live), "labels": dict(labels_of(live))}
    if (prune := annotations_of(live).get(PRUNE)) is not None:
        metadata["annotations"] = {PRUNE: prune}
    return {"kind": live["kind"], "metadata": metadata}


def kept_arguments(live: Object) -> Object:
    """Of a Deployment the arguments of its containers."""
    template = ((live.get("spec") or {}).get("template") or {}).get("spec") or {}
    containers = [{part: each.get(part) or [] for part in ("command", "args")} for each in template.get("containers") or ()]
    found = {"template": {"spec": {"containers": containers}}}
    return {"kind": live["kind"], "metadata": _identity(live), "spec": found}


def _identity(live: Object) -> dict[str, Any]:
    parts = ("name", "namespace", "uid", "deletionTimestamp")
    return {part: live["metadata"][part] for part in parts if part in live["metadata"]}
