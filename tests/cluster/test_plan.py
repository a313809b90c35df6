"""``tenantry plan``: what functions would do about a change is told before it is made, and nothing is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import pytest_asyncio
import yaml
from click.testing import CliRunner, Result
from commanding import Command, account_kubeconfig, commanding
from people import C1, FUNCTION, LABEL, PROJECT_ID, People, registration, token
from rights import user
from scoping import SCOPES, Scoping, role
from times import POLICY_S

from tenantry.api import Api
from tenantry.cli import main
from tenantry.engine.overlay.api import OverlayApi
from tenantry.engine.overlay.store import Overlay
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import Handler, Owner, Stages, Unit
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.config import Config
from tenantry.model.descriptor import Service
from tenantry.model.kinds import (
    ADMISSION_POLICY,
    ADMISSION_POLICY_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    NAMESPACE,
    RESOURCE_QUOTA,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SERVICE_ACCOUNT,
    Key,
    Object,
    labels_of,
)
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.model.plan import Apply, Plan, plan_of
from tenantry.serving.foresight import Bugs, Foreseen, Foresight, PlannedPart
from tenantry.serving.function import Function, Settings
from tenantry.testing import eventually
from tenantry.testing.objects import obj

NOTHING, FAILED, CHANGES = 0, 1, 2
NO_WRITE = "0 created, 0 changed, 0 deleted"
NO_BINDINGS = "count/rolebindings.rbac.authorization.k8s.io"


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """Two functions, and their configuration as an installation has it."""
    running = await flawlessly(C1, functions=[FUNCTION, SCOPES])
    data = {"tenantry.yaml": yaml.safe_dump(C1)}
    await admin.create(CONFIG_MAP, obj(CONFIG_MAP, f"tenantry-config-{token()}", SYSTEM_NAMESPACE, data=data))
    return running


@pytest.fixture(scope="module")
def plan(control_plane: ControlPlane) -> Command:
    """``await plan("--delete", "namespace/x")``: exit code, output and errors."""
    command = commanding(control_plane)
    return lambda *arguments, **options: command("plan", *arguments, **options)


async def test_a_label_is_followed_to_its_end(plan: Command, admin: Api, people: People) -> None:
    """Each write that a label leads to is named with its step and cause; then nothing is there, and it comes so."""
    name, project = f"team-{token()}", f"p-{token()}"
    await people.namespace(name)
    code, output, _ = await plan("--label", f"namespace/{name}", f"{LABEL}={project}")

    assert code == CHANGES
    first, *lines = output.splitlines()
    assert first == "3 created, 2 changed, 0 deleted in 2 namespaces"
    made = next(line for line in lines if f"create  Namespace {registration(project)}" in line)
    assert made.startswith("1 ")
    assert f"{FUNCTION}/projects for project/{project}, because of Namespace {name}" in made
    assert await admin.get(NAMESPACE, registration(project)) is None
    assert LABEL not in labels_of(await admin.get(NAMESPACE, name))

    await people.label(name, {LABEL: project})
    await people.registered(project)

    async def remembered() -> bool:
        return labels_of(await admin.get(NAMESPACE, name)).get(PROJECT_ID) == project

    await eventually(remembered, within=10, what="the project is remembered")
    code, output, _ = await plan("--label", f"namespace/{name}", f"{LABEL}={project}")
    assert (code, output) == (NOTHING, f"{NO_WRITE}\n")


async def test_who_loses_rights_is_counted(plan: Command, scoping: Scoping, admin: Api) -> None:
    """The deletion of an instance takes its bindings, and the people of them are named."""
    test, person = f"plan-{token()}", f"op-{token()}"
    await scoping.template(f"st-{test}", role(test, subjects=[user(person)]))
    await scoping.instance(f"si-{test}", f"st-{test}", namespaces=["default"])
    await scoping.bound_in(test, "default")
    code, output, _ = await plan("--delete", f"scopeinstances.{SCOPE_INSTANCE.group}/si-{test}", "--diff")

    assert code == CHANGES
    assert "2 deleted in 1 namespace; 1 person loses rights" in output.splitlines()[0]
    assert f"User {person} loses ClusterRole {test} in namespace default" in output
    assert f"because of ScopeInstance si-{test}" in output
    assert f"-  name: {person}" in output
    assert await admin.get(SCOPE_INSTANCE, f"si-{test}") is not None


async def test_manifests_are_planned_for_programs(plan: Command, tmp_path: Path) -> None:
    """A folder of manifests, namespaces before what is in them, gives JSON with every write, its cause and the people."""
    test, person = f"plan-{token()}", f"op-{token()}"
    instance = obj(SCOPE_INSTANCE, f"si-{test}", spec={"scopeTemplateName": f"st-{test}", "namespaces": [f"new-{test}"]})
    template = obj(SCOPE_INSTANCE, f"st-{test}", spec={"clusterRoles": [role(test, subjects=[user(person)])]}) | {
        "kind": "ScopeTemplate"
    }
    tmp_path.joinpath("a.yaml").write_text(yaml.safe_dump_all([instance, template]))
    tmp_path.joinpath("b.json").write_text(json.dumps(obj(NAMESPACE, f"new-{test}")))
    code, output, _ = await plan("-f", tmp_path, "-o", "json", "--diff")

    found = json.loads(output)
    assert code == CHANGES, found
    assert {(each["kind"], each["effect"]) for each in found["change"]} >= {("Namespace", "created")}
    made = {each["kind"]: each for each in found["writes"] if each["verb"] == "create"}
    assert made[ROLE_BINDING.kind]["namespace"] == f"new-{test}"
    assert made[CLUSTER_ROLE.kind]["function"] == SCOPES
    assert [(each["effect"], each["kind"], each["name"]) for each in found["rights"]] == [("gained", "User", person)]
    assert found["summary"].endswith("1 person gains rights")
    assert not found["notRead"]
    assert not found["problems"]


async def test_a_configuration_is_planned_as_a_sweep(plan: Command, people: People, tmp_path: Path) -> None:
    """A configuration with another project label is planned for every owner: members leave, and who has the label joins."""
    test = token()
    await people.namespace(f"team-{test}", labels={"other/label": f"q-{test}"})
    config = tmp_path / "new.yaml"
    config.write_text(yaml.safe_dump({"global": {"cattle": {"projectLabel": "other/label"}}}))
    code, output, errors = await plan("--config", config, "--function", FUNCTION)

    assert code == CHANGES
    assert f"create  Namespace {registration(f'q-{test}')}" in output
    assert "because of the sweep" in output
    assert f"configuration: {config}" in errors


async def test_one_owner_is_planned(plan: Command, people: People, admin: Api) -> None:
    """An owner is named as in logs, alone or with its function and unit; one at rest has nothing to be written."""
    name, project = f"team-{token()}", f"p-{token()}"
    await people.namespace(name, labels={LABEL: project})
    await people.registered(project)

    async def at_rest() -> bool:
        return (await plan(f"project/{project}"))[:2] == (NOTHING, f"{NO_WRITE}\n")

    await eventually(at_rest, within=10, what="the project is at rest")
    assert (await plan("--owner", f"{FUNCTION}:projects:project/{project}"))[0] == NOTHING


async def test_the_server_is_asked(plan: Command, people: People, admin: Api, tmp_path: Path) -> None:
    """With --server what a quota refuses is an error that names the quota; without it nobody is asked."""
    test = token()
    await people.namespace(f"team-{test}")
    await admin.create(RESOURCE_QUOTA, obj(RESOURCE_QUOTA, "none", f"team-{test}", spec={"hard": {"count/configmaps": "0"}}))

    async def counted() -> bool:
        found = await admin.get(RESOURCE_QUOTA, "none", f"team-{test}")
        return bool(((found or {}).get("status") or {}).get("hard"))

    await eventually(counted, within=30, what="the quota is in force")
    manifest = tmp_path / "config-map.yaml"
    manifest.write_text(yaml.safe_dump(obj(CONFIG_MAP, "settings", f"team-{test}", data={"a": "b"})))

    assert (await plan("-f", manifest))[0] == NOTHING
    code, _, errors = await plan("-f", manifest, "--server")
    assert code == FAILED
    assert "exceeded quota: none" in errors
    assert errors.splitlines()[-1].startswith(f"Error: {manifest}, document 1: ")


async def test_the_server_is_asked_about_what_functions_write(
    plan: Command, scoping: Scoping, admin: Api, people: People, control_plane: ControlPlane
) -> None:
    """With --server a quota and an admission policy refuse writes of functions: each is named with its words, and exit code 1."""
    test = f"plan-{token()}"
    full, closed = f"full-{test}", f"closed-{test}"
    await asyncio.gather(people.namespace(full), people.namespace(closed))
    await admin.create(RESOURCE_QUOTA, obj(RESOURCE_QUOTA, "none", full, spec={"hard": {NO_BINDINGS: "0"}}))
    rule = {"apiGroups": ["rbac.authorization.k8s.io"], "apiVersions": ["v1"], "resources": ["rolebindings"]}
    match = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": closed}}}
    spec = {
        "matchConstraints": {**match, "resourceRules": [{**rule, "operations": ["CREATE"]}]},
        "validations": [{"expression": "false", "message": "nobody is bound here"}],
    }
    await admin.create(ADMISSION_POLICY, obj(ADMISSION_POLICY, test, spec=spec))
    await admin.create(
        ADMISSION_POLICY_BINDING, obj(ADMISSION_POLICY_BINDING, test, spec={"policyName": test, "validationActions": ["Deny"]})
    )
    await scoping.template(f"st-{test}", role(test, subjects=[user("somebody")]))
    instance = obj(SCOPE_INSTANCE, f"si-{test}", spec={"scopeTemplateName": f"st-{test}", "namespaces": [full, closed]})

    def asked(*options: str) -> Result:
        environment = {"KUBECONFIG": str(control_plane.kubeconfig)}
        return CliRunner().invoke(main, ["plan", "-f", "-", *options], input=yaml.safe_dump(instance), env=environment)

    async def answered() -> Result:
        return await asyncio.to_thread(asked, "--server")

    def both(found: Result) -> bool:
        return "nobody is bound here" in found.stdout and "exceeded quota: none" in found.stdout

    found = await eventually(answered, both, within=POLICY_S, what="quota and policy are in force")
    refused = [line for line in found.stdout.splitlines() if line.startswith("would be refused: ")]
    assert found.exit_code == FAILED
    assert {place for place in (full, closed) if any(place in line for line in refused)} == {full, closed}, refused
    without = await asyncio.to_thread(asked)
    assert (without.exit_code, "would be refused" in without.stdout) == (CHANGES, False)
    await admin.delete(ADMISSION_POLICY_BINDING, test)
    await admin.delete(ADMISSION_POLICY, test)


BAD = {
    "no change": ((), "say what would change"),
    "no file": (("-f", "/nowhere.yaml"), "/nowhere.yaml: cannot be read: No such file or directory"),
    "no kind": (("--delete", "wibble/x"), "the cluster serves no kind wibble"),
    "no name": (("--delete", "namespace"), "write KIND/NAME, such as namespace/team-a"),
    "not there": (("--delete", "ns/not-there"), "there is no Namespace not-there"),
    "bad label": (("--label", "ns/default", "a b"), "write key=value, or key- to take it off"),
    "no owner": (("wibble",), "write an owner as TYPE/NAME"),
    "unknown owner": (("wibble/x",), "no unit has such an owner; there are"),
    "no function": (("--function", "wibble", "project/x"), "no function 'wibble'; there are"),
    "no configuration": (("--config", "/nowhere.yaml"), "cannot read the configuration /nowhere.yaml"),
    "no option": (("--wibble",), "No such option"),
}


@pytest.mark.parametrize("case", BAD)
async def test_what_cannot_be_planned_is_said(case: str, plan: Command) -> None:
    """What was typed wrong is an error that names it and the way out, with exit code 1, since 2 says that there are changes."""
    arguments, words = BAD[case]
    code, output, errors = await plan(*arguments)

    assert (code, output) == (FAILED, "")
    assert words in errors
    assert "Traceback" not in errors


BAD_MANIFESTS = {
    "no YAML": ("a: [", "document 1: not valid YAML in its line"),
    "a text": ("hello", "this is no object"),
    "no kind": ("apiVersion: v1\nmetadata: {name: x}", "kind is missing"),
    "no name": ("apiVersion: v1\nkind: ConfigMap\nmetadata: {}", "metadata.name of this ConfigMap is missing"),
    "unknown": (
        "apiVersion: a.b/v1\nkind: C\nmetadata: {name: x}",
        "the cluster serves no C in a.b/v1: correct it, or install its CRD",
    ),
    "in a namespace": ("apiVersion: v1\nkind: Namespace\nmetadata: {name: x, namespace: y}", "a Namespace is in no namespace"),
    "no namespace": ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: gone}", 'namespaces "gone" not found'),
}


@pytest.mark.parametrize("case", BAD_MANIFESTS)
async def test_a_manifest_that_cannot_be_applied_is_named(case: str, plan: Command, tmp_path: Path) -> None:
    """The file, the document and what is wrong with it are said."""
    text, words = BAD_MANIFESTS[case]
    tmp_path.joinpath("bad.yaml").write_text(text)
    code, output, errors = await plan("-f", tmp_path / "bad.yaml")

    assert (code, output) == (FAILED, "")
    assert f"{tmp_path}/bad.yaml, document 1: " in errors
    assert words in errors


async def test_what_cannot_be_read_is_said(plan: Command, admin: Api, control_plane: ControlPlane, tmp_path: Path) -> None:
    """Who may read namespaces only gets what can be foreseen by that, all that could not be read, and exit code 1."""
    name = f"reader-{token()}"
    await admin.create(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, name, "default"))
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list"]}]
    await admin.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, name, rules=rules))
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    await admin.create(CLUSTER_ROLE_BINDING, obj(CLUSTER_ROLE_BINDING, name, roleRef=reference, subjects=[subject]))
    theirs = await account_kubeconfig(admin, control_plane, "default", name, tmp_path / "kubeconfig")

    async def answered() -> tuple[int, str, str]:
        found = await plan("--label", "namespace/default", f"{LABEL}=p-x", kubeconfig=theirs)
        return found if "could not be read" in found[2] else (0, "", "")

    async def has_said() -> str:
        return (await answered())[2]

    errors = await eventually(has_said, within=10, what="the rights are in force")
    assert "could not be read: which functions are installed" in errors
    assert "configmaps is forbidden" in errors or "is forbidden" in errors
    code, output, _ = await answered()
    assert (code, output.splitlines()[0].endswith("; this is not the whole plan")) == (FAILED, True), output


async def test_a_cluster_without_functions_is_no_empty_plan(plan: Command, admin: Api, control_plane: ControlPlane) -> None:
    """Only functions that are installed are asked; one that is not can be named."""
    code, output, _ = await plan("--function", "rbac-aggregation", "--label", "namespace/default", "a=b")
    assert (code, output) == (NOTHING, f"{NO_WRITE}\n")


class Flips(Unit):
    """A unit that never comes to rest: it makes a label what it is not."""

    name = "flips"
    kinds = frozenset({CONFIG_MAP})

    def __init__(self, *, breaks: bool) -> None:
        def planned(live: Object | None) -> Plan:
            if breaks or live is None:
                raise ValueError("broken")
            other = "b" if labels_of(live).get("side") == "a" else "a"
            return plan_of(Apply(CONFIG_MAP, obj(CONFIG_MAP, "coin", "default", labels={"side": other}), live))

        self.handlers = {
            "coin": Handler[Object | None](
                observe=lambda owner, reader: reader.get(CONFIG_MAP, owner.name, "default"), plan=planned
            )
        }

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        return [[Owner("coin", key.name)]] if key.name == "coin" else []

    def prefetch(self) -> list[Prefetch]:
        return []

    async def sweep(self, reader: Reader) -> list[Owner]:
        return []


async def coin_flipped(admin: Api, *, breaks: bool) -> Foreseen:
    """What is foreseen of a ConfigMap with such a unit."""
    overlay, function = Overlay(), cast(Function, SimpleNamespace(units=lambda _: [Flips(breaks=breaks)]))
    kinds = {"flips": frozenset({(CONFIG_MAP.group, CONFIG_MAP.kind)})}
    part = PlannedPart(
        Service("f", "f"), function, Settings(Config()), OverlayApi(admin, overlay, field_manager="tenantry-f"), kinds
    )
    with Bugs() as bugs:
        future = Foresight([part], OverlayApi(admin, overlay), [CONFIG_MAP], bugs)
        await future.hands.create(CONFIG_MAP, obj(CONFIG_MAP, "coin", "default"))
        return await future.to_rest()


async def test_what_never_comes_to_rest_ends(admin: Api) -> None:
    """A unit that undoes what it did is told by name after some rounds."""
    found = await coin_flipped(admin, breaks=False)

    assert found.restless == "f writes ConfigMap default/coin again and again"
    assert await admin.get(CONFIG_MAP, "coin", "default") is None


async def test_a_bug_of_a_unit_is_no_empty_plan(admin: Api) -> None:
    """A unit that fails is named with its error, and with what it was asked about."""
    found = await coin_flipped(admin, breaks=True)

    assert [(each.unit, each.about, each.reason) for each in found.problems] == [
        ("flips", "ConfigMap default/coin", "a bug: ValueError: broken")
    ]
