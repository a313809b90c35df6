"""Reads for scopes: a template with its ClusterRoles, an instance with its bindings, or one namespace's part of it.

Everything that a decision is based on and that somebody may change meanwhile is an input of the run: the specs, the owner of a
ClusterRole, which namespaces are meant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from dataclasses import replace

from scope_binding.scopes.declared import Reach, changed_selector, reach_of, roles_of, template_name_of
from scope_binding.scopes.names import GENERATE_NAME, INSTANCE_UID, TEMPLATE_UID, Family, as_label, binding_name, is_of, was_of
from scope_binding.scopes.plan import refusable, servable_roles
from scope_binding.scopes.seen import InstanceSeen, TemplateSeen, alive, is_well
from tenantry.api.errors import AlreadyExists, NamespaceNotFound, RefusedError
from tenantry.engine.leftovers import observe_leftovers
from tenantry.engine.reader import Reader
from tenantry.engine.reads import by_name, joined
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE_BINDING,
    Kind,
    Object,
    is_terminating,
    key_of,
    labels_of,
)

FEW = 16
"""Up to so many objects are read one by one; for more a list is cheaper."""


def _version(obj: Object | None) -> Hashable:
    """What of a declaration decides: which one it is, its spec, and whether its deletion was asked for."""
    return obj is not None and (obj["metadata"]["uid"], obj["metadata"].get("generation", 0), is_terminating(obj))


async def observe_template(family: Family, name: str, reader: Reader) -> TemplateSeen:
    """Read a template, whether an instance names it, and its ClusterRoles."""
    template = await reader.get(family.template, name, verify=_version)
    living = alive(template)
    if living is None:
        left = await _left_roles(family, name, reader)
        return TemplateSeen(family, template, left=left, leftovers=await observe_leftovers(left, reader))
    roles = roles_of(living)
    referenced, found, made = await asyncio.gather(
        _is_referenced(family, name, reader),
        by_name(CLUSTER_ROLE, (role.name for role in roles if not role.problem), reader),
        _made_roles(family, living, reader),
    )
    reader.depends_on(lambda fresh: _is_referenced(family, name, fresh), referenced)
    names = {role.name for role in roles}
    left = tuple(role for role in made if role["metadata"]["name"] not in names)
    stale = [*left, *(() if referenced else (role for role in found.values() if role and is_of(role, living, TEMPLATE_UID)))]
    return TemplateSeen(family, template, referenced, found, left, await _bound(stale, reader))


async def _is_referenced(family: Family, name: str, reader: Reader) -> bool:
    instances = await reader.list_shared(family.instance)
    return any(template_name_of(instance) == name and not is_terminating(instance) for instance in instances)


async def _made_roles(family: Family, template: Object, reader: Reader) -> list[Object]:
    """The ClusterRoles of this template, and of those before it that had its name."""
    name = template["metadata"]["name"]
    ours, named = await asyncio.gather(
        reader.list(CLUSTER_ROLE, labels={TEMPLATE_UID: template["metadata"]["uid"]}),
        reader.list(CLUSTER_ROLE, labels={family.template_label: as_label(name), TEMPLATE_UID: ""}),
    )
    found = {role["metadata"]["name"]: role for role in ours}
    found |= {role["metadata"]["name"]: role for role in named if was_of(role, family.template, name)}
    return [role for role in found.values() if not is_terminating(role)]


async def _left_roles(family: Family, name: str, reader: Reader) -> tuple[Object, ...]:
    """The ClusterRoles of a deleted template, those of the Oria operator included."""
    made = await reader.list_shared(CLUSTER_ROLE, labels={TEMPLATE_UID: ""})
    return tuple(role for role in made if was_of(role, family.template, name) and not is_terminating(role))


async def _bound(roles: Iterable[Object], reader: Reader) -> frozenset[str]:
    """The names of those of these ClusterRoles to which a binding of an instance leads."""
    wanted = {role["metadata"]["name"]: labels_of(role).get(GENERATE_NAME, "") for role in roles}
    bindings = await joined(
        reader.list(kind, labels={GENERATE_NAME: label, INSTANCE_UID: ""})
        for label in set(wanted.values()) - {""}
        for kind in (ROLE_BINDING, CLUSTER_ROLE_BINDING)
    )
    return frozenset(binding["roleRef"]["name"] for binding in bindings) & frozenset(wanted)


# -- instances ---------------------------------------------------------------------------------------------


async def observe_instance(family: Family, name: str, part: str, reader: Reader) -> InstanceSeen:
    """Read an instance and its bindings; with ``part`` what concerns that namespace."""
    instance = await reader.get(family.instance, name, verify=_version)
    living = alive(instance)
    if living is None:
        bindings = await _left_bindings(family, name, part, reader)
        leftovers = await observe_leftovers(bindings, reader)
        return InstanceSeen(family, instance, bindings=bindings, part=part, leftovers=leftovers)
    found, bindings = await asyncio.gather(_template(family, living, reader), _bindings(family, living, part, reader))
    template, reach = alive(found), reach_of(living)
    if template is None:
        return InstanceSeen(family, instance, found, bindings=bindings, part=part)
    names = (role.name for role in roles_of(template) if role.name)
    roles, (namespaces, missing, terminating) = await asyncio.gather(
        by_name(CLUSTER_ROLE, names, reader, verify=lambda role: role is not None and is_of(role, template, TEMPLATE_UID)),
        _namespaces(reach, part, reader),
    )
    seen = InstanceSeen(family, instance, template, roles, namespaces, missing, terminating, bindings, part)
    seen = replace(seen, bindings=await _complete(seen, living, template, reach, reader))
    return replace(seen, refusing=await _refusing(seen, reader), released=await _released(seen, living, reader))


async def _released(seen: InstanceSeen, instance: Object, reader: Reader) -> frozenset[str]:
    """The namespaces with bindings that the selector matched until it was changed, and that are not meant any more."""
    earlier = changed_selector(instance)
    places = {binding["metadata"].get("namespace", "") for binding in seen.bindings}
    places -= {"", *seen.namespaces, *seen.missing, *seen.terminating}
    if earlier is None or not places:
        return frozenset()
    read: Iterable[Object | None]
    if len(places) <= FEW:
        read = (await by_name(NAMESPACE, places, reader)).values()
    else:
        read = await reader.list(NAMESPACE, labels=earlier.equalities)
    living = {each["metadata"]["name"]: each for each in read if each is not None and not is_terminating(each)}
    return frozenset(name for name in places & set(living) if earlier.matches(labels_of(living[name])))


async def _refusing(seen: InstanceSeen, reader: Reader) -> frozenset[str]:
    """The namespaces that would refuse their bindings now, of those that did."""

    async def refuses(body: Object) -> bool:
        try:
            await reader.try_create(ROLE_BINDING, body)
        except AlreadyExists:
            return False
        except (RefusedError, NamespaceNotFound):
            return True
        return False

    bodies = refusable(seen)
    refused = await asyncio.gather(*(refuses(body) for body in bodies))
    return frozenset(body["metadata"]["namespace"] for body, no in zip(bodies, refused, strict=True) if no)


async def _template(family: Family, instance: Object, reader: Reader) -> Object | None:
    name = template_name_of(instance)
    return await reader.get(family.template, name, verify=_version) if name else None


async def _bindings(family: Family, instance: Object, part: str, reader: Reader) -> tuple[Object, ...]:
    """The bindings that carry an instance's name, those of instances before it included.

    Those that carry only its uid, as the Oria operator leaves them, and those whose uid somebody took off, are looked for
    where they can be new to us: by a sweep, in one namespace, and while the instance does not say that all is well.
    """
    uid, name = instance["metadata"]["uid"], instance["metadata"]["name"]
    kinds = [ROLE_BINDING] if part else [ROLE_BINDING, CLUSTER_ROLE_BINDING]
    named = {family.instance_label: as_label(name)}
    asked = [{**named, INSTANCE_UID: ""}]
    if part or not reader.causes or not is_well(instance):
        asked = [{**named, GENERATE_NAME: ""}, {INSTANCE_UID: uid}]
    found = await joined(reader.list(kind, part, labels=labels) for kind in kinds for labels in asked)
    return tuple(
        binding
        for binding in {key_of(binding): binding for binding in found}.values()
        if is_of(binding, instance, INSTANCE_UID)
        or (INSTANCE_UID in labels_of(binding) and was_of(binding, family.instance, name))
    )


async def _left_bindings(family: Family, name: str, part: str, reader: Reader) -> tuple[Object, ...]:
    """The bindings of a deleted instance.  A sweep also finds those of the Oria operator, which lack its name."""
    kinds: list[Kind] = [ROLE_BINDING] if part else [ROLE_BINDING, CLUSTER_ROLE_BINDING]
    labels = {**({family.instance_label: as_label(name)} if reader.causes else {}), INSTANCE_UID: ""}
    found = await joined(reader.list(kind, part, labels=labels) for kind in kinds)
    return tuple(binding for binding in found if was_of(binding, family.instance, name))


async def _namespaces(reach: Reach, part: str, reader: Reader) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Namespaces that are meant and take bindings, that are listed and missing, and that are listed and being deleted."""
    if reach.cluster or reach.problem:
        return frozenset(), frozenset(), frozenset()
    found = await _existing_namespaces(reach, part, reader)
    reader.depends_on(lambda fresh: _existing_namespaces(reach, part, fresh), found)
    listed = reach.listed & {part} if part else reach.listed
    terminating = frozenset(name for name, is_deleted in found if is_deleted)
    known = frozenset(name for name, _ in found)
    return known - terminating, listed - known, listed & terminating


async def _existing_namespaces(reach: Reach, part: str, reader: Reader) -> frozenset[tuple[str, bool]]:
    """The namespaces that are meant and exist, each with whether it is being deleted."""
    read: Iterable[Object | None]
    if part or (reach.selector is None and len(reach.listed) <= FEW):
        read = (await by_name(NAMESPACE, [part] if part else reach.listed, reader)).values()
    elif reach.selector is not None and not reach.listed:
        read = await reader.list(NAMESPACE, labels=reach.selector.equalities)
    else:
        read = await reader.list(NAMESPACE)
    return frozenset(
        (found["metadata"]["name"], is_terminating(found))
        for found in read
        if found is not None and reach.covers(found["metadata"]["name"], labels_of(found))
    )


async def _complete(seen: InstanceSeen, instance: Object, template: Object, reach: Reach, reader: Reader) -> tuple[Object, ...]:
    """The bindings with those that have the right name but lost their label; a whole new instance has none."""
    uid = instance["metadata"]["uid"]
    namespaces = [""] if reach.cluster and not seen.part else sorted(seen.namespaces)
    known = {(binding["metadata"].get("namespace", ""), binding["metadata"]["name"]) for binding in seen.bindings}
    unseen = [
        place
        for role in servable_roles(template, seen.cluster_roles, cluster=reach.cluster)
        for namespace in namespaces
        if (place := (namespace, binding_name(uid, role.generate_name, namespace))) not in known
    ]
    if len(unseen) > FEW:
        return seen.bindings
    kinds = [(ROLE_BINDING if namespace else CLUSTER_ROLE_BINDING, name, namespace) for namespace, name in unseen]
    found = await asyncio.gather(*(reader.get(kind, name, namespace) for kind, name, namespace in kinds))
    return (*seen.bindings, *(binding for binding in found if binding is not None))
