"""``tenantry create`` in a cluster: what is there stays; what is in the way is told (2.6)."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from commanding import Command, commanding
from flux_crds import current, install_flux
from people import People, token
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.api.kubeconfig import find as find_kubeconfig
from tenantry.local.control_plane import ControlPlane
from tenantry.model.flux.names import DEFAULT, TENANCY_PROFILE, TENANT_LABEL
from tenantry.model.flux.onboarding import GIT_REPOSITORY, KUSTOMIZATION
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    labels_of,
)
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

KINDS = {each.kind: each for each in (NAMESPACE, SERVICE_ACCOUNT, ROLE_BINDING)}


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def served(identity: Callable[..., Awaitable[Path]], admin: Api) -> None:
    """Our kinds, and those of Flux."""
    await identity("namespace-registration")
    await install_flux(admin, current("GitRepository", "Kustomization"))


@pytest.fixture
def create(control_plane: ControlPlane) -> Command:
    """``await create("tenant", ...)``: exit code, output and errors."""
    command = commanding(control_plane)

    async def run(*arguments: str | Path, **options: Any) -> tuple[int, str, str]:
        return await command("create", *arguments, **options)

    return run


def results(output: str) -> list[str]:
    """The last words of lines."""
    return [line.rpartition(" ")[2] for line in output.splitlines()]


async def refused(create: Command, *arguments: str | Path, why: str) -> str:
    """A command ends with one line that has these words, and prints nothing."""
    code, output, errors = await create(*arguments)
    assert code != 0
    assert output == ""
    assert errors.count("\n") == 1, errors
    assert why in errors
    return errors


async def contents(admin: Api, namespace: str) -> list[str]:
    """Accounts and RoleBindings in a namespace that people made."""
    found = [each for kind in (SERVICE_ACCOUNT, ROLE_BINDING) for each in (await admin.list(kind, namespace)).items]
    return [each["metadata"]["name"] for each in found if each["metadata"]["name"] != "default"]


# -- tenants -----------------------------------------------------------------------------------------------------


@pytest.mark.check("f-47")
async def test_two_namespaces_are_six_documents(create: Command, admin: Api) -> None:
    """By namespace; applied twice, and made by the command twice, the second time changes nothing."""
    tenant = f"t{token()}"
    first, second = f"b-{tenant}", f"a-{tenant}"
    options = ("tenant", tenant, f"--with-namespace={first}", f"--with-namespace={second}")
    code, output, _ = await create(*options, "--export")
    documents = list(yaml.safe_load_all(output))
    assert code == 0
    names = [(each["kind"], each["metadata"].get("namespace", each["metadata"]["name"])) for each in documents]
    assert names == [(kind, name) for name in (first, second) for kind in KINDS]

    async def apply() -> list[str]:
        applied = [await admin.apply(KINDS[each["kind"]], each) for each in documents]
        return [each["metadata"]["resourceVersion"] for each in applied]

    assert await apply() == await apply()
    code, output, _ = await create(*options)
    assert (code, results(output)) == (0, ["unchanged"] * 6)


async def test_a_tenant_is_made_once(create: Command, people: People) -> None:
    """As it is printed; a second run writes nothing, and what is told names each object."""
    tenant = f"t{token()}"
    options = ("tenant", tenant, f"--with-namespace=apps-{tenant}", "--label=stage=dev")
    _, exported, _ = await create(*options, "--export")
    code, output, _ = await create(*options)
    where = f"apps-{tenant}"
    named = [f"Namespace {where}", f"ServiceAccount {where}/{tenant}", f"RoleBinding {where}/{tenant}-reconciler"]
    assert (code, output.splitlines()) == (0, [f"{each} created" for each in named])
    before = []
    for wanted in yaml.safe_load_all(exported):
        live = await people.get(KINDS[wanted["kind"]], wanted["metadata"]["name"], wanted["metadata"].get("namespace", ""))
        assert wanted["metadata"]["labels"].items() <= labels_of(live).items()
        assert {part: live[part] for part in ("roleRef", "subjects") if part in wanted} == {
            part: wanted[part] for part in ("roleRef", "subjects") if part in wanted
        }
        before.append(live)
    code, output, _ = await create(*options, "-o", "json")
    assert (code, [each["result"] for each in json.loads(output)]) == (0, ["unchanged"] * 3)
    for live in before:
        metadata = live["metadata"]
        assert await people.get(KINDS[live["kind"]], metadata["name"], metadata.get("namespace", "")) == live


@pytest.mark.check("f-53")
async def test_labels_of_others_stay(create: Command, people: People) -> None:
    """A namespace that is taken over keeps its labels, those of pod security too; the next run needs no ``--adopt``."""
    tenant, security = f"t{token()}", {"pod-security.kubernetes.io/enforce": "restricted", "team": "one"}
    await people.namespace(f"apps-{tenant}", labels=security)
    code, output, _ = await create("tenant", tenant, f"--with-namespace=apps-{tenant}", "--adopt")
    assert (code, results(output)) == (0, ["updated", "created", "created"])
    labels = labels_of(await people.get(NAMESPACE, f"apps-{tenant}"))
    assert {**security, TENANT_LABEL: tenant}.items() <= labels.items()
    code, output, _ = await create("tenant", tenant, f"--with-namespace=apps-{tenant}")
    assert (code, results(output)) == (0, ["unchanged"] * 3)


@pytest.mark.check("f-54")
@pytest.mark.parametrize("adopt", [(), ("--adopt",)], ids=["", "adopt"])
async def test_a_namespace_of_another_tenant_is_refused(
    create: Command, admin: Api, people: People, adopt: tuple[str, ...]
) -> None:
    """Nothing is changed, and nothing is made elsewhere either."""
    tenant, other = f"t{token()}", f"o{token()}"
    before = await people.namespace(f"apps-{other}", labels={TENANT_LABEL: other})
    options = (f"--with-namespace=new-{tenant}", f"--with-namespace=apps-{other}", *adopt)
    await refused(create, "tenant", tenant, *options, why=f"namespace apps-{other} belongs to tenant {other}")
    await refused(create, "tenant", tenant, *options, "--skip-namespace", why=f"belongs to tenant {other}")
    after = await people.get(NAMESPACE, f"apps-{other}")
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert await contents(admin, f"apps-{other}") == []
    assert await admin.get(NAMESPACE, f"new-{tenant}") is None


async def test_a_namespace_of_nobody_is_refused(create: Command, admin: Api, people: People) -> None:
    """Without ``--adopt``; who leaves namespaces to others needs one that is there."""
    tenant = f"t{token()}"
    before = await people.namespace(f"apps-{tenant}", labels={"team": "one"})
    options = ("tenant", tenant, f"--with-namespace=apps-{tenant}")
    await refused(create, *options, why="give --adopt")
    assert (await people.get(NAMESPACE, f"apps-{tenant}")) == before
    assert await contents(admin, f"apps-{tenant}") == []
    code, output, _ = await create(*options, "--skip-namespace")
    assert (code, results(output)) == (0, ["created"] * 2)
    assert (await people.get(NAMESPACE, f"apps-{tenant}")) == before
    await refused(create, "tenant", tenant, f"--with-namespace=no-{tenant}", "--skip-namespace", why="does not exist")


async def test_namespaces_of_the_platform_are_refused(create: Command, admin: Api) -> None:
    """Those of Kubernetes, ours, and those that the profile exempts, or would by its defaults."""
    tenant = f"t{token()}"
    for name in ("default", "kube-system", "kube-public", "kube-new", "tenantry-system", "flux-system"):
        await refused(create, "tenant", tenant, f"--with-namespace={name}", "--adopt", why=f"namespace {name} is the platform's")
    assert await admin.get(NAMESPACE, "kube-new") is None
    await admin.create(TENANCY_PROFILE, obj(TENANCY_PROFILE, DEFAULT, spec={"exemptNamespaces": [f"mine-{tenant}"]}))
    try:
        options = (f"--with-namespace=mine-{tenant},tenantry-system",)
        errors = await refused(create, "tenant", tenant, *options, why=f"namespace mine-{tenant} is the platform's")
        assert "namespace tenantry-system is the platform's" in errors
    finally:
        await admin.delete(TENANCY_PROFILE, DEFAULT)


async def test_a_binding_is_changed_in_place(create: Command, people: People) -> None:
    """Its labels and subjects, so that rights are never gone; labels of others stay."""
    tenant = f"t{token()}"
    namespace, name = f"apps-{tenant}", f"{tenant}-reconciler"
    options = ("tenant", tenant, f"--with-namespace={namespace}")
    await create(*options)
    before = await people.get(ROLE_BINDING, name, namespace)
    stranger = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}
    labels = {"mine": "x", TENANT_LABEL: "nobody"}
    await people.edit(
        ROLE_BINDING, name, namespace, ("replace", "/subjects", [stranger]), ("replace", "/metadata/labels", labels)
    )
    code, output, _ = await create(*options)
    after = await people.get(ROLE_BINDING, name, namespace)
    assert (code, results(output)) == (0, ["unchanged", "unchanged", "updated"])
    assert after["subjects"] == before["subjects"]
    assert labels_of(after) == {"mine": "x", TENANT_LABEL: tenant}
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


async def test_a_binding_for_another_role_is_made_anew(
    create: Command, admin: Api, people: People, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """That field cannot change.  Who may not bind the new role loses nothing of the old."""
    tenant = f"t{token()}"
    namespace, name = f"apps-{tenant}", f"{tenant}-reconciler"
    options = ("tenant", tenant, f"--with-namespace={namespace}")
    await create(*options, "--cluster-role=view")
    before = await people.get(ROLE_BINDING, name, namespace)
    weak = await weak_person(admin, control_plane, tmp_path)
    code, output, errors = await create(*options, kubeconfig=weak)
    assert (code, output) == (1, "")
    assert "cluster-admin" in errors or "attempting to grant RBAC permissions" in errors
    assert await people.get(ROLE_BINDING, name, namespace) == before
    code, output, _ = await create(*options)
    assert (code, results(output)[:2]) == (0, ["unchanged", "unchanged"])
    assert output.splitlines()[2] == f"RoleBinding {namespace}/{name} made anew"
    after = await people.get(ROLE_BINDING, name, namespace)
    assert after["roleRef"]["name"] == "cluster-admin"
    assert [each["metadata"]["name"] for each in (await admin.list(ROLE_BINDING, namespace)).items] == [name]


async def weak_person(admin: Api, control_plane: ControlPlane, folder: Path) -> Path:
    """The kubeconfig of somebody who may write RoleBindings, and grant no more than his own rights."""
    name = f"weak-{token()}"
    await admin.create(NAMESPACE, obj(NAMESPACE, name))
    await admin.create(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, name, name))
    rules = [
        {"apiGroups": [""], "resources": ["namespaces", "serviceaccounts"], "verbs": ["*"]},
        {
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["rolebindings"],
            "verbs": ["get", "create", "delete", "patch"],
        },
        {"apiGroups": ["tenantry.dev"], "resources": ["tenancyprofiles"], "verbs": ["get"]},
    ]
    await admin.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, name, rules=rules))
    subject = {"kind": "ServiceAccount", "name": name, "namespace": name}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    await admin.create(CLUSTER_ROLE_BINDING, obj(CLUSTER_ROLE_BINDING, name, roleRef=role, subjects=[subject]))
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await admin.request("POST", f"{SERVICE_ACCOUNT.path(name, name)}/token", body=request)
    strong = find_kubeconfig(control_plane.kubeconfig)
    assert strong is not None
    file = folder / "weak.kubeconfig"
    file.write_text(yaml.safe_dump(strong.as_user({"token": answer["status"]["token"]})))
    return file


# -- companions --------------------------------------------------------------------------------------------------


async def test_a_source_and_a_kustomization_are_made_as_printed(create: Command, people: People, space: str) -> None:
    """They are updated to what is asked next, what is not asked any more is given up, and others' fields stay."""
    source = ("source", "git", "app", "-n", space, "--url=https://example.com/app")
    code, output, _ = await create(*source, "--branch=main")
    assert (code, output) == (0, f"GitRepository {space}/app created\n")
    await people.edit(GIT_REPOSITORY, "app", space, ("add", "/spec/suspend", True))
    assert (await create(*source, "--branch=main"))[1] == f"GitRepository {space}/app unchanged\n"
    assert (await create(*source, "--tag=v1", "--interval=90s"))[1] == f"GitRepository {space}/app updated\n"
    spec = (await people.get(GIT_REPOSITORY, "app", space))["spec"]
    assert spec == {"url": "https://example.com/app", "ref": {"tag": "v1"}, "interval": "1m30s", "suspend": True}

    delivered = ("kustomization", "app", "-n", space, "--source=app")
    code, output, _ = await create(*delivered, "--prune", "-o", "json")
    assert (code, json.loads(output)) == (
        0,
        [{"kind": "Kustomization", "namespace": space, "name": "app", "result": "created"}],
    )
    _, exported, _ = await create(*delivered, "--prune", "--export")
    assert (await people.get(KUSTOMIZATION, "app", space))["spec"] == yaml.safe_load(exported)["spec"]


async def test_a_key_is_not_replaced(create: Command, people: People, space: str, tmp_path: Path) -> None:
    """The repository may know it; the public part of a new one is told."""
    file = tmp_path / "known_hosts"
    file.write_text("host ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\n")
    options = ("secret", "git", "auth", "-n", space, "--url=ssh://git@host/x", f"--known-hosts-file={file}")
    code, output, _ = await create(*options)
    made = await people.get(SECRET, "auth", space)
    public = base64.b64decode(made["data"]["identity.pub"]).decode()
    assert (code, output) == (0, f"Secret {space}/auth created\ndeploy key: {public}")
    assert base64.b64decode(made["data"]["known_hosts"]).decode() == file.read_text()
    await refused(create, *options, why="delete it to have another")
    assert await people.get(SECRET, "auth", space) == made


@pytest.mark.check("f-63")
async def test_credentials_are_written_and_never_told(
    create: Command, people: People, space: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nowhere on stderr or in a log, also where the API server refuses them."""
    caplog.set_level("DEBUG")
    password = f"s3cr3t-{token()}"
    options = ("--url=https://h/x", "--username=me")
    encoded = {"username": base64.b64encode(b"me").decode(), "password": base64.b64encode(password.encode()).decode()}
    said = []
    for result in ("created", "unchanged"):
        code, output, errors = await create("secret", "git", "auth", "-n", space, *options, f"--password={password}")
        assert (code, output) == (0, f"Secret {space}/auth {result}\n")
        said.append(errors)
    assert (await people.get(SECRET, "auth", space))["data"] == encoded
    await people.admin.create(SECRET, obj(SECRET, "kept", space, immutable=True))
    for name, namespace in (("auth", f"no-{space}"), ("kept", space)):
        code, output, errors = await create("secret", "git", name, "-n", namespace, *options, f"--password={password}")
        assert (code, output) == (1, "")
        said.append(errors)
    assert all(text for text in said[2:])
    for hidden in (password, encoded["password"]):
        assert hidden not in "".join(said) + caplog.text
