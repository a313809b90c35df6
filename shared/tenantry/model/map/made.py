"""From lists to a map: which namespace is whose, what is in it, who reaches it, and what is wrong there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.names import ACCESS_INDEX
from tenantry.model.flux.tenant import PLATFORM_PREFIX
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    PROJECT_HELM_CHART,
    ROLE_BINDING,
    Kind,
    Object,
    annotations_of,
    is_terminating,
    labels_of,
)
from tenantry.model.limits import few
from tenantry.model.map.items import count_text, note_of
from tenantry.model.map.nodes import GROUPS, OWNERS, Node
from tenantry.model.map.problems import ToldProblem, problems_in
from tenantry.model.map.seen import READ_ALWAYS, MapSeen, named_namespaces
from tenantry.model.names import PROJECT_ID, SYSTEM_NAMESPACE
from tenantry.model.projects import Place, place_of
from tenantry.model.rbac import subject_of

_EVERY_OF: Mapping[str, str] = {"PaasConfig": "paas"}
"""What concerns all namespaces of a type of owner, and not all of the cluster."""
_SYSTEM = "system:"
EVERYWHERE = "*"

OwnerName = tuple[str, str]


@dataclass(frozen=True)
class Map:
    """What stands: ``groups`` are the roots of the tree, ``problems`` are in order of their urgency.

    ``unread`` says by kind why something was not read: then nothing here is the whole.
    """

    groups: tuple[Node, ...]
    problems: tuple[ToldProblem, ...]
    unread: Mapping[str, str]
    missing: tuple[str, ...]
    people: int
    namespaces: int

    @property
    def errors(self) -> tuple[ToldProblem, ...]:
        """The problems that are no warnings."""
        return tuple(each for each in self.problems if not each.warns)

    def find(self, kind: str, name: str) -> Node | None:
        """An owner (``project``, ``paas``, ``tenant``) or a ``namespace`` by its name."""
        wanted = NAMESPACE.kind if kind == "namespace" else kind
        return next((node for group in self.groups for node in group.walk() if (node.kind, node.name) == (wanted, name)), None)

    def names(self) -> list[str]:
        """All that `find` finds, as ``kind/name``."""
        found = dict.fromkeys(
            f"{'namespace' if node.kind == NAMESPACE.kind else node.kind}/{node.name}"
            for group in self.groups
            for node in group.walk()
            if node.kind in (*OWNERS, NAMESPACE.kind)
        )
        return list(found)

    @cached_property
    def reach(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """Whom bindings name, with (namespace, role) of each; the namespace is `EVERYWHERE` for the whole cluster."""
        found: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        for group in self.groups:
            for node in group.walk():
                for subject in node.subjects:
                    found[subject].add((node.namespace or EVERYWHERE, node.role))
        return {subject: tuple(sorted(found[subject])) for subject in sorted(found)}

    def lacks(self) -> Object:
        """What was not read, as JSON has it: it is first in each document, and empty where all was read."""
        return {
            **({"unread": dict(self.unread)} if self.unread else {}),
            **({"notServed": list(self.missing)} if self.missing else {}),
        }

    def document(self) -> Object:
        """As JSON has it."""
        return {
            **self.lacks(),
            "people": self.people,
            "namespaces": self.namespaces,
            "problems": [each.document() for each in self.problems],
            "groups": [each.document() for each in self.groups],
            "reach": {
                subject: [{"namespace": namespace, "role": role} for namespace, role in found]
                for subject, found in self.reach.items()
            },
        }


def map_of(seen: MapSeen) -> Map:
    """The map of what was read."""
    return _Maker(seen).made()


class _Maker:
    """Indexes over the lists, made once, and the nodes that follow from them."""

    def __init__(self, seen: MapSeen) -> None:
        self._seen = seen
        self._foreign = {each.kind for each in seen.tells if each.reasons}
        self._tells = {
            kind: tuple(each for each in seen.tells if each.kind == kind) for kind in {each.kind for each in seen.tells}
        }
        self._names_by_uid = {
            each["metadata"]["uid"]: each["metadata"]["name"]
            for mark in seen.marks
            for kind in mark.uid_of
            for each in seen.of(kind)
        }
        self._namespaces = {each["metadata"]["name"]: each for each in seen.of(NAMESPACE)}
        self._places = {name: place_of(each, seen.config) for name, each in self._namespaces.items()}
        self._owners = {name: tuple(self._owners_of(name)) for name in self._namespaces}
        self._of_owner: defaultdict[OwnerName, list[str]] = defaultdict(list)
        for name in sorted(self._namespaces):
            for owner in self._owners[name]:
                self._of_owner[owner].append(name)
        self._bindings: defaultdict[str, list[Object]] = defaultdict(list)
        for each in seen.of(ROLE_BINDING):
            if not _is_kubernetes_own(each):
                self._bindings[each["metadata"]["namespace"]].append(each)
        self._subjects = {
            name: frozenset(str(subject_of(subject, name)) for each in found for subject in each.get("subjects") or ())
            for name, found in self._bindings.items()
            if not self._is_system(name)
        }
        self._problems: dict[tuple[str, str, str, str], tuple[ToldProblem, ...]] = {}
        self._bound_by = self._namespaces_by_uid()
        self._of_chart: defaultdict[str, list[tuple[Kind, Object]]] = defaultdict(list)
        self._inside: defaultdict[str, list[tuple[Kind, Object]]] = defaultdict(list)
        self._sort_objects()
        self._sources = self._shared_sources()
        self._declared = {type_: self._declared_by(type_) for type_ in OWNERS}

    # -- whose is what ---------------------------------------------------------------------------------

    def _marks(self, obj: Object) -> Iterator[OwnerName]:
        """By its labels, whose an object is."""
        labels, annotations = labels_of(obj), annotations_of(obj)
        if not labels and not annotations:
            return
        for mark in self._seen.marks:
            value = (annotations if mark.annotation else labels).get(mark.key)
            if value and mark.uid_of:
                value = self._names_by_uid.get(value)
            if value:
                yield mark.owner, value

    def _owners_of(self, name: str) -> Iterator[OwnerName]:
        namespace, place = self._namespaces[name], self._places[name]
        project = labels_of(namespace).get(PROJECT_ID, "") if place.is_a == "release" else place.project
        if project and place.is_a != "system":
            yield "project", project
        yield from dict.fromkeys(each for each in self._marks(namespace) if each[0] in OWNERS[1:])

    def _is_system(self, name: str) -> bool:
        """Whether a namespace is the cluster's or the functions' own: who is bound there is nobody whom a problem concerns."""
        is_a = self._places[name].is_a if name in self._places else ""
        return is_a == "system" or name.startswith(PLATFORM_PREFIX) or name in ("default", SYSTEM_NAMESPACE)

    def _chart_of(self, obj: Object) -> str:
        return next((name for owner, name in self._marks(obj) if owner == "chart"), "")

    def _namespaces_by_uid(self) -> dict[str, set[str]]:
        """By the uid of a cluster-scoped object that bindings are made for: their namespaces."""
        keys = [mark.key for mark in self._seen.marks if mark.uid_of]
        found: defaultdict[str, set[str]] = defaultdict(set)
        for each in self._seen.of(ROLE_BINDING):
            for key in keys:
                if uid := labels_of(each).get(key):
                    found[uid].add(each["metadata"]["namespace"])
        return found

    def _sort_objects(self) -> None:
        charts = {f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in self._seen.of(PROJECT_HELM_CHART)}
        for kind, found in self._seen.objects.items():
            if kind in READ_ALWAYS or not kind.namespaced:
                continue
            for each in found:
                if kind in self._foreign and not self._of(kind, each):
                    continue  # another system's: only what of ours is wrong with it is shown
                chart = self._chart_of(each) if kind != PROJECT_HELM_CHART else ""
                (self._of_chart[chart] if chart in charts else self._inside[each["metadata"]["namespace"]]).append((kind, each))
        for namespace in self._namespaces.values():
            if (chart := self._chart_of(namespace)) in charts:
                self._of_chart[chart].append((NAMESPACE, namespace))

    def _shared_sources(self) -> dict[str, list[Node]]:
        found: defaultdict[str, list[Node]] = defaultdict(list)
        for index in self._seen.of(ACCESS_INDEX):
            entries = AccessEntries.of(index)
            for access, granted in (("read", entries.read), ("write", entries.write)):
                for named, text in sorted(granted.items()):
                    kind, _, rest = named.partition("/")
                    namespace, _, name = rest.partition("/")
                    who = few(["every namespace" if each == "*" else each for each in text.split("|")], between="; ")
                    found[namespace].append(Node("source", f"{kind}/{name}", namespace, f"{access} for {who}"))
        return found

    # -- whom it concerns ------------------------------------------------------------------------------

    def _concerned(self, kind: Kind, obj: Object) -> set[str]:
        name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace") or ""
        if kind == NAMESPACE:
            namespace = name
        elif chart := self._chart_of(obj):
            namespace = chart.partition("/")[0]
        named = set(named_namespaces(obj))
        if namespace:
            whole = self._places.get(namespace, Place("system")).is_a == "registration"
            of_owners = [self._of_owner[owner] for owner in self._owners.get(namespace, ())] if whole else []
            return named.union({namespace}, *of_owners)
        if kind.kind.lower() in OWNERS:
            return named.union(self._of_owner[kind.kind.lower(), name])
        named |= self._bound_by.get(obj["metadata"].get("uid", ""), set())
        if named:
            return named
        if (type_ := _EVERY_OF.get(kind.kind)) is not None:
            return {place for owner, places in self._of_owner.items() if owner[0] == type_ for place in places}
        return set(self._namespaces)

    def _of(self, kind: Kind, obj: Object) -> tuple[ToldProblem, ...]:
        """The problems of an object, worked out once."""
        metadata = obj["metadata"]
        key = kind.api_version, kind.kind, metadata.get("namespace") or "", metadata["name"]
        if key not in self._problems:
            self._problems[key] = problems_in(
                obj,
                kind,
                self._tells.get(kind, ()),
                self._owner_text(kind, obj),
                lambda: self._concerned(kind, obj),
                self._subjects,
            )
        return self._problems[key]

    def _owner_text(self, kind: Kind, obj: Object) -> str:
        name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace") or ""
        if kind.kind.lower() in OWNERS:
            return f"{kind.kind.lower()}/{name}"
        if chart := self._chart_of(obj):
            namespace = chart.partition("/")[0]
        owner = next(iter(self._owners.get(name if kind == NAMESPACE else namespace, ())), None)
        return "/".join(owner) if owner else ""

    # -- nodes -----------------------------------------------------------------------------------------

    def made(self) -> Map:
        """The whole map."""
        owned: list[Node] = []
        for type_, title in GROUPS.items():
            names = sorted({name for owner, name in self._of_owner if owner == type_} | self._declared[type_].keys())
            if names:
                nodes = tuple(self._owner(type_, name) for name in names)
                owned.append(Node("group", title, note=str(len(names)), children=nodes))
        free = [name for name in sorted(self._namespaces) if not self._owners[name] and not self._is_in_chart(name)]
        lone = [name for name in free if not self._is_system(name)]
        system = [name for name in free if self._is_system(name)]
        for title, names in (("namespaces without owner", lone), ("namespaces of the system", system)):
            if names:
                children = tuple(self._namespace(name) for name in names)
                owned.append(Node("group", title, note=str(len(names)), children=children))
        unread = sorted(self._inside.keys() - self._namespaces.keys())
        if unread:
            children = tuple(self._contents(name) for name in unread)
            owned.append(Node("group", "namespaces that could not be read", note=str(len(unread)), children=children))
        if cluster := tuple(self._cluster()):
            owned.append(Node("group", "cluster", note=str(len(cluster)), children=cluster))
        for kind, found in self._seen.objects.items():
            for each in found:
                self._of(kind, each)  # also of what is in no tree
        people = frozenset().union(*self._subjects.values())
        problems = sorted((each for found in self._problems.values() for each in found), key=lambda each: each.urgency)
        seen = self._seen
        return Map(tuple(owned), tuple(problems), seen.unread, seen.missing, len(people), len(self._namespaces))

    def _declared_by(self, type_: str) -> dict[str, tuple[Kind, Object]]:
        """The objects that owners of a type are declared by: Paas and Tenants."""
        return {
            each["metadata"]["name"]: (kind, each)
            for kind, found in self._seen.objects.items()
            if not kind.namespaced and kind.kind.lower() == type_
            for each in found
        }

    def _owner(self, type_: str, name: str) -> Node:
        places = self._of_owner[type_, name]
        people = frozenset().union(*(self._subjects.get(place, frozenset()) for place in places))
        notes = [f"{count_text(places, 'namespace', 'namespaces')}, {count_text(people, 'person', 'people')}"]
        problems: tuple[ToldProblem, ...] = ()
        declared = self._declared[type_]
        if name in declared:
            kind, obj = declared[name]
            notes.append(note_of(obj))
            problems = self._of(kind, obj)
        elif type_ != "project" and any(kind.kind.lower() == type_ for kind in self._seen.objects):
            notes.append("its namespaces are there, and it is not")
        shown = [place for place in places if not (type_ == "project" and self._is_in_chart(place))]
        shown.sort(key=lambda place: (self._places[place].is_a != "registration", place))
        children = tuple(self._namespace(place) for place in shown)
        return Node(type_, name, note="; ".join(filter(None, notes)), problems=problems, children=children)

    def _is_in_chart(self, name: str) -> bool:
        """Whether a namespace is shown below the ProjectHelmChart whose release it is for."""
        return self._chart_of(self._namespaces[name]) in self._of_chart

    def _namespace(self, name: str) -> Node:
        namespace, place = self._namespaces[name], self._places[name]
        known = place.is_a if place.is_a in ("registration", "release") else ""
        notes = (known, "being deleted" if is_terminating(namespace) else "")
        return self._contents(name, ", ".join(filter(None, notes)), self._of(NAMESPACE, namespace))

    def _contents(self, name: str, note: str = "", problems: tuple[ToldProblem, ...] = ()) -> Node:
        items = [self._item(kind, each) for kind, each in self._inside.get(name, ())]
        children = (*sorted(items, key=_by_kind), *self._sources.get(name, ()), *self._binding_nodes(name))
        return Node(NAMESPACE.kind, name, note=note, problems=problems, children=children)

    def _binding_nodes(self, name: str) -> Iterator[Node]:
        for each in sorted(self._bindings.get(name, ()), key=lambda each: str(each["metadata"]["name"])):
            yield self._binding(ROLE_BINDING, each)

    def _binding(self, kind: Kind, obj: Object) -> Node:
        metadata, ref = obj["metadata"], obj.get("roleRef") or {}
        namespace = metadata.get("namespace") or ""
        subjects = tuple(str(subject_of(each, namespace)) for each in obj.get("subjects") or ())
        by = next(self._marks(obj), None)
        role = f"{ref.get('kind', '')}/{ref.get('name', '')}"
        return Node(kind.kind, metadata["name"], namespace, role=role, by="/".join(by) if by else "", subjects=subjects)

    def _item(self, kind: Kind, obj: Object) -> Node:
        metadata = obj["metadata"]
        namespace = metadata.get("namespace") or ""
        below: Iterable[Node] = ()
        if kind == PROJECT_HELM_CHART:
            found = self._of_chart.get(f"{namespace}/{metadata['name']}", ())
            below = (
                *sorted((self._item(each, it) for each, it in found if each != NAMESPACE), key=_by_kind),
                *(self._namespace(it["metadata"]["name"]) for each, it in found if each == NAMESPACE),
            )
        note = note_of(obj) if kind not in self._foreign else ""
        return Node(kind.kind, metadata["name"], namespace, note=note, problems=self._of(kind, obj), children=tuple(below))

    def _cluster(self) -> Iterator[Node]:
        """What belongs to no namespace and no owner: scopes, configurations, and rights in all of the cluster."""
        for kind, found in self._seen.objects.items():
            if kind.namespaced or kind in READ_ALWAYS or kind.kind.lower() in OWNERS:
                continue
            yield from (self._item(kind, each) for each in sorted(found, key=lambda each: str(each["metadata"]["name"])))
        for each in sorted(self._seen.of(CLUSTER_ROLE_BINDING), key=lambda each: str(each["metadata"]["name"])):
            if not _is_kubernetes_own(each) and not _is_of_functions(each):
                yield self._binding(CLUSTER_ROLE_BINDING, each)


def _is_kubernetes_own(binding: Object) -> bool:
    return str(binding["metadata"]["name"]).startswith(_SYSTEM)


def _is_of_functions(binding: Object) -> bool:
    """Whether a binding is for the accounts of the functions alone: rights of an installation, not of a tenant."""
    subjects = binding.get("subjects") or ()
    return bool(subjects) and all(each.get("namespace") == SYSTEM_NAMESPACE for each in subjects)


def _by_kind(node: Node) -> tuple[str, str]:
    return node.kind, node.name
