"""What changes when a profile is switched: locks, policies, and that both ways to switch end in the same (2.5, 2.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
import yaml
from admitting import Admitting
from commanding import Command, commanding
from flawless import Calm
from flux_crds import install_flux
from flux_guarding import EXPORTED, GuardedLocks
from flux_locking import CONSUMER_KINDS, KUSTOMIZATION, LOCKS, has_lock, kind_of, named_elsewhere, source_ref
from fluxing import SOURCES
from people import token
from times import LEFT_TO_MAKE_WHOLE, POLICY_S

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.local.policies import until_in_force
from tenantry.model.conditions import find_condition
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, TENANCY_PROFILE, TENANT, TENANT_LABEL
from tenantry.model.flux.policies import GENERATED
from tenantry.model.flux.policies.parts import LABELS
from tenantry.model.kinds import (
    NAMESPACE,
    Object,
    annotations_of,
    finalizers_of,
    labels_of,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj
from tenantry.testing.settling import snapshot

pytestmark = [LEFT_TO_MAKE_WHOLE, pytest.mark.no_policies]
REGISTRATION, AGGREGATION = "namespace-registration", "rbac-aggregation"
MINE = ",".join(f"{key}={value}" for key, value in LABELS.items())
MULTI, SINGLE = "multi-tenant", "single-tenant"
SWITCHES = 10


@pytest.fixture(scope="module")
def flux(admin: Api, admitting: Admitting) -> GuardedLocks:
    """Owners of sources, tenants, and the platform."""
    return GuardedLocks(admin, admitting)


@pytest.fixture(scope="module")
def command(control_plane: ControlPlane) -> Command:
    """The command of an administrator."""
    return commanding(control_plane)


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api, flux: GuardedLocks) -> Knative:
    """What makes namespaces, grants and locks, with the policies of a profile for several tenants."""
    await install_flux(admin)
    running = await flawlessly({}, functions=[REGISTRATION, AGGREGATION, SOURCES, LOCKS])
    await flux.enforce()
    await running.drain()
    return running


async def policies(admin: Api) -> dict[str, Object]:
    """The specs of all policies, mutations and bindings of ours."""
    lists = await asyncio.gather(*(admin.list(kind, label_selector=MINE) for kind in GENERATED))
    return {f"{each['kind']}/{each['metadata']['name']}": each["spec"] for found in lists for each in found.items}


async def generations(flux: GuardedLocks) -> list[int]:
    """How often people or functions have written the specs of profile and index."""
    found = [await flux.get(kind, DEFAULT) for kind in (TENANCY_PROFILE, ACCESS_INDEX)]
    return [each["metadata"]["generation"] for each in found]


async def answered(flux: GuardedLocks, namespace: str, spec: Object, user: str, status: int) -> str:
    """Wait until a new Kustomization is answered so; returns what is said."""

    async def ask() -> tuple[int, str]:
        answer = await flux.make(namespace, spec, user=user, dry=True)
        return answer.status, answer.message

    found = await eventually(ask, lambda answer: answer[0] == status, within=POLICY_S, what=f"answered by {status}")
    return found[1]


@pytest.mark.check("f-25")
async def test_namespaces_of_one_tenant_share_while_they_may(flux: GuardedLocks, system: Knative, calm: Calm) -> None:
    """Their sources, and each other as targets; none of another tenant's; what they named is locked when they may no more."""
    await flux.enforce(allowIntraTenant=True)
    name = f"t{token()}"
    front, back, other = f"frontend-{name}", f"backend-{name}", f"other-{name}"
    await flux.admin.create(TENANT, obj(TENANT, name, spec={"namespaces": [front, back]}))
    await flux.admin.create(TENANT, obj(TENANT, f"{name}-2", spec={"namespaces": [other, f"{other}-2"]}))
    for place, of in ((front, name), (back, name), (other, f"{name}-2")):
        await flux.until(NAMESPACE, place, "", lambda found, of=of: labels_of(found).get(TENANT_LABEL) == of)  # type: ignore[misc]
    user = f"system:serviceaccount:{front}:flux"
    for place in (back, other):
        await flux.source(place)
    plain = named_elsewhere("Kustomization", "")
    shared = {**plain, "sourceRef": source_ref(back)}
    await answered(flux, front, shared, user, 201)
    said = await answered(flux, front, {**plain, "sourceRef": source_ref(other)}, user, 403)
    assert f"spec.sourceRef: GitRepository/{other}/app1 is not shared" in said
    await answered(flux, front, {**plain, "targetNamespace": back}, user, 201)
    await answered(flux, front, {**plain, "targetNamespace": other}, user, 403)
    made = (await flux.make(front, shared, user=user)).body
    target = (await flux.make(front, {**plain, "targetNamespace": back}, user=user)).body
    await calm(system)
    assert await flux.now(made) == made
    await flux.enforce()
    await flux.locked(made)
    await answered(flux, front, shared, user, 403)
    await answered(flux, front, {**plain, "targetNamespace": back}, user, 403)
    assert await flux.now(target) == target  # nothing that it names is a source


@pytest.mark.check("f-37")
async def test_a_single_tenant_has_neither_locks_nor_bindings(
    flux: GuardedLocks, admin: Api, system: Knative, command: Command, calm: Calm
) -> None:
    """All that was locked is unlocked, no binding of ours is left, and a second run of everything writes nothing."""
    other, home = await flux.home(), await flux.home()
    await flux.enforce(profile=SINGLE)
    made = [await flux.consumer(home, kind, spec=named_elsewhere(kind, other)) for kind in CONSUMER_KINDS]
    by_user = await flux.consumer(home, spec={**named_elsewhere("Kustomization", other), "suspend": True})
    await flux.enforce()
    for each in made:
        await flux.locked(each)
    await flux.locked(by_user, by_lock=False)
    assert await policies(admin)

    code, _, errors = await command("profile", "apply", f"--security-profile={SINGLE}")
    assert code == 0, errors
    for each in made:
        assert "suspend" not in (await flux.unlocked(each))["spec"]
    assert (await flux.unlocked(by_user))["spec"]["suspend"] is True
    assert await policies(admin) == {}
    await calm(system)
    watched = [kind_of(kind) for kind in CONSUMER_KINDS]
    before = await snapshot(admin, watched), await generations(flux)
    code, output, errors = await command("profile", "apply", f"--security-profile={SINGLE}", "-o", "json")
    assert code == 0, errors
    assert [(each["kind"], each["result"]) for each in yaml.safe_load(output)] == [("TenancyProfile", "unchanged")]
    await calm(system)
    assert (await snapshot(admin, watched), await generations(flux)) == before
    await flux.enforce()


async def test_what_has_no_account_is_locked_and_freed(flux: GuardedLocks, system: Knative, calm: Calm) -> None:
    """It was there before the profile: whoever edits it has the account filled in, and a lock changes nothing of that."""
    await flux.enforce(profile=SINGLE)
    owner, user, labels = await flux.shared()
    chart = {"spec": {"chart": "x", "sourceRef": source_ref(owner)}}
    specs = {"HelmRelease": {"chart": chart}, "Kustomization": {"prune": True, "sourceRef": source_ref(owner)}}
    made = []
    for kind, spec in specs.items():
        answer = await flux.make(user, {"interval": "1m", **spec}, kind)
        assert "serviceAccountName" not in answer.body["spec"], answer
        made.append(answer.body)
    await flux.enforce()
    await calm(system)
    await flux.revoke(owner)
    for each in made:
        assert "serviceAccountName" not in (await flux.locked(each))["spec"]
    await flux.grant(owner, labels)
    for each in made:
        assert "serviceAccountName" not in (await flux.unlocked(each))["spec"]
        edited = await flux.merge(each, {"spec": {"interval": "2m"}})
        assert edited.body["spec"]["serviceAccountName"] == "flux"


class Switching:
    """An administrator who switches the profile, and what a cluster comes to."""

    def __init__(self, flux: GuardedLocks, command: Command, system: Knative, calm: Calm, kubeconfig: Any) -> None:
        self.flux, self.command, self.system, self.calm = flux, command, system, calm
        self.kubeconfig = kubeconfig
        self.consumers: list[Object] = []

    async def edit(self, profile: str) -> None:
        """Change the one field, as an edit in Git does, and have the policies follow."""
        step = {"op": "replace", "path": "/spec/profile", "value": profile}
        await self.flux.admin.json_patch(TENANCY_PROFILE, DEFAULT, "", [step])
        await self._follow()

    async def export(self, profile: str) -> None:
        """Print part cluster of a profile, apply it, and have what is superfluous taken away."""
        options = (f"--security-profile={profile}", "--part=cluster", "--kubeconfig", self.kubeconfig)
        code, output, errors = await self.command("profile", "export", *options)
        assert (code, errors) == (0, "")
        for each in yaml.safe_load_all(output):
            await self.flux.admin.apply(EXPORTED[each["kind"]], each)
        if profile == SINGLE:
            await self._follow()

    async def _follow(self) -> None:
        code, _, errors = await self.command("profile", "apply", "--prune")
        assert code == 0, errors

    async def came_to(self, profile: str) -> Object:
        """Wait for what a profile comes to; returns all of it that is not another at another time."""
        await until_in_force(self.flux.admin)
        wanted = profile == MULTI
        for each, is_denied in zip(self.consumers, (True, False), strict=True):
            await (self.flux.locked(each) if wanted and is_denied else self.flux.unlocked(each))
        status = "True" if wanted else "False"

        def says(found: Object) -> bool:
            said = [find_condition(found, each) or {} for each in ("Ready", "Enforced")]
            at = {each.get("observedGeneration") for each in said} == {found["metadata"]["generation"]}
            return at and [each["status"] for each in said] == ["True", status]

        found = await self.flux.until(TENANCY_PROFILE, DEFAULT, "", says, what=f"{profile} is told")
        await self.calm(self.system)
        index = await self.flux.get(ACCESS_INDEX, DEFAULT)
        lives = [await self.flux.now(each) for each in self.consumers]
        told = [await self.flux.events(each, "AccessDenied") for each in self.consumers]
        return {
            "profile": found["spec"],
            "status": {part: value for part, value in found["status"].items() if part != "conditions"},
            "policies": await policies(self.flux.admin),
            "index": index["spec"],
            "consumers": [(each["spec"], has_lock(each), sorted(finalizers_of(each)), marks(each)) for each in lives],
            "told": [len(each) > 0 for each in told],
        }


def marks(consumer: Object) -> dict[str, str]:
    """The annotations of ours."""
    return {key: value for key, value in annotations_of(consumer).items() if key.startswith("tenantry.dev/")}


@pytest_asyncio.fixture(loop_scope="session")
async def switching(flux: GuardedLocks, system: Knative, command: Command, calm: Calm, control_plane: ControlPlane) -> Switching:
    """With a consumer that a profile for several tenants denies, and one that it does not."""
    found = Switching(flux, command, system, calm, control_plane.kubeconfig)
    owner, user, _ = await flux.shared()
    await flux.edit(TENANCY_PROFILE, DEFAULT, "", ("replace", "/spec", {"profile": SINGLE}))
    await found._follow()
    await until_in_force(flux.admin)
    for source in ("app2", "app1"):
        spec = {**named_elsewhere("Kustomization", owner), "sourceRef": source_ref(owner, source)}
        found.consumers.append(await eventually(lambda spec=spec: made(flux, user, spec), within=POLICY_S))  # type: ignore[misc]
    return found


async def made(flux: GuardedLocks, namespace: str, spec: Object) -> Object:
    """A Kustomization, once policies let it in."""
    answer = await flux.make(namespace, spec)
    return answer.body if answer.status == 201 else {}


@pytest.mark.check("f-140")
async def test_both_ways_to_switch_end_in_the_same(switching: Switching) -> None:
    """By an edit and by the export; ten switches in a row end in the last one, and then nothing is written."""
    states: dict[tuple[str, str], Object] = {}
    for way, switch in (("edit", switching.edit), ("export", switching.export)):
        for profile in (MULTI, SINGLE):
            await switch(profile)
            states[way, profile] = await switching.came_to(profile)
    for profile in (MULTI, SINGLE):
        assert states["edit", profile] == states["export", profile]
    assert states["edit", MULTI]["policies"]
    assert states["edit", SINGLE]["policies"] == {}

    admin = switching.flux.admin
    for way, switch in (("edit", switching.edit), ("export", switching.export)):
        for number in range(SWITCHES):
            await switch((SINGLE, MULTI)[number % 2])
        assert await switching.came_to(MULTI) == states[way, MULTI]
        await switch(SINGLE)
        assert await switching.came_to(SINGLE) == states[way, SINGLE]
        before = await snapshot(admin, [KUSTOMIZATION]), await generations(switching.flux)
        await switching.calm(switching.system)
        assert (await snapshot(admin, [KUSTOMIZATION]), await generations(switching.flux)) == before
