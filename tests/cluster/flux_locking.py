"""Consumers of Flux that lose their grants, and what locks leave on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fluxing import Fluxing, served
from people import CORE_EVENT, token
from times import FLUX_S

from tenantry.model.conditions import find_condition
from tenantry.model.flux.consumers import CONSUMERS, SUSPEND, Stop
from tenantry.model.flux.names import (
    ACCESS_DENIED,
    DEFAULT,
    LOCK_FINALIZER,
    LOCKED,
    SOURCE_GRANT,
    SUSPENDED_BY_LOCK,
    TENANCY_PROFILE,
)
from tenantry.model.kinds import Kind, Object, annotations_of, finalizers_of
from tenantry.testing import eventually
from tenantry.testing.objects import obj

LOCKS = "lock-enforcement"
"""The function that locks."""
ACCESS = "lock-enforcement-access"
"""Its Service for access locks."""
KUSTOMIZATION = served("Kustomization")
REQUESTED_AT = "reconcile.fluxcd.io/requestedAt"
FLUX_FINALIZER = "finalizers.fluxcd.io"
_STOPS = {each.name: each.stop for each in CONSUMERS}


def source_ref(namespace: str = "", name: str = "app1", kind: str = "GitRepository") -> Object:
    """A reference to a source."""
    return {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}


TERRAFORM = Kind("infra.contrib.fluxcd.io/v1alpha2", "Terraform", "terraforms")
"""A kind of another system, which is a row of the TenancyProfile."""


def kind_of(name: str) -> Kind:
    """A consumer's kind by its name."""
    return TERRAFORM if name == TERRAFORM.kind else served(name)


def stop_of(kind: str) -> Stop:
    """What stops objects of a kind."""
    found = kind_of(kind)
    return _STOPS.get(f"{found.plural}.{found.group}", SUSPEND)


def is_stopped(found: Object) -> bool:
    """Whether nothing is reconciled."""
    stop = stop_of(found["kind"])
    if stop.field:
        return found["spec"].get("suspend") is True
    return annotations_of(found).get(stop.annotation) == stop.value


def condition_types(kind: str) -> tuple[str, ...]:
    """The conditions that a locked object of a kind has (2.2)."""
    return {"Alert": (), "ImagePolicy": ("Ready",)}.get(kind, ("Ready", "Stalled"))


def says_denied(found: Object) -> bool:
    """Whether the conditions say that it is denied, as of its generation, and no other of the two does."""
    types = condition_types(found["kind"])
    conditions = [find_condition(found, each) for each in types]
    wanted = {"Ready": "False", "Stalled": "True"}
    return all(
        each is not None
        and (each["status"], each["reason"]) == (wanted[each["type"]], ACCESS_DENIED)
        and each["observedGeneration"] == found["metadata"]["generation"]
        for each in conditions
    ) and ("Stalled" in types or find_condition(found, "Stalled") is None)


def has_lock(found: Object, *, by_lock: bool = True) -> bool:
    """Whether all of 2.2's marks and conditions are there."""
    return is_locked(found, by_lock=by_lock) and says_denied(found)


def is_locked(found: Object, *, by_lock: bool = True) -> bool:
    """Whether all of its marks are there, and it is stopped: the first of its steps."""
    annotations = annotations_of(found)
    marks = annotations.get(LOCKED) == ACCESS_DENIED and (annotations.get(SUSPENDED_BY_LOCK) == "true") == by_lock
    return marks and LOCK_FINALIZER in finalizers_of(found) and is_stopped(found)


def has_no_lock(found: Object) -> bool:
    """Whether none of them is left."""
    conditions = (found.get("status") or {}).get("conditions") or ()
    marked = {LOCKED, SUSPENDED_BY_LOCK} & annotations_of(found).keys()
    return not marked and LOCK_FINALIZER not in finalizers_of(found) and not any(c["reason"] == ACCESS_DENIED for c in conditions)


class FluxLocks(Fluxing):
    """Acts as owners of sources, as the teams that use them, and as Flux' controllers."""

    async def shared(self) -> tuple[str, str, dict[str, str]]:
        """A namespace with GitRepository app1, another one, and the labels of that one, which app1 is granted to."""
        labels = {"team": token()}
        owner, user = await self.home(), await self.home(**labels)
        await self.source(owner)
        await self.grant(owner, labels, name="g")
        await self.grants(owner, app1=f"team={labels['team']}")
        return owner, user, labels

    async def revoke(self, owner: str) -> None:
        """Take the grant of app1 back."""
        await self.admin.delete(SOURCE_GRANT, "g", owner)

    async def consumer(self, namespace: str, kind: str = "Kustomization", name: str = "", **parts: Any) -> Object:
        """A consumer; a Kustomization unless told otherwise."""
        spec, finalizers = parts.pop("spec", {}), parts.pop("finalizers", [])
        if kind == "Kustomization":
            spec = {"interval": "1m", "prune": True, "serviceAccountName": "flux", "sourceRef": source_ref(), **spec}
        body = obj(kind_of(kind), name or f"c-{token()}", namespace, metadata={"finalizers": finalizers}, spec=spec, **parts)
        return await self.admin.create(kind_of(kind), body)

    async def kustomization(self, user: str, owner: str, **parts: Any) -> Object:
        """A Kustomization of app1 in another namespace."""
        spec = {"sourceRef": source_ref(owner), **parts.pop("spec", {})}
        return await self.consumer(user, spec=spec, **parts)

    async def now(self, consumer: Object) -> Object:
        """A consumer as it is now."""
        metadata = consumer["metadata"]
        return await self.get(kind_of(consumer["kind"]), metadata["name"], metadata["namespace"])

    async def locked(self, consumer: Object, *, by_lock: bool = True) -> Object:
        """Wait until a consumer is locked, and told once; returns it."""
        metadata, kind = consumer["metadata"], kind_of(consumer["kind"])
        found = await self.until(
            kind, metadata["name"], metadata["namespace"], lambda live: has_lock(live, by_lock=by_lock), what="locked"
        )
        await eventually(lambda: self.events(consumer, ACCESS_DENIED), within=FLUX_S, what="AccessDenied is told")
        return found

    async def unlocked(self, consumer: Object) -> Object:
        """Wait until nothing of a lock is left; returns the consumer."""
        metadata, kind = consumer["metadata"], kind_of(consumer["kind"])
        return await self.until(kind, metadata["name"], metadata["namespace"], has_no_lock, what="unlocked")

    async def events(self, consumer: Object, reason: str) -> list[Object]:
        """The Events of a reason about a consumer, in its namespace."""
        metadata = consumer["metadata"]
        fields = f"involvedObject.kind={consumer['kind']},involvedObject.name={metadata['name']},reason={reason}"
        return (await self.admin.list(CORE_EVENT, metadata["namespace"], field_selector=fields)).items

    async def say(self, consumer: Object, *conditions: Mapping[str, Any]) -> Object:
        """Flux' controller writes conditions, all of them, whatever was there."""
        live = await self.now(consumer)
        stamped = [{"lastTransitionTime": "2026-01-01T00:00:00Z", "message": "", **each} for each in conditions]
        kind, metadata = kind_of(consumer["kind"]), live["metadata"]
        body = {**live, "status": {**(live.get("status") or {}), "conditions": stamped}}
        return await self.admin.request("PUT", kind.path(metadata["namespace"], metadata["name"]) + "/status", None, body)

    async def violations(self) -> list[str]:
        """What the TenancyProfile lists, as ``Kind/namespace/name``."""
        status = (await self.get(TENANCY_PROFILE, DEFAULT)).get("status") or {}
        listed = status.get("violations") or []
        assert status.get("violationCount", 0) >= len(listed)
        return [f"{each['kind']}/{each['namespace']}/{each['name']}" for each in listed]

    async def listed(self, consumer: Object, *, wanted: bool = True) -> None:
        """Wait until the TenancyProfile lists a consumer as denied, or no more."""
        name = f"{consumer['kind']}/{consumer['metadata']['namespace']}/{consumer['metadata']['name']}"
        await eventually(self.violations, lambda found: (name in found) == wanted, within=FLUX_S, what=f"{name} listed: {wanted}")


def named_elsewhere(kind: str, namespace: str) -> Object:
    """The spec of a consumer of a kind that names something in a namespace; in its own where that is empty."""
    other = {"namespace": namespace} if namespace else {}
    git = source_ref(namespace)
    found: dict[str, Object] = {
        "Kustomization": {"interval": "1m", "prune": True, "serviceAccountName": "flux", "sourceRef": git},
        "HelmRelease": {"interval": "1m", "chart": {"spec": {"chart": "x", "sourceRef": git}}},
        "ImageUpdateAutomation": {"interval": "1m", "sourceRef": git},
        "ImagePolicy": {"imageRepositoryRef": {"name": "img", **other}},
        "ArtifactGenerator": {"sources": [{"alias": "a", **source_ref()}, {"alias": "b", **git}], "artifacts": []},
        "Alert": {"eventSources": [{"kind": "Kustomization", "name": "*", **other}]},
        "Receiver": {"resources": [source_ref(), git]},
        "ResourceSet": {"dependsOn": [{"apiVersion": "v1", "kind": "Secret", "name": "s", **other}]},
        "ResourceSetInputProvider": {"type": "ExternalArtifact", "selectors": [other or {"labelSelector": {}}]},
    }
    return found[kind]


CONSUMER_KINDS = (
    "Kustomization",
    "HelmRelease",
    "ImageUpdateAutomation",
    "ImagePolicy",
    "ArtifactGenerator",
    "Alert",
    "Receiver",
    "ResourceSet",
    "ResourceSetInputProvider",
)
