"""What the conformance table does not say: values after decoding, reading within the limit, round trips."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenantry.model import limits
from tenantry.model.event import Event
from tenantry.serving.attributes import CORE, is_rfc3339, media_type
from tenantry.serving.cloudevents import BadEvent, encode_binary, encode_structured, parse_event, read_body

REQUIRED = [(b"ce-specversion", b"1.0"), (b"ce-id", b"1"), (b"ce-source", b"/s"), (b"ce-type", b"t")]
JSON = (b"content-type", b"application/json")
STRUCTURED = [(b"content-type", b"application/cloudevents+json")]


def extension(value: bytes) -> str:
    return parse_event([*REQUIRED, (b"ce-ext", value)], b"").extensions["ext"]


def structured(**members: object) -> Event:
    """Return the event of a structured body that has the required attributes and these members."""
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", **members}
    return parse_event(STRUCTURED, json.dumps(event).encode())


class TestHeaderValues:
    """Double quotes, percent-encoding and character sets of the HTTP binding, 3.1.3.2."""

    @pytest.mark.parametrize(
        ("sent", "expected"),
        [
            (b"plain", "plain"),
            (b"", ""),
            (b" padded\t", "padded"),
            (b"two words", "two words"),
            (b"Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
            (b"%e2%82%ac", "€"),
            ("Größe".encode(), "Größe"),
            (b"%2525", "%25"),
            (b"100%", "100%"),
            (b"%zz", "%zz"),
            (b'""', ""),
            (b'"a \\"b\\" \\\\c"', 'a "b" \\c'),
            (b'"%41"', "A"),
            (b"%22x%22", '"x"'),
            (b'in"ner', 'in"ner'),
            ("a\u00a0b".encode(), "a\u00a0b"),
        ],
    )
    def test_decoded_once(self, sent: bytes, expected: str) -> None:
        """A value is unquoted and percent-decoded exactly once; a percent sign that encodes nothing stays."""
        assert extension(sent) == expected

    @pytest.mark.parametrize("sent", [b'"open', b'"a" b', b'"', b'"a\\"', b"%00", b"%7F", b"%EF%BF%BF", b"a\tb"])
    def test_refused(self, sent: bytes) -> None:
        """Broken quoting and characters that an attribute must not have are refused."""
        with pytest.raises(BadEvent):
            extension(sent)

    def test_mapping_is_text(self) -> None:
        """A mapping of strings is accepted in place of raw headers, in any case and beyond ASCII."""
        headers = {name.decode().title(): value.decode() for name, value in REQUIRED}

        assert parse_event({**headers, "CE-Ext": "Größe"}, b"").extensions == {"ext": "Größe"}

    def test_lone_surrogate_in_a_mapping(self) -> None:
        """A string that has no UTF-8 form is refused like bytes that are not UTF-8."""
        headers = {name.decode(): value.decode() for name, value in REQUIRED}

        with pytest.raises(BadEvent, match="not UTF-8"):
            parse_event({**headers, "ce-ext": "\udcff"}, b"")


class TestData:
    """How content types decide what ``data`` becomes."""

    @pytest.mark.parametrize(
        ("content_type", "body", "expected"),
        [
            ("application/json", b'{"a":1}', {"a": 1}),
            ("text/json", b"[1]", [1]),
            ("Application/Merge-Patch+JSON; x=y", b"1.5", 1.5),
            ("application/json; charset=iso-8859-1", b'"\xe4"', "ä"),
            ("application/json; charset=UTF-16", '"ä"'.encode("utf-16"), "ä"),
            ("application/json", b"null", None),
            ("application/json", b"", None),
            ("text/plain", b"1", b"1"),
            ("text/plain", b"", None),
            ("application/jsonp", b"1", b"1"),
            ("", b"1", 1),
            ("", b"{", b"{"),
            ("", b"NaN", b"NaN"),
        ],
    )
    def test_decoded(self, content_type: str, body: bytes, expected: object) -> None:
        """JSON types are decoded in their charset, others stay bytes, and without a type JSON is tried."""
        event = parse_event([*REQUIRED, (b"Content-Type", content_type.encode())], body)

        assert event.data == expected
        assert event.datacontenttype == (content_type or None)

    @pytest.mark.parametrize(
        ("content_type", "body"),
        [
            (b"application/json; charset=us-ascii", b'"\xc3\xa4"'),
            (b"application/json; charset=idna", b'"a"'),
            (b"application/json; charset=hex", b"3131"),
            (b"application/json", b"NaN"),
            (b"application/json", b"\xef\xbb\xbf1"),
            (b"json", b"1"),
            (b"application/json\xe9", b"1"),
            (b"text/plain; x=" + b"y" * 300, b"1"),
        ],
    )
    def test_refused(self, content_type: bytes, body: bytes) -> None:
        """Data that contradicts its type, charsets off the list, and content types of no type are refused."""
        with pytest.raises(BadEvent) as refused:
            parse_event([*REQUIRED, (b"content-type", content_type)], body)

        assert refused.value.status == 400

    def test_structured_implies_json(self) -> None:
        """Structured data without a content type is JSON, and the event says so; without data it says nothing."""
        assert (structured(data="1").data, structured(data="1").datacontenttype) == ("1", "application/json")
        assert structured().datacontenttype is None

    def test_structured_text_in_its_charset(self) -> None:
        """Text in structured mode becomes the bytes that its content type declares."""
        assert structured(datacontenttype="text/plain;charset=iso-8859-1", data="ä").data == b"\xe4"
        assert structured(datacontenttype="text/plain", data="ä").data == "ä".encode()
        with pytest.raises(BadEvent, match="charset"):
            structured(datacontenttype="text/plain;charset=us-ascii", data="ä")

    def test_base64(self) -> None:
        """``data_base64`` is read by its content type: JSON, bytes, or whatever it turns out to be."""
        assert structured(data_base64="eyJhIjoxfQ==", datacontenttype="application/json").data == {"a": 1}
        assert structured(data_base64="MQ==", datacontenttype="image/png").data == b"1"
        assert structured(data_base64="MQ==").data == 1
        assert structured(data_base64="/w==").data == b"\xff"

    def test_extension_types(self) -> None:
        """Booleans and integers of structured mode take their canonical strings, null is absent."""
        event = structured(flag=True, off=False, number=-5, gone=None, extensions="x")

        assert event.extensions == {"flag": "true", "off": "false", "number": "-5", "extensions": "x"}

    def test_extensions_are_read_only(self) -> None:
        """Nobody can change the extensions of an event."""
        with pytest.raises(TypeError):
            structured(a="b").extensions["a"] = "c"  # type: ignore[index]

    def test_duplicate_members(self) -> None:
        """Of two equal members of a structured event the last one counts, as in most JSON parsers."""
        body = b'{"specversion":"1.0","id":"1","id":"2","source":"/s","type":"t"}'

        assert parse_event(STRUCTURED, body).id == "2"


class TestTimeAndMediaType:
    """The two grammars that attributes have."""

    @pytest.mark.parametrize(
        "text",
        [
            "0001-01-01T00:00:00Z",
            "0000-02-29T00:00:00Z",
            "2024-02-29T23:59:59.123456789123-00:00",
            "2016-12-31T23:59:60z",
        ],
    )
    def test_rfc3339(self, text: str) -> None:
        """Any number of fraction digits, the unknown offset, leap seconds and Go's zero time are timestamps."""
        assert is_rfc3339(text)

    @pytest.mark.parametrize(
        "text",
        ["2023-02-29T00:00:00Z", "2023-13-01T00:00:00Z", "2023-1-1T00:00:00Z", "2023-01-01T00:00Z",
         "٢٠٢٣-01-01T00:00:00Z", "2023-01-01T00:00:00+0100", "2023-01-01T00:00:00,5Z", "2023-01-01T00:00:00Z\n"],
    )  # fmt: skip
    def test_not_rfc3339(self, text: str) -> None:
        """Dates that do not exist and the looser forms of ISO 8601 are not timestamps."""
        assert not is_rfc3339(text)

    def test_media_type(self) -> None:
        """Type and charset are compared in lower case, and other parameters do not count."""
        assert media_type('Text/JSON ; q="a;b"; Charset="UTF-16"') == ("text/json", "utf-16")


@dataclass
class FakeUpload:
    """A request as `read_body` sees it, counting the chunks that were read."""

    headers: Mapping[str, str]
    chunks: int
    size: int
    read: int = 0

    async def stream(self) -> AsyncIterator[bytes]:
        for _ in range(self.chunks):
            self.read += 1
            yield b"x" * self.size


class TestReadBody:
    """The limit on a request's body (R14)."""

    async def test_within(self) -> None:
        """A body of exactly the limit is read whole."""
        assert await read_body(FakeUpload({"content-length": "100"}, 10, 10), 100) == b"x" * 100

    @pytest.mark.parametrize("declared", ["101", "9" * 40])
    async def test_declared_above(self, declared: str) -> None:
        """A larger Content-Length is refused before anything is read."""
        upload = FakeUpload({"content-length": declared}, 11, 10)

        with pytest.raises(BadEvent) as refused:
            await read_body(upload, 100)

        assert (refused.value.status, upload.read) == (413, 0)

    @pytest.mark.parametrize("headers", [{}, {"content-length": "5"}, {"content-length": "-1"}])
    async def test_stream_above(self, headers: dict[str, str]) -> None:
        """A stream is cut at the chunk that passes the limit, whatever its length claimed."""
        upload = FakeUpload(headers, 1000, 10)

        with pytest.raises(BadEvent) as refused:
            await read_body(upload, 100)

        assert (refused.value.status, upload.read) == (413, 11)

    def test_parser_has_the_same_limit(self) -> None:
        """A body above the limit does not get into the parser either."""
        with pytest.raises(BadEvent) as refused:
            parse_event([*REQUIRED, JSON], b" " * (limits.EVENT_BYTES + 1))

        assert refused.value.status == 413


TEXT = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Cn"], exclude_characters="\ufffe\uffff") | st.sampled_from(' %"\\2541')
)
NON_EMPTY = TEXT.filter(bool)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=20).filter(
    lambda name: name not in CORE and name != "data"
)
JSON_VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner | st.none(), max_size=4)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), inner | st.none(), max_size=4),
    max_leaves=12,
)  # fmt: skip
TYPED_DATA = st.one_of(
    st.tuples(st.sampled_from(["application/json", "text/json", "Application/X+JSON; charset=utf-8"]), JSON_VALUES),
    st.tuples(st.sampled_from(["text/plain", "application/xml; charset=x", "image/png"]), st.binary(min_size=1)),
    st.tuples(st.none() | st.just("text/plain"), st.none()),
)
TIMES = st.datetimes(timezones=st.timezones().map(lambda _: None)).map(lambda moment: moment.isoformat() + "Z")


@st.composite
def events(draw: st.DrawFn) -> Event:
    content_type, data = draw(TYPED_DATA)
    return Event(
        id=draw(NON_EMPTY),
        source=draw(NON_EMPTY),
        type=draw(NON_EMPTY),
        subject=draw(st.none() | NON_EMPTY),
        time=draw(st.none() | TIMES),
        datacontenttype=content_type,
        dataschema=draw(st.none() | st.sampled_from(["https://example.com/a%20b?c#d", "urn:x:y"])),
        extensions=draw(st.dictionaries(NAMES, TEXT, max_size=4)),
        data=data,
    )


class TestRoundTrip:
    """What is encoded is read back."""

    @given(events())
    @settings(max_examples=150, deadline=None)
    def test_any_event(self, event: Event) -> None:
        """Any valid event survives both modes unchanged."""
        assert parse_event(*encode_binary(event)) == event
        assert parse_event(*encode_structured(event)) == event

    @given(st.binary(max_size=200), st.sampled_from([[*REQUIRED, JSON], STRUCTURED, REQUIRED]))
    @settings(max_examples=150, deadline=None)
    def test_any_body(self, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
        """Any body gives an event or a refusal, and nothing else."""
        with suppress(BadEvent):
            assert parse_event(headers, body).type

    @given(st.lists(st.tuples(st.binary(max_size=12).map(lambda name: b"ce-" + name), st.binary(max_size=40)), max_size=6))
    @settings(max_examples=150, deadline=None)
    def test_any_headers(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Any bytes in headers give an event or a refusal, and nothing else."""
        with suppress(BadEvent):
            assert all(name.isalnum() for name in parse_event([*REQUIRED, *headers], b"").extensions)
