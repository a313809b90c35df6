"""The pod of the ledger of a cluster, for tests: the installation that it is part of, its volumes, and what is sent to it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import aiohttp
import manifests
import pytest
import yaml
from knative_pods import SYSTEM
from ledgers import now
from manifests import Body, Document
from people import token
from pod_process import Mount, PodProcess
from times import LOCAL_S

from tenantry.api import Api
from tenantry.model.event import DECISION_TYPE, Event
from tenantry.model.kinds import CONFIG_MAP, SECRET, Object
from tenantry.serving.cloudevents import encode_binary
from tenantry.serving.signing import SIGNATURE, signature
from tenantry.testing import eventually

KEY, SECRET_NAME = b"5" * 64, "tenantry-decisions"
CONFIG: dict[str, Any] = {
    "helmProjectOperator": {"charts": [{"helmApiVersion": "dummy.cattle.io/v1alpha1", "releaseName": "dummy"}]},
    "decisions": {"enabled": True, "ledger": {"maxMegabytes": 1}},
}
BEGAN_MS = 1_700_000_000_000
LEDGER = {"app.kubernetes.io/component": "ledger"}


class InPod:
    """What `tenantry.local.knative` uses of its own ledger, for one that runs as a pod and is found by its Service."""

    path = None

    def __init__(self, url: str, key: Path) -> None:
        self.url, self.key = url, key

    async def open(self, *_: object) -> None:
        """It is open."""

    async def close(self) -> None:
        """Others do."""


def of_docs(words: str) -> str:
    """The one block of YAML in docs/history.md that has these words."""
    text = (manifests.ROOT / "docs" / "history.md").read_text(encoding="utf-8")
    (found,) = [each for each in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if words in each]
    return str(found)


def installation(root: Path, kustomize: list[str]) -> list[Document]:
    """What kustomize makes, in a folder, of the installation that docs/history.md describes, on plain Deployments."""
    for folder in manifests.FOLDERS:
        shutil.copytree(manifests.ROOT / folder, root / folder)
    own = root / "own"
    own.mkdir()
    (own / "tenantry.yaml").write_text(yaml.safe_dump(CONFIG))
    patch = '[{"op": "replace", "path": "/spec/delivery/deadLetterSink/ref/apiVersion", "value": "v1"}]'
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["../knative/overlays/deployment"],
        "components": ["../knative/ledger"],
        "configMapGenerator": [
            {"name": "tenantry-config", "namespace": SYSTEM, "behavior": "replace", "files": ["tenantry.yaml"]}
        ],
        "patches": [{"target": {"kind": "Trigger", "name": "ledger"}, "patch": patch}],
    }
    (own / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(manifests, "ROOT", root)
        return manifests.render(own, kustomize)


def of_ledger(rendered: list[Document]) -> list[Document]:
    """What the component adds, and what its pod refers to; a Trigger is Knative's."""
    by_name = [each for each in rendered if each.name in ("ledger", "tenantry-ledger-in") and each.kind != "Trigger"]
    shared = {"ResourceQuota", "PriorityClass", "LimitRange"}
    return [each for each in rendered if each.kind in shared or each.name.startswith("tenantry-config")] + by_name


async def volumes(admin: Api, pod: Body, root: Path) -> dict[str, Mount]:
    """The volumes of the pod by name: what the API server has in ConfigMap and Secret, memory, and a folder for the claim."""
    found: dict[str, Mount] = {}
    root.chmod(0o755)
    for volume in pod["spec"]["volumes"]:
        folder = root / volume["name"]
        folder.mkdir()
        match volume:
            case {"configMap": {"name": name}}:
                data = ((await admin.get(CONFIG_MAP, name, SYSTEM)) or {})["data"]
                for file, text in data.items():
                    (folder / file).write_text(text)
            case {"secret": {"secretName": name}}:
                assert name == SECRET_NAME
                data = ((await admin.get(SECRET, name, SYSTEM)) or {})["data"]
                for file, text in data.items():
                    (folder / file).write_bytes(base64.b64decode(text))
            case {"persistentVolumeClaim": {"claimName": "ledger"}}:
                as_claim(folder, pod)
            case {"emptyDir": {"sizeLimit": size}}:
                found[volume["name"]] = Mount(size=size.removesuffix("i"))
                continue
            case _:
                pytest.fail(f"a volume that this test does not know: {volume}")
        folder.chmod(folder.stat().st_mode | 0o055)
        found[volume["name"]] = Mount(folder)
    return found


def as_claim(folder: Path, pod: Body) -> Path:
    """A folder as a kubelet gives a volume to a pod with an fsGroup."""
    if os.geteuid() == 0:
        os.chown(folder, 0, pod["spec"]["securityContext"]["fsGroup"])
    folder.chmod(0o2775)
    return folder


def asked(ledger: PodProcess, *arguments: str) -> Any:
    """What `kubectl exec deploy/ledger -- tenantry history` says, as JSON."""
    result = ledger.exec("tenantry", "history", *arguments, "--limit", "100000", "-o", "json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


async def until_told(ledger: PodProcess, what: str, count: int = 1) -> list[Object]:
    """Wait until the ledger has so many decisions about something."""

    async def found() -> list[Object]:
        return list((await asyncio.to_thread(asked, ledger, what))["decisions"])

    return await eventually(found, lambda each: len(each) >= count, within=LOCAL_S, what=f"decisions about {what}")


async def post(ledger: PodProcess, number: int, *, writes: int = 1, signed: bool = True) -> int:
    """Post a decision as a function would; returns the status."""
    many = [
        {"verb": "create", "apiVersion": "v1", "kind": "ConfigMap", "namespace": f"n-{number}", "name": f"c-{each}-{token()}"}
        for each in range(writes)
    ]
    data = {
        "type": DECISION_TYPE, "instance": "f-1", "sequence": number, "function": "f", "service": "f", "time": now(),
        "unit": "projects", "owner": "project/p-many", "causes": [], "inputs": [], "writes": many,
        "verdict": {"status": 204, "reason": "done", "complete": True}, "beganMs": BEGAN_MS + 10 * number, "durationMs": 1,
    }  # fmt: skip
    more = {SIGNATURE: signature(KEY, data)} if signed else {}
    event = Event(f"f-1-{number}", "/tenantry/f", DECISION_TYPE, datacontenttype="application/json", extensions=more, data=data)
    headers, body = encode_binary(event)
    async with (
        aiohttp.ClientSession(trust_env=False) as session,
        session.post(f"{ledger.address('http')}/", data=body, headers=headers) as answer,
    ):
        await answer.read()
        return answer.status
