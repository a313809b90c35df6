"""A ContainerSource that runs the adapter of ApiServerSource with a configuration of our own, as a `SourceSpec`.

An ApiServerSource that watches every namespace is replaced whenever a namespace comes or goes, and loses what it has not sent
yet; this shape is not.  Of the many things that a ContainerSource can be only this one is played here: one container, the
adapter, that watches all namespaces.  How the pod runs (probes, limits, security) means nothing on one machine.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import from_json

from tenantry.local.kinds import kind_served_as
from tenantry.local.specs import Destination, Named, Overrides, Requirement, Selector, SourceSpec, Strict, Watched
from tenantry.model.kinds import Kind

ADAPTER = "apiserver_receive_adapter"
_KEY = r"[A-Za-z0-9./_-]+"
_PARTS = re.compile(rf"(!?)({_KEY})|({_KEY})\s*==?\s*({_KEY})|({_KEY}) (in|notin) \(([^()]+)\)")


def selector_of(text: str) -> Selector:
    """A label selector in the form of the API server's ``labelSelector`` parameter.

    Raises:
        ValueError: it is not one.
    """
    labels: dict[str, str] = {}
    expressions: list[Requirement] = []
    for part in re.split(r",(?![^(]*\))", text) if text else ():
        found = _PARTS.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"{part.strip()!r} is no part of a label selector")
        absent, exists, label, value, key, operator, values = found.groups()
        if label:
            labels[label] = value
        elif exists:
            expressions.append(Requirement(key=exists, operator="DoesNotExist" if absent else "Exists"))
        else:
            given = [each.strip() for each in values.split(",")]
            expressions.append(Requirement(key=key, operator="In" if operator == "in" else "NotIn", values=given))
    return Selector(match_labels=labels, match_expressions=expressions)


def _adapter(image: str) -> str:
    if ADAPTER not in image:
        raise ValueError(f"only Knative's {ADAPTER} is played here")
    return image


def _everywhere(value: bool) -> bool:
    if not value:
        raise ValueError("only true is played here; an ApiServerSource watches one namespace, or those that it selects")
    return value


def _variables(value: Any) -> Any:
    """The list of a container's variables as a mapping; what is no such list is left for the schema to refuse."""
    if not isinstance(value, list) or not all(isinstance(each, dict) and each.keys() == {"name", "value"} for each in value):
        return value
    return {each["name"]: each["value"] for each in value}


def _decoded(value: Any) -> Any:
    try:
        return from_json(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f"not valid JSON: {error}") from None


class _Resource(Strict):
    group: str = Field(alias="Group")
    version: str = Field(alias="Version")
    resource: str = Field(alias="Resource")

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


def _known(value: _Resource) -> _Resource:
    if kind_served_as(value.api_version, value.resource) is None:
        raise ValueError(f"no kind is known here that is served as {value.resource} in {value.api_version}")
    return value


class _Listened(Strict):
    gvr: Annotated[_Resource, AfterValidator(_known)]
    selector: Annotated[Selector, BeforeValidator(lambda value: selector_of(value) if isinstance(value, str) else value)] = Field(
        default_factory=Selector
    )

    @property
    def kind(self) -> Kind:
        kind = kind_served_as(self.gvr.api_version, self.gvr.resource)
        assert kind is not None
        return kind


class _Configuration(Strict):
    namespaces: list[str]
    all_namespaces: Annotated[bool, AfterValidator(_everywhere)]
    mode: Literal["Reference", "Resource"]
    resources: list[_Listened] = Field(min_length=1)


class _Environment(Strict):
    name: str = Field(alias="NAME")
    namespace: str = Field(alias="NAMESPACE")
    system_namespace: str = Field(alias="SYSTEM_NAMESPACE")
    configuration: Annotated[_Configuration, BeforeValidator(_decoded)] = Field(alias="K_SOURCE_CONFIG")
    sink_timeout: str = Field(default="", alias="K_SINK_TIMEOUT")
    qps: str = Field(default="", alias="KUBE_API_QPS")
    burst: str = Field(default="", alias="KUBE_API_BURST")


class _Container(Strict):
    name: str
    image: Annotated[str, AfterValidator(_adapter)]
    env: Annotated[_Environment, BeforeValidator(_variables)]
    ports: Any = None
    readiness_probe: Any = None
    liveness_probe: Any = None
    resources: Any = None
    security_context: Any = None


class _Pod(Strict):
    service_account_name: str = "default"
    enable_service_links: bool = True
    priority_class_name: str = ""
    containers: list[_Container] = Field(min_length=1, max_length=1)


class _Template(Strict):
    spec: _Pod


class ContainerSpec(Named):
    """A ContainerSource whose container is the adapter."""

    sink: Destination
    ce_overrides: Overrides = Field(default_factory=Overrides)
    template: _Template

    @property
    def source(self) -> SourceSpec:
        """The ApiServerSource that watches the same."""
        pod = self.template.spec
        configuration = pod.containers[0].env.configuration
        watched = [
            Watched(api_version=each.kind.api_version, kind=each.kind.kind, selector=each.selector)
            for each in configuration.resources
        ]
        return SourceSpec(
            name=self.name,
            namespace=self.namespace,
            resources=watched,
            mode=configuration.mode,
            namespace_selector=Selector(),
            sink=self.sink,
            ce_overrides=self.ce_overrides,
            service_account_name=pod.service_account_name,
        )
