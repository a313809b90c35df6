"""Names of the proof kit: what is the same in every run of a scenario."""

from __future__ import annotations

import pytest

from tenantry.testing.naming import role_of

TAG, UID = "r000001r", "0123abcd-0123-4567-89ab-0123456789ab"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        (f"a-{TAG}", "a-@"),
        (f"st-{TAG}-0123456789", "st-@-#"),
        (f"op-{TAG}-sa-{TAG}-0123abcd-0123456789", "op-@-sa-@-#"),
        (f"op-{TAG}.0123456789abcdef", "op-@-#"),
        (f"p-{TAG}-{UID}", "p-@-uid"),
        (f"p-{TAG}-facade", "p-@-facade"),
    ],
)
def test_computed_parts_are_left_out(name: str, role: str) -> None:
    """Tags, the hashes after them and uids differ from run to run; whatever else a name has stays."""
    assert role_of(name) == role
