"""Decisions as a story: what somebody did, and all that followed from it, function by function, in plain words.

A decision names the events that it was made because of.  Where one tells of what another decision wrote a moment before, both
belong to one episode; so does what Helm and Kubernetes' controllers do to what an episode made.  What is left at the beginning
is the deed of a person, or a sweep.  Pure: what is known of the objects of events comes from `deeds`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from tenantry.model.kinds import HELM_CHART, Key, Object
from tenantry.model.limits import few

EPISODES = 12
"""So many are shown, the newest."""
SURE_S = 0.3
"""So long after a run an event of what it wrote is heard at the latest, mostly."""
UNSURE_S = 10.0
"""So long it may take on a machine that is busy; then nobody else must have written the object."""
EARLY_S = 0.05
TOGETHER_S = 0.7
"""Events of one object within it are one deed."""
PUT_RIGHT_S = 5.0
SWEEP = Key("", "", "", "")
_FIELDS, _ALSO = 3, 2
_SAID: Mapping[str, str] = {"create": "made", "delete": "deleted"}
_CONDITION = re.compile(r"status\.conditions\[(\w+)\](?:\.status)?")
_QUIET = "metadata.finalizers["


class At(NamedTuple):
    """An event: which object it told of, and when, in seconds since 1970."""

    key: Key
    when: float


@dataclass(frozen=True, slots=True)
class Deed:
    """What is known of the change that an event told of.

    ``by`` is who wrote the object then; empty where nobody did, or nobody knows.  ``release`` is the Helm release that it is of.
    """

    text: str
    by: str = ""
    is_person: bool = True
    release: str = ""
    changed: bool = False
    """The object was there before."""
    is_gone: bool = False

    @property
    def is_creation(self) -> bool:
        """Whether a person made the object: that happens once, and follows from nothing."""
        return bool(self.by) and self.is_person and not self.changed and not self.is_gone


@dataclass(slots=True)
class Episode:
    """What began it, and the decisions that followed, in their order."""

    began: At
    last: float
    decisions: list[Object] = field(default_factory=list)
    besides: dict[At, Deed] = field(default_factory=dict)
    """What Helm and controllers did in it."""
    also: dict[At, None] = field(default_factory=dict)
    """Other deeds that its decisions were made because of."""
    made: set[Key] = field(default_factory=set)


def episodes(decisions: Iterable[Object], deeds: Mapping[At, Deed]) -> list[Episode]:
    """The episodes of decisions, the newest last; a deed that is not known yet counts as that of a person."""
    found: list[Episode] = []
    of: dict[int, Episode] = {}
    runs = sorted(decisions, key=_began)
    writers: dict[Key, list[Object]] = {}
    for run in runs:
        for write in run["writes"]:
            writers.setdefault(key_in(write), []).append(run)
    for run in runs:
        episode = _of(run, found, of, writers, deeds)
        of[id(run)] = episode
        episode.decisions.append(run)
        episode.made.update(key_in(each) for each in run["writes"] if each["verb"] == "create")
    return sorted(found, key=lambda each: each.began.when)


def _of(
    run: Object, found: list[Episode], of: Mapping[int, Episode], writers: Mapping[Key, list[Object]], deeds: Mapping[At, Deed]
) -> Episode:
    """The episode of a run: that of the first deed of a person among its causes, else that of what it follows from."""
    follows: Episode | None = None
    roots: list[At] = []
    for at in causes_of(run):
        deed = deeds.get(at)
        before = _writer(at, run, of, writers, deed)
        if before is None and deed is not None and not deed.is_person:
            before = _maker(at, deed, found)
            if before is not None:
                before.besides[at] = deed
        if before is None:
            roots.append(at)
        elif follows is None:
            follows = before
    if follows is not None and not any((deed := deeds.get(each)) is None or deed.by for each in roots):
        return follows
    at = roots[0]
    once = (deed := deeds.get(at)) is not None and deed.is_creation
    for each in reversed(found):
        if each.began.key == at.key and (once or at.when - each.last <= TOGETHER_S):
            episode = each
            break
    else:
        episode = Episode(at, at.when)
        found.append(episode)
    episode.last = max(episode.last, at.when)
    episode.also |= dict.fromkeys(each for each in roots if each.key not in (at.key, SWEEP))
    return episode


def _writer(
    at: At, run: Object, of: Mapping[int, Episode], writers: Mapping[Key, list[Object]], deed: Deed | None
) -> Episode | None:
    """The episode of the newest run that wrote the object just before its event."""
    if deed is not None and deed.is_creation:
        return None
    for each in reversed(writers.get(at.key, ())):
        if each is run or id(each) not in of:
            continue
        after = at.when - seconds(each["time"])
        began_before = at.when - _began(each) + EARLY_S >= 0
        if began_before and (after <= SURE_S or (after <= UNSURE_S and deed is not None and not deed.by)):
            return of[id(each)]
    return None


def _maker(at: At, deed: Deed, found: Sequence[Episode]) -> Episode | None:
    """The newest episode that made an object, or the HelmChart of its release."""
    for each in reversed(found):
        if at.key in each.made or any(deed.release == key.name and key.kind == HELM_CHART.kind for key in each.made):
            return each
    return None


def is_put_right(at: At, runs: Iterable[Object]) -> bool:
    """Whether a run wrote the object of an event just afterwards: then what somebody wrote may be there no more.

    Not where a run had just made the object: then the event may be of that, and the write only what comes next.
    """
    is_right = False
    for run in runs:
        after = seconds(run["time"]) - at.when
        verbs = {write["verb"] for write in run["writes"] if key_in(write) == at.key}
        if "create" in verbs and -UNSURE_S <= after <= PUT_RIGHT_S:
            return False
        is_right = is_right or (0 <= after <= PUT_RIGHT_S and bool(verbs - {"status"}))
    return is_right


def causes_of(run: Object) -> list[At]:
    """The events of a decision, in order."""
    found = []
    for each in run["causes"]:
        when = seconds(each["time"]) if each.get("time") else _began(run)
        found.append(At(SWEEP if each.get("sweep") else key_in(each), when))
    return sorted(found, key=lambda at: at.when) or [At(SWEEP, _began(run))]


def key_in(named: Object) -> Key:
    """The key of an object that a decision names."""
    return Key(*(str(named.get(part, "")) for part in ("apiVersion", "kind", "namespace", "name")))


def seconds(time: str) -> float:
    """A time as decisions and the API server have it, since 1970."""
    return datetime.fromisoformat(time).timestamp()


def _began(run: Object) -> float:
    return seconds(run["time"]) - float(run["durationMs"]) / 1000


# -- in words --------------------------------------------------------------------------------------------------------


def told(episode: Episode, deeds: Mapping[At, Deed], about: Mapping[str, str], shown: Sequence[Object]) -> dict[str, Any]:
    """An episode as the page shows it; ``about`` says what each function is for, ``shown`` has its decisions."""
    key, when = episode.began
    deed = deeds.get(episode.began)
    also = dict.fromkeys(deeds[at].text for at in episode.also if at in deeds and deeds[at].by and at.key not in episode.made)
    if deed is not None:
        also.pop(deed.text, None)
    steps = [*_steps(episode, deed, about), *_besides(episode)]
    steps.sort(key=lambda each: each["afterMs"])
    verbs = {key: "delete" if deed is not None and deed.is_gone else ""}
    for write in (each for run in episode.decisions for each in run["writes"] if each["verb"] != "status"):
        if verbs.get(key_in(write)) not in ("", "create") or write["verb"] == "delete":
            verbs[key_in(write)] = write["verb"]
    return {
        "id": f"{key.kind} {key.namespace} {key.name} {when}",
        "at": f"{datetime.fromtimestamp(when).astimezone():%H:%M:%S}",
        "text": deed.text if deed is not None else f"Something happened to {in_words(key)}",
        "also": few(list(also), _ALSO),
        "well": all(each["well"] for each in shown),
        "steps": steps,
        "touched": [[key.kind, key.namespace, key.name, verb] for key, verb in verbs.items()],
        "refused": [line for each in shown for line in each["refused"]],
        "decisions": list(shown),
    }


def in_words(key: Key) -> str:
    """An object as a sentence names it."""
    if key == SWEEP:
        return "every owner"
    return f"{key.kind} {key.name}{f' in {key.namespace}' if key.namespace else ''}"


def _steps(episode: Episode, deed: Deed | None, about: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    by: dict[str, list[Object]] = {}
    for run in episode.decisions:
        by.setdefault(run["function"], []).append(run)
    for function, runs in by.items():
        writes = [write for run in runs for write in run["writes"]]
        loud = [each for each in writes if not _is_quiet(each)]
        quiet: dict[Key, list[str]] = {}
        for each in filter(_is_quiet, writes):
            quiet.setdefault(key_in(each), []).extend(_conditions(each))
        first = next((run for run in runs if any(not _is_quiet(each) for each in run["writes"])), runs[0])
        yield {
            "by": function,
            "about": about.get(function, ""),
            "afterMs": round((seconds(first["time"]) - episode.began.when) * 1000),
            "did": [*_phrases(loud, episode.began.key if deed is not None and deed.changed else SWEEP)],
            "noted": few([f"{in_words(key)}{'' if loud else _in_brackets(types)}" for key, types in quiet.items()], 2),
        }


def _is_quiet(write: Object) -> bool:
    """Whether a write is only for the books: a status, a finalizer."""
    fields = [*write.get("changed", ()), *write.get("givenUp", ())]
    return write["verb"] == "status" or (write["verb"] == "update" and all(each.startswith(_QUIET) for each in fields))


def _conditions(write: Object) -> Iterator[str]:
    """The conditions that a write of a status turned."""
    for path in write.get("changed", ()):
        if (found := _CONDITION.fullmatch(path)) is not None:
            yield found[1]


def _in_brackets(types: Iterable[str]) -> str:
    found = list(dict.fromkeys(types))
    return f" ({', '.join(found)})" if found else ""


def _phrases(writes: Sequence[Object], root: Key) -> Iterator[dict[str, Any]]:
    """What was done, objects of one namespace together: ``says`` them, and with what ``more``."""
    together: dict[tuple[str, str], list[Key]] = {}
    single: list[dict[str, Any]] = []
    taken = {key_in(each): each for each in writes if each["verb"] == "delete"}
    for write in writes:
        key, verb = key_in(write), str(write["verb"])
        gone, come, role = write.get("subjectsRemoved"), write.get("subjectsAdded"), write.get("role", "a role")
        if verb == "create" and come and key in taken:
            single.append(_phrase(f"gave {_people(come)} {role} for a while, by", [key]))
        elif come:
            single.append(_phrase(f"gave {_people(come)} {role} by", [key]))
        if gone and not (verb == "delete" and any(each["verb"] == "create" and key_in(each) == key for each in writes)):
            single.append(_phrase(f"took {role} from {_people(gone)}:", [key], " is gone" if verb == "delete" else ""))
        if gone or come:
            continue
        if verb == "update":
            fields = few([*write.get("changed", ()), *(f"-{each}" for each in write.get("givenUp", ()))], _FIELDS)
            phrase = _phrase("set right" if key == root else "changed", [key], f": {fields}" if fields else "")
            if phrase not in single:
                single.append(phrase)
        else:
            together.setdefault((_SAID.get(verb, verb), key.namespace), []).append(key)
    for (says, _), keys in together.items():
        yield _phrase(says, list(dict.fromkeys(keys)))
    yield from single


def _phrase(says: str, keys: Sequence[Key], more: str = "") -> dict[str, Any]:
    return {
        "says": says,
        "more": more,
        "objects": [{"kind": key.kind, "namespace": key.namespace, "name": key.name} for key in keys],
    }


def _people(subjects: Collection[str]) -> str:
    return few([each.replace("/", " ", 1) for each in subjects], 5)


def _besides(episode: Episode) -> Iterator[dict[str, Any]]:
    by: dict[str, list[At]] = {}
    for at, deed in episode.besides.items():
        if at.key not in episode.made:  # that a Job of ours ran is no news
            by.setdefault(deed.by, []).append(at)
    for who, several in by.items():
        keys = list(dict.fromkeys(at.key for at in sorted(several, key=lambda at: at.when)))
        yield {
            "by": who,
            "about": "",
            "afterMs": round((min(at.when for at in several) - episode.began.when) * 1000),
            "did": [_phrase("wrote", keys)],
            "noted": "",
        }
