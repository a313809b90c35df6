"""What is told of carriers: the condition ``ACLValid`` of SourceGrants, and Warnings about sources (1.5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from scope_binding import NAME
from scope_binding.sources.plan import is_nearly_full
from scope_binding.sources.seen import AccessSeen, Carried, carried, in_order, name_of
from tenantry.model import limits
from tenantry.model.conditions import condition
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.carriers import AclProblem
from tenantry.model.flux.names import ACL_VALID, INDEX_FULL, INVALID_ACL, SOURCE_GRANT
from tenantry.model.kinds import Object, is_terminating, name_metadata, object_of
from tenantry.model.plan import NOTHING, Apply, KubernetesEvent, Plan, plan_of
from tenantry.model.standing import warning, warning_name

_BETWEEN = "; "
_ORDER = ("SourceKindNotServed", "SourceNotFound", "TenantSettableKey", INVALID_ACL, "TooLarge", INDEX_FULL)
"""The reason of a condition about several problems."""
_FULL = "the AccessIndex is full, so nobody may use {names}: have an administrator see to grants that nobody needs"
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


def warnings_of(seen: AccessSeen) -> list[SourceWarning]:
    """What is wrong with what sources say themselves: the position of each mistake, and the fix (f-14, f-15)."""
    found = carried(seen.places, seen.profile)
    full = left_out(seen, found)
    by_grants = {name for names in found.selected.values() for name in names}
    warnings = []
    for source in in_order(seen.places.sources):
        name = name_of(source)
        texts = [each.text for each in found.source_problems.get(name, ())]
        if texts:
            warnings.append(SourceWarning(source, INVALID_ACL, limits.few(texts, between=_BETWEEN)))
        if name in full - by_grants:
            warnings.append(SourceWarning(source, INDEX_FULL, _FULL.format(names=name)))
    return warnings[: limits.SOURCES_TOLD]


def plan_access(seen: AccessSeen) -> Plan:
    """Conditions that are not as they are to be, and Warnings that are not there."""
    found = carried(seen.places, seen.profile)
    full = left_out(seen, found)
    conditions = [_condition(each, _problems(each, found, full)) for each in seen.places.grants if not is_terminating(each)]
    writes = [*conditions, *_warnings(seen)]
    return plan_of(*writes) if writes else NOTHING


def _problems(grant: Object, found: Carried, full: frozenset[str]) -> list[AclProblem]:
    uid = grant["metadata"]["uid"]
    problems = list(found.grant_problems.get(uid, ()))
    if missing := [name for name in sorted(found.selected.get(uid, ())) if name in full]:
        problems.append(AclProblem(INDEX_FULL, _FULL.format(names=limits.few(missing))))
    return problems


def _condition(grant: Object, problems: Sequence[AclProblem]) -> Apply:
    generation = grant["metadata"].get("generation")
    body = object_of(SOURCE_GRANT, name_metadata(grant))
    if not problems:
        body["status"] = {"conditions": [condition(ACL_VALID, "True", *_VALID, generation)]}
        return Apply(SOURCE_GRANT, body, grant, subresource="status")
    reason = min((each.reason for each in problems), key=_ORDER.index)
    text = limits.few([each.text for each in problems], between=_BETWEEN)
    body["status"] = {"conditions": [condition(ACL_VALID, "False", reason, text, generation)]}
    event = KubernetesEvent(grant, reason, text, "Report", "Warning")
    return Apply(SOURCE_GRANT, body, grant, subresource="status", event=event)


def _warnings(seen: AccessSeen) -> Iterator[Apply]:
    if not seen.open:
        return
    by = (NAME, "sources", "Report")
    for each in warnings_of(seen):
        if each.name not in seen.warned:
            yield warning(each.source, each.name, each.reason, each.note, None, seen.now, by=by)
