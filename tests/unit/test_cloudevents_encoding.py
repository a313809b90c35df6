"""What is sent is what Knative sends and the SDK reads, and nothing that no receiver would take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cloudevents.conversion import to_binary, to_structured
from cloudevents.http import CloudEvent, from_http

from tenantry.model.event import Event
from tenantry.serving.cloudevents import encode_binary, encode_structured, parse_event

EVENT = Event(
    id="1",
    source="https://10.96.0.1:443",
    type="dev.knative.apiserver.resource.update",
    subject="/apis/v1/namespaces//namespaces/a",
    time="2026-03-04T05:06:07.123456789Z",
    datacontenttype="application/json",
    extensions={"kind": "Namespace", "namespace": ""},
    data={"kind": "Namespace", "text": "ä"},
)


class TestEncoding:
    """What goes over the wire."""

    def test_binary_is_what_knative_sends(self) -> None:
        """Printable ASCII is raw, an empty extension is an empty header, and JSON is compact."""
        headers, body = encode_binary(replace(EVENT, subject="a b~c"))

        assert headers == {
            "ce-specversion": "1.0",
            "ce-id": "1",
            "ce-source": "https://10.96.0.1:443",
            "ce-type": "dev.knative.apiserver.resource.update",
            "ce-subject": "a b~c",
            "ce-time": "2026-03-04T05:06:07.123456789Z",
            "ce-kind": "Namespace",
            "ce-namespace": "",
            "content-type": "application/json",
        }
        assert body == '{"kind":"Namespace","text":"ä"}'.encode()

    def test_binary_encodes_what_would_change(self) -> None:
        """Percent signs, double quotes, outer spaces and everything beyond ASCII are percent-encoded, as UTF-8."""
        headers, _ = encode_binary(replace(EVENT, extensions={"a": '  50% "ä" €  '}))

        assert headers["ce-a"] == "%20%2050%25 %22%C3%A4%22 %E2%82%AC%20%20"

    def test_data_without_a_type(self) -> None:
        """JSON data is labelled; bytes and absent data get no content type that the event does not have."""
        bare = Event(id="1", source="/s", type="t")

        assert encode_binary(bare) == (
            {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"},
            b"",
        )
        assert "content-type" not in encode_binary(replace(bare, data=b"\xff"))[0]
        assert encode_binary(replace(bare, data=[1]))[0]["content-type"] == "application/json"

    def test_declared_charset(self) -> None:
        """JSON data is written in the charset that the content type declares."""
        event = replace(EVENT, datacontenttype="application/json; charset=utf-16le")

        assert encode_binary(event)[1] == '{"kind":"Namespace","text":"ä"}'.encode("utf-16-le")

    def test_infinity(self) -> None:
        """A number that JSON cannot say becomes null in both modes, never a bare word."""
        event = replace(EVENT, data=[float("inf"), float("nan")])

        assert encode_binary(event)[1] == b"[null,null]"
        assert parse_event(*encode_structured(event)).data == [None, None]

    @pytest.mark.parametrize(
        "changes",
        [
            {"id": ""},
            {"subject": ""},
            {"time": "now"},
            {"dataschema": "relative"},
            {"type": "a\nb"},
            {"datacontenttype": "text/plain\r\nx: y"},
            {"datacontenttype": "text/plain"},
            {"datacontenttype": "application/json; charset=ebcdic"},
            {"datacontenttype": "application/json; charset=us-ascii"},
            {"extensions": {"id": "2"}},
            {"extensions": {"data": "x"}},
            {"extensions": {"my-ext": "x"}},
            {"extensions": {"": "x"}},
            {"extensions": {"a": "\x00"}},
        ],
        ids=str,
    )
    def test_refuses_invalid_events(self, changes: dict[str, object]) -> None:
        """An event that no receiver would take is a ValueError at the sender."""
        with pytest.raises(ValueError):
            encode_binary(replace(EVENT, **changes))  # type: ignore[arg-type]

    def test_sdk_reads_it(self) -> None:
        """The SDK's own parser sees the same event in both modes."""
        for headers, body in (encode_binary(EVENT), encode_structured(EVENT)):
            event = from_http(headers, body)

            assert (event["id"], event["time"], event["namespace"], event.data) == ("1", EVENT.time, "", EVENT.data)

    def test_reads_what_the_sdk_writes(self) -> None:
        """Events that the SDK builds and writes are read, in both modes."""
        sent = CloudEvent({"type": "t", "source": "/s", "kind": "Namespace"}, {"a": [1, "ä"]})

        for headers, body in (to_binary(sent), to_structured(sent)):
            event = parse_event(headers, body)

            assert (event.id, event.time) == (sent["id"], sent["time"])
            assert (event.extensions, event.data) == ({"kind": "Namespace"}, {"a": [1, "ä"]})
