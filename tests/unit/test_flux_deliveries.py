"""What of a tenant's manifests will not be applied, as far as no cluster is needed; and durations."""

from __future__ import annotations

import pytest
import yaml

from tenantry.model.flux.deliveries import delivery_of, undeliverable
from tenantry.model.flux.durations import duration
from tenantry.model.kinds import Object

CONFIG_MAP: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
SCOPES = {("v1", "ConfigMap"): True, ("v1", "Namespace"): False}


def said(**texts: object) -> dict[str, str]:
    """By file what is said of it; each is a list of documents or a text."""
    files = {
        name.replace("_", "."): text if isinstance(text, str) else yaml.safe_dump_all(text)  # type: ignore[call-overload]
        for name, text in texts.items()
    }
    delivery = delivery_of(files, {"apps"})
    return {each.file: f"{each.kind} {each.name} {each.why}".strip() for each in undeliverable(delivery, SCOPES, {"apps"})}


def test_what_is_the_tenants_own_is_not_listed() -> None:
    """Objects of its namespaces and without one; instructions, values and patches are no objects."""
    own = {**CONFIG_MAP, "metadata": {"name": "d", "namespace": "apps"}}
    assert said(a_yaml=[CONFIG_MAP, own], values_yaml="replicas: 1\n", patch_yaml="- op: add\n") == {}
    assert said(kustomization_yaml="kind: Kustomization\nnamespace: apps\nresources: [a.yaml]\n") == {}


def test_lists_and_other_namespaces_are_looked_into() -> None:
    """Also by instructions, which put everything elsewhere."""
    foreign = {**CONFIG_MAP, "metadata": {"name": "c", "namespace": "other"}}
    found = said(a_yaml=[{"apiVersion": "v1", "kind": "List", "items": [foreign]}], kustomization_yaml="namespace: other\n")
    assert found == {
        "a.yaml": "ConfigMap c is for namespace other, which is not the tenant's",
        "kustomization.yaml": "puts everything into namespace other, which is not the tenant's",
    }


def test_what_cannot_be_judged_is_listed() -> None:
    """Broken files, and kinds that nobody serves; not those that a CRD beside them brings."""
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing"}, "versions": [{"name": "v1"}]},
    }
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    assert "not valid YAML" in said(a_yaml="a: [\n")["a.yaml"]
    assert "is not served" in said(a_yaml=[thing])["a.yaml"]
    assert list(said(a_yaml=[thing], b_yaml=[crd])) == ["b.yaml"]


@pytest.mark.parametrize("spec", [None, [], {"names": 1, "versions": {}}, {"names": {}, "versions": [1, {"name": None}]}])
def test_a_broken_definition_is_no_reason_to_fail(spec: object) -> None:
    """It is listed like others."""
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"}, "spec": spec}
    assert "not served" in said(a_yaml=[crd])["a.yaml"]


@pytest.mark.parametrize(
    ("written", "printed"),
    [("1m", "1m0s"), ("90s", "1m30s"), ("5m", "5m0s"), ("1h", "1h0m0s"), ("1.5s", "1.5s"), ("500ms", "500ms"), ("0.5h", "30m0s")],
)
def test_durations_have_one_form(written: str, printed: str) -> None:
    """That of Flux' own command."""
    assert duration(written) == printed
    assert duration(printed) == printed


@pytest.mark.parametrize("written", ["", "5", "0s", "-1m", "1d", "1m ", "1e3s", "999999999h"])
def test_what_is_no_duration_is_refused(written: str) -> None:
    """With what one looks like, or how long one may be."""
    with pytest.raises(ValueError, match="duration"):
        duration(written)
