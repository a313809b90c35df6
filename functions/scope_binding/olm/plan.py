"""Plans for OLM: of each ClusterServiceVersion one pair of template and instance for the permissions in the operator's
namespaces, and one for those in the whole cluster (C-1 to C-7).

OperatorGroups and ClusterServiceVersions are read and never written.  Generated objects carry OLM's owner labels and a mark of
ours; what has their name without the mark is somebody's own and left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from scope_binding.objects import account_subject
from scope_binding.olm.descriptor import OLM
from tenantry.model.identifiers import digest
from tenantry.model.kinds import (
    CLUSTER_SERVICE_VERSION,
    SCOPE_INSTANCE,
    SCOPE_TEMPLATE,
    Key,
    Kind,
    Object,
    is_terminating,
    labels_of,
    object_of,
)
from tenantry.model.leftovers import Leftovers, report_leftovers
from tenantry.model.names import SCOPE_GENERATED, field_manager
from tenantry.model.plan import Apply, Delete, Plan, Refusal, Write
from tenantry.model.standing import warning, warning_name

MANAGER = field_manager("scope-binding")
OPT_IN = "scope-binding/olm-compat"
"""Label ``true`` on an OperatorGroup that takes part (C-1)."""
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

    ``csv`` is None also while the unit is switched off.  ``events`` are those of the names that a complaint would have; ``now``
    is the time for a new one.
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
    """Why nothing is generated: a reason, of OLM where it has one, and a sentence.

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
    reach = _reach(seen.groups[0])
    if "" in reach.get("namespaces", ()):
        return Complaint("UnsupportedOperatorGroup", "targetNamespaces has an empty entry; remove it")
    supported = {mode.get("type") for mode in spec.get("installModes") or [] if mode.get("supported")}
    if lacking := [mode for mode in _modes(reach, seen) if mode not in supported]:
        return Complaint(
            "UnsupportedOperatorGroup", f"the OperatorGroup needs the install mode {lacking[0]}, which is unsupported"
        )
    return None


def _reach(group: Object) -> Object:
    """The target namespaces of an OperatorGroup, as the spec of an instance has them: listed, selected, or with neither all."""
    spec = group.get("spec") or {}
    if listed := spec.get("targetNamespaces"):
        return {"namespaces": sorted(set(listed))}
    selector = {name: value for name, value in (spec.get("selector") or {}).items() if value}
    return {"namespaceSelector": selector} if selector else {}


def _modes(reach: Object, seen: CsvSeen) -> list[str]:
    """The install modes that the target namespaces need (4.1).  A selector that matches nothing may come to match several."""
    if not reach:
        return ["AllNamespaces"]
    resolved = (seen.groups[0].get("status") or {}).get("namespaces") or ()
    targets = set(reach.get("namespaces", resolved))
    if len(targets) == 1:
        return ["OwnNamespace" if seen.namespace in targets else "SingleNamespace"]
    return ["MultiNamespace", *(["OwnNamespace"] if seen.namespace in targets else [])]


def takes_part(seen: CsvSeen) -> bool:
    """Whether this is a ClusterServiceVersion that scopes are made for: labelled, and no copy."""
    if seen.csv is None or is_terminating(seen.csv) or is_copy(seen.csv):
        return False
    return any(labels_of(group).get(OPT_IN) == "true" for group in seen.groups)


def wanted_pairs(seen: CsvSeen) -> dict[Part, tuple[Object, Object]]:
    """The templates and instances of a ClusterServiceVersion that can be served."""
    assert seen.csv is not None
    install = ((seen.csv.get("spec") or {}).get("install") or {}).get("spec") or {}
    reach = _reach(seen.groups[0])
    found: dict[Part, tuple[Object, Object]] = {}
    if permissions := install.get("permissions"):
        more = () if reach else (NAMESPACES_RULE,)
        found["ns"] = _pair("ns", seen, list(_roles("ns", seen, permissions, more)), reach)
    if permissions := install.get("clusterPermissions"):
        found["cluster"] = _pair("cluster", seen, list(_roles("cluster", seen, permissions)), {})
    return found


def _roles(part: Part, seen: CsvSeen, permissions: Sequence[Object], more: Sequence[Object] = ()) -> Iterator[Object]:
    """The roles of a template; names are of one template only, since they become names of ClusterRoles."""
    made: set[str] = set()
    for permission in permissions:
        account, rules = str(permission.get("serviceAccountName") or ""), [*(permission.get("rules") or []), *more]
        unique = digest(part, seen.namespace, seen.name, account, rules)
        name = f"{f'{seen.name}-{account}'[:PREFIX_LIMIT]}-{unique}"
        if name not in made:
            made.add(name)
            yield {"generateName": name, "rules": rules, "subjects": [account_subject(seen.namespace, account)]}


def _pair(part: Part, seen: CsvSeen, roles: list[Object], where: Object) -> tuple[Object, Object]:
    labels = {
        OWNER: as_label(seen.name),
        OWNER_KIND: CLUSTER_SERVICE_VERSION.kind,
        OWNER_NAMESPACE: seen.namespace,
        SCOPE_GENERATED: "true",
    }  # C-5
    metadata = {"name": pair_name(part, seen.namespace, seen.name), "labels": labels}
    return (
        object_of(SCOPE_TEMPLATE, metadata, spec={"clusterRoles": roles}),
        object_of(SCOPE_INSTANCE, metadata, spec={"scopeTemplateName": metadata["name"], **where}),
    )


# -- the plan ----------------------------------------------------------------------------------------------


def is_generated(obj: Object | None) -> bool:
    """Whether we made an object: it has our mark.  Its name says for which ClusterServiceVersion; owner labels may drift."""
    return obj is not None and labels_of(obj).get(SCOPE_GENERATED) == "true"


def plan_csv(observed: CsvSeen) -> Plan:
    """The pairs of a ClusterServiceVersion; none when it takes no part or cannot be served (C-2).

    Of a pair that goes the instance goes first: without its template it would be run once more, for nothing.
    """
    wanted = wanted_pairs(observed) if takes_part(observed) and complaint_of(observed) is None else {}
    made: list[Write] = []
    deleted: dict[Kind, list[Write]] = {SCOPE_INSTANCE: [], SCOPE_TEMPLATE: []}
    for part in PARTS:
        template, instance = observed.templates.get(part), observed.instances.get(part)
        if part not in wanted:
            for kind, live in ((SCOPE_INSTANCE, instance), (SCOPE_TEMPLATE, template)):
                if live is not None and is_generated(live) and not is_terminating(live):
                    deleted[kind].append(Delete(kind, live))
        elif not _is_taken(observed, part):
            made.append(Apply(SCOPE_TEMPLATE, wanted[part][0], template, create_only=True))
            made.append(Apply(SCOPE_INSTANCE, wanted[part][1], instance, create_only=True))
    return Plan((tuple(made), *map(tuple, deleted.values())))


def _is_taken(seen: CsvSeen, part: Part) -> bool:
    """Whether somebody's own object has a name that we need: then neither of the pair is touched (C-5)."""
    live = (seen.templates.get(part), seen.instances.get(part))
    return any(each is not None and not is_generated(each) for each in live)


def complaints(seen: CsvSeen) -> list[Complaint]:
    """What is to be reported about a ClusterServiceVersion that takes part."""
    if not takes_part(seen):
        return []
    if (complaint := complaint_of(seen)) is not None:
        return [complaint]
    taken = sorted(pair_name(part, seen.namespace, seen.name) for part in wanted_pairs(seen) if _is_taken(seen, part))
    note = "a ScopeTemplate or ScopeInstance of this name is not ours: rename or delete it"
    return [Complaint("ScopeNameTaken", f"{name}: {note}") for name in taken]


def event_name(csv: Object, complaint: Complaint) -> str:
    """The name of the Event of a complaint: the same complaint about the same object is one Event."""
    return warning_name(csv, complaint.reason, complaint.about or complaint.note)


def refused(key: Key, message: str = "") -> Complaint:
    """The complaint that the API server refused to make or change an object."""
    return Complaint("ScopeRefused", f"{key}: {message}"[:1024], str(key))


def possible_complaints(seen: CsvSeen) -> list[Complaint]:
    """What is to be reported, or will be if what is to be written is refused."""
    return [*complaints(seen), *(refused(change.key) for change in plan_csv(seen).changes(MANAGER))]


def report_csv(observed: CsvSeen, refusals: Sequence[Refusal]) -> Plan:
    """Warnings on the ClusterServiceVersion, which has no condition for us to write; each is there once.

    When it is deleted they are on what could not be deleted with it.
    """
    csv = observed.csv
    if csv is None:
        return report_leftovers(observed.leftovers, refusals, OLM, "olm")
    events = []
    for complaint in (*complaints(observed), *(refused(refusal.key, refusal.message) for refusal in refusals)):
        name, by = event_name(csv, complaint), ("scope-binding", "olm", "Scope")
        live = observed.events.get(name)
        events.append(warning(csv, name, complaint.reason, complaint.note, live, observed.now, by=by))
    return Plan((tuple(event for event in events if event.change(MANAGER) is not None),))
