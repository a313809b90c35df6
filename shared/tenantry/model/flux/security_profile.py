"""What a security profile changes in an installation of Flux: the kustomization of its components (section 2.5).

The arguments are those that Flux' controllers have.  ``--enable-source-acl`` of RFC-0003 is none of them: it would end them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from tenantry.model.flux.consumers import HELM_GROUP, KUSTOMIZE_GROUP
from tenantry.model.flux.names import SOURCE_GROUP
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, SERVICE_ACCOUNT, Object, object_of

Extra = Literal["no-remote-bases", "workload-identity", "least-privilege", "no-sharing"]
EXTRAS: tuple[Extra, ...] = ("no-remote-bases", "workload-identity", "least-privilege", "no-sharing")
"""What is added by ``--with``."""

FLUX_NAMESPACE = "flux-system"
KUSTOMIZE, HELM, NOTIFICATION = "kustomize-controller", "helm-controller", "notification-controller"
REFLECTOR, AUTOMATION = "image-reflector-controller", "image-automation-controller"
SOURCE, WATCHER = "source-controller", "source-watcher"
PLATFORM_ACCOUNT = "platform"
"""The account of Flux' own Kustomization where its controllers are no cluster administrators."""
_ADMINISTRATORS = "cluster-reconciler-flux-system"
"""The binding by which an installation of Flux gives kustomize- and helm-controller everything."""
_RECONCILER = "tenantry-flux-reconciler"
_LABELS = {"app.kubernetes.io/name": "flux-least-privilege"}
"""Not those of what an uninstallation takes away: Flux works by these rights."""

_HEAD = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
_TAIL = "resources:\n- gotk-components.yaml\n- gotk-sync.yaml\n"


@dataclass(frozen=True, slots=True)
class _Argument:
    """An argument that these controllers get."""

    text: str
    controllers: tuple[str, ...]

    def patch(self) -> str:
        names = "|".join(self.controllers)
        name = f"({names})" if len(self.controllers) > 1 else names
        return _patch("/spec/template/spec/containers/0/args/-", self.text, "Deployment", name)


def flux_part(*, multi_tenant: bool, account: str = "flux", extras: Collection[Extra] = ()) -> str:
    """The kustomization; for a single tenant without patches, so that it takes everything away again."""
    if not multi_tenant:
        return _HEAD + _TAIL
    own = PLATFORM_ACCOUNT if "least-privilege" in extras else KUSTOMIZE
    patches = [each.patch() for each in _arguments(account, extras)]
    if "least-privilege" in extras:
        patches.append(
            "- patch: |\n"
            "    $patch: delete\n"
            f"    apiVersion: {CLUSTER_ROLE_BINDING.api_version}\n"
            f"    kind: {CLUSTER_ROLE_BINDING.kind}\n"
            "    metadata:\n"
            f"      name: {_ADMINISTRATORS}\n"
        )
    patches.append(_patch("/spec/serviceAccountName", own, "Kustomization", FLUX_NAMESPACE))
    return _HEAD + "patches:\n" + "".join(patches) + _TAIL


def least_privilege() -> list[Object]:
    """The rights of kustomize- and helm-controller where they impersonate and nothing else, and the account of the platform.

    They are applied before the kustomization, which takes their rights as administrators away.
    """
    metadata = {"name": _RECONCILER, "labels": dict(_LABELS)}
    every = ["get", "list", "watch", "create", "update", "patch", "delete"]
    read = ["get", "list", "watch"]
    kinds = [KUSTOMIZE_GROUP, HELM_GROUP]
    rules: list[Object] = [
        {"apiGroups": kinds, "resources": ["*"], "verbs": every},
        {"apiGroups": [SOURCE_GROUP], "resources": ["*"], "verbs": read},
        # helm-controller makes the HelmChart of a HelmRelease beside the source, and takes it away again.
        {"apiGroups": [SOURCE_GROUP], "resources": ["helmcharts", "helmcharts/finalizers"], "verbs": every},
        {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]},
        # Of an object that is deleted nothing is pruned unless its account is there, so they look for it.
        {"apiGroups": [""], "resources": ["configmaps", "secrets", "serviceaccounts"], "verbs": read},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    ]
    account = {"kind": "ServiceAccount", "name": PLATFORM_ACCOUNT, "namespace": FLUX_NAMESPACE}
    return [
        object_of(CLUSTER_ROLE, metadata, rules=rules),
        _binding(_RECONCILER, _RECONCILER, [{**account, "name": each} for each in (KUSTOMIZE, HELM)]),
        object_of(SERVICE_ACCOUNT, {"name": PLATFORM_ACCOUNT, "namespace": FLUX_NAMESPACE, "labels": dict(_LABELS)}),
        _binding("tenantry-flux-platform", "cluster-admin", [account]),
    ]


def _arguments(account: str, extras: Collection[Extra]) -> Iterator[_Argument]:
    yield _Argument(f"--default-service-account={account}", (KUSTOMIZE, HELM))
    alone = (NOTIFICATION,)
    everywhere = (KUSTOMIZE, HELM, NOTIFICATION, REFLECTOR, AUTOMATION, WATCHER)
    yield _Argument("--no-cross-namespace-refs=true", everywhere if "no-sharing" in extras else alone)
    if "no-remote-bases" in extras:
        yield _Argument("--no-remote-bases=true", (KUSTOMIZE,))
    if "workload-identity" in extras:
        yield _Argument(f"--default-decryption-service-account={account}", (KUSTOMIZE,))
        yield _Argument(f"--default-kubeconfig-service-account={account}", (KUSTOMIZE, HELM))
        # There it is the account for the identity of a cloud, not one that is impersonated.
        yield _Argument(f"--default-service-account={account}", (SOURCE, NOTIFICATION, REFLECTOR, AUTOMATION))


def _binding(name: str, role: str, accounts: list[Object]) -> Object:
    role_ref = {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": role}
    return object_of(CLUSTER_ROLE_BINDING, {"name": name, "labels": dict(_LABELS)}, roleRef=role_ref, subjects=accounts)


def _patch(path: str, value: str, kind: str, name: str) -> str:
    return f"- patch: |\n    - op: add\n      path: {path}\n      value: {value}\n  target:\n    kind: {kind}\n    name: {name}\n"
