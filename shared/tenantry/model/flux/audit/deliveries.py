"""Deliveries that would have no account, and those that would be held up by their own Namespace (2.3, 2.4, 2.5)."""

from __future__ import annotations

from collections.abc import Iterator

from tenantry.model.flux.audit.seen import AuditedConsumer, AuditFinding, AuditSeen
from tenantry.model.flux.consumers import OPERATOR_GROUP
from tenantry.model.flux.names import ACCOUNT_LABEL, PRUNE
from tenantry.model.flux.policies.accounts import APPLIERS
from tenantry.model.flux.security_profile import FLUX_NAMESPACE, KUSTOMIZE
from tenantry.model.kinds import annotations_of

ACCOUNT_MISSING, PLATFORM_ACCOUNT = "AccountMissing", "PlatformAccountMissing"
OWN_NAMESPACE = "OwnNamespaceInInventory"
_APPLIERS = {(each.group, each.resource): each for each in APPLIERS}


def default_account(consumer: AuditedConsumer, seen: AuditSeen) -> str:
    """The account that an object is applied as under the profile because it names none; empty where that is not so.

    In exempt namespaces policies fill nothing, but the controllers' ``--default-service-account`` holds there, too.
    """
    applier = _APPLIERS.get((consumer.row.group, consumer.row.resource))
    profile = seen.profile
    if applier is None or profile.service_account_mode == "Off" or consumer.spec.get("serviceAccountName"):
        return ""
    if applier.has_kube_config and "kubeConfig" in consumer.spec:
        return ""
    if consumer.namespace in profile.exempt:
        return "" if applier.group == OPERATOR_GROUP else profile.default_service_account
    labels = seen.labels(consumer.namespace) or {}
    pinned = labels.get(ACCOUNT_LABEL, "") if profile.pins_to_tenant else ""
    return pinned or profile.default_service_account


def default_accounts(seen: AuditSeen) -> frozenset[tuple[str, str]]:
    """Namespaces and names of the ServiceAccounts that objects without account would be applied as."""
    found = ((each.namespace, default_account(each, seen)) for each in seen.consumers)
    return frozenset(each for each in found if each[1])


def without_account(seen: AuditSeen) -> Iterator[AuditFinding]:
    """Objects without account whose default does not exist, and Flux' own Kustomization."""
    for each in seen.consumers:
        account = default_account(each, seen)
        if not account:
            continue
        user = f"system:serviceaccount:{each.namespace}:{account}"
        if _is_own_sync(each):
            text = f"spec.serviceAccountName: is empty, so Flux' own delivery would be applied as {user}"
            fix = f"name {KUSTOMIZE}, as part flux of `tenantry profile export` does"
            yield each.finding(PLATFORM_ACCOUNT, text, fix)
        elif (each.namespace, account) not in seen.accounts:
            text = f"spec.serviceAccountName: is empty, so it would be applied as {user}, which does not exist"
            fix = f"make ServiceAccount {account} in namespace {each.namespace} and bind it there, or name another"
            yield each.finding(ACCOUNT_MISSING, text, fix)


def with_own_namespace(seen: AuditSeen) -> Iterator[AuditFinding]:
    """Kustomizations that have their own Namespace in their inventory: their deletion would prune it, which is refused."""
    for each in seen.consumers:
        namespace = seen.namespaces.get(each.namespace)
        if "status" not in each.live or each.namespace in seen.profile.exempt or namespace is None:
            continue
        if annotations_of(namespace).get(PRUNE) != "disabled":
            text = f"status.inventory: has Namespace {each.namespace}, whose pruning would be refused, and with it the deletion"
            fix = f"annotate Namespace {each.namespace} with {PRUNE}: disabled, or take it out of the repository"
            yield each.finding(OWN_NAMESPACE, text, fix)


def _is_own_sync(consumer: AuditedConsumer) -> bool:
    return (consumer.live["kind"], consumer.namespace, consumer.name) == ("Kustomization", FLUX_NAMESPACE, FLUX_NAMESPACE)
