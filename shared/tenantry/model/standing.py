"""What is reported for as long as it is true: a condition of ours on an object, or a Warning where it has none for us to write.

Such a Warning is known by its name, so the same reported twice is there once, until Kubernetes forgets it (after an hour,
usually); while it is still true the next sweep records it again.
"""

from __future__ import annotations

from tenantry.model import limits
from tenantry.model.conditions import condition, find_condition
from tenantry.model.difference import entries_of
from tenantry.model.identifiers import digest
from tenantry.model.kinds import EVENT, Kind, Object, key_of, name_metadata, object_of
from tenantry.model.names import field_manager
from tenantry.model.plan import Apply, KubernetesEvent


def standing_condition(
    on: Object, kind: Kind, type_: str, problem: tuple[str, str] | None, *, manager: str, over: tuple[str, str]
) -> list[Apply]:
    """A condition that is ``False`` while there is a problem, with a Warning; afterwards none, with an Event that it is over.

    Args:
        on: the object as observed, or without uid what is there by the time of the write.
        kind: of the object.
        type_: of the condition.
        problem: reason and message, or None.
        manager: the field manager that owns the condition.
        over: reason and message of the Event.
    """
    body = object_of(kind, name_metadata(on))
    if problem is None:
        if find_condition(on, type_) is None or not entries_of(on, manager, "status"):
            return []
        return [Apply(kind, body, on, subresource="status", event=KubernetesEvent(on, *over, "Report"))]
    body["status"] = {"conditions": [condition(type_, "False", *problem)]}
    live = on if "uid" in on["metadata"] else None
    return [Apply(kind, body, live, subresource="status", event=KubernetesEvent(on, *problem, "Report", "Warning"))]


def warning_name(about: Object, reason: str, same: str) -> str:
    """The name of the Event: of one object, one reason, and what makes it the same warning."""
    return f"{about['metadata']['name'][:200]}.{digest(about['metadata']['uid'], reason, same, length=16)}"


def event_namespace(about: Object) -> str:
    """The namespace of Events on an object: its own, or ``default`` for what has none."""
    return str(about["metadata"].get("namespace") or "default")


def warning(
    about: Object, name: str, reason: str, note: str, live: Object | None, now: str, *, by: tuple[str, str, str]
) -> Apply:
    """The Event on an object; what stands is left as it is, in its first words.

    Args:
        name: of `warning_name`.
        live: the Event as observed.
        now: ``metav1.MicroTime`` for a new one.
        by: function, unit, and the action that did not succeed.
    """
    function, unit, action = by
    key = key_of(about)
    regarding = {"apiVersion": key.api_version, "kind": key.kind, **name_metadata(about), "uid": about["metadata"]["uid"]}
    parts = {
        "eventTime": now if live is None else live.get("eventTime"),
        "reportingController": f"tenantry.dev/{function}",
        "reportingInstance": unit,
        "action": action,
        "reason": reason,
        "regarding": regarding,
        "note": note.encode()[: limits.NOTE_BYTES].decode(errors="ignore") if live is None else live.get("note"),
        "type": "Warning",
    }
    body = object_of(EVENT, {"name": name, "namespace": event_namespace(about)}, **parts)
    return Apply(EVENT, body, live, create_only=True, manager=field_manager(function))
