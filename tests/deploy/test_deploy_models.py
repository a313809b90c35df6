"""Every Knative object against the published schema of its kind.

The models ignore keys that they do not know, so a misspelt field would pass; comparing what was written with
what the model kept finds it. The models follow release 1.17, whose CRDs keep some documented fields without
listing them: ``UNLISTED`` names those, one reason each.
"""

from __future__ import annotations

import copy
import functools
import warnings
from typing import Any

import pytest
from manifests import Document, serving
from pydantic import BaseModel, ValidationError

CHECKED_BY_API_SERVER = {
    *("", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apps", "flowcontrol.apiserver.k8s.io", "networking.k8s.io"),
    *("policy", "rbac.authorization.k8s.io", "scheduling.k8s.io"),
}

UNLISTED = {
    # The CRDs of Broker and Trigger preserve unknown fields of delivery for this one; it is on by default.
    ("Broker", "spec.delivery.timeout"),
    ("Trigger", "spec.delivery.timeout"),
}


@functools.cache
def models() -> dict[tuple[str, str], type[BaseModel]]:
    """The model of each Knative kind in use, by apiVersion and kind."""
    with warnings.catch_warnings():
        # The generated models shadow names of their own base class and say so on import.
        warnings.simplefilter("ignore")
        from cloudcoil.models.knative_eventing.eventing import v1 as eventing
        from cloudcoil.models.knative_eventing.sources import v1 as sources
        from cloudcoil.models.knative_serving.serving import v1 as serving
    return {
        ("eventing.knative.dev/v1", "Broker"): eventing.Broker,
        ("eventing.knative.dev/v1", "Trigger"): eventing.Trigger,
        ("sources.knative.dev/v1", "ApiServerSource"): sources.ApiServerSource,
        ("sources.knative.dev/v1", "ContainerSource"): sources.ContainerSource,
        ("sources.knative.dev/v1", "PingSource"): sources.PingSource,
        ("sources.knative.dev/v1", "SinkBinding"): sources.SinkBinding,
        ("serving.knative.dev/v1", "Service"): serving.Service,
    }


def lost(written: Any, kept: Any, path: str = "") -> list[str]:
    """The paths that stand in ``written`` and not in ``kept``, list positions left out."""
    if isinstance(written, dict):
        if not isinstance(kept, dict):
            return [path]
        found: list[str] = []
        for key, value in written.items():
            below = f"{path}.{key}" if path else key
            found += lost(value, kept[key], below) if key in kept else [below]
        return found
    if isinstance(written, list):
        if not isinstance(kept, list) or len(kept) != len(written):
            return [path]
        return [gone for one, other in zip(written, kept, strict=True) for gone in lost(one, other, path)]
    return []


def unknown_keys(document: Document) -> list[str]:
    """Validate a Knative object; the keys that its schema does not know, without the documented unlisted ones."""
    model = models()[document.api_version, document.kind]
    kept = model.model_validate(copy.deepcopy(document.body)).model_dump(by_alias=True, exclude_unset=True, mode="json")
    return [path for path in lost(document.body, kept) if (document.kind, path) not in UNLISTED]


def test_knative_object_fits_its_schema(knative_object: Document) -> None:
    """Every Knative object validates against the schema of its kind and has no key that the schema does not know."""
    assert not unknown_keys(knative_object)


def test_every_kind_is_checked_somewhere(document: Document) -> None:
    """No object is of a kind that neither a Knative schema nor the API server checks."""
    assert (document.api_version, document.kind) in models() or document.group in CHECKED_BY_API_SERVER


def test_a_misspelt_key_is_found(installed: list[Document]) -> None:
    """A misspelt key deep inside an object is found, so the comparison proves something."""
    trigger = next(d for d in installed if d.kind == "Trigger")
    body = copy.deepcopy(trigger.body)
    body["spec"]["delivery"]["backoffpolicy"] = body["spec"]["delivery"].pop("backoffPolicy")

    assert unknown_keys(Document(trigger.path, body)) == ["spec.delivery.backoffpolicy"]


def test_a_wrong_type_is_found(installed: list[Document]) -> None:
    """A value of the wrong type is refused by the schema."""
    service = serving(installed)[0]
    body = copy.deepcopy(service.body)
    body["spec"]["template"]["spec"]["timeoutSeconds"] = "soon"

    with pytest.raises(ValidationError, match="timeoutSeconds"):
        unknown_keys(Document(service.path, body))


@pytest.mark.parametrize("key", ["apiVersion", "kind", "metadata"])
def test_objects_are_whole(document: Document, key: str) -> None:
    """Every object says what it is and what it is called."""
    assert document.body.get(key)


def test_objects_carry_the_label_of_the_product(document: Document) -> None:
    """Everything that is deployed can be listed by one label."""
    assert document.body["metadata"]["labels"]["app.kubernetes.io/part-of"] == "tenantry"
