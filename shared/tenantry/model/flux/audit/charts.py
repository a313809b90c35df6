"""HelmCharts beside sources of other namespaces, and HelmReleases that want the same one (1.2, 2.5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tenantry.model.flux.access import references_of
from tenantry.model.flux.audit.references import is_denied
from tenantry.model.flux.audit.seen import AuditedConsumer, AuditFinding, AuditSeen
from tenantry.model.flux.names import CHART_OWNER_NAME, CHART_OWNER_NAMESPACE
from tenantry.model.kinds import labels_of

FOREIGN_CHART, CHART_CONFLICT = "ForeignHelmChart", "HelmChartConflict"
_CHART_SOURCE = "spec.chart.spec.sourceRef"


def foreign_charts(seen: AuditSeen) -> Iterator[AuditFinding]:
    """HelmCharts made for a HelmRelease of another namespace that may not have them, or does not want them (any more).

    One whose HelmRelease is granted its source is where Flux makes it, and stays.
    """
    releases = {(each.namespace, each.name): each for each in _releases(seen)}
    for chart in seen.charts:
        metadata, labels = chart["metadata"], labels_of(chart)
        owner = labels.get(CHART_OWNER_NAMESPACE, ""), labels.get(CHART_OWNER_NAME, "")
        release = releases.get(owner)
        wanted = release is not None and _chart_of(release) == (metadata["namespace"], metadata["name"])
        text = f"was made for HelmRelease {'/'.join(owner)} of another namespace, "
        if release is None or not wanted:
            why = "which is not there" if release is None else "which has its chart elsewhere"
            finding = text + why, "delete it"
        elif _is_refused(release, seen):
            finding = text + "whose reference would be denied", "grant that its source, or take the HelmRelease away first"
        else:
            continue
        yield AuditFinding(FOREIGN_CHART, chart["kind"], metadata["namespace"], metadata["name"], *finding)


def chart_conflicts(seen: AuditSeen) -> Iterator[AuditFinding]:
    """Pairs of HelmReleases that want one HelmChart: its name is their namespace and name, joined by a dash."""
    wanting: dict[tuple[str, str], list[AuditedConsumer]] = defaultdict(list)
    for each in _releases(seen):
        if (wanted := _chart_of(each)) is not None:
            wanting[wanted].append(each)
    for (namespace, name), found in sorted(wanting.items()):
        for first, second in pairwise(sorted(found, key=lambda each: (each.namespace, each.name))):
            text = f"wants HelmChart {namespace}/{name}, as HelmRelease {first.namespace}/{first.name} does"
            yield second.finding(CHART_CONFLICT, text, "call one of them otherwise, or give it a source of its own")


def _releases(seen: AuditSeen) -> Iterator[AuditedConsumer]:
    return (each for each in seen.consumers if each.live["kind"] == "HelmRelease")


def _chart_of(release: AuditedConsumer) -> tuple[str, str] | None:
    """Namespace and name of the HelmChart that is made for a HelmRelease."""
    for reference, named in references_of(release.live, release.row):
        if reference.path == _CHART_SOURCE:
            return named.namespace or release.namespace, f"{release.namespace}-{release.name}"
    return None


def _is_refused(release: AuditedConsumer, seen: AuditSeen) -> bool:
    found = references_of(release.live, release.row)
    return any(each.path == _CHART_SOURCE and is_denied(each, named, release.namespace, seen) for each, named in found)
