"""What the workload of Tenants' namespaces and accounts promises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenantry.model.flux.names import ACCOUNT_LABEL, MADE_FOR_TENANT, TENANT, TENANT_LABEL
from tenantry.model.flux.tenant import DELIVERY_FINALIZER, RIGHTS_FINALIZER
from tenantry.model.kinds import (
    EVENT,
    NAMESPACE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Key,
    Object,
    finalizers_of,
    is_terminating,
    labels_of,
)
from tenantry.testing.workload import Workload
from tenantry.testing.world import Moment

from ._tenants import account_of, goes, is_declared, made, of_tenants, owner_of, states, tenants

OURS = {MADE_FOR_TENANT, TENANT_LABEL, ACCOUNT_LABEL}


def gives_to_who_names_it(moment: Moment) -> str:
    """A namespace becomes a Tenant's that names it, and only if nobody else has it; labels of others stay."""
    key, before, after = moment.change.key, moment.change.before, moment.change.after
    if not moment.by or key.kind != NAMESPACE.kind or after is None:
        return ""
    lost = {label for label in labels_of(before) if "/" not in label} - labels_of(after).keys()
    had, has = owner_of(before), owner_of(after)
    if lost or has in ("", had):
        return f"took the labels {sorted(lost)}" if lost else ""
    if had or labels_of(before).get(TENANT_LABEL, has) != has:
        return f"took it from {had or labels_of(before)[TENANT_LABEL]}"
    return "" if any(key.name in each["spec"]["namespaces"] for each in states(moment, has)) else f"gave it to {has}"


def takes_what_is_free(moment: Moment) -> str:
    """Accounts and labels go when they are not declared, no right is left, and the other functions are done with the Tenant."""
    key, before, after = moment.change.key, moment.change.before, moment.change.after
    left = moment.by and key.kind == NAMESPACE.kind and owner_of(before) and not owner_of(after)
    if not left and (goes(moment) is None or key.kind not in (NAMESPACE.kind, SERVICE_ACCOUNT.kind)):
        return ""
    owner = owner_of(before)
    if not owner:
        return "took what is not ours"
    live = moment.objects.get(Key(TENANT.api_version, TENANT.kind, "", owner))
    if is_terminating(live) and {*finalizers_of(live)} & {RIGHTS_FINALIZER, DELIVERY_FINALIZER}:
        return "before the other functions were done with the Tenant"
    where, account = (key.name, "") if key.kind == NAMESPACE.kind else (key.namespace, key.name)
    for place, each in moment.objects.items():
        used = not account or account in [subject["name"] for subject in each.get("subjects") or ()]
        if place.kind == ROLE_BINDING.kind and place.namespace == where and owner_of(each) == owner and used:
            return "while rights are left"
    wanted = [
        where in each["spec"]["namespaces"] and account in ("", account_of(each)) for each in moment.declared(TENANT.kind, owner)
    ]
    return "it is declared" if is_declared(moment, owner) and all(wanted) else ""


def deletes_what_may_go(moment: Moment) -> str:
    """A namespace is deleted only if its Tenant said so."""
    gone = goes(moment)
    if gone is None or moment.change.key.kind != NAMESPACE.kind:
        return ""
    said = [each["spec"].get("deletionPolicy") for each in moment.declared(TENANT.kind, owner_of(gone))]
    return "" if "Delete" in said else "deleted a namespace that stays"


def has_what_is_declared(objects: list[Object]) -> str:
    """In the end each Tenant has the namespaces and accounts that it names, but for those of others, and says which."""
    owners = tenants(objects)
    spaces = {each["metadata"]["name"]: each for each in objects if each["kind"] == NAMESPACE.kind}
    found = {kind: [(of, where) for of, where, _ in made(objects, kind)] for kind in (NAMESPACE.kind, SERVICE_ACCOUNT.kind)}
    wrong = [f"{where} is of {of}, who is gone" for each in found.values() for of, where in each if of not in owners]
    for name, owner in owners.items():
        spec = owner["spec"]
        has = sorted(each for each in spec["namespaces"] if _is_had(name, spec, spaces, each))
        there = {kind: sorted(where for of, where in each if of == name) for kind, each in found.items()}
        there["status"] = (owner.get("status") or {}).get("namespaces") or []
        wanted = {**dict.fromkeys(there, has), **({NAMESPACE.kind: []} if spec.get("skipNamespace") else {})}
        wrong += [f"{name}: {what} {there[what]}, not {wanted[what]}" for what in there if there[what] != wanted[what]]
    return "; ".join(wrong)


def _is_had(name: str, spec: Mapping[str, Any], spaces: Mapping[str, Object], each: str) -> bool:
    if each not in spaces:
        return not spec.get("skipNamespace")
    has = labels_of(spaces[each]).get(TENANT_LABEL)
    return has == name or (has is None and bool(spec.get("skipNamespace") or spec.get("adoptNamespaces")))


def namespaces_of_tenants() -> Workload:
    """A workload of namespace-registration for Tenants, without scenarios."""
    return of_tenants(
        "namespace-registration",
        "namespace-registration",
        safe=[gives_to_who_names_it, takes_what_is_free, deletes_what_may_go],
        ends=[has_what_is_declared],
        destroys=lambda body: body.get("kind") == NAMESPACE.kind and not labels_of(body),
        watched=(NAMESPACE, SERVICE_ACCOUNT, ROLE_BINDING, TENANT, EVENT),
    )
