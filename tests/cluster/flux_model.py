"""The table of 2.1 as a model: who may name what, by what owners wrote and labels of Namespaces; no code of ours decides."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

Selector = Mapping[str, Any]
Labels = Mapping[str, str]

_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
VALUES: Mapping[str, tuple[str, ...]] = {"team": ("one", "two"), "env": ("prod", "dev"), "tier": ("a", "b"), "color": ("red",)}
SETTABLE = "color"
"""The key that tenants may set."""
ILLEGAL: tuple[Labels, ...] = ({"team": "a b"}, {"a=b": "x"}, {"team": "two|*"}, {"team": "*"}, {"te,am": "two"})


@dataclass(frozen=True)
class ModelSource:
    """A source with what its owner says: selectors that grant both, and those that grant some classes by SourceGrants."""

    kind: str
    namespace: str
    name: str
    exists: bool = True
    both: tuple[Selector, ...] | None = None
    """Of the annotation, or of the field: None where there is none."""
    broken: bool = False
    """The annotation is no JSON."""
    granted: tuple[tuple[tuple[str, ...], tuple[Selector, ...]], ...] = ()
    """SourceGrants: classes and selectors."""

    def selectors(self, access: str) -> list[Selector]:
        """Those of all carriers for a class, united."""
        own = list(self.both or ()) if not self.broken else []
        return own + [each for classes, several in self.granted if access in classes for each in several]


@dataclass(frozen=True)
class Model:
    """What decides beside source and namespace."""

    exempt: Collection[str]
    tenant_label: str
    labels: Mapping[str, Labels] = field(default_factory=dict)
    """Of each Namespace."""

    def allows(self, access: str, named: ModelSource, home: str) -> bool:
        """The first row that holds decides."""
        labels = self.labels[home]
        if named.namespace in ("", home):  # 1
            return True
        if home in self.exempt:  # 2
            return True
        if access == "local":  # 3
            return False
        tenant = labels.get(self.tenant_label, "")
        if tenant and self.labels[named.namespace].get(self.tenant_label) == tenant:  # 4
            return True
        if not named.exists:  # 5
            return False
        return any(_selects(each, labels) for each in named.selectors(access))  # 6 to 12


def _selects(selector: Selector, labels: Labels) -> bool:
    pairs = (selector.get("matchLabels") or {}).items()
    if any(not _KEY.fullmatch(key) or not _VALUE.fullmatch(value) or key == SETTABLE for key, value in pairs):  # 12
        return False
    return all(labels.get(key) == value for key, value in pairs)  # 8, 9


def labels_of_chance(chance: random.Random, most: int) -> dict[str, str]:
    """Some labels of those that there are."""
    return {key: chance.choice(VALUES[key]) for key in chance.sample(sorted(VALUES), chance.randint(0, most))}


def selectors_of_chance(chance: random.Random, *, legal: bool = False) -> tuple[Selector, ...]:
    """None to three selectors: of labels, for everybody in both spellings, and illegal ones."""
    found: list[Selector] = []
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        pick = chance.random()
        if pick < 0.08:
            found.append(chance.choice(({}, {"matchLabels": {}})))
        elif pick < 0.2 and not legal:
            found.append({"matchLabels": dict(chance.choice(ILLEGAL))})
        else:
            found.append({"matchLabels": labels_of_chance(chance, 2) or {"team": "two"}})
    return tuple(found)


def source_of_chance(chance: random.Random, kind: str, namespace: str, name: str) -> ModelSource:
    """A source with random carriers, or one that is not there."""
    if chance.random() < 0.05:
        return ModelSource(kind, namespace, name, exists=False)
    pick = chance.random()
    both = selectors_of_chance(chance) if pick < 0.55 else None
    classes = (("read",), ("write",), ("read", "write"))
    number = chance.choice((1, 1, 2)) if pick > 0.45 and pick < 0.9 else 0
    granted = tuple((chance.choice(classes), selectors_of_chance(chance, legal=True)) for _ in range(number))
    broken = both is not None and kind != "HelmRepository" and chance.random() < 0.1
    return ModelSource(kind, namespace, name, both=both, broken=broken, granted=granted)
