"""Objects of a list: which of them are asked for, and in what versions they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tenantry.model.kinds import Object, labels_of


def selector(labels: Mapping[str, str]) -> str:
    """The equality label selector for a mapping; an empty value selects by presence of the key."""
    return ",".join(f"{name}={value}" if value else name for name, value in sorted(labels.items()))


def matches(obj: Object, labels: Mapping[str, str]) -> bool:
    """Whether an object has these labels; an empty value asks for presence only."""
    found = labels_of(obj)
    return all(name in found and (not value or found[name] == value) for name, value in labels.items())


def versions_in(objects: Iterable[Object]) -> frozenset[tuple[str, str]]:
    """(uid, resourceVersion) of these objects."""
    return frozenset((each["metadata"]["uid"], each["metadata"]["resourceVersion"]) for each in objects)


def fits(item: Object, namespace: str, labels: Mapping[str, str], name: str) -> bool:
    """Whether an object is in a namespace, has labels and a name, as far as they are asked for."""
    metadata = item["metadata"]
    return (
        (not namespace or metadata.get("namespace") == namespace)
        and (not name or metadata["name"] == name)
        and matches(item, labels)
    )
