"""Whom an event of a declaration touches, without a cluster."""

from __future__ import annotations

import owning
from scope_objects import declared
from served import Served

from scope_binding.scopes.names import MANAGER, family_of
from scope_binding.scopes.seen import InstanceSeen
from scope_binding.scopes.unit import GENERATED_S, Scopes
from tenantry.model.kinds import SCOPE_INSTANCE, SCOPE_TEMPLATE, Key, Object
from tenantry.model.names import SCOPE_GENERATED

GROUP = SCOPE_TEMPLATE.group
WELL = [{"type": each, "status": "True", "observedGeneration": 1} for each in ("Templated", "Scoped")]
TEMPLATE = {**declared(SCOPE_TEMPLATE, "st", clusterRoles=[]), "status": {"conditions": WELL}}
INSTANCE = {**declared(SCOPE_INSTANCE, "si", scopeTemplateName="st"), "status": {"conditions": WELL}}
SERVER = Served(TEMPLATE, INSTANCE)
FAMILY = family_of(SCOPE_INSTANCE.api_version)


async def test_an_event_that_comes_again_goes_to_the_instances_again() -> None:
    """The template was put right and says so, but an instance may have failed after it: its event is not taken for an echo."""
    unit = Scopes()
    key = Key(SCOPE_TEMPLATE.api_version, "ScopeTemplate", "", "st")
    template, instance = f"ScopeTemplate.{GROUP}/st", f"ScopeInstance.{GROUP}/si"
    for _ in range(2):
        assert await owning.owners(unit, key, {}, SERVER.reader()) == [[template], [instance], [template]]
        await owning.observe(unit, template, SERVER.reader())
        owning.ended(unit, template, True)
        await owning.observe(unit, instance, SERVER.reader())
        owning.ended(unit, instance, False)


async def test_an_instance_whose_event_comes_again_is_looked_at_again() -> None:
    """What came after the instance, such as the end of a template that nobody names any more, may have failed."""
    unit = Scopes()
    key = Key(SCOPE_INSTANCE.api_version, "ScopeInstance", "", "si")
    for _ in range(2):
        stages = await owning.owners(unit, key, {}, SERVER.reader())
        assert stages == [[f"ScopeTemplate.{GROUP}/st"], [f"ScopeInstance.{GROUP}/si"]]
        await owning.observe(unit, f"ScopeInstance.{GROUP}/si", SERVER.reader())
        owning.ended(unit, f"ScopeInstance.{GROUP}/si", True)


def test_what_a_generated_scope_loses_waits_for_its_mending() -> None:
    """Nobody is waited for where people declare; a moment where ``olm`` does, and again while one sees that it was edited."""
    handler = owning.handler(Scopes(), f"ScopeInstance.{GROUP}/si")

    def made(declaration: Object, field: str, *managers: str) -> Object:
        owned = [{"manager": each, "operation": "Update", "fieldsV1": {"f:spec": {f"f:{field}": {}}}} for each in managers]
        metadata = {**declaration["metadata"], "labels": {SCOPE_GENERATED: "true"}, "managedFields": owned}
        return {**declaration, "metadata": metadata}

    def waits(instance: tuple[str, ...], template: tuple[str, ...] | None) -> bool:
        found = made(TEMPLATE, "clusterRoles", *template) if template is not None else None
        seen = InstanceSeen(FAMILY, made(INSTANCE, "scopeTemplateName", *instance), found)
        assert handler.second_look_after_s(seen) == GENERATED_S
        return handler.unsettled(seen)

    for seen in (InstanceSeen(FAMILY, None), InstanceSeen(FAMILY, INSTANCE, TEMPLATE)):
        assert (handler.second_look_after_s(seen), handler.unsettled(seen)) == (0, False)
    assert not waits((MANAGER,), (MANAGER,))
    for instance in ((MANAGER, "kubectl"), ("kubectl",), ()):  # a hand's beside ours, in place of ours, and none: removed
        assert waits(instance, (MANAGER,))
        assert waits((MANAGER,), instance)
    assert waits((MANAGER,), None)
