"""References to other namespaces: for each kind of consumers a policy, and under Quarantine a mutation before it (2.1, 2.2, 3.4).

The AccessIndex is read as it is written: ``Kind/namespace/name`` to selectors joined by ``|``, a selector being pairs
``key=value`` joined by ``,``; ``*`` is everybody.  What an expression may cost is bounded (section 3.3): for a list of references
labels are made a map of ``key=value``, which is looked into at one price however many a namespace has.  For a single reference
that map would cost more than all else; the label that a pair names is looked up.
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
_MATCHES = '{grants}[?{key}].orValue("").split("|").exists(selector, selector.split(",").all(pair, {has}))'
_IS_LABEL = "pair in variables.labels"
_NAMES_LABEL = (
    'pair == "*" || (pair.split("=")[0] in namespaceObject.metadata.?labels.orValue({}) && '
    'pair.split("=")[0] + "=" + namespaceObject.metadata.labels[pair.split("=")[0]] == pair)'
)
_LABELS = (
    '(["*"] + namespaceObject.metadata.?labels.orValue({}).map(key, key + "=" + namespaceObject.metadata.labels[key]))'
    ".transformMapEntry(index, pair, {pair: true})"
)


def reference_policy(consumer: Consumer, versions: tuple[str, ...], profile: Profile, *, quarantines: bool) -> AdmissionPolicy:
    """Refuses new references that are denied; under Quarantine but those of objects that are locked already.

    What is allowed stands in the validation, not in a variable, whose fields the API server would not check.  So does who is not
    concerned: a condition beside it would cost all others as much as the validation.  Each variable costs as much as a look at a
    reference, and so does each macro that looks at the items of a list.  The message is evaluated for all, too: of most objects,
    which name one other namespace or none, it needs neither.
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
    if not judged[0].reference.is_list:  # most often the only one, and then what is denied is this
        others = " && ".join(f"!{each.field}.hasValue()" for each in judged[1:])
        told = f"{others} ? {judged[0].sentence} : {told}" if others else judged[0].sentence
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
    profile: Profile

    def allowed(self, key: str = "key") -> str:
        """Whether the reference with this key is allowed."""
        access, found = self.reference.access, []
        if access != "local":
            has, grants = _IS_LABEL if self.reference.is_list else _NAMES_LABEL, f"dyn(params).?spec.?{access}.orValue({{}})"
            found.append(_MATCHES.format(grants=grants, key=key, has=has))
            if self.profile.allows_intra_tenant:
                tenant = f'params.?spec.?tenants.orValue({{}})[?({key}).split("/")[1]].orValue("")'
                found.append(f'(variables.tenant != "" && {tenant} == variables.tenant)')
        return " || ".join([*found, f"{key} in variables.before{self.number}"])

    @property
    def names(self) -> str:
        return _names(self.reference, "object")

    @property
    def before(self) -> str:
        return f"oldObject == null ? [] : {_names(self.reference, 'oldObject')}"

    @property
    def field(self) -> str:
        """The optional value of the reference, or of the list of them."""
        return _field(self.reference, "object")

    @property
    def unchanged(self) -> str:
        """Whether an update leaves the field as it was."""
        return f"(oldObject != null && {self.field} == {_field(self.reference, 'oldObject')})"

    @property
    def all_allowed(self) -> str:
        """Of an unchanged field without a look at each, and of what names no other namespace without a look at grants."""
        if self.reference.is_list:
            return f"{self.unchanged} || !{self.field}.hasValue() || {self.names}.all(key, {self.allowed()})"
        return f"{self.unchanged} || {_is_here(self.reference, self.field)} || {self.allowed(self._key)}"

    @property
    def sentence(self) -> str:
        """What is told of a reference that is no list, if it is denied."""
        return self._told(self._key)

    @property
    def sentences(self) -> str:
        """What would be told of each reference to another namespace."""
        return f"{_items(self.reference, 'object')}.map(each, {_foreign(self.reference)}, {self._told(_key(self.reference))})"

    @property
    def refused(self) -> str:
        """What is told of those that are not allowed."""
        return f"({self.unchanged} ? [] : variables.named{self.number}.map(key, !({self.allowed()}), {self._told('key')}))"

    @property
    def _key(self) -> str:
        return _key(self.reference, self.field)

    def _told(self, key: str) -> str:
        """What is told of the reference with this key, if it is denied."""
        why = '" is not shared with namespace " + request.namespace'
        if self.reference.access == "local":
            why = '" is in another namespace, and must be in namespace " + request.namespace'
        return f"{text(self.reference.field + ': ')} + {key} + {why}"


def _judged(consumer: Consumer, profile: Profile) -> list[_Judged]:
    return [_Judged(number, each, profile) for number, each in enumerate(consumer.references)]


def _variables(consumer: Consumer, profile: Profile) -> dict[str, str]:
    """The sentences about new denied references, ``refused``, and what they are found by."""
    found: dict[str, str] = {}
    if any(each.is_list and each.access != "local" for each in consumer.references):
        found["labels"] = _LABELS
    if _takes_index(consumer) and profile.allows_intra_tenant:
        found["tenant"] = f'namespaceObject.metadata.?labels[?{text(TENANT_LABEL)}].orValue("")'
    judged = _judged(consumer, profile)
    for each in judged:
        found[f"named{each.number}"] = each.names
        found[f"before{each.number}"] = each.before
    found["refused"] = " + ".join(each.refused for each in judged)
    return found


def _field(reference: Reference, of: str) -> str:
    return optional(of, reference.path.partition("[]")[0])


def _items(reference: Reference, of: str) -> str:
    """The list of what holds a reference."""
    field = _field(reference, of)
    return f"{field}.orValue([])" if reference.is_list else f"[?{field}]"


def _part(reference: Reference, name: str, default: str, each: str) -> str:
    """A field of the reference in ``each``."""
    inner = reference.path.partition("[]")[2].strip(".")
    of = "".join(f".?{part}" for part in inner.split(".") if part)
    return f"{each}{of}.?{name}.orValue({text(default)})"


def _untyped(each: str) -> str:
    """The same, of which the type checker of the API server knows nothing."""
    first, dot, path = each.partition(".")
    return f"dyn({first}){dot}{path}"


def _namespace(reference: Reference, each: str) -> str:
    """Untyped: the type checker does not know fields that are called like a word of CEL."""
    return _part(reference, "namespace", "", _untyped(each))


def _is_here(reference: Reference, each: str) -> str:
    return f'{_namespace(reference, each)} in ["", request.namespace]'


def _foreign(reference: Reference) -> str:
    return f"!({_is_here(reference, 'each')})"


def _key(reference: Reference, each: str = "each") -> str:
    """The key of the reference in ``each``, as the index has it."""
    kind = text(f"{reference.kind}/") if reference.kind else f'{_part(reference, "kind", "", each)} + "/"'
    # Untyped: a selector of objects may have no name.
    return f'{kind} + {_namespace(reference, each)} + "/" + {_part(reference, "name", "*", _untyped(each))}'


def _names(reference: Reference, of: str) -> str:
    """The keys of the references to other namespaces."""
    return f"{_items(reference, of)}.map(each, {_foreign(reference)}, {_key(reference)})"


def _stopping(stop: Stop) -> str:
    if stop.field:
        return _add(pointer(*stop.field.split(".")), "true")
    return _add(pointer(*ANNOTATIONS, stop.annotation), text(stop.value))


def _add(path: str, value: str) -> str:
    return f'JSONPatch{{op: "add", path: "{path}", value: {value}}}'
