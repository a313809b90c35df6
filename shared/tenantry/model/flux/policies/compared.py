"""Whether a policy or binding in a cluster is as it was generated: what the API server fills in is no difference."""

from __future__ import annotations

from typing import Any

from tenantry.model.kinds import Object

_FILLED_IN: dict[str, Any] = {"namespaceSelector": {}, "objectSelector": {}, "matchPolicy": "Equivalent"}
"""Of ``matchConstraints`` and ``matchResources``."""


def is_as_generated(wanted: Object, live: Object) -> bool:
    """Whether the spec, and each label that is generated, are those of the live object."""
    labels = live["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in wanted["metadata"]["labels"].items()):
        return False
    return bool(_stated(wanted["spec"]) == _stated(live.get("spec") or {}))


def _stated(value: Any) -> Any:
    """A spec without what the API server fills in, and without empty matches."""
    match value:
        case dict():
            found = {key: _stated(each) for key, each in value.items() if key not in _FILLED_IN or each != _FILLED_IN[key]}
            return {key: each for key, each in found.items() if key != "matchResources" or each}
        case list():
            return [_stated(each) for each in value]
    return value
