"""The hand-over where Argo CD is not there, and when it comes (p-138)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from handing_over import FUNCTIONS, PART, PLACE, SET, HandingOver
from paasing import example, make_roles, make_world, paas_name

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import NAMESPACE, finalizers_of
from tenantry.model.paas.names import APPLICATION_SET, HAND_OVER_FINALIZER, PAAS
from tenantry.testing.objects import obj


@pytest.mark.check("p-138")
async def test_what_cannot_be_handed_over_is_told_until_it_can(
    admin: Api, running: Callable[..., AbstractAsyncContextManager[Knative]]
) -> None:
    """A warning where ApplicationSets are not served, an error where one is missing; all else is there."""
    paasing, name = HandingOver(admin), paas_name()
    await make_world(admin, "os")
    await make_roles(admin)
    await admin.create(NAMESPACE, obj(NAMESPACE, PLACE))
    async with running({}, functions=FUNCTIONS):
        await paasing.config()
        spec = example()
        del spec["groups"]["others"]  # of which there is another warning
        await paasing.paas(name, **spec)
        await paasing.says(name, "Warnings", "HandOverUnavailable", "capability argocd", status="True")
        await paasing.ready(name)
        await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd")
        assert HAND_OVER_FINALIZER not in finalizers_of(await paasing.get(PAAS, name))

    await make_world(admin, "argo")
    async with running({}, functions=FUNCTIONS) as system:
        await system.sweep("release-provisioning")
        await paasing.says(name, "HasErrors", "ApplicationSetMissing", f"ApplicationSet {PLACE}/{SET}", status="True")
        await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd")
        assert await paasing.bindings(f"{name}-cicd")
        await paasing.application_set()
        await paasing.element_of(name, {})
        await paasing.says(name, PART, "Reconciling", status="True")
        await paasing.ready(name)

        await admin.delete(APPLICATION_SET, SET, PLACE)
        await paasing.says(name, "HasErrors", "ApplicationSetMissing", status="True")
        await paasing.application_set()
        await paasing.element_of(name, {})
        await paasing.leave(name)
