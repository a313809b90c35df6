"""Installing into a cluster what functions that run as processes need: CRDs, namespaces, identities, rights.

Everything is applied server-side and only on difference.  A CRD that somebody else manages is left as it
is: two managers that overwrite each other's schema were a defect of the system that this follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tenantry.api import Api
from tenantry.api.errors import ApiError
from tenantry.local.deployment import deployment_folder, documents, function_documents
from tenantry.model.config import Config
from tenantry.model.difference import difference, entries_of
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Kind,
    Object,
    key_of,
)
from tenantry.model.names import SYSTEM_NAMESPACE

INSTALL_MANAGER = "tenantry-install"
_KINDS = {kind.kind: kind for kind in (NAMESPACE, SERVICE_ACCOUNT, ROLE, ROLE_BINDING, CLUSTER_ROLE, CLUSTER_ROLE_BINDING)}

Say = Callable[[str], None]


async def install(api: Api, functions: Iterable[str], config: Config, say: Say) -> None:
    """Apply CRDs, the system namespaces, and each function's identity and rights.

    ``api`` must be an administrator whose field manager is `INSTALL_MANAGER`.

    Raises:
        ApiError: the server refuses; the message names the object.
    """
    knative = deployment_folder("knative")
    for crd in documents(knative / "crds"):
        await _install_crd(api, crd, say)
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}
    operator = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": config.helm_project_operator.system_namespace},
    }
    for namespace in (system, operator):
        await apply_if_different(api, NAMESPACE, namespace, say)
    wanted = [*documents(knative / "base"), *(found for name in functions for found in function_documents(name))]
    for document in wanted:
        kind = _KINDS.get(document["kind"])
        if kind is not None and kind is not NAMESPACE:
            await apply_if_different(api, kind, for_charts(document, config), say)


def for_charts(document: Object, config: Config) -> Object:
    """A ClusterRole whose ConfigMap names are those of the configured charts."""
    if document["kind"] != CLUSTER_ROLE.kind:
        return document
    names = [chart.config_map_name for chart in config.helm_project_operator.charts]

    def adapt(rule: dict[str, Any]) -> dict[str, Any]:
        named = rule.get("resources") == [CONFIG_MAP.plural] and "resourceNames" in rule
        return {**rule, "resourceNames": names} if named else rule

    return {**document, "rules": [adapt(rule) for rule in document.get("rules") or []]}


async def apply_if_different(api: Api, kind: Kind, wanted: Object, say: Say) -> None:
    """Server-side apply, unless the object is as wanted already."""
    metadata = wanted["metadata"]
    live = await api.get(kind, metadata["name"], metadata.get("namespace", ""))
    if difference(wanted, live, manager=api.field_manager) is None:
        return
    try:
        await api.apply(kind, wanted)
    except ApiError as error:
        error.args = (f"cannot install {key_of(wanted)}: {error.message}",)
        raise
    say(f"installed {key_of(wanted)}")


async def _install_crd(api: Api, crd: Object, say: Say) -> None:
    name = crd["metadata"]["name"]
    live = await api.get(CUSTOM_RESOURCE_DEFINITION, name)
    if live is not None and not entries_of(live, api.field_manager):
        say(f"kept CustomResourceDefinition {name}: somebody else manages it")
        return
    await apply_if_different(api, CUSTOM_RESOURCE_DEFINITION, crd, say)
