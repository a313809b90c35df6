"""Dashboard values: what is kept of the ConfigMaps that charts leave for dashboards, and how it becomes one map."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json, to_json

from tenantry.model import limits
from tenantry.model.kinds import Object, labels_of
from tenantry.model.names import DASHBOARD_VALUES
from tenantry.model.values import Oversized, is_deeper, merged


class KeptDashboards:
    """Keeps of ConfigMaps with dashboard values, for each namespace, as much as can be used (a-15, a-16).

    To be called with each item of one list, in its order; in the place of what is over a budget stands `Oversized`.
    With ``places`` only ConfigMaps of namespaces that it answers True for are kept.  Beyond ``most`` bytes in all the data of an
    item are None: they were not read.
    """

    def __init__(self, places: Callable[[str, str], bool] | None = None, most: float = math.inf) -> None:
        self._places = places
        self._left = most
        self._bytes: Counter[tuple[str, str]] = Counter()
        self._keys: Counter[tuple[str, str]] = Counter()

    def __call__(self, config_map: Object) -> Object:
        """What is kept of one."""
        metadata, label = config_map["metadata"], labels_of(config_map).get(DASHBOARD_VALUES, "")
        place = (metadata["namespace"], label)
        data: Object = {}
        kept: Object = {
            "metadata": {"name": metadata["name"], "namespace": place[0], "labels": {DASHBOARD_VALUES: label}},
            "data": data,
        }
        if self._places is not None and not self._places(*place):
            return kept
        size = 0
        for key, text in sorted((config_map.get("data") or {}).items()):
            if self._keys[place] > limits.DASHBOARD_KEYS:
                break
            self._keys[place] += 1
            if len(text) > limits.DASHBOARD_BYTES or self._bytes[place] + len(text) > limits.DASHBOARD_READ_BYTES:
                data[key] = Oversized(f"{len(text):,} bytes")
                continue
            self._bytes[place] += len(text)
            size += len(text)
            data[key] = text
        if size > self._left:
            return {**kept, "data": None}
        self._left -= size
        return kept

    def has_enough(self, namespace: str, label: str) -> bool:
        """Whether nothing of further ConfigMaps could be used."""
        place = (namespace, label)
        return self._keys[place] > limits.DASHBOARD_KEYS or self._bytes[place] >= limits.DASHBOARD_READ_BYTES


@dataclass(frozen=True, slots=True)
class Dashboards:
    """The merged dashboard values, and what was left out: ``<ConfigMap>/<key>`` with the reason."""

    values: Object
    left_out: tuple[str, ...] = ()


def dashboards_of(config_maps: Iterable[Object]) -> Dashboards:
    """The JSON objects of labelled ConfigMaps as one, by ConfigMap name and key (hpo-35, hpo-36).

    Maps are merged deeply, lists at the top are joined, of anything else the last wins.
    """
    values: Object = {}
    left_out: list[str] = []
    by_name = sorted(config_maps, key=lambda found: str(found["metadata"]["name"]))
    parts = [(each["metadata"]["name"], key, text) for each in by_name for key, text in sorted((each.get("data") or {}).items())]
    if len(parts) > limits.DASHBOARD_KEYS:
        left_out.append(f"the keys after the first {limits.DASHBOARD_KEYS:,}: put them together")
    too_large = f"is too large: the dashboard values of a release have at most {limits.DASHBOARD_BYTES:,} bytes"
    bound = len("{}")
    for name, key, text in parts[: limits.DASHBOARD_KEYS]:
        part = _json_object(text) if isinstance(text, str) and key.endswith(".json") else None
        if isinstance(text, Oversized):
            problem = too_large
        elif part is None:
            problem = "is no JSON object in a key that ends in .json"
        elif not _is_kept(part):
            problem = "has a number that Kubernetes would not keep: write it as a text"
        elif _has_long_key(part):
            problem = f"has a key of more than {limits.DASHBOARD_KEY_CHARACTERS} characters"
        else:
            joined, size = _joined(values, part), bound + len(to_json(part))
            if size > limits.DASHBOARD_BYTES:  # no more than this, and maybe less, where keys are the same
                size = len(to_json(joined))
            if size <= limits.DASHBOARD_BYTES:
                values, bound = joined, size
                continue
            problem = too_large
        left_out.append(f"{name}/{key} {problem}")
    return Dashboards(values, tuple(left_out))


def _json_object(text: str) -> Object | None:
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError:
        return None
    return value if isinstance(value, dict) and not is_deeper(value, limits.VALUES_LEVELS) else None


def _is_kept(value: Any) -> bool:
    """Whether all numbers come back from the API server as they went there: another one would be written for ever."""
    match value:
        case dict():
            return all(_is_kept(each) for each in value.values())
        case list():
            return all(_is_kept(each) for each in value)
        case int():
            return -(2**63) <= value < 2**63
        case float():
            return -(2**53) < value < 2**53
    return True


def _has_long_key(value: Any) -> bool:
    match value:
        case dict():
            return any(len(to_json(key)) > limits.DASHBOARD_KEY_CHARACTERS or _has_long_key(each) for key, each in value.items())
        case list():
            return any(_has_long_key(each) for each in value)
    return False


def _joined(values: Object, part: Object) -> Object:
    lists = {
        key: [*values[key], *value]
        for key, value in part.items()
        if isinstance(value, list) and isinstance(values.get(key), list)
    }
    whole: Object = merged(values, part)
    return {**whole, **lists}
