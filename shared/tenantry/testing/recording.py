"""The record of what functions and the API server said to each other.

An `Exchange` keeps both truths: what the function saw (``status``, ``response``) and what the server did (``answered``,
``stored``), which differ exactly where a fault acted.  Bodies are kept as bytes, bounded, and decoded when somebody asks.
No header is kept, so no credential is.

A write is *effective* (``changed``) when it made, removed or altered an object.  For a patch the proof is its resource
version: unlike the object's version known so far, and later than every version that was seen before the request was sent,
since versions are revisions of the whole store (KEP-5504).  A change that somebody else makes unseen in the few
milliseconds before a futile patch is taken for its own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, overload

from tenantry.testing.wire import Request, Response, decoded

KEEP_BYTES = 4 * 2**20
"""A larger body is not kept; it then reads as None."""

Key = tuple[str, str, str, str]
"""apiVersion, plural resource name, namespace, name."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """One request with its answer.

    ``seq`` numbers the requests as they arrived, ``at`` and ``until`` are monotonic seconds; ``function`` is the field
    manager from the User-Agent.  ``status`` is 0 when no answer arrived, ``answered`` when the server was not asked.
    ``fault`` names the faults that acted.
    """

    seq: int
    at: float
    until: float
    function: str
    verb: str
    api_version: str
    resource: str
    subresource: str
    namespace: str
    name: str
    query: Mapping[str, str]
    status: int
    answered: int
    fault: str = ""
    changed: bool = False
    path: str = ""
    named: bool = True
    """Whether the URL names the object; false for lists and for a create, whose name is in its body."""
    sent: bytes = field(default=b"", repr=False)
    seen: bytes = field(default=b"", repr=False)
    kept: bytes = field(default=b"", repr=False)

    @cached_property
    def request(self) -> Any:
        """The decoded request body, or None."""
        return decoded(self.sent)

    @cached_property
    def response(self) -> Any:
        """The decoded answer that the function saw; when none arrived, the one that the server gave."""
        return self.stored if self.status == 0 else decoded(self.seen)

    @cached_property
    def stored(self) -> Any:
        """The decoded answer of the server, or None when it was not asked."""
        return decoded(self.kept)

    def forget(self) -> None:
        """Give up the bodies: a recording of a long time holds a great many."""
        for name in ("request", "response", "stored"):
            self.__dict__.pop(name, None)
        for name in ("sent", "seen", "kept"):
            object.__setattr__(self, name, b"")

    @property
    def is_write(self) -> bool:
        """Whether it asked for a change."""
        return self.verb not in ("get", "list", "watch") and "dryRun" not in self.query

    @property
    def resource_version(self) -> str:
        """The resource version in the server's answer; empty when it has none."""
        return _version(self.stored)

    @property
    def key(self) -> Key:
        """apiVersion, plural, namespace and name."""
        return self.api_version, self.resource, self.namespace, self.name


class Recording:
    """Exchanges in the order in which they ended."""

    def __init__(self) -> None:
        self._exchanges: list[Exchange] = []
        self._versions: dict[Key, str] = {}  # "" where there is no object
        self.revision = 0
        """The highest resource version seen in any answer."""

    def __len__(self) -> int:
        return len(self._exchanges)

    def __iter__(self) -> Iterator[Exchange]:
        return iter(self._exchanges)

    @overload
    def __getitem__(self, index: int) -> Exchange: ...
    @overload
    def __getitem__(self, index: slice) -> list[Exchange]: ...
    def __getitem__(self, index: int | slice) -> Exchange | list[Exchange]:
        return self._exchanges[index]

    def mark(self) -> int:
        """A position: what is recorded from now on lies behind it."""
        return len(self._exchanges)

    def between(self, begin: int = 0, end: int | None = None, *, function: str = "") -> list[Exchange]:
        """The exchanges between two marks, of one function or all."""
        found = self._exchanges[begin:end]
        return [each for each in found if each.function == function] if function else found

    def writes(self, begin: int = 0, end: int | None = None, *, function: str = "", effective: bool = False) -> list[Exchange]:
        """The writes between two marks; with ``effective`` only those that changed something."""
        found = self.between(begin, end, function=function)
        return [each for each in found if each.is_write and (each.changed or not effective)]

    def history(self, key: Key) -> list[tuple[int, Any]]:
        """The states that an object was seen in, oldest first, each as (seq, object), None where it was not there."""
        states: list[tuple[int, Any]] = []
        for exchange in self._exchanges:
            for state in _states(exchange, key):
                if not states or _version(states[-1][1]) != _version(state):
                    states.append((exchange.seq, state))
        return states

    def learn(self, key: Key, resource_version: str) -> None:
        """Take note of a version that was seen elsewhere, so that effective writes are told from others more exactly."""
        self._versions[key] = resource_version
        self.revision = max(self.revision, _number(resource_version))

    def add(self, request: Request, response: Response, answer: Response | None, revision: int) -> Exchange:
        """Record an exchange; ``answer`` is the server's, ``revision`` what `revision` was when it was asked."""
        status, body = (answer.status, _bounded(answer.content)) if answer is not None else (0, b"")
        stored = None if request.verb in ("list", "watch") else decoded(body)
        exchange = Exchange(
            seq=request.seq,
            at=request.at,
            until=time.monotonic(),
            function=request.function,
            verb=request.verb,
            api_version=request.api_version,
            resource=request.resource,
            subresource=request.subresource,
            namespace=request.namespace,
            name=request.name,
            query=dict(request.query),
            status=response.status,
            answered=status,
            fault=response.fault,
            changed=self._changes(request, status, stored, revision),
            path=request.path,
            named=request.named,
            sent=_bounded(request.content),
            seen=_bounded(response.content),
            kept=body,
        )
        if stored is not None:
            exchange.__dict__["stored"] = stored  # what cached_property would do, without decoding again
        self._learn(exchange, stored)
        self._exchanges.append(exchange)
        return exchange

    def _changes(self, request: Request, status: int, stored: Any, revision: int) -> bool:
        if not request.is_write or not 200 <= status < 300:
            return False
        version = _version(stored)
        if request.verb == "create" or status == 201:
            return bool(version)  # reviews and tokens are answered, not stored
        if _is_gone(request.verb, stored):
            return True
        before = self._versions.get(request.key)
        return not version or (version != before and _number(version) > revision)

    def _learn(self, exchange: Exchange, stored: Any) -> None:
        if exchange.verb == "list" and exchange.answered == 200:
            # What a list shows is not newer than the list: that is enough to tell a write that changes from one that does not.
            self.revision = max(self.revision, _version_of_list(exchange.kept))
            return
        if exchange.answered == 404 and exchange.verb in ("get", "delete"):
            self._versions[exchange.key] = ""
        elif 200 <= exchange.answered < 300 and exchange.name:
            gone = exchange.is_write and _is_gone(exchange.verb, stored)
            version = _version(stored)
            if gone or version:
                self._versions[exchange.key] = "" if gone else version
            self.revision = max(self.revision, _number(version))


def _states(exchange: Exchange, key: Key) -> Iterator[Any]:
    if exchange.verb == "list" and exchange.key[:2] == key[:2] and exchange.answered == 200:
        for item in (exchange.stored or {}).get("items") or ():
            if (item["metadata"].get("namespace", ""), item["metadata"]["name"]) == key[2:]:
                yield item
    elif exchange.key == key:
        gone = exchange.is_write and exchange.answered == 200 and _is_gone(exchange.verb, exchange.stored)
        if gone or (exchange.answered == 404 and exchange.verb in ("get", "delete")):
            yield None
        elif 200 <= exchange.answered < 300 and exchange.resource_version:
            yield exchange.stored


def _is_gone(verb: str, stored: Any) -> bool:
    """Whether a write that succeeded ended the object: a deletion that nothing holds up, or what held it up was taken away.

    The answer to the latter is the object as it was, with the version that it had.
    """
    if verb not in ("delete", "deletecollection", "patch", "apply", "update"):
        return False
    body = stored if isinstance(stored, dict) else {}
    metadata = body.get("metadata") or {}
    held = metadata.get("finalizers") or (body.get("spec") or {}).get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    if metadata.get("deletionTimestamp"):
        return not held
    return verb in ("delete", "deletecollection")


def _version(obj: Any) -> str:
    return str((obj.get("metadata") or {}).get("resourceVersion") or "") if isinstance(obj, dict) else ""


_HEAD = re.compile(rb'\{"kind":"\w+","apiVersion":"[^"]*","metadata":\{[^{}]*"resourceVersion":"(\d+)"')
_TAIL = re.compile(rb'"metadata":\{[^{}]*"resourceVersion":"(\d+)"[^{}]*\}\s*\}\s*\Z')


def _version_of_list(body: bytes) -> int:
    """The resource version of a list; the server writes it before the items of its own kinds and after those of others."""
    found = _HEAD.match(body) or _TAIL.search(body[-500:])
    return int(found[1]) if found is not None else _number(_version(decoded(body)))


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0


def _bounded(content: bytes) -> bytes:
    return content if len(content) <= KEEP_BYTES else b""
