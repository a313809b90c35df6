"""Releases of projects that real Helm makes by its Jobs, beside their owners, for attacks on what Helm reads and runs."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from attackers import cluster_admin
from helm_people import NEEDY
from locking import pod_hook
from people import changed, registration, token
from releases import CONFIG, DUMMY, SYSTEM, Owners
from times import PROJECTS_S

from lock_enforcement.helm import release_in_name
from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, ApiError, Forbidden
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    DEPLOYMENT,
    HELM_CHART,
    NAMESPACE,
    PROJECT_HELM_CHART,
    ROLE_BINDING,
    SECRET,
    Kind,
    Object,
    is_terminating,
    labels_of,
)
from tenantry.model.pointer import pointer
from tenantry.testing import eventually
from tenantry.testing.helm import packed, unpacked
from tenantry.testing.objects import obj

GUARD = "tenantry-guard-records"
PLAIN, WIDE, NAMED = (DUMMY, "wide.example.com/v1", "named.example.com/v1")
"""Charts with the default role, with cluster-admin, and with a role of their own."""
OWN_ROLE = "tests-named-installer"
KEPT = """\
{{- if .Values.quota }}
apiVersion: v1
kind: ResourceQuota
metadata:
  name: {{ .Release.Name }}
spec:
  hard:
    configmaps: "1000"
{{- end }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ .Release.Name }}-data
stringData:
  kept: data
{{- range .Values.hooks }}
---
"""


def chart(folder: Path) -> Path:
    """A chart with a ConfigMap, a Secret with data, and as many hooks that wait as its values say."""
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: tiny\nversion: 1.0.0\n")
    (folder / "values.yaml").write_text("hooks: []\nquota: false\n")
    hook = yaml.safe_dump(pod_hook("@")).replace("@", "{{ . }}")
    (folder / "templates" / "greeting.yaml").write_text(NEEDY)
    (folder / "templates" / "kept.yaml").write_text(KEPT + hook + "{{- end }}\n")
    return folder


def configuration(folder: Path, *, dedicated: bool) -> dict[str, Any]:
    """Three charts; releases in the registration namespace, or in namespaces of their own."""
    names = {PLAIN: {}, WIDE: {"jobClusterRole": "cluster-admin"}, NAMED: {"jobClusterRole": OWN_ROLE}}
    charts = [
        {"helmApiVersion": version, "releaseName": version.partition(".")[0], "chart": str(folder), **more}
        for version, more in names.items()
    ]
    places = {"projectReleaseNamespaces": {"enabled": dedicated}}
    return changed(CONFIG, operator={"charts": charts, "helmController": {"enabled": True}, **places})


def own_role() -> Object:
    """The role that an administrator names for one chart: that of every chart, and quotas."""
    rules = [
        {"apiGroups": ["*"], "resources": ["secrets", "configmaps", "pods", "resourcequotas"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]},
    ]
    return obj(CLUSTER_ROLE, OWN_ROLE, rules=rules)


@dataclass(frozen=True)
class Scene:
    """A project's release that Helm's Job has made, and a neighbour."""

    owners: Owners
    project: str
    name: str
    home: str
    """The namespace of the release."""
    other: str
    """A namespace of the neighbour."""
    release: str
    version: str

    @property
    def admin(self) -> Api:
        """The administrator's client."""
        return self.owners.admin

    @property
    def record_name(self) -> str:
        """Helm's first record of the release."""
        return f"sh.helm.release.v1.{self.release}.v1"

    @property
    def eve(self) -> str:
        """Who has the whole cluster where a forged record works."""
        return f"eve-{self.release}"

    def hooks(self, *events: str) -> list[Object]:
        """Hooks for a record that give her the whole cluster."""
        return [hook(cluster_admin(self.eve), *events)]

    async def record(self) -> Object:
        """Helm's first record, as it is."""
        return await self.owners.get(SECRET, self.record_name, self.home)

    async def revisions(self) -> list[tuple[int, str]]:
        """Revisions of the release and their status, oldest first."""
        found = (await self.admin.list(SECRET, self.home, label_selector=f"owner=helm,name={self.release}")).items
        return sorted((int(labels_of(each)["version"]), labels_of(each)["status"]) for each in found)

    async def greets(self, greeting: str) -> None:
        """Wait until the release says this."""
        await self.owners.until(CONFIG_MAP, self.release, self.home, lambda found: found["data"]["greeting"] == greeting)

    async def complete(self) -> None:
        """Wait until Helm has done what is asked for, and the account of its Job has no rights any more."""

        def done(found: Object) -> bool:
            newest = (found.get("status") or {}).get("observedGeneration") == found["metadata"]["generation"]
            return newest and (find_condition(found, "Failed") or {}).get("reason") == "Complete"

        await self.owners.until(HELM_CHART, self.release, SYSTEM, done)
        await self.without_rights()

    async def without_rights(self) -> None:
        """Wait until nothing binds the account of the Job."""
        await eventually(self.bindings, lambda found: found == [], within=PROJECTS_S, what=f"nothing binds helm-{self.release}")

    async def bindings(self) -> list[str]:
        """What binds the account of the Job, wherever it is, with the role."""
        found = [each for kind in (ROLE_BINDING, CLUSTER_ROLE_BINDING) for each in (await self.admin.list(kind)).items]
        bound = ("ServiceAccount", SYSTEM, f"helm-{self.release}")
        return [
            f"{each['kind']} {each['metadata'].get('namespace', '')} {each['roleRef']['name']}"
            for each in found
            if bound in [(one["kind"], one.get("namespace"), one["name"]) for one in each.get("subjects") or ()]
        ]

    async def change(self, by: Api, greeting: str, **more: Any) -> None:
        """Ask for other values, as somebody."""
        values = {"greeting": greeting, **more}
        await by.json_patch(
            PROJECT_HELM_CHART, self.name, registration(self.project), [{"op": "add", "path": "/spec/values", "value": values}]
        )

    async def unwanted(self, by: Api) -> None:
        """Delete the ProjectHelmChart, as somebody."""
        await by.delete(PROJECT_HELM_CHART, self.name, registration(self.project))

    async def says(self, reason: str) -> str:
        """Wait until the HelmChart has this reason in its condition ``Failed``; returns the words."""
        chart_ = await self.owners.until(
            HELM_CHART, self.release, SYSTEM, lambda found: (find_condition(found, "Failed") or {}).get("reason") == reason
        )
        return str((find_condition(chart_, "Failed") or {})["message"])

    async def gone(self) -> None:
        """Wait until the release is uninstalled."""
        await self.owners.away(HELM_CHART, self.release, SYSTEM)

    async def still_works(self, by: Api, greeting: str) -> None:
        """What the victim had: an upgrade by values, with the data of the release where it was."""
        kept = await self.owners.get(SECRET, f"{self.release}-data", self.home)
        await self.change(by, greeting)
        await self.greets(greeting)
        await self.complete()
        after = await self.owners.get(SECRET, f"{self.release}-data", self.home)
        assert after["metadata"]["uid"] == kept["metadata"]["uid"]


async def release(owners: Owners, version: str, *, dedicated: bool, **values: Any) -> Scene:
    """A project with a release of a chart, and another project."""
    project, other = await owners.project(), await owners.project()
    name = f"r-{token()}"
    await owners.ask(name, project, version=version, values={"greeting": "hello", **values})
    release_name = f"{name}-{version.partition('.')[0]}"
    home = release_name if dedicated else registration(project)
    return Scene(owners, project, name, home, f"a1-{other}", release_name, version)


async def refused(write: Awaitable[Any]) -> str:
    """The words with which the API server refuses a write; empty when it does not."""
    try:
        await write
    except (Forbidden, AdmissionDenied) as error:
        return error.message
    return ""


def says_why(words: str) -> None:
    """The refusal names the policy, the rule and the way out."""
    assert GUARD in words
    assert "records.tenantry.dev" in words
    assert "ProjectHelmChart" in words


async def may(read: Awaitable[Any]) -> bool:
    """Whether a request is allowed."""
    try:
        await read
    except Forbidden:
        return False
    except ApiError:
        return True
    return True


# -- forged records ------------------------------------------------------------------------------------------


def hook(obj: Object, *events: str) -> Object:
    """An object as a hook of a release, as a record has it."""
    return {
        "name": obj["metadata"]["name"],
        "kind": obj["kind"],
        "path": "tiny/templates/hook.yaml",
        "manifest": json.dumps(obj),
        "events": list(events),
        "last_run": {"phase": ""},
        "delete_policies": [],
    }


def steps_to_rewrite(record: Object, status: str = "", **content: Any) -> list[Object]:
    """The change of a real record into a forged one, as JSON patch."""
    release_ = {**unpacked(record), **content}
    steps: list[Object] = []
    if status:
        release_["info"] = {**release_["info"], "status": status}
        steps.append({"op": "replace", "path": "/metadata/labels/status", "value": status})
    return [{"op": "replace", "path": pointer("data", "release"), "value": packed(release_)}, *steps]


async def rewrite(scene: Scene, attacker: Api, record: Object, status: str = "", **content: Any) -> str:
    """Forge a real record as the attacker; where that is refused, as an administrator, since what Helm may do must stop it too.

    Returns the words of the refusal.
    """
    where, steps = (SECRET, record["metadata"]["name"], scene.home), steps_to_rewrite(record, status, **content)
    words = await refused(attacker.json_patch(*where, steps))
    if words:
        await scene.admin.json_patch(*where, steps)
    return words


async def victims(scene: Scene) -> list[tuple[Kind, Object]]:
    """A Secret, a Deployment and the namespace itself of the neighbour, as they are."""
    labels = {"app": "theirs"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "c"}]}}
    secret = obj(SECRET, "theirs", scene.other, stringData={"a": "1"})
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod}
    deployment = obj(DEPLOYMENT, "theirs", scene.other, spec=spec)
    made = [(SECRET, await scene.admin.create(SECRET, secret)), (DEPLOYMENT, await scene.admin.create(DEPLOYMENT, deployment))]
    return [*made, (NAMESPACE, await scene.owners.get(NAMESPACE, scene.other))]


async def unharmed(scene: Scene, before: list[tuple[Kind, Object]]) -> None:
    """Nothing of the neighbour was changed or deleted; what controllers write into a status apart."""
    for kind, was in before:
        live = await scene.owners.get(kind, was["metadata"]["name"], was["metadata"].get("namespace", ""))
        assert not is_terminating(live)
        assert live["metadata"]["uid"] == was["metadata"]["uid"]
        assert (live.get("spec"), live.get("data")) == (was.get("spec"), was.get("data"))


async def records_of(api: Api, namespace: str) -> list[str]:
    """The names of Helm's records in a namespace."""
    found = (await api.list(SECRET, namespace)).items
    return sorted(each["metadata"]["name"] for each in found if release_in_name(each["metadata"]["name"]))
