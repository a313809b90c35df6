"""What opr-paas left in a cluster: the objects of a Paas as its releases made them, and what became of them since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from admitting import V2
from handing_over import FUNCTIONS as HANDING_OVER
from handing_over import PLACE, SET, HandingOver
from paasing import CONFIG, example
from righting import SUBJECTS, Change, binding, group_names, in_order

from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE,
    ROLE_BINDING,
    SECRET,
    Kind,
    Object,
)
from tenantry.model.paas.names import (
    APPLICATION_SET,
    CLUSTER_RESOURCE_QUOTA,
    GROUP,
    MANAGED_BY_PAAS,
    PAAS,
    PAAS_FINALIZER,
)
from tenantry.testing.objects import obj

FUNCTIONS = (*HANDING_OVER, "scope-binding")
WITHDRAWN = "r-withdrawn"
"""A ClusterRole that the configuration no longer names: opr-paas kept what was bound to it (D1, D2)."""
SHARED_QUOTA = "paas-tekton"
TEKTON = {"quotas": {"clusterwide": True, "ratio": 1, "defaults": {"limits.cpu": "1"}}}
CAPABILITIES = {
    "argocd": {**CONFIG["capabilities"]["argocd"], "applicationset": SET, "custom_fields": {"git_url": {}}},
    "tekton": TEKTON,
}
PLACES = ("argocd", "cicd", "prod", "tekton", "test")
MONITORING = "monitoring-edit"
_LABELS = {"app.kubernetes.io/created-by": "opr-paas", "app.kubernetes.io/part-of": "opr-paas"}
KEPT = (NAMESPACE, GROUP, ROLE_BINDING, CLUSTER_ROLE_BINDING, CLUSTER_RESOURCE_QUOTA, APPLICATION_SET)


class Address(NamedTuple):
    """Which object."""

    kind: Kind
    name: str
    namespace: str = ""


@dataclass
class Left:
    """What there was before our functions started: Paas by name, objects that stay, those that go, and those of others."""

    paas: dict[str, Object] = field(default_factory=dict)
    stays: dict[Address, Object] = field(default_factory=dict)
    goes: list[Address] = field(default_factory=list)
    theirs: dict[Address, Object] = field(default_factory=dict)


def reference(paas: Object, version: str = V2, **changes: Any) -> Object:
    """The owner reference that opr-paas writes."""
    found = {"apiVersion": version, "kind": PAAS.kind, "name": paas["metadata"]["name"], "uid": paas["metadata"]["uid"]}
    return {**found, "controller": True, "blockOwnerDeletion": True, **changes}


def account(paas: str) -> Object:
    """A service account of the capability argocd, as subject."""
    return {"kind": "ServiceAccount", "name": "argo-sa", "namespace": f"{paas}-argocd"}


def shared(role: str, *paas: str, **metadata: Any) -> Object:
    """A ClusterRoleBinding of opr-paas."""
    reference_ = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subjects = [account(each) for each in paas]
    labels = metadata.pop("labels", _LABELS)
    return obj(CLUSTER_ROLE_BINDING, f"paas-{role}", labels=labels, roleRef=reference_, subjects=subjects, metadata=metadata)


def quota(name: str, hard: Mapping[str, str], **metadata: Any) -> Object:
    """A ClusterResourceQuota."""
    spec = {"quota": {"hard": dict(hard)}, "selector": {"labels": {"matchLabels": {"clusterquotagroup": name}}}}
    return obj(CLUSTER_RESOURCE_QUOTA, name, spec=spec, metadata=metadata)


class Upstream:
    """Makes what a release of opr-paas made, while none of our functions is at work."""

    def __init__(self, paasing: HandingOver) -> None:
        self.paasing = paasing
        self.left = Left()

    async def make(self, kind: Kind, body: Object, *, stays: bool = True) -> Object:
        """Make an object of a Paas."""
        made = await self.paasing.admin.create(kind, body, manager="manager")
        address = Address(kind, made["metadata"]["name"], made["metadata"].get("namespace", ""))
        if stays:
            self.left.stays[address] = made
        else:
            self.left.goes.append(address)
        return made

    async def paas(self, name: str, *, url: str = "") -> Object:
        """A Paas with all that it had."""
        spec = example()
        spec["capabilities"]["tekton"] = {"enabled": True}
        if url:
            spec["capabilities"]["argocd"]["custom_fields"] = {"git_url": url}
        body = obj(PAAS, name, spec=spec, metadata={"finalizers": [PAAS_FINALIZER]})
        paas = await self.paasing.admin.create(PAAS, body, manager="manager")
        self.left.paas[name] = paas
        owners, one_of_several = [reference(paas)], [reference(paas, controller=False)]
        label = {MANAGED_BY_PAAS: name}
        for suffix in PLACES:
            place = f"{name}-{suffix}"
            counted = {"argocd": place, "tekton": SHARED_QUOTA}.get(suffix, name)
            labels = {**label, "clusterquotagroup": counted, "requestor": "my-team", "argocd.argoproj.io/managed-by": "old"}
            await self.make(NAMESPACE, obj(NAMESPACE, place, labels=labels, metadata={"ownerReferences": owners}))
            for role, keys in SUBJECTS.items():
                groups = [*(f"{name}-{key}" for key in reversed(keys)), *(["others"] if role == "paas-view" else [])]
                bound = binding(role, place, role.removeprefix("paas-"), *groups, metadata={"ownerReferences": owners})
                await self.make(ROLE_BINDING, bound)
            unwanted = binding(f"paas-{WITHDRAWN}", place, WITHDRAWN, f"{name}-us", metadata={"ownerReferences": owners})
            await self.make(ROLE_BINDING, unwanted, stays=False)
        for key, users in (("us", ["me", "you"]), ("them", ["friend"])):
            metadata = {"labels": label, "ownerReferences": one_of_several}
            await self.make(GROUP, obj(GROUP, f"{name}-{key}", metadata=metadata, users=users))
        await self.make(CLUSTER_RESOURCE_QUOTA, quota(name, {"limits.cpu": "40"}, ownerReferences=owners))
        await self.make(CLUSTER_RESOURCE_QUOTA, quota(f"{name}-argocd", {"limits.cpu": "8"}, ownerReferences=owners))
        await self._others(f"{name}-argocd")
        return paas

    async def _others(self, place: str) -> None:
        """What Paas have nothing to do with: Secrets of an older release, and rights that tenants gave."""
        labels = {"argocd.argoproj.io/secret-type": "repo-creds"}
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "own"}
        for kind, body in (
            (SECRET, obj(SECRET, "paas-ssh-1a2b", place, labels, data={"url": "eA=="})),
            (ROLE, obj(ROLE, "own", place, rules=rules)),
            (ROLE_BINDING, {**binding("own", place, "own", "friends"), "roleRef": role}),
        ):
            self.left.theirs[Address(kind, body["metadata"]["name"], place)] = await self.paasing.admin.create(kind, body)

    async def together(self) -> None:
        """What the Paas had in common."""
        names = list(self.left.paas)
        await self.make(CLUSTER_ROLE_BINDING, shared(MONITORING, *reversed(names)))
        await self.make(CLUSTER_ROLE_BINDING, shared(WITHDRAWN, *names), stays=False)
        owners = [reference(each, controller=False) for each in self.left.paas.values()]
        await self.make(CLUSTER_RESOURCE_QUOTA, quota(SHARED_QUOTA, {"limits.cpu": str(len(names))}, ownerReferences=owners))

    async def application_set(self, elements: Sequence[Object]) -> None:
        """The ApplicationSet, with the elements that the Paas had."""
        made = await self.paasing.application_set(SET, {"list": {"elements": list(elements)}})
        self.left.stays[Address(APPLICATION_SET, SET, PLACE)] = made


def said(found: Object) -> set[str]:
    """What an object declares: subjects, users, or Paas in the elements of an ApplicationSet."""
    if found["kind"] == CLUSTER_ROLE_BINDING.kind:
        return {each["namespace"] for each in found.get("subjects") or ()}
    if found["kind"] == APPLICATION_SET.kind:
        return {str(each) for each in found["spec"]["generators"][0]["list"]["elements"]}
    return group_names(found) if found["kind"] == ROLE_BINDING.kind else set(found.get("users") or ())


def missing_for_a_moment(left: Left, seen: Sequence[Change]) -> list[str]:
    """The changes after which something that stays was gone, another object, or lacked what it said before."""
    found = []
    for change in in_order(seen):
        metadata = change.found["metadata"]
        before = left.stays.get(Address(change.kind, metadata["name"], metadata.get("namespace", "")))
        if before is None or int(metadata["resourceVersion"]) <= int(before["metadata"]["resourceVersion"]):
            continue
        if change.gone or metadata["uid"] != before["metadata"]["uid"] or said(before) - said(change.found):
            found.append(f"{change.kind.kind} {metadata.get('namespace', '')}/{metadata['name']}: {said(change.found)}")
    return found
