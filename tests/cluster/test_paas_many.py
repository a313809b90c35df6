"""Many Paas: how fast, how little is written, and that nothing is at rest.  With TENANTRY_FULL_SIZE as many as the checks say."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from configuring import got_in
from flawless import Calm
from handing_over import PLACE, HandingOver, handing_over
from paasing import CONFIG, CONFIG_NAME, make_roles, make_world, paas_name
from people import swept
from righting import CONFIGURED, SHAPE, Change, history
from telling import POLICY, SERVED, Reason, Telling, plainly_configured
from times import FULL, LEFT_TO_MAKE_WHOLE, POLICY_S, SIDE_BY_SIDE, VOLUME_S

from tenantry.api import Api
from tenantry.api.errors import RefusedError
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, NAMESPACE, RESOURCE_QUOTA, ROLE_BINDING, Kind, Object, labels_of
from tenantry.model.paas.names import (
    APPLICATION_SET,
    CLUSTER_RESOURCE_QUOTA,
    GROUP,
    MANAGED_BY_PAAS,
    PAAS,
    PAAS_CONFIG,
    PAAS_NS,
)
from tenantry.testing import eventually
from tenantry.testing.audit import AuditLog
from tenantry.testing.objects import obj
from tenantry.testing.settling import snapshot

FUNCTIONS = ["namespace-registration", "rbac-aggregation", "scope-binding", "release-provisioning"]
MANY = 200 if FULL else 10
RESTING, REST_S = (50, 30) if FULL else (10, 3)
MAPPED_S, CREATED_S, RATIO = 6.0, 20.0, 2.5
SUFFIXES = ("a", "b", "argocd")
SPEC: dict[str, Any] = {
    "groups": {"us": {"roles": ["admin"]}, "them": {}},
    "namespaces": {"a": {}, "b": {}},
    "capabilities": {"argocd": {"enabled": True}},
    "quota": {"limits.cpu": "40"},
}
MADE = (NAMESPACE, ROLE_BINDING, RESOURCE_QUOTA, GROUP, CLUSTER_RESOURCE_QUOTA)
KINDS = (PAAS, PAAS_NS, PAAS_CONFIG, *MADE, CLUSTER_ROLE_BINDING, APPLICATION_SET)
ALONE = frozenset({"NoPaasConfig", "ClusterRoleMissing", "RightMissing", "GroupUsersDiscouraged"})
"""Reasons that are of all Paas at once, or stand beside another one: not what one Paas is broken by."""
BROKEN: dict[str, Any] = {
    "capabilities": {
        **handing_over(fields={"team": {"required": True}}),
        "tools": {"quotas": {"defaults": {"pods": "3"}}, "default_permissions": {"sa": ["cluster-reader"]}},
    },
    "clusterwide_argocd_namespace": PLACE,
    "argopermissions": POLICY,
    "feature_flags": {"group_user_management": "block"},
    "unknownCapabilityPolicy": "Reject",
}
"""A configuration under which one Paas can be broken in each way."""

pytestmark = [LEFT_TO_MAKE_WHOLE, pytest.mark.timeout(900 if FULL else 120)]


@pytest.fixture(scope="module")
def paasing(admin: Api) -> HandingOver:
    """Authors of Paas and the administrators."""
    return HandingOver(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api, paasing: HandingOver) -> Knative:
    """All functions that have a part in Paas, where the kinds of OpenShift and Argo CD are."""
    await make_world(admin, "argo")
    await make_roles(admin)
    await admin.create(NAMESPACE, obj(NAMESPACE, PLACE))
    running = await flawlessly({}, functions=FUNCTIONS)
    await plainly_configured(paasing)
    return running


@pytest_asyncio.fixture(loop_scope="session")
async def many(request: pytest.FixtureRequest, system: Knative, paasing: HandingOver, calm: Calm) -> AsyncIterator[list[str]]:
    """Paas that are complete, and nothing is done any more."""
    names = [paas_name() for _ in range(getattr(request, "param", MANY))]
    await made(paasing, names)
    await calm(system)
    yield names
    await plainly_configured(paasing)
    await asyncio.gather(*(paasing.admin.delete(PAAS, name) for name in names))
    await asyncio.gather(*(paasing.away(PAAS, name, within=VOLUME_S) for name in names))


async def made(paasing: HandingOver, names: Sequence[str]) -> float:
    """Make Paas, and wait until all of them are Ready and complete; returns how long that took."""
    async with history(paasing.admin, PAAS) as seen:
        began = time.monotonic()
        await asyncio.gather(*(paasing.paas(name, **SPEC) for name in names))
        told: set[str] = set()

        async def ready() -> bool:
            told.update(change.found["metadata"]["name"] for change in seen if is_ready(change.found))
            return told >= set(names)

        await eventually(ready, within=VOLUME_S, what=f"{len(names)} Paas Ready")
        took = time.monotonic() - began
    assert await are_bound(paasing.admin, names, "view")
    for kind, each in ((GROUP, 2), (CLUSTER_RESOURCE_QUOTA, 2)):
        assert Counter(map(paas_of, (await paasing.admin.list(kind)).items)) >= Counter(dict.fromkeys(names, each)), kind
    shared = await paasing.get(CLUSTER_ROLE_BINDING, "paas-monitoring-edit")
    assert {each["namespace"] for each in shared["subjects"]} >= {f"{name}-argocd" for name in names}
    return took


def is_ready(paas: Object) -> bool:
    """Whether a Paas says that all is there, of what it declares now."""
    told = find_condition(paas, "Ready") or {}
    return bool(told.get("status") == "True" and told["observedGeneration"] == paas["metadata"]["generation"])


def paas_of(found: Object) -> str:
    """The name of the Paas that an object is, or is made for."""
    return str(found["metadata"]["name"]) if found["kind"] == PAAS.kind else labels_of(found).get(MANAGED_BY_PAAS, "")


async def are_bound(admin: Api, names: Sequence[str], role: str) -> bool:
    """Whether all namespaces of these Paas have exactly this role for the one group, and those of the other one."""
    found: dict[str, set[str]] = {}
    for each in (await admin.list(ROLE_BINDING, label_selector=MANAGED_BY_PAAS)).items:
        found.setdefault(each["metadata"]["namespace"], set()).add(each["metadata"]["name"])
    wanted = {f"paas-{each}" for each in (role, *CONFIG["rolemappings"]["admin"])}
    return all(found.get(f"{name}-{suffix}") == wanted for name in names for suffix in SUFFIXES)


def of(seen: Sequence[Change], names: Sequence[str], *kinds: Kind) -> list[Change]:
    """The changes of these kinds that are about these Paas; of all kinds but RoleBindings and Paas where none is named."""
    return [
        change
        for change in seen
        if (change.kind in kinds if kinds else change.kind not in (PAAS, ROLE_BINDING)) and paas_of(change.found) in names
    ]


def but_annotations(paas: Object) -> Any:
    """A Paas without what settling a system touches."""
    metadata = {part: paas["metadata"].get(part) for part in ("uid", "generation", "labels", "finalizers", "deletionTimestamp")}
    return metadata, paas["spec"], paas["status"]


async def changed(admin: Api, kind: Kind, for_s: int) -> list[Object]:
    """What of a kind is written in some seconds from now on."""
    since = (await admin.list(kind)).resource_version
    watch = admin.watch(kind, resource_version=since, timeout_s=for_s)
    async with aclosing(watch) as told:  # type: ignore[type-var]
        return [found async for change, found in told if change != "BOOKMARK"]


def requests(audit_log: AuditLog) -> list[str]:
    """Every request so far by which our identities meant to write something, Events too, whether it changed something or not."""
    asked = (each for each in audit_log.events() if each["verb"] not in ("get", "list", "watch"))
    return [f"{each['user']['username']}: {each['requestURI']}" for each in asked if "dryRun" not in each["requestURI"]]


@pytest.mark.check("p-160")
@pytest.mark.parametrize("many", [RESTING], indirect=True)
async def test_at_rest_nothing_is_written(
    many: list[str], system: Knative, paasing: HandingOver, calm: Calm, audit_log: AuditLog
) -> None:
    """Nor by another sweep; a change of one Paas writes Ready once or twice, and it is never Unknown."""
    admin, asked = paasing.admin, len(requests(audit_log))
    found = await asyncio.gather(*(changed(admin, kind, REST_S) for kind in KINDS))
    written = [each for some in found for each in some if paas_of(each) in ("", *many)]  # others may still be on their way out
    assert written == []
    before = await snapshot(admin, KINDS)
    for function in FUNCTIONS:
        assert (await swept(system, function))[0] == 204
    assert await snapshot(admin, KINDS) == before
    assert requests(audit_log)[asked:] == []

    name = many[0]
    was = find_condition(await paasing.get(PAAS, name), "Ready")
    async with history(admin, PAAS) as seen:
        await paasing.paas(name, **{**SPEC, "namespaces": {"a": {}, "b": {}, "more": {}}, "groups": {"us": {"roles": ["edit"]}}})
        await paasing.ready(name)
        await paasing.bound(f"{name}-more", {f"paas-{each}": [f"{name}-us"] for each in CONFIG["rolemappings"]["edit"]})
        await calm(system)
    assert requests(audit_log)[asked:], "the log has what is written"
    told = [was, *(find_condition(change.found, "Ready") for change in of(seen, [name], PAAS))]
    writes = [now for last, now in pairwise(told) if now != last]
    assert 1 <= len(writes) <= 2, writes
    assert {(each or {}).get("status") for each in told} == {"True"}


@pytest.mark.check("p-180")
@pytest.mark.parametrize("many", [RESTING], indirect=True)
async def test_a_change_without_a_meaning_writes_nothing(
    many: list[str], system: Knative, paasing: HandingOver, calm: Calm
) -> None:
    """Another order, an annotation, a field without use: no Paas and nothing that is made for one is written."""
    admin = paasing.admin
    before = {name: but_annotations(await paasing.get(PAAS, name)) for name in many}
    shared = await snapshot(admin, (CLUSTER_ROLE_BINDING, CLUSTER_RESOURCE_QUOTA), containing="paas-")
    async with history(admin, PAAS, *MADE) as seen:
        mappings = {role: [*reversed(roles)] for role, roles in reversed(CONFIG["rolemappings"].items())}
        body = obj(PAAS_CONFIG, CONFIG_NAME, annotations={"note": "x"}, spec={**CONFIG, "rolemappings": mappings, "debug": True})
        await admin.apply(PAAS_CONFIG, body)
        await paasing.says(CONFIG_NAME, "Warnings", "IgnoredField", kind=PAAS_CONFIG)
        await calm(system)
    assert of(seen, many) == []
    assert of(seen, many, ROLE_BINDING) == []
    for change in of(seen, many, PAAS):
        assert but_annotations(change.found) == before[paas_of(change.found)]
    assert await snapshot(admin, (CLUSTER_ROLE_BINDING, CLUSTER_RESOURCE_QUOTA), containing="paas-") == shared


@pytest.mark.check("p-177")
async def test_a_mapping_changes_for_all(many: list[str], system: Knative, paasing: HandingOver, calm: Calm) -> None:
    """In time, and written is what differs: in each namespace a binding comes and one goes."""
    before = {name: but_annotations(await paasing.get(PAAS, name))[:2] for name in many}
    async with history(paasing.admin, PAAS, *MADE) as seen:
        await mapped(paasing, seen, many)
        await calm(system)
    assert await are_bound(paasing.admin, many, "edit")
    places = [(f"{name}-{suffix}", role) for name in many for suffix in SUFFIXES for role in ("paas-edit", "paas-view")]
    writes = of(seen, many, ROLE_BINDING)
    assert sorted((each.found["metadata"]["namespace"], each.found["metadata"]["name"]) for each in writes) == sorted(places)
    assert all(each.gone == (each.found["metadata"]["name"] == "paas-view") for each in writes)
    assert of(seen, many) == []
    for change in of(seen, many, PAAS):
        assert but_annotations(change.found)[:2] == before[paas_of(change.found)]


async def mapped(paasing: HandingOver, seen: list[Change], names: Sequence[str], **more: Any) -> None:
    """Give groups without roles another ClusterRole; after some seconds they have it and not the old one in all namespaces."""
    wanted = {(f"{name}-{suffix}", role) for name in names for suffix in SUFFIXES for role in ("paas-edit", "paas-view")}
    await plainly_configured(paasing, rolemappings={**CONFIG["rolemappings"], "default": ["edit"]}, **more)

    async def done() -> bool:
        found = {
            (each.found["metadata"]["namespace"], each.found["metadata"]["name"])
            for each in seen
            if each.kind == ROLE_BINDING and each.gone == (each.found["metadata"]["name"] == "paas-view")
        }
        return wanted <= found

    await eventually(done, within=MAPPED_S, what=f"the mapping reaches {len(wanted) // 2} namespaces")


@pytest.mark.check("p-178")
async def test_who_is_broken_is_in_nobodys_way(many: list[str], system: Knative, paasing: HandingOver) -> None:
    """With one Paas broken in each way the others get the new mapping in the same time."""
    admin, reasons = paasing.admin, [each for each in SERVED if each.on == PAAS and is_of_one(each)]
    async with AsyncExitStack() as stack:
        for policy in (SHAPE, CONFIGURED):
            await stack.enter_async_context(got_in(admin, policy))
        await eventually(lambda: _gets_in(admin), within=POLICY_S, what="what policies refuse gets in")
        await plainly_configured(paasing, **BROKEN)
        telling = [Configured(paasing, system, paas_name()) for _ in reasons]
        for each, broken in zip(reasons, telling, strict=True):
            await stack.enter_async_context(each.cause(broken))
        await asyncio.gather(*(_is_broken(each, broken) for each, broken in zip(reasons, telling, strict=True)))
        await eventually(lambda: are_bound(admin, many, "view"), within=VOLUME_S, what="all are bound")
        async with history(admin, ROLE_BINDING) as seen:
            await mapped(paasing, seen, many, **BROKEN)
    await asyncio.gather(*(admin.delete(PAAS, each.name) for each in telling))
    await asyncio.gather(*(paasing.away(PAAS, each.name, within=VOLUME_S) for each in telling))


class Configured(Telling):
    """A Paas whose causes change nothing of the configuration: it is one in which all of them can be."""

    async def configure(self, **changes: Any) -> None:
        """Leave the PaasConfig as it is."""


def is_of_one(reason: Reason) -> bool:
    """Whether one Paas alone can be broken by it, under `BROKEN`."""
    return reason.reason not in ALONE and not (reason.reason == "UnknownCapability" and reason.warns)


async def _is_broken(reason: Reason, telling: Telling) -> None:
    """Wait until a Paas says so; where it says several things the reason is that of another one."""
    words = reason.words.format(name=telling.name)

    def says(found: Object) -> bool:
        return any(words in (find_condition(found, type_) or {}).get("message", "") for type_ in ("Ready", "Warnings"))

    await telling.paasing.until(PAAS, telling.name, "", says, within=VOLUME_S, what=f"{reason}: {words}")


async def _gets_in(admin: Api) -> bool:
    spec = {**SPEC, "groups": {"bad": {"query": "CN="}}, "capabilities": {"argocd": {"custom_fields": {"stray": "x"}}}}
    try:
        await admin.create(PAAS, obj(PAAS, paas_name(), spec=spec), dry_run=True)
    except RefusedError:
        return False
    return True


@pytest.mark.check("p-179")
async def test_many_at_once_are_soon_complete(system: Knative, paasing: HandingOver, calm: Calm, request: Any) -> None:
    """From the first that is made until all are complete and Ready; at full size beside a bare client, too."""
    names = [paas_name() for _ in range(MANY)]
    await calm(system)
    took = await made(paasing, names)
    await calm(system)
    bare = await _floor(request.getfixturevalue("control_plane"), MANY) if FULL else took
    await asyncio.gather(*(paasing.admin.delete(PAAS, name) for name in names))
    await asyncio.gather(*(paasing.away(PAAS, name, within=VOLUME_S) for name in names))
    assert took <= (CREATED_S if FULL else paasing.eventually_s * SIDE_BY_SIDE)
    assert took <= RATIO * bare, f"{took:.1f} s, and {bare:.1f} s of a bare client"


async def _floor(plane: ControlPlane, count: int) -> float:
    """The time in which the client of the bench makes the same objects."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(Path(__file__).parents[2])
        from tests.bench import paas, stack

        async with stack.admin(plane) as wire:
            return float(await paas.floor(wire, count))
