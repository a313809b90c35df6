"""References to other namespaces: for each kind of consumers a policy, and under Quarantine a mutation before it (2.1, 2.2, 3.4).

The AccessIndex is read as it is written: ``Kind/namespace/name`` to selectors joined by ``|``, a selector being pairs
``key=value`` joined by ``,``; ``*`` is everybody.  What an expression may cost is bounded (section 3.3), so labels are a map of
``key=value``, which is looked into at one price however many a namespace has.
"""

from __future__ import annotations

from dataclasses import dataclass

from tenantry.model.flux.consumers import Consumer, Reference, Stop
from tenantry.model.flux.names import ACCESS_DENIED, LOCK_FINALIZER, LOCKED, SUSPENDED_BY_LOCK, TENANT_LABEL
from tenantry.model.flux.policies.parts import (
    LOCKS_OR_PERSON,
    NOT_GOING,
    UPDATE,
    WRITES,
    AdmissionPolicy,
    listed,
    optional,
    rule,
    text,
    validation,
)
from tenantry.model.flux.profile import Profile
from tenantry.model.pointer import pointer

ANNOTATIONS = ("metadata", "annotations")
TOLD = 10
"""How many denied references a message names."""
_FOREIGN = '!({named} in ["", request.namespace])'
_MATCHES = '{grants}[?key].orValue("").split("|").exists(selector, selector.split(",").all(pair, pair in variables.labels))'
_LABELS = (
    '(["*"] + namespaceObject.metadata.?labels.orValue({}).map(key, key + "=" + namespaceObject.metadata.labels[key]))'
    ".transformMapEntry(index, pair, {pair: true})"
)


def reference_policy(consumer: Consumer, versions: tuple[str, ...], profile: Profile, *, quarantines: bool) -> AdmissionPolicy:
    """Refuses new references that are denied; under Quarantine but those of objects that are locked already.

    What is allowed stands in the validation, not in a variable, whose fields the API server would not check.  So does who is not
    concerned: a condition beside it would cost all others as much as the validation.  Each variable costs as much as a look at a
    reference, and the message is evaluated for all, too: of most objects, which name one other namespace or none, it needs none.
    """
    judged = _judged(consumer, profile)
    allowed = " && ".join(f"({each.all_allowed})" for each in judged)
    if quarantines:
        allowed = f"({allowed}) || ({is_marked('object')} && {is_stopped(consumer.stop, 'object')})"
    allowed = f"has(object.metadata.deletionTimestamp) || {allowed}"
    numbers = list(range(TOLD))
    several = (
        f'{numbers}.filter(number, number < variables.refused.size()).map(number, variables.refused[number]).join("; ") + '
        f'(variables.refused.size() > {TOLD} ? "; and " + string(variables.refused.size() - {TOLD}) + " more" : "")'
    )
    named = " + ".join(each.sentences for each in judged)
    told = f'[{named}].map(named, named.size() < 2 ? named.join("") : {several})[0]'
    return AdmissionPolicy(
        f"references-{consumer.name}",
        [rule(consumer.group, versions, [consumer.resource], WRITES)],
        [validation(allowed, "a reference to another namespace is denied", told)],
        conditions=(),
        variables=_variables(consumer, profile),
        takes_index=_takes_index(consumer),
    )


def quarantine(consumer: Consumer, versions: tuple[str, ...], profile: Profile) -> AdmissionPolicy:
    """Locks objects with new denied references, and keeps the lock of those that have it."""
    stop = consumer.stop
    by_lock = pointer(*ANNOTATIONS, SUSPENDED_BY_LOCK)
    before = f'oldObject.metadata.annotations[?{text(SUSPENDED_BY_LOCK)}].orValue("")'
    finalizer, stopped = text(LOCK_FINALIZER), is_stopped(stop, "object")
    first, further = _add("/metadata/finalizers", f"[{finalizer}]"), _add("/metadata/finalizers/-", finalizer)
    added = f"has(object.metadata.finalizers) ? [{further}] : [{first}]"
    marked = f"{stopped} ? [] : [{_add(by_lock, text('true'))}]"
    patches = [
        f"(has(object.metadata.annotations) ? [] : [{_add(pointer(*ANNOTATIONS), '{}')}])",
        f"[{_add(pointer(*ANNOTATIONS, LOCKED), text(ACCESS_DENIED))}]",
        # Of a lock that is there already the mark stays as it was, whatever is written now.
        f'(variables.stays ? ({before} == "" ? [] : [{_add(by_lock, before)}]) : {marked})',
        f"({finalizer} in object.metadata.?finalizers.orValue([]) ? [] : {added})",
        f"[{_stopping(stop)}]",
    ]
    patch = " + ".join(patches)
    is_locked = f"oldObject != null && {is_marked('oldObject')}"
    conditions = [NOT_GOING, f"({names_others(consumer, 'object')}) || ({is_locked})"]
    stays = f"{is_locked} && !{LOCKS_OR_PERSON}"
    return AdmissionPolicy(
        f"quarantine-{consumer.name}",
        [rule(consumer.group, versions, [consumer.resource], WRITES)],
        mutations=[f"variables.refused.size() > 0 || variables.stays ? {patch} : []"],
        conditions=conditions,
        variables={**_variables(consumer, profile), "stays": stays},
        takes_index=_takes_index(consumer),
    )


def lock_guard(consumer: Consumer, versions: tuple[str, ...]) -> AdmissionPolicy:
    """Keeps a locked object locked: its marks, all its finalizers, its suspension (section 2.2)."""
    marks = listed([LOCKED, SUSPENDED_BY_LOCK])
    new, old = (f"{each}.metadata.?annotations.orValue({{}})" for each in ("object", "oldObject"))
    changed = (
        f'{marks}.filter(key, {new}[?key] != {old}[?key]).map(key, "metadata.annotations[" + key + "]") + '
        "oldObject.metadata.?finalizers.orValue([]).filter(each, !(each in object.metadata.?finalizers.orValue([])))"
        '.map(each, "metadata.finalizers[" + each + "]") + '
        f"({is_stopped(consumer.stop, 'oldObject')} && !{is_stopped(consumer.stop, 'object')} ? "
        f"[{text(consumer.stop.field or f'metadata.annotations[{consumer.stop.annotation}]')}] : [])"
    )
    return AdmissionPolicy(
        f"lock-guard-{consumer.name}",
        [rule(consumer.group, versions, [consumer.resource], [UPDATE])],
        [
            validation(
                f"({changed}).size() == 0 || {LOCKS_OR_PERSON}",
                "the object is locked, since it names what is not shared with its namespace",
                'variables.changed.join(", ") + ": the object is locked, since it names what is not shared with namespace " + '
                'request.namespace + "; correct the reference, or ask the owner of the source for access"',
            )
        ],
        conditions=[f"{text(LOCKED)} in oldObject.metadata.?annotations.orValue({{}})"],
        variables={"changed": changed},
    )


def names_others(consumer: Consumer, of: str) -> str:
    """Whether an object names another namespace."""
    return " || ".join(f"{_items(each, of)}.exists(each, {_foreign(each)})" for each in consumer.references)


def is_marked(of: str) -> str:
    """Whether an object has the marks of an access lock but for its suspension."""
    return (
        f'({of}.metadata.?annotations[?{text(LOCKED)}].orValue("") == {text(ACCESS_DENIED)} && '
        f"{text(LOCK_FINALIZER)} in {of}.metadata.?finalizers.orValue([]))"
    )


def is_stopped(stop: Stop, of: str) -> str:
    """Whether an object is suspended, by the field or the annotation of its kind."""
    if stop.field:
        return f"{optional(of, stop.field)}.orValue(false)"
    return f'({of}.metadata.?annotations[?{text(stop.annotation)}].orValue("") == {text(stop.value)})'


def _takes_index(consumer: Consumer) -> bool:
    return any(each.access != "local" for each in consumer.references)


@dataclass(frozen=True, slots=True)
class _Judged:
    """The references of one field: where their keys are, and what makes one of them allowed, as expressions."""

    number: int
    reference: Reference
    allowed: str

    @property
    def names(self) -> str:
        return _names(self.reference, "object")

    @property
    def before(self) -> str:
        return f"oldObject == null ? [] : {_names(self.reference, 'oldObject')}"

    @property
    def unchanged(self) -> str:
        """Whether an update leaves the field as it was."""
        new, old = (optional(of, self.reference.path.partition("[]")[0]) for of in ("object", "oldObject"))
        return f"(oldObject != null && {new} == {old})"

    @property
    def all_allowed(self) -> str:
        """Of an unchanged field without a look at each."""
        return f"{self.unchanged} || {self.names}.all(key, {self.allowed})"

    @property
    def sentences(self) -> str:
        """What would be told of each reference to another namespace."""
        sentence = f"{text(self.reference.field + ': ')} + {_key(self.reference)} + {self._why}"
        return f"{_items(self.reference, 'object')}.map(each, {_foreign(self.reference)}, {sentence})"

    @property
    def refused(self) -> str:
        """What is told of those that are not allowed."""
        sentence = f"{text(self.reference.field + ': ')} + key + {self._why}"
        return f"({self.unchanged} ? [] : variables.named{self.number}.map(key, !({self.allowed}), {sentence}))"

    @property
    def _why(self) -> str:
        if self.reference.access == "local":
            return '" is in another namespace, and must be in namespace " + request.namespace'
        return '" is not shared with namespace " + request.namespace'


def _judged(consumer: Consumer, profile: Profile) -> list[_Judged]:
    found = []
    for number, each in enumerate(consumer.references):
        allowed = []
        if each.access != "local":
            allowed.append(_MATCHES.format(grants=f"dyn(params).?spec.?{each.access}.orValue({{}})"))
            if profile.allows_intra_tenant:
                tenant = 'params.?spec.?tenants.orValue({})[?key.split("/")[1]].orValue("")'
                allowed.append(f'(variables.tenant != "" && {tenant} == variables.tenant)')
        allowed.append(f"key in variables.before{number}")
        found.append(_Judged(number, each, " || ".join(allowed)))
    return found


def _variables(consumer: Consumer, profile: Profile) -> dict[str, str]:
    """The sentences about new denied references, ``refused``, and what they are found by."""
    found: dict[str, str] = {}
    if _takes_index(consumer):
        found["labels"] = _LABELS
        if profile.allows_intra_tenant:
            found["tenant"] = f'namespaceObject.metadata.?labels[?{text(TENANT_LABEL)}].orValue("")'
    judged = _judged(consumer, profile)
    for each in judged:
        found[f"named{each.number}"] = each.names
        found[f"before{each.number}"] = each.before
    found["refused"] = " + ".join(each.refused for each in judged)
    return found


def _items(reference: Reference, of: str) -> str:
    """The list of what holds a reference."""
    path, is_list, _ = reference.path.partition("[]")
    return f"{optional(of, path)}.orValue([])" if is_list else f"[?{optional(of, path)}]"


def _part(reference: Reference, name: str, default: str = "", each: str = "each") -> str:
    """A field of the reference in ``each``."""
    inner = reference.path.partition("[]")[2].strip(".")
    of = "".join(f".?{part}" for part in inner.split(".") if part)
    return f"{each}{of}.?{name}.orValue({text(default)})"


def _namespace(reference: Reference) -> str:
    """By ``dyn``: the type checker of the API server does not know fields that are called like a word of CEL."""
    return _part(reference, "namespace", each="dyn(each)")


def _foreign(reference: Reference) -> str:
    return _FOREIGN.format(named=_namespace(reference))


def _key(reference: Reference) -> str:
    """The key of the reference in ``each``, as the index has it."""
    kind = text(f"{reference.kind}/") if reference.kind else f'{_part(reference, "kind")} + "/"'
    # By ``dyn``: a selector of objects may have no name.
    return f'{kind} + {_namespace(reference)} + "/" + {_part(reference, "name", "*", "dyn(each)")}'


def _names(reference: Reference, of: str) -> str:
    """The keys of the references to other namespaces."""
    return f"{_items(reference, of)}.map(each, {_foreign(reference)}, {_key(reference)})"


def _stopping(stop: Stop) -> str:
    if stop.field:
        return _add(pointer(*stop.field.split(".")), "true")
    return _add(pointer(*ANNOTATIONS, stop.annotation), text(stop.value))


def _add(path: str, value: str) -> str:
    return f'JSONPatch{{op: "add", path: "{path}", value: {value}}}'
