"""What scope-binding reads twice before it takes something away."""

from __future__ import annotations

from typing import Any

import owning
import pytest
from scope_objects import ROLES, declared, stored
from served import Served

from scope_binding.scopes.declared import roles_of
from scope_binding.scopes.names import MAIN
from scope_binding.scopes.plan import wanted_binding
from scope_binding.scopes.seen import wanted_cluster_role
from scope_binding.scopes.unit import Scopes
from tenantry.model.kinds import NAMESPACE, SCOPE_INSTANCE, SCOPE_TEMPLATE, Key, Object, object_of
from tenantry.model.plan import Delete


class Server(Served):
    """One instance, bound in a place; its namespace is read in several states, one after the other."""

    def __init__(self, place: str, states: list[Object | None], **spec: Any) -> None:
        self.before: dict[str, Object] = {}
        self.template = declared(SCOPE_TEMPLATE, "st", clusterRoles=ROLES)
        self.instance = declared(SCOPE_INSTANCE, "si", scopeTemplateName="st", **spec)
        (role,) = roles_of(self.template)
        cluster_role = stored(wanted_cluster_role(MAIN, role, self.template, None))
        binding = stored(wanted_binding(MAIN, role, place, self.instance, self.template))
        super().__init__(self.template, self.instance, cluster_role, binding)
        self.states = states

    def found(self, key: Key) -> Object | None:
        if key.kind == NAMESPACE.kind:
            return self.states.pop(0)
        return self.before.pop(key.kind, None) or super().found(key)


def of_before(declaration: Object, **spec: Any) -> Object:
    metadata = {**declaration["metadata"], "generation": 0}
    return {**declaration, "metadata": metadata, "spec": {**declaration["spec"], **spec}}


def namespace(**labels: str) -> Object:
    return object_of(NAMESPACE, {"name": "a", "labels": labels})


async def taken(server: Server, part: str = "") -> bool:
    owner = f"ScopeInNamespace.{MAIN.group}/{part}/si" if part else f"ScopeInstance.{MAIN.group}/si"
    decided = await owning.decided(Scopes(), owner, server.reader())
    assert server.states == []
    return any(isinstance(write, Delete) for stage in decided.plan.stages[:1] for write in stage)


@pytest.mark.parametrize("there", [True, False])
async def test_a_missing_namespace_is_read_again_before_something_wider_goes(there: bool) -> None:
    """A namespace that only seems to be missing is waited for; one that is missing is not."""
    server = Server("", [None, namespace() if there else None], namespaces=["a"])
    assert await taken(server) is not there


@pytest.mark.parametrize("meant", [True, False])
async def test_a_namespace_that_left_is_read_again_before_its_binding_goes(meant: bool) -> None:
    """Labels of an older state take nothing away."""
    server = Server("a", [namespace(), namespace(env="e") if meant else namespace()], namespaceSelector={"env": "e"})
    assert await taken(server, part="a") is not meant


@pytest.mark.parametrize(("spec", "looks"), [({"scopeTemplateName": "other"}, 1), ({"namespaces": ["b"]}, 2)])
async def test_an_instance_of_before_takes_no_binding_away(spec: dict[str, Any], looks: int) -> None:
    """What an older state of the instance declared is not what it declares."""
    server = Server("a", [namespace()] * looks, namespaces=["a"])
    server.before[SCOPE_INSTANCE.kind] = of_before(server.instance, **spec)
    assert not await taken(server)


async def test_a_template_of_before_takes_nothing_away() -> None:
    """Neither a binding nor a ClusterRole goes because of what an older state of the template lacked."""
    server = Server("a", [namespace()] * 2, namespaces=["a"])
    server.before[SCOPE_TEMPLATE.kind] = of_before(server.template, clusterRoles=[])
    assert not await taken(server)

    server.before[SCOPE_TEMPLATE.kind] = of_before(server.template, clusterRoles=[])
    decided = await owning.decided(Scopes(), f"ScopeTemplate.{MAIN.group}/st", server.reader())
    assert not [write for write in decided.plan.writes() if isinstance(write, Delete)]
