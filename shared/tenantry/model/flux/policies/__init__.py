"""The admission policies of Flux tenancy, generated from the table of consumers, a profile, and what is served (3.3 to 3.6)."""

from __future__ import annotations

from collections.abc import Iterator

from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT
from tenantry.model.flux.policies.accounts import APPLIERS, account_policies
from tenantry.model.flux.policies.charts import chart_policies
from tenantry.model.flux.policies.guards import guard_policies
from tenantry.model.flux.policies.parts import AdmissionPolicy
from tenantry.model.flux.policies.references import lock_guard, quarantine, reference_policy
from tenantry.model.flux.policies.rights import rights
from tenantry.model.flux.policies.served import Served
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import (
    ADMISSION_MUTATION,
    ADMISSION_MUTATION_BINDING,
    ADMISSION_POLICY,
    ADMISSION_POLICY_BINDING,
    Object,
    object_of,
)

__all__ = ["GENERATED", "Served", "documents", "manifests", "policies"]

GENERATED = (ADMISSION_MUTATION_BINDING, ADMISSION_POLICY_BINDING, ADMISSION_MUTATION, ADMISSION_POLICY)
"""The kinds that are generated for a profile, in the order in which they are taken away."""
_ORDER = (ADMISSION_POLICY, ADMISSION_MUTATION, ADMISSION_POLICY_BINDING, ADMISSION_MUTATION_BINDING)


def policies(profile: Profile, served: Served) -> list[AdmissionPolicy]:
    """What a profile asks for, of the kinds that are served; nothing for a single tenant."""
    return list(_policies(profile, served)) if profile.is_multi_tenant else []


def documents(profile: Profile, served: Served) -> list[Object]:
    """All that a profile needs beside itself, in the order in which it is applied; nothing for a single tenant.

    The AccessIndex states no maps: who applies it again takes no grant away.
    """
    if not profile.is_multi_tenant:
        return []
    index = object_of(ACCESS_INDEX, {"name": DEFAULT}, spec={})
    return [index, *rights(), *manifests(profile, served)]


def manifests(profile: Profile, served: Served) -> list[Object]:
    """The policies and mutations, then their bindings."""
    found: list[Object] = []
    for each in policies(profile, served):
        found += [each.manifest(), each.binding(profile)]
    kinds = [kind.kind for kind in _ORDER]
    return sorted(found, key=lambda each: kinds.index(each["kind"]))


def _policies(profile: Profile, served: Served) -> Iterator[AdmissionPolicy]:
    mutates = served.mutates
    quarantines = profile.denial(mutates=mutates) == "Quarantine"
    for consumer in profile.judged:
        if versions := served.versions(consumer.group, consumer.resource):
            if quarantines and not profile.is_audit:
                yield quarantine(consumer, versions, profile)
            yield reference_policy(consumer, versions, profile, quarantines=quarantines)
    for consumer in profile.all_consumers:
        if versions := served.versions(consumer.group, consumer.resource):
            yield lock_guard(consumer, versions)
    for applier in APPLIERS:
        if versions := served.versions(applier.group, applier.resource):
            yield from account_policies(applier, versions, profile, mutates=mutates)
    yield from chart_policies(served)
    yield from guard_policies(served, profile)
