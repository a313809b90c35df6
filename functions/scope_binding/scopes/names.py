"""Names, labels and owner references of the objects of scopes, and whose an object is by them.

The ``operators.coreos.io`` labels are those of the Oria operator, so that its objects are recognised and its users find theirs.
The hash label holds what the object itself was made from, not the whole spec: a change elsewhere in a spec writes nothing here.
Names are computed, never generated: two runs at once, or an event that comes twice, make one object (O-11).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tenantry.model.identifiers import digest
from tenantry.model.kinds import (
    SCOPE_INSTANCE,
    SCOPE_INSTANCE_FRAMEWORK,
    SCOPE_TEMPLATE,
    SCOPE_TEMPLATE_FRAMEWORK,
    Kind,
    Object,
    labels_of,
)
from tenantry.model.names import SCOPE_INSTANCE_UID, SCOPE_TEMPLATE_UID, field_manager

TEMPLATED, SCOPED = "Templated", "Scoped"
"""Types of the conditions on templates and on instances."""

MANAGER = field_manager("scope-binding")

TEMPLATE_UID = SCOPE_TEMPLATE_UID
TEMPLATE_HASH = "operators.coreos.io/scopeTemplateHash"
INSTANCE_UID = SCOPE_INSTANCE_UID
INSTANCE_HASH = "operators.coreos.io/scopeInstanceAndTemplateHash"
GENERATE_NAME = "operators.coreos.io/generateName"

LABEL_LIMIT = 63
PREFIX_LIMIT = 52  # of a binding's name (O-11)
HASH_LENGTH = 10
PUNCTUATION = "-._"


@dataclass(frozen=True, slots=True)
class Family:
    """The two kinds of one API group; an instance names a template of its own group.

    ``template_label`` is on ClusterRoles and bindings and holds the template's name, ``instance_label`` is on
    bindings and holds the instance's: so what a deleted one left is found without knowing its uid.
    """

    template: Kind
    instance: Kind
    template_label: str
    instance_label: str

    @property
    def group(self) -> str:
        """The API group."""
        return self.template.group

    def label_for(self, kind: str) -> str:
        """The label that holds the name of the template or of the instance."""
        return self.template_label if kind == self.template.kind else self.instance_label


MAIN = Family(SCOPE_TEMPLATE, SCOPE_INSTANCE, "tenantry.dev/scope-template", "tenantry.dev/scope-instance")
FRAMEWORK = Family(
    SCOPE_TEMPLATE_FRAMEWORK,
    SCOPE_INSTANCE_FRAMEWORK,
    "tenantry.dev/framework-scope-template",
    "tenantry.dev/framework-scope-instance",
)
FAMILIES = {family.group: family for family in (MAIN, FRAMEWORK)}
DECLARATIONS = tuple(kind for family in FAMILIES.values() for kind in (family.template, family.instance))
"""The kinds in which people declare scopes."""


def family_of(api_version: str) -> Family:
    """The family of a template, an instance, or an owner reference to one."""
    return FAMILIES[api_version.partition("/")[0]]


def short_digest(*parts: Any) -> str:
    """Ten lower-case characters that depend on all parts."""
    return digest(*parts, length=HASH_LENGTH)


def as_label(text: str) -> str:
    """A name as the value of a label; one that does not fit is cut and made unique again."""
    if len(text) > LABEL_LIMIT:
        text = f"{text[:PREFIX_LIMIT]}-{short_digest(text)}"
    return text.strip(PUNCTUATION)


def cluster_role_name(generate_name: str, template_uid: str) -> str:
    """The name of a role's ClusterRole: as written, or begun with it when it ends in punctuation (O-3)."""
    if generate_name[-1:] in PUNCTUATION:
        return generate_name + short_digest(template_uid, generate_name)
    return generate_name


def binding_name(instance_uid: str, generate_name: str, namespace: str) -> str:
    """The name of the binding of a role in a namespace, or in the whole cluster when that is empty (O-11)."""
    prefix = generate_name[:PREFIX_LIMIT].rstrip(PUNCTUATION)
    return f"{prefix}-{short_digest(instance_uid, generate_name, namespace)}"


def owner_reference(owner: Object) -> Object:
    """The controller reference to a template or an instance, as the Oria operator writes it.

    ``blockOwnerDeletion``: an owner that is deleted in the foreground goes after what was made for it.
    """
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def reference_to(obj: Object, kind: str) -> Object | None:
    """The owner reference of an object to a ScopeTemplate or ScopeInstance of one of our groups."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("kind") == kind and reference.get("apiVersion", "").partition("/")[0] in FAMILIES:
            return dict(reference)
    return None


def is_of(obj: Object, owner: Object, uid_label: str) -> bool:
    """Whether an object is of this very template or instance: by its label, or by its owner reference."""
    uid = owner["metadata"]["uid"]
    reference = reference_to(obj, owner["kind"])
    return labels_of(obj).get(uid_label) == uid or (reference is not None and reference.get("uid") == uid)


def was_of(obj: Object, kind: Kind, name: str) -> bool:
    """Whether an object is of some template or instance of this name, also of a deleted one."""
    reference = reference_to(obj, kind.kind)
    if reference is None:
        return labels_of(obj).get(family_of(kind.api_version).label_for(kind.kind)) == as_label(name)
    return reference["apiVersion"] == kind.api_version and reference.get("name") == name
