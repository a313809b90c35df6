"""Which admission policies an installation leaves out."""

from __future__ import annotations

import pytest

from tenantry.local.policies import bound_to, guard_names, is_left_out, left_out
from tenantry.model.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING


@pytest.mark.parametrize(
    ("text", "names"),
    [("", set()), ("a", {"a"}), ("a,b", {"a", "b"}), (" a, b ,", {"a", "b"}), ("all", {"all"})],
)
def test_names_are_written_with_commas_or_blanks(text: str, names: set[str]) -> None:
    """The variable TENANTRY_WITHOUT names policies as people write lists."""
    assert left_out(text) == names


def test_a_binding_goes_with_its_policy() -> None:
    """A policy counts by its name, a binding by the name of its policy."""
    policy = {"kind": ADMISSION_POLICY.kind, "metadata": {"name": "guard"}, "spec": {}}
    binding = {"kind": ADMISSION_POLICY_BINDING.kind, "metadata": {"name": "other"}, "spec": {"policyName": "guard"}}

    assert bound_to(policy) == bound_to(binding) == "guard"


@pytest.mark.parametrize(("without", "out"), [((), False), (("other",), False), (("other", "guard"), True), (("all",), True)])
def test_a_policy_is_left_out_by_name_or_with_all(without: tuple[str, ...], out: bool) -> None:
    """Only what is named is left out, and everything with ``all``."""
    assert is_left_out("guard", without) is out


def test_guards_are_policies_that_we_ship() -> None:
    """No fence is a guard."""
    assert guard_names()
    assert not [name for name in guard_names() if not name.startswith("tenantry-guard-")]
