"""The rules for CloudEvents attributes that hold in every content mode, and nothing about HTTP.

Invariant: a dictionary that passes `check`, with names that match `NAME` and values that passed `clean`, is a valid
set of attributes by the CloudEvents 1.0.2 core specification.  `BadEvent` carries constant words only: what a sender
wrote never enters a reason, nor an exception chained to one, because reasons travel into dead-letter extensions
and logs, and payloads hold Secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import NamedTuple

REQUIRED = ("specversion", "id", "source", "type")
CORE = frozenset((*REQUIRED, "subject", "time", "datacontenttype", "dataschema"))
NAME = re.compile(r"[a-z0-9]+")

# The charsets that data may declare.  Not all of Python's: some of its text codecs take quadratic time.
CHARSETS = frozenset(
    ("utf-8", "utf8", "us-ascii", "iso-8859-1", "utf-16", "utf-16le", "utf-16be", "utf-32", "utf-32le", "utf-32be")
)

_PLANE_ENDS = "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
_FORBIDDEN = re.compile(rf"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{_PLANE_ENDS}]")
_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)(?:\.[0-9]+)?"
    r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*")
_ESSENCE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+")
_CHARSET = re.compile(r';[ \t]*charset="?([^ \t;"]+)', re.IGNORECASE)


class BadEvent(Exception):
    """The request is not one valid CloudEvent: answer ``status`` (400, 408, 413, 415) with ``reason`` as plain text."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class MediaType(NamedTuple):
    """A content type without its parameters, in lower case, and its charset (utf-8 unless declared)."""

    essence: str
    charset: str

    @property
    def is_json(self) -> bool:
        """Whether data of this type is JSON: ``*/json`` or ``*/*+json`` (JSON format 3.1.1)."""
        return self.essence.endswith(("/json", "+json"))


@lru_cache(maxsize=128)
def media_type(declared: str) -> MediaType:
    """Parse a content type; raise `BadEvent` 400 unless it is one, in at most 256 printable ASCII characters."""
    essence, semicolon, parameters = declared.partition(";")
    essence = essence.rstrip(" \t").lower()
    printable = declared.isascii() and declared.replace("\t", " ").isprintable()
    if len(declared) > 256 or not printable or not _ESSENCE.fullmatch(essence):
        raise BadEvent(400, "content type is not a media type")
    charset = _CHARSET.search(semicolon + parameters)
    return MediaType(essence, charset[1].lower() if charset else "utf-8")


def check(attributes: Mapping[str, str]) -> None:
    """Raise `BadEvent` 400 unless the attributes, names already checked, make a valid event (R1 to R3, R7)."""
    for name in REQUIRED:
        if not attributes.get(name):
            raise BadEvent(400, f"{name} is empty" if name in attributes else f"{name} is missing")
    if attributes["specversion"] != "1.0":
        raise BadEvent(400, "specversion is not 1.0")
    if "data" in attributes:
        raise BadEvent(400, "data is not an attribute name")
    if attributes.get("subject") == "":
        raise BadEvent(400, "subject is empty")
    if (schema := attributes.get("dataschema")) is not None and not _URI.fullmatch(schema):
        raise BadEvent(400, "dataschema is not a URI")
    if (declared := attributes.get("datacontenttype")) is not None:
        media_type(declared)
    if (time := attributes.get("time")) is not None and not is_rfc3339(time):
        raise BadEvent(400, "time is not an RFC 3339 timestamp")


def is_rfc3339(text: str) -> bool:
    """Whether the text is an RFC 3339 timestamp: any number of fraction digits, leap seconds and year 0 included."""
    match = _TIME.fullmatch(text)
    if match is None:
        return False
    try:
        date(int(match[1]) or 4, int(match[2]), int(match[3]))  # year 0 is a leap year, and too early for Python
    except ValueError:
        return False
    return True


def clean(text: str) -> str:
    """Return the text; raise `BadEvent` 400 if it has a character that the core specification forbids in a String."""
    if not text.isprintable() and _FORBIDDEN.search(text):
        raise BadEvent(400, "forbidden character in an attribute")
    return text
