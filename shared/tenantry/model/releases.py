"""Releases of projects: their names, where they live, whom they are for, and their values.

Naming: release ``R`` is ``<name>-<releaseName>``, or for a singleton chart ``<namespace>-<releaseName>``;
HelmChart and HelmRelease are called ``R`` in the system namespace, and the dedicated release namespace is
called ``R`` too (hpo-27, hpo-44).  Values have four layers, later ones win (hpo-30 to hpo-33).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from tenantry.model.config import DNS_LABEL, Chart, Config
from tenantry.model.kinds import Object, is_terminating, labels_of
from tenantry.model.names import PROJECT_ID
from tenantry.model.projects import place_of

RELEASE_NAME_LIMIT = 50
"""Job names have at most 63 characters and the jobs are called ``helm-install-<R>`` (53 is Helm's own limit)."""


@dataclass(frozen=True, slots=True, order=True)
class ChartKey:
    """Namespace and name of a ProjectHelmChart."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def chart_for(project_chart: Object, config: Config) -> Chart | None:
    """The configured chart that a ProjectHelmChart asks for, by exact ``spec.helmApiVersion``."""
    wanted = (project_chart.get("spec") or {}).get("helmApiVersion")
    for chart in config.helm_project_operator.charts:
        if chart.helm_api_version == wanted:
            return chart
    return None


def release_name(key: ChartKey, chart: Chart) -> str:
    """The Helm release's name."""
    return f"{key.namespace if chart.singleton else key.name}-{chart.release_name}"


def release_namespace(key: ChartKey, release: str, config: Config) -> str:
    """Where the release is installed: a dedicated namespace, or the ProjectHelmChart's own."""
    return release if config.release_project_id else key.namespace


def release_name_problem(release: str) -> str:
    """Why a release name cannot be used, with the fix; empty when it can (hpo-45)."""
    if len(release) > RELEASE_NAME_LIMIT:
        return (
            f"the release would be called {release!r}, which has {len(release)} characters; at most "
            f"{RELEASE_NAME_LIMIT} are possible: use a shorter name"
        )
    if not DNS_LABEL.fullmatch(release):
        return f"the release would be called {release!r}, which is not a DNS label: rename the ProjectHelmChart"
    return ""


def candidates(release: str, config: Config) -> Iterable[tuple[Chart, str, str]]:
    """Who may hold a release name: (chart, namespace or empty for any, name or empty for any)."""
    for chart in config.helm_project_operator.charts:
        stem = release.removesuffix(f"-{chart.release_name}")
        if stem != release and stem:
            yield (chart, stem, "") if chart.singleton else (chart, "", stem)


def by_age(project_charts: Iterable[Object]) -> list[Object]:
    """Oldest first; of equals the first by namespace and name.  The first holds the release name (hpo-42)."""
    return sorted(
        project_charts,
        key=lambda each: (
            each["metadata"].get("creationTimestamp", ""),
            each["metadata"]["namespace"],
            each["metadata"]["name"],
        ),
    )


def target_namespaces(namespaces: Iterable[Object], project: str, release_ns: str, config: Config) -> tuple[str, ...]:
    """The sorted members of a project, and the dedicated release namespace last; empty when there is no member."""
    members = sorted(
        found["metadata"]["name"]
        for found in namespaces
        if not is_terminating(found)
        and place_of(found, config).is_a == "ordinary"
        and labels_of(found).get(config.project_label) == project
    )
    if not members:
        return ()
    return (*members, release_ns) if config.release_project_id else tuple(members)


def selected_namespaces(namespaces: Iterable[Object], selector: Object | None, config: Config) -> tuple[str, ...]:
    """Single-namespace mode: what ``spec.projectNamespaceSelector`` selects, system namespaces left out (hpo-56).

    None selects nothing, an empty selector everything.
    """
    if selector is None:
        return ()
    return tuple(
        sorted(
            found["metadata"]["name"]
            for found in namespaces
            if not is_terminating(found)
            and found["metadata"]["name"] not in config.system_namespaces
            and selects(selector, labels_of(found))
        )
    )


def selects(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether a ``metav1.LabelSelector`` selects these labels.

    Raises:
        ValueError: an operator is unknown, or values are missing or given in vain.
    """
    if any(labels.get(name) != value for name, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(requirement, labels) for requirement in selector.get("matchExpressions") or ())


def _holds(requirement: Object, labels: Mapping[str, str]) -> bool:
    key, operator = requirement.get("key"), requirement.get("operator")
    values = requirement.get("values") or []
    if not isinstance(key, str) or operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        raise ValueError(f"projectNamespaceSelector: {operator!r} is no operator; use In, NotIn, Exists or DoesNotExist")
    if bool(values) != (operator in ("In", "NotIn")):
        raise ValueError(f"projectNamespaceSelector: operator {operator} and its values do not fit together")
    match operator:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


# -- values ------------------------------------------------------------------------------------------------


def merged(low: Any, high: Any) -> Any:
    """Two values, the higher wins: maps deeply, lists and scalars whole, an explicit null replaces."""
    if not isinstance(low, dict) or not isinstance(high, dict):
        return high
    return {**low, **{name: merged(low[name], value) if name in low else value for name, value in high.items()}}


def composed_values(project_chart: Object, chart: Chart, project: str, targets: Sequence[str], config: Config) -> Object:
    """The chart's values: defaults, the owner's, the operator's overrides, and what is forced."""
    cattle, operator = config.global_.cattle, config.helm_project_operator
    given = {"systemDefaultRegistry": cattle.system_default_registry, "url": cattle.url}
    defaults: Object = {"global": {"cattle": {name: value for name, value in given.items() if value}}}
    forced: Object = {
        "global": {
            "cattle": {
                "clusterId": cattle.cluster_id,
                "projectNamespaces": list(targets),
                "projectID": project,
                "releaseProjectID": config.release_project_id,
                "projectNamespaceSelector": namespace_selector(project_chart, project, config),
            }
        }
    }
    values: Any = defaults
    for layer in (
        (project_chart.get("spec") or {}).get("values") or {},
        operator.values_override,
        chart.values_override,
        forced,
    ):
        values = _over(values, layer)
    assert isinstance(values, dict)
    return values


def _over(low: Any, high: Any) -> Any:
    """`merged`, except that a map replaces whatever is not one (hpo-33)."""
    return merged(low, high) if isinstance(low, dict) else high


def namespace_selector(project_chart: Object, project: str, config: Config) -> Object:
    """The label selector for the project's namespaces that charts are given."""
    if not config.project_label:
        selector = (project_chart.get("spec") or {}).get("projectNamespaceSelector") or {}
        return {name: selector[name] for name in ("matchLabels", "matchExpressions") if selector.get(name)}
    label = PROJECT_ID if config.release_project_id else config.project_label
    return {"matchLabels": {label: project}}


def values_content(values: Object) -> str:
    """The values as YAML text with sorted keys: equal values give equal text, and no needless Helm run."""
    return yaml.safe_dump(values, sort_keys=True, allow_unicode=True, default_flow_style=False)


def merged_dashboards(parts: Iterable[Any]) -> Object:
    """Dashboard values: maps deeply, lists at the top joined, of scalars the last (spec 4.6)."""
    result: Object = {}
    for part in parts:
        for name, value in part.items():
            old = result.get(name)
            joined = old + value if isinstance(old, list) and isinstance(value, list) else None
            result[name] = joined if joined is not None else (merged(old, value) if name in result else value)
    return result
