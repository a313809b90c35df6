"""Fences as the configuration wants them: the entries of their lists that come from it.

A fence is an admission policy for one identity (``knative/*/fence.yaml``); its file has the entries of the default
configuration.  What stands in a list beside those stays, so that administrators may add to it.  What is installed is one policy
of all of them (`tenantry.local.fence_policy`), in ``knative/fences/policy.yaml`` for the default configuration.

What a fence asks of the PaasConfig, which is a param, is a policy of its own, since where no param is found a policy has nothing
to say or refuses everything.  It stands in the same file, with its bindings, and is installed as it is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.fence_policy import POLICY, PREFIX, merged
from tenantry.local.policies import bound_to, for_config, guard_documents, is_left_out
from tenantry.model.config import Config
from tenantry.model.kinds import ADMISSION_POLICY_BINDING, Object
from tenantry.model.names import CLUSTER_ADMIN, REGISTRATION_PREFIX, SYSTEM_NAMESPACE

_ENTRY = re.compile(r'^\s*"([^"]*)",', re.MULTILINE)
_ALWAYS = frozenset({"kube-system", SYSTEM_NAMESPACE})
"""Namespaces that no function writes into on behalf of a project."""


def _labels(config: Config) -> Iterable[str]:
    return {config.project_label, *config.helm_project_operator.namespace_labels} - {""}


def _annotations(config: Config) -> Iterable[str]:
    return {config.project_label, *config.helm_project_operator.namespace_annotations} - {""}


def _home(config: Config) -> set[str]:
    """The system namespace, where it takes the place of all registration namespaces."""
    return set() if config.project_label else {config.helm_project_operator.system_namespace}


def _system(config: Config) -> Iterable[str]:
    return config.system_namespaces | _ALWAYS


def _system_but_home(config: Config) -> Iterable[str]:
    return (config.system_namespaces | _ALWAYS) - _home(config)


def _places(config: Config) -> Iterable[str]:
    if not config.project_label:
        return ()
    names = {f"-{chart.release_name}" for chart in config.helm_project_operator.charts}
    return names if config.dedicated else {REGISTRATION_PREFIX}


def _releases(config: Config) -> Iterable[str]:
    return {chart.release_name for chart in config.helm_project_operator.charts}


def _repositories(config: Config) -> Iterable[str]:
    references = (chart.reference for chart in config.helm_project_operator.charts)
    return {found.repo for found in references if found is not None}


def _job_roles(config: Config) -> Iterable[str]:
    """The roles of Helm's Jobs in the namespace of their release."""
    return config.job_cluster_roles - {CLUSTER_ADMIN}


def _job_roles_everywhere(config: Config) -> Iterable[str]:
    """The same in all namespaces."""
    return {CLUSTER_ADMIN} if config.cluster_admins else ()


def _images(config: Config) -> Iterable[str]:
    return {config.helm_project_operator.helm_controller.job_image} - {""}


def _system_namespace(config: Config) -> Iterable[str]:
    return {config.helm_project_operator.system_namespace}


# By name, as fences are: each is written by hand for one identity, and so is which of its lists come from the configuration.
_CONFIGURED: dict[str, dict[str, Callable[[Config], Iterable[str]]]] = {
    "namespace-registration": {
        "labels": _labels,
        "annotations": _annotations,
        "systemNamespaces": _system,
        "homes": _home,
    },
    "rbac-aggregation": {"places": _places, "homes": _home, "systemNamespaces": _system_but_home},
    "release-provisioning": {
        "labels": _labels,
        "annotations": _annotations,
        "releases": _releases,
        "repositories": _repositories,
        "images": _images,
        "homes": _system_namespace,
        "systemNamespaces": _system_but_home,
    },
    "release-provisioning-helm-jobs": {
        "roles": _job_roles,
        "clusterRoles": _job_roles_everywhere,
        "images": _images,
        "homes": _system_namespace,
        "systemNamespaces": _system_but_home,
    },
    "rbac-aggregation-tenants": {"systemNamespaces": _system},
    "release-provisioning-tenants": {"systemNamespaces": _system},
    "scope-binding-namespace-scopes": {"systemNamespaces": _system},
    "scope-binding-olm": {"systemNamespaces": _system},
    "lock-enforcement": {"systemNamespaces": _system_but_home},
}


def fence_files(folder: Path | None = None) -> dict[str, Path]:
    """The fence of each identity that has one; ``sources`` have theirs in ``base``."""
    root = folder or deployment_folder("knative")
    return {path.parent.name: path for path in sorted(root.glob("*/fence.yaml"))}


def all_fences() -> list[Object]:
    """The fences of all identities, also of functions that do not run here: they may run elsewhere on the same cluster."""
    return [each for each in documents(*fence_files().values()) if not _has_param(each)]


def fences_with_param() -> list[Object]:
    """The policies of fences that ask a param, with their bindings."""
    return [each for each in documents(*fence_files().values()) if _has_param(each)]


def _has_param(document: Object) -> bool:
    return document["kind"] == ADMISSION_POLICY_BINDING.kind or "paramKind" in document["spec"]


def fence_policies(config: Config, without: Collection[str] = ()) -> list[Object]:
    """What is installed of all fences under a configuration, without those that are to be left out."""
    if is_left_out(POLICY, without):
        return []
    together = [configured(each, config) for each in all_fences() if not is_left_out(each["metadata"]["name"], without)]
    return [*merged(together), *(each for each in fences_with_param() if not is_left_out(bound_to(each), without))]


def all_policies(config: Config, without: Collection[str] = ()) -> list[Object]:
    """What is installed of fences and guards under a configuration, without what is to be left out."""
    guards = [for_config(each, config) for each in guard_documents() if not is_left_out(bound_to(each), without)]
    return [*fence_policies(config, without), *guards]


def configured(document: Object, config: Config) -> Object:
    """A fence with the lists that the configuration wants."""
    lists = _CONFIGURED.get(document["metadata"]["name"].removeprefix(PREFIX), {})
    if not lists:
        return document
    default, spec = Config(), document["spec"]

    def adapt(variable: dict[str, Any]) -> dict[str, Any]:
        wanted = lists.get(variable["name"])
        if wanted is None or set(wanted(config)) == set(wanted(default)):
            return variable
        kept = set(_ENTRY.findall(variable["expression"])) - set(wanted(default))
        return {**variable, "expression": json.dumps(sorted(kept | set(wanted(config))))}

    return {**document, "spec": {**spec, "variables": [adapt(variable) for variable in spec.get("variables") or ()]}}
