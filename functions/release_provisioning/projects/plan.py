"""The writes for one release name.

The owner is the release name, not the ProjectHelmChart: who has a name is decided in one place, the oldest that claims
it gets it (hpo-42 to hpo-44), and the next one when that is deleted.  What is not ours is never touched.  A release is
taken away only on positive evidence: its ProjectHelmChart is deleted or being deleted, it carries the cleanup label, its
project has no namespace, or its namespace was deleted (hpo-40, hpo-46 to hpo-49).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from release_provisioning.projects.seen import WITHOUT_TARGETS, Contender, ObservedRelease, checked, is_cleaning_up, is_foreign
from release_provisioning.projects.values import values_text
from tenantry.model.config import Config
from tenantry.model.difference import difference, is_sole_owner, owns
from tenantry.model.hardening import harden
from tenantry.model.kinds import (
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    PROJECT_HELM_CHART,
    Object,
    annotations_of,
    finalizers_of,
    is_terminating,
    labels_of,
    name_metadata,
    object_of,
)
from tenantry.model.names import (
    ADOPT,
    API_GROUP,
    CHART_MANAGED_BY,
    CLEANED_UP_BY,
    CLEANUP,
    HELM_API_VERSION,
    NAMESPACE_NAME,
    OPERATED,
    ORPHANED,
    PROJECT_CHART,
    PROJECT_ID,
    RELEASE_FINALIZER,
    RELEASE_MANAGED_BY,
    UPSTREAM_PROJECT_CHART_FINALIZER,
)
from tenantry.model.plan import Apply, Delete, Edit, KubernetesEvent, Plan, RemoveFinalizers, RemoveLabel, Write, plan_of
from tenantry.model.pointer import pointer
from tenantry.model.projects import RELEASE_MANAGER, is_made_for_release, project_annotation, project_of_registration_name
from tenantry.model.releases import claimants, held_by, release_namespace


def plan_release(seen: ObservedRelease, contents: Mapping[str, str], config: Config) -> Plan:
    """Delete what nobody asks for any more, then make what is wanted.

    ``contents`` has the archive of every embedded chart by its helmApiVersion, in base64.
    """
    over, released = tuple(_over(seen, config)), tuple(_released(seen))
    if over or released:
        return Plan((over, released, tuple(_hardened(seen, config))))
    holder = seen.holder
    if holder is None:
        return plan_of(*_hardened(seen, config))
    if CLEANUP in labels_of(holder.object):
        return _clean_up(holder, seen, config)
    targets, problem = checked(holder, seen, config)
    if problem is None:
        return _provision(holder, seen, targets, contents, config)
    if problem.reason == WITHOUT_TARGETS:
        away = _taken_away(seen, config, "its project has no namespace")
        return plan_of(*away, *_orphaned(seen, config), *_hardened(seen, config))
    return plan_of(*_hardened(seen, config))


def _over(seen: ObservedRelease, config: Config) -> Iterable[Write]:
    """What was made for a ProjectHelmChart that is deleted or being deleted (hpo-47)."""
    left = seen.gone | {str(each.key) for each in seen.contenders if is_terminating(each.object)}
    marked = {held_by(seen.helm_chart), held_by(seen.helm_release)} - {""}
    if marked <= left if marked else _is_left_over(seen, config):
        yield from _taken_away(seen, config, "its ProjectHelmChart is gone")
    if seen.holder is None and seen.keeper is None and held_by(seen.namespace) in left:
        yield from _orphaned(seen, config)


def _is_left_over(seen: ObservedRelease, config: Config) -> bool:
    """Whether our objects lost their mark, and each ProjectHelmChart that can have asked for them is deleted or being deleted."""
    made = any(live is not None and owns(live, RELEASE_MANAGER, "spec") for live in (seen.helm_chart, seen.helm_release))
    return made and bool(claimants(seen.name, config)) and all(is_terminating(each.object) for each in seen.contenders)


def _released(seen: ObservedRelease) -> Iterable[Write]:
    """Take our finalizers off ProjectHelmCharts that are being deleted, after the deletion of what was made for them.

    It waits for nothing else: neither for Helm, nor for the ProjectHelmChart to be served still.
    """
    for each in seen.contenders:
        ours = tuple(name for name in finalizers_of(each.object) if name in each.finalizers)
        if ours and is_terminating(each.object) and each.asks_for(seen.name):
            yield RemoveFinalizers(PROJECT_HELM_CHART, each.object, ours)


def _taken_away(seen: ObservedRelease, config: Config, why: str) -> Iterable[Write]:
    for kind, live in ((HELM_CHART, seen.helm_chart), (HELM_RELEASE, seen.helm_release)):
        if live is None or is_terminating(live) or is_foreign(live, config):
            continue
        if held_by(live) or owns(live, RELEASE_MANAGER, "spec"):  # our label alone may be anybody's
            event = KubernetesEvent(live, "ReleaseRemoved", f"release {seen.name} is taken away: {why}", "Remove")
            yield Delete(kind, live, event if kind is HELM_CHART else None)


def _hardened(seen: ObservedRelease, config: Config) -> Iterable[Write]:
    """A namespace that we made stays hardened, also when there is no release in it any more (section 3.5)."""
    return harden(seen.name, seen.hardening, config) if seen.has_home(config) else ()


def _orphaned(seen: ObservedRelease, config: Config) -> Iterable[Write]:
    """The orphan label on the release's namespace, everything else as it is (hpo-46, hpo-47)."""
    live = seen.namespace
    if live is None or not seen.has_home(config):
        return
    made_for = held_by(live)
    # Its own mark says whose it was; the label is put back to that, where it says so.
    project = project_of_registration_name(made_for.partition("/")[0]) or labels_of(live).get(PROJECT_ID, "")
    wanted = _namespace(seen.name, project, made_for, config, orphaned=True)
    note = "there is no release here any more: this namespace may be deleted"
    yield Apply(NAMESPACE, wanted, live, event=KubernetesEvent(live, "ReleaseOrphaned", note, "MarkOrphaned"))


def _clean_up(holder: Contender, seen: ObservedRelease, config: Config) -> Plan:
    if is_cleaning_up(holder, seen):
        away = _taken_away(seen, config, "the system is being uninstalled")
        return Plan(((_held(holder, {CLEANED_UP_BY: seen.installation}),), (*away, *_orphaned(seen, config))))
    # The label is from an earlier installation: begin again (hpo-50).
    note = "the system was deployed again: the release is made again"
    event = KubernetesEvent(holder.object, "CleanupOver", note, "Provision")
    return plan_of(RemoveLabel(PROJECT_HELM_CHART, holder.object, CLEANUP, event))


def _held(holder: Contender, annotations: Mapping[str, str] | None = None) -> Apply:
    """Our finalizer on the ProjectHelmChart."""
    metadata: Object = {**name_metadata(holder.object), "finalizers": [RELEASE_FINALIZER]}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return Apply(PROJECT_HELM_CHART, object_of(PROJECT_HELM_CHART, metadata), holder.object)


def _provision(
    holder: Contender, seen: ObservedRelease, targets: Sequence[str], contents: Mapping[str, str], config: Config
) -> Plan:
    if config.dedicated and (seen.namespace is None or is_terminating(seen.namespace)):
        # Whatever Helm knew of the release went with its namespace: begin again (hpo-48).
        away = tuple(_taken_away(seen, config, "its namespace was deleted, and it is made again"))
        if away or seen.namespace is not None:
            return Plan(((_held(holder),), away))
    first: list[Write] = [_held(holder)]
    if config.dedicated:
        first += _home(holder, seen, config)
    if is_terminating(seen.helm_chart) or is_terminating(seen.helm_release):
        return plan_of(*first)  # it is being uninstalled: when that has ended is an event
    safe = tuple(harden(seen.name, seen.hardening, config)) if config.dedicated else ()
    made = (_helm_chart(holder, seen, targets, contents, config), _helm_release(holder, seen, config))
    return Plan((tuple(_taken_over(holder)), tuple(first), safe, made))


def _taken_over(holder: Contender) -> Iterable[Write]:
    """Once, before our finalizer is there, the end of upstream's: nobody else would take it off."""
    finalizers = finalizers_of(holder.object)
    if RELEASE_FINALIZER not in finalizers and UPSTREAM_PROJECT_CHART_FINALIZER in finalizers:
        yield RemoveFinalizers(PROJECT_HELM_CHART, holder.object, (UPSTREAM_PROJECT_CHART_FINALIZER,))


def _home(holder: Contender, seen: ObservedRelease, config: Config) -> Iterable[Write]:
    """The release's namespace with its labels (hpo-28); once it has them, the annotation that handed it over is taken off.

    The annotation would hand it on to the next project, too (a-32).
    """
    live = seen.namespace
    wanted = _namespace(seen.name, holder.project, str(holder.key), config, orphaned=False)
    if live is None:
        yield Apply(NAMESPACE, wanted, live, create_only=True)
        return
    if annotations_of(live).get(ADOPT) == "true" and difference(wanted, live, manager=RELEASE_MANAGER) is None:
        event = KubernetesEvent(live, "Adopted", f"the annotation {ADOPT} has done its work and is taken off", "Adopt")
        yield Edit(NAMESPACE, live, ({"op": "remove", "path": pointer("metadata", "annotations", ADOPT)},), event)
        return
    event = KubernetesEvent(live, "Restored", "labels and annotations were put back", "Restore")
    if not is_made_for_release(live) or labels_of(live).get(PROJECT_ID) != holder.project:
        event = KubernetesEvent(live, "Adopted", f"this namespace is now the namespace of release {seen.name}", "Adopt")
    yield Apply(NAMESPACE, wanted, live, create_only=True, event=event)
    if ORPHANED in labels_of(live) and not is_sole_owner(live, RELEASE_MANAGER, "metadata", "labels", ORPHANED):
        yield RemoveLabel(NAMESPACE, live, ORPHANED)


def _namespace(name: str, project: str, made_for: str, config: Config, *, orphaned: bool) -> Object:
    operator, project_of_releases = config.helm_project_operator, config.release_project_id
    labels = {
        **operator.namespace_labels,
        OPERATED: "true",
        PROJECT_ID: project,
        **({config.project_label: project_of_releases} if project_of_releases else {}),
        NAMESPACE_NAME: name,
        **({ORPHANED: "true"} if orphaned else {}),
    }
    annotations = {
        **operator.namespace_annotations,
        **({config.project_label: project_annotation(project_of_releases, config)} if project_of_releases else {}),
        PROJECT_CHART: made_for,
    }
    return object_of(NAMESPACE, {"name": name, "labels": labels, "annotations": annotations})


def _metadata(holder: Contender, seen: ObservedRelease, config: Config, annotations: Mapping[str, str]) -> Object:
    assert holder.chart is not None
    return {
        "name": seen.name,
        "namespace": config.helm_project_operator.system_namespace,
        "labels": {OPERATED: "true", PROJECT_ID: holder.project, API_GROUP: holder.chart.helm_api_group},
        "annotations": {**annotations, PROJECT_CHART: str(holder.key)},
    }


def _helm_chart(
    holder: Contender, seen: ObservedRelease, targets: Sequence[str], contents: Mapping[str, str], config: Config
) -> Apply:
    """What Helm is to install (hpo-29, hpo-30, hpo-54)."""
    chart, operator = holder.chart, config.helm_project_operator
    assert chart is not None
    controller = operator.helm_controller
    values = seen.values or values_text(holder.object, chart, holder.project, targets, config)
    spec: Object = {"targetNamespace": release_namespace(holder.key, seen.name, config), "valuesContent": values}
    if controller.job_image:
        spec["jobImage"] = controller.job_image
    if reference := chart.reference:
        spec |= {"chart": reference.name, "repo": reference.repo, "version": reference.version}
    else:
        spec |= {"chart": seen.name, "chartContent": contents[chart.helm_api_version]}
    managed_by = operator.controller_name if controller.enabled else controller.external_controller_name
    annotations = {CHART_MANAGED_BY: managed_by, HELM_API_VERSION: chart.helm_api_version}
    live = seen.helm_chart
    if live is None:
        event = KubernetesEvent(holder.object, "ReleaseRequested", f"release {seen.name} is being installed", "Provision")
    elif (live.get("spec") or {}).get("valuesContent") != values:
        event = KubernetesEvent(holder.object, "ReleaseUpdated", f"release {seen.name} gets new values", "Provision")
    else:
        event = KubernetesEvent(holder.object, "Restored", f"HelmChart {seen.name} was put back as asked for", "Restore")
    return Apply(HELM_CHART, object_of(HELM_CHART, _metadata(holder, seen, config, annotations), spec=spec), live, event=event)


def _helm_release(holder: Contender, seen: ObservedRelease, config: Config) -> Apply:
    """What is to be locked (hpo-27)."""
    metadata = _metadata(holder, seen, config, {RELEASE_MANAGED_BY: config.helm_project_operator.controller_name})
    release = {"name": seen.name, "namespace": release_namespace(holder.key, seen.name, config)}
    event = None
    if seen.helm_release is not None:
        event = KubernetesEvent(holder.object, "Restored", f"HelmRelease {seen.name} was put back as asked for", "Restore")
    return Apply(HELM_RELEASE, object_of(HELM_RELEASE, metadata, spec={"release": release}), seen.helm_release, event=event)
