"""What the workloads of the AccessIndex promise: it grants what is declared, at every moment, and is never split."""

from __future__ import annotations

from collections.abc import Iterator

from tenantry.model.flux.names import ACCESS_INDEX, SOURCE_GRANT, TENANCY_PROFILE
from tenantry.model.flux.onboarding import GIT_REPOSITORY
from tenantry.model.kinds import EVENT, Object, key_of
from tenantry.testing.workload import Workload
from tenantry.testing.world import Moment

from ._flux import Pair, declared_pairs, is_well, of_flux, pairs_of, run_of, settable_keys, worlds


def _ours(moment: Moment) -> bool:
    return bool(moment.by) and moment.change.key.kind == ACCESS_INDEX.kind


def _of(pairs: set[Pair], tag: str) -> set[Pair]:
    return {each for each in pairs if tag in each[1]}


def _indexes(moment: Moment) -> Iterator[Object]:
    """The states of the index until now, the newest first."""
    for key, states in moment.past.items():
        if key.kind == ACCESS_INDEX.kind:
            yield from reversed(states)


def grants_only_what_is_declared(moment: Moment) -> str:
    """An entry grows only by what a source's owner grants, or granted a moment ago."""
    if not _ours(moment):
        return ""
    extra = _of(pairs_of(moment.change.after) - pairs_of(moment.change.before), run_of(moment.objects))
    for declared in worlds(moment) if extra else ():
        extra -= declared
    return f"granted {sorted(extra)}" if extra else ""


def what_is_revoked_stays_away(moment: Moment) -> str:
    """A revoked source can never be newly referenced after the index shrank: what it lost comes back by a grant only."""
    if not _ours(moment) or moment.change.before is None:
        return ""
    extra = _of(pairs_of(moment.change.after) - pairs_of(moment.change.before), run_of(moment.objects))
    was = set[Pair]().union(*map(pairs_of, _indexes(moment)))
    profiles = [each for key, each in moment.objects.items() if key.kind == TENANCY_PROFILE.kind]
    for settable in settable_keys(profiles or [None]):
        extra -= declared_pairs(moment.objects.values(), settable)
    return f"granted again what is revoked: {sorted(extra & was)}" if extra & was else ""


def keeps_what_is_declared(moment: Moment) -> str:
    """What is granted throughout stands at every moment (f-78); an index that was away comes back whole."""
    if not _ours(moment):
        return ""
    before = moment.change.before or next(_indexes(moment), None)
    if moment.change.after is None:
        return "took the index away"
    tag, lost = run_of(moment.objects), pairs_of(before) - pairs_of(moment.change.after)
    if others := lost - _of(lost, tag):
        return f"took what another run has: {sorted(others)}"
    for declared in worlds(moment) if lost else ():
        lost &= declared
    return f"took {sorted(lost)}" if lost else ""


def is_never_split(moment: Moment) -> str:
    """What is written is the whole index: one object, complete, with the text of legal selectors only."""
    after = moment.change.after
    if not _ours(moment) or after is None:
        return ""
    if after["metadata"]["name"] != "default" or after["spec"].get("complete") is not True:
        return "is not the one complete index"
    broken = [text for _, _, text in pairs_of(after) if text != "*" and any(part.count("=") != 1 for part in text.split(","))]
    return f"has {broken}" if broken else ""


def says_what_is_in_force(moment: Moment) -> str:
    """A SourceGrant is told that all of it is in force only when the index has it."""
    before, after = moment.change.before, moment.change.after
    if not moment.by or moment.change.key.kind != SOURCE_GRANT.kind or before is None or after is None:
        return ""
    if not is_well(after) or is_well(before):
        return ""
    index = next((each for key, each in moment.objects.items() if key.kind == ACCESS_INDEX.kind), None)
    sources = [each for key, each in moment.objects.items() if key.kind == GIT_REPOSITORY.kind]
    missing = declared_pairs([*sources, after]) - pairs_of(index) if index is not None else set[Pair]()
    return f"said that {sorted(missing)} is in force" if missing else ""


def index_is_as_declared(objects: list[Object]) -> str:
    """In the end the index has exactly what is declared, and each SourceGrant says whether it counts."""
    tag = run_of(map(key_of, objects))
    profile = next((each for each in objects if each["kind"] == TENANCY_PROFILE.kind), None)
    settable = next(settable_keys([profile]))
    index = next((each for each in objects if each["kind"] == ACCESS_INDEX.kind), None)
    wanted, there = declared_pairs(objects, settable), _of(pairs_of(index), tag)
    if wanted != there or index is None or index["spec"].get("complete") is not True:
        return f"missing {sorted(wanted - there)}, too much {sorted(there - wanted)}"
    named = {each["metadata"]["name"] for each in objects if each["kind"] == GIT_REPOSITORY.kind}
    wrong = [
        each["metadata"]["name"]
        for each in objects
        if each["kind"] == SOURCE_GRANT.kind and is_well(each) != (each["spec"]["sourceRef"]["name"] in named)
    ]
    return f"SourceGrants do not say whether they count: {wrong}" if wrong else ""


def tells(obj: Object) -> bool:
    """Whether a SourceGrant, or a Warning, says that something is wrong."""
    return obj.get("type") == "Warning" if obj["kind"] == EVENT.kind else obj["kind"] == SOURCE_GRANT.kind and not is_well(obj)


def is_index_replaced(body: Object) -> bool:
    """An index that is written over may have lost something."""
    return body.get("kind") == ACCESS_INDEX.kind and "resourceVersion" in body["metadata"]


def grants_of_sources() -> Workload:
    """A workload of scope-binding for sources, without scenarios."""
    return of_flux(
        "scope-binding",
        "scope-binding-sources",
        {},
        tells=tells,
        safe=[
            grants_only_what_is_declared,
            what_is_revoked_stays_away,
            keeps_what_is_declared,
            is_never_split,
            says_what_is_in_force,
        ],
        ends=[index_is_as_declared],
        destroys=is_index_replaced,
        watched=(SOURCE_GRANT, GIT_REPOSITORY),
    )
