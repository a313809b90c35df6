"""Locks against those who may write Helm's records: what a record says never reaches beyond its release.

Real Helm makes the release; the attacker forges a newer record with his own identity; the function runs under its own.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest
import pytest_asyncio
from attackers import Attackers, asked, cluster_admin, forged
from locking import DEPLOYMENT, FUNCTION, PRIORITY_CLASS, SYSTEM, Helm, Locks, condition, config_map, locking, marked_for, token

from lock_enforcement.helm import release_in_name
from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    API_SERVER_SOURCE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    NAMESPACE,
    RESOURCE_QUOTA,
    ROLE_BINDING,
    SECRET,
    Object,
    annotations_of,
    labels_of,
)
from tenantry.model.names import LOCKED_CLUSTER_SOURCE, LOCKED_SOURCE, SYSTEM_NAMESPACE
from tenantry.testing.audit import AuditLog
from tenantry.testing.helm import unpacked
from tenantry.testing.memory import peak_mib
from tenantry.testing.objects import obj

ACTORS = [
    pytest.param("owner", id="owner"),
    pytest.param("editor", id="editor", marks=pytest.mark.check("a-5")),
]
"""Whoever may write Secrets beside the release."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def knative_(flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    return await flawlessly(locking(failedGraceSeconds=0), functions=[FUNCTION])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def locks(admin: Api, knative_: Knative) -> AsyncIterator[Locks]:
    made = Locks(admin, knative_)
    await made.lockable(CONFIG_MAP, SECRET, DEPLOYMENT, PRIORITY_CLASS, ROLE_BINDING, CLUSTER_ROLE_BINDING, RESOURCE_QUOTA)
    yield made
    await made.leave()


@dataclass(frozen=True)
class Scene:
    """A project with a locked release beside its owner's objects, and a neighbour's namespace."""

    name: str
    home: str
    other: str
    attacker: Api
    record: Object
    locks: Locks
    knative: Knative

    async def calm(self) -> None:
        """Everything is handled, and a sweep has looked at every release."""
        await self.knative.drain()
        await self.knative.sweep(FUNCTION)
        await self.knative.drain()

    async def still_kept(self, data: str = "1") -> None:
        """What the victim had still works: drift of the release's own object is put back."""
        await self.locks.edit(CONFIG_MAP, "c1", self.home, ("replace", "/data/a", "drift"))
        await self.locks.data("c1", self.home, {"a": data})

    async def told(self, reason: str, *parts: str) -> None:
        """The condition of the HelmRelease and a Warning on it say so, and name these."""
        status = await self.locks.status(self.name, lambda status: condition(status, "Complete").get("reason") == reason)
        message = condition(status, "Complete")["message"]
        warnings = [event for event in await self.locks.events(self.name, SYSTEM) if event["type"] == "Warning"]
        assert [event["note"] for event in warnings if event["reason"] == reason][-1:] == [message]
        for part in parts:
            assert part in message, message


@pytest.fixture
def actor() -> str:
    return "owner"


@pytest_asyncio.fixture(loop_scope="session")
async def scene(actor: str, admin: Api, helm: Helm, locks: Locks, attackers: Attackers, knative_: Knative) -> Scene:
    name = f"fence-{token()}"
    home, other = f"cattle-project-{name}", f"cattle-project-{name}-b"
    await locks.namespace(home)
    await locks.namespace(other)
    attacker = await attackers.someone(actor, home)
    await helm.install(name, home, config_map("c1", {"a": "1"}))
    record = await locks.until(SECRET, f"sh.helm.release.v1.{name}.v1", home, bool)
    await locks.lock(name, name, home)
    await locks.locked(name)
    return Scene(name, home, other, attacker, record, locks, knative_)


def workload(name: str, namespace: str) -> Object:
    """A Deployment of a privileged container."""
    labels = {"app": name}
    container = {"name": "evil", "image": "evil", "securityContext": {"privileged": True}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return obj(DEPLOYMENT, name, namespace, spec={"replicas": 1, "selector": {"matchLabels": labels}, "template": template})


@pytest.mark.check("a-4")
@pytest.mark.check("a-6", without="one-storage")
@pytest.mark.parametrize("actor", ACTORS)
async def test_a_record_where_helm_keeps_none_is_not_read(scene: Scene, admin: Api, attackers: Attackers) -> None:
    """A forged newer record in a ConfigMap, beside Helm's in Secrets: nothing of it is done, nor does it end the lock."""
    evil = [config_map("c1", {"a": "evil"}), config_map("evil", {"a": "1"})]
    await attackers.plant(scene.attacker, CONFIG_MAP, forged(scene.record, 7, *evil, kind=CONFIG_MAP))
    await scene.calm()

    assert (await admin.get(CONFIG_MAP, "c1", scene.home) or {})["data"] == {"a": "1"}
    assert await admin.get(CONFIG_MAP, "evil", scene.home) is None
    status = await scene.locks.status(scene.name, bool)
    assert (status["version"], status["lockedVersion"]) == (1, 1)
    await scene.still_kept()


@pytest.mark.check("a-7", without="reach-of-locks")
@pytest.mark.parametrize("actor", ACTORS)
async def test_a_record_does_not_reach_beyond_its_namespace(
    scene: Scene, admin: Api, attackers: Attackers, audit_log: AuditLog
) -> None:
    """Objects of kube-system, of a neighbour and of no namespace are neither written nor read nor watched, whatever marks they
    carry; each is told by kind and name, and the release's own are kept."""
    name, other = scene.name, scene.other
    settings = await admin.create(CONFIG_MAP, config_map("settings", {"a": "theirs"}, namespace=other))
    carrying = marked_for(name, other, config_map("marked", {"a": "theirs"}))
    carrying["metadata"]["annotations"]["meta.helm.sh/release-namespace"] = scene.home
    marked = await admin.create(CONFIG_MAP, carrying)
    evil = [
        config_map("c1", {"a": "2"}),
        workload(name, "kube-system"),
        *(config_map(each, {"a": "evil"}, namespace=other) for each in ("settings", "marked", "missing")),
        cluster_admin(name),
        obj(PRIORITY_CLASS, name, value=1000),
    ]
    await attackers.plant(scene.attacker, SECRET, forged(scene.record, 2, *evil))
    told = [f"Deployment kube-system/{name}", *(f"ConfigMap {other}/{each}" for each in ("settings", "marked", "missing"))]
    told += [f"ClusterRoleBinding {name}", f"PriorityClass {name}", "spec.allow.namespaces", "spec.allow.clusterKinds"]
    await scene.calm()

    assert await admin.get(DEPLOYMENT, name, "kube-system") is None
    assert await admin.get(CLUSTER_ROLE_BINDING, name) is None
    assert await admin.get(PRIORITY_CLASS, name) is None
    assert await admin.get(CONFIG_MAP, "settings", other) == settings
    assert await admin.get(CONFIG_MAP, "marked", other) == marked
    assert await admin.get(CONFIG_MAP, "missing", other) is None
    for account in (FUNCTION, "tenantry-lock-source"):
        assert asked(audit_log, account, other) == []
    assert [each for each in asked(audit_log, FUNCTION, name) if "helmreleases" not in each] == []
    source = await admin.get(API_SERVER_SOURCE, LOCKED_SOURCE, SYSTEM_NAMESPACE)
    watched = json.dumps((source or {})["spec"]["namespaceSelector"])
    assert scene.home in watched
    assert f'"{other}"' not in watched
    assert "kube-system" not in watched
    assert await admin.get(API_SERVER_SOURCE, LOCKED_CLUSTER_SOURCE, SYSTEM_NAMESPACE) is None
    await scene.told("OutsideRelease", *told)
    await scene.still_kept("2")


@pytest.mark.check("a-8", without="marks-of-helm")
@pytest.mark.parametrize("actor", ACTORS)
async def test_a_record_does_not_reach_what_is_not_its_releases(scene: Scene, admin: Api, attackers: Attackers) -> None:
    """Objects of the namespace without Helm's marks, with half of them, or with another release's stay as they are and are told;
    what is missing is made with the marks, and the release's own are kept."""
    name, home = scene.name, scene.home
    unlabelled = marked_for(name, home, config_map("unlabelled", {"a": "theirs"}))
    del unlabelled["metadata"]["labels"]
    elsewhere = marked_for(name, home, config_map("elsewhere", {"a": "theirs"}))
    elsewhere["metadata"]["annotations"]["meta.helm.sh/release-namespace"] = scene.other
    made = [
        config_map("plain", {"a": "theirs"}, namespace=home),
        marked_for("another", home, config_map("foreign", {"a": "theirs"})),
        unlabelled,
        elsewhere,
    ]
    before = [await admin.create(CONFIG_MAP, each) for each in made]
    names = [each["metadata"]["name"] for each in before]
    claims = {"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": home}
    evil = [config_map(each, {"a": "evil"}, annotations=claims) for each in names]
    record = forged(scene.record, 2, config_map("c1", {"a": "1"}), config_map("missing", {"a": "made"}), *evil)
    await attackers.plant(scene.attacker, SECRET, record)
    await scene.calm()

    for each in before:
        assert await admin.get(CONFIG_MAP, each["metadata"]["name"], home) == each
    await scene.told("ForeignObject", *(f"ConfigMap {home}/{each}" for each in names), "Helm release", "lacks Helm's marks")
    missing = await scene.locks.data("missing", home, {"a": "made"})
    assert labels_of(missing)["app.kubernetes.io/managed-by"] == "Helm"
    assert annotations_of(missing) == claims
    await scene.still_kept()


@pytest.mark.check("a-4")
@pytest.mark.parametrize("actor", ACTORS)
async def test_records_give_nobody_rights(scene: Scene, admin: Api, attackers: Attackers) -> None:
    """A higher revision with bindings to cluster-admin, a record of another release's name, all records deleted: nobody gains a
    right, nothing is deleted, and it is told."""
    name, home = scene.name, scene.home
    bindings = [cluster_admin(name), cluster_admin(name, home), cluster_admin(name, scene.other)]
    await attackers.plant(scene.attacker, SECRET, forged(scene.record, 2, config_map("c1", {"a": "1"}), *bindings))
    await scene.told("OutsideRelease", f"ClusterRoleBinding {name}", f"RoleBinding {home}/{name} was refused")
    assert await admin.get(CLUSTER_ROLE_BINDING, name) is None
    for namespace in (home, scene.other):
        assert await admin.get(ROLE_BINDING, name, namespace) is None
    await scene.still_kept()

    theirs = f"{name}-theirs"
    other = forged(scene.record, 9, config_map("c1", {"a": "evil"}))
    other["metadata"] |= {"name": f"sh.helm.release.v1.{theirs}.v9", "labels": {**labels_of(other), "name": theirs}}
    await scene.locks.lock(theirs, theirs, scene.other)
    await attackers.plant(scene.attacker, SECRET, other)
    await scene.calm()
    assert (await scene.locks.status(theirs, bool))["state"] == "SecretNotFound"

    for each in (await scene.attacker.list(SECRET, home)).items:
        if release_in_name(each["metadata"]["name"]):
            await admin.delete(SECRET, each["metadata"]["name"], home)
    status = await scene.locks.status(name, lambda status: condition(status, "Locked").get("reason") == "ReleaseNotFound")
    assert status["lockedVersion"] == 0
    assert (await admin.get(CONFIG_MAP, "c1", home) or {})["data"] == {"a": "1"}


def large(record: Object, revision: int, filling: str, text: str = "") -> Object:
    """A forged record with this JSON beside what it has to have, and this manifest."""
    made = forged(record, revision)
    content = {**unpacked(made), "manifest": text}
    raw = json.dumps(content)[:-1] + f', "x": {filling}}}'
    data = base64.b64encode(base64.b64encode(gzip.compress(raw.encode()))).decode()
    return {**made, "data": {"release": data}}


async def drift_is_put_back(locks: Locks, victim: str) -> None:
    """What is changed of a release's object is as its record has it within 2 s."""
    await locks.edit(CONFIG_MAP, "c1", victim, ("replace", "/data/a", "drift"))
    await locks.until(CONFIG_MAP, "c1", victim, lambda found: found["data"] == {"a": "1"}, within=2)


@pytest.mark.check("a-13", without="budgets")
@pytest.mark.parametrize("actor", ACTORS)
async def test_a_small_record_that_is_large_inside_costs_little(scene: Scene, helm: Helm, attackers: Attackers) -> None:
    """Kilobytes that unpack to 30 MB or a million brackets, or whose manifest is 1 MB of aliases or merges: told with the limit
    in bounded memory, while another release's drift is put back within 2 s."""
    locks, victim = scene.locks, await scene.locks.release(helm, "victim", config_map("c1", {"a": "1"}))
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c1}\n"
    aliases = head + "x: &a [1]\ny: [" + "*a," * 350_000 + "1]\n"
    keys = ",".join(f"k{number}: 1" for number in range(2000))
    merges = head + f"x: &a {{{keys}}}\ny:\n" + "".join(f"- {{<<: *a, x{n}: 1}}\n" for n in range(10_000))
    records = [
        (large(scene.record, 2, "[" + "[]," * 10_000_000 + "[]]"), "Locked", "RecordsUnreadable", "8388608 bytes"),
        (large(scene.record, 3, "[" + "[]," * 1_000_000 + "[]]"), "Locked", "RecordsUnreadable", "200000 values"),
        (large(scene.record, 4, "[]", aliases), "Complete", "BadDocument", "50000 values"),
        (large(scene.record, 5, "[]", merges), "Complete", "BadDocument", "50000 values"),
    ]
    for record, type_, reason, limit in records:
        await attackers.plant(scene.attacker, SECRET, record)
        await drift_is_put_back(locks, victim)
        number = record["metadata"]["labels"]["version"]

        def told(status: Object, type_: str = type_, reason: str = reason, limit: str = limit) -> bool:
            found = condition(status, type_)
            return found.get("reason") == reason and limit in found["message"]

        status = await locks.status(scene.name, told)
        assert type_ == "Complete" or f"revision {number}" in condition(status, type_)["message"]
        await scene.calm()
    assert peak_mib(scene.knative.functions[FUNCTION].pid) < 128


@pytest.mark.check("a-18")
@pytest.mark.parametrize("actor", ACTORS[:1])
async def test_quantities_without_bounds_cost_nothing(scene: Scene, helm: Helm, attackers: Attackers) -> None:
    """Quantities and numbers whose value would fill the memory, in a release's manifest: told, while what the release has besides
    and another release's objects are put back within 2 s."""
    locks, victim = scene.locks, await scene.locks.release(helm, "victim", config_map("c1", {"a": "1"}))
    quota = obj(RESOURCE_QUOTA, "q", spec={"hard": {"pods": "10"}})
    await helm.upgrade(scene.name, scene.home, config_map("c1", {"a": "1"}), quota)
    await locks.locked(scene.name, 2)
    # Each further digit of an exponent keeps the API server itself busy ten times as long, whoever writes it.
    extremes = {"1e999999": "", "1e-999999": "", "9" * 10_000: "", f"0.{'0' * 10_000}1": ""}
    extremes |= {"1e99999999999999999999": f"ResourceQuota {scene.home}/q", 10**400: "a number of more than 1024 bits"}
    for revision, (extreme, told) in enumerate(extremes.items(), 3):
        hard = {**quota, "spec": {"hard": {"pods": extreme, "requests.cpu": extreme}}}
        record = forged(scene.record, revision, config_map("c1", {"a": str(revision)}), hard)
        await attackers.plant(scene.attacker, SECRET, record)
        await drift_is_put_back(locks, victim)
        await locks.data("c1", scene.home, {"a": str(revision)})
        if told:
            await locks.status(scene.name, lambda status, told=told: told in condition(status, "Complete").get("message", ""))
    await scene.calm()
    await scene.still_kept(str(revision))
    assert peak_mib(scene.knative.functions[FUNCTION].pid) < 128


@pytest.mark.check("a-9")
async def test_helm_and_its_lock_go_on_together(scene: Scene, helm: Helm, admin: Api) -> None:
    """Helm's real upgrade, rollback and uninstallation by an administrator all work, and the lock follows each."""
    name, home, locks = scene.name, scene.home, scene.locks
    await helm.upgrade(name, home, config_map("c1", {"a": "2"}), config_map("c2", {"a": "2"}))
    await locks.locked(name, 2)
    await scene.still_kept("2")
    await admin.delete(CONFIG_MAP, "c2", home)
    await locks.data("c2", home, {"a": "2"})

    await helm.run("rollback", name, "1", "-n", home)
    await locks.locked(name, 3)
    await scene.still_kept("1")
    await locks.away(CONFIG_MAP, "c2", home)

    await helm.upgrade(name, home, config_map("c1", {"a": "4"}))
    await locks.locked(name, 4)
    await scene.still_kept("4")
    await helm.run("uninstall", name, "-n", home)
    await locks.status(name, lambda status: condition(status, "Locked").get("reason") == "ReleaseNotFound")
    await scene.calm()
    assert await admin.get(CONFIG_MAP, "c1", home) is None
    assert await admin.get(NAMESPACE, home) is not None
