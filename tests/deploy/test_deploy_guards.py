"""Guards as they are written."""

from __future__ import annotations

import re

from tenantry.local.policies import guard_documents

_LIST = re.compile(
    r"\[\s*(\"[^\]]*\")\s*\]\.(?:exists|filter)\(key, (?:key in object\.metadata\.\?|variables\.)(labels|annotations)"
)


def _marks(expression: str) -> dict[str, set[str]]:
    """The keys of labels and of annotations that an expression looks for."""
    return {where: set(re.findall(r'"([^"]*)"', keys)) for keys, where in _LIST.findall(expression)}


def test_what_lets_a_new_namespace_pass_knows_all_marks() -> None:
    """The condition, which has no variables, names every mark that the validations look for."""
    (spec,) = [
        each["spec"]
        for each in guard_documents()
        if each["metadata"]["name"] == "tenantry-guard-namespaces" and "variables" in each["spec"]
    ]
    (condition,) = spec["matchConditions"]
    (changed,) = [each["expression"] for each in spec["variables"] if each["name"] == "changed"]
    marks = _marks(changed)
    assert marks.keys() == {"labels", "annotations"}
    assert _marks(condition["expression"]) == marks
