"""Names, hashes and label values are those of the IBM operator."""

from __future__ import annotations

import pytest

from scope_binding.namespace_scopes.names import label_value, own_role_name, value_hash


@pytest.mark.parametrize(
    ("role", "name"),
    [("my-op", "my-op-e756cda126bb30"), ("my-op.v1.2.0-my-op-7f9c", "my-op-6b505447291839"), ("leader", "leader-d9bb891cabf984")],
)
def test_names_of_copies_are_those_of_the_operator(role: str, name: str) -> None:
    """The names that the IBM operator gives, so that its objects are taken over."""
    assert name == own_role_name(role, "my-op", "ops")


def test_hashes_are_those_of_the_operator() -> None:
    """The hashes that the IBM operator writes on pod templates."""
    assert (value_hash("ops,tenant1"), value_hash("ops,tenant1,tenant2")) == ("6c47594befb397", "224f96eafebffc")


def test_label_values_are_valid_where_they_are_cut() -> None:
    """A value that would end in punctuation after the cut ends before it."""
    assert label_value("a" * 62 + "-b") == "a" * 62
