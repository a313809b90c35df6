"""Admission policies of ours: guards (for everybody), fences (for one identity), and when they are in force.

A policy and its binding count by the policy's name.  Leaving one out is for showing what fails without it, and for clusters whose
administrators have policies of their own.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Collection, Mapping
from typing import Any

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied
from tenantry.local.deployment import deployment_folder, documents
from tenantry.model.config import Cattle, Config, HelmProjectOperator
from tenantry.model.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING, CLUSTER_ROLE, Object

ALL = "all"
"""Leaves out every policy."""
PART_OF = {"app.kubernetes.io/part-of": "tenantry"}
NO_LABEL = "tenantry.dev/no-project-label"
"""What policies look for where there are no projects: nobody has it, so other systems' project labels are theirs."""
IN_FORCE_S = 30.0
"""The API server takes a second at most; a busy one longer."""
_POLL_S = 0.05


def guard_documents() -> list[Object]:
    """What ``knative/guards/`` has; nothing where there is no such folder."""
    folder = deployment_folder("knative") / "guards"
    return documents(folder) if folder.is_dir() else []


def guard_names() -> frozenset[str]:
    """The policies for everybody."""
    return names_of(guard_documents())


def names_of(found: Collection[Object]) -> frozenset[str]:
    """The names of the policies among these objects."""
    return frozenset(each["metadata"]["name"] for each in found if each.get("kind") == ADMISSION_POLICY.kind)


def left_out(text: str) -> frozenset[str]:
    """Names of policies that are written with commas or blanks between them."""
    return frozenset(text.replace(",", " ").split())


def bound_to(document: Object) -> str:
    """The name of the policy that a document is, or that it binds."""
    if document["kind"] == ADMISSION_POLICY_BINDING.kind:
        return str(document["spec"]["policyName"])
    return str(document["metadata"]["name"])


def is_left_out(name: str, without: Collection[str]) -> bool:
    """Whether a policy of this name is to be left out."""
    return ALL in without or name in without


def for_config(document: Object, config: Config) -> Object:
    """A policy or binding with the project label and the system namespace of the configuration in place of the defaults."""
    names = {
        Cattle().project_label: config.project_label or NO_LABEL,
        HelmProjectOperator().system_namespace: config.helm_project_operator.system_namespace,
    }
    replaced: Object = _replaced(document, names)
    return replaced


def _replaced(value: Any, names: Mapping[str, str]) -> Any:
    match value:
        case str():
            for default, name in names.items():
                value = value.replace(default, name)
            return value
        case list():
            return [_replaced(each, names) for each in value]
        case dict():
            return {key: _replaced(each, names) for key, each in value.items()}
    return value


async def until_in_force(api: Api) -> None:
    """Wait until the API server acts on all policies and bindings that were written or deleted before.

    It reads all of them anew together, in the order in which they were written, about once in a second.  So one more that refuses
    something that nobody does shows by its refusal that the others count too.  Of several API servers it shows one.

    Raises:
        TimeoutError: not within `IN_FORCE_S`.
        ApiError: the server refuses.
    """
    name = f"tenantry-in-force-{secrets.token_hex(4)}"
    kinds = ADMISSION_POLICY, ADMISSION_POLICY_BINDING
    try:
        for kind, body in zip(kinds, _probe(name), strict=True):
            await api.create(kind, body)
        give_up_at = time.monotonic() + IN_FORCE_S
        while not await _is_refused(api, name):
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"the API server does not act on new admission policies within {IN_FORCE_S:.0f} s")
            await asyncio.sleep(_POLL_S)
    finally:
        for kind in reversed(kinds):
            await api.delete(kind, name)


async def _is_refused(api: Api, name: str) -> bool:
    body = {"apiVersion": CLUSTER_ROLE.api_version, "kind": CLUSTER_ROLE.kind, "metadata": {"name": name}, "rules": []}
    try:
        await api.create(CLUSTER_ROLE, body, dry_run=True)
    except AdmissionDenied as error:
        return name in error.message
    return False


def with_binding(name: str, spec: Mapping[str, Any]) -> list[Object]:
    """A policy of ours that refuses, and its binding, which has its name."""
    bound = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": name, "labels": dict(PART_OF)},
            "spec": body,
        }
        for kind, body in ((ADMISSION_POLICY, spec), (ADMISSION_POLICY_BINDING, bound))
    ]


def _probe(name: str) -> list[Object]:
    """A policy with its binding that refuses one ClusterRole by name; a ClusterRole, because no quota counts it."""
    rule = {
        "apiGroups": [CLUSTER_ROLE.group],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": [CLUSTER_ROLE.plural],
        "resourceNames": [name],
        "scope": "Cluster",
    }
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": f"{name}: the policies of Tenantry are in force"}],
    }
    return with_binding(name, spec)
