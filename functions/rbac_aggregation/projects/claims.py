"""Which ProjectHelmChart has which release, by name alone: pure functions of configuration and objects.

A ProjectHelmChart counts in a registration namespace and with the helmApiVersion of a configured chart.  Of several that
claim one release name one has it, by the rule of release-provisioning: see `holder_of` (spec 4.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tenantry.model.config import Chart, Config
from tenantry.model.kinds import Object, is_terminating, labels_of
from tenantry.model.names import CLEANUP, OPERATED, PROJECT_ID
from tenantry.model.projects import is_registration, project_of_registration_name
from tenantry.model.releases import (
    ChartKey,
    by_age,
    chart_for,
    chart_key,
    claimants,
    holder_of,
    made_for,
    release_name,
    release_name_problem,
    release_namespace,
)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A release and the namespace that it is installed in."""

    namespace: str
    release: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A ProjectHelmChart that counts, the place of its release, and the project id."""

    chart: Object
    place: Place
    project: str


def key_text(chart: Object) -> str:
    """``<namespace>/<name>`` of a ProjectHelmChart."""
    return str(chart_key(chart))


def is_home(namespace: Object | None, config: Config) -> bool:
    """Whether ProjectHelmCharts in this namespace count."""
    if namespace is None:
        return False
    if not config.project_label:
        return bool(namespace["metadata"]["name"] == config.helm_project_operator.system_namespace)
    return is_registration(namespace, config)


def may_be_home(name: str, config: Config) -> bool:
    """Whether a namespace of this name can be one whose ProjectHelmCharts count."""
    if not config.project_label:
        return name == config.helm_project_operator.system_namespace
    return bool(project_of_registration_name(name))


def place_for(key: ChartKey, chart: Chart, config: Config) -> Place | None:
    """The place of the release that a ProjectHelmChart of that key asks for with this chart; None where the name cannot be."""
    release = release_name(key, chart)
    if release_name_problem(release, config):
        return None
    return Place(release_namespace(key, release, config), release)


def places_of(namespace: str, name: str, config: Config) -> list[Place]:
    """Every place that a ProjectHelmChart of that key can have, whatever its helmApiVersion."""
    if not may_be_home(namespace, config):
        return []
    found = (place_for(ChartKey(namespace, name), chart, config) for chart in config.helm_project_operator.charts)
    return [place for place in dict.fromkeys(found) if place is not None]


def askers(place: Place, config: Config) -> list[tuple[str, str]]:
    """Where the ProjectHelmCharts are that can claim a release: (namespace, name), of which one is empty for any."""
    return claimants(place.release, config)


def configured_place(chart: Object, config: Config) -> Place | None:
    """The place of a ProjectHelmChart's release by its name and helmApiVersion; None where that is not configured."""
    found = chart_for(chart, config)
    return place_for(chart_key(chart), found, config) if found is not None else None


def claim_of(chart: Object, home: Object | None, config: Config) -> Claim | None:
    """What a ProjectHelmChart claims; None when it does not count.  ``home`` is its namespace."""
    place = configured_place(chart, config)
    if place is None or not is_home(home, config):
        return None
    metadata = chart["metadata"]
    project = project_of_registration_name(metadata["namespace"]) if config.project_label else metadata["name"]
    return Claim(chart, place, project)


def winner(place: Place, found: Iterable[tuple[Object, Object | None]], namespace: Object | None, config: Config) -> Claim | None:
    """Who has a release, by the rule of release-provisioning; one that goes has it until it is gone.

    Where releases have no namespaces of their own the status says who has it, which release-provisioning writes.

    Args:
        found: the ProjectHelmCharts that may have it, each with its namespace.
        namespace: that of the place.
    """
    homes = {chart_key(chart): (chart, home) for chart, home in found}
    charts = sorted(by_age(chart for chart, _ in homes.values()), key=is_terminating)
    claims = {chart_key(chart): claim_of(*homes[chart_key(chart)], config) for chart in charts}
    if config.dedicated:
        marked = made_for(None, None, namespace)
    else:
        told = (chart for chart in charts if (chart.get("status") or {}).get("releaseName") == place.release)
        marked = next(map(key_text, told), "")
    asking = {key: claim is not None and claim.place.release == place.release for key, claim in claims.items()}
    key = holder_of(asking, marked)
    return claims[key] if key is not None else None


def is_of(namespace: Object | None, claim: Claim, config: Config) -> bool:
    """Whether the namespace of a claim's place is really the one of that release."""
    if namespace is None:
        return False
    if not config.dedicated:
        return True  # the registration namespace itself
    labels = labels_of(namespace)
    return OPERATED in labels and labels.get(PROJECT_ID) == claim.project


def has_given_up(chart: Object | None, home: Object | None, place: Place, config: Config) -> bool:
    """Whether it is certain that a ProjectHelmChart does not have this release any more.

    Certain is: it is gone, an uninstallation asked for clean-up, or it counts and has another place.  One that does not count
    any more keeps what it has: that is no evidence.
    """
    if chart is None or CLEANUP in labels_of(chart):
        return True
    claim = claim_of(chart, home, config)
    return claim is not None and claim.place != place
