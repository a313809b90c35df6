"""Selectors as requests have them, over objects that are at hand."""

from __future__ import annotations

import pytest

from tenantry.engine.overlay.selecting import fits_fields, fits_labels, parsed_labels

OBJECT = {"metadata": {"name": "x", "labels": {"a": "1", "b": ""}}, "type": "Opaque"}


@pytest.mark.parametrize("text", ["", "a", "a=1", "a==1", "b=", "a in (1,2)", "a!=2", "!c", "a notin (2, 3)", "a in (1),!c,b"])
def test_a_label_selector_fits(text: str) -> None:
    """Every form that requests have."""
    assert fits_labels(OBJECT, parsed_labels(text))


@pytest.mark.parametrize("text", ["c", "a=2", "a in (2,3)", "a!=1", "!a", "a notin (1)", "a=1,c"])
def test_a_label_selector_does_not_fit(text: str) -> None:
    """All requirements have to hold."""
    assert not fits_labels(OBJECT, parsed_labels(text))


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", True),
        ("metadata.name=x", True),
        ("metadata.name=y", False),
        ("type!=a,metadata.name=x", True),
        ("type!=Opaque", False),
    ],
)
def test_a_field_selector(text: str, fits: bool) -> None:
    """Fields by their path, equal or not."""
    assert fits_fields(OBJECT, text) is fits
