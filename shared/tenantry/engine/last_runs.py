"""What the last run for an owner saw: an event that tells of nothing newer needs no run.

Most events are echoes of our own writes.  A run that ended well has decided on the objects that it read, as they were; while an
object still has that version there is nothing in it that the run did not know.  An event of it costs one read in place of a run.

What a run has written is not known: the first echo begins a further run, and when that finds nothing to do all other echoes cost
one read each.  That run is needed.  Another process may have acted on newer input between this one's reads and its write, which
then is stale, and no object shows it.

What a run itself has deleted, and found gone when it looked again, is known by its uid: that object never comes back.

A unit may say what of a kind its decisions rest on: what else others write there is no news either.

All of it saves work and decides nothing: a process that remembers nothing runs.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType

from tenantry.model import limits
from tenantry.model.kinds import Key, Kind, Object, key_in

State = Callable[[Object], Hashable]
"""What of an object a decision can rest on; it differs whenever that does."""
States = Mapping[tuple[str, str], State]
"""By apiVersion and kind; of other kinds the resourceVersion is taken."""
ABSENT = ""
"""The state of an object that is not there."""
_ENDED = " ended"
_UNSURE = "?"
"""No object's state: of one that was read in two states."""


def ended(uid: str) -> str:
    """The state of an object that was deleted: it is no more, whatever there may be of its name."""
    return f"{uid}{_ENDED}"


def is_ended(state: Hashable) -> bool:
    """Whether a state is that of an object that was deleted."""
    return isinstance(state, str) and state.endswith(_ENDED)


def state_in(states: States, key: Key, obj: Object | None) -> Hashable:
    """The state of an object with a key; `ABSENT` of none."""
    if obj is None:
        return ABSENT
    state = states.get(key.gvk)
    return hash(state(obj)) if state is not None else obj["metadata"].get("resourceVersion") or _UNSURE


class ReadStates(dict[Key, Hashable]):
    """The states of objects as one run read them."""

    def __init__(self, states: States = MappingProxyType({})) -> None:
        super().__init__()
        self.states = states

    def listed(self, kind: Kind, items: Sequence[Object]) -> None:
        """Objects were read in a list; of a long one nothing is noted."""
        for item in items if len(items) <= limits.LIST_NOTED else ():
            self.add(key_in(kind, item["metadata"]["name"], item["metadata"].get("namespace", "")), item)

    def add(self, key: Key, obj: Object | None) -> None:
        """An object was read, or none was there."""
        state = state_in(self.states, key, obj)
        if self.setdefault(key, state) != state:
            self[key] = _UNSURE  # which of them was decided on is not known


class LastRuns:
    """What the last runs for each owner saw, where they ended well, and what the last one wrote, however it ended."""

    def __init__(self) -> None:
        self._states: dict[str, Mapping[int, Hashable]] = {}
        """By owner and by hash of the key: of many thousand owners the keys themselves would be megabytes."""
        self._written: dict[str, dict[int, Hashable]] = {}

    def begins(self, owner: str) -> None:
        """A run begins."""
        self._written.pop(owner, None)

    def wrote(self, owner: str, written: Mapping[Key, Hashable]) -> None:
        """A run has written these objects, which are in these states now."""
        if not written:
            return
        if len(self._written) >= limits.REMEMBERED:
            del self._written[next(iter(self._written))]
        self._written.setdefault(owner, {}).update({hash(key): state for key, state in written.items()})

    def is_echo(self, owner: str, key: Key, told: Hashable) -> bool:
        """Whether an event that told of an object in this state, or in none (None), tells what the last run wrote or knew."""
        wrote = self._written.get(owner, {})
        if hash(key) in wrote and told in (None, wrote[hash(key)]):
            return True
        return self.knows(owner, key, told)

    def knows(self, owner: str, key: Key, told: Hashable) -> bool:
        """Whether the last run saw an object in the state that an event told of."""
        return told is not None and self._states.get(owner, {}).get(hash(key)) == told != _UNSURE

    def ended_well(self, owner: str, kinds: Container[tuple[str, str]], seen: ReadStates, written: Iterable[Key]) -> None:
        """A run ended well; kept is what it knew of ``kinds``, those whose events concern the owner, but for what it has written.

        Of what runs before it knew, and it has not looked at, resourceVersions are kept: they never come back.  Any other state
        may, and this run may have decided while the object had another one, which a list does not show that lacks the object.
        What it deleted before its last look is known as `ended`, unless there was another of its name then.
        """
        before = self._states.pop(owner, {})
        known = {key: state for key, state in before.items() if _comes_once(state)} if len(before) <= limits.LIST_NOTED else {}
        known |= {key: state for key, state in self._written.get(owner, {}).items() if is_ended(state)}
        for key, state in seen.items():
            if key.gvk in kinds and not (state == ABSENT and is_ended(known.get(hash(key)))):
                known[hash(key)] = state
        known |= {hash(key): _UNSURE for key in written}
        if len(self._states) >= limits.REMEMBERED:
            del self._states[next(iter(self._states))]
        self._states[owner] = {key: state for key, state in known.items() if state != _UNSURE}

    def ended_badly(self, owner: str) -> None:
        """A run was refused something, or failed."""
        self._states.pop(owner, None)

    def may_know(self, owner: str, keys: Iterable[Key]) -> bool:
        """Whether the last run knew all these objects in some state."""
        states = self._states.get(owner, {})
        return all(hash(key) in states for key in keys)

    def knew(self, owner: str, now: ReadStates) -> bool:
        """Whether the last run saw these objects as they are now."""
        states = self._states.get(owner, {})
        return all(states.get(hash(key)) == state != _UNSURE for key, state in now.items())


def _comes_once(state: Hashable) -> bool:
    return isinstance(state, str) and state != ABSENT
