"""Which ProjectHelmChart has which release, by name alone: pure functions of configuration and objects.

A ProjectHelmChart counts in a registration namespace and with the helmApiVersion of a configured chart.  Of several that
claim one release name one has it, by the rule of release-provisioning: see `holder_of` (spec 4.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tenantry.model.config import Chart, Config
from tenantry.model.kinds import Object, is_terminating, labels_of
from tenantry.model.names import CLEANUP
from tenantry.model.projects import may_be_home
from tenantry.model.releases import (
    ChartKey,
    by_age,
    chart_for,
    chart_key,
    holder_of,
    made_for,
    project_of,
    release_name,
    release_name_problem,
    release_namespace,
)


@dataclass(frozen=True, slots=True, order=True)
class ReleaseKey:
    """The namespace that a release is installed in, and its name."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class ReleaseClaim:
    """A ProjectHelmChart that counts, the release that it claims, and the project id."""

    chart: Object
    release: ReleaseKey
    project: str


def release_for(key: ChartKey, chart: Chart, config: Config) -> ReleaseKey | None:
    """The release that a ProjectHelmChart of that key asks for with this chart; None where there can be none of the name."""
    name = release_name(key, chart)
    return None if release_name_problem(name, config) else ReleaseKey(release_namespace(key, name, config), name)


def possible_releases(namespace: str, name: str, config: Config) -> list[ReleaseKey]:
    """Every release that a ProjectHelmChart of that key can claim, whatever its helmApiVersion."""
    if not may_be_home(namespace, config):
        return []
    found = (release_for(ChartKey(namespace, name), chart, config) for chart in config.helm_project_operator.charts)
    return [release for release in dict.fromkeys(found) if release is not None]


def configured_release(chart: Object, config: Config) -> ReleaseKey | None:
    """The release of a ProjectHelmChart by its name and helmApiVersion; None where that is not configured."""
    found = chart_for(chart, config)
    return release_for(chart_key(chart), found, config) if found is not None else None


def claim_of(chart: Object, home: Object | None, config: Config) -> ReleaseClaim | None:
    """What a ProjectHelmChart claims; None when it does not count.  ``home`` is its namespace."""
    release, project = configured_release(chart, config), project_of(chart, home, config)
    return ReleaseClaim(chart, release, project) if release is not None and project else None


def winner(
    release: ReleaseKey, charts: Iterable[Object], homes: Mapping[str, Object | None], namespace: Object | None, config: Config
) -> ReleaseClaim | None:
    """Who has a release, by the rule of release-provisioning; one that is being deleted has it until its deletion ends.

    Where releases have no namespaces of their own the status says who has it, which release-provisioning writes.

    Args:
        charts: the ProjectHelmCharts that may have it.
        homes: their namespaces, by name.
        namespace: that of the release.
    """
    charts = sorted(by_age(charts), key=is_terminating)
    claims = {chart_key(chart): claim_of(chart, homes[chart["metadata"]["namespace"]], config) for chart in charts}
    if config.dedicated:
        marked = made_for(None, None, namespace)
    else:
        holders = (chart for chart in charts if (chart.get("status") or {}).get("releaseName") == release.name)
        marked = next((str(chart_key(chart)) for chart in holders), "")
    asking = {key: claim is not None and claim.release.name == release.name for key, claim in claims.items()}
    key = holder_of(asking, marked)
    return claims[key] if key is not None else None


def has_given_up(chart: Object | None, home: Object | None, release: ReleaseKey, config: Config) -> bool:
    """Whether it is certain that a ProjectHelmChart does not have this release any more.

    It is when it is deleted, when an uninstallation asked for clean-up, or when it counts and claims another release.  One that
    does not count any more keeps what it has: that is no evidence.
    """
    if chart is None or CLEANUP in labels_of(chart):
        return True
    claim = claim_of(chart, home, config)
    return claim is not None and claim.release != release
