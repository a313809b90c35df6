"""What the workloads of Paas' namespaces and quotas share."""

from __future__ import annotations

from collections.abc import Mapping

from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.followed import stand_in
from tenantry.model.kinds import EVENT, NAMESPACE, Object, annotations_of, finalizers_of, is_terminating, labels_of
from tenantry.model.paas.names import (
    CLUSTER_RESOURCE_QUOTA,
    MANAGED_BY_PAAS,
    OTHERS_FINALIZERS,
    PAAS,
    PAAS_NS,
    PAAS_UID,
    SHARED,
)
from tenantry.testing.workload import Step, Workload, apply, together
from tenantry.testing.world import Moment

from ._paas import P, Spec, X, configure, enabled, of_paas, only_what_is_proven_goes, owner_of, paas, present, uids, worlds

QUOTAS = "namespace-registration-quotas"


def spaces(owner: Object, asked: Mapping[str, Object]) -> set[str]:
    """The namespaces that a Paas wants."""
    name = owner["metadata"]["name"]
    found = {f"{name}-{each}" for each in [*(owner["spec"].get("namespaces") or {}), *enabled(owner)]}
    while more := {f"{name}-{key.partition('/')[2]}" for key in asked if key.partition("/")[0] in found} - found:
        found |= more
    return found


def makes_for_who_asks(moment: Moment) -> str:
    """A namespace is made for a Paas that asks for it, and none that has not its mark is changed."""
    key, before, after = moment.change.key, moment.change.before, moment.change.after
    if not moment.by or key.kind != NAMESPACE.kind or after is None or is_terminating(after):
        return ""
    if before is not None:
        changed = labels_of(before) != labels_of(after) or annotations_of(before) != annotations_of(after)
        return "changed what is not ours" if changed and annotations_of(before).get(PAAS_UID) not in uids(moment) else ""
    for owners, _, asked in worlds(moment):
        owner = owner_of(after, owners)
        if owner is not None and key.name in spaces(owner, asked):
            return ""
    return "made for nobody who asks"


def takes_with_a_reason(moment: Moment) -> str:
    """A namespace goes when its Paas asks for it no more, or is being deleted and the other functions are done with it."""
    key, before, after = moment.change.key, moment.change.before, moment.change.after
    if key.kind != NAMESPACE.kind or before is None or is_terminating(before) or not (after is None or is_terminating(after)):
        return ""
    uid = annotations_of(before).get(PAAS_UID)
    if uid is None:
        return ""  # a hand: the function is judged by what it proves
    owner = next((each for each in moment.objects.values() if each["metadata"]["uid"] == uid), None)
    if owner is not None and is_terminating(owner) and set(finalizers_of(owner)) & {*OTHERS_FINALIZERS}:
        return "before the other functions were done with the Paas"
    wanted = [
        (found := owner_of(before, owners)) is not None and key.name in spaces(found, asked)
        for owners, _, asked in worlds(moment)
    ]
    return "it is declared" if wanted and all(wanted) else ""


def holds_what_is_declared(objects: list[Object]) -> str:
    """In the end each Paas has the namespaces that it wants, but for those that another has, and no more; so with quotas."""
    owners, config, asked = present(objects)
    has = {each["metadata"]["name"]: owner_of(each, owners) for each in objects if each["kind"] == NAMESPACE.kind}
    wanted = {(name, owner["metadata"]["name"]) for owner in owners.values() for name in spaces(owner, asked)}
    wrong = [
        f"{name} is of {owner['metadata']['name']}"
        for name, owner in has.items()
        if owner and (name, owner["metadata"]["name"]) not in wanted
    ]
    foreign = {
        each["metadata"]["name"] for each in objects if each["kind"] == NAMESPACE.kind and PAAS_UID not in annotations_of(each)
    }
    wrong += [f"{owner} has no {name}" for name, owner in sorted(wanted) if has.get(name) is None and name not in foreign]
    quotas = {each["metadata"]["name"]: each for each in objects if each["kind"] == CLUSTER_RESOURCE_QUOTA.kind}
    made = {name for name, each in quotas.items() if PAAS_UID in annotations_of(each) or SHARED in annotations_of(each)}
    limits = {name for name, owner in owners.items() if owner["spec"].get("quota")}
    for owner in owners.values():
        for name in enabled(owner):
            known = ((config.get("capabilities") or {}).get(name) or {}).get("quotas") or {}
            limits |= {f"paas-{name}" if known.get("clusterwide") else f"{owner['metadata']['name']}-{name}"} if known else set()
    return "; ".join([*wrong, *(f"quotas {sorted(made)}, not {sorted(limits)}" for _ in "1" if made != limits)])


ON, OFF, CPU = {"enabled": True}, {"enabled": False}, "limits.cpu"
OWN = {"quotas": {"defaults": {CPU: "8"}}}
WIDE = {"quotas": {"clusterwide": True, "ratio": 0.5, "min": {CPU: "1"}, "max": {CPU: "10"}, "defaults": {CPU: "2"}}}
CONFIGURED = configure(capabilities={"c-@": OWN, "k-@": WIDE})


def one(*names: str, c: Spec = ON, k: Spec = OFF, **more: object) -> Step:
    """The first Paas, with namespaces and capabilities."""
    return paas(P, namespaces={name: {} for name in names}, capabilities={"c-@": c, "k-@": k}, quota={CPU: "40"}, **more)  # type: ignore[arg-type]


def two(*names: str, k: Spec = ON) -> Step:
    """The other Paas."""
    return paas(X, namespaces={name: {} for name in names}, capabilities={"k-@": k}, quota={CPU: "4"})


LABELLED = apply("Namespace", "p-@-foreign", labels={MANAGED_BY_PAAS: P})
"""A namespace that has the label and a name that fits, and is nobody's."""
QUOTA = {"quota": {"hard": {CPU: "1"}}, "selector": {"labels": {"matchLabels": {"clusterquotagroup": "p-@-z"}}}}
THEIRS = apply("ClusterResourceQuota", "p-@-z", labels={MANAGED_BY_PAAS: P}, spec=QUOTA)
BEGIN = together(CONFIGURED, LABELLED, THEIRS)
READY = [BEGIN, together(one("a"), two("b"))]


def namespaces_of_paas() -> Workload:
    """A workload of namespace-registration for Paas, without scenarios."""
    return of_paas(
        "namespace-registration",
        "namespace-registration",
        {},
        safe=[makes_for_who_asks, takes_with_a_reason, only_what_is_proven_goes],
        ends=[holds_what_is_declared],
        installed=[stand_in(CLUSTER_RESOURCE_QUOTA)],
        sources=[
            each
            for each in documents(deployment_folder("knative") / "openshift" / "source.yaml")
            if each["metadata"]["name"] == QUOTAS
        ],
        watched=(NAMESPACE, PAAS, PAAS_NS, CLUSTER_RESOURCE_QUOTA, EVENT),
    )


def ask(name: str, where: str) -> Step:
    """A step that declares a PaasNS."""
    return apply("PaasNS", name, where, spec={})
