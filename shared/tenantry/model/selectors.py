"""Label selectors as Kubernetes has them, over labels that were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class BadSelector(ValueError):
    """The selector means nothing; the message names the field below the selector, and the fix."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a label."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether labels fulfil it."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements together; without any it selects everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels fulfil all requirements."""
        return all(requirement.holds(labels) for requirement in self.requirements)

    @property
    def equalities(self) -> dict[str, str] | None:
        """The selector as a map of labels to values, or None when it is more than that."""
        found: dict[str, str] = {}
        for each in self.requirements:
            if each.operator != "In" or len(each.values) != 1 or each.key in found or "" in each.values:
                return None
            (found[each.key],) = each.values
        return found


def parse_selector(written: Mapping[str, Any]) -> LabelSelector:
    """A ``metav1.LabelSelector``.

    Raises:
        BadSelector: it is not one.
    """
    for name in written:
        if name not in ("matchLabels", "matchExpressions"):
            raise BadSelector(f"{name}: unknown; write matchLabels or matchExpressions")
    expressions = written.get("matchExpressions") or []
    if not isinstance(expressions, list):
        raise BadSelector("matchExpressions: must be a list")
    found = [*parse_labels(written.get("matchLabels") or {}, "matchLabels.").requirements]
    found += [_expression(each, f"matchExpressions[{number}]") for number, each in enumerate(expressions)]
    return LabelSelector(tuple(found))


def parse_labels(written: Any, path: str = "") -> LabelSelector:
    """A map of labels to values, all of which must be there; ``path`` begins the names in messages.

    Raises:
        BadSelector: a value is no text.
    """
    if not isinstance(written, Mapping):
        raise BadSelector(f"{path.rstrip('.') or 'it'}: must be a map of labels to values")
    for name, value in written.items():
        if not isinstance(value, str):
            raise BadSelector(f"{path}{name}: the value must be a text; write it in quotes")
    return LabelSelector(tuple(Requirement(name, "In", frozenset({value})) for name, value in sorted(written.items())))


def _expression(written: Any, path: str) -> Requirement:
    if not isinstance(written, Mapping) or not isinstance(written.get("key"), str) or not written["key"]:
        raise BadSelector(f"{path}.key: must be the key of a label")
    operator, values = written.get("operator"), written.get("values") or []
    if operator not in OPERATORS:
        raise BadSelector(f"{path}.operator: must be one of {', '.join(OPERATORS)}")
    if not isinstance(values, Sequence) or isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise BadSelector(f"{path}.values: must be a list of texts")
    if (operator in ("In", "NotIn")) != bool(values):
        raise BadSelector(f"{path}.values: In and NotIn need values, Exists and DoesNotExist take none")
    return Requirement(written["key"], operator, frozenset(values))
