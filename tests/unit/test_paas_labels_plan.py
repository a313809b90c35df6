"""Labels of namespaces of a Paas: which win, and which are never copied."""

from __future__ import annotations

from typing import Any

import pytest
from paas_cluster import PROJECT_LABEL, config, paas

from namespace_registration.paas.labels import is_protected, is_tools, namespace_labels, template_labels
from tenantry.model.paas.config import PaasConfig, config_of
from tenantry.model.paas.declared import Paas, paas_of


def _paas(labels: dict[str, str] | None = None, **spec: Any) -> Paas:
    live = paas("p", **spec)
    live["metadata"]["labels"] = labels or {}
    return paas_of(live)


def test_the_order_of_precedence() -> None:
    """Ours, then templates, then what is built in, then labels of the Paas."""
    known = config_of(config(templating={"namespaceLabels": {"requestor": "t", "team": "t", "clusterquotagroup": "t"}}))
    made = namespace_labels(_paas({"team": "paas", "x": "1"}, requestor="me"), "q", known, PROJECT_LABEL)
    assert made.written == {
        "cpet.belastingdienst.nl/managed-by-paas": "p",
        "clusterquotagroup": "q",
        "requestor": "t",
        "team": "t",
        "argocd.argoproj.io/managed-by": "p-argocd",
        "x": "1",
    }
    assert [each.reason for each in made.warnings] == ["ProtectedLabel"]


@pytest.mark.parametrize("key", ["a.b.istio.io/x", "istio.io/x", "own", "x.corp.example/y", "corp.example/y", "one.example/z"])
def test_protected_keys(key: str) -> None:
    """Domains with all that is in them, keys, and what administrators add."""
    known = PaasConfig(protected_labels=("own", "*.corp.example/*", "one.example/z"))
    assert is_protected(key, known, PROJECT_LABEL)
    assert is_protected(PROJECT_LABEL, known, PROJECT_LABEL)
    assert is_protected("mine/project", known, "mine/project")


@pytest.mark.parametrize("key", ["team", "notistio.io/x", "istio.io.example/x", "one.example/y", "corp", "istio.io"])
def test_keys_that_nobody_protects(key: str) -> None:
    """What only looks like one of them."""
    assert not is_protected(key, PaasConfig(protected_labels=("own", "*.corp.example/*", "one.example/z")), PROJECT_LABEL)


def test_labels_of_tools() -> None:
    """Only those of their own domain."""
    assert is_tools("app.kubernetes.io/instance")
    assert is_tools("helm.sh/chart")
    assert not is_tools("x.helm.sh/chart")


def test_values_that_no_label_can_have() -> None:
    """They are left out, and told with the field that they come from."""
    long = "x" * 60
    made = namespace_labels(_paas(requestor="a b", managedByPaas=long), "q", PaasConfig(), PROJECT_LABEL)
    assert set(made.written) == {"cpet.belastingdienst.nl/managed-by-paas", "clusterquotagroup"}
    assert {each.reason for each in made.errors} == {"InvalidLabelValue"}
    assert ["spec.requestor" in made.errors[0].text, "spec.managedByPaas" in made.errors[1].text] == [True, True]


def test_templates() -> None:
    """Placeholders are filled in; what is ours, no key, or no known placeholder is left out."""
    templates = {
        "a": "{{ .Paas.Name }}",
        "b": '{{ index .Paas.Labels "no" }}',
        "c": "{{ .Nothing }}",
        "tenantry.dev/x": "1",
        "-": "1",
    }
    made = template_labels(templates, _paas(), PaasConfig())
    assert (dict(made.written), made.errors) == ({"a": "p", "b": ""}, ())
