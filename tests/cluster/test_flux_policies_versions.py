"""Reference policies and the versions of Flux' kinds that are served (3.3)."""

from __future__ import annotations

import pytest
from flux_crds import crd, current, flux_kind, version_of
from flux_policing import APP1, TEAM2, TWO, Policing, admitted, denied, kustomization
from times import LEFT_TO_MAKE_WHOLE

from tenantry.model.flux.consumers import CONSUMERS
from tenantry.model.flux.policies.served import Served
from tenantry.model.kinds import ADMISSION_POLICY, Object

pytestmark = LEFT_TO_MAKE_WHOLE


def mixed() -> list[Object]:
    """Kustomization as 2.7 serves it, and all others as 2.9."""
    kind = flux_kind("Kustomization")
    both = version_of("v1", kind.spec), version_of("v1beta2", kind.spec, storage=False)
    return [*(each for each in current() if each["metadata"]["name"] != kind.crd_name), crd(kind, *both)]


async def named(policing: Policing, resource: str) -> list[str]:
    """The versions that the reference policy of a resource names."""
    (consumer,) = (each for each in CONSUMERS if each.resource == resource)
    policy = await policing.admin.get(ADMISSION_POLICY, f"tenantry-references-{consumer.name}")
    assert policy is not None
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    assert rule["resources"] == [resource]
    served = Served.of(await policing.admin.groups())
    assert set(rule["apiVersions"]) == set(served.versions(consumer.group, resource))
    return sorted(rule["apiVersions"])


@pytest.mark.check("f-81")
async def test_every_served_version_is_judged_alike(policing: Policing) -> None:
    """A policy names what discovery serves and no star; requests through either version have the same answers."""
    await policing.enforce()
    versions = {each.resource: await named(policing, each.resource) for each in CONSUMERS}
    assert versions["kustomizations"] == ["v1"]
    assert versions["helmreleases"] == ["v2"]
    assert "*" not in [version for found in versions.values() for version in found]

    await policing.furnish(mixed())
    await policing.enforce()
    assert await named(policing, "kustomizations") == ["v1", "v1beta2"]
    for grants, judge in (({}, denied), ({APP1: TWO}, admitted)):
        await policing.index(grants)
        for version in ("v1", "v1beta2"):
            body = kustomization("dev-team2", APP1)
            body["apiVersion"] = body["apiVersion"].replace("/v1", f"/{version}")
            judge(await policing.create(body, user=TEAM2))
            local = {**kustomization("dev-team2"), "apiVersion": body["apiVersion"]}
            admitted(await policing.create(local, user=TEAM2))
