"""An API server that refuses to make something, in other words each time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from people import token

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, AlreadyExists
from tenantry.model.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING, Kind, Object
from tenantry.testing import eventually


@asynccontextmanager
async def refusing(admin: Api, kind: Kind, name: str, namespace: str = "", **fields: Any) -> AsyncIterator[None]:
    """Until it ends an admission policy refuses to make an object; its words have the uid that the object would get.

    ``fields`` are what the object has to have to be valid.
    """
    policy = f"refusing-{token()}"
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    asked: Object = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}
    rule = {"apiGroups": [kind.group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [kind.plural]}
    same = " && ".join(f"object.metadata.{part} == '{value}'" for part, value in metadata.items())
    spec: Object = {
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "same", "expression": same}],
        "validations": [{"expression": "false", "messageExpression": "'request ' + object.metadata.uid"}],
    }

    async def refused() -> bool:
        try:
            await admin.create(kind, asked, dry_run=True)
        except AdmissionDenied:
            return True
        except AlreadyExists:
            pass
        return False

    async def allowed() -> bool:
        return not await refused()

    for made, what in (
        (ADMISSION_POLICY, spec),
        (ADMISSION_POLICY_BINDING, {"policyName": policy, "validationActions": ["Deny"]}),
    ):
        body = {"apiVersion": made.api_version, "kind": made.kind, "metadata": {"name": policy}, "spec": what}
        await admin.create(made, body)
    try:
        await eventually(refused, within=30, what="the policy is in force")
        yield
    finally:
        for made in (ADMISSION_POLICY_BINDING, ADMISSION_POLICY):
            await admin.delete(made, policy)
    await eventually(allowed, within=30, what="the policy is gone")
