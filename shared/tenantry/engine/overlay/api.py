"""The API of a cluster with changes laid on top: it reads the server, and what would be written is laid on.

An `Engine` over it decides with the functions' own units as it would live: every read is as if all that was laid on were there,
and every write is carried out by the rules of `tenantry.model.written`.  No request of it changes anything in the cluster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from typing import TypeVar

from tenantry.api import Api, Keep
from tenantry.api.errors import (
    AlreadyExists,
    ConflictError,
    Invalid,
    NamespaceNotFound,
    NamespaceTerminating,
    NotFound,
    RefusedError,
)
from tenantry.engine.context import running_owner
from tenantry.engine.overlay.asking import DryRuns
from tenantry.engine.overlay.reading import OverlayReads
from tenantry.engine.overlay.store import Actor, Overlay, Verb, acting, place_of
from tenantry.engine.recorder import now_seconds
from tenantry.model.comparison import Schema
from tenantry.model.kinds import (
    CONFIG_MAP,
    NAMESPACE,
    SERVICE_ACCOUNT,
    Key,
    Kind,
    Object,
    finalizers_of,
    is_terminating,
    key_in,
    object_of,
)
from tenantry.model.names import DEFAULT_SERVICE_ACCOUNT
from tenantry.model.written import (
    BadPatchError,
    applied,
    as_stored,
    created,
    declared_part,
    filled,
    fixed_change,
    is_counted,
    is_custom,
    patched,
    same_content,
    updated,
)

KUBERNETES, KUBERNETES_MANAGER = "Kubernetes", "kube-controller-manager"
"""Who Kubernetes' own controllers are, in what is printed and as field manager."""
EVERYWHERE = ((SERVICE_ACCOUNT, DEFAULT_SERVICE_ACCOUNT), (CONFIG_MAP, "kube-root-ca.crt"))
FOREGROUND = "foregroundDeletion"

T = TypeVar("T")


class OverlayApi(OverlayReads):
    """One identity's view of a cluster with an overlay, which it may write to.

    With ``ask`` the server is asked about each write before, by the client ``asking``; default: the one that reads.
    """

    def __init__(
        self,
        live: Api,
        overlay: Overlay,
        *,
        field_manager: str = "",
        keeps: Mapping[Kind, Keep] | None = None,
        ask: DryRuns | None = None,
        asking: Api | None = None,
    ) -> None:
        super().__init__(live, overlay, field_manager=field_manager, keeps=keeps)
        self._ask = ask
        self._asking = asking or live

    async def apply(
        self, kind: Kind, body: Object, *, force: bool = True, subresource: str = "", dry_run: bool = False, manager: str = ""
    ) -> Object:
        """What an apply would make, laid on unless it is a dry run."""
        del force
        name, namespace = body["metadata"]["name"], body["metadata"].get("namespace", "")
        live = await self.current(kind, name, namespace)
        uid = body["metadata"].get("uid")
        if uid and (live is None or live["metadata"]["uid"] != uid):
            raise ConflictError(f"{name} is another object", status=409, reason="Conflict")
        if live is None and subresource:
            raise NotFound(f"{kind.plural} {name} not found", status=404, reason="NotFound")
        manager = manager or self.field_manager
        answer = await self._asked(
            kind,
            key_in(kind, name, namespace),
            lambda api: api.apply(kind, body, subresource=subresource, dry_run=True, manager=manager),
            dry_run=dry_run,
        )
        if answer is not None and live is not None:  # of what is new the server makes up a uid each time
            made = answer
        else:
            schema, has_status = await self.schema(kind), await self.has_status(kind)
            made = applied(body, live, schema, manager=manager, subresource=subresource, has_status=has_status)
        verb: Verb = "status" if subresource else "create" if live is None else "update"
        return await self._store(verb, kind, made, live, manager, dry_run=dry_run)

    async def create(self, kind: Kind, body: Object, *, dry_run: bool = False, manager: str = "") -> Object:
        """What a create would make, laid on unless it is a dry run."""
        metadata = dict(body["metadata"])
        if not metadata.get("name"):
            metadata["name"] = f"{metadata.get('generateName', '')}{self.overlay.version()[-5:]}"
        body = {**body, "metadata": metadata}
        live = await self.current(kind, metadata["name"], metadata.get("namespace", ""))
        if live is not None:
            raise AlreadyExists(f"{kind.plural} {metadata['name']} already exists", status=409, reason="AlreadyExists")
        manager, asked = manager or self.field_manager, body
        await self._asked(
            kind,
            key_in(kind, metadata["name"], metadata.get("namespace", "")),
            lambda api: api.create(kind, asked, dry_run=True, manager=manager),
            dry_run=dry_run,
        )
        has_status = await self.has_status(kind)
        schema = await self.schema(kind)
        body = filled(body, schema) if is_custom(kind.group) else as_stored(body)  # which he owns who creates it
        made = created(body, schema, manager=manager, has_status=has_status)
        return await self._store("create", kind, made, None, manager, dry_run=dry_run)

    async def json_patch(
        self, kind: Kind, name: str, namespace: str, operations: Sequence[Object], *, subresource: str = "", dry_run: bool = False
    ) -> Object:
        """What a JSON patch would make, laid on unless it is a dry run."""
        live = await self._there(kind, name, namespace)
        try:
            after = patched(live, operations)
        except BadPatchError as error:
            raise ConflictError(str(error), status=422, reason="Invalid") from error
        await self._asked(
            kind,
            key_in(kind, name, namespace),
            lambda api: api.json_patch(kind, name, namespace, operations, subresource=subresource, dry_run=True),
            dry_run=dry_run,
        )
        if not subresource and await self.has_status(kind) and "status" in live:
            after["status"] = live["status"]
        made = updated(after, live, await self.schema(kind), manager=self.field_manager, subresource=subresource)
        return await self._store("status" if subresource else "update", kind, made, live, "", dry_run=dry_run)

    async def update(self, kind: Kind, after: Object) -> Object:
        """What an update to ``after`` would make of the object that is there, laid on."""
        live = await self._there(kind, after["metadata"]["name"], after["metadata"].get("namespace", ""))
        made = updated(after, live, await self.schema(kind), manager=self.field_manager)
        return await self._store("update", kind, made, live, "")

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "Background",
        dry_run: bool = False,
    ) -> bool:
        """Whether a deletion would end it: not so where it waits for its finalizers, nor for a dry run."""
        live = await self.current(kind, name, namespace)
        if live is None:
            return True
        metadata = live["metadata"]
        if uid not in ("", metadata["uid"]) or resource_version not in ("", metadata["resourceVersion"]):
            raise ConflictError(f"{name} is not what was meant", status=409, reason="Conflict")
        key = key_in(kind, name, namespace)
        await self._asked(
            kind,
            key,
            lambda api: api.delete(kind, name, namespace, propagation=propagation, dry_run=True),
            dry_run=dry_run,
        )
        if dry_run:
            return False
        holds = [*finalizers_of(live), *([FOREGROUND] if propagation == "Foreground" and not finalizers_of(live) else [])]
        if not holds and kind != NAMESPACE:
            self.overlay.put("delete", kind, key, live, None, self._who(""))
            return True
        if is_terminating(live):
            return False
        after = deepcopy(live)
        after["metadata"] |= {"deletionTimestamp": now_seconds(), "resourceVersion": self.overlay.version()}
        if holds:
            after["metadata"] |= {"finalizers": holds, "deletionGracePeriodSeconds": 0}
        if metadata.get("generation"):
            after["metadata"]["generation"] = metadata["generation"] + 1
        if kind == NAMESPACE:
            after["status"] = {**(after.get("status") or {}), "phase": "Terminating"}
        self.overlay.put("delete", kind, key, live, after, self._who(""))
        return False

    async def _there(self, kind: Kind, name: str, namespace: str) -> Object:
        live = await self.current(kind, name, namespace)
        if live is None:
            raise NotFound(f"{kind.plural} {name} not found", status=404, reason="NotFound")
        return live

    async def _asked(self, kind: Kind, key: Key, write: Callable[[Api], Awaitable[T]], *, dry_run: bool) -> T | None:
        """What the server says to the dry run of a write; None where it is not asked.  What it would refuse is noted, and raised.

        A patch is asked about as it is: its tests hold, since the object is as it is there.
        """
        if self._ask is None or not self._ask.may_ask(self.overlay, kind, key):
            return None
        try:
            return await write(self._asking)
        except RefusedError as error:
            if not dry_run:
                self.overlay.refused[key] = error.message
            raise

    async def _store(
        self, verb: Verb, kind: Kind, made: Object, live: Object | None, manager: str, *, dry_run: bool = False
    ) -> Object:
        """The object as it would be stored, laid on unless nothing changes."""
        key = key_in(kind, made["metadata"]["name"], made["metadata"].get("namespace", ""))
        made = filled(made, await self.schema(kind)) if is_custom(kind.group) else as_stored(made)
        if live is None:
            await self._check_place(kind, key)
            made = await self._begun(kind, made)
        elif same_content(made, live):
            return self._kept(kind, deepcopy(live))
        else:
            if fixed := fixed_change(live, made):
                raise Invalid(f'{kind.kind} "{key.name}" is invalid: {fixed}', status=422, reason="Invalid")
            if new := set(finalizers_of(made)) - set(finalizers_of(live)) if is_terminating(live) else set():
                raise Invalid(f"no new finalizers can be added while the object is deleted: {sorted(new)}", status=422)
            has_status = await self.has_status(kind)
            counts = live["metadata"].get("generation")
            one, other = (declared_part(each, has_status=has_status) for each in (made, live))
            if counts and one != other:
                made["metadata"]["generation"] = counts + 1
            made["metadata"]["resourceVersion"] = self.overlay.version()
        if not dry_run:
            gone = is_terminating(made) and not finalizers_of(made) and kind != NAMESPACE
            self.overlay.put(verb, kind, key, live, None if gone else made, self._who(manager))
            if live is None and kind == NAMESPACE:
                await self._furnish(key)
        return self._kept(kind, deepcopy(made))

    async def _furnish(self, namespace: Key) -> None:
        """What Kubernetes' controllers put into every new namespace, at once."""
        who, owner = acting.get(), running_owner.get()
        acting.set(Actor(KUBERNETES, "", str(namespace), who.step))
        running_owner.set("")
        for kind, name in EVERYWHERE:
            body = object_of(kind, {"name": name, "namespace": namespace.name})
            made = await self._begun(kind, created(body, Schema(), manager=KUBERNETES_MANAGER))
            self.overlay.put("create", kind, key_in(kind, name, namespace.name), None, made, ("", KUBERNETES_MANAGER))
        acting.set(who)
        running_owner.set(owner)

    async def _check_place(self, kind: Kind, key: Key) -> None:
        """That something may be made there."""
        if not kind.namespaced:
            return
        if not key.namespace:
            raise Invalid(f"{kind.plural} {key.name} needs a namespace", status=400)
        namespace = await self.current(NAMESPACE, key.namespace)
        if namespace is None:
            raise NamespaceNotFound(f'namespaces "{key.namespace}" not found', status=404, reason="NotFound")
        if is_terminating(namespace):
            raise NamespaceTerminating(f"namespace {key.namespace} is being terminated", status=403, reason="Forbidden")

    async def _begun(self, kind: Kind, made: Object) -> Object:
        """A new object with what the server gives it."""
        metadata = made["metadata"]
        place = place_of(kind, metadata["name"], metadata.get("namespace", ""))
        metadata |= {"uid": self.overlay.uid(place), "resourceVersion": self.overlay.version()}
        metadata["creationTimestamp"] = now_seconds()
        if is_counted(kind.group) or (is_custom(kind.group) and await self.has_status(kind)):
            metadata["generation"] = 1
        if kind == NAMESPACE:
            made.setdefault("spec", {})["finalizers"] = ["kubernetes"]
        return made

    def _who(self, manager: str) -> tuple[str, str]:
        return running_owner.get(), manager or self.field_manager
