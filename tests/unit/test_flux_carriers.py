"""Carriers, and the texts of the AccessIndex that they come to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.model import limits
from tenantry.model.flux.access import selects
from tenantry.model.flux.carriers import (
    TOO_LARGE,
    Acl,
    acl_of,
    acl_of_text,
    is_made_for_another,
    selectors_of_text,
    tenants_may_set,
    text_of_selectors,
    text_within_budget,
    within_budget,
)
from tenantry.model.identifiers import is_label_key, is_label_value

PLACE = "metadata.annotations[tenantry.dev/access-from]"
KEYS = st.from_regex(r"([a-z]{1,3}\.[a-z]{1,3}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,3}[A-Za-z0-9])?", fullmatch=True)
VALUES = st.from_regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,3}[A-Za-z0-9])?)?", fullmatch=True)
SELECTORS = st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=4)
ANYTHING = st.text(alphabet="ab=,|*/. \n-_é", max_size=6)


def said(selectors: Any, settable: tuple[str, ...] = ()) -> Acl:
    """What the annotation with these ``matchLabels`` says."""
    written = {"namespaceSelectors": [{"matchLabels": each} for each in selectors]}
    return acl_of_text(json.dumps(written), settable, PLACE)


def text_of(selectors: Any) -> str:
    return text_of_selectors(said(selectors).selectors)


def test_texts_are_sorted_and_without_repetition() -> None:
    """Pairs, and selectors; an empty selector is everybody, none is nobody."""
    assert text_of([{"team": "two", "env": "prod"}, {"a": ""}, {"env": "prod", "team": "two"}]) == "a=|env=prod,team=two"
    assert text_of([{"team": "two"}, {}]) == "*"
    assert text_of([]) == ""


@given(SELECTORS, st.randoms(use_true_random=False))
def test_the_order_of_selectors_does_not_count(selectors: list[dict[str, str]], random: Any) -> None:
    """The same selectors in any order, also several times, and pairs in any order, give the same text (f-79)."""
    mixed = [dict(random.sample(list(each.items()), len(each))) for each in (*selectors, *selectors[:1])]
    random.shuffle(mixed)
    assert text_of(mixed) == text_of(selectors)


@given(SELECTORS)
def test_a_text_says_what_the_selectors_say(selectors: list[dict[str, str]]) -> None:
    """Read back it has the selectors, and nothing else (f-80)."""
    found = {tuple(each) for each in selectors_of_text(text_of(selectors))}
    wanted = {tuple(sorted(each.items())) for each in selectors}
    assert found == ({()} if () in wanted else wanted)


@given(SELECTORS, SELECTORS)
def test_different_selectors_have_different_texts(one: list[dict[str, str]], other: list[dict[str, str]]) -> None:
    """Two texts are equal when the selectors are the same set, or both select everybody (f-80)."""

    def meant(selectors: list[dict[str, str]]) -> frozenset[tuple[tuple[str, str], ...]]:
        found = frozenset(tuple(sorted(each.items())) for each in selectors)
        return frozenset({()}) if () in found else found

    assert (text_of(one) == text_of(other)) == (meant(one) == meant(other))


@given(SELECTORS, st.dictionaries(KEYS, VALUES, max_size=4))
def test_a_text_selects_as_selectors_do(selectors: list[dict[str, str]], labels: dict[str, str]) -> None:
    """Any selector, all of its pairs, compared exactly (2.1, rows 8 to 11)."""
    expected = any(all(labels.get(key) == value for key, value in each.items()) for each in selectors)
    assert selects(text_of(selectors), labels) is expected


@given(st.dictionaries(ANYTHING, ANYTHING, min_size=1, max_size=2), st.dictionaries(KEYS, VALUES, max_size=3))
def test_illegal_labels_never_reach_a_text(pairs: dict[str, str], labels: dict[str, str]) -> None:
    """Whatever keys and values are written: either all are legal, or the selector grants nothing and is told (f-80)."""
    found = said([pairs])
    if all(is_label_key(key) and is_label_value(value) for key, value in pairs.items()):
        assert not found.problems
        assert selects(text_of_selectors(found.selectors), {**labels, **pairs})
    else:
        assert found.selectors == frozenset()
        assert [each.reason for each in found.problems] == ["InvalidACL"]
        assert not selects(text_of_selectors(found.selectors), {**labels, **pairs})


@pytest.mark.parametrize(
    "labels",
    [
        {"team": "x|*"},
        {"team": "x,kubernetes.io/metadata.name=dev-team2"},
        {"a=b": "c"},
        {"a=b": "*"},
        {"team": "*"},
        {"*": ""},
        {"team": "a b"},
        {"team": None},
        {"team": 1},
        {"team": ["a"]},
        {"": "a"},
    ],
)
def test_selectors_that_imitate_the_index_grant_nothing(labels: Any) -> None:
    """And the others beside them count; what is told names the position (f-15, f-80)."""
    found = said([{"team": "two"}, labels, {"team": "three"}])
    assert found.selectors == {(("team", "two"),), (("team", "three"),)}
    (problem,) = found.problems
    assert problem.reason == "InvalidACL"
    assert problem.text.startswith(f"{PLACE}.namespaceSelectors[1].matchLabels")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON (Expecting property name"),
        ("", "is no JSON"),
        ("[" * 10_000, "is no JSON (it cannot be parsed)"),
        ("1" * 10_000, "is no JSON (it cannot be parsed)"),
        ("[]", "is no map"),
        ("null", "is no map"),
        ('"*"', "is no map"),
        ("{}", "namespaceSelectors is no list"),
        ('{"namespaceSelectors": {}}', "namespaceSelectors is no list"),
        ('{"namespaceSelectors": null}', "namespaceSelectors is no list"),
        ('{"namespaceSelectors": [{}], "x": 1}', 'has the unknown field "x"'),
        ('{"matchLabels": {}}', 'has the unknown field "matchLabels"'),
        (json.dumps({"namespaceSelectors": [{}] * 65}), "has 65 selectors: write at most 64"),
        (json.dumps({"namespaceSelectors": [{"matchLabels": {"a": "b" * 200_000}}]}), "is more than 16,384 bytes"),
    ],
)
def test_an_annotation_of_another_shape_grants_nothing(text: str, words: str) -> None:
    """Nobody gains access, and one problem names the field and the fix (f-14)."""
    found = acl_of_text(text, (), PLACE)
    assert found.selectors == frozenset()
    (problem,) = found.problems
    assert problem.reason == "InvalidACL"
    assert problem.text.startswith(PLACE)
    assert words in problem.text
    assert ": " in problem.text


@pytest.mark.parametrize(
    ("selector", "place"),
    [
        ("*", "[0] is no map"),
        (None, "[0] is no map"),
        ({"matchLabel": {"team": "two"}}, '[0] has the unknown field "matchLabel"'),
        ({"matchLabels": {}, "matchExpressions": []}, '[0] has the unknown field "matchExpressions"'),
        ({"matchLabels": None}, "[0].matchLabels is no map"),
        ({"matchLabels": []}, "[0].matchLabels is no map"),
        ({"matchLabels": {f"k{number}": "" for number in range(33)}}, "[0].matchLabels has 33 labels"),
    ],
)
def test_a_selector_of_another_shape_is_none_for_all(selector: Any, place: str) -> None:
    """A mistake never selects every namespace; the selector beside it counts."""
    found = acl_of({"namespaceSelectors": [selector, {"matchLabels": {"team": "two"}}]}, (), "spec.accessFrom")
    assert found.selectors == {(("team", "two"),)}
    (problem,) = found.problems
    assert problem.text.startswith(f"spec.accessFrom.namespaceSelectors{place}")


def test_empty_and_absent_labels_are_every_namespace() -> None:
    """2.1, row 8."""
    for selector in ({}, {"matchLabels": {}}):
        assert acl_of({"namespaceSelectors": [selector]}, (), PLACE) == Acl(frozenset({()}))


def test_a_label_that_tenants_may_set_grants_nothing() -> None:
    """The selector is told as such, and the others count (2.1, row 12)."""
    found = said([{"env": "prod"}, {"team": "two"}, {"field.cattle.io/x": "a", "team": "one"}], ("env", "field.cattle.io/*"))
    assert found.selectors == {(("team", "two"),)}
    assert [each.reason for each in found.problems] == ["TenantSettableKey"] * 2
    assert "[0].matchLabels has the key env" in found.problems[0].text
    assert "[2].matchLabels has the key field.cattle.io/x" in found.problems[1].text


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("example.com/color", True),
        ("example.com/colour", False),
        ("field.cattle.io/projectId", True),
        ("field.cattle.io", False),
        ("a.field.cattle.io/x", False),
        ("env", True),
        ("environment", False),
    ],
)
def test_which_keys_tenants_may_set(key: str, expected: bool) -> None:
    """A key as itself, or each of a prefix (f-124)."""
    assert tenants_may_set(key, ("example.com/color", "field.cattle.io/*", "env")) is expected


def test_what_is_over_its_budget_is_not_kept() -> None:
    """Of a field and of an annotation stays a mark, by which it is told; what is within stays as it is."""
    small, large = {"namespaceSelectors": []}, {"namespaceSelectors": ["a" * limits.ACCESS_FROM_BYTES]}
    assert within_budget(small) is small
    assert within_budget(None) is None
    for found in (acl_of(within_budget(large), (), PLACE), acl_of_text(text_within_budget(json.dumps(large)), (), PLACE)):
        assert not found.selectors
        assert found.problems[0].text == f"{PLACE} {TOO_LARGE}"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({}, False),
        ({"helm.toolkit.fluxcd.io/name": "b-c", "helm.toolkit.fluxcd.io/namespace": "a"}, True),
        ({"helm.toolkit.fluxcd.io/name": "b-c", "helm.toolkit.fluxcd.io/namespace": "flux-system"}, False),
        ({"helm.toolkit.fluxcd.io/namespace": "a"}, True),
    ],
)
def test_charts_that_were_made_for_a_release_elsewhere(labels: dict[str, str], expected: bool) -> None:
    """Their metadata is the word of that release (f-118)."""
    assert is_made_for_another({"metadata": {"name": "a-b-c", "namespace": "flux-system", "labels": labels}}) is expected
