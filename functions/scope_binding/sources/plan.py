"""The index as it is to be: who finds a place in it, and the one write (1.5, 3.6)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import accumulate

from scope_binding import NAME
from scope_binding.sources.seen import GrantTexts, IndexSeen, Places, carried, entries_size, kind_in, name_of, namespace_in
from tenantry.model import limits
from tenantry.model.conditions import condition, find_condition
from tenantry.model.difference import entries_of
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.carriers import selectors_of_text
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, INDEX_FULL, NEARLY_FULL
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import Object, object_of
from tenantry.model.names import field_manager
from tenantry.model.plan import NOTHING, Apply, Plan, Replace, plan_of

MANAGER = field_manager(NAME)
_LABELS = {"app.kubernetes.io/part-of": "tenantry", "app.kubernetes.io/name": NAME}
_WARN = 4 / 5
"""What part of the index may be used before its condition warns (3.6)."""


def is_nearly_full(entries: AccessEntries, most: int) -> bool:
    """Whether so much of the index is used that a grant may find no place in it."""
    used = sum(map(entries_size, (entries.read, entries.write, entries.tenants)))
    return len(entries.granted) >= _WARN * most or used >= _WARN * limits.INDEX_BYTES


def index_seen(
    index: Object | None,
    profile: Profile,
    places: Places,
    most: int,
    namespaces: frozenset[str] | None = None,
    tenants: Mapping[str, str] | None = None,
) -> IndexSeen:
    """The index as it is to be, from what was read.

    Who is in it with the same text comes first, then who is in it, then the oldest source: what stands is not pushed out by what
    comes (f-77).

    Args:
        namespaces: those that were looked at; of others it has what it had.  None: all.
        tenants: None: they were not looked at.
    """
    before = AccessEntries.of(index or {})
    found = carried(places, profile).texts
    if namespaces is not None:
        for name in before.granted:
            if namespace_in(name) not in namespaces:
                found[name] = GrantTexts(before.read.get(name, ""), before.write.get(name, ""))
    tenants = before.tenants if tenants is None else tenants
    placed = _placed(found, before, _ages(places), most, entries_size(tenants))
    read = {name: texts.read for name, texts in placed.items() if texts.read}
    write = {name: texts.write for name, texts in placed.items() if texts.write}
    keys = {key for text in {*read.values(), *write.values()} for each in selectors_of_text(text) for key, _ in each}
    # what tenants may have set is remembered when it is not theirs any more (f-122)
    settable = sorted(profile.tenant_label_keys)
    known = _first([*settable, *sorted({*before.tenant_keys} - {*settable})], limits.INDEX_TENANT_KEYS_BYTES)
    label_keys = _first(sorted(keys), limits.INDEX_KEYS_BYTES)
    entries = AccessEntries(read, write, tenants, label_keys, complete=True, tenant_keys=tuple(sorted(known)))
    return IndexSeen(index, entries, places.served, most, full=len(placed) < len(found))


def _first(keys: list[str], most: int) -> tuple[str, ...]:
    """As many keys as fit into so many bytes: a tenant's selectors may name any number of long ones."""
    ends = accumulate(len(key) + len('"",') for key in keys)
    return tuple(key for key, end in zip(keys, ends, strict=True) if end <= most)


def _ages(places: Places) -> Mapping[str, str]:
    return {name_of(each): each["metadata"].get("creationTimestamp") or "" for each in places.sources}


def _placed(
    found: Mapping[str, GrantTexts], before: AccessEntries, ages: Mapping[str, str], most: int, size: int
) -> dict[str, GrantTexts]:
    """Those that have a place: at most so many, and within the budget of bytes, of which ``size`` are used."""

    if len(found) <= most and size + sum(texts.size(name) for name, texts in found.items()) <= limits.INDEX_BYTES:
        return dict(found)

    def rank(name: str) -> tuple[int, str, str]:
        stands = GrantTexts(before.read.get(name, ""), before.write.get(name, ""))
        return 0 if stands == found[name] else 1 if any(stands) else 2, ages.get(name, ""), name

    placed: dict[str, GrantTexts] = {}
    for name in sorted(found, key=rank):
        if len(placed) == most:
            break
        if size + found[name].size(name) <= limits.INDEX_BYTES:
            placed[name] = found[name]
            size += found[name].size(name)
    return placed


def is_idle(seen: IndexSeen) -> bool:
    """Whether Flux is not there, and nothing of it is in the index: then nothing happens."""
    return not seen.served and not seen.before.granted


def plan_index(seen: IndexSeen) -> Plan:
    """The whole index by one write, on the state that was read; nothing where it is as it is to be."""
    if is_idle(seen):
        return NOTHING
    if seen.index is None:
        body = object_of(ACCESS_INDEX, {"name": DEFAULT, "labels": _LABELS}, spec=seen.entries.spec())
        return plan_of(Apply(ACCESS_INDEX, body, None, create_only=True))
    if seen.entries == seen.before:
        return NOTHING
    return plan_of(Replace(ACCESS_INDEX, seen.index, seen.entries.spec()))


def unserved(seen: IndexSeen) -> frozenset[str]:
    """The grants of kinds that are not served (any more): a server that has just started may not know them yet."""
    return frozenset(name for name in seen.before.granted if kind_in(name) not in seen.served)


def doubtful(seen: IndexSeen, plan: Plan) -> frozenset[Hashable]:
    """What the index would have no more and what it would have besides, and the grants of kinds that are not served.

    A list that is answered as it was before must not give back what was revoked.
    """
    if plan == NOTHING:
        return frozenset()
    lost, given = _only_in(seen.before, seen.entries), _only_in(seen.entries, seen.before)
    return unserved(seen) | {("lost", *each) for each in lost} | {("given", *each) for each in given}


def _only_in(before: AccessEntries, after: AccessEntries) -> Iterator[tuple[Hashable, ...]]:
    """Selectors of grants, and namespaces of tenants, that are in one index and not in the other."""
    for access, texts, left in (("read", before.read, after.read), ("write", before.write, after.write)):
        for name, text in texts.items():
            kept = left.get(name, "")
            if text != kept:
                yield from ((access, name, each) for each in {*selectors_of_text(text)} - {*selectors_of_text(kept)})
    yield from (each for each in before.tenants.items() if after.tenants.get(each[0]) != each[1])


def report_index(seen: IndexSeen, _: object) -> Plan:
    """The condition of the index while it is nearly full (f-77).

    Each write of the index is a new generation: the condition is not written again only to say that it still holds.
    """
    if is_idle(seen):
        return NOTHING
    body: Object = object_of(ACCESS_INDEX, {"name": DEFAULT})
    if not is_nearly_full(seen.entries, seen.most):
        if seen.index is None or not entries_of(seen.index, MANAGER, "status"):
            return NOTHING
        return plan_of(Apply(ACCESS_INDEX, body, seen.index, subresource="status"))
    fix = "have grants taken back that nobody needs"
    if seen.full:
        reason, text = INDEX_FULL, f"the index has no place for another grant; {fix}"
    else:
        reason, text = NEARLY_FULL, f"four fifths of the index are used, which can have {seen.most:,} grants; {fix}"
    stands = find_condition(seen.index, NEARLY_FULL) or {}
    same = (stands.get("status"), stands.get("reason"), stands.get("message")) == ("True", reason, text)
    generation = stands.get("observedGeneration") if same else ((seen.index or {}).get("metadata") or {}).get("generation")
    body["status"] = {"conditions": [condition(NEARLY_FULL, "True", reason, text, generation)]}
    return plan_of(Apply(ACCESS_INDEX, body, seen.index, subresource="status"))
