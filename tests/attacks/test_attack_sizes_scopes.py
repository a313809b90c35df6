"""Large and many objects of one tenant's home and members of NamespaceScopes (a-15, a-17, a-19): others are served.

The attacker owns a home and its members. The victims are another home with its member, and an instance of a scope: what they
declare is followed meanwhile, and their events are answered in time. With TENANTRY_FULL_SIZE as many objects are made as the
checks say, else a sample.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from attackers import HOME, Attackers
from forgery import Served, forget_peak, limit_mib, meanwhile, peak_mib
from operators import GET_LIST, OWN_ROLES, Operators
from people import look, post, swept_whole, token
from rights import account, cluster_role
from scoping import Scoping, role
from times import FULL, LEFT_TO_MAKE_WHOLE, SCOPES_S, SERVED_MEANWHILE_S, SIDE_BY_SIDE
from victims import SPARE, at_full_size

from scope_binding.consent import consent_name
from tenantry.api import Api
from tenantry.api.errors import RefusedError
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CONFIG_MAP,
    NAMESPACE_SCOPE,
    ROLE,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SERVICE_ACCOUNT,
    Kind,
    Object,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

FUNCTIONS = ("scope-binding",)
MANY = 5000 if FULL else 300
LABELLED = 200 if FULL else 110
FILLED = 50 if FULL else 12
MEGABYTE = "x" * 1_000_000
AT_ONCE = 8
LARGE_AT_ONCE = 2
"""Objects of a megabyte: the API server, etcd and this test are on the same cores, and it is not their time that counts."""
QUICK = (("managed", "multiplied"), ("own-roles", "880-kB"), ("by-hand", "multiplied"))
LIST_LABEL = "managedby-namespace-scope"
EDITOR = "tenantry-namespace-scope-editor"
TOLD_S = 15.0 * SIDE_BY_SIDE
"""Until the attacker is told: his events wait behind one another, and his own runs may take long."""

pytestmark = [pytest.mark.timeout(600 if FULL else 240), LEFT_TO_MAKE_WHOLE]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """The function, fed by the real sources and broker, until the module ends."""
    return await flawlessly({}, functions=FUNCTIONS)


class Victim:
    """A home with its member, and an instance of a scope, whose events are answered in time whatever others do."""

    def __init__(self, admin: Api, system: Knative) -> None:
        self.own = Operators(admin, eventually_s=SCOPES_S * SIDE_BY_SIDE)
        self._scoping = Scoping(admin, SCOPES_S * SIDE_BY_SIDE)
        self._system = system
        self._served = Served()
        self._name = f"v{token()}"

    async def begin(self) -> None:
        """Both are there and served; what the functions have needed before does not count."""
        await self.own.begin(2)
        await self.own.scope(1)
        await self.own.ready()
        await self._scoping.template(self._name, role(self._name))
        await self._scoping.instance(self._name, self._name, namespaces=[self.own.member(1)])
        await self._scoping.scoped(self._name)
        await self._system.drain()
        for function in self._system.functions.values():
            forget_peak(function.pid)

    @asynccontextmanager
    async def meanwhile(self) -> AsyncIterator[None]:
        """Functions are asked to look at both again and again; each answer comes in time, and sweeps complete."""

        async def ask() -> None:
            await self._look(NAMESPACE_SCOPE, "common-service", self.own.home)
            await self._look(SCOPE_INSTANCE, self._name, "")
            await self._look(ROLE, consent_name(self.own.home), self.own.member(1))

        async with meanwhile(ask, 0.05):
            yield
            await self._sweep()
        slowest = max(self._served.seconds)
        for name, function in self._system.functions.items():
            print(f"{name}: peak {peak_mib(function.pid):.0f} of {limit_mib(name)} MiB, slowest answer {slowest:.2f} s")
        assert slowest < SERVED_MEANWHILE_S, sorted(self._served.seconds)[-5:]
        # A broker delivers in order: what is declared now comes after thousands of the attacker's events.
        await self._system.drain()
        await self._follows()
        for name, function in self._system.functions.items():
            assert peak_mib(function.pid) < SPARE * limit_mib(name)

    async def _look(self, kind: Kind, name: str, namespace: str) -> None:
        for function in self._system.functions.values():
            status, said = await self._served.time(post(function.url, *look(kind, name, namespace)))
            assert status == 204, said

    async def _sweep(self) -> None:
        for name in self._system.functions:
            began = time.monotonic()
            status, said = await swept_whole(self._system, name)
            print(f"sweep of {name}: {status} {said} in {time.monotonic() - began:.2f} s")
            assert status == 204, said

    async def _follows(self) -> None:
        """What is declared now comes true within the time of the checks."""
        await self.own.scope(1, 2)
        await self.own.listed(1, 2)
        await self.own.given(2, "namespacescope-managed-role-from-common-service")
        await self._scoping.instance(self._name, self._name, namespaces=[self.own.member(1), self.own.member(2)])
        await self._scoping.bound_in(self._name, self.own.member(1), self.own.member(2))


@pytest_asyncio.fixture(loop_scope="session")
async def victim(admin: Api, system: Knative) -> Victim:
    made = Victim(admin, system)
    await made.begin()
    return made


class Tenant:
    """Who owns a home and its members, and may write NamespaceScopes there."""

    def __init__(self, own: Operators, attacker: Api, system: Knative) -> None:
        self.own = own
        self.api = attacker
        self.system = system
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)

    async def makes(self, kind: Kind, body: Object, *, large: bool = False) -> None:
        """Make an object; what is refused to him, an administrator makes: functions must hold without guards, too."""
        async with self._large if large else self._gate:
            try:
                await self.api.create(kind, body)
            except RefusedError:
                await self.own.admin.create(kind, body)

    async def makes_many(self, kind: Kind, namespace: str, count: int, *, large: bool = False, **fields: Any) -> None:
        """So many objects that differ in their names."""
        bodies = (obj(kind, f"evil-{token()}-{number}", namespace, **fields) for number in range(count))
        await asyncio.gather(*(self.makes(kind, each, large=large) for each in bodies))

    async def told(self, reason: str, *parts: str, name: str = "common-service") -> None:
        """The condition of his NamespaceScope and a Warning on it say so, with all of these."""

        def says(message: str) -> bool:
            return all(part in message for part in parts)

        async def condition() -> bool:
            found = await self.own.admin.get(NAMESPACE_SCOPE, name, self.own.home) or {}
            told = [each for each in (found.get("status") or {}).get("conditions") or () if each["type"] == "Ready"]
            return any(each["status"] == "False" and each["reason"] == reason and says(each["message"]) for each in told)

        async def warned() -> bool:
            found = [each for each in await self.own.events(reason) if each["involvedObject"]["name"] == name]
            return any(each["type"] == "Warning" and says(each["message"]) for each in found)

        await eventually(condition, within=TOLD_S, what=f"{name} says {reason} with {parts}")
        await eventually(warned, within=TOLD_S, what=f"a Warning {reason} with {parts}")


@pytest_asyncio.fixture(loop_scope="session")
async def tenant(admin: Api, system: Knative, attackers: Attackers) -> Tenant:
    """A home with one consenting member, both the attacker's."""
    own = Operators(admin, eventually_s=SCOPES_S * SIDE_BY_SIDE)
    await own.begin(1)
    attacker = await attackers.someone("owner", own.home, own.member(1))
    subject = account(attackers._names[attacker], HOME)
    await admin.create(ROLE_BINDING, obj(ROLE_BINDING, "editor", own.home, subjects=[subject], roleRef=cluster_role(EDITOR)))
    return Tenant(own, attacker, system)


# -- a-15: ConfigMaps that functions select by a label -----------------------------------------------------------------


@pytest.mark.check("a-15", without="budgets")
@pytest.mark.parametrize(
    "data", [pytest.param({"junk": MEGABYTE}, marks=at_full_size), {"namespaces": MEGABYTE}], ids=["junk", "list"]
)
async def test_large_labelled_config_maps(tenant: Tenant, victim: Victim, data: dict[str, str]) -> None:
    """Very many ConfigMaps of a megabyte with the label, in a home: nothing of them is kept; too many are told."""
    await tenant.own.scope(1)
    await tenant.own.ready()
    async with victim.meanwhile():
        labels = {LIST_LABEL: "true"}
        await tenant.makes_many(CONFIG_MAP, tenant.own.home, LABELLED, large=True, labels=labels, data=data)
        await tenant.makes_many(CONFIG_MAP, tenant.own.member(1), 10, large=True, labels=labels, data=data)
    await tenant.told("TooManyConfigMaps", "at most 100", "take the label", LIST_LABEL)


@pytest.mark.check("a-15", without="budgets")
async def test_lists_that_are_filled_up(tenant: Tenant, victim: Victim) -> None:
    """ConfigMaps that we wrote and the tenant filled up keep what he put in; of it nothing is kept by the function."""
    config_maps = [f"list-{number}" for number in range(FILLED)]
    await asyncio.gather(*(tenant.own.scope(1, name=name, configmapName=name) for name in config_maps))
    await asyncio.gather(*(tenant.own.listed(1, config_map=name) for name in config_maps))
    junk = [{"op": "add", "path": "/data/junk", "value": MEGABYTE}]
    async with victim.meanwhile():
        for name in config_maps:
            await tenant.api.json_patch(CONFIG_MAP, name, tenant.own.home, junk)
            await tenant.own.admin.get(CONFIG_MAP, name, tenant.own.home)
    for name in config_maps[:2]:  # a list that somebody edits is put back, and his keys stay
        edit = [{"op": "replace", "path": "/data/namespaces", "value": "kube-system"}]
        await tenant.api.json_patch(CONFIG_MAP, name, tenant.own.home, edit)
        found = await tenant.own.listed(1, config_map=name)
        assert set(found["data"]) == {"namespaces", "junk"}


# -- a-17: rights in consents and at home ------------------------------------------------------------------------------


def singles(count: int) -> list[Object]:
    """Rules for one ConfigMap each: about 90 bytes for each, and nothing that an owner does not have."""
    return [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": [f"x{number}"]}
        for number in range(count)
    ]


def multiplied() -> list[Object]:
    """36 kB that say 800,000 rights."""
    resources = ["configmaps", "secrets", "pods", "services", "endpoints", "serviceaccounts", "persistentvolumeclaims"]
    resources += ["events", "replicationcontrollers", "pods/log", "pods/exec", "pods/attach", "pods/portforward", "pods/proxy"]
    resources += ["services/proxy", "pods/status", "services/status", "resourcequotas", "limitranges", "bindings"]
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
    return [{"apiGroups": [""], "resources": resources, "verbs": verbs, "resourceNames": [f"n{n:04}" for n in range(5000)]}]


RIGHTS = {"880-kB": singles(9_800), "multiplied": multiplied()}


@pytest.mark.check("a-17", without="budgets")
@pytest.mark.parametrize(
    ("projection", "size"),
    [
        pytest.param(projection, size, marks=() if (projection, size) in QUICK else at_full_size)
        for projection in ("managed", "own-roles", "by-hand")
        for size in sorted(RIGHTS)
    ],
)
async def test_large_consents(tenant: Tenant, victim: Victim, size: str, projection: str) -> None:
    """Roles on both sides that are over the limits give nothing; what was given stays; Role, limit and fix are told."""
    own, rules, consent = tenant.own, RIGHTS[size], consent_name(tenant.own.home)
    by_hand = projection == "by-hand"
    annotations = {} if projection == "managed" else OWN_ROLES
    await own.scope(1, annotations=annotations, serviceAccountMembers=["my-op"], manualManagement=by_hand)
    await own.ready(*(("False", "ProjectionIncomplete") if by_hand else ()))
    before = await own.in_member(1)
    assert bool(before) != by_hand
    async with victim.meanwhile():
        for place, name in ((own.member(1), consent), (own.home, "my-op")):
            await _fill(tenant, place, name, rules)
        named = [f"{own.member(1)}/{consent}"] if projection == "managed" else [f"{own.home}/my-op"]
        limit = "at most 256 rules" if size == "880-kB" else "at most 100000 rights"
        await tenant.told("ProjectionIncomplete", *named, limit, "split")
    assert await own.in_member(1) == before
    if not by_hand:
        assert await own.may(1, "get", "configmaps")
    await _fill(tenant, own.home, "my-op", [GET_LIST])
    await own.consent(own.member(1))
    await own.ready(*(("False", "ProjectionIncomplete") if by_hand else ()), text="rights made by hand" if by_hand else "")


async def _fill(tenant: Tenant, namespace: str, name: str, rules: list[Object]) -> None:
    """The owner writes rules into a Role; where he lacks them himself, an administrator does."""
    edit = [{"op": "replace", "path": "/rules", "value": rules}]
    try:
        await tenant.api.json_patch(ROLE, name, namespace, edit)
    except RefusedError:
        await tenant.own.admin.json_patch(ROLE, name, namespace, edit)


# -- a-19: thousands of small objects ------------------------------------------------------------------------------------


@pytest.mark.check("a-19")
@at_full_size
@pytest.mark.parametrize(
    ("place", "projection"),
    [
        ("home", "managed"),
        pytest.param("home", "own-roles", marks=pytest.mark.check("a-19", without="budgets")),
        ("member", "managed"),
        ("member", "own-roles"),
    ],
)
async def test_many_role_bindings(tenant: Tenant, victim: Victim, place: str, projection: str) -> None:
    """Thousands of RoleBindings of the operator's account, each to a Role of its own: too many copies are told."""
    own = tenant.own
    await own.scope(1, annotations=OWN_ROLES if projection == "own-roles" else {}, serviceAccountMembers=["my-op"])
    await own.ready()
    namespace = own.home if place == "home" else own.member(1)
    subject = account("my-op", own.home)

    async def bound(number: int) -> None:
        name = f"r-{number}"
        await tenant.makes(ROLE, obj(ROLE, name, namespace, rules=[GET_LIST]))
        reference = {"apiGroup": ROLE.group, "kind": "Role", "name": name}
        await tenant.makes(ROLE_BINDING, obj(ROLE_BINDING, name, namespace, roleRef=reference, subjects=[subject]))

    async with victim.meanwhile():
        await asyncio.gather(*(bound(number) for number in range(MANY)))
    if (place, projection) == ("home", "own-roles"):
        await tenant.told("ProjectionIncomplete", "at most 200 roles", "my-op")
    else:
        await own.ready()


@pytest.mark.check("a-19", without="budgets")
async def test_many_labelled_config_maps(tenant: Tenant, victim: Victim) -> None:
    """Thousands of small ConfigMaps with the label, in a home."""
    await tenant.own.scope(1)
    await tenant.own.ready()
    async with victim.meanwhile():
        data = {"namespaces": "kube-system"}
        await tenant.makes_many(CONFIG_MAP, tenant.own.home, MANY, labels={LIST_LABEL: "true"}, data=data)
    await tenant.told("TooManyConfigMaps", "at most 100", "take the label", LIST_LABEL)


@pytest.mark.check("a-19", without="budgets")
@at_full_size
async def test_many_namespace_scopes(tenant: Tenant, victim: Victim) -> None:
    """Thousands of NamespaceScopes in a home: the oldest are served, and each of the others is told."""
    own = tenant.own
    await own.scope(1)
    await own.ready()
    async with victim.meanwhile():
        spec = {"namespaceMembers": [own.member(1)], "configmapName": "many"}
        await tenant.makes_many(NAMESPACE_SCOPE, own.home, MANY, spec=spec)
    await own.ready()
    await own.listed(1, config_map="many")

    async def all_told() -> bool:
        for name in tenant.system.functions:
            assert (await swept_whole(tenant.system, name))[0] == 204
        found = (await own.admin.list(NAMESPACE_SCOPE, own.home)).items
        reasons = Counter(each["status"]["conditions"][0]["reason"] for each in found if each.get("status"))
        return reasons["TooManyNamespaceScopes"] == MANY - 99 and reasons["Reconciled"] == 100

    await eventually(all_told, within=10 * TOLD_S, what="each NamespaceScope that is not served says so")
    told = [each for each in await own.events("TooManyNamespaceScopes") if "at most 100 are served" in each["message"]]
    assert len({each["involvedObject"]["name"] for each in told if each["type"] == "Warning"}) == MANY - 99


@pytest.mark.check("a-19")
async def test_many_accounts(tenant: Tenant, victim: Victim) -> None:
    """Thousands of ServiceAccounts in a home: nobody reads those that no NamespaceScope names."""
    await tenant.own.scope(1)
    await tenant.own.ready()
    async with victim.meanwhile():
        await tenant.makes_many(SERVICE_ACCOUNT, tenant.own.home, MANY)
    await tenant.own.ready()
