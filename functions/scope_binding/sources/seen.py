"""What was read of sources and their carriers, and what the carriers come to: texts of the index, and what is wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tenantry.model import limits
from tenantry.model.flux.access import AccessEntries, NamedObject
from tenantry.model.flux.carriers import (
    AccessSelector,
    Acl,
    AclProblem,
    acl_of,
    acl_of_text,
    is_made_for_another,
    text_of_selectors,
    text_within_budget,
    within_budget,
)
from tenantry.model.flux.names import ACCESS_FROM, IMAGE_REPOSITORY
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import Object, annotations_of, is_terminating, labels_of

READ, WRITE = "Read", "Write"
ANNOTATION = f"metadata.annotations[{ACCESS_FROM}]"
FIELD = "spec.accessFrom"


@dataclass(frozen=True, slots=True)
class Places:
    """The sources and SourceGrants of a namespace, or of all; ``served`` are the kinds of sources that the API server serves."""

    served: frozenset[str] = frozenset()
    sources: tuple[Object, ...] = ()
    grants: tuple[Object, ...] = ()


@dataclass(frozen=True)
class IndexSeen:
    """The index as it is, and as it is to be.

    ``served`` are the kinds of sources that the API server serves, ``most`` is how many grants the index may have, and ``full``
    says that some have found no place.
    """

    index: Object | None
    entries: AccessEntries
    served: frozenset[str]
    most: int
    full: bool = False

    @cached_property
    def before(self) -> AccessEntries:
        """What the index has."""
        return AccessEntries.of(self.index or {})


@dataclass(frozen=True, slots=True)
class IndexLook:
    """One look at the index: what was seen, of which namespaces all of it (None: of all), and under which profile."""

    seen: IndexSeen
    places: Places
    whole: frozenset[str] | None
    profile: Profile
    causes: frozenset[tuple[str, str, str]] = frozenset()
    """Kind, namespace and name of what woke the run."""


@dataclass(frozen=True, slots=True)
class AccessSeen:
    """A namespace's sources and SourceGrants, the index, and the Warnings of ours that are there, by name.

    ``open`` is False for a namespace that is going: it takes no Events.
    """

    profile: Profile = field(default_factory=Profile)
    places: Places = field(default_factory=Places)
    index: Object | None = None
    most: int = limits.GRANTS
    warned: frozenset[str] = frozenset()
    now: str = ""
    open: bool = True


def entry_size(key: str, value: str) -> int:
    """Bytes of an entry of a map, as JSON."""
    return len(key) + len(value) + len('"":"",')


def entries_size(entries: Mapping[str, str]) -> int:
    """Bytes of the entries of a map, as JSON."""
    return sum(map(len, entries)) + sum(map(len, entries.values())) + len('"":"",') * len(entries)


class GrantTexts(NamedTuple):
    """What a source's carriers come to, for each class; empty: nobody."""

    read: str = ""
    write: str = ""

    def size(self, name: str) -> int:
        """Bytes in the index, for a source of this name."""
        return sum(entry_size(name, text) for text in self if text)


@dataclass(slots=True)
class Carried:
    """What all carriers come to.

    ``texts``, by name of the index: of sources that somebody may use.  ``selected``: the sources of each SourceGrant, by its uid.
    ``grant_problems`` by uid, ``source_problems`` by name.
    """

    texts: dict[str, GrantTexts] = field(default_factory=dict)
    selected: dict[str, list[str]] = field(default_factory=dict)
    grant_problems: dict[str, list[AclProblem]] = field(default_factory=lambda: defaultdict(list))
    source_problems: dict[str, list[AclProblem]] = field(default_factory=lambda: defaultdict(list))


def kept_source(source: Object) -> Object:
    """What is kept of a source that was read: of a tenant's object only what decides, within budgets."""
    metadata = source["metadata"]
    kept = {part: metadata[part] for part in ("name", "namespace", "uid", "creationTimestamp") if part in metadata}
    kept["labels"] = dict(labels_of(source))
    if (text := annotations_of(source).get(ACCESS_FROM)) is not None:
        kept["annotations"] = {ACCESS_FROM: text_within_budget(text)}
    found: Object = {"apiVersion": source["apiVersion"], "kind": source["kind"], "metadata": kept}
    written = (source.get("spec") or {}).get("accessFrom")
    return {**found, "spec": {"accessFrom": within_budget(written)}} if written is not None else found


def kept_grant(grant: Object) -> Object:
    """The same of a SourceGrant."""
    spec = grant["spec"]
    return {**grant, "spec": {**spec, "accessFrom": within_budget(spec.get("accessFrom"))}}


def name_of(source: Object) -> str:
    """The key of a source in the index."""
    return str(NamedObject(source["kind"], source["metadata"]["namespace"], source["metadata"]["name"]))


def namespace_in(name: str) -> str:
    """The namespace in a key of the index."""
    return name.split("/")[1]


def kind_in(name: str) -> str:
    """The kind in a key of the index."""
    return name.split("/", maxsplit=1)[0]


def name_in(name: str) -> str:
    """The name of the source in a key of the index."""
    return name.split("/")[2]


def in_order(objects: Iterable[Object]) -> list[Object]:
    """The oldest first: what others have found before stays."""
    return sorted(objects, key=lambda each: (each["metadata"].get("creationTimestamp") or "", each["metadata"]["name"]))


def own_acls(source: Object, settable: Collection[str]) -> Iterator[Acl]:
    """What a source itself says: its field, and its annotation (carriers a and b)."""
    written = (source.get("spec") or {}).get("accessFrom")
    text = annotations_of(source).get(ACCESS_FROM)
    places = [place for place, said in ((FIELD, written), (ANNOTATION, text)) if said is not None]
    if places and is_made_for_another(source):
        why = f"{places[0]} does not count: it came with the HelmRelease of another namespace; write a SourceGrant with sourceRef"
        yield Acl(problems=(AclProblem("InvalidACL", why),))
        return
    if written is not None:
        yield acl_of(written, settable, FIELD)
    if text is not None and source["kind"] == IMAGE_REPOSITORY:
        why = f"{ANNOTATION} does not count: Flux opens an ImageRepository only by {FIELD}; write it there"
        yield Acl(problems=(AclProblem("InvalidACL", why),))
    elif text is not None:
        yield acl_of_text(text, settable, ANNOTATION)


class _Beside:
    """The sources of one namespace, found by what SourceGrants say; how many may still be looked at."""

    def __init__(self) -> None:
        self.by_name: dict[str, Object] = {}
        self._by_label: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        self._by_kind: dict[str, list[str]] = defaultdict(list)
        self.left = limits.GRANT_MATCHES

    def add(self, name: str, source: Object) -> None:
        self.by_name[name] = source
        if is_made_for_another(source):
            return  # its labels are the word of a release elsewhere (f-118)
        self._by_kind[source["kind"]].append(name)
        for key, value in labels_of(source).items():
            self._by_label[source["kind"], key, value].append(name)

    def selected_by(self, grant: Object) -> list[str] | None:
        """The sources that a SourceGrant is for (carrier c), by name; None: too many would have to be looked at."""
        spec = grant["spec"]
        if (reference := spec.get("sourceRef")) is not None:
            name = str(NamedObject(reference["kind"], grant["metadata"]["namespace"], reference["name"]))
            return [name] if name in self.by_name else []
        kind, labels = spec["sourceSelector"]["kind"], spec["sourceSelector"].get("matchLabels") or {}
        lists = [self._by_label.get((kind, key, value), []) for key, value in labels.items()]
        candidates = min(lists, key=len, default=self._by_kind.get(kind, []))
        self.left -= len(candidates)
        if self.left < 0:
            return None
        return [name for name in candidates if labels_of(self.by_name[name]).items() >= labels.items()]


def carried(places: Places, profile: Profile) -> Carried:
    """What the carriers come to, whatever order they were read in (f-79)."""
    found, settable = Carried(), profile.tenant_label_keys
    beside: dict[str, _Beside] = defaultdict(_Beside)
    read, write = _United(), _United()
    for source in places.sources:
        name = name_of(source)
        beside[source["metadata"]["namespace"]].add(name, source)
        for acl in own_acls(source, settable):
            found.source_problems[name] += [*acl.problems, *_unite(name, (read, write), acl)]
    for grant in in_order(each for each in places.grants if not is_terminating(each)):
        uid, spec = grant["metadata"]["uid"], grant["spec"]
        kind = (spec.get("sourceRef") or spec["sourceSelector"])["kind"]
        problems = found.grant_problems[uid]
        names = beside[grant["metadata"]["namespace"]].selected_by(grant)
        if names is None:
            text = "spec.sourceSelector: the SourceGrants of this namespace select too many sources: select fewer"
            problems.append(AclProblem("TooLarge", text))
        elif kind not in places.served:
            text = f"this cluster serves no {kind}: install the controllers of Flux that do, or name another kind"
            problems.append(AclProblem("SourceKindNotServed", text))
        elif not names:
            problems.append(AclProblem("SourceNotFound", _not_found(spec, kind)))
        acl = acl_of(spec["accessFrom"], settable, FIELD)
        problems += acl.problems
        classes = [into for access, into in ((READ, read), (WRITE, write)) if access in spec["access"]]
        for name in names or ():
            problems += _unite(name, classes, acl)
        found.selected[uid] = names or []
    for name in read.selectors.keys() | write.selectors.keys():
        texts = GrantTexts(*(text_of_selectors(each.selectors.get(name, ())) for each in (read, write)))
        if any(texts):
            found.texts[name] = texts
    return found


def _not_found(spec: Object, kind: str) -> str:
    if (reference := spec.get("sourceRef")) is not None:
        return f"spec.sourceRef: there is no {kind} {reference['name']} in this namespace; correct the name, or make it"
    return f"spec.sourceSelector: no {kind} of this namespace has these labels; correct them, or label one"


class _United:
    """The selectors of each source for one class, and how long their text is at most."""

    def __init__(self) -> None:
        self.selectors: dict[str, set[AccessSelector]] = defaultdict(set)
        self._size: dict[str, int] = defaultdict(int)

    def add(self, name: str, selectors: frozenset[AccessSelector]) -> bool:
        """Add all of them, if they fit in the budget of a source."""
        new = selectors - self.selectors[name]
        size = self._size[name] + sum(len(key) + len(value) + 2 for each in new for key, value in each)
        if size > limits.ACCESS_FROM_BYTES:
            return False
        self.selectors[name] |= new
        self._size[name] = size
        return True


def _unite(name: str, classes: Iterable[_United], acl: Acl) -> list[AclProblem]:
    """Add what a carrier says to a source, for each class all of it or nothing."""
    refusing = [into for into in classes if not into.add(name, acl.selectors)]
    if not refusing:
        return []
    most = f"{limits.ACCESS_FROM_BYTES:,} bytes"
    return [AclProblem("TooLarge", f"{FIELD}: with what else is granted on {name} it is more than {most}: grant less")]
