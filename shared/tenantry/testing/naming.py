"""How the objects, events and requests of one run are named, so that two runs can be compared.

Every run has a *tag*, a text that is part of every name it uses and of nothing else.  With the tag replaced by ``@`` an
object has a *role*, an event and a request an *identity*, which are the same in every run of the same scenario.  The n-th
occurrence of an identity in one run is its *target*: ``create namespaces cattle-project-p-@ #1``.  Targets, unlike the
number of a write, do not depend on the order in which concurrent requests happen to be sent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tenantry.model.event import Event

TAG = re.compile(r"r\d{6}r")
PLACE = "@"
DRIFTED = "drifted"
"""What hands write in place of a text."""
_HASHED = re.compile(r"(?<=@)(?:[-.](?:[0-9a-f]{8}|[0-9a-f]{10}|[0-9a-f]{14}|[0-9a-f]{16}))+\b")
_UID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def tag_of(*texts: str) -> str:
    """The tag of the run that these names belong to; empty when they belong to none."""
    for text in texts:
        if text and (found := TAG.search(text)) is not None:
            return found.group()
    return ""


def role_of(text: str) -> str:
    """A text with every tag replaced by ``@``, without the hashes that a computed name has after it, and without uids."""
    return _HASHED.sub("-#", _UID.sub("uid", TAG.sub(PLACE, text)))


def event_tag(event: Event) -> str:
    """The tag of the run that an event is about."""
    return tag_of(event.extensions.get("namespace", ""), event.extensions.get("name", ""))


def event_identity(event: Event) -> str:
    """Verb, kind and role of an event."""
    attributes = event.extensions
    where = "/".join(part for part in (attributes.get("namespace", ""), attributes.get("name", "")) if part)
    return f"{event.type.rpartition('.')[2]} {attributes.get('kind', '')} {role_of(where)}"


def request_identity(
    verb: str, resource: str, subresource: str, namespace: str, name: str, query: Mapping[str, str], body: Any
) -> str:
    """Verb, resource and role of a request; a Kubernetes Event goes by its reason, since its name is a hash."""
    kind = f"{resource}/{subresource}" if subresource else resource
    regarding = body.get("regarding") if isinstance(body, dict) else None
    if isinstance(regarding, dict):
        return f"{verb} {kind} {role_of(str(regarding.get('name')))} {body.get('reason')}"
    where = "/".join(part for part in (namespace, name) if part)
    selectors = [query[field] for field in ("labelSelector", "fieldSelector") if query.get(field)]
    return " ".join(part for part in (verb, kind, role_of(where), *(f"[{role_of(each)}]" for each in selectors)) if part)


class Occurrences:
    """Numbers the occurrences of identities: the target of each."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def target(self, identity: str) -> str:
        """The identity with its number in this run."""
        self._seen[identity] += 1
        return f"{identity} #{self._seen[identity]}"

    def clear(self) -> None:
        """Start from one again."""
        self._seen.clear()
