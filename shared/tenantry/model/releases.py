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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tenantry.model import limits
from tenantry.model.config import Chart, Config
from tenantry.model.identifiers import is_dns_label, is_dns_subdomain
from tenantry.model.kinds import Object, annotations_of, is_terminating, labels_of
from tenantry.model.names import OPERATED, ORPHANED, PROJECT_CHART
from tenantry.model.projects import is_registration, may_be_home, project_of_registration_name

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


def project_of(asked: Object, home: Object | None, config: Config) -> str:
    """The project of a ProjectHelmChart, by its namespace ``home``; empty where ProjectHelmCharts do not count."""
    key = chart_key(asked)
    if not config.project_label:
        return key.name if may_be_home(key.namespace, config) else ""
    return project_of_registration_name(key.namespace) if home is not None and is_registration(home, config) else ""


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

    One that is too long is reported (a-18).
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
