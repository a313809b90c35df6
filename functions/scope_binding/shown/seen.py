"""What is known of a namespace that may have a list of sources, and what the list has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from tenantry.model.flux.access import AccessEntries, selects
from tenantry.model.flux.names import SHOW_SOURCES
from tenantry.model.kinds import NAMESPACE, Object, annotations_of, is_terminating, labels_of, object_of

MOST_BYTES = 400_000
"""Of one key of the ConfigMap, which takes 1 MiB in all."""
_PUSHED_TO = "GitRepository/"
"""Image automation writes to no other kind."""
_PARTS = ("name", "uid", "resourceVersion", "deletionTimestamp", "labels")


@dataclass(frozen=True, slots=True)
class ShownSeen:
    """A Namespace as it is, what the index has, and the ConfigMap of the list; each None where there is none."""

    home: Object | None
    entries: AccessEntries | None = None
    live: Object | None = None


def asks(home: Object | None) -> bool:
    """Whether a Namespace is to have a list."""
    return home is not None and not is_terminating(home) and annotations_of(home).get(SHOW_SOURCES) == "true"


ASKS_NOT = False
"""The state of a Namespace that has no list, whatever else it has."""


def state_of_home(namespace: Object) -> Hashable:
    """What of a Namespace its list rests on."""
    return tuple(sorted(labels_of(namespace).items())) if asks(namespace) else ASKS_NOT


def kept_home(namespace: Object) -> Object:
    """Of a Namespace its labels, and whether it asks for a list."""
    metadata = namespace["metadata"]
    kept = {part: metadata[part] for part in _PARTS if part in metadata}
    said = annotations_of(namespace).get(SHOW_SOURCES)
    return object_of(NAMESPACE, {**kept, "annotations": {SHOW_SOURCES: said}} if said is not None else kept)


class Granted:
    """The entries of an index by the text of their selectors: each text is compared once for a namespace."""

    def __init__(self, entries: AccessEntries) -> None:
        self._read, self._write = _by_text(entries.read), _by_text(entries.write, _PUSHED_TO)

    def to(self, home: Object) -> dict[str, str]:
        """The data of the ConfigMap: for each class the sources that are granted to a Namespace, one on a line, sorted."""
        return {"read": _lines(self._read, home), "write": _lines(self._write, home)}


def _by_text(granted: Mapping[str, str], start: str = "") -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name, text in granted.items():
        if name.startswith(start):
            found[text].append(name)
    return found


def _lines(by_text: Mapping[str, list[str]], home: Object) -> str:
    namespace, labels = home["metadata"]["name"], labels_of(home)
    names = [each for text, several in by_text.items() if selects(text, labels) for each in several]
    return "\n".join(_within_budget(sorted(each for each in names if each.split("/")[1] != namespace)))


def _within_budget(names: list[str]) -> Iterator[str]:
    left = MOST_BYTES
    for number, each in enumerate(names):
        left -= len(each) + 1
        if left < 0:
            yield f"# and {len(names) - number} more"
            return
        yield each
