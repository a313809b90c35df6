"""Attackers with rights of their own, and the records that they forge.

An attacker is a ServiceAccount with a RoleBinding where he is somebody, and a token: what he may not do, the API server refuses.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from people import token
from rights import account, cluster_role, user

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, Forbidden
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    NAMESPACE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Kind,
    Object,
    labels_of,
)
from tenantry.testing import eventually
from tenantry.testing.audit import AuditLog
from tenantry.testing.helm import packed, unpacked
from tenantry.testing.objects import obj

LEVELS = {"owner": "admin", "editor": "edit"}
"""Who has which ClusterRole in his namespaces."""
HOME = "attackers"
_WRITE = ["get", "list", "create", "update", "patch"]
RULES: dict[str, list[Object]] = {
    # As on self-service clusters: may make namespaces and write their labels and annotations, in every way that the API has.
    "labeller": [{"apiGroups": [""], "resources": ["namespaces", "namespaces/status", "namespaces/finalize"], "verbs": _WRITE}],
    # May write every other kind that we read marks from, and their status, and hold no right that those give.
    "marker": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": _WRITE},
        {
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
            "verbs": _WRITE,
        },
        {
            "apiGroups": ["helm.cattle.io"],
            "resources": [
                *("helmcharts", "helmreleases", "projecthelmcharts"),
                *("helmcharts/status", "helmreleases/status", "projecthelmcharts/status"),
            ],
            "verbs": _WRITE,
        },
        {"apiGroups": ["operator.ibm.com"], "resources": ["namespacescopes", "namespacescopes/status"], "verbs": _WRITE},
        {
            "apiGroups": ["operators.coreos.com", "operators.io.operator-framework"],
            "resources": ["scopetemplates", "scopetemplates/status", "scopeinstances", "scopeinstances/status"],
            "verbs": _WRITE,
        },
    ],
}
"""Who has rights in the whole cluster, and which."""


class Attackers:
    """Makes attackers for one cluster; their clients are closed at the end."""

    def __init__(self, admin: Api, kubeconfig: Path, folder: Path) -> None:
        self.admin = admin
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._names: dict[Api, str] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Attackers:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def someone(self, actor: str, *namespaces: str) -> Api:
        """An owner or editor of namespaces, or who has `RULES` in all of them, as a client of his own."""
        name = f"{actor}-{token()}"
        if await self.admin.get(NAMESPACE, HOME) is None:
            await self.admin.create(NAMESPACE, obj(NAMESPACE, HOME))
        await self.admin.create(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, name, HOME))
        for namespace in namespaces:
            await self._bind(name, LEVELS[actor], namespace)
        if actor in RULES:
            await self._allow(name, RULES[actor])
        api = await self.thief(HOME, name, actor)
        self._names[api] = name
        return api

    async def thief(self, namespace: str, account: str, actor: str = "thief") -> Api:
        """Who has a token of a ServiceAccount, as a client of his own."""
        path = await self._kubeconfig_of(namespace, account)
        return await self._stack.enter_async_context(await Api.connect(field_manager=actor, kubeconfig=path))

    async def kubeconfig(self, actor: str, namespace: str, *cluster_roles: str) -> Path:
        """The kubeconfig of an owner or editor, who has these ClusterRoles in his namespace, too."""
        attacker = await self.someone(actor, namespace)
        name = self._names[attacker]
        for role in cluster_roles:
            await self._bind(name, role, namespace, called=role)
        return await self._kubeconfig_of(HOME, name)

    async def _kubeconfig_of(self, namespace: str, account: str) -> Path:
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        answer = await self.admin.request("POST", SERVICE_ACCOUNT.path(namespace, account) + "/token", None, request)
        config = yaml.safe_load(self._kubeconfig.read_text())
        for each in config["users"]:
            each["user"] = {"token": answer["status"]["token"]}
        for cluster in config["clusters"]:
            if authority := cluster["cluster"].get("certificate-authority"):
                cluster["cluster"]["certificate-authority"] = str((self._kubeconfig.parent / authority).resolve())
        path = self._folder / f"{account}-{token()}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))
        return path

    async def allow(self, attacker: Api, *rules: Object) -> None:
        """Give somebody further rights in the whole cluster, and wait until the API server knows."""
        await self._allow(self._names[attacker], rules)
        attributes = {"verb": rules[0]["verbs"][0], "group": rules[0]["apiGroups"][0], "resource": rules[0]["resources"][0]}
        attributes["name"] = next(iter(rules[0].get("resourceNames", ())), "")
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        body = {**review, "spec": {"resourceAttributes": attributes}}

        async def known() -> bool:
            answer = await attacker.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", None, body)
            return bool(answer["status"]["allowed"])

        await eventually(known, within=10, what=f"{self._names[attacker]} may {attributes}")

    async def _allow(self, name: str, rules: Sequence[Object]) -> None:
        role = f"{name}-{token()}"
        await self.admin.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, role, rules=list(rules)))
        await self._bind(name, role)

    async def _bind(self, name: str, role: str, namespace: str = "", called: str = "") -> None:
        kind = ROLE_BINDING if namespace else CLUSTER_ROLE_BINDING
        binding = obj(
            kind,
            called or (role if not namespace else name),
            namespace,
            roleRef=cluster_role(role),
            subjects=[account(name, HOME)],
        )
        await self.admin.create(kind, binding)

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


async def refused(work: Awaitable[object], *words: str) -> str:
    """A policy refuses, and says these words; returns all that it says."""
    with pytest.raises(AdmissionDenied) as refusal:
        await work
    for each in words:
        assert each in refusal.value.message, refusal.value.message
    return refusal.value.message


def cluster_admin(name: str, namespace: str = "") -> Object:
    """A binding that gives a user of its name everything, in a namespace or in all."""
    kind = ROLE_BINDING if namespace else CLUSTER_ROLE_BINDING
    return obj(kind, name, namespace, roleRef=cluster_role("cluster-admin"), subjects=[user(name)])


def forged(record: Object, revision: int, *objects: Object, kind: Kind = SECRET, **more: Any) -> Object:
    """A newer record of the release of a real one, with a manifest of these objects, as Helm would have written it."""
    labels = {**labels_of(record), "version": str(revision), "status": "deployed"}
    release = labels["name"]
    content = {**unpacked(record), "version": revision, "manifest": manifest(objects), **more}
    content["info"] = {**content["info"], "status": "deployed"}
    body = obj(kind, f"sh.helm.release.v1.{release}.v{revision}", record["metadata"]["namespace"], labels)
    if kind == CONFIG_MAP:
        return {**body, "data": {"release": base64.b64decode(packed(content)).decode()}}  # a Secret has it encoded once more
    return {**body, "type": "helm.sh/release.v1", "data": {"release": packed(content)}}


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
