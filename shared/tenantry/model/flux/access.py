"""Who may use what: the AccessIndex as a value, and the access decision of section 2.1.

The same decision is made in CEL by admission policies, from the same index and the same labels; the two agree (f-93).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

from tenantry.model.flux.carriers import selectors_of_text
from tenantry.model.flux.consumers import DEPENDS_ON, Consumer, Reference
from tenantry.model.flux.names import TENANT_LABEL
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import Object

TENANT_KEYS = "tenantKeys"
"""Field of the index that people may shorten."""
AccessDecision = Literal["allow", "deny", "unknown"]
"""``unknown``: what the decision needs could not be read, so it is made later; it is never an allowance (2.1, row 13)."""


@dataclass(frozen=True)
class AccessEntries:
    """The spec of the AccessIndex: texts of selectors by ``Kind/namespace/name``, for each class."""

    read: Mapping[str, str] = field(default_factory=dict)
    write: Mapping[str, str] = field(default_factory=dict)
    tenants: Mapping[str, str] = field(default_factory=dict)
    label_keys: tuple[str, ...] = ()
    complete: bool = False
    tenant_keys: tuple[str, ...] = ()
    """The ``tenantLabelKeys``, and what was among them before: such labels tenants may have set themselves."""

    @classmethod
    def of(cls, index: Object) -> Self:
        """Those of an object."""
        spec = index.get("spec") or {}
        return cls(
            _texts(spec.get("read")),
            _texts(spec.get("write")),
            spec.get("tenants") or {},
            tuple(spec.get("labelKeys") or ()),
            spec.get("complete") is True,
            tuple(spec.get(TENANT_KEYS) or ()),
        )

    def spec(self) -> Object:
        """As it is written: sorted, so that the same grants are the same bytes (f-79)."""
        found: Object = {
            "read": dict(sorted(self.read.items())),
            "write": dict(sorted(self.write.items())),
            "tenants": dict(sorted(self.tenants.items())),
            "labelKeys": sorted(self.label_keys),
            TENANT_KEYS: sorted(self.tenant_keys),
        }
        return {"complete": self.complete, **{name: value for name, value in found.items() if value}}

    @cached_property
    def granted(self) -> frozenset[str]:
        """The sources that somebody may use."""
        return frozenset(self.read) | frozenset(self.write)

    def about(self, named: NamedObject) -> tuple[str | None, str | None, str | None]:
        """What the decision about a reference to it rests on: two states that are `ChangedEntries` for it differ in this."""
        key = str(named)
        return self.read.get(key), self.write.get(key), self.tenants.get(named.namespace)


class ChangedEntries(NamedTuple):
    """In what two states of the index differ: sources by ``Kind/namespace/name``, and namespaces that are of another tenant."""

    sources: frozenset[str]
    namespaces: frozenset[str]

    @classmethod
    def between(cls, before: AccessEntries, after: AccessEntries) -> Self:
        """Those of two states of which both are complete, or neither is."""
        return cls(
            _differing(before.read, after.read) | _differing(before.write, after.write), _differing(before.tenants, after.tenants)
        )

    def concern(self, named: NamedObject) -> bool:
        """Whether the decision about a reference to it may be another one (2.1, rows 4 to 12)."""
        return named.namespace in self.namespaces or str(named) in self.sources


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


def _texts(grants: Mapping[str, Any] | None) -> Mapping[str, str]:
    """Grants as they are stored, of which no schema says that they are texts: what is none grants nothing, and is seen."""
    if not grants or {*map(type, grants.values())} == {str}:
        return grants or {}
    return {name: text if isinstance(text, str) else "" for name, text in grants.items()}


class NamedObject(NamedTuple):
    """What a reference names.  Its text is the key of the index: ``Kind/namespace/name``."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


class Asking(NamedTuple):
    """The namespace that a consumer is in, with the labels of the Namespace object as it is now; None: they cannot be read."""

    namespace: str
    labels: Mapping[str, str] | None


def selects(text: str, labels: Mapping[str, str]) -> bool:
    """Whether an entry selects a namespace with these labels: any selector, all pairs of it, compared exactly (rows 8 to 11)."""
    return any(all(labels.get(key) == value for key, value in each) for each in selectors_of_text(text))


def decide_access(
    reference: Reference, named: NamedObject, asking: Asking, entries: AccessEntries | None, profile: Profile
) -> AccessDecision:
    """Whether a consumer may have a reference: the rows of 2.1 in their order; ``entries`` None: the index is missing."""
    local = reference.access == "local"
    if not profile.is_multi_tenant or (not local and not profile.enforces_source_acl):
        return "allow"
    if named.namespace in ("", asking.namespace) or asking.namespace in profile.exempt:  # rows 1, 2
        return "allow"
    if local:  # row 3
        return "allow" if reference.path == DEPENDS_ON and not profile.checks_depends_on else "deny"
    if entries is None or asking.labels is None:  # row 13
        return "unknown"
    if profile.allows_intra_tenant:  # row 4
        tenant = asking.labels.get(TENANT_LABEL, "")
        if tenant and entries.tenants.get(named.namespace) == tenant:
            return "allow"
    granted = entries.read if reference.access == "read" else entries.write
    return "allow" if selects(granted.get(str(named), ""), asking.labels) else "deny"  # rows 5 to 12


def references_of(consumer: Object, row: Consumer) -> Iterator[tuple[Reference, NamedObject]]:
    """The references of a consumer, as the rows of its kind find them; what is no reference is left out."""
    for reference in row.references:
        path, is_list, inner = reference.path.partition("[]")
        held = value_at(consumer, path)
        for each in held if is_list and isinstance(held, list) else () if is_list else (held,):
            found = value_at(each, inner.removeprefix(".")) if inner else each
            if isinstance(found, Mapping):
                kind = reference.kind or _text(found.get("kind"))
                yield reference, NamedObject(kind, _text(found.get("namespace")), _text(found.get("name")) or "*")


def denial_of(reference: Reference, named: NamedObject, asking: Asking) -> str:
    """What is told of a denied reference (2.2): the same whether the source exists or not (f-16)."""
    if reference.access == "local":
        return f"{reference.field}: {named} is in another namespace, and must be in namespace {asking.namespace}"
    return f"{reference.field}: {named} is not shared with namespace {asking.namespace}"


def value_at(value: Any, path: str) -> Any:
    """What is at a path as ``spec.suspend``; None where there is nothing."""
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
