"""What scope-binding makes of OLM's objects: one pair of template and instance for the permissions in the operator's
namespaces, one for those in the whole cluster (C-1 to C-7).

OperatorGroups and ClusterServiceVersions are read and never written.  Generated objects carry OLM's owner
labels and a mark of ours; what has their name without the mark is somebody's own and left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from scope_binding.descriptor import OLM
from tenantry.model.difference import difference
from tenantry.model.identifiers import digest
from tenantry.model.kinds import CLUSTER_SERVICE_VERSION, SCOPE_INSTANCE, SCOPE_TEMPLATE, Key, Object, is_terminating, labels_of
from tenantry.model.leftovers import Leftovers, report_leftovers
from tenantry.model.names import SCOPE_GENERATED, field_manager
from tenantry.model.plan import Apply, Delete, Plan, Refusal, Write
from tenantry.model.standing import warning, warning_name

MANAGER = field_manager("scope-binding")
OPT_IN = "scope-binding/olm-compat"
"""Label ``true`` on an OperatorGroup that takes part (C-1)."""
GENERATED = SCOPE_GENERATED
OWNER, OWNER_KIND, OWNER_NAMESPACE = "olm.owner", "olm.owner.kind", "olm.owner.namespace"
COPIED_FROM = "olm.copiedFrom"
LABEL_LIMIT, NAME_LIMIT, PREFIX_LIMIT = 63, 253, 54
NAMESPACES_RULE: Object = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]}
"""What OLM adds for an operator of the whole cluster (C-3)."""

Part = Literal["ns", "cluster"]
PARTS: tuple[Part, ...] = ("ns", "cluster")


@dataclass(frozen=True, slots=True)
class CsvSeen:
    """One ClusterServiceVersion as it is, the OperatorGroups beside it, and what has the names of its pairs.

    ``events`` are those of the names that a complaint would have; ``now`` is the time for a new one.
    """

    namespace: str
    name: str
    csv: Object | None
    groups: tuple[Object, ...] = ()
    templates: Mapping[Part, Object | None] = field(default_factory=dict)
    instances: Mapping[Part, Object | None] = field(default_factory=dict)
    events: Mapping[str, Object | None] = field(default_factory=dict)
    now: str = ""
    leftovers: Leftovers = field(default_factory=Leftovers)


@dataclass(frozen=True, slots=True)
class Complaint:
    """Why nothing is generated: OLM's word, and a sentence.

    ``about`` is what makes it the same complaint where the sentence may differ each time: what was refused.
    """

    reason: str
    note: str
    about: str = ""


def pair_name(part: Part, namespace: str, csv: str) -> str:
    """The name of a pair: ``ns.<namespace>.<csv>`` or ``cluster.<namespace>.<csv>`` (C-3, C-4)."""
    name = f"{part}.{namespace}.{csv}"
    return name if len(name) <= NAME_LIMIT else f"{name[: NAME_LIMIT - 9].rstrip('.-')}-{digest(name)}"


def as_label(text: str) -> str:
    """A name as the value of a label; one that does not fit is cut and made unique again."""
    return text if len(text) <= LABEL_LIMIT else f"{text[:PREFIX_LIMIT].rstrip('.-_')}-{digest(text)}"


def owner_labels(namespace: str, csv: str) -> dict[str, str]:
    """The labels of what is generated for a ClusterServiceVersion (C-5)."""
    return {
        OWNER: as_label(csv),
        OWNER_KIND: CLUSTER_SERVICE_VERSION.kind,
        OWNER_NAMESPACE: namespace,
        GENERATED: "true",
    }


# -- what is wanted ----------------------------------------------------------------------------------------


def is_copy(csv: Object) -> bool:
    """Whether a ClusterServiceVersion is a copy that OLM keeps in a target namespace (C-2)."""
    return COPIED_FROM in labels_of(csv) or (csv.get("status") or {}).get("reason") == "Copied"


def complaint_of(seen: CsvSeen) -> Complaint | None:
    """Why a ClusterServiceVersion of a namespace that takes part cannot be served, in OLM's words (C-2)."""
    assert seen.csv is not None
    if len(seen.groups) > 1:
        named = ", ".join(sorted(group["metadata"]["name"] for group in seen.groups))
        return Complaint("TooManyOperatorGroups", f"namespace {seen.namespace} has the OperatorGroups {named}: leave one")
    spec = seen.csv.get("spec") or {}
    strategy = (spec.get("install") or {}).get("strategy")
    if strategy != "deployment":
        return Complaint("InvalidStrategy", f"install.strategy is {strategy!r}; only deployment is known")
    targets = _targets(seen.groups[0])
    if "" in targets.listed:
        return Complaint("UnsupportedOperatorGroup", "targetNamespaces has an empty entry; remove it")
    supported = {mode.get("type") for mode in spec.get("installModes") or [] if mode.get("supported")}
    if lacking := [mode for mode in _modes(targets, seen) if mode not in supported]:
        return Complaint(
            "UnsupportedOperatorGroup", f"the OperatorGroup needs the install mode {lacking[0]}, which is unsupported"
        )
    return None


@dataclass(frozen=True, slots=True)
class _Targets:
    """The namespaces of an OperatorGroup: listed, selected, or with neither all."""

    listed: tuple[str, ...]
    selector: Object | None
    resolved: tuple[str, ...]


def _targets(group: Object) -> _Targets:
    spec = group.get("spec") or {}
    listed = tuple(spec.get("targetNamespaces") or ())
    selector = {name: value for name, value in (spec.get("selector") or {}).items() if value}
    resolved = tuple((group.get("status") or {}).get("namespaces") or ())
    return _Targets(listed, selector if selector and not listed else None, resolved)


def _modes(targets: _Targets, seen: CsvSeen) -> list[str]:
    """The install modes that the targets need (4.1).  A selector that matches nothing may come to match several."""
    places = set(targets.resolved if targets.selector is not None else targets.listed)
    if not places and targets.selector is None:
        return ["AllNamespaces"]
    if len(places) == 1:
        return ["OwnNamespace" if seen.namespace in places else "SingleNamespace"]
    return ["MultiNamespace", *(["OwnNamespace"] if seen.namespace in places else [])]


def takes_part(seen: CsvSeen, *, enabled: bool) -> bool:
    """Whether this is a ClusterServiceVersion that scopes are made for: switched on, labelled, and no copy."""
    if not enabled or seen.csv is None or is_terminating(seen.csv) or is_copy(seen.csv):
        return False
    return any(labels_of(group).get(OPT_IN) == "true" for group in seen.groups)


def wanted_pairs(seen: CsvSeen) -> dict[Part, tuple[Object, Object]]:
    """The templates and instances of a ClusterServiceVersion that can be served."""
    assert seen.csv is not None
    install = ((seen.csv.get("spec") or {}).get("install") or {}).get("spec") or {}
    targets = _targets(seen.groups[0])
    everywhere = not targets.listed and targets.selector is None
    more = (NAMESPACES_RULE,) if everywhere else ()
    reach: Object = {}
    if targets.listed:
        reach = {"namespaces": sorted(set(targets.listed))}
    elif targets.selector is not None:
        reach = {"namespaceSelector": targets.selector}
    found: dict[Part, tuple[Object, Object]] = {}
    for part, permissions, where, added in (
        ("ns", install.get("permissions") or [], reach, more),
        ("cluster", install.get("clusterPermissions") or [], {}, ()),
    ):
        if permissions:
            found[part] = _pair(part, seen, list(_roles(part, seen, permissions, added)), where)  # type: ignore[index, arg-type]
    return found


def _roles(part: Part, seen: CsvSeen, permissions: Sequence[Object], more: Sequence[Object]) -> Iterator[Object]:
    """The roles of a template; names are of one template only, since they become names of ClusterRoles."""
    made: set[str] = set()
    for permission in permissions:
        account, rules = str(permission.get("serviceAccountName") or ""), [*(permission.get("rules") or []), *more]
        unique = digest(part, seen.namespace, seen.name, account, rules)
        name = f"{f'{seen.name}-{account}'[:PREFIX_LIMIT]}-{unique}"
        if name not in made:
            made.add(name)
            subject = {"kind": "ServiceAccount", "name": account, "namespace": seen.namespace}
            yield {"generateName": name, "rules": rules, "subjects": [subject]}


def _pair(part: Part, seen: CsvSeen, roles: list[Object], where: Object) -> tuple[Object, Object]:
    metadata = {"name": pair_name(part, seen.namespace, seen.name), "labels": owner_labels(seen.namespace, seen.name)}

    def body(kind: str, **spec: Any) -> Object:
        return {"apiVersion": SCOPE_TEMPLATE.api_version, "kind": kind, "metadata": metadata, "spec": spec}

    return (
        body(SCOPE_TEMPLATE.kind, clusterRoles=roles),
        body(SCOPE_INSTANCE.kind, scopeTemplateName=metadata["name"], **where),
    )


# -- the plan ----------------------------------------------------------------------------------------------


def is_generated(obj: Object | None) -> bool:
    """Whether we made an object: it has our mark.  For which ClusterServiceVersion, its name says; owner labels may drift."""
    return obj is not None and labels_of(obj).get(GENERATED) == "true"


def plan_csv(seen: CsvSeen, *, enabled: bool) -> Plan:
    """The pairs of a ClusterServiceVersion; none when it takes no part or cannot be served (C-2)."""
    part_taken = takes_part(seen, enabled=enabled)
    wanted = wanted_pairs(seen) if part_taken and complaint_of(seen) is None else {}
    made: list[Write] = []
    gone: list[Write] = []
    for part in PARTS:
        template, instance = seen.templates.get(part), seen.instances.get(part)
        if part in wanted and not _taken(seen, part):
            made.append(Apply(SCOPE_TEMPLATE, wanted[part][0], template, create_only=True))
            made.append(Apply(SCOPE_INSTANCE, wanted[part][1], instance, create_only=True))
            continue
        if instance is not None and is_generated(instance) and part not in wanted and not is_terminating(instance):
            gone.append(Delete(SCOPE_INSTANCE, instance))
        if template is not None and is_generated(template) and part not in wanted and not is_terminating(template):
            gone.append(Delete(SCOPE_TEMPLATE, template))
    return Plan((tuple(made), tuple(gone)))


def _taken(seen: CsvSeen, part: Part) -> bool:
    """Whether somebody's own object has a name that we need: then neither of the pair is touched (C-5)."""
    live = (seen.templates.get(part), seen.instances.get(part))
    return any(each is not None and not is_generated(each) for each in live)


def complaints(seen: CsvSeen, *, enabled: bool) -> list[Complaint]:
    """What people have to be told about a ClusterServiceVersion that takes part."""
    if not takes_part(seen, enabled=enabled):
        return []
    if (complaint := complaint_of(seen)) is not None:
        return [complaint]
    taken = sorted(pair_name(part, seen.namespace, seen.name) for part in wanted_pairs(seen) if _taken(seen, part))
    note = "a ScopeTemplate or ScopeInstance of this name is not ours: rename or delete it"
    return [Complaint("ScopeNameTaken", f"{name}: {note}") for name in taken]


def event_name(csv: Object, complaint: Complaint) -> str:
    """The name of the Event of a complaint: the same complaint about the same object is one Event."""
    return warning_name(csv, complaint.reason, complaint.about or complaint.note)


def refused(key: Key, message: str = "") -> Complaint:
    """The complaint that the API server refused to make or change an object."""
    return Complaint("ScopeRefused", f"{key}: {message}"[:1024], str(key))


def possible_complaints(seen: CsvSeen, *, enabled: bool) -> list[Complaint]:
    """What people have to be told, or will have to if what is to be written is refused."""
    due = plan_csv(seen, enabled=enabled).changes(MANAGER)
    return [*complaints(seen, enabled=enabled), *(refused(change.key) for change in due)]


def report_csv(seen: CsvSeen, refusals: Sequence[Refusal], *, enabled: bool) -> Plan:
    """Warnings on the ClusterServiceVersion, which has no condition for us to write; each is there once.

    When it is gone they are on what could not be deleted.
    """
    if seen.csv is None:
        return report_leftovers(seen.leftovers, refusals, OLM, "olm")
    told = complaints(seen, enabled=enabled)
    told += [refused(refusal.key, refusal.message) for refusal in refusals]
    events = [_event(seen, seen.csv, complaint) for complaint in told]
    return Plan((tuple(event for event in events if difference(event.wanted, event.live, manager=MANAGER) is not None),))


def _event(seen: CsvSeen, csv: Object, complaint: Complaint) -> Apply:
    name = event_name(csv, complaint)
    by = ("scope-binding", "olm", "Scope")
    return warning(csv, name, complaint.reason, complaint.note, seen.events.get(name), seen.now, by=by)
