"""Whoever steals the token of a Helm Job has rights in its release's namespace while the Job runs, and nothing else (a-46)."""

from __future__ import annotations

from typing import Any

import pytest
from attackers import Attackers, cluster_admin, forged
from locking import end_hook
from projects_releases import GUARD, NAMED, OWN_ROLE, PLAIN, WIDE, Scene, may, refused, release, says_why, unharmed, victims
from releases import SYSTEM, Owners
from rights import cluster_role
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    HELM_CHART,
    JOB,
    NAMESPACE,
    POD,
    RESOURCE_QUOTA,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Object,
)
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE


async def rights_in(thief: Api, namespace: str) -> list[Object]:
    """What the API server says that somebody may do with objects in a namespace, with what he may do in all of them."""
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace}}
    answer = await thief.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", None, body)
    rules: list[Object] = answer["status"]["resourceRules"]
    return [each for each in rules if not {"authorization.k8s.io", "authentication.k8s.io"} >= set(each["apiGroups"])]


async def installing(
    deployers: Owners, attackers: Attackers, version: str, *, dedicated: bool, **values: Any
) -> tuple[Scene, Api]:
    """A release whose Job runs until `end_hook`, and who has the token of the account of that Job."""
    scene = await release(deployers, version, dedicated=dedicated, hooks=["pre-install"], **values)
    await deployers.until(POD, "hook-pre-install", scene.home, bool)
    return scene, await attackers.thief(SYSTEM, f"helm-{scene.release}")


async def confined(scene: Scene, thief: Api) -> None:
    """Every read and write outside of the release's namespace is refused."""
    for namespace in (SYSTEM, "kube-system", "default", "tenantry-system", scene.other, f"a1-{scene.project}"):
        assert await rights_in(thief, namespace) == [], namespace
    place, reference = ("stolen", scene.other), cluster_role("tenantry-helm-job")
    for read in (
        thief.list(SECRET),
        thief.list(SECRET, SYSTEM),
        thief.get(SECRET, f"chart-values-{scene.release}", SYSTEM),
        thief.get(SECRET, "theirs", scene.other),
        thief.list(NAMESPACE),
        thief.get(NAMESPACE, scene.other),
        thief.list(HELM_CHART, SYSTEM),
        thief.list(POD, SYSTEM),
        thief.list(CLUSTER_ROLE),
        thief.create(SECRET, obj(SECRET, *place)),
        thief.apply(CONFIG_MAP, obj(CONFIG_MAP, *place)),
        thief.delete(SECRET, "theirs", scene.other),
        thief.create(CLUSTER_ROLE_BINDING, cluster_admin(scene.eve)),
        thief.create(ROLE_BINDING, obj(ROLE_BINDING, *place, roleRef=reference, subjects=[])),
        thief.delete(JOB, f"helm-install-{scene.release}", SYSTEM),
        thief.request("POST", SERVICE_ACCOUNT.path(SYSTEM, "helm-other") + "/token", None, {"spec": {}}),
    ):
        assert await refused(read)


@pytest.mark.check("a-46")
async def test_a_stolen_token_of_a_job_stays_in_its_release(deployers: Owners, attackers: Attackers, *, dedicated: bool) -> None:
    """While the Job runs it holds in the namespace of the release and nowhere else; when the Job has ended, nowhere."""
    scene, thief = await installing(deployers, attackers, PLAIN, dedicated=dedicated)
    theirs = await victims(scene)
    assert await scene.bindings() == [f"RoleBinding {scene.home} tenantry-helm-job"]
    assert await may(thief.list(SECRET, scene.home))
    quota = obj(RESOURCE_QUOTA, "q", scene.home, spec={})
    assert await refused(thief.create(RESOURCE_QUOTA, quota)), "an admin of a namespace has no quotas"
    await confined(scene, thief)

    await end_hook(scene.admin, "pre-install", scene.home, "Succeeded")
    await scene.greets("hello")
    await scene.complete()
    assert await rights_in(thief, scene.home) == []
    assert await refused(thief.list(SECRET, scene.home))
    await unharmed(scene, theirs)


@pytest.mark.check("a-46")
async def test_a_named_role_widens_one_chart_in_its_namespace(
    deployers: Owners, attackers: Attackers, *, dedicated: bool
) -> None:
    """A role that an administrator named for a chart gives its Job more there, nothing elsewhere, not even what the role has of
    cluster-scoped kinds, and nothing after the Job."""
    scene, thief = await installing(deployers, attackers, NAMED, dedicated=dedicated, quota=True)
    await victims(scene)
    assert await scene.bindings() == [f"RoleBinding {scene.home} {OWN_ROLE}"]
    assert await may(thief.list(RESOURCE_QUOTA, scene.home))
    assert await refused(thief.request("GET", "/api/v1/nodes"))
    await confined(scene, thief)

    await end_hook(scene.admin, "pre-install", scene.home, "Succeeded")
    await deployers.until(RESOURCE_QUOTA, scene.release, scene.home, bool)
    await scene.complete()
    assert await rights_in(thief, scene.home) == []


@pytest.mark.check("a-46")
async def test_every_right_only_where_somebody_wrote_it_and_only_while_a_job_runs(
    deployers: Owners, attackers: Attackers, *, dedicated: bool
) -> None:
    """cluster-admin for one chart is a ClusterRoleBinding while its Job runs, and then nothing."""
    scene, thief = await installing(deployers, attackers, WIDE, dedicated=dedicated)
    assert await scene.bindings() == ["ClusterRoleBinding  cluster-admin"]
    assert await may(thief.list(SECRET))

    await end_hook(scene.admin, "pre-install", scene.home, "Succeeded")
    await scene.complete()
    assert await refused(thief.list(SECRET))
    for namespace in (scene.home, SYSTEM, scene.other):
        assert await rights_in(thief, namespace) == []


@pytest.mark.check("a-46", without=GUARD)
async def test_a_stolen_token_forges_no_record_of_another_release(
    deployers: Owners, attackers: Attackers, *, dedicated: bool
) -> None:
    """Beside other releases in one namespace, the Job of one release writes the records of that release only."""
    scene, thief = await installing(deployers, attackers, PLAIN, dedicated=dedicated)
    own = await scene.record()
    other = forged(own, 1)
    for name in (f"{scene.release}.v1.v1", "other"):
        other["metadata"] = {"name": f"sh.helm.release.v1.{name}.v1", "namespace": scene.home, "labels": {"owner": "helm"}}
        says_why(await refused(thief.create(SECRET, other)))
    beside = forged(own, 2)
    beside["metadata"] |= {"name": "harmless", "labels": {"owner": "helm", "name": "other"}}
    says_why(await refused(thief.create(SECRET, beside)))

    await end_hook(scene.admin, "pre-install", scene.home, "Succeeded")
    await scene.greets("hello")
    await scene.complete()
