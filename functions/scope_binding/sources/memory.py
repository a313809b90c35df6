"""What the last run for the index has seen, as a hint: an event that tells of nothing else needs no run.

Controllers write the status of sources all the time, and we write that of SourceGrants.  Other processes make the index, too:
what is remembered holds only while the index has the version that it had then.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

from scope_binding.sources.seen import Places, kept_source
from tenantry.model import limits
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.names import SOURCE_GRANT
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import Object

Place = tuple[str, str, str]
"""Kind, namespace and name."""


def place_of(obj: Object) -> Place:
    """Where an object is, in whatever version it was read."""
    return obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"]


def state_of(obj: Object | None) -> int:
    """What of a source or a SourceGrant decides; 0 of one that is not there."""
    if obj is None:
        return 0
    if obj["kind"] == SOURCE_GRANT.kind:
        metadata = obj["metadata"]
        return hash((metadata["uid"], metadata.get("generation"), metadata.get("deletionTimestamp")))
    kept = kept_source(obj)
    return hash(repr((sorted(kept["metadata"].items(), key=str), kept.get("spec"))))


class IndexMemory:
    """The states of objects by place, and the version of the index that was made from them."""

    def __init__(self) -> None:
        self.version = ""
        """Of the index; empty while it is not known."""
        self.planned: AccessEntries | None = None
        """What the last run has written."""
        self.profile: Hashable = None
        self._states: dict[Place, int] = {}
        self._whole = False

    def forget(self) -> None:
        """A run was refused something, or failed."""
        self.version, self.planned, self.profile = "", None, None
        self._states, self._whole = {}, False

    def looked(self, places: Places, whole: Collection[str] | None, profile: Profile, causes: Iterable[Place] = ()) -> None:
        """A run ended well that has seen this: of some namespaces all that there is, or of all; and what woke it."""
        gone = frozenset(causes)
        kept = {
            place: state
            for place, state in (self._states.items() if whole is not None else ())
            if place[1] not in (whole or ()) and place not in gone
        }
        kept |= {place_of(each): state_of(each) for each in (*places.sources, *places.grants)}
        fits = len(kept) <= limits.REMEMBERED
        self._states = kept if fits else {}
        self._whole = fits and (whole is None or self._whole)
        self.profile = decisive(profile)

    def knew(self, place: Place, obj: Object | None) -> bool:
        """Whether an object is as it was seen."""
        known = place in self._states or self._whole
        return self.version != "" and known and self._states.get(place, 0) == state_of(obj)


def decisive(profile: Profile) -> Hashable:
    """What of a profile the index depends on."""
    return profile.tenant_label_keys, profile.allows_intra_tenant
