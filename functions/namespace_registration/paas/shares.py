"""ResourceQuotas in the namespaces of a Paas, where no quota spans namespaces (2.6).

The sum of the shares is never above the quota: those that shrink are written before those that grow, and nothing grows before the
share of a namespace that leaves is gone.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from namespace_registration.paas.descriptor import MANAGER
from namespace_registration.paas.labels import template_labels
from namespace_registration.paas.seen import PaasSeen
from namespace_registration.paas.wanted import Wanted
from namespace_registration.quotas import number
from tenantry.model.difference import owns
from tenantry.model.kinds import RESOURCE_QUOTA, Object, object_of
from tenantry.model.paas.config import PaasConfig
from tenantry.model.paas.declared import Paas
from tenantry.model.paas.names import QUOTA_NAME
from tenantry.model.paas.ours import is_ours, marked
from tenantry.model.plan import NOTHING, Apply, Edit, Plan
from tenantry.model.pointer import pointer


def plan_shares(seen: PaasSeen, paas: Paas, config: PaasConfig, wanted: Wanted, namespaces: Mapping[str, Plan]) -> list[Plan]:
    """The ResourceQuotas of all namespaces; those in new ones come right after their namespace, and after all that shrinks.

    Args:
        namespaces: the plans of namespaces that are to be made, by name.
    """
    labels = template_labels(config.quota_labels, paas, config).written
    shrinking: list[Apply] = []
    growing: list[Apply | Plan] = []
    added: list[Edit] = []
    for name, hard in sorted(wanted.hard.items()):
        live = seen.shares.get(name)
        write = _share(name, hard, paas, labels, live)
        if name in namespaces:
            growing.append(Plan(((namespaces[name],), (write,))))
            continue
        now = _hard_of(live)
        if live is not None and (others := [each for each in now if each not in hard and not _is_given(live, each)]):
            added.append(_without(live, others))
            now = {resource: amount for resource, amount in now.items() if resource not in others}
        least = {resource: _less(amount, now.get(resource)) for resource, amount in hard.items()}
        if live is not None and least == dict(hard):
            shrinking.append(write)
            continue
        growing.append(write)
        if live is not None and any(number(least[resource]) < number(now[resource]) for resource in least if resource in now):
            shrinking.append(_share(name, {**now, **least}, paas, labels, live))
    if _leaving(seen, paas, wanted):
        growing = []  # in the next attempt, when the shares that leave are gone
    both = Plan((tuple(added), tuple(shrinking), tuple(growing))) if added or shrinking or growing else NOTHING
    return [both, *(each for name, each in namespaces.items() if name not in wanted.hard)]


def _less(one: str, other: str | None) -> str:
    return one if other is None or number(one) <= number(other) else other


def _hard_of(live: Object | None) -> dict[str, str]:
    return dict(((live or {}).get("spec") or {}).get("hard") or {})


def _is_given(live: Object, resource: str) -> bool:
    """Whether a limit was written by us: an apply without it takes it away."""
    return owns(live, MANAGER, "spec", "hard", resource)


def _without(live: Object, resources: Iterable[str]) -> Edit:
    """Take away limits that somebody added (p-151)."""
    return Edit(RESOURCE_QUOTA, live, tuple({"op": "remove", "path": pointer("spec", "hard", each)} for each in resources))


def _leaving(seen: PaasSeen, paas: Paas, wanted: Wanted) -> bool:
    """Whether a share of ours is still in a namespace that leaves: what it has is not for others yet."""
    return any(name not in wanted.stands and is_ours(live, paas.name, paas.uid) for name, live in seen.shares.items())


def _share(name: str, hard: Mapping[str, str], paas: Paas, templated: Mapping[str, str], live: Object | None) -> Apply:
    """One of ours; whatever has its name in a namespace of the Paas becomes it, else a tenant could put his own in its place."""
    labels, annotations = marked(paas.name, paas.uid)
    metadata = {"name": QUOTA_NAME, "namespace": name, "labels": {**templated, **labels}, "annotations": annotations}
    return Apply(RESOURCE_QUOTA, object_of(RESOURCE_QUOTA, metadata, spec={"hard": dict(hard)}), live, manager=MANAGER)
