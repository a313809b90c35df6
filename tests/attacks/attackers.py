"""Attackers with rights of their own, and the records that they forge.

An attacker is a ServiceAccount with a RoleBinding where he is somebody, and a token: what he may not do, the API server refuses.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import yaml
from people import token

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, Forbidden
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, ROLE_BINDING, SECRET, SERVICE_ACCOUNT, Kind, Object, labels_of
from tenantry.testing.audit import AuditLog
from tenantry.testing.helm import packed, unpacked

LEVELS = {"owner": "admin", "editor": "edit"}
"""Who has which ClusterRole in his namespaces."""
HOME = "attackers"


class Attackers:
    """Makes attackers for one cluster; their clients are closed at the end."""

    def __init__(self, admin: Api, kubeconfig: Path, folder: Path) -> None:
        self.admin = admin
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Attackers:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def someone(self, actor: str, *namespaces: str) -> Api:
        """An owner or editor of namespaces, as a client of his own."""
        name = f"{actor}-{token()}"
        if await self.admin.get(NAMESPACE, HOME) is None:
            await self.admin.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
        metadata = {"name": name, "namespace": HOME}
        await self.admin.create(SERVICE_ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        group = "rbac.authorization.k8s.io"
        for namespace in namespaces:
            binding = {
                "apiVersion": ROLE_BINDING.api_version,
                "kind": ROLE_BINDING.kind,
                "metadata": {"name": name, "namespace": namespace},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": LEVELS[actor]},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": HOME}],
            }
            await self.admin.create(ROLE_BINDING, binding)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        answer = await self.admin.request("POST", SERVICE_ACCOUNT.path(HOME, name) + "/token", None, request)
        config = yaml.safe_load(self._kubeconfig.read_text())
        for user in config["users"]:
            user["user"] = {"token": answer["status"]["token"]}
        for cluster in config["clusters"]:
            if authority := cluster["cluster"].get("certificate-authority"):
                cluster["cluster"]["certificate-authority"] = str((self._kubeconfig.parent / authority).resolve())
        path = self._folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))
        return await self._stack.enter_async_context(await Api.connect(field_manager=actor, kubeconfig=path))

    async def plant(self, attacker: Api, kind: Kind, record: Object) -> bool:
        """Write a forged record as the attacker; where that is refused already, as an administrator: the lock must hold too.

        Returns whether the attacker could.
        """
        try:
            await attacker.create(kind, record)
        except (Forbidden, AdmissionDenied):
            await self.admin.create(kind, record)
            return False
        return True


def forged(record: Object, revision: int, *objects: Object, kind: Kind = SECRET, **more: Any) -> Object:
    """A newer record of the release of a real one, with a manifest of these objects, as Helm would have written it."""
    labels = {**labels_of(record), "version": str(revision), "status": "deployed"}
    release = labels["name"]
    content = {**unpacked(record), "version": revision, "manifest": manifest(objects), **more}
    content["info"] = {**content["info"], "status": "deployed"}
    metadata = {
        "name": f"sh.helm.release.v1.{release}.v{revision}",
        "namespace": record["metadata"]["namespace"],
        "labels": labels,
    }
    body: Object = {"apiVersion": "v1", "kind": kind.kind, "metadata": metadata}
    if kind == CONFIG_MAP:
        return {**body, "data": {"release": once(packed(content))}}
    return {**body, "type": "helm.sh/release.v1", "data": {"release": packed(content)}}


def once(text: str) -> str:
    """A Secret's data as a ConfigMap has it."""
    return base64.b64decode(text).decode()


def manifest(objects: Sequence[Object]) -> str:
    """Objects as the text of a manifest."""
    return "".join(f"---\n{json.dumps(each)}\n" for each in objects)


def asked(audit_log: AuditLog, account: str, place: str) -> list[str]:
    """What a ServiceAccount of ours asked for by this namespace or name, as ``verb resource namespace/name``."""
    user = f"system:serviceaccount:tenantry-system:{account}"
    found = []
    for line in audit_log._log.read_bytes().splitlines():
        if place.encode() not in line:
            continue
        event = json.loads(line)
        reference = event.get("objectRef") or {}
        if event["user"]["username"] == user and place in (reference.get("namespace"), reference.get("name")):
            found.append(f"{event['verb']} {reference['resource']} {reference.get('namespace')}/{reference.get('name')}")
    return found
