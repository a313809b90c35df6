"""Names that somebody took first: objects called like ours, and release names.

Owners and their neighbours act with rights of their own; projects, releases and rights are served by the real functions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from attackers import Attackers
from people import CHART_CONFIG_MAP, POLICY, registration, token
from releases import CONFIG, DUMMY, PROVISIONING, REGISTRATION, SYSTEM, Owners, conditions_of
from rights import AGGREGATE_FROM, AGGREGATION, ROLE_OF, cluster_role, user
from victims import somebody

from tenantry.api.errors import AdmissionDenied, AlreadyExists, Forbidden
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CONFIG_MAP,
    HELM_CHART,
    NAMESPACE,
    NETWORK_POLICY,
    PROJECT_HELM_CHART,
    ROLE,
    ROLE_BINDING,
    Object,
)
from tenantry.model.names import ADOPT, PROJECT_CHART, PROJECT_ID, RELEASE_FINALIZER
from tenantry.testing.objects import obj


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """Projects, their releases and rights in them."""
    return await flawlessly(CONFIG, functions=(REGISTRATION, PROVISIONING, AGGREGATION))


def chart(name: str, namespace: str, **metadata: object) -> Object:
    """A ProjectHelmChart as anybody may write it."""
    return obj(PROJECT_HELM_CHART, name, namespace, metadata=metadata, spec={"helmApiVersion": DUMMY})


@pytest.mark.check("a-35", without="registration-namespaces-only")
async def test_objects_named_like_ours_are_not_trusted(owners: Owners, attackers: Attackers, system: Knative) -> None:
    """A chart's ConfigMap and policy of the owner's, ProjectHelmCharts with our marks or elsewhere, Roles and RoleBindings of our
    names in his namespaces: put back, served as what they are, or nothing; nobody gains a right, and the release is not his."""
    project = await owners.project()
    home, member = registration(project), f"a1-{project}"
    owner = await attackers.someone("owner", home, member)
    release = f"demo-{project}-dummy"

    # What we keep in his registration namespace: made anew by him, it becomes ours again.
    files = (await owners.get(CONFIG_MAP, CHART_CONFIG_MAP, home))["data"]
    await owner.delete(CONFIG_MAP, CHART_CONFIG_MAP, home)
    try:
        await owner.create(CONFIG_MAP, obj(CONFIG_MAP, CHART_CONFIG_MAP, home, data={"values.yaml": "evil"}, immutable=True))
    except AlreadyExists:
        await owner.json_patch(
            CONFIG_MAP, CHART_CONFIG_MAP, home, [{"op": "replace", "path": "/data/values.yaml", "value": "evil"}]
        )
    await owners.until(CONFIG_MAP, CHART_CONFIG_MAP, home, lambda found: found.get("data") == files)

    # A ProjectHelmChart that says it has been served, and one where nobody serves any.
    marks = {"finalizers": [RELEASE_FINALIZER], "annotations": {PROJECT_CHART: f"{home}/other", ADOPT: "true"}}
    try:
        await owner.create(PROJECT_HELM_CHART, chart(f"demo-{project}", home, **marks))
    except AdmissionDenied:  # where marks are guarded they are not even written
        await owner.create(PROJECT_HELM_CHART, chart(f"demo-{project}", home))
    made = await owners.provisioned(release)
    assert made["metadata"]["annotations"][PROJECT_CHART] == f"{home}/demo-{project}"
    await owner.create(PROJECT_HELM_CHART, chart(f"elsewhere-{project}", member))

    # Roles and bindings of a chart's names, where they are not the release's.
    labels = {ROLE_OF: release, AGGREGATE_FROM: "view"}
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    for namespace in (home, member):
        await owner.create(ROLE, obj(ROLE, f"{release}-view", namespace, labels, rules=rules))
    await owner.create(ROLE_BINDING, obj(ROLE_BINDING, "mallory", home, roleRef=cluster_role("view"), subjects=[user("mallory")]))
    for kind, more in ((ROLE, {"rules": rules}), (ROLE_BINDING, {"roleRef": cluster_role("admin")}), (CONFIG_MAP, {"data": {}})):
        with pytest.raises(Forbidden):
            await owner.create(kind, obj(kind, f"{release}-admin", release, labels, **more))
    await system.drain()
    for function in (REGISTRATION, PROVISIONING, AGGREGATION):
        await system.sweep(function)

    for namespace in (home, member):
        assert await owners.admin.get(ROLE_BINDING, f"{release}-view", namespace) is None
    assert await owners.admin.get(HELM_CHART, f"elsewhere-{project}-dummy", SYSTEM) is None
    assert "status" not in await owners.get(PROJECT_HELM_CHART, f"elsewhere-{project}", member)
    assert (await owners.get(NETWORK_POLICY, POLICY, home))["spec"]["policyTypes"] == ["Ingress", "Egress"]
    await owner.delete(PROJECT_HELM_CHART, f"demo-{project}", home)  # what he has still works: it goes
    await owners.taken_away(release)
    await owners.away(PROJECT_HELM_CHART, f"demo-{project}", home)


@pytest.mark.check("a-36", without="first-come")
async def test_who_has_a_release_name_keeps_it(owners: Owners, attackers: Attackers) -> None:
    """A neighbour who asks for the name is told on his own object; the release stays its owner's, who changes and deletes it."""
    project, home, first = await somebody(owners, attackers)
    other, elsewhere, neighbour = await somebody(owners, attackers)
    name = f"shop-{token()}"
    await first.create(PROJECT_HELM_CHART, chart(name, home))
    await owners.provisioned(f"{name}-dummy")
    await neighbour.create(PROJECT_HELM_CHART, chart(name, elsewhere))
    told = await owners.told(name, other, "UnableToCreateHelmRelease")
    assert conditions_of(told)["Stalled"] == ("True", "ReleaseNameTaken")
    assert await owners.warning(name, other, "ReleaseNameTaken")
    release = f"{name}-dummy"
    made = await owners.provisioned(release)
    assert made["metadata"]["annotations"][PROJECT_CHART] == f"{home}/{name}"
    assert (await owners.get(NAMESPACE, release))["metadata"]["labels"][PROJECT_ID] == project
    edits = [{"op": "add", "path": "/spec/values", "value": {"mine": "yes"}}]
    await first.json_patch(PROJECT_HELM_CHART, name, home, edits)
    await owners.provisioned(release, holds=lambda found: "mine: " in found["spec"]["valuesContent"])
    await first.delete(PROJECT_HELM_CHART, name, home)
    await owners.away(PROJECT_HELM_CHART, name, home)
