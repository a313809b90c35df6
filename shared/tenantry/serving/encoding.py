"""Events to HTTP requests, in both content modes: the CloudEvents SDK's converters behind the parser's own rules.

Invariant: an event that `tenantry.serving.cloudevents.parse_event` has returned, or could have, is read back as an
equal one; what it would refuse is a `ValueError` here, so that the mistake fails at its sender instead of becoming a dead letter.
Data are JSON values or bytes; an infinity, which JSON does not have, becomes null; JSON data without a content type get
one.

The SDK's own event class fills in a missing time and id, so its converters get a dictionary of exactly what the event
has.  They are imported on first use: a function that only receives does not pay for them at start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic_core import from_json, to_json

from tenantry.model.event import Event
from tenantry.serving.attributes import CHARSETS, CORE, NAME, BadEvent, check, clean, media_type

_TO_ENCODE = re.compile(r'^ +| +$|[^\x20-\x7e]|["%]')


def encode_binary(event: Event) -> tuple[dict[str, str], bytes]:
    """Return headers and body of the event in binary mode, as Knative's senders (the Go SDK) write it.

    Printable ASCII goes raw as theirs does, spaces within a value too, which every decoder accepts.  Percent-encoded,
    as the binding demands (3.1.3.2), is what would not come back equal: ``%``, ``"``, outer spaces, and everything
    beyond ASCII, in UTF-8.  An empty extension stays an empty header (``ce-namespace:`` of a cluster-scoped object).
    Bytes are sent as they are, other data as compact JSON in the declared charset.  Raises `ValueError` for an
    invalid event.
    """
    from cloudevents.conversion import to_binary

    attributes = _attributes(event)
    sdk_event = _SdkEvent(attributes, _payload(event.data, attributes.get("datacontenttype")))
    headers, body = to_binary(sdk_event, lambda payload: payload)
    return {name: text if name == "content-type" else _header_value(text) for name, text in headers.items()}, body or b""


def encode_structured(event: Event) -> tuple[dict[str, str], bytes]:
    """Return headers and body of the event in structured JSON mode; bytes become ``data_base64``.

    Raises `ValueError` for an invalid event.
    """
    from cloudevents.conversion import to_structured

    # The SDK would write an infinity as a bare word, which is not JSON; the detour makes it null, as in binary mode.
    data = event.data if event.data is None or isinstance(event.data, bytes) else from_json(_json(event.data))
    headers, body = to_structured(_SdkEvent(_attributes(event), data))
    return dict(headers), body


class _SdkEvent(dict[str, object]):
    """An event in the shape that the SDK's converters read: attributes as items, ``extensions`` as one of them."""

    def __init__(self, attributes: Mapping[str, object], data: object) -> None:
        super().__init__(attributes)
        self._data = data

    def get_data(self) -> object:
        return self._data


def _attributes(event: Event) -> dict[str, object]:
    core = {
        "specversion": "1.0",
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "subject": event.subject,
        "time": event.time,
        "datacontenttype": event.datacontenttype,
        "dataschema": event.dataschema,
    }
    is_json = event.data is not None and not isinstance(event.data, bytes)
    if is_json and event.datacontenttype is None:
        core["datacontenttype"] = "application/json"
    attributes = {name: text for name, text in core.items() if text is not None}
    try:
        check(attributes)
        for text in (*attributes.values(), *event.extensions.values()):
            clean(text)
    except BadEvent as bad:
        raise ValueError(f"the event is not valid: {bad.reason}") from None
    for name in event.extensions:
        if name in CORE or name == "data" or not NAME.fullmatch(name):
            raise ValueError(f"the event is not valid: {name!r} cannot be the name of an extension")
    if is_json and not media_type(attributes["datacontenttype"]).is_json:
        raise ValueError("the event is not valid: its content type is not JSON, so its data must be bytes")
    return {**attributes, "extensions": dict(event.extensions)}


def _json(data: object) -> bytes:
    return to_json(data, inf_nan_mode="null")


def _payload(data: object, declared: object) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    charset = media_type(str(declared)).charset
    if charset not in CHARSETS:
        raise ValueError("the event is not valid: the charset of its content type is not supported")
    encoded = _json(data)
    return encoded if charset in ("utf-8", "utf8") else encoded.decode().encode(charset)


def _header_value(text: str) -> str:
    return _TO_ENCODE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8")), text)
