"""The functions that are installed, by their descriptors: each distribution names its own as entry points of `GROUP`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points

from tenantry.model.descriptor import Descriptor, Service

GROUP = "tenantry.functions"


class UnknownFunction(LookupError):
    """There is no function of that name; the message lists those there are."""


@cache
def descriptors() -> dict[str, Descriptor]:
    """The descriptors of all functions, by name and in its order."""
    found: list[Descriptor] = [entry.load() for entry in entry_points(group=GROUP)]
    return {each.name: each for each in sorted(found, key=lambda each: each.name)}


def descriptor_of(function: str) -> Descriptor:
    """The descriptor of a function.

    Raises:
        UnknownFunction: it is not installed.
    """
    if function not in descriptors():
        raise UnknownFunction(f"no function {function!r}; there are: {', '.join(descriptors())}")
    return descriptors()[function]


def services_of(functions: Iterable[str]) -> tuple[Service, ...]:
    """The Services of several functions.

    Raises:
        UnknownFunction: one of them is not installed.
    """
    return tuple(service for function in functions for service in descriptor_of(function).services)


@cache
def service_named(name: str) -> Service:
    """The Service of a name; one of its own for what no descriptor has, such as ``dead-letters``."""
    return next((each for each in services_of(descriptors()) if each.name == name), Service(name, name))
