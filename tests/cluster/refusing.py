"""An API server that refuses to make or to delete something, in other words each time; and rights that are taken away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from people import token
from times import POLICY_S

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, AlreadyExists, NotFound
from tenantry.model.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING, CLUSTER_ROLE, ROLE, Kind, Object, object_of
from tenantry.testing import eventually


@asynccontextmanager
async def refusing(admin: Api, kind: Kind, name: str, namespace: str = "", **fields: Any) -> AsyncIterator[None]:
    """Until it ends an admission policy refuses to make an object; its words have the uid that the object would get.

    ``fields`` are what the object has to have to be valid.
    """
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    asked = object_of(kind, metadata, **fields)

    async def create() -> None:
        await admin.create(kind, asked, dry_run=True)

    async with _policy(admin, kind, "CREATE", metadata, create):
        yield


@asynccontextmanager
async def keeping(admin: Api, kind: Kind, name: str, namespace: str = "") -> AsyncIterator[None]:
    """Until it ends an admission policy refuses to delete an object, whoever wants to."""

    async def delete() -> None:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]}
        await admin.request("DELETE", kind.path(namespace, name), None, body)

    async with _policy(admin, kind, "DELETE", {"name": name, "namespace": namespace}, delete):
        yield


@asynccontextmanager
async def lacking(admin: Api, role: str, resource: str, verbs: set[str], namespace: str = "") -> AsyncIterator[None]:
    """A function's ClusterRole, or its Role in a namespace, without some verbs on a resource, for as long as the block lasts.

    The authorizer learns of both changes after a moment.
    """
    kind = ROLE if namespace else CLUSTER_ROLE
    before = await admin.get(kind, role, namespace)
    assert before is not None

    def reduced(rule: dict[str, Any]) -> dict[str, Any]:
        return {**rule, "verbs": [verb for verb in rule["verbs"] if verb not in verbs] or ["none"]}

    rules = [reduced(rule) if rule["resources"] == [resource] else rule for rule in before["rules"]]
    assert rules != before["rules"]
    await admin.json_patch(kind, role, namespace, [{"op": "replace", "path": "/rules", "value": rules}])
    try:
        yield
    finally:
        await admin.json_patch(kind, role, namespace, [{"op": "replace", "path": "/rules", "value": before["rules"]}])


@asynccontextmanager
async def _policy(
    admin: Api, kind: Kind, operation: str, metadata: Object, attempt: Callable[[], Awaitable[None]]
) -> AsyncIterator[None]:
    """A policy that refuses an operation on one object; ``attempt`` finds out whether it is in force."""
    policy, subject = f"refusing-{token()}", "oldObject" if operation == "DELETE" else "object"
    rule = {"apiGroups": [kind.group], "apiVersions": ["*"], "operations": [operation], "resources": [kind.plural]}
    same = " && ".join(f"{subject}.metadata.{part} == '{value}'" for part, value in metadata.items() if value)
    spec: Object = {
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "same", "expression": same}],
        "validations": [{"expression": "false", "messageExpression": f"'request ' + {subject}.metadata.uid"}],
    }

    async def refused() -> bool:
        try:
            await attempt()
        except AdmissionDenied:
            return True
        except (AlreadyExists, NotFound):
            pass
        return False

    for made, what in (
        (ADMISSION_POLICY, spec),
        (ADMISSION_POLICY_BINDING, {"policyName": policy, "validationActions": ["Deny"]}),
    ):
        await admin.create(made, object_of(made, {"name": policy}, spec=what))
    try:
        await eventually(refused, within=POLICY_S, what="the policy is in force")
        yield
    finally:
        for made in (ADMISSION_POLICY_BINDING, ADMISSION_POLICY):
            await admin.delete(made, policy)
    await eventually(refused, lambda found: not found, within=POLICY_S, what="the policy is gone")
