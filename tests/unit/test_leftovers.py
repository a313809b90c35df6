"""What is left of scopes that are gone: who looks at it, and who is told when it cannot be taken away."""

from __future__ import annotations

import owning
import pytest
from scope_objects import ROLES, declared, stored
from served import Served

from scope_binding.scopes.declared import roles_of
from scope_binding.scopes.names import MAIN
from scope_binding.scopes.plan import wanted_binding
from scope_binding.scopes.seen import wanted_cluster_role
from scope_binding.scopes.unit import Scopes
from tenantry.engine.leftovers import FEW, observe_leftovers
from tenantry.model.kinds import EVENT, SCOPE_INSTANCE, SCOPE_TEMPLATE, Object, key_of, labels_of
from tenantry.model.plan import Apply, Refusal

TEMPLATE = declared(SCOPE_TEMPLATE, "st", clusterRoles=ROLES)
INSTANCE = declared(SCOPE_INSTANCE, "si", scopeTemplateName="st", namespaces=["a"])
(ROLE,) = roles_of(TEMPLATE)
CLUSTER = stored(wanted_cluster_role(MAIN, ROLE, TEMPLATE, None))
BINDING = stored(wanted_binding(MAIN, ROLE, "a", INSTANCE, TEMPLATE))


@pytest.mark.parametrize(
    ("others", "owners"),
    [
        ([], [[f"ScopeTemplate.{MAIN.group}/st"]]),
        ([declared(SCOPE_INSTANCE, "another", scopeTemplateName="st")], []),
    ],
    ids=["nobody", "another"],
)
async def test_the_last_binding_of_an_instance_that_is_gone_has_its_template_looked_at(
    others: list[Object], owners: list[list[str]]
) -> None:
    """The garbage collector took a binding: the ClusterRole that waited for it may go, unless an instance names the template."""
    server = Served(TEMPLATE, CLUSTER, *others)
    assert [*await owning.owners(Scopes(), key_of(BINDING), labels_of(BINDING), server.reader())] == owners


@pytest.mark.parametrize(
    ("owner", "left", "namespace"),
    [
        (f"ScopeInstance.{MAIN.group}/si", BINDING, "a"),
        (f"ScopeTemplate.{MAIN.group}/st", CLUSTER, "default"),
    ],
    ids=["instance", "template"],
)
async def test_what_is_left_and_may_not_be_deleted_is_told_where_it_stands(owner: str, left: Object, namespace: str) -> None:
    """Nobody declares it and its deletion is refused: it has a Warning, once, whatever the words."""
    unit, server = Scopes(), Served(left)
    seen = await owning.observe(unit, owner, server.reader())
    assert [write.key for write in owning.handler(unit, owner).plan(seen).writes()] == [key_of(left)]
    (warning,) = owning.handler(unit, owner).report(seen, [Refusal(key_of(left), "rights", "forbidden 1")]).writes()
    assert isinstance(warning, Apply)
    told = warning.wanted
    assert (told["reason"], told["metadata"]["namespace"], told["regarding"]["name"]) == (
        "CleanUpFailed",
        namespace,
        left["metadata"]["name"],
    )
    assert "deleted: forbidden 1. To fix it, apply knative/scope-binding/rights.yaml again" in told["note"]
    assert list(owning.handler(unit, owner).report(seen, []).writes()) == []
    server.objects[key_of(told)] = stored(told)
    seen = await owning.observe(unit, owner, server.reader())
    assert list(owning.handler(unit, owner).report(seen, [Refusal(key_of(left), "rights", "forbidden 2")]).writes()) == []


async def test_of_many_the_first_few_are_told() -> None:
    """What thousands of bindings of one instance say costs a few reads."""
    many = [stored(wanted_binding(MAIN, ROLE, f"n{number}", INSTANCE, TEMPLATE)) for number in range(50)]
    server = Served()
    left = await observe_leftovers(many, server.reader())
    assert len(left.objects) == [key.kind for key in server.asked].count(EVENT.kind) == FEW
