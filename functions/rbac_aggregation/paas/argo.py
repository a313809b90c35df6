"""The policy of a Paas' Argo CD (2.8): the administrators' header, then a line for each group of the Paas.

Only these fields are ours.  Where others have set one of them to something else before we wrote any, nothing is taken (p-143):
what we wrote is told from that by the field manager, and is put back when somebody changes it by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rbac_aggregation.paas.seen import MANAGER, Policy, Seen
from tenantry.model.difference import entries_of
from tenantry.model.kinds import CONFIG_MAP, Object, is_terminating, name_metadata, object_of
from tenantry.model.paas.config import ArgoPermissions
from tenantry.model.paas.declared import Paas
from tenantry.model.paas.names import ARGO_CAPABILITY, ARGO_CD, ARGO_POLICY, MANAGED_BY_PAAS, namespace_name
from tenantry.model.plan import Apply

SCOPES = "[groups]"
_BREAKING = frozenset(',"\r\n\v\f\x85\u2028\u2029')
"""What would add a column or a line to a policy."""


def argo_namespace(paas: Paas) -> str:
    """The namespace of the capability."""
    return namespace_name(paas.name, ARGO_CAPABILITY)


def has_argo(paas: Paas) -> bool:
    """Whether the Paas has an Argo CD."""
    return not paas.deleted and ARGO_CAPABILITY in paas.enabled


def unfit_names(seen: Seen) -> list[str]:
    """The groups that are left out of the policy, because their names would add to it (p-144)."""
    return sorted(each.name for each in seen.claims.values() if each.problem is None and _BREAKING & set(each.name))


def policy_text(seen: Seen, permissions: ArgoPermissions) -> str:
    """``policy.csv``: what administrators hand to others, then the groups of the Paas, sorted by name (p-14)."""
    names = {each.name for each in seen.claims.values() if each.problem is None} - set(unfit_names(seen))
    header = permissions.header.strip()
    lines = [f"g, {name}, role:{permissions.role}" for name in sorted(names)]
    return "\n".join([*([header] if header else []), *lines])


def policy_name(seen: Seen) -> str:
    """The object that has it."""
    permissions = seen.config.argo_permissions if seen.config is not None else None
    if seen.policy is not None and seen.policy.operated:
        return permissions.resource_name if permissions is not None else ""
    return ARGO_POLICY


def plan_policy(seen: Seen, paas: Paas) -> list[Apply]:
    """The policy as configured, or what we wrote given up; without a PaasConfig it stays as it is."""
    policy = seen.policy
    if policy is None or is_terminating(policy.live) or conflicting_fields(seen, paas):
        return []
    kind = ARGO_CD if policy.operated else CONFIG_MAP
    wanted = _wanted(seen, policy, paas)
    if wanted is None:
        if policy.live is None or not entries_of(policy.live, MANAGER) or (seen.config is None and not paas.deleted):
            return []
        return [Apply(kind, object_of(kind, name_metadata(policy.live)), policy.live, manager=MANAGER)]
    metadata = {"name": policy_name(seen), "namespace": policy.namespace, "labels": {MANAGED_BY_PAAS: paas.name}}
    return [Apply(kind, object_of(kind, metadata, **wanted), policy.live, create_only=True, manager=MANAGER)]


def conflicting_fields(seen: Seen, paas: Paas) -> list[str]:
    """The fields that others have set to something else, where we never wrote any."""
    policy = seen.policy
    wanted = _wanted(seen, policy, paas) if policy is not None else None
    if policy is None or policy.live is None or wanted is None or entries_of(policy.live, MANAGER):
        return []
    there = _fields(policy.live, operated=policy.operated)
    return sorted(name for name, value in _fields(wanted, operated=policy.operated).items() if there.get(name, value) != value)


def _wanted(seen: Seen, policy: Policy, paas: Paas) -> dict[str, Any] | None:
    permissions = seen.config.argo_permissions if seen.config is not None else None
    if permissions is None or not has_argo(paas) or policy.namespace not in seen.places or not policy_name(seen):
        return None
    text = policy_text(seen, permissions)
    if policy.operated:
        return {"spec": {"rbac": {"policy": text, "defaultPolicy": permissions.default_policy, "scopes": SCOPES}}}
    return {"data": {"policy.csv": text, "policy.default": permissions.default_policy, "scopes": SCOPES}}


def _fields(obj: Mapping[str, Any] | Object, *, operated: bool) -> Mapping[str, Any]:
    found = (obj.get("spec") or {}).get("rbac") if operated else obj.get("data")
    return found if isinstance(found, Mapping) else {}
