"""Releases of projects: names, targets, values and dashboard values.

A ProjectHelmChart asks for one release.  The release's name is also the name of its HelmChart, its HelmRelease
and, where releases have namespaces of their own, of its namespace:

============  ==============================  ==================================================
a chart       is called                       which is, for one named ``dummy``
============  ==============================  ==================================================
not singleton ``<name>-<releaseName>``        ``demo-dummy``
singleton     ``<namespace>-<releaseName>``   ``cattle-project-p-a-dummy``
============  ==============================  ==================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json, to_json

from tenantry.model import limits
from tenantry.model.config import Chart, Config
from tenantry.model.digest import Digest
from tenantry.model.identifiers import is_dns_label, is_dns_subdomain
from tenantry.model.kinds import Object, annotations_of, is_terminating, labels_of
from tenantry.model.names import OPERATED, ORPHANED, PROJECT_CHART, PROJECT_ID
from tenantry.model.projects import is_member
from tenantry.model.values import Oversized, as_yaml, budget_problem, is_deeper, merged

NO_TARGETS = "NoTargetProjectNamespaces"
"""``status.status`` of a ProjectHelmChart whose project has no namespace; its release is taken away."""

RELEASE_NAME_LIMIT = 50
"""Of a Job's 63 characters, ``helm-install-`` takes 13."""


_LONGEST_ASKED = 253 + 1 + 48
"""Characters of the longest name of a ProjectHelmChart, a dash, and the longest releaseName of a configured chart."""

_UPSTREAM_OWNER = ("objectset.rio.cattle.io/owner-namespace", "objectset.rio.cattle.io/owner-name")


@dataclass(frozen=True, slots=True, order=True)
class ChartKey:
    """Namespace and name of a ProjectHelmChart; written ``<namespace>/<name>``."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def chart_key(obj: Object) -> ChartKey:
    """The key of a ProjectHelmChart."""
    return ChartKey(obj["metadata"]["namespace"], obj["metadata"]["name"])


# -- names -------------------------------------------------------------------------------------------------


def chart_for(obj: Object, config: Config) -> Chart | None:
    """The configured chart that a ProjectHelmChart asks for; None when it asks for none of ours (hpo-39)."""
    wanted = (obj.get("spec") or {}).get("helmApiVersion")
    charts = config.helm_project_operator.charts
    return next((chart for chart in charts if chart.helm_api_version == wanted), None)


def release_name(key: ChartKey, chart: Chart) -> str:
    """The name of the release (hpo-27, hpo-44)."""
    return f"{key.namespace if chart.singleton else key.name}-{chart.release_name}"


def possible_names(key: ChartKey, config: Config) -> list[str]:
    """The names that a ProjectHelmChart could claim, whatever its helmApiVersion is."""
    names = (release_name(key, chart) for chart in config.helm_project_operator.charts)
    return list(dict.fromkeys(names))


def claimants(name: str, config: Config) -> list[tuple[str, str]]:
    """Where to look for ProjectHelmCharts that could claim a name, as (namespace, name); empty stands for every one."""
    system = "" if config.project_label else config.helm_project_operator.system_namespace
    found: list[tuple[str, str]] = []
    for chart in config.helm_project_operator.charts:
        base = name.removesuffix(f"-{chart.release_name}")
        if base == name or not base:
            continue
        if not chart.singleton:
            found.append((system, base))
        elif system in ("", base):
            found.append((base, ""))
    return list(dict.fromkeys(found))


def release_name_problem(name: str, config: Config) -> str:
    """Why there can be no release of that name, with the fix; empty when there can (hpo-45)."""
    if len(name) > RELEASE_NAME_LIMIT:
        return (
            f"the release name {name} has {len(name)} characters and at most {RELEASE_NAME_LIMIT} fit into the name of the "
            "Job that runs Helm: choose a shorter name"
        )
    if not (is_dns_label(name) if config.dedicated else is_dns_subdomain(name)):
        return f"the release name {name} cannot name a namespace: use lower-case letters, digits and dashes only"
    return ""


def is_release_name(name: str) -> bool:
    """Whether a ProjectHelmChart could ask for a release of this name, and so an owner; longer than what can be a release.

    Who asks for one that is too long is told so (a-18).
    """
    return is_dns_subdomain(name, _LONGEST_ASKED)


def release_namespace(key: ChartKey, name: str, config: Config) -> str:
    """Where the chart is installed: a namespace of its own, or that of the ProjectHelmChart (hpo-55)."""
    return name if config.dedicated else key.namespace


def by_age(objects: Iterable[Object]) -> list[Object]:
    """Oldest first, then by namespace and name: the order in which they get a name (hpo-42)."""
    return sorted(objects, key=lambda found: (str(found["metadata"].get("creationTimestamp")), chart_key(found)))


# -- who has a name ----------------------------------------------------------------------------------------


def held_by(obj: Object | None) -> str:
    """``<namespace>/<name>`` of the ProjectHelmChart that an object was made for; empty for none.

    What the Helm Project Operator made says so in two annotations of its own.
    """
    annotations = annotations_of(obj)
    if PROJECT_CHART in annotations:
        return annotations[PROJECT_CHART]
    namespace, name = (annotations.get(each, "") for each in _UPSTREAM_OWNER)
    return f"{namespace}/{name}" if namespace and name and OPERATED in labels_of(obj) else ""


def made_for(helm_chart: Object | None, helm_release: Object | None, namespace: Object | None) -> str:
    """``<namespace>/<name>`` of the ProjectHelmChart that has a release; empty for none.

    The HelmChart says it first, which only administrators can write beside us.  A namespace says it until it is orphaned.
    """
    lives = namespace is not None and not is_terminating(namespace) and ORPHANED not in labels_of(namespace)
    return held_by(helm_chart) or held_by(helm_release) or (held_by(namespace) if lives else "")


def holder_of(asking: Mapping[ChartKey, bool], marked: str) -> ChartKey | None:
    """Who gets a release name: who has it and claims it still, else the oldest that claims it (hpo-42 to hpo-44).

    An older ProjectHelmChart that begins to ask for the name takes it from nobody (a-36), nor does one of the same second.
    While one has it that does not claim it any more, nobody gets it.

    Args:
        asking: ProjectHelmCharts, oldest first, and whether they claim the name.
        marked: what `made_for` says.
    """
    has = next((key for key in asking if str(key) == marked), None)
    if has is not None:
        return has if asking[has] else None
    return next((key for key, claims in asking.items() if claims), None)


# -- targets -----------------------------------------------------------------------------------------------


def target_namespaces(namespaces: Iterable[Object], project: str, name: str, config: Config) -> tuple[str, ...]:
    """The living namespaces of a project, sorted, then the release's own; empty when the project has none (hpo-46)."""
    found = sorted(each["metadata"]["name"] for each in namespaces if is_member(each, project, config))
    return (*found, *([name] if found and config.dedicated else []))


def selected_namespaces(namespaces: Iterable[Object], selector: Object | None, config: Config) -> tuple[str, ...]:
    """In single-namespace mode: the living namespaces that a selector matches; None matches nothing (hpo-56).

    Raises:
        ValueError: the selector cannot be understood; the message names the field.
    """
    if selector is None:
        return ()
    system = config.system_namespaces
    found = [
        each["metadata"]["name"]
        for each in namespaces
        if each["metadata"]["name"] not in system and not is_terminating(each) and selects(selector, labels_of(each))
    ]
    return tuple(sorted(found))


def selects(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether a ``metav1.LabelSelector`` matches labels.

    Raises:
        ValueError: an operator is unknown.
    """
    wanted = selector.get("matchLabels") or {}
    # Every expression is looked at, so that a wrong one is found whatever the labels are.
    holds = [_expression(each, labels) for each in selector.get("matchExpressions") or ()]
    return all(holds) and all(labels.get(key) == (value or "") for key, value in wanted.items())


def _expression(expression: Object, labels: Mapping[str, str]) -> bool:
    key, values = expression.get("key") or "", expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case other:
            raise ValueError(
                f"spec.projectNamespaceSelector.matchExpressions: {other!r} is no operator: use In, NotIn, Exists or DoesNotExist"
            )


# -- values ------------------------------------------------------------------------------------------------


def composed_values(asked: Object, chart: Chart, project: str, targets: Sequence[str], config: Config) -> Object:
    """The values of a release in their four layers, of which the later wins (hpo-30 to hpo-33).

    Defaults of the installation, the values of the ProjectHelmChart, the overrides of the installation and of the
    chart, and what the project is.
    """
    cattle, operator = config.global_.cattle, config.helm_project_operator
    spec = asked.get("spec") or {}
    values: Any = {"global": {"cattle": {"systemDefaultRegistry": cattle.system_default_registry, "url": cattle.url}}}
    for layer in (spec.get("values") or {}, operator.values_override, chart.values_override):
        values = merged(values, layer)
    values = merged(values, {"global": {"cattle": {}}})
    forced = {
        "clusterId": cattle.cluster_id,
        "projectID": project,
        "releaseProjectID": config.release_project_id,
        "projectNamespaces": list(targets),
        "projectNamespaceSelector": _project_selector(
            values["global"]["cattle"].get("projectNamespaceSelector"), spec, project, config
        ),
    }
    whole: Object = values
    return {**whole, "global": {**whole["global"], "cattle": {**whole["global"]["cattle"], **forced}}}


def values_problem(asked: Object) -> str:
    """Why the values of a ProjectHelmChart cannot be used, with the limit and the fix; empty when they can (a-14)."""
    values = (asked.get("spec") or {}).get("values")
    if isinstance(values, Digest):
        return ""  # it was looked at before
    problem = values.problem if isinstance(values, Oversized) else budget_problem(values)
    return f"spec.values {problem}" if problem else ""


def _project_selector(written: Any, spec: Object, project: str, config: Config) -> Object:
    """The selector of the project's namespaces, laid on what the values have: its parts are whole, other keys stay.

    With a project label ``matchLabels`` is its only part, as it is upstream; expressions beside it narrow it further.
    """
    beside: Object = dict(written) if isinstance(written, Mapping) else {}
    if config.project_label:
        label = PROJECT_ID if config.dedicated else config.project_label
        return {**beside, "matchLabels": {label: project}}
    selector, parts = spec.get("projectNamespaceSelector") or {}, ("matchLabels", "matchExpressions")
    beside = {key: value for key, value in beside.items() if key not in parts}
    return {**beside, **{part: selector[part] for part in parts if selector.get(part)}}


def values_content(values: Object) -> str:
    """The values as the text of a values file: equal values give equal text, so nothing is rolled out for nothing."""
    return as_yaml(values)


# -- dashboard values --------------------------------------------------------------------------------------


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
    bound = len("{}")
    for name, key, text in parts[: limits.DASHBOARD_KEYS]:
        where = f"{name}/{key}"
        too_large = f"{where} is too large: the dashboard values of a release have at most {limits.DASHBOARD_BYTES:,} bytes"
        if isinstance(text, Oversized):
            left_out.append(too_large)
            continue
        part = _json_object(text) if key.endswith(".json") else None
        if part is None:
            left_out.append(f"{where} is no JSON object in a key that ends in .json")
            continue
        if not _is_kept(part):
            left_out.append(f"{where} has a number that Kubernetes would not keep: write it as a text")
            continue
        if _has_long_key(part):
            left_out.append(f"{where} has a key of more than {limits.DASHBOARD_KEY_CHARACTERS} characters")
            continue
        joined, size = _joined(values, part), bound + len(to_json(part))
        if size > limits.DASHBOARD_BYTES:  # no more than this, and maybe less, where keys are the same
            size = len(to_json(joined))
        if size > limits.DASHBOARD_BYTES:
            left_out.append(too_large)
            continue
        values, bound = joined, size
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


def header_of(asked: Object) -> Object:
    """A ProjectHelmChart without what charts and dashboards get: for who asks only who it is and what it asks for."""
    kept = {**asked, "metadata": own_metadata(asked["metadata"])}
    for part, left_out in (("spec", "values"), ("status", "dashboardValues")):
        if left_out in (asked.get(part) or {}):
            kept[part] = {name: value for name, value in asked[part].items() if name != left_out}
    return kept


def own_metadata(metadata: Object) -> Object:
    """Metadata without long annotations: none that we read is long."""
    annotations = metadata.get("annotations")
    if not annotations:
        return metadata
    short = {name: text for name, text in annotations.items() if len(text) <= limits.SWEEP_TEXT_BYTES}
    return {**metadata, "annotations": short}
