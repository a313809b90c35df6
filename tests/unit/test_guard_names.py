"""The guards' text: every name of ours is in it or is the user's, and the page says which."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scope_binding.namespace_scopes import names as namespace_scopes
from scope_binding.scopes import names as scopes
from tenantry.local.policies import NO_LABEL, for_config, guard_documents, guard_names
from tenantry.model import names
from tenantry.model.config import Config
from tenantry.model.paas import names as paas

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guards.md"
NO_MARKS = {
    "kubernetes.io/metadata.name": "the API server's",
    "helm.sh/release.v1": "Helm's; the guard on records knows it",
    "olm.operatorGroup": "OLM's",
    "olm.owner": "OLM's",
    "olm.owner.kind": "OLM's",
    "olm.owner.namespace": "OLM's",
    "tenantry.dev/RolesBound": "in a status that is guarded as a whole",
    "wrangler.cattle.io/on-helm-chart-remove": "taken off only beside ours",
    "wrangler.cattle.io/on-helm-release-remove": "taken off only beside ours",
    "wrangler.cattle.io/on-project-helm-chart-remove": "taken off only beside ours",
}
"""Names that are not ours to guard."""
_NAME = re.compile(r"[a-z0-9.-]+[./-][a-zA-Z0-9./-]+")
_NO_NAMES = (
    "CLUSTER_ADMIN",
    "FUNCTION",
    "MANAGER",
    "_ROLE",
    "_PREFIX",
    "_LIMIT",
    "SYSTEM_NAMESPACE",
    "HARDENING_POLICY",
    "_SOURCE",
    "GROUP_OF_KINDS",
    "VERSION",
    "QUOTA_NAME",
    "ARGO_POLICY",
)


def known() -> Iterator[str]:
    """Labels, annotations, finalizers and condition types that our code names."""
    for module in (names, namespace_scopes, scopes, paas):
        for constant, value in vars(module).items():
            if constant.isupper() and isinstance(value, str) and _NAME.fullmatch(value) and not constant.endswith(_NO_NAMES):
                yield value
    for family in scopes.FAMILIES.values():
        yield from (family.template_label, family.instance_label)


def guarded() -> str:
    found = [each["spec"] for each in guard_documents() if each["metadata"]["name"] in guard_names()]
    return "\n".join(part["expression"] for spec in found for part in spec.get("variables", []) + spec.get("validations", []))


@pytest.mark.parametrize("name", sorted(set(known()) - NO_MARKS.keys()))
def test_every_name_of_ours_is_guarded_or_said_to_be_the_users(name: str) -> None:
    """A name that code reads is in a guard, or the page says whose it is."""
    assert f'"{name}"' in guarded() or f"`{name}`" in PAGE.read_text(encoding="utf-8").partition("## Not guarded")[2]


def test_names_are_found() -> None:
    """The search finds labels, annotations, finalizers and conditions."""
    assert {names.OPERATED, names.ADOPT, names.LOCK_FINALIZER, names.REGISTERED_CONDITION, scopes.TEMPLATE_HASH} <= set(known())


@pytest.mark.parametrize(
    ("label", "system", "text"),
    [
        ("field.cattle.io/projectId", "cattle-helm-system", "field.cattle.io/projectId"),
        ("example.com/project", "helm-charts", "example.com/project"),
        ("", "helm-charts", NO_LABEL),
    ],
)
def test_guards_follow_the_configuration(label: str, system: str, text: str) -> None:
    """Project label and system namespace of the configuration are in all texts, and the defaults in none then."""
    config = Config.model_validate(
        {"global": {"cattle": {"projectLabel": label}}, "helmProjectOperator": {"systemNamespace": system}}
    )
    made = "\n".join(str(for_config(each, config)) for each in guard_documents())

    assert f'labels[?"{text}"]' in made
    assert f"metadata.labels[{text}]" in made
    assert f"'values': ['{system}']" in made
    assert ("field.cattle.io/projectId" in made) is (label == "field.cattle.io/projectId")
    assert ("cattle-helm-system" in made) is (system == "cattle-helm-system")
