"""What release-provisioning wants for one release name: pure functions.

The owner is the release name, not the ProjectHelmChart: whoever claims a name is decided in one place, the
oldest holds it (hpo-42 to hpo-44), and the next one gets it when the holder goes.  "Not ours" always means
"touch nothing"; releases are taken away only on positive evidence: the ProjectHelmChart is being deleted or
is gone, it carries the cleanup label, or its project has no namespace (hpo-40, hpo-46, hpo-47, hpo-49).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tenantry.model.config import Chart, Config
from tenantry.model.difference import owns
from tenantry.model.kinds import (
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    PROJECT_HELM_CHART,
    Object,
    annotations_of,
    is_terminating,
    labels_of,
)
from tenantry.model.names import (
    ADOPT,
    API_VERSION,
    CHART_MANAGED_BY,
    CLEANUP,
    NAMESPACE_NAME,
    OPERATED,
    ORPHANED,
    PROJECT_CHART,
    PROJECT_ID,
    RELEASE_FINALIZER,
    RELEASE_MANAGED_BY,
    UPSTREAM_CHART_FINALIZER,
    field_manager,
)
from tenantry.model.plan import NOTHING, Apply, Delete, Notice, Plan, RemoveFinalizer, RemoveLabel, Write
from tenantry.model.projects import ChartFiles, project_annotation
from tenantry.model.releases import (
    ChartKey,
    composed_values,
    release_name_problem,
    release_namespace,
    selected_namespaces,
    target_namespaces,
    values_content,
)

MANAGER = field_manager("release-provisioning")


@dataclass(frozen=True, slots=True)
class Contender:
    """A ProjectHelmChart that claims the release name, or still holds it from before.

    ``chart`` is None when its helmApiVersion is not ours; ``project`` is empty when its namespace is no
    registration namespace of ours; ``denied`` says that the project is on the deny list.
    """

    object: Object
    chart: Chart | None
    project: str
    denied: bool = False

    @property
    def key(self) -> ChartKey:
        """Its namespace and name."""
        return ChartKey(self.object["metadata"]["namespace"], self.object["metadata"]["name"])

    @property
    def claims(self) -> bool:
        """Whether it may hold the name: ours, in a served project, and not on its way out."""
        return self.chart is not None and bool(self.project) and not self.denied and not is_terminating(self.object)


@dataclass(frozen=True, slots=True)
class Release:
    """One release name as it is: who wants it (oldest first), and what there is of it."""

    name: str
    contenders: tuple[Contender, ...] = ()
    helm_chart: Object | None = None
    helm_release: Object | None = None
    holder_is_gone: bool = False
    namespace: Object | None = None
    namespaces: tuple[Object, ...] = ()
    dashboards: tuple[Object, ...] = ()
    installation: str = ""

    @property
    def holder(self) -> Contender | None:
        """Who gets the release: the oldest that claims its name."""
        return next((contender for contender in self.contenders if contender.claims), None)


def held_by(obj: Object | None) -> str:
    """``<namespace>/<name>`` of the ProjectHelmChart that an object was made for; empty for none."""
    return annotations_of(obj).get(PROJECT_CHART, "")


def targets_of(holder: Contender, seen: Release, config: Config) -> tuple[str, ...]:
    """The namespaces that the release is for.

    Raises:
        ValueError: the selector of single-namespace mode is not one.
    """
    if not config.project_label:
        selector = (holder.object.get("spec") or {}).get("projectNamespaceSelector")
        return selected_namespaces(seen.namespaces, selector, config)
    return target_namespaces(seen.namespaces, holder.project, seen.name, config)


def is_cleaning_up(contender: Contender, seen: Release) -> bool:
    """Whether the cleanup label holds: it was put there under this very installation (hpo-49, hpo-50)."""
    metadata = contender.object["metadata"]
    if CLEANUP not in labels_of(contender.object):
        return False
    seen_by = annotations_of(contender.object).get(f"{CLEANUP}-seen-by", "")
    return metadata is not None and seen_by in ("", seen.installation)


def namespace_problem(holder: Contender, seen: Release, config: Config) -> str:
    """Why the release namespace cannot be used; empty when it can (hpo-53)."""
    if not config.release_project_id or seen.namespace is None:
        return ""
    live = seen.namespace
    labels = labels_of(live)
    ours = (
        (OPERATED in labels and labels.get(PROJECT_ID) == holder.project)
        or annotations_of(live).get(ADOPT) == "true"
        or owns(live, MANAGER, "metadata", "annotations", config.project_label)
    )
    if ours:
        return ""
    return (
        f"namespace {seen.name} exists and was not made for this release: rename the ProjectHelmChart, delete the "
        f"namespace, or let Tenantry take it over with the annotation {ADOPT}=true on it"
    )


def plan_release(seen: Release, charts: Sequence[ChartFiles], config: Config) -> Plan:
    """Take away what is over, then make what is wanted."""
    over = _ending(seen, config)
    if over:
        return Plan(tuple(over))
    holder = seen.holder
    if holder is None or holder.chart is None or release_name_problem(seen.name):
        return NOTHING
    if CLEANUP in labels_of(holder.object):
        return _clean_up(holder, seen)
    try:
        targets = targets_of(holder, seen, config)
    except ValueError:
        return NOTHING
    if namespace_problem(holder, seen, config) or _foreign(seen.helm_chart) or _foreign(seen.helm_release):
        return NOTHING
    if not targets:
        orphan = [_namespace(holder, seen, config, orphaned=True)] if seen.namespace is not None else []
        return Plan((tuple([*_taken_away(seen), *(orphan if config.release_project_id else [])]),))
    return _provision(holder, seen, targets, charts, config)


def _foreign(obj: Object | None) -> bool:
    return obj is not None and OPERATED not in labels_of(obj) and not owns(obj, MANAGER, "spec")


def _ending(seen: Release, config: Config) -> list[tuple[Write, ...]]:
    """The stages for ProjectHelmCharts that go, and for what one left behind that is gone."""
    stages: list[tuple[Write, ...]] = []
    for contender in seen.contenders:
        finalizers = contender.object["metadata"].get("finalizers") or []
        ours = [name for name in (RELEASE_FINALIZER, UPSTREAM_CHART_FINALIZER) if name in finalizers]
        if not is_terminating(contender.object) or not ours:
            continue
        if held_by(seen.helm_chart) in ("", str(contender.key)):
            stages.append(tuple(_taken_away(seen)))
            if seen.namespace is not None and config.release_project_id and seen.holder is None:
                stages.append((_namespace(contender, seen, config, orphaned=True),))
        stages.append(tuple(RemoveFinalizer(PROJECT_HELM_CHART, contender.object, name) for name in ours))
    if seen.holder_is_gone and not stages:
        stages.append(tuple(_taken_away(seen)))
    return [stage for stage in stages if stage]


def _taken_away(seen: Release) -> Iterable[Write]:
    for kind, live in ((HELM_CHART, seen.helm_chart), (HELM_RELEASE, seen.helm_release)):
        if live is not None and not is_terminating(live) and not _foreign(live):
            yield Delete(kind, live)


def _clean_up(holder: Contender, seen: Release) -> Plan:
    if is_cleaning_up(holder, seen):
        return Plan(((_finalizer(holder, seen),), tuple(_taken_away(seen))))
    # The label is from an installation that is gone: begin again (hpo-50).
    return Plan(((RemoveLabel(PROJECT_HELM_CHART, holder.object, CLEANUP),),))


def _finalizer(holder: Contender, seen: Release) -> Apply:
    metadata = holder.object["metadata"]
    wanted: Object = {
        "apiVersion": PROJECT_HELM_CHART.api_version,
        "kind": PROJECT_HELM_CHART.kind,
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "finalizers": [RELEASE_FINALIZER],
        },
    }
    if CLEANUP in labels_of(holder.object):
        wanted["metadata"]["annotations"] = {f"{CLEANUP}-seen-by": seen.installation}
    return Apply(PROJECT_HELM_CHART, wanted, holder.object)


def _provision(
    holder: Contender, seen: Release, targets: Sequence[str], charts: Sequence[ChartFiles], config: Config
) -> Plan:
    first: list[Write] = [_finalizer(holder, seen)]
    dedicated = bool(config.release_project_id)
    if dedicated:
        if seen.namespace is None and seen.helm_chart is not None:
            # The namespace was deleted under the release: uninstall, then install into the new one (hpo-48).
            return Plan((tuple([*first, *_taken_away(seen)]),))
        if seen.namespace is not None and is_terminating(seen.namespace):
            return Plan((tuple([*first, *_taken_away(seen)]),))
        first.append(_namespace(holder, seen, config, orphaned=False))
    if is_terminating(seen.helm_chart) or is_terminating(seen.helm_release):
        return Plan((tuple(first),))  # an uninstall runs: its end is an event
    made = [_helm_chart(holder, seen, targets, charts, config), _helm_release(holder, seen, config)]
    return Plan((tuple(first), tuple(made)))


def _namespace(contender: Contender, seen: Release, config: Config, *, orphaned: bool) -> Apply:
    operator, live = config.helm_project_operator, seen.namespace
    wanted: Object = {
        "apiVersion": NAMESPACE.api_version,
        "kind": NAMESPACE.kind,
        "metadata": {
            "name": seen.name,
            "labels": {
                **operator.namespace_labels,
                OPERATED: "true",
                PROJECT_ID: contender.project or labels_of(live).get(PROJECT_ID, ""),
                config.project_label: config.release_project_id,
                NAMESPACE_NAME: seen.name,
                **({ORPHANED: "true"} if orphaned else {}),
            },
            "annotations": {
                **operator.namespace_annotations,
                config.project_label: project_annotation(config.release_project_id, config),
                PROJECT_CHART: str(contender.key),
            },
        },
    }
    notice = None
    if live is None:
        note = f"release namespace for ProjectHelmChart {contender.key}"
        notice = Notice(wanted, "ReleaseNamespaceCreated", note, "Provision")
    elif orphaned and ORPHANED not in labels_of(live):
        notice = Notice(live, "ReleaseOrphaned", "the release is gone: this namespace may be deleted", "MarkOrphaned")
    return Apply(NAMESPACE, wanted, live, create_only=True, notice=notice)


def _labels(holder: Contender) -> dict[str, str]:
    assert holder.chart is not None
    group = holder.chart.helm_api_version.partition("/")[0]
    return {OPERATED: "true", PROJECT_ID: holder.project, API_VERSION: group}


def _helm_chart(
    holder: Contender, seen: Release, targets: Sequence[str], charts: Sequence[ChartFiles], config: Config
) -> Apply:
    assert holder.chart is not None
    operator = config.helm_project_operator
    controller = operator.controller_name if operator.helm_controller.enabled else operator.external_controller_name
    values = composed_values(holder.object, holder.chart, holder.project, targets, config)
    spec: Object = {
        "targetNamespace": release_namespace(holder.key, seen.name, config),
        "valuesContent": values_content(values),
    }
    if operator.job_image:
        spec["jobImage"] = operator.job_image
    files = next(found for found in charts if found.config_map_name == holder.chart.config_map_name)
    if files.reference is not None:
        spec |= {"chart": files.reference.name, "repo": files.reference.repo, "version": files.reference.version}
    else:
        spec |= {"chart": seen.name, "chartContent": files.content}
    wanted: Object = {
        "apiVersion": HELM_CHART.api_version,
        "kind": HELM_CHART.kind,
        "metadata": {
            "name": seen.name,
            "namespace": operator.system_namespace,
            "labels": _labels(holder),
            "annotations": {CHART_MANAGED_BY: controller, PROJECT_CHART: str(holder.key)},
        },
        "spec": spec,
    }
    notice = None
    if seen.helm_chart is None:
        notice = Notice(holder.object, "ReleaseRequested", f"release {seen.name} is being installed", "Provision")
    elif (seen.helm_chart.get("spec") or {}).get("valuesContent") != spec["valuesContent"]:
        notice = Notice(holder.object, "ReleaseUpdated", f"release {seen.name} has new values", "Provision")
    return Apply(HELM_CHART, wanted, seen.helm_chart, notice=notice)


def _helm_release(holder: Contender, seen: Release, config: Config) -> Apply:
    operator = config.helm_project_operator
    wanted: Object = {
        "apiVersion": HELM_RELEASE.api_version,
        "kind": HELM_RELEASE.kind,
        "metadata": {
            "name": seen.name,
            "namespace": operator.system_namespace,
            "labels": _labels(holder),
            "annotations": {RELEASE_MANAGED_BY: operator.controller_name, PROJECT_CHART: str(holder.key)},
        },
        "spec": {"release": {"name": seen.name, "namespace": release_namespace(holder.key, seen.name, config)}},
    }
    return Apply(HELM_RELEASE, wanted, seen.helm_release)
