"""Reads for the permissions of service accounts: a ClusterRole with its bindings, a Paas, or a namespace that is held.

A ClusterRoleBinding is read before the declarations: who then writes it in the version that was read knows no older declarations
than who wrote it before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace
from functools import partial

from scope_binding.paas.descriptor import PAAS_ACCOUNTS, PERMISSIONS_LABEL
from scope_binding.paas.plan import bound_in_cluster, is_let_go, local_bindings, struck
from scope_binding.paas.report import is_missing
from scope_binding.paas.seen import (
    MANAGER,
    AccountGrant,
    GrantsSeen,
    NamespaceSeen,
    RoleSeen,
    Subject,
    capability_namespaces,
    declared,
    granted,
    grants_of,
    in_cluster,
    is_prepared,
    is_shared,
    local_binding,
    local_name,
    shared_binding,
    standing,
    subjects_of,
)
from tenantry.api.errors import AlreadyExists, NotFound, RefusedError, TransientError
from tenantry.engine.leftovers import observe_leftovers
from tenantry.engine.paas import active_config, read_paas
from tenantry.engine.reader import Reader
from tenantry.engine.reads import by_name, if_served
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE_BINDING,
    Object,
    finalizers_of,
    is_terminating,
    key_of,
    labels_of,
)
from tenantry.model.paas.config import PaasConfig
from tenantry.model.paas.declared import Paas, paas_of
from tenantry.model.paas.names import (
    ACCOUNTS_FINALIZER,
    BINDING_PREFIX,
    MANAGED_BY_PAAS,
    PAAS,
    PAAS_CONFIG,
    SUBJECTS_FINALIZER,
    binding_name,
)
from tenantry.model.paas.ours import is_ours, uid_of
from tenantry.model.paas.places import held_by
from tenantry.model.plan import Refusal

_MOVES = frozenset({PAAS_CONFIG.kind, ROLE_BINDING.kind, CLUSTER_ROLE_BINDING.kind})
"""Whose events may tell of a step from the cluster into namespaces, or back."""
FENCE = f"tenantry-fence-{PAAS_ACCOUNTS.name}"
FEW = 16
"""Up to so many namespaces are read one by one; for more a list is cheaper."""


async def capable(reader: Reader) -> tuple[Paas, ...]:
    """Every Paas that names a capability: none other gives a service account anything."""
    listed = await if_served(PAAS, reader, reader.list_shared(PAAS)) or ()
    return tuple(paas_of(each) for each in listed if (each.get("spec") or {}).get("capabilities"))


def only_named_like_ours(binding: Object) -> Object:
    """What is kept of ClusterRoleBindings: of those that no Paas can have nothing but the name."""
    if binding["metadata"]["name"].startswith(BINDING_PREFIX):
        return binding
    metadata = {part: binding["metadata"][part] for part in ("name", "uid", "resourceVersion")}
    return {"apiVersion": binding["apiVersion"], "kind": binding["kind"], "metadata": metadata}


async def shared_bindings(reader: Reader, *, marked: bool) -> list[Object]:
    """The ClusterRoleBindings that are ours; with ``marked`` those that our label finds, which is less to read."""
    if marked:
        found = await reader.list_shared(CLUSTER_ROLE_BINDING, labels={PERMISSIONS_LABEL: ""})
    else:
        found = await reader.list_shared(CLUSTER_ROLE_BINDING, keep=only_named_like_ours)
    return [each for each in found if each["metadata"]["name"].startswith(BINDING_PREFIX) and is_shared(each)]


# -- a ClusterRole -----------------------------------------------------------------------------------------


async def observe_role(role: str, reader: Reader) -> RoleSeen:
    """Read the bindings of a role, who declares it, and the namespaces of these."""
    binding = await reader.get(CLUSTER_ROLE_BINDING, binding_name(role))
    every, config = await asyncio.gather(capable(reader), active_config(reader))
    seen = RoleSeen(role, binding, config, every, local=await _local(role, config, reader))
    reader.depends_on(partial(_declared, role), declared(seen))
    there = frozenset(subject.namespace for subject in standing(seen))
    asked = {subject.namespace for _, subject in declared(seen)}
    seen = replace(seen, namespaces=await _namespaces(asked if config is not None else asked & there, there, reader))
    if config is not None and not in_cluster(config):
        seen = replace(seen, local=await _completed(seen, reader))
        seen = replace(seen, refusing=await _refusing(seen, config, reader))
    new = _depend_on_new(seen, reader)
    if new and reader.live and reader.attempt:
        await _admitted(role, new, reader)
    gone = struck(seen) if reader.live else ()
    return replace(seen, leftovers=await observe_leftovers([binding] if binding and gone else [], reader))


async def _declared(role: str, reader: Reader) -> Hashable:
    every, config = await asyncio.gather(capable(reader), active_config(reader))
    return declared(RoleSeen(role, None, config, every))


async def _admitted(role: str, new: Collection[Subject], reader: Reader) -> None:
    """Whether our own policy, which has refused this run already, has come to know the configuration.

    It can take the API server half a minute to find the kind of its param after that was installed.

    Raises:
        TransientError: not yet; whoever sent the event sends it again.
    """
    refusal = await _refusal(shared_binding(role, sorted(new)[:1]), reader)
    if refusal is not None and refusal.cause == "admission" and FENCE in refusal.message:
        raise TransientError(f"a policy of ours does not know the PaasConfig yet: {refusal.message}")


def _depend_on_new(seen: RoleSeen, reader: Reader) -> Collection[Subject]:
    """Who is added has a namespace that is still held for him when he was written; returns who is."""
    wanted = granted(seen)
    new = {each: wanted[each] for each in bound_in_cluster(seen, wanted) - subjects_of(seen.binding)}

    def held(namespaces: Mapping[str, Object | None]) -> Hashable:
        each_held = ((subject, paas, namespaces.get(subject.namespace)) for subject, paas in new.items())
        return frozenset(each for each, paas, found in each_held if held_by(paas, found) and is_prepared(paas, found))

    async def compute(fresh: Reader) -> Hashable:
        return held(await _namespaces({subject.namespace for subject in new}, frozenset(), fresh))

    if new:
        reader.depends_on(compute, held(seen.namespaces))
    return new


async def _namespaces(names: Collection[str], there: Collection[str], reader: Reader) -> Mapping[str, Object | None]:
    """These namespaces; of ``there``, in which somebody is bound, also one that has lost the label by which they are listed."""
    if len(names) <= FEW:
        return await by_name(NAMESPACE, sorted(names), reader)
    listed = await reader.list_shared(NAMESPACE, labels={MANAGED_BY_PAAS: ""})
    found: dict[str, Object | None] = {name: each for each in listed if (name := each["metadata"]["name"]) in names}
    return found | await by_name(NAMESPACE, sorted({*names} & {*there} - found.keys()), reader)


async def _local(role: str, config: PaasConfig | None, reader: Reader) -> tuple[Object, ...] | None:
    """The RoleBindings of a role, where permissions hold in namespaces, or may have held there until now."""
    asked = not reader.causes or any(cause.kind in _MOVES for cause in reader.causes)
    if in_cluster(config) and not asked:
        return None
    found = await reader.list_shared(ROLE_BINDING, labels={PERMISSIONS_LABEL: ""})
    return tuple(each for each in found if each["metadata"]["name"] == local_name(role))


async def _completed(seen: RoleSeen, reader: Reader) -> tuple[Object, ...]:
    """The RoleBindings with those that have the right name and not our label."""
    there = local_bindings(seen)
    names = sorted({subject.namespace for subject in granted(seen)} - there.keys())
    found = await asyncio.gather(*(reader.get(ROLE_BINDING, local_name(seen.role), name) for name in names))
    return (*there.values(), *(each for each in found if each is not None))


async def _refusing(seen: RoleSeen, config: PaasConfig, reader: Reader) -> frozenset[str]:
    """The namespaces that refuse their binding now, while the cluster's waits for it: nobody declares that any more."""
    if not reader.live:
        return frozenset()
    wanted, there = granted(seen), local_bindings(seen)
    waiting = {subject.namespace for subject in wanted if subject in subjects_of(seen.binding)} - there.keys()
    owners = {subject.namespace: paas for subject, paas in wanted.items()}
    bodies = [local_binding(seen.role, name, (), owners[name], config) for name in sorted(waiting)]
    refused = await asyncio.gather(*(_refusal(body, reader) for body in bodies))
    return frozenset(body["metadata"]["namespace"] for body, no in zip(bodies, refused, strict=True) if no is not None)


async def _refusal(body: Object, reader: Reader) -> Refusal | None:
    """Why a binding cannot be made; None where it can, or is there."""
    kind = ROLE_BINDING if body["kind"] == ROLE_BINDING.kind else CLUSTER_ROLE_BINDING
    try:
        await reader.try_create(kind, body, manager=MANAGER)
    except (AlreadyExists, NotFound):
        return None
    except RefusedError as error:
        return Refusal(key_of(body), error.cause, error.message)
    return None


# -- a Paas ------------------------------------------------------------------------------------------------


async def observe_paas(name: str, reader: Reader) -> GrantsSeen:
    """Read a Paas, the namespaces of its grants, and whether they stand."""
    paas = await read_paas(name, reader)
    if paas is None:
        return GrantsSeen(None)
    if paas.deleted:
        return await _left(paas, reader)
    config = await active_config(reader)
    grants = grants_of(paas, config)
    if config is None or not grants:
        held = config is not None and ACCOUNTS_FINALIZER in finalizers_of(paas.live)
        return replace(await _left(paas, reader), config=config) if held else GrantsSeen(paas, config)
    namespaces, bindings = await asyncio.gather(
        by_name(NAMESPACE, {grant.subject.namespace for grant in grants}, reader), _bindings(grants, config, reader)
    )
    seen = GrantsSeen(paas, config, namespaces, bindings)
    if any(is_missing(seen, grant) for grant in grants):
        # what comes then is told by an event of an object that this run has read already
        reader.knows_only_part(PAAS, name)
        for each in namespaces:
            reader.knows_only_part(NAMESPACE, each)
    return replace(seen, refused=await _refused(seen, paas, config, grants, reader))


async def _bindings(grants: list[AccountGrant], config: PaasConfig, reader: Reader) -> Mapping[tuple[str, str], Object | None]:
    """The bindings of these grants, by role and namespace: in the cluster those that a list has, else by name."""
    if not in_cluster(config):
        places = {(grant.role, grant.subject.namespace) for grant in grants}
        found = await asyncio.gather(*(reader.get(ROLE_BINDING, local_name(role), namespace) for role, namespace in places))
        return dict(zip(places, found, strict=True))
    roles = {grant.role for grant in grants}
    listed = {}
    if not reader.live or len(roles) > FEW:
        listed = {each["metadata"]["name"]: each for each in await shared_bindings(reader, marked=True)}
    others = await by_name(CLUSTER_ROLE_BINDING, {binding_name(role) for role in roles} - listed.keys(), reader)
    return {(role, ""): (listed | others).get(binding_name(role)) for role in roles}


async def _refused(
    seen: GrantsSeen, paas: Paas, config: PaasConfig, grants: list[AccountGrant], reader: Reader
) -> Mapping[str, Refusal]:
    """Why what could stand by now does not: the run of a role has no object to tell it on, so it is tried once more.

    A snapshot tries nothing.  It takes for refused what is missing: that makes the Paas due where nothing was told yet.
    """
    bodies: dict[str, Object] = {}
    for grant in grants:
        if not is_missing(seen, grant) or grant.role in bodies:
            continue
        if not in_cluster(config):
            bodies[grant.role] = local_binding(grant.role, grant.subject.namespace, [grant.subject], paas, config)
        elif is_prepared(paas, seen.namespaces[grant.subject.namespace]):
            bodies[grant.role] = shared_binding(grant.role, [grant.subject])
    if not reader.live:
        return {role: Refusal(key_of(body), "admission", "") for role, body in bodies.items()}
    found = await asyncio.gather(*(_refusal(body, reader) for body in bodies.values()))
    return {role: refusal for role, refusal in zip(bodies, found, strict=True) if refusal is not None}


async def _left(paas: Paas, reader: Reader) -> GrantsSeen:
    """What still stands for a Paas that gives nothing any more: who is bound in the cluster, and its RoleBindings."""
    every, listed, local = await asyncio.gather(
        shared_bindings(reader, marked=False),
        reader.list(NAMESPACE, labels={MANAGED_BY_PAAS: paas.name}),
        reader.list_shared(ROLE_BINDING, labels={PERMISSIONS_LABEL: ""}),
    )
    own = {each["metadata"]["name"] for each in listed if is_ours(each, paas.name, paas.uid)}
    named = {subject for binding in every for subject in subjects_of(binding)}
    others = {subject.namespace for subject in named} & capability_namespaces(paas) - own
    read = await by_name(NAMESPACE, others, reader)
    own |= {name for name, found in read.items() if found is None or uid_of(found) in ("", paas.uid)}
    alone = tuple(binding for binding in local if uid_of(binding) == paas.uid and not is_terminating(binding))
    return GrantsSeen(paas, named=frozenset(each for each in named if each.namespace in own), left=alone)


# -- a namespace -------------------------------------------------------------------------------------------


async def observe_namespace(name: str, reader: Reader) -> NamespaceSeen:
    """Read a namespace, whether permissions are declared for it, and whether a binding of ours names it."""
    seen = await _observe_held(name, reader)
    goes = [seen.namespace] if seen.namespace is not None and reader.live and is_let_go(seen) else []
    return replace(seen, leftovers=await observe_leftovers(goes, reader))


async def _observe_held(name: str, reader: Reader) -> NamespaceSeen:
    namespace = await reader.get(NAMESPACE, name)
    if SUBJECTS_FINALIZER not in finalizers_of(namespace):
        return NamespaceSeen(namespace)
    bindings = await shared_bindings(reader, marked=False)
    named = any(subject.namespace == name for binding in bindings for subject in subjects_of(binding))
    if namespace is None or is_terminating(namespace) or named:
        return NamespaceSeen(namespace, named=named)
    paas, config = await asyncio.gather(read_paas(labels_of(namespace).get(MANAGED_BY_PAAS, ""), reader), active_config(reader))
    if paas is None or not held_by(paas, namespace):
        return NamespaceSeen(namespace)
    wanted = config is None or (in_cluster(config) and any(each.subject.namespace == name for each in grants_of(paas, config)))
    return NamespaceSeen(namespace, wanted)
