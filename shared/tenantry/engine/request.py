"""What an event asks for: a key to look at, an owner to run, a sweep, or nothing of ours.

Type, source and subject decide nothing beyond "is this an event of ours".  Names are taken from the
payload's metadata, else from the payload as a reference, else from the extension attributes, because
header values cannot carry every legal name unharmed.  Missing and empty namespace are the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tenantry.engine.last_runs import States, ended, state_in
from tenantry.model.decision import Cause
from tenantry.model.event import APISERVER_TYPE_PREFIX, PING_TYPE, RECONCILE_REQUESTED_TYPE, Event
from tenantry.model.kinds import NAMESPACE, Key, Object, can_be_name


@dataclass(frozen=True, slots=True)
class Look:
    """Look at this key.  ``hint``: labels that the payload had, for objects that are gone."""

    key: Key
    hint: Mapping[str, str] = field(default_factory=dict)
    told: Mapping[str, Hashable] = field(default_factory=dict)
    """By unit the state in which the payload had the object: where it is known already, there is nothing to look at."""


@dataclass(frozen=True, slots=True)
class RunOwner:
    """Run one owner of one unit: the second level of a fan-out."""

    unit: str
    owner: str
    cause: Cause | None = None
    """What led to it, as far as the event says."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Look at every owner."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """Nothing of ours."""


class MalformedRequest(ValueError):
    """An event of ours that names nothing usable; the message has no payload in it."""


Request = Look | RunOwner | Sweep | Ignore


def whose(kind: str, namespace: str, name: str, labels: Mapping[str, str], project_label: str) -> str:
    """Whom an object belongs to: a Namespace to its project, where it has one; what is in a namespace to that; others themselves.

    Who makes many projects with several namespaces each is many parties, and each project one: a namespace that joins another
    project does not wait behind them.
    """
    project = labels.get(project_label, "") if project_label and kind == NAMESPACE.kind else ""
    return project or namespace or name


def party_of(request: Request, project_label: str = "") -> str:
    """For whom the requests to the API server are that it takes (`tenantry.api.turns`)."""
    match request:
        case Look():
            key = request.key
            return whose(key.kind, key.namespace, key.name, request.hint, project_label)
        case RunOwner():
            return request.owner
    return "*"


def request_of(event: Event, function: str, states: Mapping[str, States] = MappingProxyType({})) -> Request:
    """Interpret an event for a function; ``states`` are those of its units that can know an object already.

    Raises:
        MalformedRequest: the type is ours but neither data nor attributes name an object (A4, R11).
    """
    if event.type.startswith(APISERVER_TYPE_PREFIX):
        return _look(event, states)
    if event.type == PING_TYPE:
        return Sweep() if event.extensions.get("resync", function) == function else Ignore()
    if event.type == RECONCILE_REQUESTED_TYPE:
        if event.extensions.get("function") != function:
            return Ignore()
        unit, owner = event.extensions.get("unit", ""), event.extensions.get("owner", "")
        if not unit or not owner:
            raise MalformedRequest("unit or owner missing")
        return RunOwner(unit, owner, _cause_of(event))
    return Ignore()


def _cause_of(event: Event) -> Cause | None:
    """What a fan-out says of the event that it came from (`requested`); None where it does not, or names nothing."""
    given = event.extensions.get
    kind, _, where = given("cause", "").partition(" ")
    namespace, _, name = where.rpartition("/")
    if not given("causeevent") or not kind or not name:
        return None
    return Cause(Key(given("causeapiversion", ""), kind, namespace, name), given("causeevent", ""), given("causetime", ""))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _look(event: Event, states: Mapping[str, States]) -> Look:
    data = event.data
    if data is not None and not isinstance(data, dict):
        raise MalformedRequest("data is not an object")
    body: dict[str, Any] = data or {}
    raw_metadata = body.get("metadata")
    metadata: dict[str, Any] = raw_metadata if isinstance(raw_metadata, dict) else {}
    attributes = event.extensions
    named = metadata if _text(metadata.get("name")) else body
    if _text(named.get("name")):
        name, namespace = _text(named.get("name")), _text(named.get("namespace"))
    else:
        name, namespace = attributes.get("name", ""), attributes.get("namespace", "")
    api_version = _text(body.get("apiVersion")) or attributes.get("apiversion", "")
    kind = _text(body.get("kind")) or attributes.get("kind", "")
    if not name or not kind or not api_version:
        raise MalformedRequest("no apiVersion, kind and name")
    if not can_be_name(name) or (namespace and not can_be_name(namespace)):
        raise MalformedRequest("no object can have this name")
    key = Key(api_version, kind, namespace, name)
    told = _told(event, key, body, states) if named is metadata else {}
    return Look(key, labels_told(body), told)


def labels_told(data: Any) -> Mapping[str, str]:
    """The labels of the object that an event has, whatever that is; none where it has only its name."""
    metadata = data.get("metadata") if isinstance(data, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return {label: value for label, value in labels.items() if isinstance(value, str)} if isinstance(labels, dict) else {}


def _told(event: Event, key: Key, body: Object, states: Mapping[str, States]) -> dict[str, Hashable]:
    """The state of an object that an event has whole, for each unit."""
    metadata = body["metadata"]
    if not (_text(metadata.get("uid")) and _text(metadata.get("resourceVersion"))):
        return {}
    if event.type.endswith(".delete"):
        return dict.fromkeys(states, ended(metadata["uid"]))
    told: dict[str, Hashable] = {}
    for unit, each in states.items():
        with suppress(Exception):  # whatever somebody sends: then the object is read
            told[unit] = state_in(each, key, body)
    return told


def requested(function: str, unit: str, owner: str, cause: str, woken: Sequence[Cause] = ()) -> Event:
    """The event that asks for one owner: the second level of a fan-out (partition key = owner).

    With what has ``woken`` the function it says more of the ``cause``, for who listens to decisions.
    """
    more: dict[str, str] = {}
    for each in woken[:1]:
        told = {"causeapiversion": each.key.api_version if each.key else "", "causeevent": each.event, "causetime": each.time}
        more = {name: text for name, text in told.items() if text}
    return Event(
        id=str(uuid.uuid4()),
        source=f"/tenantry/{function}",
        type=RECONCILE_REQUESTED_TYPE,
        subject=owner,
        extensions={"function": function, "unit": unit, "owner": owner, "partitionkey": owner, "cause": cause, **more},
    )
