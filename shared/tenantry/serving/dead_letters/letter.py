"""One dead letter: which function gave up on what, why, and how often.

It is made from the attributes of an event, never from its data, which can hold Secrets.  Any sender can write any attribute.  So
each is cut to the length that it can have in a cluster, and characters that a terminal would interpret are replaced.  A letter
whose names were changed by that names nothing, and is not replayed.
"""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter

from tenantry.model.event import APISERVER_TYPE_PREFIX, PING_TYPE, RECONCILE_REQUESTED_TYPE, Event
from tenantry.model.identifiers import is_dns_label

UNKNOWN = "unknown"
"""In place of a function that neither the address nor the event names."""
UNREADABLE = "unreadable"
"""The key of what is no event."""
NO_REASON = "the broker passed no reason on"
_REASON, _KEY, _ID = 200, 1024, 64
_CUT, _REPLACED = "…", "\N{REPLACEMENT CHARACTER}"
_SOURCE = "/tenantry/dead-letters"

_OBJECT = {"apiversion": 317, "kind": 63, "namespace": 63, "name": 253}
_OWNER = {"unit": 63, "owner": 512}
_ROUTE = {"watch": 63, "locked": 63}
"""What our sources add to their events, by which the Triggers choose."""
_OTHER = {"type": 128, "subject": 253}
_LIMITS = {**_OBJECT, **_OWNER, **_ROUTE, **_OTHER}


def clipped(text: str, limit: int) -> str:
    """A text of a sender, with at most ``limit`` characters, all of them printable."""
    if len(text) > limit:
        text = text[: limit - 1] + _CUT
    return text if text.isprintable() else "".join(each if each.isprintable() else _REPLACED for each in text)


def _at_most(limit: int) -> AfterValidator:
    return AfterValidator(lambda text: clipped(text, limit))


def _function_name(text: str) -> str:
    if not is_dns_label(text):
        raise ValueError("not the name of a function")
    return text


def _known(about: Mapping[str, str]) -> dict[str, str]:
    return {name: clipped(about[name], limit) for name, limit in _LIMITS.items() if name in about}


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter; ``function`` and ``key`` are its name.

    ``status`` is the last answer of the function (0: unknown), ``count`` how many events of this name were given up, from
    ``first`` to ``last`` (UTC), ``event`` the id of the last one, and ``about`` the attributes that a replay needs.
    """

    function: Annotated[str, AfterValidator(_function_name)]
    key: Annotated[str, Field(min_length=1), _at_most(_KEY)]
    status: int = 0
    reason: Annotated[str, _at_most(_REASON)] = NO_REASON
    count: Annotated[int, AfterValidator(lambda count: max(1, count))] = 1
    first: Annotated[str, _at_most(_ID)] = ""
    last: Annotated[str, _at_most(_ID)] = ""
    event: Annotated[str, _at_most(_ID)] = ""
    about: Annotated[Mapping[str, str], AfterValidator(_known)] = field(default_factory=dict)

    @property
    def name(self) -> tuple[str, str]:
        """What is unique among letters."""
        return self.function, self.key

    def __str__(self) -> str:
        return f"{self.function} gave {self.key} up: {self.status} {self.reason}"

    def joined(self, later: Letter) -> Letter:
        """With a later one of the same name.  The same event, sent again by a broker that got no answer, counts once."""
        again = bool(later.event) and later.event == self.event
        return replace(later, count=self.count + later.count - again, first=min(self.first, later.first))

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def of(cls, document: Any) -> Letter:
        """From `document`, whoever wrote it.

        Raises:
            ValueError: it is none.
        """
        return _LETTERS.validate_python(document)


_LETTERS = TypeAdapter(Letter)


def now() -> str:
    """The time for ``first`` and ``last``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def letter_of(event: Event, path: str, at: str) -> Letter:
    """The letter for an event that a broker gave up, sent to ``path``, which is that of the function in our Triggers."""
    about = _about(event)
    given = event.extensions.get
    return Letter(
        _function(path, event.extensions),
        _key(about),
        _status(given("knativeerrorcode", "")),
        _reason(given("knativeerrordata", "")),
        first=at,
        last=at,
        event=clipped(event.id, _ID),
        about=about,
    )


def unreadable(path: str, reason: str, at: str) -> Letter:
    """The letter for a request that is no event, with the parser's ``reason``."""
    return Letter(_function(path, {}), UNREADABLE, 400, clipped(reason, _REASON), first=at, last=at)


def replayed(letter: Letter) -> Event | None:
    """The event that asks the function to run again; None when the letter does not say for what.

    It carries the key and nothing else: for an object a reference, for an owner the request of a fan-out, for a schedule a ping.
    """
    about = letter.about
    if letter.function == UNKNOWN or any(_CUT in value or _REPLACED in value for value in about.values()):
        return None
    if about.get("kind") and about.get("name"):
        reference = {"apiVersion": about.get("apiversion", ""), "kind": about["kind"], "name": about["name"]}
        if about.get("namespace"):
            reference["namespace"] = about["namespace"]
        route = {name: about[name] for name in _ROUTE if name in about} or {"watch": letter.function}
        names = {name: about.get(name, "") for name in _OBJECT}
        return _event(f"{APISERVER_TYPE_PREFIX}ref.update", {**names, **route}, reference)
    if about.get("owner"):
        named = {"function": letter.function, "unit": about.get("unit", ""), "owner": about["owner"]}
        return _event(RECONCILE_REQUESTED_TYPE, {**named, "partitionkey": about["owner"], "cause": "replay"})
    if about.get("type") == PING_TYPE:
        return _event(PING_TYPE, {"resync": letter.function})
    return None


def _event(kind: str, extensions: Mapping[str, str], data: object = None) -> Event:
    content_type = None if data is None else "application/json"
    return Event(str(uuid.uuid4()), _SOURCE, kind, datacontenttype=content_type, extensions=extensions, data=data)


def _about(event: Event) -> dict[str, str]:
    given = {**event.extensions, "type": event.type, "subject": event.subject or ""}
    if event.type.startswith(APISERVER_TYPE_PREFIX) and given.get("kind") and given.get("name"):
        limits = {**_OBJECT, **_ROUTE}
    elif event.type == RECONCILE_REQUESTED_TYPE and given.get("owner"):
        limits = _OWNER
    else:
        limits = _OTHER
    return {name: clipped(given[name], limit) for name, limit in limits.items() if given.get(name)}


def _key(about: Mapping[str, str]) -> str:
    """What people read and type: ``Namespace/team-a``, ``HelmChart.helm.cattle.io/ns/name``, ``projects:project/p-a``."""
    if "kind" in about:
        group = about.get("apiversion", "").rpartition("/")[0]
        return "/".join(part for part in (f"{about['kind']}.{group}".rstrip("."), about.get("namespace"), about["name"]) if part)
    if "owner" in about:
        return f"{about.get('unit', '')}:{about['owner']}"
    if about["type"] == PING_TYPE:
        return "sweep"
    return f"{about['type']} {about.get('subject', '')}".rstrip()


def _function(path: str, extensions: Mapping[str, str]) -> str:
    given = (path.strip("/"), *(extensions.get(name, "") for name in ("watch", "function", "resync")))
    return next((name for name in given if is_dns_label(name)), UNKNOWN)


def _status(code: str) -> int:
    return int(code) if code.isascii() and code.isdecimal() and len(code) <= 3 else 0


def _reason(data: str) -> str:
    """The start of the function's answer, which Knative writes as base64."""
    try:
        text = base64.b64decode(data[: 8 * _REASON], validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        text = data
    return clipped(text, _REASON).strip() or NO_REASON
