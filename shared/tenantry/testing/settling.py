"""Knowing that nothing goes on any more, without waiting for a time; and comparing the states that were reached.

A watch is ordered, so when the event of a marker has been delivered, so has every event of its kind before it.  A round
touches one marker of every watched kind, waits for those deliveries, and drains source and broker.  When nothing was written
meanwhile, then everything that happened before the round has been handled, and the handling wrote nothing: the system is at
rest and stays there.  That nothing was written at all shows in the numbers that etcd gives its writes.  Where something was,
the watched collections are compared, without objects on their way out, since only the controller manager writes to those.

`snapshot` and `normalised` are for comparing: the first tells whether anything was written, the second whether two runs
with different names, times and uids ended in the same state.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, KindNotServed, NotFound
from tenantry.local.knative import Knative
from tenantry.local.specs import SourceSpec, Watched
from tenantry.model.event import Event
from tenantry.model.flux.consumers import CONSUMER_KINDS
from tenantry.model.flux.names import SHARED_KINDS
from tenantry.model.flux.onboarding import KUSTOMIZATION
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT, Key, Kind, Object, is_terminating, key_of, labels_of
from tenantry.model.pointer import pointer

ROUNDS = 20
_TOUCHED = "tenantry.dev/touched"
_MARKER = "tenantry.dev/marker"
_ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "tenantry-marker"}
_BODIES: Mapping[str, Object] = {
    "Namespace": {},
    "ConfigMap": {},
    "Pod": {"spec": {"containers": [{"name": "marker", "image": "marker"}]}},
    "NamespaceScope": {},
    "ValidatingWebhookConfiguration": {"webhooks": []},
    "MutatingWebhookConfiguration": {"webhooks": []},
    "ClusterServiceVersion": {},
    "OperatorGroup": {},
    "ServiceAccount": {},
    "Secret": {"type": "Opaque"},
    "NetworkPolicy": {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}},
    "Role": {"rules": []},
    "ClusterRole": {"rules": []},
    "RoleBinding": {"roleRef": _ROLE_REF, "subjects": []},
    "ClusterRoleBinding": {"roleRef": _ROLE_REF, "subjects": []},
    "ProjectHelmChart": {"spec": {"helmApiVersion": "marker.tenantry.dev/v1"}},
    "HelmChart": {},
    "HelmChartConfig": {},
    "HelmRelease": {},
    # Suspended, it makes no pods.
    "Job": {
        "spec": {
            "suspend": True,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "none", "image": "none"}]}},
        }
    },
    "ScopeTemplate": {"spec": {}},
    "ScopeInstance": {"spec": {"scopeTemplateName": "marker"}},
    "ResourceQuota": {"spec": {"hard": {}}},
    "ClusterResourceQuota": {"spec": {"quota": {"hard": {}}, "selector": {}}},
    "Group": {"users": []},
    "ApplicationSet": {"spec": {}},
    "ArgoCD": {"spec": {}},
    "SourceGrant": {"spec": {"sourceRef": {"kind": "Bucket", "name": "marker"}, "accessFrom": {"namespaceSelectors": []}}},
    **{kind.kind: {} for kind in (*SHARED_KINDS, KUSTOMIZATION)},
}
_LOCAL = {"kind": "GitRepository", "name": "marker"}
_OF_FLUX: Mapping[tuple[str, str], Object] = {
    kind.gvk: {"spec": spec}
    for kind, spec in zip(
        CONSUMER_KINDS,
        (
            {"interval": "1h", "prune": False, "serviceAccountName": "marker", "sourceRef": _LOCAL},
            {"interval": "1h", "serviceAccountName": "marker", "chart": {"spec": {"chart": "marker", "sourceRef": _LOCAL}}},
            {"eventSources": []},
            {"resources": []},
            {"interval": "1h", "sourceRef": _LOCAL},
            {"imageRepositoryRef": {"name": "marker"}},
            {"sources": [], "artifacts": []},
            {"serviceAccountName": "marker"},
            {},
        ),
        strict=True,
    )
}
"""Consumers that name nothing elsewhere: of another group than kinds that are called so."""
NO_PARAM = "no params found for policy binding"
"""In the refusal of a policy whose param, a PaasConfig, there is none of."""
_POLICIES = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "CustomResourceDefinition"}
_BORROWED = frozenset({"Paas", "PaasNS", "PaasConfig", "TenancyProfile", "AccessIndex", "Tenant", *_POLICIES})
"""Kinds of which no object is without effect: one that is there is touched, and where there is none nothing is waited for."""
_OF_THE_SERVER = frozenset({"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"})
_OF_THE_WAY = frozenset({"conditions", "lastDrift"})
"""Of a status: conditions are compared without their times, and the last drift is part of how the end was reached."""


class Markers:
    """One object of each kind that some sources watch; `observe` must be shown every event that was handled."""

    def __init__(self, admin: Api, sources: Iterable[SourceSpec]) -> None:
        self._admin = admin
        self._namespace = f"marker-{secrets.token_hex(4)}"
        every = (
            (watched, spec.ce_overrides.extensions) for spec in sources for watched in spec.resources if _anywhere(spec, watched)
        )
        named = {f"{self._namespace}-{number}": each for number, each in enumerate(every)}
        self._watched = {name: watched for name, (watched, _) in named.items()}
        self._marks = {name: extensions for name, (_, extensions) in named.items()}
        self._seen = {name: asyncio.Event() for name in self._watched}
        self._called = dict(zip(named, named, strict=True))
        """What is touched for each, by name."""
        self._count = 0

    def observe(self, event: Event) -> None:
        """Take note of an event that reached its end."""
        named, kind = event.extensions.get("name", ""), event.extensions.get("kind")
        for name in [named] if named in self._seen else self._seen:
            if self._called[name] != named or self._watched[name].kind != kind:
                continue
            if self._marks[name].items() <= event.extensions.items():  # of that very source: another may watch the kind too
                self._seen[name].set()

    async def touch(self, within: float = 60.0) -> int:
        """Change every marker and wait until that was observed for each of them; returns the number of the last write.

        Raises:
            AssertionError: an event did not arrive in time; the message names its kind.
        """
        if not self._count:
            await self._admin.apply(NAMESPACE, self._body(self._namespace, _watched_namespace()))
            await self._admin.apply(SERVICE_ACCOUNT, self._default_account())  # a Pod needs it, before its controller makes it
        self._count += 1
        for seen in self._seen.values():
            seen.clear()
        touches = (self._touch(name, watched) for name, watched in list(self._watched.items()))
        newest = max(await asyncio.gather(*touches), default=0)
        try:
            async with asyncio.timeout(within):
                for seen in self._seen.values():
                    await seen.wait()
        except TimeoutError:
            missing = ", ".join(self._watched[name].kind for name, seen in self._seen.items() if not seen.is_set())
            raise AssertionError(f"no event of a touched marker within {within:g} s: {missing}") from None
        return newest

    async def _touch(self, name: str, watched: Watched) -> int:
        kind = watched.served_as[0]
        try:
            if kind.kind in _BORROWED:
                return await self._touch_another(name, kind)
            applied = await self._admin.apply(kind, self._body(name, watched))
        except KindNotServed:
            del self._watched[name], self._seen[name]
            return 0
        except AdmissionDenied as error:
            if NO_PARAM not in error.message:
                raise
            self._seen[name].set()  # nobody can make such an object now
            return 0
        return int(applied["metadata"]["resourceVersion"])

    async def _touch_another(self, name: str, kind: Kind) -> int:
        """Touch an object that is there, in place of a marker."""
        value = f"{name}-{self._count}"  # not what another touch of the same object wrote: that would be no change
        for found in (await self._admin.list(kind)).items:
            if is_terminating(found):
                continue
            metadata = found["metadata"]
            self._called[name] = metadata["name"]
            edits: list[Object] = (
                [] if metadata.get("annotations") else [{"op": "add", "path": "/metadata/annotations", "value": {}}]
            )
            edits.append({"op": "add", "path": pointer("metadata", "annotations", _TOUCHED), "value": value})
            try:
                touched = await self._admin.json_patch(kind, metadata["name"], metadata.get("namespace", ""), edits)
            except NotFound:
                continue
            return int(touched["metadata"]["resourceVersion"])
        self._seen[name].set()
        return 0

    async def _next_write(self) -> int:
        """The number that etcd gives to a write of now."""
        self._count += 1
        metadata = {"name": "pulse", "namespace": self._namespace, "annotations": {_TOUCHED: str(self._count)}}
        applied = await self._admin.apply(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        return int(applied["metadata"]["resourceVersion"])

    async def settle(self, drain: Callable[[], Awaitable[None]], *, rounds: int = ROUNDS) -> None:
        """Touch and drain until one round brought no other write; see the module."""
        before: dict[Key, str] = {}
        changed: list[str] = []
        for _ in range(rounds):
            newest = await self.touch()
            await drain()
            if await self._next_write() == newest + 1:
                return
            after = await self._versions()
            changed = sorted(str(key) for key in before.keys() | after.keys() if before.get(key) != after.get(key))
            if before and not changed:
                return
            before = after
        raise AssertionError(f"not at rest after {rounds} rounds; written in the last one: {', '.join(changed[:20])}")

    async def _versions(self) -> dict[Key, str]:
        async def read(watched: Watched) -> list[Object]:
            try:
                listing = await self._admin.list(watched.served_as[0], label_selector=str(watched.selector))
            except KindNotServed:
                return []
            return listing.items

        lists = await asyncio.gather(*(read(watched) for watched in self._watched.values()))
        found = (obj for objects in lists for obj in objects if not is_terminating(obj) and _MARKER not in labels_of(obj))
        return {key_of(obj): obj["metadata"]["resourceVersion"] for obj in found}

    def _default_account(self) -> Object:
        metadata = {"name": "default", "namespace": self._namespace}
        return {"apiVersion": SERVICE_ACCOUNT.api_version, "kind": SERVICE_ACCOUNT.kind, "metadata": metadata}

    def _body(self, name: str, watched: Watched) -> Object:
        kind = watched.served_as[0]
        body = _OF_FLUX.get(kind.gvk) or _BODIES.get(kind.kind)
        if body is None:
            raise LookupError(f"no marker is known for {kind}: add one to {__name__}")
        where = {"namespace": self._namespace} if kind.namespaced else {}
        metadata = {
            "name": name,
            **where,
            "labels": {**_selected(watched), _MARKER: "true"},
            "annotations": {_TOUCHED: str(self._count)},
        }
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **body}


def _anywhere(spec: SourceSpec, watched: Watched) -> bool:
    """Whether a source sees a marker in a namespace of its own: not when it watches only the source's."""
    return spec.namespace_selector is not None or not watched.served_as[0].namespaced


def _selected(watched: Watched) -> dict[str, str]:
    """Labels that the selector takes; of expressions only ``Exists`` is known here."""
    exists = {each.key: "marker" for each in watched.selector.match_expressions if each.operator == "Exists"}
    return {**watched.selector.match_labels, **exists}


def _watched_namespace() -> Watched:
    return Watched(api_version=NAMESPACE.api_version, kind=NAMESPACE.kind)


_markers: WeakKeyDictionary[Knative, Markers] = WeakKeyDictionary()


async def settle(knative: Knative, admin: Api, *, rounds: int = ROUNDS) -> None:
    """Return when everything that happened so far has been handled and the handling writes no more.

    Without sources there is nothing to wait for but the broker.

    Raises:
        AssertionError: there is still written after that many rounds; the message names the objects.
    """
    if not knative.sources:
        await knative.drain()
        return
    markers = _markers.get(knative)
    if markers is None:
        markers = Markers(admin, [source.spec for source in knative.sources])
        _markers[knative] = markers
        observe = markers.observe
        knative.on_delivery.append(lambda _, event, status, *__: observe(event) if 200 <= status < 300 else None)
    await markers.settle(knative.drain, rounds=rounds)


async def snapshot(
    admin: Api, kinds: Iterable[Kind], *, containing: str = "", labels: Mapping[str, str] | None = None
) -> dict[str, str]:
    """``uid`` to ``resourceVersion`` of the objects of these kinds: equal snapshots mean that nothing was written.

    ``containing`` keeps to objects with that text in their own or their namespace's name, ``labels`` to objects that have
    them.  Left out are markers, objects on their way out, and what is in a namespace that is.
    """
    objects = await _select(admin, kinds, containing, labels or {})
    return {obj["metadata"]["uid"]: obj["metadata"]["resourceVersion"] for obj in objects}


async def normalised(
    admin: Api, kinds: Iterable[Kind], *, containing: str, labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The state of a run by key, free of what differs between runs: the run's own name, uids, versions and times.

    ``containing`` is a text that is unique to the run and part of all its names; it reads ``RUN`` in the result.
    """
    made: dict[str, Any] = {}
    for obj in await _select(admin, kinds, containing, labels or {}):
        text = json.dumps(_comparable(obj), sort_keys=True).replace(containing, "RUN")
        made[str(key_of(obj)).replace(containing, "RUN")] = json.loads(text)
    return made


async def _select(admin: Api, kinds: Iterable[Kind], containing: str, labels: Mapping[str, str]) -> list[Object]:
    lists = await asyncio.gather(*(admin.list(kind) for kind in {*kinds, NAMESPACE}))
    objects = [obj for listing in lists for obj in listing.items]
    leaving = {obj["metadata"]["name"] for obj in objects if obj["kind"] == NAMESPACE.kind and is_terminating(obj)}
    wanted = {kind.kind for kind in kinds}

    def counts(obj: Object) -> bool:
        metadata = obj["metadata"]
        return (
            obj["kind"] in wanted
            and not is_terminating(obj)
            and _MARKER not in labels_of(obj)
            and metadata.get("namespace") not in leaving
            and (containing in metadata["name"] or containing in metadata.get("namespace", ""))
            and all(labels_of(obj).get(name) == value for name, value in labels.items())
        )

    return [obj for obj in objects if counts(obj)]


def _comparable(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _OF_THE_SERVER}
    for reference in metadata.get("ownerReferences") or ():
        reference.pop("uid", None)
    status = obj.get("status") or {}
    conditions = status.get("conditions") or []
    timeless = [{name: value for name, value in each.items() if name != "lastTransitionTime"} for each in conditions]
    said = {name: value for name, value in status.items() if name not in _OF_THE_WAY}
    rest = {name: value for name, value in obj.items() if name not in ("metadata", "status")}
    ordered = sorted(timeless, key=lambda each: str(each.get("type")))
    return {**rest, "metadata": metadata, "status": said, "conditions": ordered}
