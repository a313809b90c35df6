"""What functions write is seen in the audit log of a real API server, and judges the lists of their fences."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied
from tenantry.local.deployment import documents
from tenantry.local.fence_policy import POLICY, merged
from tenantry.local.fences import all_fences, fence_files
from tenantry.local.policies import until_in_force
from tenantry.model.kinds import ADMISSION_POLICY, CONFIG_MAP, NAMESPACE, SECRET
from tenantry.testing import fences
from tenantry.testing.audit import AuditLog, Used
from tenantry.testing.objects import obj
from tenantry.testing.writes import Written

FUNCTION = "namespace-registration"
ORPHANED, OPERATED = "helm.cattle.io/helm-project-operator-orphaned", "helm.cattle.io/helm-project-operated"
Identity = Callable[..., Awaitable[Path]]


async def test_a_request_that_a_fence_does_not_know_is_found(
    identity: Identity, admin: Api, audit_log: AuditLog, tmp_path: Path
) -> None:
    """What the function writes counts as used; what its fence lacks is refused, found, and written by `rewrite_all`."""
    kubeconfig = await identity(FUNCTION)
    path = fence_files()[FUNCTION]
    line = next(each.line for each in fences.entries(path.read_text()) if (each.list, each.value) == ("labels", ORPHANED))
    folder = tmp_path / FUNCTION
    folder.mkdir()
    lines = path.read_text().splitlines(keepends=True)
    (folder / "fence.yaml").write_text("".join(lines[: line - 1] + lines[line:]))
    (shorter,) = documents(folder / "fence.yaml")
    fence = merged([shorter if each["metadata"]["name"] == shorter["metadata"]["name"] else each for each in all_fences()])[0]
    await admin.json_patch(ADMISSION_POLICY, POLICY, "", [{"op": "replace", "path": "/spec", "value": fence["spec"]}])
    await until_in_force(admin)

    async with await Api.connect(field_manager=f"tenantry-{FUNCTION}", kubeconfig=kubeconfig) as function:
        project = f"fences-{secrets.token_hex(4)}"
        name, labels = f"cattle-project-{project}", {OPERATED: "true", "helm.cattle.io/projectId": project}
        await function.apply(NAMESPACE, obj(NAMESPACE, name, labels=labels))
        with pytest.raises(AdmissionDenied, match=ORPHANED):
            await function.apply(NAMESPACE, obj(NAMESPACE, name, labels={**labels, ORPHANED: "true"}))
    used = audit_log.read()

    assert Written(FUNCTION, "labels", OPERATED) in used.written
    assert Written(FUNCTION, "labels", ORPHANED) in used.refused
    # Others have written the rest in a whole run.
    everything = {Written(FUNCTION, each.list, each.value) for each in fences.entries((folder / "fence.yaml").read_text())}
    (finding,) = fences.judge_all(everything, used.refused, tmp_path)
    assert finding.startswith(f"knative/{FUNCTION}/fence.yaml, line ")
    assert f'a further line: "{ORPHANED}",' in finding
    assert fences.rewrite_all(everything, used.refused, tmp_path) == [folder / "fence.yaml"]
    assert fences.judge_all(everything, used.refused, tmp_path) == []


async def test_the_log_has_nothing_of_what_secrets_hold(identity: Identity, admin: Api, audit_log: AuditLog) -> None:
    """Writes are recorded with their bodies, but Secrets by name alone."""
    kubeconfig = await identity("release-provisioning-helm-jobs")
    mark, name = secrets.token_hex(8), f"chart-values-{secrets.token_hex(4)}"
    async with await Api.connect(field_manager="tenantry-release-provisioning", kubeconfig=kubeconfig) as function:
        for kind, prefix in ((SECRET, ""), (CONFIG_MAP, "chart-content-")):
            fields = {"type": "Opaque", "stringData": {"a": mark}} if kind is SECRET else {"data": {"b": "seen" + mark[::-1]}}
            await function.create(kind, obj(kind, prefix + name, "cattle-helm-system", **fields))
    text = "".join(str(event) for event in audit_log.events())
    assert name in text
    assert mark not in text
    assert "seen" + mark[::-1] in text
    assert Used.of(audit_log.read().document()) == audit_log.read()
