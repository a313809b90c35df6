"""A tenant made in a cluster: what others have there stays, and nothing is written where something is in the way (2.6)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tenantry.api import Api
from tenantry.api.errors import KindNotServed
from tenantry.cli.create.written import PERSON, Row, row_of
from tenantry.cli.one_line import WrongUse
from tenantry.model.flux.names import DEFAULT, MADE_FOR_TENANT, TENANCY_PROFILE, TENANT_LABEL
from tenantry.model.flux.tenant import TenantDefaults, defaults_of
from tenantry.model.kinds import NAMESPACE, ROLE_BINDING, SERVICE_ACCOUNT, Kind, Object, is_terminating, labels_of
from tenantry.model.pointer import pointer

Operations = list[dict[str, Any]]


class Onboarding(NamedTuple):
    """What a tenant gets in one namespace; without ``namespace`` that one is left to others."""

    namespace: Object | None
    account: Object
    binding: Object

    @property
    def name(self) -> str:
        """The namespace's."""
        found: str = self.account["metadata"]["namespace"]
        return found

    @property
    def documents(self) -> tuple[Object, ...]:
        """In the order in which they are made."""
        return (*((self.namespace,) if self.namespace is not None else ()), self.account, self.binding)


async def onboarded(tenant: str, wanted: Sequence[Onboarding], kubeconfig: Path | None, *, adopt: bool) -> list[Row]:
    """Make a tenant, and say what became of each object.

    Raises:
        WrongUse: a namespace is in the way; nothing was written.
    """
    async with await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig) as api:
        defaults = await _defaults(api)
        live = {each.name: await api.get(NAMESPACE, each.name) for each in wanted}
        problems = [_problem(each, live[each.name], tenant, defaults, adopt=adopt) for each in wanted]
        if found := [each for each in problems if each]:
            raise WrongUse("; ".join(found))
        rows = []
        for each in wanted:
            if each.namespace is not None:
                rows.append(await _merged(api, NAMESPACE, each.namespace, live[each.name]))
            account = await api.get(SERVICE_ACCOUNT, each.account["metadata"]["name"], each.name)
            rows.append(await _merged(api, SERVICE_ACCOUNT, each.account, account))
            rows.append(await _bound(api, each.binding))
        return rows


async def _defaults(api: Api) -> TenantDefaults:
    """What the profile says of namespaces or, without one, its defaults."""
    try:
        profile = await api.get(TENANCY_PROFILE, DEFAULT)
    except KindNotServed:
        profile = None
    return defaults_of(profile)


def _problem(wanted: Onboarding, live: Object | None, tenant: str, defaults: TenantDefaults, *, adopt: bool) -> str:
    """Why nothing is written in a namespace; empty when nothing is in the way."""
    name, ours = wanted.name, wanted.namespace is not None
    if defaults.is_platforms(name):
        return f"namespace {name} is the platform's: choose another"
    if live is None:
        return "" if ours else f"namespace {name} does not exist: make it, or leave out --skip-namespace"
    if is_terminating(live):
        return f"namespace {name} is being deleted: try again when it is gone"
    labels = labels_of(live)
    owners = sorted({owner for key in (TENANT_LABEL, MADE_FOR_TENANT) if (owner := labels.get(key, "")) not in ("", tenant)})
    if owners:
        return f"namespace {name} belongs to tenant {owners[0]}: choose another, or take it from that tenant first"
    if ours and not adopt and not labels.get(TENANT_LABEL):
        return f"namespace {name} is there and belongs to no tenant: give --adopt to take it over"
    return ""


async def _merged(api: Api, kind: Kind, wanted: Object, live: Object | None) -> Row:
    """Make an object, or add our labels to those that it has."""
    if live is None:
        await api.create(kind, wanted)
        return row_of(wanted, "created")
    return await _patched(api, kind, wanted, live, _label_steps(wanted, live))


async def _bound(api: Api, wanted: Object) -> Row:
    """Make a RoleBinding, or change it in place; one for another role is made anew, since that field cannot change."""
    name, namespace = wanted["metadata"]["name"], wanted["metadata"]["namespace"]
    live = await api.get(ROLE_BINDING, name, namespace)
    if live is None:
        await api.create(ROLE_BINDING, wanted)
        return row_of(wanted, "created")
    if live["roleRef"] != wanted["roleRef"]:
        # Who may not bind the new role shall not lose the old binding: it is tried first, under a name that nothing has.
        trial = {**wanted, "metadata": {**wanted["metadata"], "name": f"{name}.{live['metadata']['uid']}"}}
        await api.create(ROLE_BINDING, trial, dry_run=True)
        await api.delete(ROLE_BINDING, name, namespace, uid=live["metadata"]["uid"])
        await api.create(ROLE_BINDING, wanted)
        return row_of(wanted, "made anew")
    steps = _label_steps(wanted, live)
    if live.get("subjects") != wanted["subjects"]:
        steps.append({"op": "add", "path": "/subjects", "value": wanted["subjects"]})
    return await _patched(api, ROLE_BINDING, wanted, live, steps)


def _label_steps(wanted: Object, live: Object) -> Operations:
    there = labels_of(live)
    steps: Operations = [] if there or not labels_of(wanted) else [{"op": "add", "path": "/metadata/labels", "value": {}}]
    missing = {key: value for key, value in labels_of(wanted).items() if there.get(key) != value}
    return [*steps, *({"op": "add", "path": pointer("metadata", "labels", key), "value": missing[key]} for key in missing)]


async def _patched(api: Api, kind: Kind, wanted: Object, live: Object, steps: Operations) -> Row:
    """Carry out steps on exactly what was looked at."""
    if not steps:
        return row_of(wanted, "unchanged")
    metadata = live["metadata"]
    same = {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
    await api.json_patch(kind, metadata["name"], metadata.get("namespace", ""), [same, *steps])
    return row_of(wanted, "updated")
