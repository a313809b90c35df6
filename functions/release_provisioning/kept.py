"""What is kept of ProjectHelmCharts and HelmCharts while they are read (a-14, a-19).

Tenants write them, as large as the API server takes them.  What is over a budget is not kept; in its place stands what is wrong
with it.  A sweep, which reads all of them, keeps digests of what is large: they only decide whether a live run is needed.
"""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from tenantry.model import limits
from tenantry.model.digest import Digest
from tenantry.model.kinds import Object
from tenantry.model.releases import own_metadata
from tenantry.model.values import LeftOut, Oversized, budget_problem


def kept_chart(asked: Object) -> Object:
    """A ProjectHelmChart as it is read.

    In the place of values over the budget stands what is wrong with them, and in the place of large ones their digest: many runs
    may wait at the same time for the thread that makes text of them, which then reads them.
    """
    spec = asked.get("spec") or {}
    values = spec.get("values")
    if not values or isinstance(values, Oversized | Digest):
        return asked
    problem = budget_problem(values)
    if not problem and are_small(values):
        return asked
    return {**asked, "spec": {**spec, "values": Oversized(problem) if problem else Digest(values)}}


def digests_of(obj: Object, part: str) -> Object:
    """An object with digests of the long texts in ``spec`` or ``data``, for a comparison with those that are wanted."""
    long = _long_texts(obj.get(part) or {})
    return {**obj, part: {**obj[part], **{name: Digest(text) for name, text in long.items()}}} if long else obj


def _long_texts(fields: Object) -> dict[str, str]:
    return {name: text for name, text in fields.items() if isinstance(text, str) and len(text) > limits.SWEEP_TEXT_BYTES}


class SweptHelmCharts:
    """What a sweep keeps of HelmCharts whose text it needs: whole ones up to a sum, and of others only that they exist.

    To be called with each item of one list.
    """

    def __init__(self) -> None:
        self._left = limits.SWEEP_VALUES_BYTES

    def __call__(self, chart: Object) -> Object:
        """What is kept of one."""
        spec = chart.get("spec") or {}
        long = _long_texts(spec)
        size = sum(len(text) for text in long.values())
        if size > self._left:
            return LeftOut({**chart, "spec": {name: value for name, value in spec.items() if name not in long}})
        self._left -= size
        return chart


class SweptCharts:
    """What a sweep keeps of ProjectHelmCharts: small values whole up to a sum, of larger ones and of dashboards a digest.

    To be called with each item of one list.
    """

    def __init__(self) -> None:
        self._left = limits.SWEEP_VALUES_BYTES

    def __call__(self, asked: Object) -> Object:
        """What is kept of one."""
        kept = {**asked, "metadata": own_metadata(asked["metadata"])}
        spec, status = kept.get("spec") or {}, kept.get("status") or {}
        values, shown = spec.get("values"), status.get("dashboardValues")
        if values and not isinstance(values, Oversized | Digest):
            size = len(to_json(values))
            if size > min(limits.VALUES_SMALL_BYTES, self._left):
                kept["spec"] = {**spec, "values": Digest(values)}
            else:
                self._left -= size
        if shown and len(to_json(shown)) > limits.SWEEP_TEXT_BYTES:
            kept["status"] = {**status, "dashboardValues": Digest(shown)}
        return kept


def are_small(values: Any) -> bool:
    """Whether values become YAML in a few milliseconds."""
    return not isinstance(values, Digest | Oversized) and len(to_json(values)) <= limits.VALUES_SMALL_BYTES
