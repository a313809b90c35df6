"""Where the bindings and ClusterRoles of scopes come from, and which scope would give a right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from scope_binding.scopes.declared import Reach, changed_selector, reach_of, roles_of, template_name_of
from scope_binding.scopes.names import FAMILIES, INSTANCE_UID, TEMPLATE_UID, Family, is_of, reference_to
from scope_binding.scopes.withdrawal import change_digest
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE_BINDING,
    Kind,
    Object,
    is_terminating,
    key_of,
    labels_of,
)
from tenantry.model.names import WITHDRAWAL_ACCEPTED
from tenantry.model.origin import Because, Looking, Offer, Origin, all_of, edit, kubectl
from tenantry.model.rbac import BoundSubject, Question, allowing, subject_in

KINDS = frozenset({ROLE_BINDING, CLUSTER_ROLE_BINDING, CLUSTER_ROLE})
_EVERYWHERE = "without namespaces and selector it holds everywhere"


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The ScopeInstance that a binding is of, or the ScopeTemplate of a ClusterRole, and their lines."""
    of_role = obj["kind"] == CLUSTER_ROLE.kind
    for family in FAMILIES.values():
        kind, uid_label = (family.template, TEMPLATE_UID) if of_role else (family.instance, INSTANCE_UID)
        owner = await _owner(obj, kind, uid_label, family.label_for(kind.kind), look)
        if owner is None or not is_of(obj, owner, uid_label):
            continue
        proof = f"label {uid_label}: {owner['metadata']['uid']}, or the owner reference to it"
        name = f"{family.group}/{owner['metadata']['name']}"
        if of_role:
            return Origin(
                f"template/{name}", proof, tuple(_lines_of_role(obj["metadata"]["name"], None, owner)), _end(kind, owner)
            )
        because, ends = await _of_binding(obj, subject, family, owner, look)
        return Origin(f"instance/{name}", proof, because, ends)
    if TEMPLATE_UID in labels_of(obj) or INSTANCE_UID in labels_of(obj):
        return Origin("instance/?", "the labels of scopes", (), ("it goes with the next sweep: what declared it is not there",))
    return None


def _end(kind: Kind, owner: Object) -> tuple[str, ...]:
    return (kubectl("delete", kind, owner["metadata"]["name"]),)


async def _owner(obj: Object, kind: Kind, uid_label: str, label: str, look: Looking) -> Object | None:
    reference = reference_to(obj, kind.kind)
    if reference is not None:
        return await look.get(kind, reference["name"]) if reference["apiVersion"] == kind.api_version else None
    if label not in labels_of(obj):
        return None
    return next((each for each in await look.list(kind) if is_of(obj, each, uid_label)), None)


async def _of_binding(
    obj: Object, subject: BoundSubject | None, family: Family, instance: Object, look: Looking
) -> tuple[tuple[Because, ...], tuple[str, ...]]:
    """The lines of instance and template that a binding follows from, and what takes it away."""
    about, name, place = key_of(instance), instance["metadata"]["name"], obj["metadata"].get("namespace", "")
    reach = reach_of(instance)
    ways: list[str] = []
    ends: list[str] = []
    template = await look.get(family.template, template_name_of(instance))
    labels = labels_of(await look.get(NAMESPACE, place)) if place else {}
    earlier = changed_selector(instance)
    waits = not reach.covers(place, labels) and earlier is not None and earlier.matches(labels)
    because = [Because(about, *each) for each in _reaching(reach, place, labels, waits=waits)]
    because.append(Because(about, "spec.scopeTemplateName", template_name_of(instance)))
    if place in reach.listed:
        ways.append(edit(family.instance, name, f"take {place} out of spec.namespaces"))
    if waits:
        accepted = f"{WITHDRAWAL_ACCEPTED}={change_digest(instance)}"
        ends.append(kubectl("annotate", family.instance, name, more=accepted))
    elif place and (place not in reach.listed or _selects(reach, labels)):
        ways.append(kubectl("label", NAMESPACE, place, more="KEY-  # a label that spec.namespaceSelector asks for"))
    if len(reach.listed) > 1 or reach.selector is not None:  # else without its only namespace it would be for the whole cluster
        ends += all_of(ways)
    if template is not None:
        because += _lines_of_role(obj["roleRef"]["name"], subject, template)
        if subject is not None:
            ends.append(edit(family.template, template["metadata"]["name"], f"take {subject} out of the subjects"))
    return tuple(because), (*ends, *_end(family.instance, instance))


def _selects(reach: Reach, labels: Mapping[str, str]) -> bool:
    return reach.selector is not None and reach.selector.matches(labels)


def _reaching(reach: Reach, place: str, labels: Mapping[str, str], *, waits: bool) -> Iterator[tuple[str, str]]:
    """The lines of an instance by which it is for a namespace, or for the whole cluster."""
    if waits:
        yield "status.namespaceSelector", f"selected {place}; that spec has another one waits to be accepted"
        return
    if not place:
        yield "spec", "neither namespaces nor namespaceSelector: the whole cluster"
    if place in reach.listed:
        yield "spec.namespaces", place
    if place and (place not in reach.listed or _selects(reach, labels)):
        yield "spec.namespaceSelector", f"selects {place}"


def _lines_of_role(name: str, subject: BoundSubject | None, template: Object) -> Iterable[Because]:
    """The line of a role in its template, and that of a subject."""
    written = (template.get("spec") or {}).get("clusterRoles") or []
    for number, (role, entry) in enumerate(zip(roles_of(template), written, strict=True)):
        if role.name != name:
            continue
        line = f"spec.clusterRoles[{number}]"
        yield Because(key_of(template), line, f"generateName {role.generate_name}")
        named = f"{line}.subjects" if entry.get("subjects") else "spec.bindingTemplate.subjects"
        if subject is not None:
            yield Because(key_of(template), named, str(subject))


async def offers(question: Question, look: Looking) -> list[Offer]:
    """Instances whose template has a role that allows it: of this subject elsewhere, or here for others."""
    live = await look.get(NAMESPACE, question.namespace) if question.namespace else None
    found = []
    for family in FAMILIES.values():
        templates = {each["metadata"]["name"]: each for each in await look.list(family.template)}
        for instance in await look.list(family.instance):
            template = templates.get(template_name_of(instance))
            if template is None or is_terminating(instance):
                continue
            found += _offered(question, live, family, instance, template)
    return found


def _offered(question: Question, namespace: Object | None, family: Family, instance: Object, template: Object) -> list[Offer]:
    reach, name = reach_of(instance), instance["metadata"]["name"]
    here = reach.cluster or (namespace is not None and reach.covers(namespace["metadata"]["name"], labels_of(namespace)))
    found = []
    for number, role in enumerate(roles_of(template)):
        if allowing(question, role.rules) is None:
            continue
        named = subject_in({"metadata": {}, "subjects": role.subjects}, question) is not None
        if named and not here:
            place = f"namespace {question.namespace}" if question.namespace else "the whole cluster"
            what = f"add {question.namespace} to spec.namespaces" if question.namespace else _EVERYWHERE
            lacks = f"it gives this elsewhere, not in {place}"
            found.append(Offer(Because(key_of(instance), "spec"), lacks, edit(family.instance, name, what)))
        elif here and not named:
            line = Because(key_of(template), f"spec.clusterRoles[{number}]", role.generate_name)
            fix = edit(family.template, template["metadata"]["name"], f"add them to the subjects of {role.generate_name}")
            found.append(Offer(line, "it gives this here, to others", fix))
        elif here:
            text = "it is declared, and not done"
            found.append(Offer(Because(key_of(instance), "spec"), text, kubectl("get", family.instance, name, more="-o yaml")))
    return found
