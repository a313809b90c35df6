"""Duties of functions: which Service is of which, and what a process says to a duty that it does not know."""

from __future__ import annotations

import pytest

from tenantry.engine import Units
from tenantry.model.config import Config
from tenantry.model.duties import (
    DUTY_VARIABLE,
    all_services,
    duties_of,
    duty_of,
    function_of,
    rights_file,
    service_of,
    services_of,
)
from tenantry.serving import Settings
from tenantry.serving.config import ConfigError
from tenantry.serving.function import Function
from tenantry.serving.server import FUNCTIONS


def test_each_service_is_of_one_duty_of_one_function() -> None:
    """Names lead there and back; the first Service of a function has its name."""
    services = all_services(FUNCTIONS)
    assert len(set(services)) == len(services)
    for function in FUNCTIONS:
        assert services_of(function)[0] == function
        assert [(function_of(each), duty_of(each)) for each in services_of(function)] == [
            (function, duty) for duty in duties_of(function) or ("",)
        ]
        for service in services_of(function):
            assert service_of(function, duty_of(service)) == service
    assert service_of("scope-binding", "") == "scope-binding"


def test_rights_are_where_the_system_is_that_needs_them() -> None:
    """Those for OLM come with knative/olm."""
    assert rights_file("scope-binding-olm") == "knative/olm/rights.yaml"
    assert rights_file("scope-binding-namespace-scopes") == "knative/scope-binding-namespace-scopes/rights.yaml"


def settings_of(function: str) -> Settings:
    """What the units of a function are made from in this environment."""
    seen: list[Settings] = []

    def units(settings: Settings) -> Units:
        seen.append(settings)
        return []

    Function(function, units).configure(Config())
    return seen[0]


def test_a_process_has_the_duty_that_its_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """And all of them when it names none."""
    monkeypatch.delenv(DUTY_VARIABLE, raising=False)
    assert all(settings_of("scope-binding").has(duty) for duty in duties_of("scope-binding"))
    monkeypatch.setenv(DUTY_VARIABLE, "olm")
    assert [duty for duty in duties_of("scope-binding") if settings_of("scope-binding").has(duty)] == ["olm"]


@pytest.mark.parametrize(
    ("function", "duty", "words"),
    [
        ("scope-binding", "helm-jobs", "there are: scopes, namespace-scopes, olm"),
        ("release-provisioning", "jobs", "there are: releases, helm-jobs"),
        ("rbac-aggregation", "scopes", "leave the variable out"),
    ],
)
def test_an_unknown_duty_is_an_error_of_configuration(
    monkeypatch: pytest.MonkeyPatch, function: str, duty: str, words: str
) -> None:
    """It names the variable, the function and the duties that there are, and the process does not start."""
    monkeypatch.setenv(DUTY_VARIABLE, duty)
    with pytest.raises(ConfigError, match=f"{DUTY_VARIABLE}: {function} has no duty '{duty}'") as refused:
        settings_of(function)
    assert words in str(refused.value)
