"""Frozen views of the Knative documents that one machine plays: sources, schedules, triggers, brokers, delivery.

One class per part of a document, with Knative's field names as aliases (camel case) and Python's inside.  They are strict:
a key that is not played here is refused with the list of those that are, so nobody believes in a setting that does
nothing.  `tenantry.local.manifests` loads them from files and says where an error is.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import from_json

from tenantry.local.cron import check_schedule
from tenantry.local.delivery import parse_duration
from tenantry.local.filters import EVERYTHING, Filter, parse_filters, parse_legacy
from tenantry.local.kinds import kind_of
from tenantry.model.kinds import Kind

EXTENSION_NAME = re.compile(r"[a-z0-9]+")
_RESERVED = frozenset(["specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data"])


FROM_DOCUMENT = "document"
"""The validation context of what comes from a file."""


class Strict(BaseModel):
    """A part of a document: frozen, no unknown key, no guessing of types."""

    _not_from_spec: ClassVar[frozenset[str]] = frozenset()

    model_config = ConfigDict(
        frozen=True, strict=True, alias_generator=to_camel, validate_by_name=True, arbitrary_types_allowed=True
    )

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, Mapping):
            aliases = {field.alias or name for name, field in cls.model_fields.items()}
            for key in value:
                # Python's own names are for Python; a document has Knative's.
                if key not in aliases and (info.context is FROM_DOCUMENT or key not in cls.model_fields):
                    known = ", ".join(sorted(aliases - cls._not_from_spec))
                    raise ValueError(f"unknown key {key!r}; known here are {known}")
        return value


Duration = Annotated[float, BeforeValidator(parse_duration)]


class Ref(Strict):
    """A reference to something that can be sent to, by kind and name."""

    api_version: str = ""
    kind: str
    name: str = Field(min_length=1)
    namespace: str = ""


class Destination(Strict):
    """Where events go: ``ref``, an absolute ``uri``, or a ``uri`` relative to the ``ref``."""

    ref: Ref | None = None
    uri: str = ""

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if self.ref is None and "://" not in self.uri:
            raise ValueError("give a ref, or an absolute uri such as http://127.0.0.1:8080/")
        return self

    def __str__(self) -> str:
        return f"{self.ref.kind}/{self.ref.name}{self.uri}" if self.ref else self.uri


class DeliverySpec(Strict):
    """How often, how fast and for how long a delivery is tried, and where it goes when all tries failed.

    Durations are in seconds.  The delays that follow are in `tenantry.local.delivery`.
    """

    retry: int = Field(default=0, ge=0)
    backoff_policy: Literal["linear", "exponential"] | None = None
    backoff_delay: Duration | None = None
    timeout: Duration | None = None
    dead_letter_sink: Destination | None = None
    retry_after_max: Duration | None = None
    format: Literal["json", "binary"] | None = None

    @field_validator("timeout")
    @classmethod
    def _positive(cls, value: float | None) -> float | None:
        if value == 0:
            raise ValueError("a timeout of zero would let nothing pass; leave it out for none")
        return value


class Overrides(Strict):
    """Extension attributes that a source adds to every event of its own."""

    extensions: Mapping[str, str] = Field(default_factory=dict)

    @field_validator("extensions")
    @classmethod
    def _legal(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        for name in value:
            if not EXTENSION_NAME.fullmatch(name) or name in _RESERVED:
                raise ValueError(f"{name!r} cannot be an extension: lower-case letters and digits, no core attribute")
        return value


class Requirement(Strict):
    """One matchExpressions entry of a label selector."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _values(self) -> Self:
        if bool(self.values) != (self.operator in ("In", "NotIn")):
            raise ValueError("In and NotIn need values, Exists and DoesNotExist take none")
        return self


class Selector(Strict):
    """A label selector; an empty one selects everything."""

    match_labels: Mapping[str, str] = Field(default_factory=dict)
    match_expressions: list[Requirement] = Field(default_factory=list)

    def __str__(self) -> str:
        """In the form of the API server's ``labelSelector`` parameter; empty for everything."""
        parts = [f"{key}={value}" for key, value in self.match_labels.items()]
        for each in self.match_expressions:
            match each.operator:
                case "Exists":
                    parts.append(each.key)
                case "DoesNotExist":
                    parts.append(f"!{each.key}")
                case _:
                    parts.append(f"{each.key} {each.operator.lower()} ({','.join(each.values)})")
        return ",".join(parts)


class Owner(Strict):
    """Only objects whose controller is of this apiVersion and kind."""

    api_version: str
    kind: str


class Watched(Strict):
    """A kind that a source watches."""

    api_version: str
    kind: str
    selector: Selector = Field(default_factory=Selector)

    @property
    def served_as(self) -> tuple[Kind, bool]:
        """The kind with its plural, and whether its scope is known without asking the server."""
        return kind_of(self.api_version, self.kind)


class Named(Strict):
    """Everything has a name and a namespace."""

    _not_from_spec: ClassVar[frozenset[str]] = frozenset(("name", "namespace"))

    name: str
    namespace: str


class SourceSpec(Named):
    """An ApiServerSource: which kinds are watched, where, and in which form their changes are told."""

    resources: list[Watched] = Field(min_length=1)
    mode: Literal["Reference", "Resource"] = "Reference"
    owner: Owner | None = None
    namespace_selector: Selector | None = None
    sink: Destination
    ce_overrides: Overrides = Field(default_factory=Overrides)
    service_account_name: str = "default"


class PingSpec(Named):
    """A PingSource: when to fire, and what to say."""

    schedule: str = "* * * * *"
    timezone: str = "UTC"
    content_type: str = ""
    data: str = ""
    data_base64: str = Field(default="", alias="dataBase64")
    sink: Destination
    ce_overrides: Overrides = Field(default_factory=Overrides)

    @model_validator(mode="after")
    def _checked(self) -> Self:
        check_schedule(self.schedule, self.timezone)
        if self.data and self.data_base64:
            raise ValueError("give data or dataBase64, not both")
        try:
            base64.b64decode(self.data_base64, validate=True)
        except binascii.Error:
            raise ValueError("dataBase64 is not base64") from None
        if self.data and self.content_type == "application/json":
            try:
                is_object = isinstance(from_json(self.data), dict)
            except ValueError:
                is_object = False
            if not is_object:
                raise ValueError("data of the contentType application/json must be a JSON object")
        return self

    @property
    def body(self) -> bytes | None:
        """The data as bytes; None without any."""
        return self.data.encode() or base64.b64decode(self.data_base64) or None


class TriggerSpec(Named):
    """A Trigger: which events of a broker go to which subscriber, and how."""

    broker: str
    filter: Filter = EVERYTHING
    subscriber: Destination
    delivery: DeliverySpec | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_filter(cls, value: Any) -> Any:
        """``filters`` wins over ``filter``, but a wrong one of either is refused."""
        if not isinstance(value, Mapping):
            return value
        value = dict(value)
        if value.get("filter") is not None and not isinstance(value["filter"], Filter):
            value["filter"] = parse_legacy(value["filter"], "filter")
        elif "filter" in value and value["filter"] is None:
            del value["filter"]
        if "filters" in value:
            value["filter"] = parse_filters(value.pop("filters"), "filters")
        return value


class BrokerSpec(Named):
    """A Broker: the delivery of Triggers that bring none, and their dead-letter sink."""

    delivery: DeliverySpec | None = None
    config: Ref | None = None
