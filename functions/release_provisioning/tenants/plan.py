"""Source and Kustomization of a Tenant: what is observed, what is written, and what people are told (2.7).  Pure.

Both are in the first namespace that the Tenant names, once its account has rights there.  A Kustomization that goes takes what it
delivered with it, by its own finalizer; the source goes after it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from release_provisioning.tenants.descriptor import TENANT_DELIVERIES
from tenantry.model.flux.names import LEAVING, TENANT
from tenantry.model.flux.onboarding import GIT_REPOSITORY, KUSTOMIZATION, git_ref, git_repository
from tenantry.model.flux.onboarding import kustomization as kustomization_object
from tenantry.model.flux.tenant import DELIVERY_FINALIZER, DeclaredTenant, TenantProblem, is_kept_for, is_made_for
from tenantry.model.flux.tenant import DELIVERY_MANAGER as MANAGER
from tenantry.model.flux.tenant_status import DELIVERY_PART, given_up_part, refused, told_part
from tenantry.model.kinds import Key, Kind, Object, annotations_of, is_terminating, key_of, object_of
from tenantry.model.plan import NOTHING, Apply, Delete, Edit, Plan, Refusal, RemoveFinalizers, Write, plan_of
from tenantry.model.pointer import pointer
from tenantry.model.refusals import fixes

FIXES = fixes(TENANT_DELIVERIES, invalid="correct what the Tenant says for it")
_KINDS: dict[str, Kind] = {each.kind: each for each in (GIT_REPOSITORY, KUSTOMIZATION)}
_MARK = pointer("metadata", "annotations", LEAVING)
INTERVAL, DELIVERY_INTERVAL, PATH = "1m", "10m", "./"
"""What the schema fills in where a Tenant says nothing."""


@dataclass(frozen=True, slots=True)
class TenantDelivery:
    """One Tenant as it is; without ``tenant`` what one of this name has left.

    ``served`` says whether Flux is there.  ``made`` are its GitRepositories and Kustomizations, by key: those with its label, and
    those of the name that is wanted.  ``bound`` says whether the account has rights in the first namespace.
    """

    name: str
    tenant: DeclaredTenant | None = None
    served: bool = True
    made: dict[Key, Object] = field(default_factory=dict)
    bound: bool = False


def binds(binding: Object | None, tenant: DeclaredTenant) -> bool:
    """Whether a RoleBinding of the Tenant gives its account rights: until it names another account the old one delivers."""
    subjects = (binding or {}).get("subjects") or ()
    return is_made_for(binding, tenant.name) and any(each.get("name") == tenant.account for each in subjects)


def wanted_of(tenant: DeclaredTenant) -> list[Object]:
    """Source and Kustomization as declared; nothing of a Tenant that has no source."""
    if tenant.source is None or tenant.deleted:
        return []
    source, delivery = tenant.source, tenant.kustomization or {}
    ref = git_ref(branch=source.get("branch", ""), tag=source.get("tag", ""), semver=source.get("semver", ""))
    place, labels = tenant.namespaces[0], tenant.labels
    return [
        git_repository(
            tenant.name,
            place,
            url=source["url"],
            ref=ref,
            interval=source.get("interval") or INTERVAL,
            secret=(source.get("secretRef") or {}).get("name", ""),
            labels=labels,
        ),
        kustomization_object(
            tenant.name,
            place,
            source={"kind": GIT_REPOSITORY.kind, "name": tenant.name},
            path=delivery.get("path") or PATH,
            prune=delivery.get("prune", True),
            interval=delivery.get("interval") or DELIVERY_INTERVAL,
            account=tenant.account,
            labels=labels,
        ),
    ]


def is_in_the_way(tenant: DeclaredTenant, live: Object | None) -> bool:
    """Whether an object of a wanted name is somebody else's, and is not to be taken over."""
    return live is not None and not is_made_for(live, tenant.name) and not tenant.adopts


def plan_delivery(seen: TenantDelivery) -> Plan:
    """Both objects as declared; of those that are not wanted the Kustomization first, then the source, the finalizer last."""
    tenant = seen.tenant
    wanted = wanted_of(tenant) if tenant is not None else []
    left = list(_left(seen, frozenset(map(key_of, wanted))))
    waits = any(each["kind"] == KUSTOMIZATION.kind for each in _unwanted(seen, frozenset(map(key_of, wanted))))
    if tenant is None:
        return plan_of(*left)
    if tenant.deleted or not wanted:
        done = DELIVERY_FINALIZER in tenant.finalizers and not waits and not any(isinstance(each, Edit) for each in left)
        last = (RemoveFinalizers(TENANT, tenant.live, (DELIVERY_FINALIZER,)),) if done else ()
        return Plan((tuple(left), last)) if left or last else NOTHING
    lives = {key_of(each): seen.made.get(key_of(each)) for each in wanted}
    if not seen.bound or not seen.served or any(is_in_the_way(tenant, each) for each in lives.values()):
        return plan_of(*left)
    finalizer = object_of(TENANT, {"name": tenant.name, "finalizers": [DELIVERY_FINALIZER]})
    made = tuple(
        (Apply(_KINDS[each["kind"]], each, lives[key_of(each)], create_only=True, manager=MANAGER),)
        for each in wanted
        if not is_terminating(lives[key_of(each)])
    )
    source = lives[key_of(wanted[0])]
    stays = (_unmarked(source),) if source is not None and _is_marked_by_us(source, tenant) else ()
    return Plan(((Apply(TENANT, finalizer, tenant.live, manager=MANAGER),), stays, *made, tuple(left)))


def is_leaving(source: Object) -> bool:
    """Whether a source has the mark that it gets before it is deleted."""
    return LEAVING in annotations_of(source)


def _is_marked_by_us(source: Object, tenant: DeclaredTenant) -> bool:
    return is_leaving(source) and is_made_for(source, tenant.name) and not is_terminating(source)


def _marked(source: Object) -> Edit:
    steps: list[Mapping[str, Any]] = [{"op": "add", "path": _MARK, "value": "true"}]
    if not annotations_of(source):
        steps.insert(0, {"op": "add", "path": "/metadata/annotations", "value": {}})
    return Edit(GIT_REPOSITORY, source, tuple(steps))


def _unmarked(source: Object) -> Edit:
    return Edit(GIT_REPOSITORY, source, ({"op": "remove", "path": _MARK},))


def doubtful(_: TenantDelivery, plan: Plan) -> frozenset[Hashable]:
    """What goes, each object as it was seen, and what is made: for a Tenant that is gone by now it would only go again."""
    return plan.taken_away() | plan.deleted_uids() | {("made", key) for key in plan.created()}


def _unwanted(seen: TenantDelivery, wanted: frozenset[Key]) -> list[Object]:
    return [live for key, live in sorted(seen.made.items()) if key not in wanted and is_kept_for(live, seen.name, MANAGER)]


def _left(seen: TenantDelivery, wanted: frozenset[Key]) -> Iterator[Write]:
    """Kustomizations that go; sources in namespaces in which none of them is left, marked before they are deleted.

    While the deletion is on its way another process may find the source in place and deliver from it again: it takes the mark
    off, and the deletion is of a state that is no more.
    """
    unwanted = _unwanted(seen, wanted)
    going = {each["metadata"]["namespace"] for each in unwanted if each["kind"] == KUSTOMIZATION.kind}
    for each in unwanted:
        if is_terminating(each):
            continue
        if each["kind"] == KUSTOMIZATION.kind:
            yield Delete(KUSTOMIZATION, each)
        elif each["metadata"]["namespace"] not in going:
            yield Delete(GIT_REPOSITORY, each) if is_leaving(each) else _marked(each)


def report_delivery(seen: TenantDelivery, refusals: Sequence[Refusal]) -> Plan:
    """Whether source and Kustomization are there."""
    tenant = seen.tenant
    if tenant is None or (tenant.deleted and not refusals):
        return NOTHING
    found = refused(tenant, DELIVERY_PART, refusals, FIXES)
    wanted = wanted_of(tenant)
    if not wanted and not found and DELIVERY_FINALIZER not in tenant.finalizers:
        return plan_of(*given_up_part(tenant, DELIVERY_PART, manager=MANAGER))
    if wanted and not seen.served:
        found.append(
            TenantProblem("FluxMissing", "GitRepositories and Kustomizations are not served: have an administrator install Flux")
        )
    for each in wanted:
        if is_in_the_way(tenant, seen.made.get(key_of(each))):
            text = f"{key_of(each)} is there and was not made for this tenant: delete it, or set adoptNamespaces"
            found.append(TenantProblem("ObjectConflict", text))
    unwanted = [str(key_of(each)) for each in _unwanted(seen, frozenset(map(key_of, wanted)))]
    waits = f"waits for {unwanted[0]} to go" if unwanted else ""
    if wanted and not seen.bound:
        waits = f"waits for rights of account {tenant.account} in {tenant.namespaces[0]}"
    done = f"{tenant.source['url']} is delivered into {tenant.namespaces[0]}" if tenant.source else "nothing is delivered"
    return plan_of(told_part(tenant, DELIVERY_PART, found, manager=MANAGER, done=done, waits=waits))
