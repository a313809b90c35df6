"""What a hand may change in a fault plan."""

from __future__ import annotations

from tenantry.model.kinds import Object
from tenantry.testing.disturbances import owned_paths

US, OTHER = "us", "other"
HOOKS: Object = {"f:webhooks": {".": {}, 'k:{"name":"a"}': {".": {}, "f:namespaceSelector": {}}}}


def owned(*entries: tuple[str, Object]) -> list[tuple[str, ...]]:
    fields = [{"manager": manager, "operation": "Apply", "fieldsV1": fields} for manager, fields in entries]
    return owned_paths({"metadata": {"managedFields": fields}}, US)


def test_a_list_in_which_others_have_items_stays() -> None:
    """Who takes the list away takes the others' items, and nobody of ours puts those back."""
    assert owned((US, HOOKS)) == [("webhooks",)]
    assert owned((US, HOOKS), (OTHER, HOOKS)) == []


def test_single_fields_of_two_owners_may_change() -> None:
    """What we own we put back, whoever else owns it, labels included; of the rest of the metadata nothing changes."""
    fields: Object = {"f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {"v:x": {}}}, "f:data": {"f:key": {}}}
    assert owned((US, fields), (OTHER, fields)) == [("metadata", "labels", "a"), ("data", "key")]
