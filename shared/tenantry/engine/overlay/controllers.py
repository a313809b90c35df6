"""What Kubernetes' own controllers do about what was laid on: functions wait for some of it.

Deleted namespaces are emptied, what a deleted object owns is collected, quotas get a status, and aggregated ClusterRoles their
rules.  What a new namespace gets, it has at once (`OverlayApi`).  What other controllers do (Jobs, Helm, Flux, OLM) is not
foreseen, and named.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from copy import deepcopy

from pydantic_core import to_json

from tenantry.api.errors import ApiError
from tenantry.api.served import ServedResource, served_resources
from tenantry.engine.context import running_owner
from tenantry.engine.overlay.api import FOREGROUND, KUBERNETES, KUBERNETES_MANAGER, OverlayApi
from tenantry.engine.overlay.store import Actor, ObjectPlace, acting
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    NAMESPACE,
    RESOURCE_QUOTA,
    Kind,
    Object,
    finalizers_of,
    is_terminating,
    key_of,
    labels_of,
)
from tenantry.model.rbac import aggregates

_THEIRS = frozenset({"batch.kubernetes.io/job-tracking", "kubernetes.io/pvc-protection"})
"""Finalizers that Kubernetes' own controllers take off what is deleted."""
_NOT_FORESEEN = {
    "batch/Job": "a Job runs: what it does, and what follows from that, is not foreseen",
    "helm.cattle.io/HelmChart": "Helm runs for a HelmChart: what it installs or removes, and what follows, is not foreseen",
    "kustomize.toolkit.fluxcd.io/Kustomization": "Flux delivers a Kustomization: what it applies is not foreseen",
    "helm.toolkit.fluxcd.io/HelmRelease": "Flux delivers a HelmRelease: what it installs is not foreseen",
    "argoproj.io/ApplicationSet": "Argo CD acts on an ApplicationSet: what it makes is not foreseen",
    "operators.coreos.com/ClusterServiceVersion": "OLM acts on a ClusterServiceVersion: what it makes is not foreseen",
    "apiextensions.k8s.io/CustomResourceDefinition": "a CRD changes what is served: what is made of its kind is not foreseen",
    "sources.knative.dev/ApiServerSource": "Knative watches what an ApiServerSource names from then on",
}


class Controllers:
    """Kubernetes' own controllers over an overlay; ``kinds`` are those that functions read or make."""

    def __init__(self, over: OverlayApi, kinds: Iterable[Kind]) -> None:
        self._over = over
        self._kinds = {(kind.group, kind.kind): kind for kind in kinds}
        self._resources: list[ServedResource] | None = None
        self._collected: set[str] = set()
        self._told = 0
        self._aggregated = 0

    def note(self) -> None:
        """Note what others do about what was written since."""
        for written in self._over.overlay.written[self._told :]:
            self._told += 1
            note = _NOT_FORESEEN.get(f"{written.kind.group}/{written.kind.kind}")
            if note is not None and written.verb != "status":
                self._over.overlay.unforeseen.setdefault(note, str(written.key))

    async def later(self, step: int) -> bool:
        """What takes Kubernetes some time; whether anything changed."""
        before = len(self._over.overlay.written)
        self._act(step, "Kubernetes' controllers")
        await self._collect()
        await self._let_go()
        await self._aggregate()
        await self._count()
        for place, (kind, obj) in list(self._over.overlay.laid.items()):
            if kind == NAMESPACE and obj is not None and is_terminating(obj):
                await self._empty(place, obj)
        return len(self._over.overlay.written) > before

    def _act(self, step: int, cause: str) -> None:
        acting.set(Actor(KUBERNETES, "", cause, step))
        running_owner.set("")

    # -- namespaces ------------------------------------------------------------------------------------

    async def _empty(self, place: ObjectPlace, namespace: Object) -> None:
        """Delete what is in a namespace, and then the namespace, unless finalizers hold something."""
        if self._resources is None:
            self._resources = await served_resources(self._over)
        held: list[str] = []
        for each in self._resources:
            if not each.kind.namespaced or not {"list", "delete"} <= each.verbs:
                continue
            kind = self._kinds.get((each.kind.group, each.kind.kind))
            try:
                inside = (await self._over.list(kind or each.kind, place.name, metadata_only=True)).items
            except ApiError:
                continue  # not served, or noted as unseen
            for item in inside:
                name = item["metadata"]["name"]
                if kind is not None and not is_terminating(item):
                    await self._over.delete(kind, name, place.name)
                held += [f"{each.kind.kind} {name}"] if finalizers_of(item) else []
        if not held and not finalizers_of(namespace):
            key = key_of(namespace)
            self._over.overlay.put("delete", NAMESPACE, key, namespace, None, ("", KUBERNETES_MANAGER))

    # -- garbage ---------------------------------------------------------------------------------------

    async def _collect(self) -> None:
        """Delete what has no owner any more; with an owner that is deleted in the foreground, before it."""
        for place, (kind, obj) in list(self._over.overlay.laid.items()):
            if obj is not None and FOREGROUND in finalizers_of(obj) and is_terminating(obj):
                left = [found async for _, found in self._owned_by(obj["metadata"]["uid"], place.namespace)]
                if not left:
                    steps = [each for each in finalizers_of(obj) if each != FOREGROUND]
                    patch = [{"op": "replace", "path": "/metadata/finalizers", "value": steps}]
                    await self._over.json_patch(kind, place.name, place.namespace, patch)
                    continue
                await self._take(obj["metadata"]["uid"], place.namespace)
        for written in list(self._over.overlay.written):
            if written.after is None and written.before is not None:
                uid = written.before["metadata"].get("uid", "")
                if uid not in self._collected:
                    self._collected.add(uid)
                    await self._take(uid, written.key.namespace)

    async def _take(self, uid: str, namespace: str) -> None:
        async for kind, found in self._owned_by(uid, namespace):
            metadata = found["metadata"]
            others = [each for each in metadata["ownerReferences"] if each["uid"] != uid]
            if others:
                patch = [{"op": "replace", "path": "/metadata/ownerReferences", "value": others}]
                await self._over.json_patch(kind, metadata["name"], metadata.get("namespace", ""), patch)
            elif not is_terminating(found):
                await self._over.delete(kind, metadata["name"], metadata.get("namespace", ""))

    async def _owned_by(self, uid: str, namespace: str) -> AsyncIterator[tuple[Kind, Object]]:
        """Objects with an owner, each with its kind: in its namespace, where it has one."""
        for kind in self._kinds.values():
            if namespace and not kind.namespaced:
                continue
            try:
                listing = await self._over.list(kind, namespace, metadata_only=True)
            except ApiError:
                continue  # not served, or noted as unseen
            for item in listing.items:
                if any(each["uid"] == uid for each in item["metadata"].get("ownerReferences") or ()):
                    yield kind, item

    async def _let_go(self) -> None:
        for place, (kind, obj) in list(self._over.overlay.laid.items()):
            held = finalizers_of(obj)
            if obj is not None and is_terminating(obj) and _THEIRS & set(held):
                patch = [
                    {"op": "replace", "path": "/metadata/finalizers", "value": [each for each in held if each not in _THEIRS]}
                ]
                await self._over.json_patch(kind, place.name, place.namespace, patch)

    # -- the rest --------------------------------------------------------------------------------------

    async def _count(self) -> None:
        """Give quotas their status: how much is used is known of those that were there."""
        for kind, obj in list(self._over.overlay.laid.values()):
            if (kind.group, kind.kind) != (RESOURCE_QUOTA.group, RESOURCE_QUOTA.kind) or obj is None:
                continue
            hard, status = (obj.get("spec") or {}).get("hard") or {}, obj.get("status") or {}
            if hard and status.get("hard") != hard:
                after = deepcopy(obj)
                used = status.get("used") or {}
                after["status"] = {"hard": hard, "used": {name: used.get(name, "0") for name in hard}}
                after["metadata"]["resourceVersion"] = self._over.overlay.version()
                self._over.overlay.put("status", kind, key_of(obj), obj, after, ("", KUBERNETES_MANAGER))

    async def _aggregate(self) -> None:
        """Give aggregated ClusterRoles the rules of those that they select."""
        written = self._over.overlay.written
        if not any(each.kind == CLUSTER_ROLE for each in written[self._aggregated :]):
            self._aggregated = len(written)
            return
        try:
            roles = (await self._over.list(CLUSTER_ROLE)).items
        except ApiError:
            return  # noted as unseen
        for role in roles:
            if not (role.get("aggregationRule") or {}).get("clusterRoleSelectors"):
                continue
            chosen = [each for each in roles if each is not role and aggregates(role, labels_of(each))]
            rules: list[Object] = []
            for each in sorted(chosen, key=lambda found: found["metadata"]["name"]):
                rules += [one for one in each.get("rules") or () if one not in rules]
            if not _same_rules(rules, role.get("rules") or ()):
                live = await self._over.current(CLUSTER_ROLE, role["metadata"]["name"])
                if live is not None:
                    after = {**deepcopy(live), "rules": rules}
                    after["metadata"]["resourceVersion"] = self._over.overlay.version()
                    self._over.overlay.put("update", CLUSTER_ROLE, key_of(live), live, after, ("", KUBERNETES_MANAGER))
        self._aggregated = len(written)


def _same_rules(one: Iterable[Object], other: Iterable[Object]) -> bool:
    """Whether there are the same rules, in whatever order."""
    return {to_json(each) for each in one} == {to_json(each) for each in other}
