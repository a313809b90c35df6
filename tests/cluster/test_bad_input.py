"""Clusters that are not as commands expect them: without Tenantry, read without rights, with an installation that is older.

Each command says what is wrong and the way out, and ends with the code that its page names; `status`, `tree`, `map` and `console`
have more of it in their own tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from commanding import account_kubeconfig, commanding
from times import SERVED_S

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.install import INSTALL_MANAGER, install
from tenantry.model.config import Config
from tenantry.model.flux.names import TENANT
from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, SERVICE_ACCOUNT
from tenantry.serving.installed import descriptors
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = pytest.mark.timeout(240)
Answer = tuple[int, str, str]
Run = Callable[..., Awaitable[Answer]]
Expected = Mapping[Sequence[str], tuple[int, Sequence[str]]]
"""By arguments: the exit code, and what is said."""
NO_TENANTRY = ("this cluster has no Tenantry", "nstall it")
NO_LEDGER = ("there is no ledger of this cluster at", "decisions.enabled: true", "kubectl exec -n tenantry-system deploy/ledger")
SECRETS = ("get", "secrets", "-n", "default")


@pytest.fixture
def run(control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``await run("plan", ...)``: exit code, output and errors, on a machine without a ledger."""
    monkeypatch.setenv("TENANTRY_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TENANTRY_LEDGER", raising=False)
    return commanding(control_plane)


async def hold(run: Run, expected: Expected, kubeconfig: Path) -> None:
    """Each command ends and says as expected."""
    wrong = []
    for arguments, (code, said) in expected.items():
        more = ["--kubeconfig", str(kubeconfig)] if arguments[0] == "demo" else []
        found, output, errors = await run(*arguments, *more, kubeconfig=kubeconfig)
        lacks = [words for words in said if words not in output + errors]
        if found != code or lacks or "Traceback" in output + errors:
            wrong.append((" ".join(arguments), found, lacks, output, errors))
    assert not wrong


# -- no Tenantry -----------------------------------------------------------------------------------------------------


async def test_a_cluster_without_tenantry_is_told_by_each_command(run: Run, control_plane: ControlPlane) -> None:
    """Who asks about us hears that we are not there, with exit code 1; what does not need us is answered: nothing is ours."""

    async def bare() -> bool:
        return (await run("status"))[0] == 1

    await eventually(bare, within=SERVED_S, what="the CRDs of an earlier module are gone")
    expected: Expected = {
        ("plan", "--label", "namespace/default", "a=b"): (1, NO_TENANTRY),
        ("plan", "project/p-a"): (1, NO_TENANTRY),
        ("status",): (1, NO_TENANTRY),
        ("tree",): (1, NO_TENANTRY),
        ("map", "-o", "json"): (1, NO_TENANTRY),
        ("console", "--no-open"): (1, NO_TENANTRY),
        ("demo",): (1, NO_TENANTRY),
        ("replay", "--all"): (1, NO_TENANTRY),
        ("replay", "--since", "1h"): (1, NO_LEDGER),
        ("history",): (1, NO_LEDGER),
        ("explain", "can", "group:system:masters", *SECRETS): (0, ["nothing of ours gives this"]),
        ("explain", "can", "sa:default/default", *SECRETS): (1, ["no: ServiceAccount default/default may get secrets"]),
        ("explain", "why-not", "jane", *SECRETS): (1, ["missing: User jane may get secrets in namespace default"]),
        ("explain", "namespace/default"): (1, ["not ours: Namespace default", "so defaults count"]),
    }
    await hold(run, expected, control_plane.kubeconfig)


# -- no rights -------------------------------------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def installed(control_plane: ControlPlane) -> None:
    """CRDs, identities and rights of all functions, of which none runs, nor ever told of a decision."""
    async with await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=control_plane.kubeconfig) as api:
        await install(api, list(descriptors()), Config(), lambda _: None)


async def test_who_may_read_nothing_is_told_what_could_not_be_read(
    run: Run, installed: None, admin: Api, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """No command takes what it may not read for what is not there: it names it, and does not end with 0."""
    await admin.create(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, "nobody", "default"))
    nobody = await account_kubeconfig(admin, control_plane, "default", "nobody", tmp_path / "nobody")
    unread = "NOT ALL OF THE CLUSTER: what follows lacks what could not be read"
    ledger = ["which ledger is this cluster's cannot be seen (leases.coordination.k8s.io is forbidden", "name it with --ledger"]
    expected: Expected = {
        ("plan", "--label", "namespace/default", "a=b"): (1, ['namespace/default: namespaces "default" is forbidden']),
        ("plan", "project/p-a"): (
            1,
            [
                "0 created, 0 changed, 0 deleted; this is not the whole plan",
                "could not be read: which functions are installed",
                "could not be read: get namespaces cattle-project-p-a",
                "the ConfigMaps in tenantry-system cannot be read; name the file with TENANTRY_CONFIG",
            ],
        ),
        ("status",): (1, [unread, "namespaces is forbidden"]),
        ("tree",): (1, [unread, "namespaces is forbidden"]),
        ("map", "-o", "json"): (1, ["tenantry: not in it: rolebindings.rbac.authorization.k8s.io"]),
        ("demo",): (1, ["leases.coordination.k8s.io is forbidden"]),
        ("replay", "--all"): (1, ['configmaps "tenantry-dead-letters" is forbidden']),
        ("replay", "--since", "1h"): (1, ledger),
        ("history",): (1, ledger),
        ("explain", "can", "sa:default/default", *SECRETS): (
            2,
            ["not known: ", "you may not read: clusterrolebindings of the cluster; rolebindings in namespace default"],
        ),
        ("explain", "why-not", "jane", *SECRETS): (
            2,
            ["not known: ", "you may not read: Namespace default; clusterrolebindings"],
        ),
        ("explain", "namespace/default"): (2, ["you may not read Namespace default"]),
    }
    await hold(run, expected, nobody)


# -- an older installation -------------------------------------------------------------------------------------------


async def test_an_older_installation_is_told_by_each_command(
    run: Run, installed: None, admin: Api, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """CRDs that are not there, one without a newer field, functions that tell no decisions: said, and the rest is answered."""
    gone = ("namespacescopes.operator.ibm.com", "sourcegrants.tenantry.dev")
    await asyncio.gather(*(admin.delete(CUSTOM_RESOURCE_DEFINITION, name) for name in gone))
    crd = f"{TENANT.plural}.{TENANT.group}"
    at = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/deletionPolicy"
    await admin.json_patch(CUSTOM_RESOURCE_DEFINITION, crd, "", [{"op": "remove", "path": at}])
    tenant = tmp_path / "tenant.yaml"
    tenant.write_text(yaml.safe_dump(obj(TENANT, "crew", spec={"namespaces": ["crew"], "deletionPolicy": "Retain"})))

    async def older() -> bool:
        _, text, _ = await run("status")
        _, _, errors = await run("plan", "-f", str(tenant), "--server")
        return all(name in text.splitlines()[0] for name in gone) and "not declared in schema" in errors

    await eventually(older, within=SERVED_S, what="the API server serves the older CRDs")
    older_line = "OLDER INSTALLATION: the cluster does not serve"
    expected: Expected = {
        ("plan", "--label", "namespace/default", "a=b"): (
            1,
            ["this is not the whole plan", "KindNotServed: namespacescopes", "is the installation older than this command?"],
        ),
        ("plan", "project/p-a"): (0, ["0 created, 0 changed, 0 deleted\n"]),
        ("plan", "-f", str(tenant), "--server"): (
            1,
            ["tenant.yaml, document 1: ", "deletionPolicy: field not declared in schema"],
        ),
        ("status",): (3, [older_line, "apply knative/ of this version again", "FUNCTION"]),
        ("tree",): (0, [older_line, "RoleBinding"]),
        ("map", "-o", "json"): (0, ['"notServed": [', "sourcegrants.tenantry.dev"]),
        ("history",): (1, NO_LEDGER),
        ("replay", "--all"): (0, ["nothing to send"]),
        ("explain", "can", "sa:default/default", *SECRETS): (1, ["SubjectAccessReview agrees"]),
        ("explain", "namespace/default"): (1, ["not ours: Namespace default"]),
        ("explain", "sourcegrant/x", "-n", "default"): (2, ["serves no resource 'sourcegrant'"]),
    }
    await hold(run, expected, control_plane.kubeconfig)
