"""``tenantry authorize-namespace``: consent by command (sb-90, sb-98)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from commanding import account_kubeconfig
from flawless import Calm
from operators import GET_LIST, Operators, chosen, name_of, template
from people import People
from times import SCOPES_S

from scope_binding.consent import FULL_CONSENT, consent_name
from scope_binding.namespace_scopes.names import FROM_LABEL, own_role_name
from tenantry.api import Api
from tenantry.api.errors import Forbidden
from tenantry.cli import main
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    NAMESPACE_SCOPE,
    ROLE,
    ROLE_BINDING,
    Object,
    annotations_of,
    labels_of,
)
from tenantry.testing import eventually
from tenantry.testing.awaiting import deadline
from tenantry.testing.objects import obj


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
    own = Operators(admin)
    await own.begin(1, consent=False, operator=False)
    target, name = own.member(1), consent_name(own.home)

    code, output, _ = await command(target, "--to", own.home, "--dry-run")
    assert (code, await admin.get(ROLE, name, target)) == (0, None)
    assert output.splitlines() == [f"{kind} {target}/{name} created (dry run)" for kind in ("Role", "RoleBinding")]
    code, output, _ = await command(target, "-to", own.home)
    assert (code, output.count("created")) == (0, 2)
    role, binding = await people.get(ROLE, name, target), await people.get(ROLE_BINDING, name, target)
    assert role["rules"] == list(FULL_CONSENT)
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "namespace-scope-consent", "namespace": "tenantry-system"}]
    home = await people.get(NAMESPACE, own.home)
    assert annotations_of(binding) == {"scope-binding/from-namespace-uid": home["metadata"]["uid"]}
    code, output, _ = await command(target, "-to", own.home, "-o", "json")
    assert (code, [each["result"] for each in json.loads(output)]) == (0, ["unchanged", "unchanged"])
    assert await people.get(ROLE, name, target) == role
    agent = "ibm-namespace-scope-operator"
    code, _, _ = await command(target, "-to", own.home, "--subject", f"{own.home}/{agent}")
    subjects = (await people.get(ROLE_BINDING, name, target))["subjects"]
    assert (code, subjects) == (0, [{"kind": "ServiceAccount", "name": agent, "namespace": own.home}])

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
    own = Operators(admin)
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
    own = Operators(admin)
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


@pytest.mark.one_variant("projection")
@pytest.mark.check("sb-98")
async def test_taken_back_consent_ends_the_rights_of_one_home_in_one_member(  # type: ignore[no-untyped-def]
    command, own: Operators, admin: Api, scopes: Knative, calm: Calm, projection: str
) -> None:
    """``--delete`` ends all that was given from that home in that member, and nothing else anywhere."""
    other = Operators(admin, home=f"{own.home}2", prefix=own.prefix)
    await own.begin(2)
    await other.begin(0)
    await other.consent(own.member(1))
    await own.account("second")
    await own.right("second", "second", [{**GET_LIST, "resources": ["secrets"]}])
    await own.pod("second", template(account="second"))
    for home in (own, other):
        await home.scope(1, *([2] if home is own else []), name=f"of-{home.home}", annotations=chosen(projection))
        await home.given(1, name_of(home, projection, f"of-{home.home}"))
    if projection == "own-roles":
        await own.given(1, own_role_name("second", "second", own.home))
    await own.given(2, name_of(own, projection, f"of-{own.home}"))
    await _bound_by_hand(own, "third", own.member(1))
    await calm(scopes)
    for account, resource in (("my-op", "configmaps"), ("second", "secrets")):
        assert await own.may(1, "list", resource, account)
    before = await _rights(admin, own.home, other.home, own.member(1), own.member(2))
    ended = {key for key, obj in before.items() if key[1] == own.member(1) and labels_of(obj).get(FROM_LABEL) == own.home}
    ended |= {(kind, own.member(1), consent_name(own.home)) for kind in ("Role", "RoleBinding")}
    assert len(ended) == {"managed": 5, "own-roles": 7}[projection]

    code, _, _ = await command(own.member(1), "--to", own.home, "--delete")
    assert code == 0
    with deadline(SCOPES_S):
        await own.emptied(1)

        async def refused() -> bool:
            rights = (("my-op", "configmaps"), ("second", "secrets"))
            return not any([await own.may(1, "list", resource, account) for account, resource in rights])

        await eventually(refused, what="the accounts have no right there any more")
        await own.ready("False", "NotAuthorized", name=f"of-{own.home}", text=own.member(1))
    await calm(scopes)
    kept = {key: obj for key, obj in before.items() if key not in ended}
    assert await _rights(admin, own.home, other.home, own.member(1), own.member(2)) == kept
    assert await other.may(1, "list", "configmaps")
    assert await own.may(1, "list", "pods", "third")
    assert await own.may(2, "list", "secrets", "second")
    await own.listed(1, 2)
    await other.ready(name=f"of-{other.home}")
    await admin.delete(NAMESPACE_SCOPE, f"of-{other.home}", other.home)


async def _rights(admin: Api, *namespaces: str) -> dict[tuple[str, str, str], Object]:
    """Every Role and RoleBinding in these namespaces, by kind, namespace and name."""
    lists = [(await admin.list(kind, namespace)).items for kind in (ROLE, ROLE_BINDING) for namespace in namespaces]
    return {(each["kind"], each["metadata"]["namespace"], each["metadata"]["name"]): each for items in lists for each in items}


async def _bound_by_hand(own: Operators, account: str, member: str) -> None:
    """A right in a member that its administrator gave himself."""
    reference = {"apiGroup": ROLE.group, "kind": "ClusterRole", "name": "view"}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": own.home}
    await own.admin.create(ROLE_BINDING, obj(ROLE_BINDING, "by-hand", member, roleRef=reference, subjects=[subject]))


READ = ["get"]
WRITE = ["get", "create", "patch", "delete", "escalate", "bind"]


@pytest.mark.check("sb-90")
@pytest.mark.parametrize("roles", [READ, WRITE], ids=["role", "binding"])
@pytest.mark.parametrize("option", ["", "--delete"], ids=["apply", "delete"])
async def test_refusal_is_a_failure(  # type: ignore[no-untyped-def]
    command, admin: Api, control_plane: ControlPlane, tmp_path: Path, roles: list[str], option: str
) -> None:
    """When the API server refuses Role or RoleBinding the command exits with 1 and says what was refused."""
    own = Operators(admin)
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
    command, admin: Api, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Who may delete the RoleBinding but not the Role takes the consent out of force, and is told what was refused."""
    own = Operators(admin)
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
    await account_kubeconfig(admin, control_plane, own.home, "limited", kubeconfig)
    rules = [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": READ},
        {"apiGroups": [group], "resources": ["roles"], "verbs": roles},
        {"apiGroups": [group], "resources": ["rolebindings"], "verbs": bindings},
    ]
    await admin.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, name, rules=rules))
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": "limited", "namespace": own.home}
    await admin.create(CLUSTER_ROLE_BINDING, obj(CLUSTER_ROLE_BINDING, name, roleRef=reference, subjects=[subject]))

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
