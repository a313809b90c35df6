"""What of a function runs apart: its duties, each a Service of its own with an identity, rights and a fence of its own.

A function is one for people: its name is in logs, field managers, dead letters and events.  Where its units have duties of very
different strength they are deployed as one Service each, so that who steals the token of one has not the rights of the others
(decision 23).  A process knows its duty by `DUTY_VARIABLE`; without it, it has all duties of its function.
"""

from __future__ import annotations

from collections.abc import Iterable

DUTY_VARIABLE = "TENANTRY_DUTY"

_DUTIES = {
    "release-provisioning": {
        "releases": "release-provisioning",
        "helm-jobs": "release-provisioning-helm-jobs",
    },
    "scope-binding": {
        "scopes": "scope-binding",
        "namespace-scopes": "scope-binding-namespace-scopes",
        "olm": "scope-binding-olm",
    },
}
"""The Service of each duty of a function; a function that is not here has one duty and one Service, of its own name."""
_BY_SERVICE = {service: (function, duty) for function, duties in _DUTIES.items() for duty, service in duties.items()}
IN_FOLDERS = {"scope-binding-olm": "olm"}
"""Folders in ``knative/`` with the rights of an identity of another name, which come only with the system that needs them."""


def duties_of(function: str) -> tuple[str, ...]:
    """The duties of a function; none where it has only one."""
    return tuple(_DUTIES.get(function, ()))


def services_of(function: str) -> tuple[str, ...]:
    """The Services of a function, which are also the names of their identities; the first is called like the function."""
    return tuple(_DUTIES.get(function, {"": function}).values())


def all_services(functions: Iterable[str]) -> tuple[str, ...]:
    """The Services of several functions."""
    return tuple(service for function in functions for service in services_of(function))


def function_of(service: str) -> str:
    """The function that a Service is of."""
    return _BY_SERVICE.get(service, (service, ""))[0]


def duty_of(service: str) -> str:
    """The duty of a Service; empty where its function has only one."""
    return _BY_SERVICE.get(service, (service, ""))[1]


def rights_file(service: str) -> str:
    """Where the rights of an identity are."""
    return f"knative/{IN_FOLDERS.get(service, service)}/rights.yaml"


def service_of(function: str, duty: str) -> str:
    """The Service of a duty; of all duties together the one that is called like the function.

    Raises:
        LookupError: the function has no such duty.
    """
    return _DUTIES.get(function, {})[duty] if duty else function
