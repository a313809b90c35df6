"""What a Paas and a PaasNS declare, as values.

The schema and the policies refuse most mistakes when they are made.  What was stored without them is read as far as it means
something; what is wrong with it is found where it is used, and reported: nothing here raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tenantry.model.kinds import Object, annotations_of, is_terminating, labels_of

Amounts = Mapping[str, str]
"""Resource to quantity, as written."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group of a Paas: people by name, or a query of the identity provider."""

    query: str = ""
    users: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Capability:
    """A capability of a Paas; what is stored always says whether it is enabled (1.6)."""

    enabled: bool = False
    quota: Amounts = field(default_factory=dict)
    extra_permissions: bool = False
    custom_fields: Mapping[str, str] = field(default_factory=dict)
    git: Mapping[str, str] = field(default_factory=dict)
    """``git_url``, ``git_revision``, ``git_path``, those that are set."""


@dataclass(frozen=True, slots=True)
class Paas:
    """A Paas.  ``namespaces`` has the keys of groups that an entry is restricted to; None: all groups."""

    name: str
    uid: str
    generation: int
    created: str
    deleted: bool
    live: Object
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    requestor: str = ""
    managed_by: str = ""
    quota: Amounts = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    namespaces: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    capabilities: Mapping[str, Capability] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    """Paths of encrypted texts that are set: nothing is made of them."""

    @property
    def enabled(self) -> Mapping[str, Capability]:
        """The capabilities that are enabled, by name."""
        return {name: each for name, each in sorted(self.capabilities.items()) if each.enabled}

    @property
    def age(self) -> tuple[str, str]:
        """What the oldest of several is found by: creationTimestamp, then name."""
        return self.created, self.name


@dataclass(frozen=True, slots=True)
class PaasNs:
    """A PaasNS; ``groups`` None: those that apply in the namespace that it lives in."""

    name: str
    namespace: str
    uid: str
    generation: int
    created: str
    live: Object
    paas: str = ""
    groups: tuple[str, ...] | None = None
    secrets: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``<namespace>/<name>``, as the namespace that it asked for remembers it."""
        return f"{self.namespace}/{self.name}"

    @property
    def age(self) -> tuple[str, str, str]:
        """What the oldest of several is found by: creationTimestamp, then namespace, then name."""
        return self.created, self.namespace, self.name


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _text_map(value: Any) -> dict[str, str]:
    return {name: str(each) for name, each in _map(value).items() if isinstance(each, str | int | float)}


def _restriction(value: Any) -> tuple[str, ...] | None:
    return tuple(dict.fromkeys(_texts(value))) or None


def namespaces_of(written: Any) -> Mapping[str, tuple[str, ...] | None]:
    """``spec.namespaces`` in either shape: a list of names, or names with what each is restricted to."""
    if isinstance(written, list):
        return dict.fromkeys(_texts(written))
    return {name: _restriction(_map(entry).get("groups")) for name, entry in sorted(_map(written).items())}


def _capability(written: Any) -> Capability:
    spec = _map(written)
    git = {f"git_{part.lower()}": spec.get(f"git{part}") for part in ("Url", "Revision", "Path")}
    return Capability(
        enabled=spec.get("enabled") is True,
        quota=_text_map(spec.get("quota")),
        extra_permissions=spec.get("extra_permissions") is True,
        custom_fields=_text_map(spec.get("custom_fields")),
        git={name: str(value) for name, value in git.items() if value},
    )


def _secret_paths(spec: Mapping[str, Any], path: str) -> Iterable[str]:
    return (f"{path}.{name}" for name in ("sshSecrets", "secrets") if spec.get(name))


def paas_of(live: Object) -> Paas:
    """A Paas as it is stored."""
    metadata, spec = live["metadata"], _map(live.get("spec"))
    groups = {
        key: Group(str(_map(each).get("query") or ""), _texts(_map(each).get("users")), _texts(_map(each).get("roles")))
        for key, each in sorted(_map(spec.get("groups")).items())
    }
    secrets = list(_secret_paths(spec, "spec"))
    for part in ("capabilities", "namespaces"):
        for name, entry in sorted(_map(spec.get(part)).items()):
            secrets += _secret_paths(_map(entry), f"spec.{part}[{name}]")
    return Paas(
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 0),
        created=metadata.get("creationTimestamp", ""),
        deleted=is_terminating(live),
        live=live,
        labels=labels_of(live),
        annotations=annotations_of(live),
        requestor=str(spec.get("requestor") or ""),
        managed_by=str(spec.get("managedByPaas") or ""),
        quota=_text_map(spec.get("quota")),
        groups=groups,
        namespaces=namespaces_of(spec.get("namespaces")),
        capabilities={name: _capability(each) for name, each in sorted(_map(spec.get("capabilities")).items())},
        secrets=tuple(secrets),
    )


def paas_ns_of(live: Object) -> PaasNs:
    """A PaasNS as it is stored."""
    metadata, spec = live["metadata"], _map(live.get("spec"))
    return PaasNs(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 0),
        created=metadata.get("creationTimestamp", ""),
        live=live,
        paas=str(spec.get("paas") or ""),
        groups=_restriction(spec.get("groups")),
        secrets=tuple(_secret_paths(spec, "spec")),
    )
