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
    """What is kept of each object of some lists: the object that another list had, else itself with parts that others have.

    >>> one = OneCopy()
    >>> a, b = ({"metadata": {"uid": uid, "resourceVersion": "1", "labels": {"x": "y"}}} for uid in "ab")
    >>> one(a)["metadata"]["labels"] is one(b)["metadata"]["labels"]
    True

    Nobody may change what it returns.
    """

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], Object] = {}
        self._parts: dict[bytes, Any] = {}

    def __call__(self, item: Object) -> Object:
        """The object to be kept for this one."""
        if type(item) is not dict:
            return item  # it says more than its contents
        metadata = item["metadata"]
        identity = metadata.get("uid", ""), metadata.get("resourceVersion", "")
        if all(identity):
            before = self._objects.setdefault(identity, item)
            if before is not item and before == item:
                return before
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
