"""What is told of carriers: the condition ``ACLValid`` of SourceGrants, and Warnings about sources (1.5)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from scope_binding import NAME
from scope_binding.sources.plan import MANAGER, is_nearly_full
from scope_binding.sources.seen import AccessSeen, Carried, GrantTexts, carried, in_order, name_of
from tenantry.model import limits
from tenantry.model.conditions import condition
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.carriers import AclProblem
from tenantry.model.flux.names import ACL_VALID, INDEX_FULL, INDEX_NOT_WRITTEN, INVALID_ACL, SOURCE_GRANT
from tenantry.model.kinds import EVENT, Object, is_terminating, name_metadata, object_of
from tenantry.model.plan import NOTHING, Apply, KubernetesEvent, Plan, plan_of
from tenantry.model.standing import warning, warning_name

_BETWEEN = "; "
_ORDER = ("SourceKindNotServed", "SourceNotFound", "TenantSettableKey", INVALID_ACL, "TooLarge", INDEX_FULL, INDEX_NOT_WRITTEN)
"""The reason of a condition about several problems."""
_FULL = "the AccessIndex is full, so nobody may use {names}: have an administrator see to grants that nobody needs"
_NOT_WRITTEN = (
    "who may use {names} is not in force as it is declared, since the AccessIndex was not written: have an administrator see "
    "what refuses scope-binding the write"
)
_VALID = ("Valid", "all that is granted is in force")


class SourceWarning(NamedTuple):
    """A Warning about a source."""

    source: Object
    reason: str
    note: str

    @property
    def name(self) -> str:
        """Of the Event: the same mistake is told once."""
        return warning_name(self.source, self.reason, self.note)


def left_out(seen: AccessSeen, found: Carried) -> frozenset[str]:
    """The sources that are granted and have found no place in the index."""
    entries = AccessEntries.of(seen.index or {})
    if seen.index is None or not is_nearly_full(entries, seen.most):
        return frozenset()
    return frozenset(found.texts) - entries.granted


def not_in_force(seen: AccessSeen, found: Carried) -> frozenset[str]:
    """The sources of which the index says something else than their carriers, less or more."""
    entries, full = AccessEntries.of(seen.index or {}), left_out(seen, found)
    names = found.texts.keys() | {name_of(each) for each in seen.places.sources}
    return frozenset(
        name
        for name in names - full
        if found.texts.get(name, GrantTexts()) != GrantTexts(entries.read.get(name, ""), entries.write.get(name, ""))
    )


def not_in_force_yet(seen: AccessSeen) -> frozenset[Hashable]:
    """That the index was not written is told when it still is not at a second look: a run for it may be under way."""
    return not_in_force(seen, carried(seen.places, seen.profile))


def told_when_seen_twice(seen: AccessSeen, plan: Plan) -> frozenset[Hashable]:
    """That the index was not written, and that all that is granted is in force: nobody may rely on an index as it was before."""
    valid = (write for write in plan.writes() if isinstance(write, Apply) and _says_valid(write.wanted))
    return not_in_force_yet(seen) | frozenset(write.key for write in valid if write.change(MANAGER) is not None)


def _says_valid(told: Object) -> bool:
    return told["kind"] == SOURCE_GRANT.kind and bool(told["status"]["conditions"][0]["status"] == "True")


def warnings_of(seen: AccessSeen) -> list[SourceWarning]:
    """What is wrong with what sources say themselves: the position of each mistake, and the fix (f-14, f-15)."""
    found = carried(seen.places, seen.profile)
    full, not_written = left_out(seen, found), not_in_force(seen, found)
    by_grants = {name for names in found.selected.values() for name in names}
    warnings = []
    for source in in_order(seen.places.sources):
        name = name_of(source)
        texts = [each.text for each in found.source_problems.get(name, ())]
        if texts:
            warnings.append(SourceWarning(source, INVALID_ACL, limits.few(texts, between=_BETWEEN)))
        if name in full - by_grants:
            warnings.append(SourceWarning(source, INDEX_FULL, _FULL.format(names=name)))
        if name in not_written - by_grants:
            warnings.append(SourceWarning(source, INDEX_NOT_WRITTEN, _NOT_WRITTEN.format(names=name)))
    return warnings[: limits.SOURCES_TOLD]


def plan_access(seen: AccessSeen) -> Plan:
    """Conditions that are not as they are to be, and Warnings that are not there."""
    found = carried(seen.places, seen.profile)
    absent = ((INDEX_FULL, _FULL, left_out(seen, found)), (INDEX_NOT_WRITTEN, _NOT_WRITTEN, not_in_force(seen, found)))
    grants = [each for each in seen.places.grants if not is_terminating(each)]
    conditions = [_condition(each, _problems(each, found, absent), seen.open) for each in grants]
    writes = [*conditions, *_warnings(seen)]
    return plan_of(*writes) if writes else NOTHING


def tells(seen: AccessSeen) -> bool:
    """Whether there is anything to warn of, which takes a namespace that is not going."""
    return any(isinstance(each, Apply) and (each.event is not None or each.kind == EVENT) for each in plan_access(seen).writes())


def _problems(grant: Object, found: Carried, absent: Iterable[tuple[str, str, frozenset[str]]]) -> list[AclProblem]:
    """Those of what it says, and those of sources that the index has not, by reason, text and names."""
    uid = grant["metadata"]["uid"]
    problems = list(found.grant_problems.get(uid, ()))
    for reason, text, names in absent:
        if missing := sorted(names.intersection(found.selected.get(uid, ()))):
            problems.append(AclProblem(reason, text.format(names=limits.few(missing))))
    return problems


def _condition(grant: Object, problems: Sequence[AclProblem], told: bool) -> Apply:
    generation = grant["metadata"].get("generation")
    body = object_of(SOURCE_GRANT, name_metadata(grant))
    if not problems:
        body["status"] = {"conditions": [condition(ACL_VALID, "True", *_VALID, generation)]}
        return Apply(SOURCE_GRANT, body, grant, subresource="status")
    reason = min((each.reason for each in problems), key=_ORDER.index)
    text = limits.few([each.text for each in problems], between=_BETWEEN)
    body["status"] = {"conditions": [condition(ACL_VALID, "False", reason, text, generation)]}
    event = KubernetesEvent(grant, reason, text, "Report", "Warning") if told else None
    return Apply(SOURCE_GRANT, body, grant, subresource="status", event=event)


def _warnings(seen: AccessSeen) -> Iterator[Apply]:
    if not seen.open:
        return
    by = (NAME, "sources", "Report")
    for each in warnings_of(seen):
        if each.name not in seen.warned:
            yield warning(each.source, each.name, each.reason, each.note, None, seen.now, by=by)
