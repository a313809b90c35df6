"""A CloudEvent as the core sees it: attributes, extensions and data, free of any SDK and transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

APISERVER_TYPE_PREFIX = "dev.knative.apiserver."
PING_TYPE = "dev.knative.sources.ping"
SWEPT = "/health/sweep"
"""The path at which a function says when its last complete sweep ended."""
DECISION_TYPE = "dev.tenantry.decision"
DECISIONS_BEGUN_TYPE = "dev.tenantry.decisions.begun"
"""A process begins to tell its decisions."""
DECISIONS_ENDED_TYPE = "dev.tenantry.decisions.ended"
"""It has told all of them, and ends."""
RECONCILE_REQUESTED_TYPE = "dev.tenantry.reconcile.requested"

NO_EXTENSIONS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Event:
    """One CloudEvent, version 1.0.

    ``extensions`` has lower-case names and may hold ``traceparent``.  ``data`` is decoded JSON when the
    content type says JSON, bytes for any other content type, and None when the event has no data.
    """

    id: str
    source: str
    type: str
    subject: str | None = None
    time: str | None = None
    datacontenttype: str | None = None
    dataschema: str | None = None
    extensions: Mapping[str, str] = field(default_factory=lambda: NO_EXTENSIONS)
    data: object | bytes | None = None
