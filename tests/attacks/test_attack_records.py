"""Helm's own records against those who may write beside a release: what Helm runs and deletes never follows from what they wrote.

Two halves stop it, and neither needs the other.  The policy ``tenantry-guard-records`` refuses the write.  And where an
administrator plants the forged record for the attacker, or the policy is away, the account of Helm's Job has no right for what it
names, nor any right when no Job runs.  Only a chart that an administrator gave ``cluster-admin`` has the first half alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio
from attackers import Attackers, cluster_admin, forged, manifest
from locking import Helm, config_map
from people import registration
from projects_releases import (
    GUARD,
    PLAIN,
    WIDE,
    Scene,
    records_of,
    refused,
    release,
    rewrite,
    says_why,
    steps_to_rewrite,
    unharmed,
    victims,
)
from releases import SYSTEM, Owners
from times import LEFT_TO_MAKE_WHOLE, POLICY_S

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    ADMISSION_POLICY,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    HELM_RELEASE,
    NAMESPACE,
    SECRET,
    Object,
    labels_of,
)
from tenantry.testing import eventually
from tenantry.testing.helm import unpacked
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE


ACTORS = [
    pytest.param("owner", id="owner"),
    pytest.param("editor", id="editor", marks=pytest.mark.check("a-5", without=GUARD)),
]
"""Whoever may write Secrets and ConfigMaps beside the release."""


@pytest.fixture
def actor() -> str:
    return "owner"


@pytest.fixture
def version() -> str:
    return PLAIN


@pytest_asyncio.fixture(loop_scope="session")
async def scene(deployers: Owners, version: str, *, dedicated: bool) -> Scene:
    made = await release(deployers, version, dedicated=dedicated)
    await made.greets("hello")
    await made.complete()
    return made


@pytest_asyncio.fixture(loop_scope="session")
async def attacker(scene: Scene, attackers: Attackers, actor: str) -> Api:
    """Somebody with this level where the release is, and in the registration namespace of its project."""
    return await attackers.someone(actor, *{scene.home, registration(scene.project)})


@pytest_asyncio.fixture(loop_scope="session")
async def owner(scene: Scene, attackers: Attackers) -> Api:
    """The owner of the project: only he may change ProjectHelmCharts."""
    return await attackers.someone("owner", *{scene.home, registration(scene.project)})


@pytest.mark.check("a-1", without=GUARD)
@pytest.mark.parametrize("actor", ACTORS)
async def test_a_hook_in_a_record_gives_nobody_the_cluster(scene: Scene, attacker: Api, owner: Api) -> None:
    """A pre-delete hook with a binding to cluster-admin: its write is refused; planted all the same, Helm lacks the right for it,
    and says so."""
    hooks = scene.hooks("pre-delete", "pre-upgrade", "pre-rollback")
    record = await scene.record()
    words = await refused(attacker.json_patch(SECRET, scene.record_name, scene.home, steps_to_rewrite(record, hooks=hooks)))
    says_why(words)
    await scene.still_works(owner, "again")

    name = max(await records_of(scene.admin, scene.home))
    record = await scene.owners.get(SECRET, name, scene.home)
    await rewrite(scene, attacker, record, hooks=hooks)
    await scene.unwanted(owner)

    told = await scene.says("Retrying")
    assert "clusterrolebindings" in told
    assert "charts[].jobClusterRole" in told
    assert await scene.admin.get(CLUSTER_ROLE_BINDING, scene.eve) is None
    await scene.admin.json_patch(SECRET, name, scene.home, steps_to_rewrite(record))
    await scene.gone()
    await scene.without_rights()
    assert await scene.admin.get(CLUSTER_ROLE_BINDING, scene.eve) is None
    assert await records_of(scene.admin, scene.home) == []


@pytest.mark.check("a-1", without=GUARD)
@pytest.mark.parametrize("version", [WIDE])
@pytest.mark.parametrize("actor", ACTORS)
async def test_a_chart_with_every_right_is_kept_by_the_policy(scene: Scene, attacker: Api, owner: Api) -> None:
    """Where an administrator wrote cluster-admin for a chart, the record cannot be forged; the release goes as it came."""
    steps = steps_to_rewrite(await scene.record(), hooks=scene.hooks("pre-delete"))
    words = await refused(attacker.json_patch(SECRET, scene.record_name, scene.home, steps))
    await scene.unwanted(owner)
    await scene.gone()

    assert await scene.admin.get(CLUSTER_ROLE_BINDING, scene.eve) is None
    says_why(words)
    assert await scene.admin.get(CONFIG_MAP, scene.release, scene.home) is None


@pytest.mark.parametrize("version", [WIDE])
async def test_a_forged_record_is_a_weapon_where_nothing_stops_it(scene: Scene, owner: Api) -> None:
    """So that the others show something: written by an administrator, for a chart with every right, the same record works."""
    steps = steps_to_rewrite(await scene.record(), hooks=scene.hooks("pre-delete"))
    await scene.admin.json_patch(SECRET, scene.record_name, scene.home, steps)
    await scene.unwanted(owner)
    await scene.gone()

    assert await scene.admin.get(CLUSTER_ROLE_BINDING, scene.eve) is not None
    await scene.admin.delete(CLUSTER_ROLE_BINDING, scene.eve)


@pytest.mark.check("a-2", without=GUARD)
@pytest.mark.parametrize("actor", ACTORS)
async def test_a_forged_manifest_deletes_nothing_of_a_neighbour(scene: Scene, attacker: Api, owner: Api) -> None:
    """Objects and the namespace of another project in a record's manifest: Helm does not touch them at an upgrade, nor at an
    uninstallation."""
    theirs = await victims(scene)
    named = [obj(kind, was["metadata"]["name"], was["metadata"].get("namespace", "")) for kind, was in theirs]
    record = await scene.record()
    says_why(await rewrite(scene, attacker, record, manifest=str(unpacked(record)["manifest"]) + manifest(named)))
    await scene.still_works(owner, "upgraded")  # Helm deletes what the record has and the chart has not: what it may
    await unharmed(scene, theirs)

    record = await scene.owners.get(SECRET, f"sh.helm.release.v1.{scene.release}.v2", scene.home)
    says_why(await rewrite(scene, attacker, record, manifest=str(unpacked(record)["manifest"]) + manifest(named)))
    await scene.unwanted(owner)
    assert "forbidden" in await scene.says("Retrying")
    await unharmed(scene, theirs)


@pytest.mark.check("a-3", without=GUARD)
@pytest.mark.parametrize("actor", ACTORS)
async def test_a_release_is_not_made_anew_for_its_status(scene: Scene, attacker: Api, owner: Api) -> None:
    """With ``status: failed`` the next Job would uninstall the release, hooks and data included: the write is refused, and the
    data stay."""
    steps = steps_to_rewrite(await scene.record(), "failed", hooks=scene.hooks("pre-delete"))
    words = await refused(attacker.json_patch(SECRET, scene.record_name, scene.home, steps))

    await scene.still_works(owner, "upgraded")
    says_why(words)
    assert await scene.revisions() == [(1, "superseded"), (2, "deployed")]
    assert await scene.admin.get(CLUSTER_ROLE_BINDING, scene.eve) is None


@pytest.mark.check("a-4", without=GUARD)
@pytest.mark.parametrize("actor", ACTORS)
async def test_nothing_that_helm_would_read_can_be_written(scene: Scene, attacker: Api, owner: Api) -> None:
    """A ConfigMap, a higher revision, another release's name, a record under another name or type, by every way that the API has,
    and the deletion of records: all are refused. Other Secrets and ConfigMaps, and Helm in a namespace of one's own, are free."""
    home, real, hooks = scene.home, await scene.record(), scene.hooks("pre-delete", "pre-upgrade")
    higher = forged(real, 7, hooks=hooks)
    beside = forged(real, 7, kind=CONFIG_MAP, hooks=hooks)
    other = forged(real, 1, hooks=hooks)
    other["metadata"] |= {"name": "sh.helm.release.v1.other.v1", "labels": {**labels_of(other), "name": "other"}}
    renamed = {**higher, "metadata": {**higher["metadata"], "name": "harmless"}, "type": "Opaque"}
    typed = {**higher, "metadata": {"name": "harmless", "namespace": home}}
    generated = {**higher, "metadata": {"generateName": "sh.helm.release.v1.x.v", "namespace": home}, "type": "Opaque"}
    for kind, body in (
        *((SECRET, each) for each in (higher, other, renamed, typed, generated)),
        (CONFIG_MAP, beside),
        (CONFIG_MAP, {**beside, "metadata": {**beside["metadata"], "name": "harmless"}}),
    ):
        says_why(await refused(attacker.create(kind, body)))
    says_why(await refused(attacker.apply(SECRET, higher)))

    await attacker.create(SECRET, obj(SECRET, "mine", home, data={"a": "MQ=="}))
    marks = [{"op": "add", "path": "/metadata/labels", "value": {"owner": "helm", "name": scene.release}}]
    says_why(await refused(attacker.json_patch(SECRET, "mine", home, marks)))
    says_why(await refused(attacker.delete(SECRET, scene.record_name, home)))
    says_why(await refused(attacker.request("DELETE", SECRET.path(home), {"labelSelector": "owner=helm"})))
    unmark = [{"op": "remove", "path": "/metadata/labels"}]
    says_why(await refused(attacker.json_patch(SECRET, scene.record_name, home, unmark)))
    await attacker.delete(SECRET, "mine", home)
    assert (await scene.record())["metadata"]["uid"] == real["metadata"]["uid"]

    await scene.still_works(owner, "again")
    assert await scene.revisions() == [(1, "superseded"), (2, "deployed")]
    assert await scene.admin.get(CLUSTER_ROLE_BINDING, scene.eve) is None


@pytest.mark.check("a-4")
async def test_a_planted_record_of_a_higher_revision_gives_nobody_the_cluster(scene: Scene, owner: Api) -> None:
    """Written by an administrator: Helm acts on it, and lacks every right outside of the release's namespace."""
    hooks = scene.hooks("pre-delete", "pre-upgrade", "post-upgrade", "pre-rollback")
    await scene.admin.create(SECRET, forged(await scene.record(), 7, cluster_admin(scene.eve), hooks=hooks))
    await scene.change(owner, "on top of it")
    await scene.greets("on top of it")
    await scene.complete()
    assert await scene.admin.get(CLUSTER_ROLE_BINDING, scene.eve) is None

    await scene.admin.create(SECRET, forged(await scene.record(), 9, cluster_admin(scene.eve), hooks=hooks))
    await scene.unwanted(owner)
    assert "clusterrolebindings" in await scene.says("Retrying")
    assert await scene.admin.get(CLUSTER_ROLE_BINDING, scene.eve) is None


@pytest.mark.check("a-9")
async def test_helms_own_work_goes_on(scene: Scene, owner: Api, control_plane: ControlPlane, tmp_path: Path) -> None:
    """Jobs install, upgrade and uninstall; an administrator's ``helm`` rolls back and upgrades; the lock follows each."""

    async def locked(revision: int) -> None:
        locks = (HELM_RELEASE, scene.release, SYSTEM)
        await scene.owners.until(*locks, lambda found: (found.get("status") or {}).get("lockedVersion") == revision)

    await scene.still_works(owner, "two")
    await locked(2)
    helm = Helm(control_plane.kubeconfig, tmp_path)
    await helm.run("rollback", scene.release, "1", "-n", scene.home)
    await scene.greets("hello")
    await locked(3)
    await scene.still_works(owner, "four")
    await locked(4)
    assert [revision for revision, _ in await scene.revisions()] == [1, 2, 3, 4]

    await scene.unwanted(owner)
    await scene.gone()
    await scene.without_rights()
    assert await records_of(scene.admin, scene.home) == []
    assert await scene.admin.get(CONFIG_MAP, scene.release, scene.home) is None
    assert await scene.admin.get(NAMESPACE, scene.home) is not None


@pytest.mark.check("a-9")
async def test_owners_install_what_they_like_in_their_own_namespaces(scene: Scene, attackers: Attackers, tmp_path: Path) -> None:
    """The records of a member namespace are its owner's: Helm installs, upgrades and uninstalls there with his rights."""
    member = f"a1-{scene.project}"
    kubeconfig = await attackers.kubeconfig("owner", member)
    helm = Helm(kubeconfig, tmp_path)
    await helm.install("mine", member, config_map("c", {"a": "1"}))
    await helm.upgrade("mine", member, config_map("c", {"a": "2"}))
    assert (await scene.owners.get(CONFIG_MAP, "c", member))["data"] == {"a": "2"}
    await helm.run("uninstall", "mine", "-n", member)
    assert await records_of(scene.admin, member) == []


@pytest.mark.check("a-9", without=GUARD)
async def test_the_verb_on_records_is_what_counts(scene: Scene, attackers: Attackers, tmp_path: Path) -> None:
    """Who is admin of the release's namespace and no more cannot run Helm there; with the verb write on records.tenantry.dev he
    can, as docs/helm-jobs.md says."""
    by_hand, rules = f"by-hand-{scene.name}", [{"apiGroups": ["tenantry.dev"], "resources": ["records"], "verbs": ["write"]}]
    await scene.admin.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, by_hand, rules=rules))
    helm = Helm(await attackers.kubeconfig("owner", scene.home), tmp_path)
    code, said = await helm.run("rollback", scene.release, "1", "-n", scene.home, check=False)
    assert code
    says_why(said)
    assert await scene.revisions() == [(1, "deployed")]

    helm = Helm(await attackers.kubeconfig("owner", scene.home, by_hand), tmp_path)
    await helm.run("rollback", scene.release, "1", "-n", scene.home)
    assert await scene.revisions() == [(1, "superseded"), (2, "deployed")]


async def test_the_policy_is_sound(admin: Api, deploying: Knative) -> None:
    """The API server finds nothing to complain about in its expressions."""
    del deploying

    async def checked() -> Object:
        found = await admin.get(ADMISSION_POLICY, GUARD) or {}
        return (found.get("status") or {}).get("typeChecking") is not None and found

    found = await eventually(checked, within=POLICY_S, what=f"type check of {GUARD}")
    assert "expressionWarnings" not in found["status"]["typeChecking"]
