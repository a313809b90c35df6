"""Giving fields back: who owns what we have put right, so that its real owner never meets us in a conflict.

Server-side apply refuses to change a field that another manager owns.  Helm 4 upgrades by server-side apply, so whoever
puts a field of a release back may not keep it: the entry that the API server made for our apply is merged into the one of the
manager that the field is of.  Giving a field up by a second apply would delete it instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from tenantry.model.difference import entries_of, fields_of, has_field
from tenantry.model.kinds import Object


@dataclass(frozen=True, slots=True)
class NewManager:
    """Who owns the fields that we have put back: the manager that owns the field at ``sign``, else a new entry.

    Whoever wrote Helm's marks is Helm, whatever its program is called.
    """

    sign: tuple[str, ...]
    manager: str
    operation: str


def handed_back(live: Object, ours: str, new: NewManager) -> list[Object]:
    """``managedFields`` in which what we own belongs to the new manager, and we own nothing."""
    entries: list[Object] = list(live["metadata"].get("managedFields") or ())
    mine = entries_of(live, ours)
    others = [entry for entry in entries if entry not in mine]
    for entry in mine:
        owner = _entry_of(others, new)
        if owner is None:
            others.append({**entry, "manager": new.manager, "operation": new.operation})
        elif owner.get("apiVersion") == entry.get("apiVersion"):
            others[others.index(owner)] = {**owner, "fieldsV1": fields_of(owner, entry)}
    return others


def _entry_of(entries: list[Object], new: NewManager) -> Object | None:
    plain = [entry for entry in entries if not entry.get("subresource")]
    marked = [entry for entry in plain if has_field(entry, *new.sign)]
    named = [entry for entry in plain if (entry.get("manager"), entry.get("operation")) == (new.manager, new.operation)]
    return next(iter([*marked, *named]), None)
