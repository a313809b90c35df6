"""Releases that real Helm makes, HelmReleases that lock them, and what people look at afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from people import People, token
from times import CONTROLLER_S, LOCAL_S, PROJECTS_S, until

from tenantry.api import Api
from tenantry.local.control_plane import ensure_helm
from tenantry.local.followed import HANDOVER_S
from tenantry.local.knative import Knative
from tenantry.model.kinds import API_SERVER_SOURCE, CLUSTER_ROLE, CONFIG_MAP, EVENT, HELM_RELEASE, NAMESPACE, SECRET, Kind, Object
from tenantry.model.names import LOCKED_SOURCE, SYSTEM_NAMESPACE
from tenantry.testing import eventually
from tenantry.testing.audit import AuditLog
from tenantry.testing.helm import lockable, packed, unpacked
from tenantry.testing.objects import obj

FUNCTION = "lock-enforcement"
SYSTEM = "cattle-helm-system"
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
SERVICE = Kind("v1", "Service", "services")
POD = Kind("v1", "Pod", "pods")
JOB = Kind("batch/v1", "Job", "jobs")
PRIORITY_CLASS = Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False)

Parts = Mapping[str, Any]


def config_map(name: str, data: Mapping[str, str], **metadata: Any) -> Object:
    """A ConfigMap manifest without namespace."""
    return obj(CONFIG_MAP, name, metadata=metadata, data=dict(data))


def locking(**settings: Any) -> dict[str, Any]:
    """A configuration with these settings of the locker."""
    return {"helmProjectOperator": {"helmLocker": settings}}


def pod_hook(event: str) -> Object:
    """A hook that Helm waits for until somebody ends the pod: so a Helm operation is under way for as long as a test likes."""
    spec = {"restartPolicy": "Never", "containers": [{"name": "hook", "image": "hook"}]}
    return obj(POD, f"hook-{event}", annotations={"helm.sh/hook": event}, spec=spec)


async def end_hook(admin: Api, event: str, namespace: str, phase: str) -> None:
    """Play the kubelet: the pod of a hook has ended."""
    pod = await admin.get(POD, f"hook-{event}", namespace) or {}
    await admin.request("PUT", f"{POD.path(namespace, f'hook-{event}')}/status", None, {**pod, "status": {"phase": phase}})


class Helm:
    """The real ``helm`` for one cluster; charts are written as it is asked."""

    def __init__(self, kubeconfig: Path, folder: Path, program: Path | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._folder = folder
        self.program = program or ensure_helm()

    def chart(self, name: str, *documents: Object | str, notes: str = "") -> Path:
        """A chart whose templates are these documents, as they are, and these notes."""
        folder = self._folder / f"{name}-{token()}"
        templates = folder / "templates"
        templates.mkdir(parents=True)
        (folder / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": name, "version": "0.1.0"}))
        for number, document in enumerate(documents):
            text = document if isinstance(document, str) else yaml.safe_dump(document, sort_keys=False)
            (templates / f"{number:03}.yaml").write_text(text)
        if notes:
            (templates / "NOTES.txt").write_text(notes)
        return folder

    async def run(self, *arguments: str | Path, check: bool = True, driver: str = "secret") -> tuple[int, str]:
        """Run helm; returns its exit code and what it said.  When the caller is cancelled, it is killed."""
        environment = {
            **os.environ,
            "KUBECONFIG": str(self._kubeconfig),
            "HELM_DRIVER": driver,
            **{f"HELM_{part}_HOME": str(self._folder / part.lower()) for part in ("CACHE", "CONFIG", "DATA")},
        }
        process = await asyncio.create_subprocess_exec(
            self.program,
            *map(str, arguments),
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output = (await process.communicate())[0].decode()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        code = process.returncode or 0
        assert code == 0 or not check, output
        return code, output

    async def install(
        self, release: str, namespace: str, *documents: Object | str, driver: str = "secret", notes: str = ""
    ) -> None:
        """Install a chart of these documents."""
        await self.run("install", release, self.chart(release, *documents, notes=notes), "-n", namespace, driver=driver)

    async def upgrade(self, release: str, namespace: str, *documents: Object | str, flags: tuple[str, ...] = ()) -> None:
        """Upgrade to a chart of these documents."""
        await self.run("upgrade", release, self.chart(release, *documents), "-n", namespace, *flags)


class Locks(People):
    """Acts as an administrator, and waits for what locks do about it."""

    def __init__(self, admin: Api, knative: Knative | None = None) -> None:
        super().__init__(admin)
        self._knative = knative
        self._made: list[tuple[str, str]] = []
        self._places: dict[str, str] = {}
        self._namespaces: list[str] = []

    async def leave(self, sweep: Callable[[], Awaitable[None]] | None = None) -> None:
        """Take HelmReleases and namespaces away again, so that the next module's function does not look at them.

        ``sweep`` lets the function see it where it hears no events.
        """
        await asyncio.gather(*(self.admin.delete(HELM_RELEASE, *each) for each in self._made))
        if sweep is not None:
            await sweep()
        for each in self._made:
            await self.away(HELM_RELEASE, *each)
        for name in self._namespaces:
            await self.admin.delete(NAMESPACE, name)

    async def lockable(self, *kinds: Kind) -> None:
        """Let locks keep these kinds, as an administrator does."""
        for role in lockable(f"lockable-{token()}", *kinds):
            await self.give(role)

    async def give(self, *roles: Object) -> None:
        """Make ClusterRoles of `lockable`, and wait until they count."""
        for role in roles:
            await self.admin.create(CLUSTER_ROLE, role)
            (label,) = role["metadata"]["labels"]
            target = "tenantry-lock-enforcement-kinds" if label.endswith("locks") else "tenantry-lock-source-kinds"

            async def aggregated(name: str = target, wanted: list[Object] = role["rules"]) -> bool:
                found = await self.admin.get(CLUSTER_ROLE, name)
                resources = {each for rule in (found or {}).get("rules") or () for each in rule["resources"]}
                return all(rule["resources"][0] in resources for rule in wanted)

            await eventually(aggregated, within=CONTROLLER_S, what=f"rules of {role['metadata']['name']} in {target}")

    async def namespace(self, name: str) -> None:
        """Create a namespace."""
        await self.admin.create(NAMESPACE, obj(NAMESPACE, name))
        self._namespaces.append(name)

    async def lock(self, name: str, release: str, namespace: str, system: str = SYSTEM, **spec: Any) -> Object:
        """Make a HelmRelease."""
        body = obj(HELM_RELEASE, name, system, spec={"release": {"name": release, "namespace": namespace}, **spec})
        self._made.append((name, system))
        self._places[name] = namespace
        return await self.admin.create(HELM_RELEASE, body)

    async def release(self, helm: Helm, prefix: str, *documents: Object | str) -> str:
        """Install a chart of these documents in a namespace of its own and lock it: the name of all three."""
        name = f"{prefix}-{token()}"
        await self.namespace(name)
        await helm.install(name, name, *documents)
        await self.lock(name, name, name)
        await self.locked(name)
        return name

    async def swept(self) -> None:
        """Wait until everything is handled and a sweep has looked at all releases."""
        assert self._knative is not None
        await self._knative.drain()
        await self._knative.sweep(FUNCTION)

    async def status(self, name: str, holds: Callable[[Object], Any], within: float = PROJECTS_S) -> Object:
        """Wait until the status of a HelmRelease is so; returns it."""
        found = await self.until(HELM_RELEASE, name, SYSTEM, lambda found: holds(found.get("status") or {}), within=within)
        status: Object = found["status"]
        return status

    async def locked(self, name: str, version: int = 1) -> Object:
        """Wait until a HelmRelease keeps everything of a revision, and its namespace is watched: before, a deletion waits for
        the sweep."""
        status = await self.status(name, lambda status: status.get("lockedVersion") == version and true(status, "Complete"))
        if self._knative is not None:
            await self._watched(self._places[name], self._knative)
        return status

    async def _watched(self, namespace: str, knative: Knative) -> None:
        assert knative.followed is not None
        sources = knative.followed.sources

        def is_watched() -> bool:
            return LOCKED_SOURCE in sources and namespace in str(sources[LOCKED_SOURCE].spec.namespace_selector)

        await until(is_watched, what=f"{namespace} watched")
        with contextlib.suppress(TimeoutError):  # a kind that may not be watched never lists
            await asyncio.wait_for(sources[LOCKED_SOURCE].synced(), HANDOVER_S)

    async def events(self, regarding: str, namespace: str) -> list[Object]:
        """The events about objects of this name."""
        found = (await self.admin.list(EVENT, namespace)).items
        return [each for each in found if each["regarding"]["name"] == regarding]

    async def data(self, name: str, namespace: str, data: Mapping[str, str]) -> Object:
        """Wait until a ConfigMap has exactly this data."""
        return await self.until(CONFIG_MAP, name, namespace, lambda found: found.get("data") == dict(data))


def condition(status: Object, type_: str) -> Object:
    """A condition in a status; empty when it is not there."""
    return next((found for found in status.get("conditions") or () if found["type"] == type_), {})


def true(status: Object, type_: str) -> bool:
    """Whether a condition is True."""
    return condition(status, type_).get("status") == "True"


def written(audit_log: AuditLog, namespace: str) -> list[str]:
    """Every request by which lock-enforcement meant to change an object of a namespace, changing or not; not its dry runs."""
    found = []
    for event in audit_log.of(FUNCTION):
        reference = event.get("objectRef") or {}
        if (
            reference.get("namespace") == namespace
            and event["verb"] not in ("get", "list", "watch")
            and "dryRun" not in event["requestURI"]
        ):
            found.append(f"{event['verb']} {reference['resource']} {reference.get('name', '')}")
    return found


def copy_of(record: Object, release: str, manifest: str, namespace: str = "") -> Object:
    """The record of another release with another manifest, as Helm would have written it."""
    name = f"sh.helm.release.v1.{release}.v1"
    namespace = namespace or record["metadata"]["namespace"]
    labels = {**record["metadata"]["labels"], "name": release}
    content = {**unpacked(record), "name": release, "namespace": namespace, "manifest": manifest}
    return obj(SECRET, name, namespace, labels=labels, type="helm.sh/release.v1", data={"release": packed(content)})


def marked_for(release: str, namespace: str, obj: Object) -> Object:
    """An object as Helm makes it for a release."""
    marks = {"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": namespace}
    labels = {**obj["metadata"].get("labels", {}), "app.kubernetes.io/managed-by": "Helm"}
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace, "labels": labels, "annotations": marks}}


async def watched(admin: Api, namespace: str, wanted: bool) -> None:
    """Wait until the source that lock-enforcement makes looks at a namespace, or does not."""

    async def is_so() -> bool:
        source = await admin.get(API_SERVER_SOURCE, LOCKED_SOURCE, SYSTEM_NAMESPACE)
        return (source is not None and namespace in json.dumps(source["spec"]["namespaceSelector"])) is wanted

    await eventually(is_so, within=LOCAL_S, what=f"{namespace} watched: {wanted}")
