"""``tenantry authorize-namespace``: consent by command (sb-90)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from operators import Operators
from people import People

from tenantry.api import Api
from tenantry.cli import main
from tenantry.local.control_plane import ControlPlane
from tenantry.model.consent import FULL_CONSENT, consent_name
from tenantry.model.kinds import ROLE, ROLE_BINDING


@pytest.fixture
def command(control_plane: ControlPlane) -> object:
    """``await command(...)``: exit code, output and errors under an administrator's kubeconfig."""

    async def run(*arguments: str) -> tuple[int, str, str]:
        def invoke() -> Result:
            return CliRunner().invoke(
                main, ["authorize-namespace", *arguments], env={"KUBECONFIG": str(control_plane.kubeconfig)}
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
