"""Rights of Paas in tests: both functions that make them, forced runs, and what stands in the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from configuring import got_in
from paasing import Paasing, at_work, paas_name
from people import swept
from times import POLICY_S

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, RefusedError
from tenantry.local.knative import Knative
from tenantry.model.kinds import ROLE_BINDING, Kind, Object
from tenantry.model.paas.names import MANAGED_BY_PAAS, PAAS
from tenantry.testing import eventually
from tenantry.testing.objects import obj

FUNCTIONS = ("namespace-registration", "rbac-aggregation")

RBAC = "rbac.authorization.k8s.io"
SHAPE, CONFIGURED = "tenantry-guard-paas-shape", "tenantry-guard-paas-configured"
NS_GROUPS = "tenantry-guard-paas-ns-groups"
SUBJECTS = {
    "paas-admin": ("us",),
    "paas-edit": ("us",),
    "paas-alert-routing-edit": ("us",),
    "paas-monitoring-edit": ("us",),
    "paas-view": ("them", "us"),
}
"""The RoleBindings of the example, by the keys of their groups; ``others`` is subject of ``paas-view`` besides."""


class Change(NamedTuple):
    """One change of an object, or its deletion."""

    kind: Kind
    gone: bool
    found: Object


async def righting(start: Callable[..., Awaitable[Knative]], admin: Api, world: str, **options: Any) -> Knative:
    """Namespaces and rights of Paas at work in a world, under the configuration of the checks."""
    return await at_work(start, admin, world, FUNCTIONS, **options)


def example_bindings(name: str) -> dict[str, list[str]]:
    """What the RoleBindings in each namespace of the example have."""
    found = {binding: [f"{name}-{key}" for key in keys] for binding, keys in SUBJECTS.items()}
    return {**found, "paas-view": sorted([*found["paas-view"], "others"])}


def only(name: str, key: str) -> dict[str, list[str]]:
    """What they have in a namespace of the example that one group is restricted to."""
    return {binding: [f"{name}-{key}"] for binding, keys in SUBJECTS.items() if key in keys}


def binding(name: str, namespace: str, role: str, *groups: str, **metadata: Any) -> Object:
    """A RoleBinding by hand."""
    subjects = [{"apiGroup": RBAC, "kind": "Group", "name": each} for each in groups]
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    return obj(ROLE_BINDING, name, namespace, roleRef=reference, subjects=subjects, **metadata)


async def replaced(paasing: Paasing, name: str, **spec: Any) -> Object:
    """Write the whole spec of a Paas anew."""
    return await paasing.edit(PAAS, name, "", ("replace", "/spec", {"quota": {}, **spec}))


async def anyway(paasing: Paasing, policies: Sequence[str], kind: Kind, body: Object, *, anew: bool = False) -> Object:
    """Make or change an object although policies refuse it: for as long as that takes they are away.

    ``anew``: as a plain create, in which texts may have characters that YAML has not.
    """

    async def attempt() -> Object:
        try:
            return await (paasing.admin.create(kind, body) if anew else paasing.admin.apply(kind, body))
        except AdmissionDenied:
            return {}

    if not policies:
        return await eventually(attempt, within=POLICY_S, what=f"{body['metadata']['name']} gets in")
    async with got_in(paasing.admin, policies[0]):
        return await anyway(paasing, policies[1:], kind, body, anew=anew)


async def refused(paasing: Paasing, words: str = "", **spec: Any) -> None:
    """Wait until a new Paas is refused with these words: a policy that was away comes into force after a moment."""
    body = obj(PAAS, paas_name(), spec={"quota": {}, **spec})

    async def attempt() -> str:
        try:
            await paasing.admin.create(PAAS, body, dry_run=True)
        except RefusedError as error:
            return error.message
        return ""

    await eventually(attempt, lambda said: said and words in said, within=POLICY_S, what=f"a Paas with {spec} is refused")


async def sweep(running: Knative) -> None:
    """Have rbac-aggregation sweep, and wait until it has."""
    status, text = await swept(running, "rbac-aggregation")
    assert status == 204, text


async def versions(paasing: Paasing, *namespaces: str) -> dict[tuple[str, str], str]:
    """The resourceVersions of the RoleBindings in these namespaces."""
    found: dict[tuple[str, str], str] = {}
    for namespace in namespaces:
        for each in (await paasing.admin.list(ROLE_BINDING, namespace)).items:
            found[namespace, each["metadata"]["name"]] = each["metadata"]["resourceVersion"]
    return found


async def named(paasing: Paasing, name: str, paas: str) -> list[str]:
    """The RoleBindings of a Paas that name a group."""
    found = (await paasing.admin.list(ROLE_BINDING, label_selector=f"{MANAGED_BY_PAAS}={paas}")).items
    return [each["metadata"]["name"] for each in found if any(subject["name"] == name for subject in each.get("subjects") or ())]


async def has_users(paasing: Paasing, group: str, users: Sequence[str] | None) -> None:
    """Wait until a Group has exactly these users; None: until there is none."""
    wanted = None if users is None else list(users)
    within = paasing.eventually_s
    await eventually(lambda: paasing.users(group), lambda found: found == wanted, within=within, what=f"{group} has {wanted}")


@asynccontextmanager
async def history(admin: Api, *kinds: Kind) -> AsyncIterator[list[Change]]:
    """All changes of these kinds from the beginning of the block on; those of a kind in their order."""
    seen: list[Change] = []

    async def note(kind: Kind, since: str) -> None:
        async for change, found in admin.watch(kind, resource_version=since):
            if change != "BOOKMARK":
                seen.append(Change(kind, change == "DELETED", found))

    since = [(kind, (await admin.list(kind)).resource_version) for kind in kinds]
    tasks = [asyncio.create_task(note(kind, version)) for kind, version in since]
    try:
        yield seen
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def in_order(seen: Sequence[Change]) -> list[Change]:
    """As the API server made them; the version of a deleted object is that of its deletion."""
    return sorted(seen, key=lambda each: int(each.found["metadata"]["resourceVersion"]))


def group_names(found: Mapping[str, Any]) -> set[str]:
    """The subjects of a RoleBinding."""
    return {each["name"] for each in found.get("subjects") or ()}
