"""Helm's own records: what a release is, as Helm stores it in Secrets or ConfigMaps.

A record is one revision.  Its name is ``sh.helm.release.v1.<release>.v<revision>``, its labels are ``owner=helm``
and ``name=<release>``, and its key ``release`` holds JSON as base64 text, compressed with gzip when the bytes
begin with 1f 8b 08; older ones are plain JSON (spec 6.2).  A Secret's data is base64 once more.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic_core import from_json

from tenantry.model import limits
from tenantry.model.kinds import CONFIG_MAP, SECRET, Kind, Object, annotations_of, labels_of
from tenantry.model.names import HELM_RECORD_TYPE

RECORD_LABELS: Mapping[str, str] = {"owner": "helm"}
STORAGES: tuple[Kind, ...] = (SECRET, CONFIG_MAP)

RELEASE_NAME = "meta.helm.sh/release-name"
RELEASE_NAMESPACE = "meta.helm.sh/release-namespace"
MANAGED_BY = "app.kubernetes.io/managed-by"
HELM_MANAGER = "helm"
"""Field manager of the ``helm`` command."""


_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+', re.DOTALL)

_RECORD_NAME = re.compile(r"sh\.helm\.release\.v1\.(?P<release>.+)\.v(?P<revision>[0-9]{1,9})")
_GZIP = b"\x1f\x8b\x08"

HelmState = Literal["SecretNotFound", "Unknown", "Deployed", "Uninstalled", "Error", "Failed", "Transitioning"]
STATES: Mapping[str, HelmState] = {
    "deployed": "Deployed",
    "failed": "Failed",
    "uninstalled": "Uninstalled",
    "unknown": "Unknown",
    "superseded": "Error",
}
"""``info.status`` of the newest record to the state of a HelmRelease; every other one is ``Transitioning``."""


class BadRecord(ValueError):
    """A record that cannot be read; the message says why and holds nothing of the content."""


class LargeRecord(BadRecord):
    """A record that is larger than we read; the message says the limit."""


@dataclass(frozen=True, slots=True)
class Record:
    """One revision of a release.

    ``since`` is the time of the Helm operation in RFC 3339, or empty.
    ``server_side`` says that Helm wrote the objects by server-side apply (Helm 4).
    """

    revision: int
    status: str
    manifest: str = ""
    description: str = ""
    notes: str = ""
    since: str = ""
    server_side: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """The release that an object says it belongs to."""

    name: str
    namespace: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def revision_of(record: Object, release: str) -> int | None:
    """The revision in a record's name, which nobody can change; None when it is no record of this release."""
    found = _RECORD_NAME.fullmatch(record["metadata"]["name"])
    if found is None or found["release"] != release or labels_of(record).get("name", release) != release:
        return None
    return int(found["revision"])


def release_in_name(name: str) -> str:
    """The release that a record of this name is of; empty for any other name."""
    found = _RECORD_NAME.fullmatch(name)
    return found["release"] if found else ""


def read_record(stored: Object, release: str) -> Record:
    """The record in a Secret or ConfigMap.

    Raises:
        BadRecord: it cannot be read, with the reason.
    """
    revision = revision_of(stored, release)
    if revision is None:
        raise BadRecord("its name is not that of a record")
    text = (stored.get("data") or {}).get("release")
    if not isinstance(text, str) or not text:
        raise BadRecord("it has no data.release")
    if stored["kind"] == SECRET.kind:
        if stored.get("type") != HELM_RECORD_TYPE:
            raise BadRecord(f"its type is not {HELM_RECORD_TYPE}")
        text = _base64(text).decode("utf-8", "replace")
    return _record(_json(_unpacked(text)), revision)


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise BadRecord("data.release is not base64") from None


def _unpacked(text: str) -> bytes:
    """The JSON text; also when it is not encoded at all."""
    raw = text.encode() if text.lstrip()[:1] == "{" else _base64(text)
    if not raw.startswith(_GZIP):
        return raw
    unpacker = zlib.decompressobj(wbits=31)
    try:
        made = unpacker.decompress(raw, limits.RECORD_BYTES)
    except zlib.error:
        raise BadRecord("data.release is not gzip, though it begins so") from None
    if unpacker.unconsumed_tail:
        raise LargeRecord(f"it has more than {limits.RECORD_BYTES} bytes when unpacked, and is not read: make the chart smaller")
    if not unpacker.eof:
        raise BadRecord("data.release is cut short")
    return made


def _json(raw: bytes) -> dict[str, Any]:
    if _signs(raw) > limits.RECORD_VALUES and _signs(_TEXT.sub(b"", raw)) > limits.RECORD_VALUES:
        raise LargeRecord(f"it has more than {limits.RECORD_VALUES} values, and is not read: make the chart smaller")
    try:
        decoded = from_json(raw)
    except ValueError:
        raise BadRecord("data.release is not JSON") from None
    if not isinstance(decoded, dict):
        raise BadRecord("data.release is not a JSON object")
    return decoded


def _signs(raw: bytes) -> int:
    """How many values a JSON text has at most, by what stands before each; made without making one."""
    return sum(map(raw.count, (b"[", b"{", b",")))


def _record(decoded: dict[str, Any], revision: int) -> Record:
    info = decoded.get("info")
    if not isinstance(info, dict) or not _text(info.get("status")):
        raise BadRecord("it has no info.status")
    version = decoded.get("version", revision)
    if version != revision:
        raise BadRecord(f"its version {version!r} is not the one in its name")
    return Record(
        revision,
        _text(info.get("status")),
        _text(decoded.get("manifest")),
        _text(info.get("description")),
        _text(info.get("notes")),
        _text(info.get("last_deployed")),
        decoded.get("apply_method") == "ssa",
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def state_of(status: str) -> HelmState:
    """The state of a HelmRelease whose newest record has this status."""
    return STATES.get(status, "Transitioning")


def mark_of(obj: Object | None) -> Mark | None:
    """The release that an object says it belongs to; None when it does not say."""
    annotations = annotations_of(obj)
    name = annotations.get(RELEASE_NAME, "")
    return Mark(name, annotations.get(RELEASE_NAMESPACE, "")) if name else None


def is_marked(obj: Object, mark: Mark) -> bool:
    """Whether an object has all of Helm's marks of this release, as Helm asks before it takes an object over."""
    return labels_of(obj).get(MANAGED_BY) == "Helm" and mark_of(obj) == mark


def remarked(obj: Object, mark: Mark) -> Object:
    """An object of a manifest with those of Helm's marks that it names as Helm writes them, whatever the manifest says."""
    metadata = obj.get("metadata") or {}
    parts = {
        part: {name: marks.get(name, text) for name, text in texts.items()}
        for part, marks in _marks(mark).items()
        if isinstance(texts := metadata.get(part), dict)
    }
    return {**obj, "metadata": {**metadata, **parts}}


def marked(obj: Object, mark: Mark) -> Object:
    """An object with the marks that Helm puts on what it makes."""
    metadata = obj.get("metadata") or {}
    parts = {part: {**(metadata.get(part) or {}), **marks} for part, marks in _marks(mark).items()}
    return {**obj, "metadata": {**metadata, **parts}}


def _marks(mark: Mark) -> Mapping[str, Mapping[str, str]]:
    return {"labels": {MANAGED_BY: "Helm"}, "annotations": {RELEASE_NAME: mark.name, RELEASE_NAMESPACE: mark.namespace}}
