"""Where the bindings of Paas' service accounts come from."""

from __future__ import annotations

from scope_binding.paas.seen import PERMISSIONS, AccountGrant, grants_of, in_cluster, is_local, is_shared
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, NAMESPACE, ROLE_BINDING, Object, key_in, key_of
from tenantry.model.origin import Because, Looking, Offer, Origin, all_of, edit
from tenantry.model.paas.config import PaasConfig
from tenantry.model.paas.declared import Paas, paas_of
from tenantry.model.paas.looking import config_in_force, paas_behind
from tenantry.model.paas.names import PAAS, PAAS_CONFIG, PAAS_UID, SHARED
from tenantry.model.rbac import BoundSubject, Question, account_named, allows

KINDS = frozenset({ROLE_BINDING, CLUSTER_ROLE_BINDING})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The capabilities whose permissions name the ClusterRole, and the Paas that have them enabled."""
    role, shared = obj["roleRef"]["name"], obj["kind"] == CLUSTER_ROLE_BINDING.kind
    if not (is_shared(obj) if shared else is_local(obj, role)):
        return None
    proof = f"annotation {SHARED}: {PERMISSIONS}" if shared else f"annotation {PAAS_UID}"
    config = await config_in_force(look)
    because, ends = [], []
    for live in await look.list(PAAS):
        paas = paas_of(live)
        for grant in grants_of(paas, config):
            named = subject is None or (grant.subject.name, grant.subject.namespace) == (subject.name, subject.namespace)
            if grant.role != role or not named or not (shared or grant.subject.namespace == obj["metadata"]["namespace"]):
                continue
            because += _lines(grant, paas, config)
            ends.append(edit(PAAS, paas.name, f"set spec.capabilities.{grant.capability}.{_switch(grant, config)} to false"))
    return Origin(f"role/{role}", proof, tuple(dict.fromkeys(because)), all_of(ends))


def _switch(grant: AccountGrant, config: PaasConfig | None) -> str:
    known = config.capabilities.get(grant.capability) if config is not None else None
    default = known is not None and grant.role in known.default_permissions.get(grant.subject.name, ())
    return "enabled" if default else "extra_permissions"


def _lines(grant: AccountGrant, paas: Paas, config: PaasConfig | None) -> list[Because]:
    switch = _switch(grant, config)
    field = "default_permissions" if switch == "enabled" else "extra_permissions"
    found = [Because(key_of(paas.live), f"spec.capabilities.{grant.capability}.{switch}", "true")]
    if config is not None:
        about, scope = key_in(PAAS_CONFIG, config.name, ""), config.permission_scope
        line = f"spec.capabilities.{grant.capability}.{field}.{grant.subject.name}"
        found += [Because(about, line, grant.role), Because(about, "spec.permissionScope", scope)]
    return found


async def offers(question: Question, look: Looking) -> list[Offer]:
    """For an account in the namespace of a capability: which of its permissions would give it."""
    account, config = account_named(question.user), await config_in_force(look)
    live = await look.get(NAMESPACE, account.namespace) if account is not None else None
    paas = await paas_behind(live, look) if live is not None else None
    if account is None or paas is None or config is None:
        return []
    found = []
    for name, known in config.capabilities.items():
        if f"{paas.name}-{name}" != account.namespace:
            continue
        for role in known.extra_permissions.get(account.name, ()):
            without = name in paas.capabilities and not paas.capabilities[name].extra_permissions
            if without and allows(question, await look.get(CLUSTER_ROLE, role)):
                about = Because(key_of(paas.live), f"spec.capabilities.{name}.extra_permissions", "false")
                fix = edit(PAAS, paas.name, f"set spec.capabilities.{name}.extra_permissions to true")
                found.append(Offer(about, f"ClusterRole {role} would give it, as an extra permission", fix))
        if not found and not in_cluster(config) and question.namespace != account.namespace:
            about = Because(key_in(PAAS_CONFIG, config.name, ""), "spec.permissionScope", config.permission_scope)
            lacks = "permissions of service accounts hold in their own namespace alone"
            found.append(Offer(about, lacks, edit(PAAS_CONFIG, config.name, "spec.permissionScope: Cluster")))
    return found
