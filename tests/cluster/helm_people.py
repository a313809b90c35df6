"""Short forms for what the tests of HelmCharts do over and over: tiny charts, HelmCharts, releases."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from people import People
from times import HELM_S

from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CONFIG_MAP, HELM_CHART, HELM_CHART_CONFIG, JOB, SECRET, Kind, Object, is_terminating
from tenantry.testing import eventually
from tenantry.testing.objects import obj

FUNCTION = "release-provisioning"
SYSTEM = "helm-jobs-system"
CORE_EVENT = Kind("v1", "Event", "events")
HELM_CONFIG: dict[str, Any] = {
    "helmProjectOperator": {
        "systemNamespace": SYSTEM,
        "charts": [
            {"helmApiVersion": "dummy.cattle.io/v1alpha1", "releaseName": "dummy"},
            {"helmApiVersion": "narrow.cattle.io/v1alpha1", "releaseName": "narrow", "jobClusterRole": "admin"},
            {"helmApiVersion": "least.cattle.io/v1alpha1", "releaseName": "least", "jobClusterRole": "tenantry-helm-job"},
        ],
    },
}
"""Charts without a role of their own, with ``admin``, and with the role that we ship."""

NEEDY = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  greeting: {{ required "greeting is needed" .Values.greeting | quote }}
"""
"""A ConfigMap that cannot be rendered without a greeting."""
GREETING = (
    NEEDY
    + """\
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .Release.Name }}
rules:
  - apiGroups: [""]
    resources: [configmaps]
    verbs: [get]
"""
)


def chart_archive(**templates: str) -> str:
    """A chart with these templates, packed as ``spec.chartContent`` wants it."""
    files = {"Chart.yaml": "apiVersion: v2\nname: tiny\nversion: 1.0.0\n", "values.yaml": "{}\n"}
    files |= {f"templates/{name}.yaml": text for name, text in (templates or {"greeting": GREETING}).items()}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"tiny/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return base64.b64encode(packed.getvalue()).decode()


def helm_chart(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    """A HelmChart for a namespace of its own name, with the tiny chart unless another is given."""
    wanted = {"chart": "tiny", "chartContent": chart_archive(), "targetNamespace": name, "createNamespace": True, **spec}
    spec = {field: value for field, value in wanted.items() if value is not None}
    return obj(HELM_CHART, name, SYSTEM, annotations=annotations, spec=spec)


class HelmPeople:
    """An administrator who works with HelmCharts."""

    def __init__(self, people: People) -> None:
        self.people = people
        self.admin = people.admin

    async def ask(self, name: str, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
        """Create a HelmChart."""
        return await self.admin.create(HELM_CHART, helm_chart(name, annotations, **spec))

    async def change(self, name: str, **spec: Any) -> None:
        """Set fields of a HelmChart's spec."""
        for field, value in spec.items():
            await self.people.edit(HELM_CHART, name, SYSTEM, ("add", f"/spec/{field}", value))

    async def configure(self, name: str, **spec: Any) -> None:
        """Make a HelmChartConfig."""
        await self.admin.create(HELM_CHART_CONFIG, obj(HELM_CHART_CONFIG, name, SYSTEM, spec=spec))

    async def secret(self, name: str, **data: str) -> None:
        """Make a Secret beside the HelmCharts."""
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
        await self.admin.create(SECRET, obj(SECRET, name, SYSTEM, data=encoded))

    async def says(self, name: str, reason: str, *, current: bool = True, within: float = HELM_S) -> Object:
        """Wait until the condition ``Failed`` of a HelmChart has this reason; with ``current`` for its newest generation."""

        def holds(chart: Object) -> bool:
            newest = (chart.get("status") or {}).get("observedGeneration") == chart["metadata"]["generation"]
            return (newest or not current) and (find_condition(chart, "Failed") or {}).get("reason") == reason

        chart = await self.people.until(HELM_CHART, name, SYSTEM, holds, within=within, what=f"{name} says {reason}")
        found = find_condition(chart, "Failed")
        assert found is not None
        return found

    async def greets(self, name: str, greeting: str, *, within: float = HELM_S) -> None:
        """Wait until the release's ConfigMap greets."""
        await self.people.until(CONFIG_MAP, name, name, lambda found: found["data"]["greeting"] == greeting, within=within)

    async def releases(self, name: str) -> list[tuple[int, str]]:
        """Revisions of the release and their status, oldest first."""
        found = await self.admin.list(SECRET, name, label_selector=f"owner=helm,name={name}")
        labels = [secret["metadata"]["labels"] for secret in found.items]
        return sorted((int(one["version"]), one["status"]) for one in labels)

    async def job(self, name: str) -> Object:
        """The Job that installs and upgrades."""
        return await self.people.get(JOB, f"helm-install-{name}", SYSTEM)

    async def watched(self, kind: Kind) -> Callable[[str], Awaitable[tuple[Object, bool]]]:
        """From now on: what was made of a kind by name, and whether it was deleted, as a watch tells it afterwards."""
        since = (await self.admin.list(kind, limit=1)).resource_version

        async def look(name: str) -> tuple[Object, bool]:
            made: Object = {}
            async with aclosing(self.admin.watch(kind, "", resource_version=since, timeout_s=60)) as told:  # type: ignore[type-var]
                async for change, obj in told:
                    if change != "BOOKMARK" and obj["metadata"]["name"] == name:
                        made = made or obj
                        if change == "DELETED":
                            return made, True
            return made, False

        return look

    async def gone(self, kind: Kind, name: str, namespace: str = SYSTEM, *, within: float = HELM_S) -> None:
        """Wait until an object is gone."""
        await self.people.away(kind, name, namespace, within=within)

    async def reasons(self, name: str) -> set[str]:
        """The reasons of the Events about a HelmChart."""
        return {event["reason"] for event in await self.events(name)}

    async def events(self, name: str) -> list[Object]:
        """The Events about a HelmChart."""
        fields = f"involvedObject.kind=HelmChart,involvedObject.name={name}"
        return (await self.admin.list(CORE_EVENT, SYSTEM, field_selector=fields)).items

    async def told(self, name: str, reason: str, *, saying: str = "", within: float = HELM_S) -> str:
        """Wait for an Event about a HelmChart, with some words in it; returns its text."""

        async def check() -> str:
            events = [event for event in await self.events(name) if event["reason"] == reason]
            return next((event["message"] for event in events if saying in event["message"]), "")

        return await eventually(check, within=within, what=f"an Event {reason} on {name}")

    async def remember(self, name: str, revision: int, status: str) -> None:
        """Leave the record of a run that was killed: revision ``revision`` of a release in a pending status."""
        newest = (await self.releases(name))[-1][0]
        record = await self.people.get(SECRET, f"sh.helm.release.v1.{name}.v{newest}", name)
        content = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(record["data"]["release"]))))
        content["version"] = revision
        content["info"] |= {"status": status}
        packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(content).encode()))).decode()
        labels = record["metadata"]["labels"] | {"version": str(revision), "status": status}
        made = obj(
            SECRET, f"sh.helm.release.v1.{name}.v{revision}", name, labels=labels, type=record["type"], data={"release": packed}
        )
        if revision == newest:
            await self.admin.delete(SECRET, made["metadata"]["name"], name)
        await self.admin.create(SECRET, made)


def is_alive(obj: Object | None) -> bool:
    """Whether an object is there and stays."""
    return obj is not None and not is_terminating(obj)
