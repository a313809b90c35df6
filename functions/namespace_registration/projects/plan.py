"""Plans and conditions for registration namespaces: pure functions from what was observed to writes.

Sources of the rules: hpo-1 to hpo-6 (registration namespace), hpo-7 to hpo-18 (which namespaces are in a project, and what cannot
be served), hpo-21 (refusals are reported), hpo-22 to hpo-26 (hardening), hpo-57 (single-namespace mode).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from namespace_registration.projects.descriptor import PROJECTS
from tenantry.model.config import Config
from tenantry.model.difference import entries_of, is_sole_owner
from tenantry.model.hardening import Hardening, harden, restored
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Object, is_terminating, labels_of, object_of
from tenantry.model.names import NAMESPACE_NAME, OPERATED, ORPHANED, PROJECT_ID, REGISTERED_CONDITION
from tenantry.model.plan import NOTHING, Apply, Delete, KubernetesEvent, Plan, Refusal, RemoveLabel, Write, plan_of
from tenantry.model.projects import (
    LABEL_CHANGED,
    REGISTRATION_MANAGER,
    ChartFiles,
    Place,
    earlier_label,
    label_changed,
    place_of,
    project_annotation,
    project_id_problem,
    registration_name,
)
from tenantry.model.refusals import OF_NAMESPACES, REASONS, first_of, fixes, message_of, text_of
from tenantry.model.standing import standing_condition


@dataclass(frozen=True, slots=True)
class Project:
    """One project as it is.

    ``alive`` is None when the run did not ask.  ``members`` are those that were read: all of them when a list was needed, else
    the ones that woke the run.
    """

    id: str
    registration: Object | None
    ours: bool
    alive: bool | None
    members: tuple[Object, ...] = ()
    config_maps: dict[str, Object | None] = field(default_factory=dict)
    hardening: Hardening = field(default_factory=Hardening)


@dataclass(frozen=True, slots=True)
class SystemNamespace:
    """The registration namespace of single-namespace mode."""

    namespace: Object | None
    config_maps: dict[str, Object | None] = field(default_factory=dict)


class Member(NamedTuple):
    """An ordinary namespace, and the registration namespace of the project that it remembers, where that was asked for."""

    namespace: Object | None
    registration: Object | None = None


INVALID_PROJECT_ID = "InvalidProjectID"
FIXES = fixes(PROJECTS, admission=OF_NAMESPACES)


# -- a project ---------------------------------------------------------------------------------------------


def plan_project(seen: Project, charts: tuple[ChartFiles, ...], config: Config) -> Plan:
    """The registration namespace with its marks, then what belongs into it."""
    registration = seen.registration
    if registration is None:
        if not seen.alive:
            return NOTHING  # an orphan that somebody deleted stays deleted (hpo-16)
    elif not seen.ours or is_terminating(registration):
        return NOTHING
    if label_it_waits_for(seen, config):
        return plan_of(*_contents(seen, charts, config))
    namespace = _registration_namespace(seen, config)
    return Plan(((namespace,), tuple(_foreign_orphan_label(seen)), tuple(_contents(seen, charts, config))))


def label_it_waits_for(seen: Project, config: Config) -> str:
    """The label key by which a project was registered, while it has no namespace by the one that is configured now."""
    return earlier_label(seen.registration, config) if seen.ours and not seen.alive else ""


def _registration_namespace(seen: Project, config: Config) -> Apply:
    live, operator = seen.registration, config.helm_project_operator
    was_orphaned = ORPHANED in labels_of(live)
    orphaned = was_orphaned if seen.alive is None else not seen.alive
    labels = {
        **operator.namespace_labels,
        OPERATED: "true",
        PROJECT_ID: seen.id,
        config.project_label: seen.id,
        NAMESPACE_NAME: registration_name(seen.id),
        **({ORPHANED: "true"} if orphaned else {}),
    }
    annotations = {**operator.namespace_annotations, config.project_label: project_annotation(seen.id, config)}
    wanted = object_of(NAMESPACE, {"name": registration_name(seen.id), "labels": labels, "annotations": annotations})
    return Apply(NAMESPACE, wanted, live, create_only=True, event=_registration_event(seen, orphaned, wanted))


def _foreign_orphan_label(seen: Project) -> Iterable[Write]:
    """The removal of an orphan label that somebody else set; our apply only gives up one of ours."""
    live = seen.registration
    if live is None or not seen.alive or ORPHANED not in labels_of(live):
        return
    if not is_sole_owner(live, REGISTRATION_MANAGER, "metadata", "labels", ORPHANED):
        note = f"project {seen.id} has a namespace: the orphan label was taken off"
        yield RemoveLabel(NAMESPACE, live, ORPHANED, KubernetesEvent(live, "Restored", note, "UnmarkOrphaned"))


def _registration_event(seen: Project, orphaned: bool, wanted: Object) -> KubernetesEvent:
    live = seen.registration
    if live is None:
        return KubernetesEvent(wanted, "ProjectRegistered", f"project {seen.id} has its registration namespace", "Register")
    was_orphaned = ORPHANED in labels_of(live)
    if orphaned and not was_orphaned:
        note = f"project {seen.id} has no namespace any more or is not served: this namespace may be deleted"
        return KubernetesEvent(live, "ProjectOrphaned", note, "MarkOrphaned")
    if was_orphaned and not orphaned:
        return KubernetesEvent(live, "ProjectReturned", f"project {seen.id} has a namespace again", "UnmarkOrphaned")
    if not entries_of(live, REGISTRATION_MANAGER):
        return KubernetesEvent(live, "Adopted", f"this namespace is now the registration namespace of {seen.id}", "Adopt")
    return KubernetesEvent(live, "Restored", "labels and annotations of the registration namespace were put back", "Restore")


def _contents(seen: Project, charts: tuple[ChartFiles, ...], config: Config) -> Iterable[Write]:
    namespace = registration_name(seen.id)
    labels = {OPERATED: "true", PROJECT_ID: seen.id}
    for chart in charts:
        yield from _config_map(chart, namespace, labels, seen.config_maps.get(chart.config_map_name))
    yield from harden(namespace, seen.hardening, config)


def _config_map(chart: ChartFiles, namespace: str, labels: dict[str, str], live: Object | None) -> Iterable[Write]:
    metadata = {"name": chart.config_map_name, "namespace": namespace, "labels": labels}
    wanted = object_of(CONFIG_MAP, metadata, data={"values.yaml": chart.values, "questions.yaml": chart.questions})
    if live is not None and live.get("immutable"):
        if is_terminating(live):
            return  # its deletion is on its way, and asking again does not speed it up
        # An immutable ConfigMap can only be replaced; the next run makes it anew (hpo-4).
        note = f"ConfigMap {chart.config_map_name} was immutable and is made anew"
        yield Delete(CONFIG_MAP, live, KubernetesEvent(live, "Restored", note, "Recreate"))
        return
    yield Apply(CONFIG_MAP, wanted, live, event=restored(live))


def report_project(observed: Project, refusals: Sequence[Refusal], config: Config) -> Plan:
    """Conditions for what could not be done: on the registration namespace, or else on the members."""
    name = registration_name(observed.id)
    writes: list[Write] = []
    inside = first_of([refusal for refusal in refusals if refusal.key.namespace == name])
    itself = first_of([refusal for refusal in refusals if refusal.key.kind == NAMESPACE.kind])
    if observed.ours and observed.registration is not None and not is_terminating(observed.registration):
        earlier = label_it_waits_for(observed, config)
        waits = (LABEL_CHANGED, label_changed(observed.id, earlier, config)) if earlier else None
        writes += _condition(observed.registration, itself or inside or waits)
    elif inside is not None:
        writes += _condition(object_of(NAMESPACE, {"name": name}), inside)
    problem: tuple[str, str] | Refusal | None = None
    if observed.registration is not None and not observed.ours:
        note = (
            f"namespace {name} exists and was not made by Tenantry, so project {observed.id} is not served: delete it, "
            f"choose another project id, or let Tenantry take it over with the annotation "
            f"tenantry.dev/adopt=true on it"
        )
        problem = ("NamespaceConflict", note)
    elif itself is not None and observed.registration is None:
        problem = itself
    for member in observed.members:
        if not _is_about_its_label(member):  # two runs that took turns in one condition would never end
            writes += _condition(member, problem)
    return plan_of(*writes)


def _condition(namespace: Object, problem: tuple[str, str] | Refusal | None) -> list[Apply]:
    """The condition with a Warning while there is a problem, else the removal of ours."""
    if isinstance(problem, Refusal):
        reason = REASONS[problem.cause]
        problem = reason, text_of(problem, FIXES, message_of(namespace, REGISTERED_CONDITION, reason))
    over = ("Healed", "the problem that was reported here is gone")
    return standing_condition(namespace, NAMESPACE, REGISTERED_CONDITION, problem, manager=REGISTRATION_MANAGER, over=over)


# -- one namespace -----------------------------------------------------------------------------------------


def plan_member(namespace: Object | None, config: Config, registration: Object | None = None) -> Plan:
    """The memory of its project on an ordinary namespace: set while it is in one, else taken off.

    ``registration`` is that of the project that it remembers: by the label key of before it may be in it still.
    """
    if namespace is None or is_terminating(namespace):
        return NOTHING
    name, place = namespace["metadata"]["name"], place_of(namespace, config)
    if place.is_a in ("registration", "release") or name in config.system_namespaces:
        return NOTHING
    if place.is_a == "ordinary" and place.project and not project_id_problem(place.project):
        wanted = object_of(NAMESPACE, {"name": name, "labels": {PROJECT_ID: place.project}})
        return plan_of(Apply(NAMESPACE, wanted, namespace))
    labels = labels_of(namespace)
    if PROJECT_ID not in labels or labels.get(earlier_label(registration, config)) == labels[PROJECT_ID]:
        return NOTHING
    return plan_of(RemoveLabel(NAMESPACE, namespace, PROJECT_ID))


def remembered_project(namespace: Object | None, config: Config) -> str:
    """The project that an ordinary namespace remembers while it has no label of one; else empty."""
    if namespace is None or is_terminating(namespace):
        return ""
    is_out = place_of(namespace, config) == Place("ordinary")
    return labels_of(namespace).get(PROJECT_ID, "") if is_out else ""


def report_member(namespace: Object | None, refusals: Sequence[Refusal], config: Config) -> Plan:
    """The condition for a project id that cannot be served (hpo-17) or a refused label, removed when it is put right."""
    if namespace is None or is_terminating(namespace):
        return NOTHING
    place = place_of(namespace, config)
    problem: tuple[str, str] | Refusal | None = None
    if refusals:
        problem = refusals[0]
    elif place.is_a == "registration":
        return NOTHING
    elif place.is_a == "ordinary" and config.project_label in labels_of(namespace):
        text = project_id_problem(place.project)
        if text:
            problem = (INVALID_PROJECT_ID, f"label {config.project_label}: {text}")
        elif not _is_about_its_label(namespace) and not message_of(namespace, REGISTERED_CONDITION, INVALID_PROJECT_ID):
            return NOTHING  # what else is reported here is for the project's own run to take back
    return plan_of(*_condition(namespace, problem))


def _is_about_its_label(member: Object) -> bool:
    """Whether a member's condition is about its own refused label, which its own run reports and takes back."""
    return message_of(member, REGISTERED_CONDITION).startswith(f"Namespace {member['metadata']['name']} was refused:")


# -- single-namespace mode ---------------------------------------------------------------------------------


def plan_system(seen: SystemNamespace, charts: tuple[ChartFiles, ...]) -> Plan:
    """In single-namespace mode: the chart ConfigMaps in the system namespace, and no label anywhere."""
    if seen.namespace is None or is_terminating(seen.namespace):
        return NOTHING
    name = seen.namespace["metadata"]["name"]
    writes: list[Write] = []
    for chart in charts:
        writes += _config_map(chart, name, {OPERATED: "true"}, seen.config_maps.get(chart.config_map_name))
    return plan_of(*writes)


def report_system(observed: SystemNamespace, refusals: Sequence[Refusal]) -> Plan:
    """The condition on the system namespace for a refusal."""
    if observed.namespace is None or is_terminating(observed.namespace):
        return NOTHING
    return plan_of(*_condition(observed.namespace, first_of(refusals)))
