"""The objects of our deployment files in the order in which an uninstallation removes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.described import function_documents, unshipped
from tenantry.local.install import retired
from tenantry.model.kinds import API_SERVER_SOURCE, CUSTOM_RESOURCE_DEFINITION, NAMESPACE, Object, key_of
from tenantry.model.names import SYSTEM_NAMESPACE

_SOURCES = "sources.knative.dev/"
_RUNS = ("Service", "Deployment")
_RIGHTS = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ServiceAccount")
_JOB_SINK: Object = {
    "apiVersion": "sinks.knative.dev/v1alpha1",
    "kind": "JobSink",
    "metadata": {"name": "tenantry-dead-letters", "namespace": SYSTEM_NAMESPACE},
}
_SKIPPED = (NAMESPACE.kind, CUSTOM_RESOURCE_DEFINITION.kind)


@dataclass(frozen=True, slots=True)
class Files:
    """What sends events, then what runs the functions, then what they need, policies included, and at last their rights."""

    sending: list[Object]
    running: list[Object]
    other: list[Object]
    rights: list[Object]

    @classmethod
    def read(cls) -> Self:
        """Read ``triggers/`` and ``knative/``, overlays included; what makes events comes before what passes them on."""
        found = [*documents(deployment_folder("triggers")), *documents(deployment_folder("knative"))]
        found += [document for function in unshipped() for document in function_documents(function.name)]
        found += [_earlier(each) for each in found if each.get("kind") == "ContainerSource"] + _retired()
        made = cls([], [], [], [])
        for each in {key_of(each): each for each in found if _is_whole(each) and each["kind"] not in _SKIPPED}.values():
            if each["apiVersion"].startswith(_SOURCES) or each["kind"] == "Trigger":
                made.sending.append(each)
            elif each["kind"] in _RUNS:
                made.running.append(each)
            else:
                (made.rights if each["kind"] in _RIGHTS else made.other).append(each)
        made.sending.sort(key=lambda each: each["kind"] == "Trigger")
        made.rights.sort(key=lambda each: _RIGHTS.index(each["kind"]))
        return made


def _retired() -> list[Object]:
    """What earlier installations had, and an upgrade leaves behind."""
    return [
        _JOB_SINK,
        *(
            {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "metadata": {"name": name, **({"namespace": place} if place else {})},
            }
            for kind, name, place in retired()
        ),
    ]


def _earlier(source: Object) -> Object:
    """What a ContainerSource was in earlier installations, which an upgrade leaves behind: an ApiServerSource of its name."""
    return {"apiVersion": API_SERVER_SOURCE.api_version, "kind": API_SERVER_SOURCE.kind, "metadata": source["metadata"]}


def _is_whole(document: Object) -> bool:
    """Whether a document is an object and not a patch, a kustomization or a configuration."""
    return "$patch" not in document and "kind" in document and bool((document.get("metadata") or {}).get("name"))
