"""What no function may write, whatever it was talked into: policies, and what gives the right to write them (3.7, section 0)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, ApiError, Forbidden
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT
from tenantry.model.kinds import (
    ADMISSION_MUTATION,
    ADMISSION_MUTATION_BINDING,
    ADMISSION_POLICY,
    ADMISSION_POLICY_BINDING,
    CLUSTER_ROLE,
    Kind,
    Object,
)
from tenantry.serving.installed import descriptors, services_of
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

WRITER = "scope-binding-sources"
"""The identity that writes the index."""
SERVICES = [each.name for each in services_of(descriptors())]
THERE = "there"
RULES: list[Any] = [{"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]}]
CONSTRAINTS: Object = {
    "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
}
MUTATION: Object = {
    "patchType": "ApplyConfiguration",
    "applyConfiguration": {"expression": 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'},
}
OBJECTS: dict[Kind, Object] = {
    ADMISSION_POLICY: {"spec": {"matchConstraints": CONSTRAINTS, "validations": [{"expression": "true"}]}},
    ADMISSION_POLICY_BINDING: {"spec": {"policyName": THERE, "validationActions": ["Audit"]}},
    ADMISSION_MUTATION: {
        "spec": {
            "matchConstraints": CONSTRAINTS,
            "mutations": [MUTATION],
            "reinvocationPolicy": "Never",
            "failurePolicy": "Ignore",
        }
    },
    ADMISSION_MUTATION_BINDING: {"spec": {"policyName": "nowhere"}},
    CLUSTER_ROLE: {"rules": RULES},
    ACCESS_INDEX: {"spec": {"complete": True}},
}
"""What is tried, with a body that an administrator may write."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def identities(identity: Callable[..., Awaitable[Path]], admin: Api) -> dict[str, Path]:
    """The kubeconfig of every Service of every function, with what they try to change."""
    found = {each: await identity(each) for each in SERVICES}
    for kind, parts in OBJECTS.items():
        await admin.apply(kind, obj(kind, DEFAULT if kind is ACCESS_INDEX else THERE, **parts))
    return found


async def refused(api: Api, method: str, path: str, body: Object | None = None, content: str = "") -> bool:
    """Whether a dry run of a request is refused by rights or by the fence of an identity."""
    query = {"dryRun": "All", **({"fieldManager": "tests", "force": "true"} if content else {})}
    options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]}
    try:
        if content:
            await api.request(method, path, query, body, content)
        else:
            await api.request(method, path, query if body else None, body or options)
    except (AdmissionDenied, Forbidden):
        return True
    except ApiError:
        return False  # for another reason, which is none of this test
    return False


async def written(api: Api, kind: Kind) -> list[str]:
    """What of making, changing and deleting an object of a kind is not refused."""
    name = DEFAULT if kind is ACCESS_INDEX else THERE
    body, new = (obj(kind, each, **OBJECTS[kind]) for each in (name, f"{name}-too"))
    changed = obj(kind, name, labels={"touched": "true"}, **OBJECTS[kind])
    asked = {
        "create": refused(api, "POST", kind.path(), new if kind is not ACCESS_INDEX else body),
        "apply": refused(api, "PATCH", kind.path("", name), changed, "application/apply-patch+yaml"),
        "update": refused(api, "PUT", kind.path("", name), changed),
        "delete": refused(api, "DELETE", kind.path("", name)),
    }
    return [what for what, answer in asked.items() if not await answer]


@pytest.mark.check("f-95")
async def test_no_function_may_write_what_fences_it(identities: dict[str, Path], admin: Api) -> None:
    """Neither policies, bindings and mutations nor ClusterRoles; the index only by scope-binding.

    Of ClusterRoles scope-binding makes those of operators' scopes, which carry its mark; no others.
    """
    assert len(identities) > 5
    found: dict[str, list[str]] = {}
    for service, kubeconfig in identities.items():
        async with await Api.connect(field_manager="tests-thief", kubeconfig=kubeconfig) as api:
            for kind in OBJECTS:
                if ways := await written(api, kind):
                    found[f"{service}: {kind.kind}"] = ways
    assert found.keys() == {f"{WRITER}: AccessIndex"}
    # an administrator may all of it: what is tried is not refused for another reason
    for kind in (each for each in OBJECTS if each is not ACCESS_INDEX):
        assert await written(admin, kind) == ["create", "apply", "update", "delete"], kind
