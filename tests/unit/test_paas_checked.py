"""``tenantry paas check``: what the policies would say of manifests, without a cluster (p-196, but for regular expressions)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from namespace_registration.paas_checked import findings
from namespace_registration.paas_shapes import PAAS_CONFIG_SHAPE, PAAS_NS_SHAPE, PAAS_SHAPE
from tenantry.model.kinds import Object

GROUP = "cpet.belastingdienst.nl"
EXAMPLE = Path(__file__).parents[2] / "docs/examples/paas.yaml"
CONFIG: Object = {
    "apiVersion": f"{GROUP}/v1alpha2",
    "kind": "PaasConfig",
    "metadata": {"name": "c"},
    "spec": {
        "rolemappings": {"default": ["view"]},
        "capabilities": {
            "argocd": {"quotas": {"defaults": {"limits.cpu": 8}}, "custom_fields": {"git_url": {"required": True}}},
            "tekton": {"quotas": {"clusterwide": True, "defaults": {"limits.cpu": 1}}},
        },
    },
}


def manifest(kind: str = "Paas", version: str = "v1alpha2", metadata: Object | None = None, **spec: Any) -> Object:
    """A manifest as a person writes it."""
    written = {"quota": {}, **spec} if kind == "Paas" else spec
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": "p", **(metadata or {})}, "spec": written}


def said(*documents: Any) -> list[tuple[bool, str]]:
    """What is said of manifests."""
    return [(each.refused, each.text) for each in findings(documents, "field.cattle.io/projectId")]


def refused(*documents: Any) -> list[str]:
    """What is refused."""
    return [text for is_refused, text in said(*documents) if is_refused]


def test_the_example_is_accepted_with_its_warnings() -> None:
    """2.9: the contradictions of the source document's example are warned of, each with its path."""
    found = findings(list(yaml.safe_load_all(EXAMPLE.read_text())), "field.cattle.io/projectId")
    assert not [each for each in found if each.refused]
    assert [(each.document, each.text.partition(":")[0]) for each in found] == [
        ("PaasConfig opr-paas-config", "spec.capabilities[example-capability].quotas"),
        ("PaasConfig opr-paas-config", "spec.decryptKeyPaths"),
        ("PaasConfig opr-paas-config", "spec.exclude_appset_name"),
        ("Paas my-paas", "spec.groups[others].users"),
        ("Paas my-paas", "spec.groups[them].roles"),
        ("Paas my-paas", "spec.groups[us].roles"),
        ("Paas my-paas", "spec.capabilities[argocd]"),
    ]


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (manifest(metadata={"name": "a.b"}), "metadata.name"),
        (manifest(metadata={"name": "openshift-x"}), "metadata.name"),
        (manifest(metadata={"name": "paas-tekton"}), "metadata.name"),
        (manifest(version="v1alpha1"), "spec.requestor"),
        (manifest(requestor="a b"), "spec.requestor"),
        (manifest(managedByPaas="x" * 64), "spec.managedByPaas"),
        (manifest(namespaces=["Test"]), "spec.namespaces[Test]"),
        (manifest(namespaces=["x" * 62]), f"spec.namespaces[{'x' * 62}]"),
        (manifest(namespaces="text"), "spec.namespaces"),
        (manifest(namespaces=["a", 1]), "spec.namespaces (2 entries)"),
        (manifest(namespaces={"a": {"secrets": ["x"]}}), "spec.namespaces[a]"),
        (manifest(namespaces={"a": {"colour": "red"}}), "spec.namespaces[a]"),
        (manifest(namespaces={"a": {"groups": ["nobody"]}}), "spec.namespaces[a].groups"),
        (manifest(groups={"x" * 191: {}}), f'spec.groups["{"x" * 191}"]'),
        (manifest(groups={"g": {"query": "CN="}}), "spec.groups[g].query"),
        (manifest(groups={"g": {"query": r"CN=\73ystem:masters"}}), "spec.groups[g].query"),
        (manifest(groups={"g": {"users": ["a\tb"]}}), "spec.groups[g].users"),
        (manifest(groups={"g": {"users": ["me", ""]}}), "spec.groups[g].users[1]"),
        (manifest(groups={"g": "us"}), "spec.groups[g]"),
        (manifest(capabilities={"argocd": "on"}), "spec.capabilities[argocd]"),
        (manifest(quota=None), "spec.quota"),
        (manifest(groups={"g": {"roles": ["default"] * 65}}), "spec.groups[g].roles"),
        (manifest(groups={f"g{each}": {} for each in range(501)}), "spec.groups"),
        (manifest(quota={"limits.cpu": "abc"}), "spec.quota[limits.cpu]"),
        (manifest(quota={"limits.cpu": "1e999999"}), "spec.quota[limits.cpu]"),
        (manifest(quota={"limits.cpu": -1}), "spec.quota[limits.cpu]"),
        (manifest(capabilities={"A": {"enabled": False}}), "spec.capabilities[A]"),
        (manifest(capabilities={"argocd": {}}), "spec.capabilities[argocd].custom_fields[git_url]"),
        (
            manifest(capabilities={"argocd": {"gitUrl": "x", "custom_fields": {"y": "1"}}}),
            "spec.capabilities[argocd].custom_fields[y]",
        ),
        (manifest("PaasNS", metadata={"name": "a.b", "namespace": "p-a"}), "metadata.name"),
        (manifest("PaasNS", "v1alpha1", {"namespace": "p-a"}), "spec.paas"),
        (manifest("PaasNS", metadata={"namespace": "other-a"}, paas="p"), "metadata.namespace"),
        (manifest("PaasConfig", quota_label="a b"), "spec.quota_label"),
    ],
)
def test_what_is_refused_names_its_path(document: Object, path: str) -> None:
    """Each alone, beside a configuration."""
    documents = [document] if document["kind"] == "PaasConfig" else [CONFIG, document]
    (text,) = refused(*documents)
    assert text.startswith(f"{path}:"), text


@pytest.mark.parametrize(
    ("policy", "spec", "path"),
    [
        ({"unknownRolePolicy": "Reject"}, {"groups": {"g": {"roles": ["viewer"]}}}, "spec.groups[g].roles: viewer"),
        ({"unknownCapabilityPolicy": "Reject"}, {"capabilities": {"nope": {}}}, "spec.capabilities[nope]"),
        ({"feature_flags": {"group_user_management": "block"}}, {"groups": {"g": {"users": ["me"]}}}, "spec.groups[g].users"),
    ],
)
def test_policies_of_the_configuration_refuse_or_warn(policy: Object, spec: Object, path: str) -> None:
    """What is only warned of by default is refused where the configuration says so."""
    strict = {**CONFIG, "spec": {**CONFIG["spec"], **policy}}
    (text,) = refused(strict, manifest(**spec))
    assert text.startswith(path)
    assert refused(CONFIG, manifest(**spec)) == []


def test_a_capability_is_on_by_the_version_that_does_not_say_so() -> None:
    """p-84: required fields are missed in v1alpha2 only."""
    assert refused(CONFIG, manifest(version="v1alpha1", requestor="x", capabilities={"argocd": None})) == []
    assert len(refused(CONFIG, manifest(capabilities={"argocd": None}))) == 1


def test_warnings() -> None:
    """What is ignored, or questionable, is said and accepted."""
    labels = {"labels": {"team": "a", "istio.io/x": "b", "helm.sh/chart": "c", "field.cattle.io/projectId": "d"}}
    spec: Object = {
        "namespaces": {"a": {"secrets": {"u": "s"}}},
        "sshSecrets": {"u": "s"},
        "capabilities": {"tekton": {"extra_permissions": True, "quota": {"requests.cpu": 2, "limits.cpu": 1}}},
    }
    found = said(CONFIG, manifest(metadata=labels, **spec))
    assert not [text for is_refused, text in found if is_refused]
    assert [text.partition(":")[0] for _, text in found] == [
        "spec.capabilities[tekton].quota",
        "spec.capabilities[tekton].extra_permissions",
        "metadata.labels[field.cattle.io/projectId]",
        "metadata.labels[istio.io/x]",
        "spec.sshSecrets",
        "spec.namespaces[a].secrets",
        "spec.quota",
    ]


def test_groups_of_a_paas_ns_are_those_of_its_paas() -> None:
    """As far as that is among the manifests; a second configuration is refused."""
    stray = manifest("PaasNS", metadata={"namespace": "p-a"}, paas="p", groups=["us", "nobody"])
    (text,) = refused(manifest(groups={"us": {}}), stray)
    assert text.startswith("spec.groups: nobody")
    assert refused(stray) == []
    (text,) = refused(CONFIG, {**CONFIG, "metadata": {"name": "d"}})
    assert "second PaasConfig" in text


def test_other_documents_are_passed_over() -> None:
    """A folder has more in it."""
    assert said({"kind": "Namespace", "metadata": {"name": "x"}}, None, "text") == []


# -- shapes ----------------------------------------------------------------------------------------------------------


def _bare(schema: Any) -> Any:
    """A schema of a CRD without what says nothing about values: descriptions, defaults, how lists and maps merge, rules."""
    if not isinstance(schema, dict):
        return schema
    left = {key: value for key, value in schema.items() if key not in ("description", "default", "format")}
    bare = {key: value for key, value in left.items() if not key.startswith("x-kubernetes-") or key in _KEPT}
    return {
        key: {name: _bare(each) for name, each in value.items()} if key == "properties" else _bare(value)
        for key, value in bare.items()
    }


_KEPT = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
SHAPES = {"paas": PAAS_SHAPE, "paasns": PAAS_NS_SHAPE, "paasconfig": PAAS_CONFIG_SHAPE}


@pytest.mark.parametrize("kind", SHAPES)
def test_shapes_are_those_of_the_crds(kind: str) -> None:
    """Both versions of each, field by field."""
    crd = yaml.safe_load((Path(__file__).parents[2] / f"knative/crds/{kind}.yaml").read_text())
    for version in crd["spec"]["versions"]:
        assert _bare(version["schema"]["openAPIV3Schema"]["properties"]["spec"]) == SHAPES[kind]


@pytest.mark.parametrize(
    "document",
    [{"kind": kind, **written} for kind in ("Paas", "PaasNS", "PaasConfig") for written in (
        {}, {"metadata": []}, {"metadata": {"name": 5}, "spec": []}, {"spec": "text"}, {"spec": {"capabilities": [1]}},
        {"spec": {"groups": [1], "namespaces": [None], "quota": 1, "rolemappings": 1, "templating": {"groupLabels": [1]}}},
    )],
)  # fmt: skip
def test_whatever_stands_in_a_file_is_read(document: Object) -> None:
    """A mistake is told, and ends nothing."""
    found = said(CONFIG, document)
    assert refused(CONFIG, document) or document["kind"] != "Paas", found
