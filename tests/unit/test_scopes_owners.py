"""Whom an event of a declaration touches, without a cluster."""

from __future__ import annotations

import owning
from scope_objects import declared
from served import Served

from scope_binding.scopes.unit import Scopes
from tenantry.model.kinds import SCOPE_INSTANCE, SCOPE_TEMPLATE, Key

GROUP = SCOPE_TEMPLATE.group
WELL = [{"type": each, "status": "True", "observedGeneration": 1} for each in ("Templated", "Scoped")]
TEMPLATE = {**declared(SCOPE_TEMPLATE, "st", clusterRoles=[]), "status": {"conditions": WELL}}
INSTANCE = {**declared(SCOPE_INSTANCE, "si", scopeTemplateName="st"), "status": {"conditions": WELL}}
SERVER = Served(TEMPLATE, INSTANCE)


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
