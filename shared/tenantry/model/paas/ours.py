"""What is ours: the proof that an object is made for a Paas, and the marks that we write (2.12).

A label, a name, a prefix, field managers, an owner reference with another uid prove nothing: whoever makes an object writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenantry.model.kinds import Object, annotations_of
from tenantry.model.paas.names import GROUP_OF_KINDS, MANAGED_BY_PAAS, PAAS, PAAS_UID


def owner_reference_of(obj: Object) -> Mapping[str, Any] | None:
    """The owner reference to a Paas that upstream writes, if there is one."""
    for each in obj["metadata"].get("ownerReferences") or ():
        if each.get("kind") == PAAS.kind and str(each.get("apiVersion", "")).partition("/")[0] == GROUP_OF_KINDS:
            found: Mapping[str, Any] = each
            return found
    return None


def uid_of(obj: Object) -> str:
    """The uid of the Paas that an object is proven to be made for; empty where it is proven for none."""
    if marked := annotations_of(obj).get(PAAS_UID):
        return marked
    reference = owner_reference_of(obj)
    return str(reference.get("uid") or "") if reference is not None else ""


def is_ours(obj: Object | None, name: str, uid: str) -> bool:
    """Whether an object is made for the Paas with this name and uid."""
    if obj is None or not uid or uid_of(obj) != uid:
        return False
    reference = owner_reference_of(obj)
    return PAAS_UID in annotations_of(obj) or (reference is not None and reference.get("name") == name)


def marked(name: str, uid: str) -> tuple[dict[str, str], dict[str, str]]:
    """The label and the annotation of what is made for a Paas."""
    return {MANAGED_BY_PAAS: name}, {PAAS_UID: uid}
