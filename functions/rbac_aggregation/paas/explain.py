"""Where the RoleBindings and Groups of a Paas come from, and which group of it would give a right."""

from __future__ import annotations

from collections.abc import Iterator

from rbac_aggregation.paas.seen import is_for_accounts
from tenantry.model.kinds import CLUSTER_ROLE, CONFIG_MAP, NAMESPACE, ROLE_BINDING, Object, annotations_of, key_in, key_of
from tenantry.model.origin import Because, Looking, Offer, Origin, all_of, edit, kubectl
from tenantry.model.paas.config import DEFAULT_ROLE, PaasConfig
from tenantry.model.paas.declared import Group, Paas, paas_ns_of
from tenantry.model.paas.groups import cluster_roles, names_of
from tenantry.model.paas.looking import config_in_force, paas_behind
from tenantry.model.paas.names import ASKED_BY, GROUP, PAAS, PAAS_CONFIG, PAAS_NS, PAAS_UID
from tenantry.model.paas.ours import uid_of
from tenantry.model.paas.places import PaasPlace, applying, spec_places
from tenantry.model.rbac import BoundSubject, Question, allows

KINDS = frozenset({ROLE_BINDING, GROUP, CONFIG_MAP})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The groups of a Paas that are in a RoleBinding, the mapping of their roles, and why its namespace has them."""
    if not uid_of(obj) or (obj["kind"] == ROLE_BINDING.kind and is_for_accounts(obj)):
        return None
    paas, proof = await paas_behind(obj, look), f"annotation {PAAS_UID}: {uid_of(obj)}"
    if paas is None:
        return Origin("paas/?", proof, (), ("it goes with the next sweep: its Paas is not there any more",))
    if obj["kind"] == GROUP.kind:
        return _of_group(obj, paas, proof)
    if obj["kind"] == CONFIG_MAP.kind:
        because = (Because(key_of(paas.live), "spec.groups", "the policy of its Argo CD"),)
        return Origin(f"paas/{paas.name}", proof, because, (edit(PAAS, paas.name, "disable capability argocd"),))
    config = await config_in_force(look)
    place = await _place(obj["metadata"]["namespace"], paas, config, look)
    keys = _keys(obj["roleRef"]["name"], subject, paas, config, place)
    lines = [line for key in keys for line in _of_key(key, obj["roleRef"]["name"], paas, config)]
    ends = all_of([_without(key, obj["roleRef"]["name"], paas, config) for key in keys])
    if subject is not None and subject.kind == "User":
        leaves = [edit(PAAS, paas.name, f"take {subject.name} out of spec.groups.{key}.users") for key in keys]
        ends = (*all_of(leaves), *ends)
    if place is not None:
        lines.append(_where(place, paas))
    return Origin(f"paas/{paas.name}", proof, tuple(dict.fromkeys(lines)), ends)


def _of_group(obj: Object, paas: Paas, proof: str) -> Origin:
    keys = [key for key, named in names_of(paas).items() if named.name == obj["metadata"]["name"]]
    because = tuple(Because(key_of(paas.live), f"spec.groups.{key}", ", ".join(paas.groups[key].users)) for key in keys)
    ends = tuple(edit(PAAS, paas.name, f"take {key} out of spec.groups") for key in keys)
    return Origin(f"paas/{paas.name}", proof, because, ends)


def _keys(role: str, subject: BoundSubject | None, paas: Paas, config: PaasConfig | None, place: PaasPlace | None) -> list[str]:
    """The groups through which a ClusterRole is given to a subject, or to anybody."""
    named = names_of(paas)
    return [
        key
        for key, group in paas.groups.items()
        if (place is None or place.groups is None or key in place.groups)
        and (config is None or role in cluster_roles(group, config))
        and (subject is None or subject.name in ((named[key].name,) if subject.kind == "Group" else _users(group)))
    ]


def _users(group: Group) -> tuple[str, ...]:
    """Who is in a group by the Paas; a query makes that the identity provider's."""
    return () if group.query else group.users


def _of_key(key: str, role: str, paas: Paas, config: PaasConfig | None) -> Iterator[Because]:
    group = paas.groups[key]
    who = f"query {group.query}" if group.query else f"users {', '.join(group.users) or 'none'}"
    yield Because(key_of(paas.live), f"spec.groups.{key}", f"{who}; roles {', '.join(group.roles) or DEFAULT_ROLE}")
    for functional in group.roles or (DEFAULT_ROLE,):
        if config is not None and role in config.mapped(functional):
            known = functional if functional in config.role_mappings else DEFAULT_ROLE
            about = key_in(PAAS_CONFIG, config.name, "")
            yield Because(about, f"spec.rolemappings.{known}", ", ".join(config.role_mappings[known]))


def _without(key: str, role: str, paas: Paas, config: PaasConfig | None) -> str:
    """What takes a ClusterRole from a group."""
    group = paas.groups[key]
    giving = [each for each in group.roles if config is not None and role in config.mapped(each)]
    roles = f"{', '.join(giving)} out of spec.groups.{key}.roles" if giving else ""
    stays = bool(giving) and len(giving) < len(group.roles)  # without roles a group has the default
    return edit(PAAS, paas.name, f"take {roles if stays else f'{key} out of spec.groups'}")


def _where(place: PaasPlace, paas: Paas) -> Because:
    if place.origin == "paasns":
        namespace, _, name = place.asked_by.partition("/")
        return Because(key_in(PAAS_NS, name, namespace), "spec.groups", f"namespace {place.name}")
    suffix = place.name.removeprefix(f"{paas.name}-")
    line = f"spec.capabilities.{place.capability}.enabled" if place.capability else f"spec.namespaces.{suffix}"
    return Because(key_of(paas.live), line, f"namespace {place.name}")


async def _place(name: str, paas: Paas, config: PaasConfig | None, look: Looking) -> PaasPlace | None:
    """What a namespace of a Paas is wanted for."""
    spec = spec_places(paas, config)
    if name in spec:
        return spec[name]
    held, asked, here = {}, {}, name
    while here not in held and (live := await look.get(NAMESPACE, here)) is not None:
        held[here] = live
        home, _, named = annotations_of(live).get(ASKED_BY, "").partition("/")
        if not named or (found := await look.get(PAAS_NS, named, home)) is None:
            break
        asked[f"{home}/{named}"] = paas_ns_of(found)
        here = home
    return applying(paas, spec, held[name], asked, held) if name in held else None


async def offers(question: Question, look: Looking) -> list[Offer]:
    """In a namespace of a Paas: the groups that whoever asks is in, and the roles that would give what is asked."""
    live = await look.get(NAMESPACE, question.namespace) if question.namespace else None
    if live is None or (paas := await paas_behind(live, look)) is None:
        return []
    config = await config_in_force(look)
    if config is None:
        fix = "have an administrator make a PaasConfig"
        return [Offer(Because(key_of(paas.live), "spec.groups"), "there is no PaasConfig, so no role is mapped", fix)]
    roles = [each for each in config.role_mappings if await _gives(config.mapped(each), question, look)]
    place = await _place(question.namespace, paas, config, look)
    if not roles:
        about = Because(key_in(PAAS_CONFIG, config.name, ""), "spec.rolemappings", ", ".join(config.role_mappings))
        return [
            Offer(about, "no role of a Paas is mapped to a ClusterRole that allows it", edit(PAAS_CONFIG, config.name, "map one"))
        ]
    found, named = [], names_of(paas)
    for key, group in paas.groups.items():
        if question.user not in _users(group) and named[key].name not in question.groups:
            continue
        about = Because(key_of(paas.live), f"spec.groups.{key}", f"roles {', '.join(group.roles) or DEFAULT_ROLE}")
        if place is not None and place.groups is not None and key not in place.groups:
            where = _where(place, paas)
            home, _, name = place.asked_by.partition("/")
            what = f"add {key} to {where.line}{'' if place.asked_by else '.groups'}"
            fix = edit(PAAS_NS, name, what, home) if name else edit(PAAS, paas.name, what)
            found.append(Offer(where, f"the namespace is restricted to {', '.join(place.groups)}", fix))
        elif not set(roles) & set(group.roles or (DEFAULT_ROLE,)):
            fix = edit(PAAS, paas.name, f"add {roles[0]} to spec.groups.{key}.roles")
            found.append(Offer(about, f"none of its roles gives it; {', '.join(roles)} would", fix))
        elif named[key].name not in question.groups:
            lacks = f"it gives this to members of Group {named[key].name}; whether they are one, their identity provider says"
            found.append(Offer(about, lacks, f"ask again with --group {named[key].name}"))
        else:
            found.append(Offer(about, "it is declared, and not done", kubectl("get", PAAS, paas.name, more="-o yaml")))
    if not found:
        able = [key for key, group in paas.groups.items() if set(roles) & set(group.roles or (DEFAULT_ROLE,))]
        fix = edit(PAAS, paas.name, f"add them to users of a group with role {roles[0]}{f', such as {able[0]}' if able else ''}")
        found.append(Offer(Because(key_of(paas.live), "spec.groups"), "no group of this Paas has them", fix))
    return found


async def _gives(names: tuple[str, ...], question: Question, look: Looking) -> bool:
    for name in names:
        if allows(question, await look.get(CLUSTER_ROLE, name)):
            return True
    return False
