"""What a test says: the form of the file, typed.  Unknown keys and wrong values are errors with the key's path.

A test is one YAML document: what is given, then steps, each of what people do (when) and what follows from it (then).
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from tenantry.model.kinds import Object
from tenantry.serving.installed import descriptors

LONGEST_S = 600
ALL = "all"
WRITES = ("apply", "create", "patch", "delete")


def _objects(value: Any) -> Any:
    """One object, several, or the path of a file with some; what is in a file is looked at when it is read."""
    if isinstance(value, str) and value:
        return value
    for each in value if isinstance(value, list) and value else [value]:
        check_object(each)
    return value


def check_object(value: Any) -> None:
    """Whether a value can be an object.

    Raises:
        ValueError: it cannot; the message says what is missing.
    """
    if not isinstance(value, dict):
        raise ValueError("must be an object with apiVersion, kind and metadata, a list of such, or the path of a file with some")
    for key in ("apiVersion", "kind"):
        if not isinstance(value.get(key), str) or not value[key]:
            raise ValueError(f"an object needs {key}, as text")
    if not isinstance(value.get("metadata", {}), dict):
        raise ValueError("metadata must be a mapping")


def _named(value: Any) -> Any:
    if not isinstance(value, str):
        for each in value if isinstance(value, list) else [value]:
            if not isinstance(each.get("metadata", {}).get("name"), str):
                raise ValueError(f"the {each['kind']} needs metadata.name, as text")
    return value


def _one_kind(value: Any) -> Any:
    if isinstance(value, list | str):
        raise ValueError("must be one object; give each one an entry of its own")
    return value


def _functions(value: Any) -> Any:
    names = list(descriptors()) if value == ALL else value
    if not isinstance(names, list) or not names:
        raise ValueError(f"must be {ALL}, or a list of functions: {', '.join(descriptors())}")
    if unknown := [each for each in names if each not in descriptors()]:
        raise ValueError(f"there is no function {unknown[0]!r}: there are {', '.join(descriptors())}")
    return names


def _configuration(value: Any) -> Any:
    if value is not None and not isinstance(value, str | dict):
        raise ValueError("must be the path of a configuration file, or the configuration itself as a mapping")
    return value


Limit = Annotated[float, Field(gt=0, le=LONGEST_S)]
"""Seconds."""
Some = Annotated[Any, AfterValidator(_objects), AfterValidator(_named)]
"""Objects to be written."""
Like = Annotated[Any, AfterValidator(_one_kind), AfterValidator(_objects)]
"""What an object has to be like: a part of it, its name included or not."""
Text = Annotated[str, Field(min_length=1)]


class Entry(BaseModel):
    """A part of the file: frozen, and closed to unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)

    def which(self, *keys: str) -> list[str]:
        """Which of these keys the file gives."""
        return [key for key in keys if getattr(self, key) is not None]

    def one_of(self, *keys: str) -> str:
        """The only one of these keys that is given.

        Raises:
            ValueError: it is not one.
        """
        if len(found := self.which(*keys)) != 1:
            raise ValueError(f"needs one of {', '.join(keys)}, and has {' and '.join(found) or 'none'}")
        return found[0]


class Person(Entry):
    """Who does it: a user, or without one an administrator with all rights.  Every user is in `system:authenticated`."""

    user: str = Field("", alias="as")
    groups: list[Text] = Field(default_factory=list)

    @model_validator(mode="after")
    def _groups_of_somebody(self) -> Self:
        if self.groups and not self.user:
            raise ValueError("groups without `as`: say whose groups they are")
        return self

    @property
    def called(self) -> str:
        """For people."""
        return self.user or "an administrator"


class Write(Person):
    """Objects that somebody writes.  ``subresource`` is for patches, for example of a status that an operator would write."""

    apply: Some = None
    create: Some = None
    patch: Some = None
    delete: Some = None
    subresource: str = ""

    @model_validator(mode="after")
    def _one(self) -> Self:
        self.one_of(*self.verbs())
        if self.subresource and self.patch is None:
            raise ValueError("subresource goes with patch only")
        return self

    @classmethod
    def verbs(cls) -> tuple[str, ...]:
        """What can be done."""
        return WRITES

    @property
    def verb(self) -> str:
        """What is done."""
        return self.one_of(*self.verbs())

    @property
    def objects(self) -> Any:
        """As the file has them: an object, several, or the path of a file."""
        return getattr(self, self.verb)


class Action(Write):
    """What somebody does, or the schedule: a sweep looks at everything again, as it does every ten minutes in a cluster."""

    sweep: Annotated[Any, AfterValidator(_functions)] = None

    @classmethod
    def verbs(cls) -> tuple[str, ...]:
        """What can be done."""
        return (*WRITES, "sweep")


class Refused(Write):
    """What must be refused: it is tried as a dry run, so that it changes nothing even where it is not."""

    message: Text
    """A part of what the API server says."""


class Access(Person):
    """A question to the API server: may somebody do that?"""

    verbs: Annotated[list[Text], Field(min_length=1)]
    resource: Text
    """As `kubectl auth can-i` takes it: `configmaps`, `deployments.apps`, `deployments.apps/scale`."""
    namespace: str = ""
    name: str = ""

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if not self.user:
            raise ValueError("needs `as`: an administrator may do everything")
        return self


class Condition(Entry):
    """A status condition of an object."""

    api_version: Text
    kind: Text
    name: Text
    namespace: str = ""
    type: Text
    status: Text = "True"
    reason: str = ""
    message: str = ""
    """A part of it."""


CHECKS = ("expect", "absent", "can", "cannot", "condition", "refused")


class Check(Entry):
    """What has to be so, within the time."""

    expect: Like = None
    exact: list[Text] = Field(default_factory=list)
    """Paths in the object, such as `subjects` or `data`: there nothing else may be."""
    absent: Like = None
    can: Access | None = None
    cannot: Access | None = None
    condition: Condition | None = None
    refused: Refused | None = None
    within: Limit | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        self.one_of(*CHECKS)
        if self.exact and self.expect is None:
            raise ValueError("exact goes with expect only")
        return self

    @property
    def what(self) -> str:
        """Which check it is."""
        return self.one_of(*CHECKS)


class Concerned(Entry):
    """Events by the object that they tell of."""

    kind: Text
    name: str = ""
    namespace: str = ""


class Events(Entry):
    """What happens to events of the sources while a step runs."""

    lose: list[Concerned] = Field(default_factory=list)
    double: list[Concerned] = Field(default_factory=list)


class Step(Entry):
    """What people do, and what follows."""

    step: str = ""
    events: Events | None = None
    when: list[Action] = Field(default_factory=list)
    then: Annotated[list[Check], Field(min_length=1)]
    within: Limit | None = None


class Form(Entry):
    """One test."""

    test: Text
    """What it shows, in a sentence."""
    configuration: Annotated[Any, AfterValidator(_configuration)] = None
    charts: dict[str, Text] = Field(default_factory=dict)
    """Charts of this folder in place of those that the configuration names, by `releaseName`."""
    functions: Annotated[Any, AfterValidator(_functions), Field(validate_default=True)] = ALL
    given: list[Action] = Field(default_factory=list)
    steps: Annotated[list[Step], Field(min_length=1)]
    within: Limit | None = None


def objects_in(value: Any) -> list[Object]:
    """The objects of a `Write` that names no file."""
    return list(value) if isinstance(value, list) else [value]
