"""Duties of functions: which Service is of which, and what a process says to a duty that it does not know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tenantry.model.config import Config
from tenantry.model.descriptor import DUTY_VARIABLE, EventsOf, Service, Source, Trigger, Watch, joined_service
from tenantry.model.kinds import NAMESPACE, ROLE
from tenantry.serving import Settings
from tenantry.serving.config import ConfigError
from tenantry.serving.function import Function
from tenantry.serving.installed import UnknownFunction, descriptor_of, descriptors, service_named, services_of


def test_each_service_is_of_one_duty_of_one_function() -> None:
    """Names lead there and back; the first Service of a function has its name."""
    services = services_of(descriptors())
    assert len({each.name for each in services}) == len(services)
    for name, function in descriptors().items():
        assert (function.name, function.services[0].name) == (name, name)
        assert len(function.duties) in (0, len(function.services))
        for service in function.services:
            assert (service.function, function.service_of(service.duty), service_named(service.name)) == (name, service, service)
        assert function.service_of("").name == name


def test_who_is_not_described_is_a_function_of_its_own_or_unknown() -> None:
    """Such as who takes dead letters, or a person."""
    assert service_named("dead-letters").function == "dead-letters"
    with pytest.raises(UnknownFunction, match="there are: lock-enforcement, namespace-registration"):
        descriptor_of("dead-letters")


def test_rights_are_where_the_system_is_that_needs_them() -> None:
    """Those for OLM come with knative/olm."""
    assert service_named("scope-binding-olm").rights_file == "knative/olm/rights.yaml"
    assert service_named("scope-binding-namespace-scopes").rights_file == "knative/scope-binding-namespace-scopes/rights.yaml"


def settings_of(function: str) -> Settings:
    """What the units of a function are made from in this environment."""
    return Function(descriptor_of(function)).configure(Config())


def test_a_process_has_the_duty_that_its_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """And all of them when it names none."""
    services = descriptor_of("scope-binding").services
    monkeypatch.delenv(DUTY_VARIABLE, raising=False)
    assert all(map(settings_of("scope-binding").has, services))
    monkeypatch.setenv(DUTY_VARIABLE, "olm")
    assert [each.duty for each in services if settings_of("scope-binding").has(each)] == ["olm"]


@pytest.mark.parametrize(
    ("function", "duty", "words"),
    [
        ("scope-binding", "helm-jobs", "there are: scopes, namespace-scopes, olm"),
        ("release-provisioning", "jobs", "there are: releases, helm-jobs"),
        ("rbac-aggregation", "scopes", "there are: projects, paas"),
        ("lock-enforcement", "scopes", "there are: releases, access"),
        ("namespace-registration", "scopes", "leave the variable out"),
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


def test_units_of_one_service_join_what_they_need() -> None:
    """What both watch and are woken by is there once, and units that belong together have one index in common."""
    locks = descriptor_of("lock-enforcement")
    service, access = locks.services
    assert [unit for unit, of in locks.units if of.name == service.name] == [
        "lock_enforcement.releases",
        "lock_enforcement.sources",
    ]
    assert [unit for unit, of in locks.units if of.name == access.name] == [
        "lock_enforcement.access",
        "lock_enforcement.policies",
    ]
    for part in (service.sources, service.triggers):
        assert len({each.name for each in part}) == len(part)
    assert {each.name.rpartition("-")[2] for each in service.triggers} == {"releases", "records", "sources", "locked"}
    function = Function(locks)
    settings = function.configure(Config())
    (releases, sources, *_), again = function.units(settings), function.units(settings)
    assert vars(releases)["_index"] is vars(sources)["_index"]
    assert vars(again[0])["_index"] is not vars(releases)["_index"], "an engine has units of its own"


def test_parts_of_one_name_are_joined() -> None:
    """A unit that adds a kind to a source and to a Trigger that are there gets no second of them."""
    one = Service("a", "a", sources=(Source("s", (Watch(NAMESPACE),)),), triggers=(Trigger("t", (EventsOf(NAMESPACE, "a"),)),))
    watched = (Source("s", (Watch(NAMESPACE), Watch(ROLE))),)
    other = replace(one, sources=watched, triggers=(Trigger("t", (EventsOf(ROLE, "a"),)),))
    joined = joined_service([one, other])
    assert joined.sources == watched
    assert joined.triggers == (Trigger("t", (EventsOf(NAMESPACE, "a"), EventsOf(ROLE, "a"))),)


@pytest.mark.parametrize("whole", [(True, False), (False, True), (False, False)])
def test_objects_of_a_joined_source_travel_whole_where_one_unit_wants_that(whole: tuple[bool, bool]) -> None:
    """Whichever comes first."""
    units = [Service("a", "a", sources=(Source("s", (Watch(NAMESPACE),), whole=each),)) for each in whole]
    assert [each.whole for each in joined_service(units).sources] == [any(whole)]
