"""Fences as they are written: one for each identity, over everything that its rights let it write."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import manifests
import pytest
from manifests import Document

from release_provisioning.jobs.manifest import IMAGE
from tenantry.api import Api
from tenantry.local.fence_policy import POLICY, PREFIX, merged
from tenantry.local.fences import all_fences, fence_files, fences_with_param
from tenantry.local.install import PART_OF
from tenantry.model.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING, Object
from tenantry.testing import eventually
from tenantry.testing.fences import entries, policy_text

SOURCES = sorted({spec.service_account_name for _, spec in manifests.sources(manifests.documents())})
IDENTITIES = {**{each: [each] for each in manifests.services()}, "sources": SOURCES}
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
UNBOUNDED = {"events", "subjectaccessreviews"}
"""What gives nobody anything: told, and asked.  The status of our kinds is only status; that of a namespace is more."""
BUILT_IN = [[group] for group in ("", "apps", "batch", "networking.k8s.io", "rbac.authorization.k8s.io")]
BUILT_IN.append(["admissionregistration.k8s.io"])
CHECKED_S = 60.0
"""Types of all expressions on all kinds take some 8 s of CPU."""


def fences() -> dict[str, Object]:
    return {each["metadata"]["name"].removeprefix(PREFIX): each for each in all_fences()}


def variables(fence: Object) -> dict[str, str]:
    return {each["name"]: each["expression"] for each in fence["spec"].get("variables", [])}


def test_every_identity_has_its_fence() -> None:
    """Each identity of ours has one, for that identity alone."""
    found = fences()
    assert found.keys() == IDENTITIES.keys()
    for identity, fence in found.items():
        condition = fence["spec"]["matchConditions"][0]
        named = {name: f'"system:serviceaccount:tenantry-system:{name}"' for name in IDENTITIES[identity]}
        assert all(user in condition["expression"] for user in named.values()), identity
        assert condition["expression"].count("system:serviceaccount:") == len(named)


def test_fences_are_one_policy(installation: list[Document]) -> None:
    """What is installed is made of all fences, bound, and closed when it cannot decide; few are policies of their own."""
    assert policy_text() == (manifests.ROOT / "knative" / "fences" / "policy.yaml").read_text(), "run make fences"
    found = {(d.kind, d.name): d.body for d in installation if d.name.startswith(POLICY)}
    names = {POLICY, *(PREFIX + identity for identity, fence in fences().items() if "namespaceObject" in str(fence))}
    asking = {(each["kind"], each["metadata"]["name"]): each for each in fences_with_param()}
    whole = {(kind.kind, name) for kind in (ADMISSION_POLICY, ADMISSION_POLICY_BINDING) for name in names}
    assert found.keys() == whole | asking.keys()
    assert all(found[key] == each for key, each in asking.items())
    for name in names:
        assert found[ADMISSION_POLICY_BINDING.kind, name]["spec"] == {"policyName": name, "validationActions": ["Deny"]}
        assert found[ADMISSION_POLICY.kind, name]["spec"]["failurePolicy"] == "Fail"
        assert found[ADMISSION_POLICY.kind, name]["metadata"]["labels"].items() >= PART_OF.items()
    validations = sum(len(found[ADMISSION_POLICY.kind, name]["spec"]["validations"]) for name in names)
    assert validations == sum(len(each["spec"]["validations"]) for each in fences().values())


def test_a_fence_is_around_every_right_to_write(installed: list[Document]) -> None:
    """Whatever the rights of a function let it write, its fence looks at."""
    rules: dict[str, list[dict[str, Any]]] = {}
    for d in [*installed, *manifests.resolve(manifests.ROOT / "knative" / "olm")]:
        if d.kind in ("ClusterRole", "Role") and d.name.startswith("tenantry-"):
            rules.setdefault(d.name.removeprefix("tenantry-"), []).extend(d.body.get("rules") or ())
    for identity, fence in fences().items():
        seen = fence["spec"]["matchConstraints"]["resourceRules"]
        if seen[0]["resources"] == ["*"]:
            continue
        for rule in rules[identity]:
            if not WRITES & set(rule["verbs"]):
                continue
            for group in rule["apiGroups"]:
                for resource in set(rule["resources"]) - UNBOUNDED:
                    if "/" in resource and resource != "namespaces/status":
                        continue
                    matched = [each for each in seen if group in each["apiGroups"] and resource in each["resources"]]
                    assert matched, f"{identity}: {group}/{resource}"


def test_what_fences_share_is_the_same_in_all() -> None:
    """What a request changes is worked out in the same way everywhere."""
    shared = ["now", "was", "newLabels", "oldLabels", "labelsWritten", "newAnnotations", "oldAnnotations", "annotationsWritten"]
    shared += ["newFinalizers", "oldFinalizers", "finalizersWritten", "newOwners", "oldOwners"]
    found = [variables(fence) for identity, fence in fences().items() if identity != "sources"]
    for name in shared:
        assert len({each[name] for each in found}) == 1, name


def test_lists_are_in_order() -> None:
    """Each entry stands once."""
    for function, path in fence_files().items():
        lines = [(each.list, each.value) for each in entries(path.read_text())]
        assert len(lines) == len(set(lines)), function


@pytest.mark.parametrize("function", ["release-provisioning", "release-provisioning-helm-jobs"])
def test_the_image_of_jobs_is_that_of_this_version(function: str) -> None:
    """The fence allows the image that the function takes without a configured one."""
    found = entries(fence_files()[function].read_text())
    assert [each.value for each in found if each.list == "images"] == [IMAGE]


async def test_fences_make_sense_to_the_api_server(admin: Api) -> None:
    """It takes them, and finds nothing to warn of in their types, tried on every kind of Kubernetes that they look at.

    As they are shipped nothing is tried: that would take kube-controller-manager seconds wherever they are installed.
    """

    async def checked(fence: Object) -> None:
        name = f"typed-{fence['metadata']['name']}"
        spec = copy.deepcopy(merged([fence])[0]["spec"])
        for rule in spec["matchConstraints"]["resourceRules"]:
            assert rule["apiVersions"] == ["*"]
            if rule["apiGroups"] in BUILT_IN:
                rule["apiVersions"] = ["v1"]
        body = {**fence, "metadata": {"name": name}, "spec": spec}
        made = await admin.create(ADMISSION_POLICY, body)

        async def done() -> dict[str, Any]:
            status = ((await admin.get(ADMISSION_POLICY, name)) or {}).get("status") or {}
            return status if status.get("observedGeneration") == made["metadata"]["generation"] else {}

        try:
            status = await eventually(done, within=CHECKED_S, what=f"{name} is type-checked")
            assert not (status.get("typeChecking") or {}).get("expressionWarnings"), status
        finally:
            await admin.delete(ADMISSION_POLICY, name)

    found = fences().values()
    assert found
    await asyncio.gather(*(checked(fence) for fence in found))
