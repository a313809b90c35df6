"""Manifests: every document counts for itself, lists are expanded, scalars are those of the Kubernetes tools."""

from __future__ import annotations

import pytest

from tenantry.model import limits
from tenantry.model.manifests import read_manifest


def document(name: str, kind: str = "ConfigMap") -> str:
    return f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n"


def test_a_bad_document_spoils_no_other() -> None:
    """What does not parse is told with its place, and what follows is kept."""
    text = (
        "---\n# Source: chart/templates/a.yaml\n"
        + document("a")
        + "---\n# Source: chart/templates/b.yaml\na: [b\n---\n"
        + document("c")
    )
    made = read_manifest(text)

    assert [found["metadata"]["name"] for found in made.objects] == ["a", "c"]
    assert [str(problem) for problem in made.problems] == ["document 2 (chart/templates/b.yaml): not valid YAML in its line 3"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("just text", "not an object"),
        ("kind: ConfigMap", "no apiVersion and kind"),
        ("apiVersion: v1\nkind: ConfigMap", "without metadata.name"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {1: b}", "not text"),
        ("apiVersion: v1\nkind: List\nitems: text", "not a list"),
        ("apiVersion: v1\nkind: List\nitems: [7]", "not an object"),
        (document("a") + "---\n" + document("a"), "there twice"),
        ("a: !!python/name:os.system x", "not valid YAML"),
        ("a: &a [*a]", "nested deeper"),
        (document("a") + "data: " + "[" * 130 + "]" * 130, "nested deeper"),
        (document("a") + "data: " + "[" * 20_000, "nested deeper"),
        (document("a") + "data:\n  " + "- " * 20_000 + "x", "nested deeper"),
        (
            document("a") + "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}' if n else 'x'] * 8)}]" for n in range(9)),
            "more than 50000 values",
        ),
        (document("a") + "y: [" + "[]," * 60_000 + "1]", "more than 50000 values"),
        (document("a" * 254), "name has more than 253 characters"),
        (document("a") + "  namespace: " + "n" * 64, "namespace has more than 63 characters"),
        (document("a") + "data: {x: !!bool x}", "not valid YAML"),
        (document("a") + "data: {x: !!timestamp x}", "not valid YAML"),
        (document("a") + "data: {x: !!binary /w==}", "bytes"),
        (document("a") + "  labels: [a]", "metadata.labels"),
        (document("a") + "  annotations: {a: 5}", "metadata.annotations"),
        (document("a") + "  finalizers: a", "metadata.finalizers"),
        (document("a") + "  ownerReferences: [{kind: ConfigMap}]", "metadata.ownerReferences"),
    ],
)
def test_what_is_no_object_is_told(text: str, why: str) -> None:
    """Each kind of bad document has its reason."""
    (problem,) = read_manifest(text).problems
    assert why in str(problem)


def test_lists_are_expanded() -> None:
    """A List and typed lists give their items, also nested ones."""
    text = """
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Secret, metadata: {name: a}}
  - {apiVersion: v1, kind: ConfigMapList, items: [{metadata: {name: b}}]}
"""
    made = read_manifest(text)
    assert [(found["kind"], found["metadata"]["name"]) for found in made.objects] == [("Secret", "a"), ("ConfigMap", "b")]


def test_empty_documents_are_nothing() -> None:
    """Comments and empty documents are neither objects nor problems."""
    made = read_manifest("---\n# nothing\n---\n\n--- \nnull\n")
    assert (made.objects, made.problems) == ((), ())


def test_scalars_are_those_of_kubernetes() -> None:
    """No dates, no sexagesimal numbers; exponents and octals are numbers; yes and no are booleans."""
    text = (
        document("a") + 'data: {d: 2020-01-01, t: 12:30, e: 1e3, f: 1.5, o: 0755, h: 0x1F, b: yes, q: "1", n: ~, x: 0o17, v: -3}'
    )
    (found,) = read_manifest(text).objects
    assert found["data"] == {
        "d": "2020-01-01",
        "t": "12:30",
        "e": 1000,
        "f": 1.5,
        "o": 493,
        "h": 31,
        "b": True,
        "q": "1",
        "n": None,
        "x": 15,
        "v": -3,
    }


def test_a_number_of_thousands_of_digits_is_told() -> None:
    """In whatever base it is written; the next document is read."""
    (found,) = read_manifest(document("a") + "n: 0x" + "f" * 5000 + "\n---\n" + document("b")).objects
    (problem,) = read_manifest(document("a") + "n: 0x" + "f" * 5000 + "\n").problems
    assert found["metadata"]["name"] == "b"
    assert "a number of more than 1024 bits" in problem.why


def test_a_dash_line_inside_a_text_ends_nothing() -> None:
    """Only a line that is the separator separates."""
    text = document("a") + "data:\n  k: |\n    ---\n    b\n"
    (found,) = read_manifest(text).objects
    assert found["data"] == {"k": "---\nb\n"}


def test_a_manifest_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is within them is kept; that the rest is not is told once, with the limits."""
    monkeypatch.setattr(limits, "MANIFEST_OBJECTS", 2)
    made = read_manifest("---\n".join(document(name) for name in "abcd"))
    assert [found["metadata"]["name"] for found in made.objects] == ["a", "b"]
    (problem,) = made.problems
    assert "more than 2 objects or 200000 values" in str(problem)
    monkeypatch.setattr(limits, "MANIFEST_VALUES", 20)
    made = read_manifest("---\n".join(document(name) for name in "abcd"))
    assert len(made.objects) == 2
    assert "20 values" in str(made.problems[-1])


def test_repeated_values_count() -> None:
    """Merges and aliases count as what they repeat, before anything is made of them."""
    keys = ",".join(f"k{number}: 1" for number in range(2000))
    (problem,) = read_manifest(f"x: &a {{{keys}}}\ny:\n" + "- {<<: *a}\n" * 100).problems
    assert "more than 50000 values" in str(problem)
