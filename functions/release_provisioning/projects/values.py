"""The values of a release: the layers that they are made of, and why those of a ProjectHelmChart cannot be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenantry.model.config import Chart, Config
from tenantry.model.digest import Digest
from tenantry.model.kinds import Object
from tenantry.model.names import PROJECT_ID
from tenantry.model.values import Oversized, as_yaml, budget_problem, merged


def composed_values(asked: Object, chart: Chart, project: str, targets: Sequence[str], config: Config) -> Object:
    """The values of a release in their four layers, of which the later wins (hpo-30 to hpo-33).

    Defaults of the installation, the values of the ProjectHelmChart, the overrides of the installation and of the
    chart, and what the project is.
    """
    cattle, operator = config.global_.cattle, config.helm_project_operator
    spec = asked.get("spec") or {}
    values: Any = {"global": {"cattle": {"systemDefaultRegistry": cattle.system_default_registry, "url": cattle.url}}}
    layers: tuple[Any, ...] = (spec.get("values"), operator.values_override, chart.values_override, {"global": {"cattle": {}}})
    for layer in layers:
        values = merged(values, layer or {})
    written = values["global"]["cattle"]
    forced = {
        "clusterId": cattle.cluster_id,
        "projectID": project,
        "releaseProjectID": config.release_project_id,
        "projectNamespaces": list(targets),
        "projectNamespaceSelector": _project_selector(written.get("projectNamespaceSelector"), spec, project, config),
    }
    return {**values, "global": {**values["global"], "cattle": {**written, **forced}}}


def values_text(asked: Object, chart: Chart, project: str, targets: Sequence[str], config: Config) -> str:
    """The values of a release as a values file: equal values give equal text, so nothing is rolled out for nothing."""
    return as_yaml(composed_values(asked, chart, project, targets, config))


def values_problem(asked: Object) -> str:
    """Why the values of a ProjectHelmChart cannot be used, with the limit and the fix; empty when they can (a-14)."""
    values = (asked.get("spec") or {}).get("values")
    if isinstance(values, Digest):
        return ""  # they were checked when the digest was made
    problem = values.problem if isinstance(values, Oversized) else budget_problem(values)
    return f"spec.values {problem}" if problem else ""


def _project_selector(written: Any, spec: Object, project: str, config: Config) -> Object:
    """The selector of the project's namespaces replaces the parts of the one in the values; other keys stay.

    With a project label ``matchLabels`` is its only part, as it is upstream; expressions beside it narrow it further.
    """
    beside: Object = dict(written) if isinstance(written, Mapping) else {}
    if config.project_label:
        label = PROJECT_ID if config.dedicated else config.project_label
        return {**beside, "matchLabels": {label: project}}
    selector, parts = spec.get("projectNamespaceSelector") or {}, ("matchLabels", "matchExpressions")
    beside = {key: value for key, value in beside.items() if key not in parts}
    return {**beside, **{part: selector[part] for part in parts if selector.get(part)}}
