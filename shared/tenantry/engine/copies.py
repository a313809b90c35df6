"""Equal parts of many objects, kept once.

A sweep holds whole lists.  Most of what they hold is the same: who owns which fields, labels, role and subjects of
the bindings of one owner; and an object that two lists of the sweep have.
"""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from tenantry.model.kinds import Object

_PARTS = ("roleRef", "subjects")
_METADATA = ("labels", "annotations", "ownerReferences")


class OneCopy:
    """What is kept of the objects of some lists.  Nobody may change what it returns.

    >>> one = OneCopy()
    >>> a, b = ({"metadata": {"uid": uid, "resourceVersion": "1", "labels": {"x": "y"}}} for uid in "ab")
    >>> one.with_shared_parts(a)["metadata"]["labels"] is one.with_shared_parts(b)["metadata"]["labels"]
    True
    """

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], Object] = {}
        self._parts: dict[bytes, Any] = {}

    def of_several_lists(self, item: Object) -> Object:
        """The object that another list had, where that is the same, else this one as `with_shared_parts` leaves it."""
        metadata = item["metadata"]
        before = self._objects.setdefault((metadata["uid"], metadata["resourceVersion"]), item)
        return before if before is not item and before == item else self.with_shared_parts(item)

    def with_shared_parts(self, item: Object) -> Object:
        """The object, with parts that others have."""
        metadata = item["metadata"]
        for entry in metadata.get("managedFields") or ():
            self._share(entry, "fieldsV1")
        for name in _METADATA:
            self._share(metadata, name)
        for name in _PARTS:
            self._share(item, name)
        return item

    def _share(self, of: dict[str, Any], name: str) -> None:
        part = of.get(name)
        if part:
            of[name] = self._parts.setdefault(to_json(part), part)
