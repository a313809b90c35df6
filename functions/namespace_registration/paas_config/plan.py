"""Plans for PaasConfigs and shared quotas.

Sources of the rules: 2.6 (p-30 to p-33, p-36, p-66 to p-68), 2.10 (upstream's finalizer), 2.12 (what is ours).
"""

from __future__ import annotations

from namespace_registration.paas_config.seen import (
    MANAGER,
    SHARED_QUOTA,
    UPSTREAM_FINALIZER,
    ConfigSeen,
    QuotaSeen,
    quota_name,
)
from tenantry.model.kinds import Object, is_terminating, object_of
from tenantry.model.limits import few
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, PAAS_CONFIG, SHARED
from tenantry.model.plan import NOTHING, Apply, Delete, KubernetesEvent, Plan, RemoveFinalizers, plan_of


def plan_config(seen: ConfigSeen) -> Plan:
    """Nothing but the removal of upstream's finalizer from a PaasConfig that is being deleted."""
    if seen.live is None or seen.foreign or not is_terminating(seen.live):
        return NOTHING
    note = f"the finalizer {UPSTREAM_FINALIZER} of opr-paas was taken off, so that this PaasConfig can go"
    event = KubernetesEvent(seen.live, "FinalizerTakenOff", note, "Release")
    return plan_of(RemoveFinalizers(PAAS_CONFIG, seen.live, (UPSTREAM_FINALIZER,), event))


def plan_quota(seen: QuotaSeen) -> Plan:
    """The quota of a clusterwide capability, from the values of all Paas; deleted when none has it; a foreign one stays."""
    amounts, live = seen.amounts, seen.live
    if not seen.served or amounts is None or is_terminating(live) or (live is not None and not seen.ours):
        return NOTHING
    if not amounts:
        return NOTHING if live is None else plan_of(Delete(CLUSTER_RESOURCE_QUOTA, live, _deleted(seen)))
    return plan_of(_quota(seen, dict(amounts)))


def _quota(seen: QuotaSeen, amounts: dict[str, str]) -> Apply:
    assert seen.config is not None
    name = quota_name(seen.capability)
    spec = {
        "quota": {"hard": amounts},
        "selector": {"labels": {"matchLabels": {seen.config.quota_label: name}}},
    }
    wanted = object_of(CLUSTER_RESOURCE_QUOTA, {"name": name, "annotations": {SHARED: SHARED_QUOTA}}, spec=spec)
    shown = few([f"{resource} {amount}" for resource, amount in sorted(amounts.items())])
    note = f"ClusterResourceQuota {name}, which all Paas with capability {seen.capability} share, has {shown}"
    event = KubernetesEvent(_about(seen), "SharedQuota", note, "Share")
    return Apply(CLUSTER_RESOURCE_QUOTA, wanted, seen.live, create_only=True, event=event, manager=MANAGER)


def _deleted(seen: QuotaSeen) -> KubernetesEvent:
    note = f"ClusterResourceQuota {quota_name(seen.capability)} was deleted: no Paas has a quota of capability {seen.capability}"
    return KubernetesEvent(_about(seen), "SharedQuota", note, "Share")


def _about(seen: QuotaSeen) -> Object:
    """Whom it is told to: the administrators of the configuration, or else whoever looks at the quota."""
    found = seen.config_live or seen.live
    assert found is not None
    return found
