"""Every unit that makes bindings brings its explanation: a new one cannot forget it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from tenantry.cli.explain.units import explainers
from tenantry.local.deployment import deployment_folder
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, ROLE_BINDING, Kind
from tenantry.serving.installed import descriptors

BINDINGS = {"ROLE_BINDING": ROLE_BINDING, "CLUSTER_ROLE_BINDING": CLUSTER_ROLE_BINDING}
MAKING = frozenset({"create", "patch", "update"})
WRITES = frozenset({"Apply", "object_of", "binding_of"})
UNITS = {unit: service for function in descriptors().values() for unit, service in function.units}


def made_in(text: str) -> Iterator[Kind]:
    """The kinds of bindings that a module makes or writes, by the calls in it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WRITES:
            names = {each.id for argument in node.args for each in ast.walk(argument) if isinstance(each, ast.Name)}
            yield from (BINDINGS[each] for each in names & BINDINGS.keys())


def bindings_of(unit: str) -> set[Kind]:
    """The kinds of bindings that the modules of a unit make."""
    folder = Path(str(inspect.getfile(import_module(unit)))).parent
    return {kind for each in folder.glob("*.py") if each.name != "explain.py" for kind in made_in(each.read_text())}


def told_by(unit: str) -> set[Kind]:
    """The kinds of bindings that a unit explains."""
    return {kind for each in explainers() if each.module.__name__ == f"{unit}.explain" for kind in each.kinds} & set(
        BINDINGS.values()
    )


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_that_writes_bindings_explains_them(unit: str) -> None:
    """By what its code calls."""
    assert bindings_of(unit) <= told_by(unit)


@pytest.mark.parametrize("service", sorted({each.name for each in UNITS.values()}))
def test_a_service_that_may_make_bindings_has_a_unit_that_explains_them(service: str) -> None:
    """By its rights, which are those that it was seen to use: no binding is made beside them."""
    (rights,) = {each.rights_file for each in UNITS.values() if each.name == service}
    documents = [*yaml.safe_load_all((deployment_folder("knative").parent / rights).read_text())]
    rules = [rule for each in documents if each and each["kind"] in ("Role", "ClusterRole") for rule in each.get("rules") or ()]
    may = {
        kind
        for kind in BINDINGS.values()
        for rule in rules
        if kind.plural in rule.get("resources", ()) and MAKING & set(rule["verbs"])
    }
    units = [unit for unit, each in UNITS.items() if each.name == service]

    assert may <= {kind for unit in units for kind in told_by(unit)}


def test_the_search_sees_what_is_made() -> None:
    """It finds the units that are known to make bindings, so it would find another."""
    assert [*made_in("plan_of(Apply(ROLE_BINDING, wanted, live))")] == [ROLE_BINDING]
    assert [*made_in("reader.list(ROLE_BINDING)\nDelete(ROLE_BINDING, live)")] == []
    assert {unit for unit in UNITS if ROLE_BINDING in bindings_of(unit)} >= {
        "rbac_aggregation.paas",
        "rbac_aggregation.projects",
        "rbac_aggregation.tenants",
        "scope_binding.namespace_scopes",
        "scope_binding.paas",
    }


def test_every_unit_that_makes_something_explains_it() -> None:
    """What an uninstallation looks for has an explanation."""
    for function in descriptors().values():
        told = {kind for each in explainers() if each.function == function.name for kind in each.kinds}
        assert {product.kind for product in function.makes} <= told, function.name
