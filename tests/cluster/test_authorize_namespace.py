"""``tenantry authorize-namespace``: consent by command (sb-90)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from operators import Operators
from people import People

from tenantry.api import Api
from tenantry.api.errors import Forbidden
from tenantry.cli import main
from tenantry.local.control_plane import ControlPlane
from tenantry.model.consent import FULL_CONSENT, consent_name
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING
from tenantry.testing import eventually


@pytest.fixture
def command(control_plane: ControlPlane) -> object:
    """``await command(...)``: exit code, output and errors under an administrator's kubeconfig."""

    async def run(*arguments: str | Path) -> tuple[int, str, str]:
        def invoke() -> Result:
            return CliRunner().invoke(
                main, ["authorize-namespace", *map(str, arguments)], env={"KUBECONFIG": str(control_plane.kubeconfig)}
            )

        result = await asyncio.to_thread(invoke)  # the command brings an event loop of its own
        return result.exit_code, result.stdout, result.stderr

    return run


@pytest.mark.check("sb-90")
async def test_consent_comes_and_goes(command, admin: Api, people: People, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The consent is made once, stays as it is when asked for again, and is taken back; mistakes are named."""
    own = Operators(admin, people)
    await own.begin(1, consent=False, operator=False)
    target, name = own.member(1), consent_name(own.home)

    code, output, _ = await command(target, "--to", own.home, "--dry-run")
    assert (code, await admin.get(ROLE, name, target)) == (0, None)
    assert output.splitlines() == [f"{kind} {target}/{name} created (dry run)" for kind in ("Role", "RoleBinding")]
    code, output, _ = await command(target, "-to", own.home)
    assert (code, output.count("created")) == (0, 2)
    role, binding = await people.get(ROLE, name, target), await people.get(ROLE_BINDING, name, target)
    assert role["rules"] == list(FULL_CONSENT)
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "ibm-namespace-scope-operator", "namespace": own.home}]
    code, output, _ = await command(target, "-to", own.home, "-o", "json")
    assert (code, [each["result"] for each in json.loads(output)]) == (0, ["unchanged", "unchanged"])
    assert await people.get(ROLE, name, target) == role

    least = tmp_path / "least.yaml"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    least.write_text(yaml.safe_dump({"kind": "Role", "rules": rules}))
    code, _, _ = await command(target, "--to", own.home, "--role-file", str(least), "--subject", "elsewhere/operator")
    assert code == 0
    assert (await people.get(ROLE, name, target))["rules"] == rules
    subjects = (await people.get(ROLE_BINDING, name, target))["subjects"]
    assert subjects == [{"kind": "ServiceAccount", "name": "operator", "namespace": "elsewhere"}]

    for _ in range(2):
        code, _, _ = await command(target, "-to", own.home, "-delete")
        assert (code, await admin.get(ROLE, name, target), await admin.get(ROLE_BINDING, name, target)) == (0, None, None)
    code, _, errors = await command(target, "-to", "nowhere")
    assert (code, "nowhere" in errors) == (1, True)
    code, _, errors = await command("nowhere-either", "-to", own.home)
    assert (code, "nowhere-either" in errors) == (1, True)
    code, _, errors = await command(target, "--unheard-of")
    assert (code, "--unheard-of" in errors) == (1, True)
    code, _, errors = await command(target, "-to")
    assert (code, "-to" in errors) == (1, True)
    code, _, errors = await command(target, "-to", own.home, "--role-file", str(tmp_path / "missing.yaml"))
    assert (code, "missing.yaml" in errors) == (1, True)
    code, output, _ = await command("-h")
    assert (code, "Examples" in output) == (0, True)


async def test_exported_manifests_are_the_consent(command, admin: Api, people: People) -> None:  # type: ignore[no-untyped-def]
    """What is exported, applied by whatever means, is what the command would have made."""
    own = Operators(admin, people)
    await own.begin(1, consent=False, operator=False)
    _, output, _ = await command(own.member(1), "--to", own.home, "--export")
    for kind, manifest in zip((ROLE, ROLE_BINDING), yaml.safe_load_all(output), strict=True):
        await admin.create(kind, manifest)
    _, output, _ = await command(own.member(1), "--to", own.home, "-o", "yaml", "--dry-run")
    assert [each["kind"] for each in yaml.safe_load(output)] == ["Role", "RoleBinding"]
    _, as_json, _ = await command(own.member(1), "--to", own.home, "--export", "-o", "json")
    role = json.loads(as_json)["items"][0]
    assert role["rules"] == (await people.get(ROLE, consent_name(own.home), own.member(1)))["rules"]


async def test_dry_run_changes_nothing(command, admin: Api, people: People, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """With ``--dry-run`` it is told what would be updated or deleted, and all stays as it is."""
    own = Operators(admin, people)
    await own.begin(1, consent=False, operator=False)
    target, name = own.member(1), consent_name(own.home)
    code, output, _ = await command(target, "--to", own.home, "--delete", "--dry-run")
    assert (code, output.splitlines()) == (0, [f"{kind} {target}/{name} absent" for kind in ("Role", "RoleBinding")])
    await command(target, "--to", own.home)
    before = [await people.get(kind, name, target) for kind in (ROLE, ROLE_BINDING)]

    code, output, _ = await command(target, "--to", own.home, "--delete", "--dry-run")
    assert (code, output.splitlines()) == (0, [f"{kind} {target}/{name} deleted (dry run)" for kind in ("Role", "RoleBinding")])
    least = tmp_path / "least.yaml"
    least.write_text(yaml.safe_dump([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]))
    code, output, _ = await command(target, "--to", own.home, "--role-file", str(least), "--subject", "a/b", "--dry-run")
    assert (code, output.splitlines()) == (0, [f"{kind} {target}/{name} updated (dry run)" for kind in ("Role", "RoleBinding")])
    assert [await people.get(kind, name, target) for kind in (ROLE, ROLE_BINDING)] == before


READ = ["get"]
WRITE = ["get", "create", "patch", "delete", "escalate", "bind"]


@pytest.mark.check("sb-90")
@pytest.mark.parametrize("roles", [READ, WRITE], ids=["role", "binding"])
@pytest.mark.parametrize("option", ["", "--delete"], ids=["apply", "delete"])
async def test_refusal_is_a_failure(  # type: ignore[no-untyped-def]
    command, admin: Api, people: People, control_plane: ControlPlane, tmp_path: Path, roles: list[str], option: str
) -> None:
    """When the API server refuses Role or RoleBinding the command exits with 1 and says what was refused."""
    own = Operators(admin, people)
    await own.begin(1, consent=bool(option), operator=False)
    target, name = own.member(1), consent_name(own.home)
    kubeconfig = tmp_path / "kubeconfig"
    async with _limited(own, control_plane, kubeconfig, roles):
        code, output, errors = await command(target, "--to", own.home, *([option] if option else []), "--kubeconfig", kubeconfig)
    refused = "roles" if roles is READ else "rolebindings"
    assert code == 1
    assert f'{refused}.rbac.authorization.k8s.io "{name}" is forbidden' in errors
    assert "Traceback" not in output + errors
    role, binding = await admin.get(ROLE, name, target), await admin.get(ROLE_BINDING, name, target)
    assert (role is not None) == (bool(option) == (roles is READ))
    assert (binding is not None) == bool(option)


async def test_a_refused_deletion_keeps_no_other_back(  # type: ignore[no-untyped-def]
    command, admin: Api, people: People, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Who may delete the RoleBinding but not the Role takes the consent out of force, and is told what was refused."""
    own = Operators(admin, people)
    await own.begin(1, operator=False)
    target, name = own.member(1), consent_name(own.home)
    kubeconfig = tmp_path / "kubeconfig"
    async with _limited(own, control_plane, kubeconfig, READ, bindings=WRITE):
        code, output, errors = await command(target, "--to", own.home, "--delete", "--kubeconfig", kubeconfig)
    assert (code, output.splitlines()) == (1, [f"Role {target}/{name} refused", f"RoleBinding {target}/{name} deleted"])
    assert f'roles.rbac.authorization.k8s.io "{name}" is forbidden' in errors
    assert await admin.get(ROLE, name, target) is not None
    assert await admin.get(ROLE_BINDING, name, target) is None


@asynccontextmanager
async def _limited(
    own: Operators, control_plane: ControlPlane, kubeconfig: Path, roles: list[str], bindings: list[str] = READ
) -> AsyncIterator[None]:
    """A kubeconfig of somebody who may do this with Roles and RoleBindings, and only read namespaces."""
    admin, name, group = own.admin, f"{own.home}-limited", ROLE.group
    await own.account("limited")
    path = f"/api/v1/namespaces/{own.home}/serviceaccounts/limited/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = (await admin.request("POST", path, None, asked))["status"]["token"]
    written = yaml.safe_load(control_plane.kubeconfig.read_text())
    written["users"][0]["user"] = {"token": token}
    kubeconfig.write_text(yaml.safe_dump(written))
    rules = [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": READ},
        {"apiGroups": [group], "resources": ["roles"], "verbs": roles},
        {"apiGroups": [group], "resources": ["rolebindings"], "verbs": bindings},
    ]
    body = {"apiVersion": ROLE.api_version, "metadata": {"name": name}}
    await admin.create(CLUSTER_ROLE, {**body, "kind": "ClusterRole", "rules": rules})
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": "limited", "namespace": own.home}
    await admin.create(CLUSTER_ROLE_BINDING, {**body, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]})

    async with await Api.connect(field_manager="tests-limited", kubeconfig=kubeconfig) as limited:

        async def in_force() -> bool:
            try:
                await limited.get(ROLE_BINDING, "any", own.home)
            except Forbidden:
                return False
            return True

        await eventually(in_force, what="its rights")
    yield
    await admin.delete(CLUSTER_ROLE_BINDING, name)
    await admin.delete(CLUSTER_ROLE, name)
