"""Teams whose repositories Flux' real controllers fetch and apply, and what they see of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

from admitting import DRY, MERGE, Admitting
from flux_guarding import GuardedLocks
from flux_locking import KUSTOMIZATION, REQUESTED_AT, named_elsewhere
from fluxing import served
from git_server import BRANCH, GitServer
from people import token
from times import POLICY_S

from tenantry.api import Api
from tenantry.cli.profile.applied import apply_profile
from tenantry.model.conditions import find_condition
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Kind, Object
from tenantry.testing import eventually
from tenantry.testing.audit import AuditLog
from tenantry.testing.objects import obj

GIT = served("GitRepository")
RUN_S = 60.0
"""Flux' controllers fetch, build and apply when they come to it, and try again after growing pauses."""
FAILED = "ReconciliationFailed"


def config_map(name: str, namespace: str = "") -> Object:
    """A ConfigMap as it is in a repository: without namespace, for a Kustomization that says into which one, or with it."""
    return obj(CONFIG_MAP, name, namespace, data={"a": "b"})


def delivery(name: str, owner: str, user: str, **spec: Any) -> Object:
    """A Kustomization of GitRepository app1 of another namespace, as it is in a repository."""
    source = {"kind": "GitRepository", "name": "app1", "namespace": owner}
    stated = {"interval": "1h", "prune": True, "serviceAccountName": "flux", "sourceRef": source, "targetNamespace": user, **spec}
    return obj(KUSTOMIZATION, name, spec=stated)


class RealFlux(GuardedLocks):
    """Acts as the platform and as tenants who deliver by Git, and reads what the controllers say."""

    def __init__(self, admin: Api, admitting: Admitting, git: GitServer) -> None:
        super().__init__(admin, admitting)
        self.git = git

    async def release(self) -> None:
        """Declare the profile of a single tenant, take all policies away, and wait until they judge nothing any more."""
        await apply_profile(self.admin, Profile.of(await self.profile(profile="single-tenant")), prune=True)
        place = await self.home(probe="before")

        async def free() -> bool:
            named = await self.make(place, named_elsewhere("Kustomization", "nowhere"), dry=True)
            labels = {"metadata": {"labels": {"probe": "after"}}}
            user = f"system:serviceaccount:{place}:flux"
            labelled = await self.admitting.ask("PATCH", NAMESPACE.path("", place), labels, user=user, content=MERGE, query=DRY)
            return named.status == 201 and labelled.status == 200

        await self.tenant(place)
        await eventually(free, within=POLICY_S, what="nothing is judged")

    async def team(self, **labels: str) -> str:
        """A namespace whose account ``flux`` may do everything in it."""
        name = await self.home(**labels)
        await self.tenant(name)
        return name

    async def source(self, namespace: str, name: str = "app1", kind: str = "GitRepository", **parts: Any) -> Object:
        """A source; a GitRepository is of a repository of its own, which has a ConfigMap of its name."""
        if kind == "GitRepository":
            repository = f"{namespace}-{name}"
            await self.git.commit(repository, {"content.yaml": [config_map(f"of-{name}")]})
            own = {"url": self.git.url(repository), "interval": "1h", "ref": {"branch": BRANCH}}
            parts = {**own, **parts}
        return await super().source(namespace, name, kind, **parts)

    async def consumer(self, namespace: str, kind: str = "Kustomization", name: str = "", **parts: Any) -> Object:
        """A consumer; a Kustomization applies into its own namespace, or with None as target where its documents say."""
        if kind == "Kustomization":
            spec = {"interval": "1h", "targetNamespace": namespace, **parts.pop("spec", {})}
            parts["spec"] = {key: value for key, value in spec.items() if value is not None}
        return await super().consumer(namespace, kind, name, **parts)

    async def commit(self, namespace: str, documents: Sequence[Object], name: str = "app1") -> str:
        """Commit these documents and no others into the repository of a source, and have it fetched; returns the commit."""
        commit = await self.git.commit(f"{namespace}-{name}", {"content.yaml": documents})
        await self._ask_for_a_run(GIT, namespace, name)
        await self.until(
            GIT, name, namespace, lambda found: commit in _revision(found), within=RUN_S, what=f"{commit} is fetched"
        )
        return commit

    async def delivered(self, namespace: str, documents: Sequence[Object], name: str = "own", **spec: Any) -> Object:
        """A local source with these documents, and a Kustomization of it; returns the Kustomization."""
        await self.source(namespace, name)
        await self.commit(namespace, documents, name)
        return await self.consumer(namespace, spec={"sourceRef": {"kind": "GitRepository", "name": name}, **spec})

    async def unnamed(self, namespace: str, name: str, **spec: Any) -> Object:
        """A source and a Kustomization of it that says nothing about an account; returns that as it is stored."""
        await self.source(namespace, name)
        spec = _unnamed(name, targetNamespace=namespace, **spec)
        return await self.admin.create(KUSTOMIZATION, obj(KUSTOMIZATION, name, namespace, spec=spec))

    async def fills(self, account: str) -> None:
        """Wait until an empty account is filled with this one; with none, that it stays empty."""
        place = await self.home()

        async def filled() -> bool:
            answer = await self.make(place, _unnamed("any"), dry=True)
            return answer.status == 201 and answer.body["spec"].get("serviceAccountName", "") == account

        await eventually(filled, within=POLICY_S, what=f"filled with {account or 'nothing'}")

    async def reconciled(self, consumer: Object) -> str:
        """Ask for a run, as ``flux reconcile`` does, and wait until it is over; returns what was asked for."""
        metadata = consumer["metadata"]
        asked = await self._ask_for_a_run(KUSTOMIZATION, metadata["namespace"], metadata["name"])

        def over(found: Object) -> bool:
            handled = (found.get("status") or {}).get("lastHandledReconcileAt") == asked
            return handled and find_condition(found, "Reconciling") is None

        await self._until(consumer, over, "the run is over")
        return asked

    async def ready(self, consumer: Object, commit: str = "") -> Object:
        """Wait until a commit, or whatever there is, is applied."""

        def applied(found: Object) -> bool:
            current = found["status"].get("observedGeneration") == found["metadata"]["generation"]
            return current and says(found, "True") and commit in found["status"].get("lastAppliedRevision", "")

        return await self._until(consumer, applied, f"Ready {commit}")

    async def failed(self, consumer: Object, *words: str, reason: str = FAILED) -> str:
        """Wait until a run has failed for a reason, with these words; returns all of them."""
        found = await self._until(
            consumer, lambda found: says(found, "False", reason) and all(each in message_of(found) for each in words), reason
        )
        return message_of(found)

    async def is_applied(self, namespace: str, name: str) -> bool:
        """Whether a ConfigMap is there."""
        return await self.admin.get(CONFIG_MAP, name, namespace) is not None

    async def applied(self, namespace: str, name: str) -> Object:
        """Wait until a ConfigMap is there."""
        return await self.until(CONFIG_MAP, name, namespace, bool, within=RUN_S)

    async def pruned(self, namespace: str, name: str) -> None:
        """Wait until a ConfigMap is gone."""
        await self.away(CONFIG_MAP, name, namespace, within=RUN_S)

    async def stays(self, consumer: Object, holds: Callable[[Object], bool], *, seconds: float) -> None:
        """For some seconds a Kustomization is there, and a condition holds for it, whatever is written."""
        name, namespace = consumer["metadata"]["name"], consumer["metadata"]["namespace"]
        listed = await self.admin.list(KUSTOMIZATION, namespace)
        assert [holds(each) for each in listed.items if each["metadata"]["name"] == name] == [True]
        changes = self.admin.watch(KUSTOMIZATION, namespace, resource_version=listed.resource_version, timeout_s=seconds)
        async with aclosing(changes) as seen:  # type: ignore[type-var]
            async for event, changed in seen:
                if changed["metadata"].get("name") == name:
                    assert event != "DELETED", changed
                    assert holds(changed), changed

    async def _until(self, consumer: Object, holds: Callable[[Object], Any], what: str) -> Object:
        metadata = consumer["metadata"]
        return await self.until(
            KUSTOMIZATION,
            metadata["name"],
            metadata["namespace"],
            lambda found: bool(found.get("status")) and holds(found),
            within=RUN_S,
            what=what,
        )

    async def _ask_for_a_run(self, kind: Kind, namespace: str, name: str) -> str:
        asked = token()
        path = kind.path(namespace, name)
        change = {"metadata": {"annotations": {REQUESTED_AT: asked}}}
        await self.admin.request("PATCH", path, None, change, MERGE)
        return asked


def _unnamed(source: str, **spec: Any) -> Object:
    return {"interval": "1h", "prune": True, "sourceRef": {"kind": "GitRepository", "name": source}, **spec}


def says(found: Object, status: str, reason: str = "") -> bool:
    """Whether Ready has a status, and a reason if one is given."""
    ready = find_condition(found, "Ready") or {}
    return ready.get("status") == status and reason in ("", ready.get("reason"))


def message_of(found: Object) -> str:
    """What Ready says."""
    return str((find_condition(found, "Ready") or {}).get("message", ""))


def _revision(source: Object) -> str:
    return str(((source.get("status") or {}).get("artifact") or {}).get("revision", ""))


async def applied_by(log: AuditLog, namespace: str, name: str) -> set[tuple[str, str]]:
    """Who wrote a ConfigMap, and did not only try it: each pair of the account that sent a request and the one that it played."""

    async def seen() -> set[tuple[str, str]]:
        return {
            (event["user"]["username"], event.get("impersonatedUser", {}).get("username", ""))
            for event in log.events()
            if (reference := event.get("objectRef"))
            and (reference["resource"], reference.get("namespace"), reference.get("name")) == ("configmaps", namespace, name)
            and event["responseStatus"]["code"] < 300
            and "dryRun=" not in event["requestURI"]
        }

    return await eventually(seen, what=f"who wrote {namespace}/{name}")
