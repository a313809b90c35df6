"""No line of a fence is there for nothing: taken out, some attack on that fence succeeds.

Each fence is tried once without each of its validations, each namespace that it protects, and each condition of what is plainly
allowed.  All of these run side by side in one cluster: a variant is a policy of its own, for a copy of the identity with the same
rights.  The entries of the other lists allow something: that each is needed is judged by what the functions wrote in a whole run
(tests/conftest.py).
"""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Iterator

import pytest
from cages import CONFIG, THEFTS, Cages, outcome
from rights import account
from thieves import Attack, Theft
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.fence_policy import PLAIN, merged
from tenantry.local.fences import configured
from tenantry.local.policies import until_in_force
from tenantry.model.config import Config
from tenantry.model.kinds import (
    ADMISSION_POLICY,
    ADMISSION_POLICY_BINDING,
    CLUSTER_ROLE_BINDING,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Object,
)
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

PROTECTED = "systemNamespaces"
"""The list whose entries refuse."""


def fence_of(theft: Theft) -> Object:
    """The fence as it is in force."""
    found = documents(deployment_folder("knative") / theft.function / "fence.yaml")
    policy = next(each for each in found if each["kind"] == ADMISSION_POLICY.kind)
    return configured(policy, Config.model_validate(CONFIG))


def without_each_line(fence: Object) -> Iterator[tuple[str, Object]]:
    """(what is left out, the fence without it)."""
    for number, validation in enumerate(fence["spec"]["validations"]):
        made = copy.deepcopy(fence)
        del made["spec"]["validations"][number]
        yield " ".join(validation.get("message", validation.get("messageExpression", "")).split()), made
    for number, variable in enumerate(fence["spec"]["variables"]):
        if variable["name"].startswith(PLAIN):
            made = copy.deepcopy(fence)
            made["spec"]["variables"][number] = {**variable, "expression": "true"}
            yield variable["name"], made
        for entry in re.findall(r'"([^"]*)"', variable["expression"]) if variable["name"] == PROTECTED else ():
            made = copy.deepcopy(fence)
            kept = variable["expression"].replace(f'"{entry}"', '"nothing"')
            made["spec"]["variables"][number] = {**variable, "expression": kept}
            yield f"{PROTECTED}: {entry}", made


@pytest.mark.parametrize("theft", [pytest.param(theft, id=theft.function) for theft in THEFTS])
async def test_no_line_is_there_for_nothing(cages: Cages, theft: Theft) -> None:
    """Without it at least one attack gets through that is refused with it."""
    variants = [(f"{theft.function}-{number}", *each) for number, each in enumerate(without_each_line(fence_of(theft)))]
    await _leave_out_guards(cages.admin)
    await _set_up(cages.admin, theft, [(name, fence) for name, _, fence in variants])
    await until_in_force(cages.admin)
    idle = [title for name, title, _ in variants if not await _lets_through(cages, theft, name, title)]
    assert not idle, "\n".join(["no attack needs:", *idle])


async def _leave_out_guards(admin: Api) -> None:
    """They let functions pass by name, which the copies do not have."""
    for kind in (ADMISSION_POLICY_BINDING, ADMISSION_POLICY):
        for each in (await admin.list(kind)).items:
            if each["metadata"]["name"].startswith("tenantry-guard-"):
                await admin.delete(kind, each["metadata"]["name"])


async def _set_up(admin: Api, theft: Theft, variants: list[tuple[str, Object]]) -> None:
    """A copy of the identity for each variant of its fence, with the same rights."""
    subject, accounts = account(theft.function, SYSTEM_NAMESPACE), [account(name, SYSTEM_NAMESPACE) for name, _ in variants]
    for kind in (CLUSTER_ROLE_BINDING, ROLE_BINDING):
        for binding in (await admin.list(kind)).items:
            if subject in (binding.get("subjects") or ()):
                name, namespace = f"{binding['metadata']['name']}-lines", binding["metadata"].get("namespace", "")
                await admin.create(kind, obj(kind, name, namespace, roleRef=binding["roleRef"], subjects=accounts))

    async def make(name: str, fence: Object) -> None:
        await admin.create(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, name, SYSTEM_NAMESPACE))
        condition = f'request.userInfo.username == "system:serviceaccount:{SYSTEM_NAMESPACE}:{name}"'
        # With wildcards nobody spends time on the types of the expressions, which are looked at elsewhere.
        everything = {
            "apiGroups": ["*"],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": ["*/*"],
        }
        identity = {"name": "identity", "expression": condition}
        spec = {**fence["spec"], "matchConstraints": {"resourceRules": [everything]}, "matchConditions": [identity]}
        spec = merged([{**fence, "spec": spec}])[0]["spec"]
        bound = {"policyName": name, "validationActions": ["Deny"]}
        for kind, body in ((ADMISSION_POLICY, spec), (ADMISSION_POLICY_BINDING, bound)):
            await admin.create(kind, obj(kind, name, spec=body))

    await asyncio.gather(*(make(name, fence) for name, fence in variants))


async def _lets_through(cages: Cages, theft: Theft, name: str, title: str) -> bool:
    """Whether some attack succeeds against a variant; those that the line seems to be about come first."""
    thief = await cages.steal(name)
    fenced = [each for each in theft.attacks if each.is_by_fence]

    def about(attack: Attack) -> bool:
        return attack.words in title or title.removeprefix(f"{PROTECTED}: ") in attack.title

    for each in sorted(fenced, key=lambda each: not about(each)):
        if await outcome(thief, each.ask) is None:
            return True
    return False
