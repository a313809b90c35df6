"""Helm's records: every encoding is read, and what is wrong with a bad one is said."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from lock_enforcement.helm import (
    BadRecord,
    LargeRecord,
    Mark,
    Record,
    mark_of,
    marked,
    read_record,
    release_in_name,
    revision_of,
    state_of,
)
from tenantry.model import limits
from tenantry.model.kinds import Object

RELEASE: dict[str, Any] = {
    "name": "demo",
    "version": 3,
    "manifest": "---\na: 1\n",
    "info": {"status": "deployed", "description": "Done", "notes": "hello", "last_deployed": "2026-01-01T00:00:00Z"},
}


def stored(text: str | None, kind: str = "Secret", name: str = "sh.helm.release.v1.demo.v3", **fields: Any) -> Object:
    data = {} if text is None else {"release": base64.b64encode(text.encode()).decode() if kind == "Secret" else text}
    metadata = {"name": name, "labels": {"owner": "helm", "name": "demo"}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "type": "helm.sh/release.v1", "data": data, **fields}


def packed(value: Any, *, zipped: bool = True) -> str:
    raw = json.dumps(value).encode()
    return base64.b64encode(gzip.compress(raw) if zipped else raw).decode()


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
@pytest.mark.parametrize("text", [packed(RELEASE), packed(RELEASE, zipped=False), json.dumps(RELEASE)])
def test_every_encoding_is_read(text: str, kind: str) -> None:
    """Base64 of gzip, base64 of plain JSON, and plain JSON, in Secrets and ConfigMaps."""
    assert read_record(stored(text, kind), "demo") == Record(
        3, "deployed", "---\na: 1\n", "Done", "hello", "2026-01-01T00:00:00Z", server_side=False
    )


def test_helm_4_says_how_it_wrote() -> None:
    """A record that Helm wrote by server-side apply says so."""
    assert read_record(stored(packed({**RELEASE, "apply_method": "ssa"})), "demo").server_side


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (stored(None), "no data.release"),
        (stored("%%%"), "not base64"),
        (stored(base64.b64encode(b"\x1f\x8b\x08rubbish").decode()), "not gzip"),
        (stored(base64.b64encode(gzip.compress(json.dumps(RELEASE).encode())[:-9]).decode()), "cut short"),
        (stored(base64.b64encode(b"rubbish").decode()), "not JSON"),
        (stored(packed([1])), "not a JSON object"),
        (stored(packed({"version": 3})), "no info.status"),
        (stored(packed({**RELEASE, "version": 4})), "not the one in its name"),
        (stored(packed(RELEASE), type="Opaque"), "its type is not"),
        (stored(packed(RELEASE), name="sh.helm.release.v1.other.v3"), "not that of a record"),
        ({**stored(packed(RELEASE)), "data": {"release": "%"}}, "not base64"),
    ],
)
def test_a_bad_record_says_why(record: Object, why: str) -> None:
    """Each kind of corruption has its reason, which holds nothing of the content."""
    with pytest.raises(BadRecord, match=why) as error:
        read_record(record, "demo")
    assert "hello" not in str(error.value)


def test_a_record_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small record that unpacks to a huge one is refused."""
    monkeypatch.setattr(limits, "RECORD_BYTES", 1000)
    with pytest.raises(BadRecord, match="more than 1000 bytes"):
        read_record(stored(packed({**RELEASE, "manifest": "a" * 5000})), "demo")


@pytest.mark.parametrize("values", [[[]] * 300_000, {"k" + str(number): 1 for number in range(300_000)}])
def test_a_record_has_not_too_many_values(values: Any) -> None:
    """They are counted before any is made; commas and brackets in texts are none."""
    with pytest.raises(LargeRecord, match="more than 200000 values"):
        read_record(stored(packed({**RELEASE, "config": values})), "demo")
    text = '[{,"' * 300_000
    assert read_record(stored(packed({**RELEASE, "manifest": text})), "demo").manifest == text


def test_the_name_tells_release_and_revision() -> None:
    """A release may have dots in its name; the labels must agree; other names are no records."""
    record = stored(None, name="sh.helm.release.v1.a.v1.b.v12")
    record["metadata"]["labels"]["name"] = "a.v1.b"
    assert revision_of(record, "a.v1.b") == 12
    assert release_in_name("sh.helm.release.v1.a.v1.b.v12") == "a.v1.b"
    record["metadata"]["labels"]["name"] = "other"
    assert revision_of(record, "a.v1.b") is None
    assert release_in_name("settings") == ""


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("deployed", "Deployed"),
        ("failed", "Failed"),
        ("uninstalled", "Uninstalled"),
        ("unknown", "Unknown"),
        ("superseded", "Error"),
        ("pending-upgrade", "Transitioning"),
        ("uninstalling", "Transitioning"),
        ("whatever", "Transitioning"),
    ],
)
def test_states(status: str, state: str) -> None:
    """The table of states (spec 6.2)."""
    assert state_of(status) == state


def test_marks() -> None:
    """An object says whose it is, and one that is made anew gets Helm's marks."""
    plain: Object = {"metadata": {"name": "a", "labels": {"x": "y"}}}
    assert mark_of(plain) is None
    assert mark_of(None) is None
    made = marked(plain, Mark("demo", "ns"))
    assert mark_of(made) == Mark("demo", "ns")
    assert str(mark_of(made)) == "ns/demo"
    assert made["metadata"]["labels"] == {"x": "y", "app.kubernetes.io/managed-by": "Helm"}
