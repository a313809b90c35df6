"""What of a tenant's manifests its account may not apply: cluster-scoped objects, and other namespaces' (2.4, f-44).  Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, Object
from tenantry.model.manifests import NO_KIND, NO_OBJECT, NotReadable, load_yaml, read_manifest

KUSTOMIZE = "kustomize.config.k8s.io/"
"""Of this group are instructions, which are not applied themselves."""
INSTRUCTIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""The names of files that hold instructions for all others beside them."""

GroupKind = tuple[str, str]
"""apiVersion and kind."""


class Undeliverable(NamedTuple):
    """A document that will not be applied, and why."""

    file: str
    kind: str
    namespace: str
    name: str
    why: str


class Delivery(NamedTuple):
    """What files hold: objects, each with its file, and what is wrong before anything else is judged."""

    objects: tuple[tuple[str, Object], ...]
    problems: tuple[Undeliverable, ...]

    @property
    def kinds(self) -> frozenset[GroupKind]:
        """The kinds of the objects."""
        return frozenset((each["apiVersion"], each["kind"]) for _, each in self.objects)


def delivery_of(texts: Mapping[str, str], namespaces: Collection[str]) -> Delivery:
    """The objects in files, given by path.  Documents that are no objects, such as values and patches, are passed over."""
    objects: list[tuple[str, Object]] = []
    problems: list[Undeliverable] = []
    for file, text in texts.items():
        if file.rpartition("/")[2] in INSTRUCTIONS:
            problems += _instructed(file, text, namespaces)
            continue
        found = read_manifest(text)
        objects += [(file, each) for each in found.objects if not each["apiVersion"].startswith(KUSTOMIZE)]
        unreadable = (each for each in found.problems if each.why not in (NO_OBJECT, NO_KIND))
        problems += [Undeliverable(file, "", "", "", f"{each}, so it cannot be judged") for each in unreadable]
    return Delivery(tuple(objects), tuple(problems))


def _instructed(file: str, text: str, namespaces: Collection[str]) -> Iterator[Undeliverable]:
    """Instructions may put everything into another namespace."""
    try:
        found: Any = load_yaml(text)
    except NotReadable as error:
        yield Undeliverable(file, "", "", "", f"{error}, so it cannot be judged")
        return
    target = found.get("namespace") if isinstance(found, dict) else None
    if target and target not in namespaces:
        yield Undeliverable(file, "", str(target), "", f"puts everything into namespace {target}, which is not the tenant's")


def undeliverable(delivery: Delivery, scopes: Mapping[GroupKind, bool], namespaces: Collection[str]) -> list[Undeliverable]:
    """What will not be applied.

    ``scopes`` says of each kind that is served whether it is namespaced; what CRDs among the objects will bring is known besides.
    """
    known = {**_brought(each for _, each in delivery.objects), **scopes}
    return [*delivery.problems, *_judged(delivery, known, namespaces)]


def _judged(delivery: Delivery, known: Mapping[GroupKind, bool], namespaces: Collection[str]) -> Iterator[Undeliverable]:
    for file, each in delivery.objects:
        metadata = each["metadata"]
        namespace = metadata.get("namespace") or ""
        named = (file, each["kind"], namespace, metadata["name"])
        namespaced = known.get((each["apiVersion"], each["kind"]))
        if namespaced is None:
            yield Undeliverable(*named, f"{each['apiVersion']} {each['kind']} is not served by this cluster")
        elif not namespaced:
            yield Undeliverable(*named, "is cluster-scoped: the tenant's account has rights in its namespaces only")
        elif namespace and namespace not in namespaces:
            yield Undeliverable(*named, f"is for namespace {namespace}, which is not the tenant's")


def _brought(objects: Iterable[Object]) -> dict[GroupKind, bool]:
    """The kinds of CRDs, which will be served when these are there."""
    found = {}
    for each in objects:
        spec = each.get("spec")
        if (each["apiVersion"], each["kind"]) != CUSTOM_RESOURCE_DEFINITION.gvk or not isinstance(spec, dict):
            continue
        kind = (spec.get("names") or {}).get("kind") if isinstance(spec.get("names"), dict) else None
        for version in spec.get("versions") or () if isinstance(spec.get("versions"), list) else ():
            if isinstance(version, dict):
                found[f"{spec.get('group')}/{version.get('name')}", str(kind)] = spec.get("scope") == "Namespaced"
    return found
