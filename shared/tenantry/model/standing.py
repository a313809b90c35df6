"""Standing warnings: Events that say something of an object which has no condition for us to write.

Such an Event is known by its name, so the same said twice is there once, until Kubernetes forgets it (after an hour, usually);
while it is still true the next sweep says it again.
"""

from __future__ import annotations

from tenantry.model import limits
from tenantry.model.identifiers import digest
from tenantry.model.kinds import EVENT, Object, key_of
from tenantry.model.names import field_manager
from tenantry.model.plan import Apply


def warning_name(about: Object, reason: str, said: str) -> str:
    """The name of the Event: of one object, one reason, and what makes it the same warning."""
    return f"{about['metadata']['name'][:200]}.{digest(about['metadata']['uid'], reason, said, length=16)}"


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
    where = {"namespace": key.namespace} if key.namespace else {}
    reference = {"apiVersion": key.api_version, "kind": key.kind, **where, "name": key.name}
    body: Object = {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {"name": name, "namespace": event_namespace(about)},
        "eventTime": now if live is None else live.get("eventTime"),
        "reportingController": f"tenantry.dev/{function}",
        "reportingInstance": unit,
        "action": action,
        "reason": reason,
        "regarding": {**reference, "uid": about["metadata"]["uid"]},
        "note": note.encode()[: limits.NOTE_BYTES].decode(errors="ignore") if live is None else live.get("note"),
        "type": "Warning",
    }
    return Apply(EVENT, body, live, create_only=True, manager=field_manager(function))
