"""Installing into a cluster what functions that run as processes need: CRDs, namespaces, identities, rights.

Everything is applied server-side and only on difference.  A CRD that somebody else manages is left as it
is: two managers that overwrite each other's schema were a defect of the system that this follows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

from tenantry.api import Api
from tenantry.api.errors import ApiError, KindNotServed
from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.described import function_documents
from tenantry.local.fence_policy import POLICY as FENCE_POLICY
from tenantry.local.fence_policy import PREFIX, Fence
from tenantry.local.fences import all_fences, all_policies
from tenantry.local.followed import STAND_IN
from tenantry.local.policies import PART_OF, until_in_force
from tenantry.model.config import Config, HelmProjectOperator
from tenantry.model.difference import difference, entries_of
from tenantry.model.flux.names import SOURCES_SHOWN
from tenantry.model.kinds import (
    ADMISSION_POLICY,
    ADMISSION_POLICY_BINDING,
    API_SERVER_SOURCE,
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
    labels_of,
)
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.model.paas.names import ARGO_POLICY
from tenantry.serving.dead_letters import NAME as DEAD_LETTERS

INSTALL_MANAGER = "tenantry-install"
SERVED_S = 30.0
_DEFAULT_NAMESPACE = HelmProjectOperator().system_namespace
_ENFORCED = "pod-security.kubernetes.io/enforce"
_FLOW_CONTROL = "flowcontrol.apiserver.k8s.io/v1"
_PRIORITY_LEVEL = Kind(_FLOW_CONTROL, "PriorityLevelConfiguration", "prioritylevelconfigurations", namespaced=False)
_FLOW_SCHEMA = Kind(_FLOW_CONTROL, "FlowSchema", "flowschemas", namespaced=False)
# Of what `knative/` has, these are for whoever acts under our identities, wherever it runs.  What is for pods (network policies,
# quotas, limits, disruption budgets, the priority class) is for a cluster whose nodes run them.
_KINDS = {
    kind.kind: kind
    for kind in (
        NAMESPACE,
        SERVICE_ACCOUNT,
        ROLE,
        ROLE_BINDING,
        CLUSTER_ROLE,
        CLUSTER_ROLE_BINDING,
        ADMISSION_POLICY,
        ADMISSION_POLICY_BINDING,
        _PRIORITY_LEVEL,
        _FLOW_SCHEMA,
    )
}
_FIXED_NAMES = ([ARGO_POLICY], [SOURCES_SHOWN])
"""Of ConfigMaps that no configuration names."""
_RETIRED = (
    (CLUSTER_ROLE_BINDING, "tenantry-source", ""),
    (CLUSTER_ROLE, "tenantry-source", ""),
    (SERVICE_ACCOUNT, "tenantry-source", SYSTEM_NAMESPACE),
)
_POLICY_KINDS = (ADMISSION_POLICY.kind, ADMISSION_POLICY_BINDING.kind)

Say = Callable[[str], None]


class Installed(str):
    """The line that tells of one object that was installed; ``kind`` is its kind."""

    kind: str

    def __new__(cls, obj: Object) -> Installed:
        """The line for an object."""
        line = super().__new__(cls, f"installed {key_of(obj)}")
        line.kind = obj["kind"]
        return line


async def install(api: Api, functions: Iterable[str], config: Config, say: Say, *, without: Collection[str] = ()) -> None:
    """Apply CRDs, namespaces, identities and rights, also of the dead-letter sink, and admission policies, in force at the end.

    ``api`` must be an administrator whose field manager is `INSTALL_MANAGER`.  ``without`` names policies to be left out, with
    their bindings, or says ``all``; one of ours that is there is deleted.

    Raises:
        ApiError: the server refuses; the message names the object.
        TimeoutError: the server does not act on new policies.
    """
    knative = deployment_folder("knative")
    base = documents(knative / "base")
    labels = {each["metadata"]["name"]: each["metadata"]["labels"] for each in base if each["kind"] == NAMESPACE.kind}
    namespaces = {
        SYSTEM_NAMESPACE: labels[SYSTEM_NAMESPACE],
        config.helm_project_operator.system_namespace: labels[_DEFAULT_NAMESPACE],
    }
    await asyncio.gather(
        *(_install_crd(api, crd, say) for crd in documents(knative / "crds")),
        *(_make_namespace(api, name, wanted, say) for name, wanted in namespaces.items()),
    )
    names = dict.fromkeys([*functions, DEAD_LETTERS])
    wanted = [*base, *(found for name in names for found in function_documents(name))]
    if any(API_SERVER_SOURCE.plural in rule.get("resources", ()) for each in wanted for rule in each.get("rules") or ()):
        await _install_source_kind(api, say)
    known = [document for document in wanted if document["kind"] in _KINDS]
    await asyncio.gather(
        *(
            apply_if_different(api, _KINDS[document["kind"]], for_charts(document, config), say)
            for document in known
            if document["kind"] not in (NAMESPACE.kind, *_POLICY_KINDS)
        )
    )
    policies = {key_of(each): each for each in all_policies(config, without)}
    left_out = [each for each in all_policies(config) if key_of(each) not in policies] if without else []
    changes = [
        *(apply_if_different(api, _KINDS[each["kind"]], each, say) for each in policies.values()),
        *(_remove(api, _KINDS[each["kind"]], each["metadata"]["name"], "", say, "it is to be left out") for each in left_out),
    ]
    if any(await asyncio.gather(*changes)):
        await until_in_force(api)
    await _retire(api, say)


def retired() -> list[tuple[Kind, str, str]]:
    """What earlier versions installed and nothing uses any more: kind, name, namespace."""
    fences = [PREFIX + fence.name for fence in map(Fence.of, all_fences()) if not fence.is_apart]
    return [*_RETIRED, *((kind, name, "") for name in fences for kind in (ADMISSION_POLICY_BINDING, ADMISSION_POLICY))]


async def _retire(api: Api, say: Say) -> None:
    policies = {each["metadata"]["name"] for each in (await api.list(ADMISSION_POLICY)).items}
    for kind, name, namespace in retired():
        if kind.kind not in _POLICY_KINDS:
            await _remove(api, kind, name, namespace, say, "each function's sources have an identity of their own")
        elif name in policies:
            await _remove(api, kind, name, "", say, f"it is part of {FENCE_POLICY} now")


async def _remove(api: Api, kind: Kind, name: str, namespace: str, say: Say, reason: str) -> bool:
    """Delete an object if it is ours; whether it was."""
    live = await api.get(kind, name, namespace)
    if live is None or not (labels_of(live).items() >= PART_OF.items() or entries_of(live, api.field_manager)):
        return False
    await api.delete(kind, name, namespace, uid=live["metadata"]["uid"])
    say(f"removed {key_of(live)}: {reason}")
    return True


async def _make_namespace(api: Api, name: str, labels: dict[str, str], say: Say) -> None:
    """Make a namespace with our mark, by which an uninstallation knows it, and the pod security that its pods fit.

    One that somebody else made stays as it is; where it enforces less, that is said (check a-61).
    """
    live = await api.get(NAMESPACE, name)
    if live is None or entries_of(live, api.field_manager):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        await apply_if_different(api, NAMESPACE, body, say)
    elif labels_of(live).get(_ENFORCED) != labels[_ENFORCED]:
        say(f"kept Namespace {name}: somebody else made it; give it the label {_ENFORCED}={labels[_ENFORCED]}")


def for_charts(document: Object, config: Config) -> Object:
    """A role whose namespace, ConfigMaps and ClusterRoles are those of the configuration."""
    operator = config.helm_project_operator
    if document["kind"] == _FLOW_SCHEMA.kind:
        return _for_accounts_of(document, operator.system_namespace)
    if document["kind"] in (ROLE.kind, ROLE_BINDING.kind) and document["metadata"]["namespace"] == _DEFAULT_NAMESPACE:
        return {**document, "metadata": {**document["metadata"], "namespace": operator.system_namespace}}
    if document["kind"] != CLUSTER_ROLE.kind:
        return document
    # By name: which ClusterRoles may be bound is in the rights of these two, which are written by `make rights`.
    levels = operator.release_role_bindings.cluster_role_refs
    runs_helm = document["metadata"]["name"] == "tenantry-release-provisioning-helm-jobs"
    cluster_roles = {
        "tenantry-rbac-aggregation": frozenset({levels.admin, levels.edit, levels.view}),
        "tenantry-release-provisioning-helm-jobs": config.job_cluster_roles,
    }
    names = {
        CONFIG_MAP.plural: [chart.config_map_name for chart in operator.charts],
        CLUSTER_ROLE.plural: sorted(cluster_roles.get(document["metadata"]["name"], frozenset()) - {""}),
    }

    def adapt(rule: dict[str, Any]) -> list[dict[str, Any]]:
        if runs_helm and rule.get("resources") == [CLUSTER_ROLE_BINDING.plural] and "create" in rule["verbs"]:
            return [rule] if config.cluster_admins else []  # nobody asked for rights in all namespaces
        found = names.get(rule["resources"][0]) if len(rule.get("resources") or ()) == 1 else None
        if found is None or rule.get("resourceNames", [ARGO_POLICY]) in _FIXED_NAMES:
            return [rule]
        return [{**rule, "resourceNames": found}] if found else []  # no name at all would mean every name

    if "rules" not in document:
        return document  # an aggregated role: its rules are the controller's
    return {**document, "rules": [adapted for rule in document["rules"] or [] for adapted in adapt(rule)]}


def _for_accounts_of(schema: Object, namespace: str) -> Object:
    """A FlowSchema whose accounts of the default system namespace are those of another one."""

    def adapt(subject: dict[str, Any]) -> dict[str, Any]:
        account = subject.get("serviceAccount", {})
        return (
            {**subject, "serviceAccount": {**account, "namespace": namespace}}
            if account.get("namespace") == _DEFAULT_NAMESPACE
            else subject
        )

    rules = [{**rule, "subjects": [adapt(subject) for subject in rule["subjects"]]} for rule in schema["spec"]["rules"]]
    return {**schema, "spec": {**schema["spec"], "rules": rules}}


async def apply_if_different(api: Api, kind: Kind, wanted: Object, say: Say) -> bool:
    """Server-side apply, unless the object is as wanted already; whether that changed it."""
    metadata = wanted["metadata"]
    live = await api.get(kind, metadata["name"], metadata.get("namespace", ""))
    if difference(wanted, live, manager=api.field_manager) is None:
        return False
    try:
        applied = await api.apply(kind, wanted)
    except ApiError as error:
        error.args = (f"cannot install {key_of(wanted)}: {error.message}",)
        raise
    if live is not None and _substance(applied) == _substance(live):
        return False  # what differed are defaults that the API server fills in
    say(Installed(wanted))
    return True


def _substance(obj: Object) -> Object:
    """An object without who wrote what when, and without its status."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "resourceVersion")}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}


async def _install_crd(api: Api, crd: Object, say: Say) -> None:
    name = crd["metadata"]["name"]
    live = await api.get(CUSTOM_RESOURCE_DEFINITION, name)
    if live is not None and not entries_of(live, api.field_manager) and not labels_of(live).items() >= PART_OF.items():
        say(f"kept CustomResourceDefinition {name}: somebody else manages it")
        return
    await apply_if_different(api, CUSTOM_RESOURCE_DEFINITION, crd, say)
    if live is None:
        await until_served(api, crd)


async def _install_source_kind(api: Api, say: Say) -> None:
    """The kind ApiServerSource, for functions that make sources, where no Knative brings it."""
    live = await api.get(CUSTOM_RESOURCE_DEFINITION, STAND_IN["metadata"]["name"])
    if live is None or entries_of(live, api.field_manager):
        await apply_if_different(api, CUSTOM_RESOURCE_DEFINITION, STAND_IN, say)
    await until_served(api, STAND_IN)


async def until_served(api: Api, crd: Object) -> None:
    """Wait until a new kind can be asked for, some tenths of a second after its CRD: who installs goes on to use it."""
    spec = crd["spec"]
    version, names = spec["versions"][0]["name"], spec["names"]
    kind = Kind(f"{spec['group']}/{version}", names["kind"], names["plural"], namespaced=spec["scope"] == "Namespaced")
    give_up_at = time.monotonic() + SERVED_S
    while True:  # asked without the memory of `Api.served`, which keeps a miss for a while
        try:
            await api.list(kind, limit=1)
        except KindNotServed:
            if time.monotonic() > give_up_at:
                raise
            await asyncio.sleep(0.1)
        else:
            return
