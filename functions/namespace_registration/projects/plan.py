"""What namespace-registration wants: pure functions from what was observed to writes.

Sources of the rules: hpo-1 to hpo-6 (registration namespace), hpo-7 to hpo-18 (who is in a project, and
what cannot be served), hpo-21 (refusals are told), hpo-22 to hpo-26 (hardening), hpo-57 (single-namespace
mode).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from namespace_registration.descriptor import PROJECTS
from tenantry.model.conditions import condition, find_condition
from tenantry.model.config import Config
from tenantry.model.difference import entries_of, is_sole_owner
from tenantry.model.hardening import harden, restored
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Object, is_terminating, labels_of
from tenantry.model.names import NAMESPACE_NAME, OPERATED, ORPHANED, PROJECT_ID, REGISTERED_CONDITION
from tenantry.model.plan import NOTHING, Apply, Delete, Notice, Plan, Refusal, RemoveLabel, Write
from tenantry.model.projects import (
    REGISTRATION_MANAGER,
    ChartFiles,
    place_of,
    project_annotation,
    project_id_problem,
    registration_name,
    target_label,
)
from tenantry.model.refusals import REASONS, first_of, fixes, message_of, text_of


@dataclass(frozen=True, slots=True)
class Project:
    """One project as it is.

    ``alive`` is None when the run did not ask.  ``members`` are those that were looked at: all of them when
    a list was needed, else the ones that woke the run.
    """

    id: str
    registration: Object | None
    ours: bool
    alive: bool | None
    members: tuple[Object, ...] = ()
    config_maps: dict[str, Object | None] = field(default_factory=dict)
    service_account: Object | None = None
    network_policy: Object | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """One ordinary namespace, or None when it is gone."""

    name: str
    namespace: Object | None


@dataclass(frozen=True, slots=True)
class SystemNamespace:
    """The registration namespace of single-namespace mode."""

    name: str
    namespace: Object | None
    config_maps: dict[str, Object | None] = field(default_factory=dict)


INVALID_PROJECT_ID = "InvalidProjectID"
FIXES = fixes(
    PROJECTS,
    admission="change the admission policy, or add what it asks for under helmProjectOperator.namespaceLabels or "
    "namespaceAnnotations",
)


# -- a project ---------------------------------------------------------------------------------------------


def plan_project(seen: Project, charts: tuple[ChartFiles, ...], config: Config) -> Plan:
    """The registration namespace with its marks, then what belongs into it."""
    registration = seen.registration
    if registration is None:
        if not seen.alive:
            return NOTHING  # an orphan that somebody deleted stays deleted (hpo-16)
    elif not seen.ours or is_terminating(registration):
        return NOTHING
    namespace = _registration_namespace(seen, config)
    return Plan(((namespace,), tuple(_foreign_orphan_label(seen)), tuple(_contents(seen, charts, config))))


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
    wanted: Object = {
        "apiVersion": NAMESPACE.api_version,
        "kind": NAMESPACE.kind,
        "metadata": {
            "name": registration_name(seen.id),
            "labels": labels,
            "annotations": {
                **operator.namespace_annotations,
                config.project_label: project_annotation(seen.id, config),
            },
        },
    }
    return Apply(NAMESPACE, wanted, live, create_only=True, notice=_registration_notice(seen, orphaned, wanted))


def _foreign_orphan_label(seen: Project) -> Iterable[Write]:
    """Our apply only gives up an orphan label of ours; one that somebody else set is taken off."""
    live = seen.registration
    if live is None or not seen.alive or ORPHANED not in labels_of(live):
        return
    if not is_sole_owner(live, REGISTRATION_MANAGER, "metadata", "labels", ORPHANED):
        note = f"project {seen.id} has a namespace: the orphan label was taken off"
        yield RemoveLabel(NAMESPACE, live, ORPHANED, Notice(live, "Restored", note, "UnmarkOrphaned"))


def _registration_notice(seen: Project, orphaned: bool, wanted: Object) -> Notice:
    live = seen.registration
    if live is None:
        return Notice(wanted, "ProjectRegistered", f"project {seen.id} has its registration namespace", "Register")
    was_orphaned = ORPHANED in labels_of(live)
    if orphaned and not was_orphaned:
        note = f"project {seen.id} has no namespace any more or is not served: this namespace may be deleted"
        return Notice(live, "ProjectOrphaned", note, "MarkOrphaned")
    if was_orphaned and not orphaned:
        return Notice(live, "ProjectReturned", f"project {seen.id} has a namespace again", "UnmarkOrphaned")
    if not entries_of(live, REGISTRATION_MANAGER):
        return Notice(live, "Adopted", f"this namespace is now the registration namespace of {seen.id}", "Adopt")
    return Notice(live, "Restored", "labels and annotations of the registration namespace were put back", "Restore")


def _contents(seen: Project, charts: tuple[ChartFiles, ...], config: Config) -> Iterable[Write]:
    namespace = registration_name(seen.id)
    labels = {OPERATED: "true", PROJECT_ID: seen.id}
    for chart in charts:
        yield from _config_map(chart, namespace, labels, seen.config_maps.get(chart.config_map_name))
    if config.helm_project_operator.hardened_namespaces.enabled:
        yield from harden(namespace, seen.service_account, seen.network_policy, config)


def _config_map(chart: ChartFiles, namespace: str, labels: dict[str, str], live: Object | None) -> Iterable[Write]:
    wanted: Object = {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {"name": chart.config_map_name, "namespace": namespace, "labels": labels},
        "data": {"values.yaml": chart.values, "questions.yaml": chart.questions},
    }
    if live is not None and live.get("immutable"):
        if is_terminating(live):
            return  # its deletion is on its way, and asking again does not speed it up
        # An immutable ConfigMap can only be replaced; the next look makes it anew (hpo-4).
        note = f"ConfigMap {chart.config_map_name} was immutable and is made anew"
        yield Delete(CONFIG_MAP, live, Notice(live, "Restored", note, "Recreate"))
        return
    yield Apply(CONFIG_MAP, wanted, live, notice=restored(live))


def report_project(seen: Project, refusals: Sequence[Refusal], config: Config) -> Plan:
    """Conditions for what could not be done: on the registration namespace, or else on the members."""
    del config
    name = registration_name(seen.id)
    writes: list[Write] = []
    inside = first_of([refusal for refusal in refusals if refusal.key.namespace == name])
    itself = first_of([refusal for refusal in refusals if refusal.key.kind == NAMESPACE.kind])
    if seen.ours and seen.registration is not None and not is_terminating(seen.registration):
        writes += _say(seen.registration, itself or inside)
    elif inside is not None:
        writes += _say({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, inside)
    problem: tuple[str, str] | Refusal | None = None
    if seen.registration is not None and not seen.ours:
        note = (
            f"namespace {name} exists and was not made by Tenantry, so project {seen.id} is not served: delete it, "
            f"choose another project id, or let Tenantry take it over with the annotation "
            f"tenantry.dev/adopt=true on it"
        )
        problem = ("NamespaceConflict", note)
    elif itself is not None and seen.registration is None:
        problem = itself
    for member in seen.members:
        if not _is_about_its_label(member):  # two runs that took turns in one condition would never end
            writes += _say(member, problem)
    return Plan((tuple(writes),)) if writes else NOTHING


def _say(namespace: Object, problem: tuple[str, str] | Refusal | None) -> list[Write]:
    """Set the condition and a Warning for a problem, or take our condition away when there is none."""
    identity = {
        "apiVersion": NAMESPACE.api_version,
        "kind": NAMESPACE.kind,
        "metadata": {"name": namespace["metadata"]["name"]},
    }
    known = "uid" in namespace["metadata"]
    if problem is None:
        if not entries_of(namespace, REGISTRATION_MANAGER, "status"):
            return []
        notice = Notice(namespace, "Healed", "the problem that was reported here is gone", "Report")
        if find_condition(namespace, REGISTERED_CONDITION) is None:
            return []
        return [Apply(NAMESPACE, identity, namespace, subresource="status", notice=notice)]
    if isinstance(problem, Refusal):
        reason = REASONS[problem.cause]
        message = text_of(problem, FIXES, message_of(namespace, REGISTERED_CONDITION, reason))
    else:
        reason, message = problem
    status = {"conditions": [condition(REGISTERED_CONDITION, "False", reason, message)]}
    notice = Notice(namespace, reason, message, "Report", "Warning")
    live = namespace if known else None
    return [Apply(NAMESPACE, {**identity, "status": status}, live, subresource="status", notice=notice)]


# -- one namespace -----------------------------------------------------------------------------------------


def plan_member(seen: Member, config: Config) -> Plan:
    """The memory of its project on an ordinary namespace: set while it is in one, else taken off."""
    namespace = seen.namespace
    if namespace is None or is_terminating(namespace):
        return NOTHING
    place = place_of(namespace, config)
    if place.is_a in ("registration", "release") or seen.name in config.system_namespaces:
        return NOTHING
    if place.is_a == "ordinary" and place.project and not project_id_problem(place.project):
        wanted: Object = {
            "apiVersion": NAMESPACE.api_version,
            "kind": NAMESPACE.kind,
            "metadata": {"name": seen.name, "labels": {PROJECT_ID: place.project}},
        }
        return Plan(((Apply(NAMESPACE, wanted, namespace),),))
    if PROJECT_ID in labels_of(namespace):
        return Plan(((RemoveLabel(NAMESPACE, namespace, PROJECT_ID),),))
    return NOTHING


def report_member(seen: Member, refusals: Sequence[Refusal], config: Config) -> Plan:
    """A Warning for a project id that cannot be served (hpo-17) or a refused label, gone when it is put right."""
    namespace = seen.namespace
    if namespace is None or is_terminating(namespace):
        return NOTHING
    if refusals:
        return Plan((tuple(_say(namespace, refusals[0])),))
    place = place_of(namespace, config)
    labelled, project = target_label(namespace, config)
    if place.is_a == "ordinary" and labelled:
        problem = project_id_problem(project)
        if not problem:
            return _label_is_through(namespace)
        writes = _say(namespace, (INVALID_PROJECT_ID, f"label {config.project_label}: {problem}"))
    elif place.is_a == "registration":
        return NOTHING
    else:
        writes = _say(namespace, None)
    return Plan((tuple(writes),)) if writes else NOTHING


def _is_about_its_label(member: Object) -> bool:
    """Whether a member's condition tells of its own refused label, which is for its own run to say and to heal."""
    told = find_condition(member, REGISTERED_CONDITION) or {}
    return str(told.get("message", "")).startswith(f"Namespace {member['metadata']['name']} was refused:")


def _label_is_through(namespace: Object) -> Plan:
    """Take back what was told of a bad project id or a refused label; the rest is for the project's own run to say."""
    told = find_condition(namespace, REGISTERED_CONDITION) or {}
    over = told.get("reason") == INVALID_PROJECT_ID or _is_about_its_label(namespace)
    return Plan((tuple(_say(namespace, None)),)) if over else NOTHING


# -- single-namespace mode ---------------------------------------------------------------------------------


def plan_system(seen: SystemNamespace, charts: tuple[ChartFiles, ...]) -> Plan:
    """In single-namespace mode: the chart ConfigMaps in the system namespace, and no label anywhere."""
    if seen.namespace is None or is_terminating(seen.namespace):
        return NOTHING
    writes: list[Write] = []
    for chart in charts:
        live = seen.config_maps.get(chart.config_map_name)
        writes += _config_map(chart, seen.name, {OPERATED: "true"}, live)
    return Plan((tuple(writes),))


def report_system(seen: SystemNamespace, refusals: Sequence[Refusal]) -> Plan:
    """A refusal is told on the system namespace."""
    if seen.namespace is None or is_terminating(seen.namespace):
        return NOTHING
    writes = _say(seen.namespace, first_of(refusals))
    return Plan((tuple(writes),)) if writes else NOTHING
