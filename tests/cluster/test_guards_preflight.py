"""``tenantry guards``: whom the guards would refuse, told before they are installed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
import yaml
from click.testing import CliRunner, Result
from people import OPERATED, ORPHANED, People, may, registration, token
from rights import RBAC, cluster_role, group, user

from tenantry.api import Api
from tenantry.cli import main
from tenantry.local.control_plane import ControlPlane
from tenantry.local.policies import guard_names
from tenantry.local.preflight import preflight
from tenantry.model.config import Config
from tenantry.model.kinds import (
    ADMISSION_POLICY,
    ADMISSION_POLICY_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE,
    ROLE_BINDING,
    Object,
)
from tenantry.model.names import ADOPT, ALLOW_DELETION
from tenantry.testing import eventually
from tenantry.testing.objects import obj

GUARDS = sorted(guard_names())
JOIN, WRITE = "join on projects.tenantry.dev", "write on marks.tenantry.dev"

Command = Callable[..., Awaitable[tuple[int, str, str]]]

pytestmark = pytest.mark.no_policies


@pytest.fixture
def command(control_plane: ControlPlane) -> Command:
    """``await command(...)``: exit code, output and errors under an administrator's kubeconfig."""

    async def run(*arguments: str) -> tuple[int, str, str]:
        def invoke() -> Result:
            return CliRunner().invoke(main, ["guards", *arguments], env={"KUBECONFIG": str(control_plane.kubeconfig)})

        result = await asyncio.to_thread(invoke)  # the command brings an event loop of its own
        return result.exit_code, result.stdout, result.stderr

    return run


class Granting:
    """Roles and bindings of a test, taken away at its end: who may what concerns every other test here."""

    def __init__(self, admin: Api) -> None:
        self.admin = admin
        self._made: list[tuple[Any, str, str]] = []

    async def __aenter__(self) -> Granting:
        return self

    async def __aexit__(self, *_: object) -> None:
        for kind, name, namespace in self._made:
            await self.admin.delete(kind, name, namespace)

    async def grant(self, subject: Object, *rules: Object, namespace: str = "") -> None:
        """Let somebody do this, in a namespace or everywhere."""
        name = f"g-{token()}"
        role, binding = (ROLE, ROLE_BINDING) if namespace else (CLUSTER_ROLE, CLUSTER_ROLE_BINDING)
        await self.admin.create(role, obj(role, name, namespace, rules=list(rules)))
        reference = {"apiGroup": RBAC, "kind": role.kind, "name": name} if namespace else cluster_role(name)
        await self.admin.create(binding, obj(binding, name, namespace, roleRef=reference, subjects=[subject]))
        self._made += [(binding, name, namespace), (role, name, namespace)]


@pytest_asyncio.fixture(loop_scope="session")
async def granting(admin: Api) -> Any:
    async with Granting(admin) as made:
        yield made


def rule(verbs: str, *resources: str, apis: str = "", names: tuple[str, ...] = ()) -> Object:
    return {
        "apiGroups": [apis],
        "resources": list(resources),
        "verbs": verbs.split(),
        **({"resourceNames": list(names)} if names else {}),
    }


async def test_a_preflight_says_whom_the_guards_would_refuse(command: Command, admin: Api, granting: Granting) -> None:
    """Who may write namespaces or our kinds and lacks a right is told with what he may and lacks; who has the right, who may
    not write, and Kubernetes itself, are not; before the guards are installed, and after."""
    code, output, _ = await command("-o", "json")
    assert json.loads(output)["people"] == []
    assert (code, json.loads(output)["missing"]) == (0, GUARDS)

    who, home = token(), f"home-{token()}"
    await admin.create(NAMESPACE, obj(NAMESPACE, home))
    join, write = rule("join", "projects", apis="tenantry.dev"), rule("write", "marks", apis="tenantry.dev")
    some = rule("join", "projects", apis="tenantry.dev", names=("p-b", "p-a"))
    label = rule("create patch", "namespaces")
    await granting.grant(user(f"a-labeller-{who}"), label)
    await granting.grant(group(f"b-some-{who}"), label, some)
    await granting.grant(user(f"c-joiner-{who}"), label, join)
    await granting.grant(user(f"d-both-{who}"), label, join, write)
    await granting.grant(user(f"e-reader-{who}"), rule("get list watch delete", "namespaces"))
    await granting.grant(user(f"f-admin-{who}"), rule("*", "*", apis="*"))
    account = {"kind": "ServiceAccount", "name": f"g-{who}", "namespace": home}
    await granting.grant(account, rule("update", "helmcharts", "helmcharts/status", apis="helm.cattle.io"), namespace=home)
    await granting.grant(user(f"h-here-{who}"), rule("*", "namespaces"), namespace=home)
    await granting.grant(user(f"i-owner-{who}"), rule("*", "projecthelmcharts", apis="helm.cattle.io"), namespace=home)

    await eventually(  # the authorizer follows a watch
        lambda: may(admin, f"d-both-{who}", "write", "marks", group="tenantry.dev"), within=10, what="the last right counts"
    )
    code, output, errors = await command("-o", "yaml")
    assert (code, errors) == (1, "")
    assert {each["who"]: (each["may"], each["lacks"]) for each in yaml.safe_load(output)["people"]} == {
        f"User a-labeller-{who}": (["create, patch namespaces"], [JOIN, WRITE]),
        f"Group b-some-{who}": (["create, patch namespaces"], [f"{JOIN}, but for p-a, p-b", WRITE]),
        f"User c-joiner-{who}": (["create, patch namespaces"], [WRITE]),
        f"ServiceAccount {home}/g-{who}": (
            [f"update helmcharts.helm.cattle.io in {home}", f"update helmcharts/status.helm.cattle.io in {home}"],
            [WRITE],
        ),
        f"User h-here-{who}": ([f"patch, update namespaces in {home}"], [JOIN, WRITE]),
    }
    code, output, _ = await command()
    assert code == 1
    assert f"not installed: {', '.join(GUARDS)}" in output
    assert f"User a-labeller-{who}" in output


async def test_a_policy_that_nothing_binds_is_not_installed(command: Command, admin: Api) -> None:
    """A guard is there when it refuses: without a binding it does nothing, and with one that only tells it refuses nothing."""
    name, *others = GUARDS
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["podtemplates"]}]
    spec = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "true"}]}
    await admin.create(ADMISSION_POLICY, obj(ADMISSION_POLICY, name, spec=spec))
    try:
        for action, missing in ((None, GUARDS), ("Audit", GUARDS), ("Deny", others)):
            if action:
                bound = {"policyName": name, "validationActions": [action]}
                await admin.apply(ADMISSION_POLICY_BINDING, obj(ADMISSION_POLICY_BINDING, name, spec=bound))
            _, output, _ = await command("-o", "json")
            assert json.loads(output)["missing"] == missing
    finally:
        for kind in (ADMISSION_POLICY_BINDING, ADMISSION_POLICY):
            await admin.delete(kind, name)


async def test_a_preflight_names_namespaces_that_are_odd(command: Command, people: People) -> None:
    """What bears our names and marks without being ours is told with the reason, what is in use is counted."""
    run = token()
    squatted, marked, adopted, free = registration(f"p-{run}"), f"m-{run}", f"o-{run}", f"f-{run}"
    before = json.loads((await command("-o", "json"))[1])["in_use"]
    await people.namespace(squatted)
    await people.namespace(marked, labels={OPERATED: "true"})
    await people.namespace(f"orphan-{run}", labels={OPERATED: "true", ORPHANED: "true"})
    await people.namespace(adopted, annotations={ADOPT: "true"})
    await people.namespace(free, f"p-{run}", annotations={ALLOW_DELETION: "true"})

    code, output, _ = await command("-o", "json")
    found = json.loads(output)
    why = {each["namespace"]: each["why"] for each in found["namespaces"] if run in each["namespace"]}
    assert code == 1
    assert sorted(why) == sorted([squatted, marked, f"orphan-{run}", adopted, free])
    assert "is not served" in why[squatted]
    assert "no function of ours made it" in why[marked]
    assert "takes it over" in why[adopted]
    assert ALLOW_DELETION in why[free]
    assert found["in_use"] == before + 1
    for name in (squatted, marked, f"orphan-{run}", adopted, free):
        await people.delete(NAMESPACE, name)


async def test_a_slow_preflight_says_what_it_waits_for(admin: Api, granting: Granting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits is told for what."""
    await granting.grant(user(f"labeller-{token()}"), rule("create", "namespaces"))
    monkeypatch.setattr("tenantry.local.preflight.SILENCE_S", 0.0)
    said: list[str] = []
    await preflight(admin, Config(), said.append)
    assert {"reading clusterroles ...", "reading namespaces ..."} <= set(said)
    assert any("rights" in line for line in said)
