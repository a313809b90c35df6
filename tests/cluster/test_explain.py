"""``tenantry explain``, where every function has done its work: it agrees with the API server, and knows where all is from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from commanding import Command, account_kubeconfig, commanding
from explaining import CONFIG, EDITS, Explained, act, explained_world, questions_about
from paasing import Paasing, example, paas_name
from people import registration, token
from rights import cluster_role, user
from scoping import Scoping, role
from times import CONTROLLER_S, START_S, WHOLE

from tenantry.api import Api
from tenantry.api.review import reviewed
from tenantry.cli.explain.can import judged
from tenantry.cli.explain.configured import Configured
from tenantry.cli.explain.reading import Reading
from tenantry.cli.explain.units import explained, explainers
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.difference import owns
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, ROLE_BINDING, SERVICE_ACCOUNT, Object, key_of
from tenantry.serving.config import parse_config
from tenantry.serving.installed import descriptors
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = pytest.mark.timeout(300)
QUESTIONS = 1000 if WHOLE else 150
SEED = 24

Asking = Callable[..., Awaitable[tuple[int, str]]]
"""``await ask("can", ...)``: exit code and output; what is an error is no output."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Explained:
    """All functions, and everything that they make bindings for."""
    made, _ = await explained_world(flawlessly, admin)
    return made


@pytest.fixture
def command(control_plane: ControlPlane, world: Explained) -> Command:
    return commanding(control_plane)


@pytest.fixture
def ask(command: Command, tmp_path: Path) -> Asking:
    """The command as an administrator, who has the configuration as a file."""
    file = tmp_path / "tenantry.yaml"
    file.write_text(json.dumps(CONFIG, indent=1))

    async def run(*arguments: str) -> tuple[int, str]:
        code, output, errors = await command("explain", *arguments, "--config", str(file))
        assert not [line for line in errors.splitlines() if "objects so far" not in line], errors
        return code, output

    return run


@pytest_asyncio.fixture
async def reading(world: Explained) -> AsyncIterator[Reading]:
    """What explanations read with, as an administrator; nothing changes meanwhile."""
    yield Reading(world.admin, Configured(parse_config(json.dumps(CONFIG))))


async def test_can_agrees_with_the_api_server(world: Explained, reading: Reading) -> None:
    """A path for everything that is allowed, none for what is not, and of each of our bindings where it is from."""
    allowed, denied, ours, wrong = 0, 0, 0, []
    for question in (await questions_about(world.admin, SEED)).asked(QUESTIONS):
        found = await judged(question, reading)
        allowed += found.allowed
        denied += not found.allowed
        if found.by_rbac != found.answer.allowed:
            wrong.append((question, found.answer))
        for path in found.paths:
            if not is_made_by_us(path.bound.binding):
                continue  # that each of ours is explained is the subject of the next test
            ours += 1
            for each in await explained(path.bound.binding, path.bound.subject, reading):
                assert each.causes, (question, each.origin)
                assert each.ends, (question, each.origin)
                assert all(cause.there for cause in each.causes), (question, each.causes)

    assert not wrong
    assert not reading.unread
    assert min(allowed, denied) >= QUESTIONS // 5, (allowed, denied)
    assert ours >= QUESTIONS // 10


async def test_every_binding_of_ours_is_explained_by_the_unit_that_made_it(world: Explained, reading: Reading) -> None:
    """Whatever a function has bound, exactly one unit knows why; each unit that explains bindings has some here."""
    told = set()
    for kind in (ROLE_BINDING, CLUSTER_ROLE_BINDING):
        for binding in (await world.admin.list(kind)).items:
            found = await explained(binding, None, reading)
            if is_made_by_us(binding):
                assert [each.by.function for each in found] == [maker(binding)], key_of(binding)
                told.add((found[0].by.function, found[0].by.unit))
            else:
                assert not found, key_of(binding)

    bind = {(each.function, each.unit) for each in explainers() if {ROLE_BINDING, CLUSTER_ROLE_BINDING} & set(each.kinds)}
    assert told == bind


def is_made_by_us(binding: Object) -> bool:
    """Whether a function wrote whom it binds: what it labels alone is somebody else's."""
    return bool(maker(binding))


def maker(binding: Object) -> str:
    """The function whose field manager has its roleRef."""
    managers = {str(each["manager"]) for each in binding["metadata"].get("managedFields") or ()}
    owning = [manager for manager in managers if owns(binding, manager, "roleRef")]
    return next((name for name in descriptors() for each in owning if each.startswith(f"tenantry-{name}")), "")


async def test_a_right_is_followed_to_what_a_person_wrote(world: Explained, ask: Asking) -> None:
    """From the binding in a release over the Role, the setting and its line to the RoleBinding of the project."""
    code, output = await ask("can", "jane", "patch", "deploy", "-n", world.release)
    home = registration(world.project)

    assert code == 0
    assert output.startswith(f"yes: User jane may patch deployments.apps in namespace {world.release}\n")
    for line in (
        f"1. RoleBinding {world.release}/dash-admin binds User jane to Role {world.release}/dash-admin",
        "   rule 1: get, patch of deployments in group apps",
        f"   rbac-aggregation (unit projects) makes it for release/{world.release}",
        "     because of configuration, helmProjectOperator.releaseRoleBindings.clusterRoleRefs.admin: admin (default)",
        f"     because of RoleBinding {home}/jane, subjects: User jane",
        f"   to end it: kubectl delete -n {home} rolebindings.rbac.authorization.k8s.io jane",
        "SubjectAccessReview agrees",
    ):
        assert line in output.splitlines(), output


async def test_what_is_generated_is_followed_further(world: Explained, ask: Asking) -> None:
    """A scope that was made for a ClusterServiceVersion ends with that, and not by hand; the answer as JSON."""
    code, output = await ask("can", f"sa:{world.csv_home}/my-op", "list", "po", "-n", world.team, "-o", "json")
    told: dict[str, Any] = json.loads(output)
    (path,) = told["paths"]
    (made,) = path["madeBy"]

    assert (code, told["allowed"], told["ours"], told["review"]["kind"]) == (0, True, 1, "SubjectAccessReview")
    assert (made["function"], made["unit"]) == ("scope-binding", "scopes")
    assert [each["unit"] for cause in made["because"] for each in cause.get("madeBy", ())] == ["olm", "olm"]
    assert made["ends"][0] == f"kubectl delete -n {world.csv_home} clusterserviceversions.operators.coreos.com {world.csv}"
    assert not [each for each in made["ends"] if "scopeinstances" in each or "scopetemplates" in each]
    assert "paths" not in json.loads((await ask("why-not", "nobody", "list", "po", "-n", world.team, "-o", "json"))[1])


async def test_what_others_give_is_told_as_theirs(world: Explained, ask: Asking) -> None:
    """No function made it: the binding, who wrote it, and what ends it; a role that is not there is told."""
    code, output = await ask("can", "otto", "get", "/metrics")
    assert (code, "nothing of ours gives this" in output) == (0, True)
    assert f"   to end it: kubectl delete clusterrolebindings.rbac.authorization.k8s.io odd-{world.run}" in output.splitlines()
    assert "no function of Tenantry made it (written by tests-admin)" in output

    code, output = await ask("can", "bob", "delete", "pods", "-n", world.other)
    assert code == 1
    assert output.startswith(f"no: User bob may delete pods in namespace {world.other}\n")
    assert f"note: RoleBinding {world.other}/lost leads to ClusterRole nowhere, which is not there" in output
    code, output = await ask("can", "group:system:masters", "list", "nodes")
    assert (code, "no binding takes that away" in output) == (0, True)
    code, output = await ask("can", "me", "create", "pods", "-n", f"{world.paas}-cicd")
    assert (code, f"ask again with --group {world.paas}-us" in output) == (1, True)


async def test_why_not_names_what_would_give_it(world: Explained, ask: Asking) -> None:
    """The nearest rule, bindings elsewhere, and of each kind of declaration what it lacks and the fix."""
    run, ops = world.run, world.operators
    account = f"sa:{ops.home}/my-op"
    asked = {
        ("alice", "delete", "secrets", "-n", world.team): "nearest rule: get, list, update of configmaps, secrets in group core",
        ("alice", "get", "secrets", "-n", world.csv_home): f"elsewhere: RoleBinding {world.team}/edits-{run}",
        ("kim", "get", "secrets", "-n", world.team): f"add them to the subjects of edits-{run}",
        (
            "kim",
            "patch",
            "deploy",
            "-n",
            world.release,
        ): f"create rolebinding -n {registration(world.project)} NAME --clusterrole=admin",
        (
            "jane",
            "create",
            "cj",
            "-n",
            world.release,
        ): "was not made by Tenantry, so Role taken is not bound: delete that RoleBinding",
        ("friend", "create", "pods", "-n", f"{world.paas}-cicd"): "add admin to spec.groups.them.roles",
        ("kim", "create", "pods", "-n", f"{world.paas}-cicd"): "no group of this Paas has them",
        (account, "get", "cm", "-n", world.team): f"add {world.team} to spec.namespaceMembers",
        (f"sa:ns-{world.tenant}/flux", "create", "roles", "-n", f"ns-{world.tenant}"): "ClusterRole edit does not allow it",
        (f"sa:{world.paas}-argocd/argo-sa", "list", "readings.example.com", "-A"): "extra_permissions to true",
        ("kim", "list", "pods", "-n", ops.home): f"rolebinding -n {ops.home} NAME --clusterrole=view --user=kim",
    }
    for question, words in asked.items():
        code, output = await ask("why-not", *question)
        assert (code, output.startswith("missing: ")) == (1, True), output
        assert words in output, output
    code, output = await ask("why-not", "jane", "patch", "deploy", "-n", world.release)
    assert (code, output.startswith("nothing is missing: ")) == (0, True)


async def test_an_object_tells_whose_it_is(world: Explained, ask: Asking) -> None:
    """Function, unit, owner, proof and fields of ours; what is ours in part, and what is nobody's of us."""
    run, home = world.run, registration(world.project)
    asked = {
        ("rolebinding/dash-admin", "-n", world.release): (0, "ours: RoleBinding", "unit projects) makes it for release/"),
        ("namespace", home): (0, "ours: Namespace", f"makes it for project/{world.project}"),
        (f"ns/a1-{world.project}",): (0, "ours in part: ", "keeps the label helm.cattle.io/projectId on it"),
        (f"ns/{world.release}",): (0, "ours: ", "release-provisioning (unit projects) makes it"),
        (f"ns/{world.paas}-cicd",): (0, "ours: ", "spec.namespaces.cicd"),
        (f"helmchart/{world.release}", "-n", "cattle-helm-system"): (0, "ours: ", "charts[0].helmApiVersion"),
        (f"job/helm-install-{world.release}", "-n", "cattle-helm-system"): (
            0,
            "ours: ",
            "which release-provisioning (unit projects) makes it for release/",
        ),
        ("scopeinstance", world.scope): (0, "ours in part: ", "fields of tenantry-scope-binding of the subresource status"),
        (f"paas/{world.paas}",): (0, "ours in part: ", "finalizer tenantry.dev/rbac-aggregation: rbac-aggregation-paas"),
        ("cm/namespace-scope", "-n", world.operators.home): (0, "ours: ", "spec.configmapName"),
        ("sa/default", "-n", home): (0, "ours in part: ", "hardens it for project/"),
        ("sa/flux", "-n", f"ns-{world.tenant}"): (0, "ours: ", "spec.serviceAccountName: flux"),
        (f"group.user.openshift.io/{world.paas}-us",): (0, "ours: ", "spec.groups.us: me, you"),
        ("clusterrole", f"edits-{run}"): (0, "ours: ", "makes it for template/operators.coreos.com/"),
        ("rolebinding/one", "-n", world.team): (1, "not ours: ", "other field managers: tests-admin"),
    }
    for named, (code, beginning, words) in asked.items():
        found, output = await ask(*named)
        assert (found, output.startswith(beginning)) == (code, True), output
        assert words in output, output
    told = json.loads((await ask("rolebinding/dash-admin", "-n", world.release, "-o", "json"))[1])
    assert "roleRef" in told["fields"][0]["fields"]


async def test_who_may_not_read_is_told_what_he_could_not_see(
    world: Explained, command: Command, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Without rights nothing is known but about oneself; an admin of a namespace sees that one, and is told what he does not."""
    admin, place = world.admin, world.team
    await admin.apply(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, "seer", place))
    kubeconfig = await account_kubeconfig(admin, control_plane, place, "seer", tmp_path / "seer")

    code, output, _ = await command("explain", "can", "alice", "get", "secrets", "-n", place, kubeconfig=kubeconfig)
    assert (code, output.startswith("not known: ")) == (2, True), output
    assert f"clusterrolebindings of the cluster; rolebindings in namespace {place}" in output
    code, output, _ = await command("explain", "can", f"sa:{place}/seer", "get", "secrets", "-n", place, kubeconfig=kubeconfig)
    assert (code, "SelfSubjectAccessReview agrees" in output) == (1, True), output

    subjects = [{"kind": "ServiceAccount", "name": "seer", "namespace": place}]
    await admin.apply(ROLE_BINDING, obj(ROLE_BINDING, "seer", place, roleRef=cluster_role("admin"), subjects=subjects))

    async def seen() -> str:
        _, output, _ = await command("explain", "can", "alice", "get", "secrets", "-n", place, kubeconfig=kubeconfig)
        return output if output.startswith("yes: ") else ""

    output = await eventually(seen, within=CONTROLLER_S)
    assert "the API server allows it by something that you may not read" in output
    assert "LocalSubjectAccessReview says yes" in output
    code, _, errors = await command("explain", "paas", world.paas, kubeconfig=kubeconfig)
    assert (code, f"you may not read Paas {world.paas}" in errors) == (2, True)


async def test_what_cannot_be_asked_is_one_line_that_says_why(world: Explained, command: Command, tmp_path: Path) -> None:
    """Subjects, resources, kinds, options and files that are wrong, and a cluster that does not answer: exit code 2."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("helmProjectOperators: {}\n")
    away = tmp_path / "away"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {"token": "t"}}]
    away.write_text(json.dumps({"clusters": [cluster], "contexts": [context], "users": users, "current-context": "c"}))
    asked = {
        ("can", "sa:op", "get", "pods"): "sa:NS/NAME",
        ("can", "jane", "get", "podz"): "did you mean pod",
        ("can", "jane", "", "pods"): "the verb is empty",
        ("can", "jane", "get", "pods", "-A", "-n", "x"): "exclude each other",
        ("can", "jane", "get", "/metrics", "--name", "x"): "a path has neither",
        ("can", "jane", "get"): "Missing argument 'RESOURCE'",
        ("can", "jane", "get", "pods", "--config", str(wrong)): "unknown key; did you mean helmProjectOperator?",
        ("can", "jane", "get", "pods", "--kubeconfig", str(away)): "127.0.0.1:1",
        ("rolebinding",): "name one object",
        ("rolebinding/a", "b"): "name one object",
        ("nothing/a",): "serves no resource 'nothing'",
        ("cm/missing", "-n", world.team): f"there is no ConfigMap missing in namespace {world.team}",
    }
    for arguments, words in asked.items():
        code, output, errors = await command("explain", *arguments)
        assert (code, output, errors.count("\n")) == (2, "", 1), (arguments, output, errors)
        assert words in errors, errors


@pytest.mark.parametrize("subject", ["jane", "scope", "tenant", "operator", "version"])
async def test_what_is_said_to_end_a_right_ends_it(world: Explained, ask: Asking, subject: str) -> None:
    """Each command that can be run is run as it is told, and the right is gone; who has it from two bindings leaves both."""
    ops = world.operators
    if subject == "jane":
        again = obj(ROLE_BINDING, "jane-too", registration(world.project), roleRef=cluster_role("admin"), subjects=[user("jane")])
        await world.admin.apply(ROLE_BINDING, again)
    question = {
        "jane": ("jane", "patch", "deploy", "-n", world.release),
        "scope": ("alice", "get", "secrets", "-n", world.team),
        "tenant": (f"sa:ns-{world.tenant}/flux", "create", "deploy", "-n", f"ns-{world.tenant}"),
        "operator": (f"sa:{ops.home}/my-op", "create", "cm", "-n", ops.member(1)),
        "version": (f"sa:{world.csv_home}/my-op", "list", "po", "-n", world.team),
    }[subject]
    told = json.loads((await ask("can", *question, "-o", "json"))[1])
    (path,) = told["paths"]
    runnable = [each for each in path["madeBy"][0]["ends"] if each.startswith(("kubectl delete", "kubectl label"))]
    await act(world.admin, runnable[0])

    async def gone() -> bool:
        return (await ask("can", *question))[0] == 1

    await eventually(gone, within=CONTROLLER_S, what=f"{runnable[0]} ends it")


@pytest.mark.parametrize("way", ["group", "restricted", "account", "extra"])
async def test_what_is_said_to_end_a_right_in_a_paas_ends_it(world: Explained, ask: Asking, way: str) -> None:
    """What is to be edited is edited as it is told, by each path, and the API server denies what it allowed: by the functions."""
    paasing, name = Paasing(world.admin, START_S), paas_name()
    spec = example()
    spec["capabilities"]["argocd"]["extra_permissions"] = way == "extra"
    await paasing.paas(name, **spec)
    await paasing.ready(name)
    if way == "restricted":
        await paasing.paas_ns(f"{name}-argocd", "extra", groups=["them"])
        await paasing.bound(f"{name}-extra", {"paas-view": [f"{name}-them"]})
    account = f"{name}-argocd/argo-sa"
    who, verb, what, where = {
        "group": (f"group:{name}-us", "create", "pods", f"{name}-cicd"),
        "restricted": (f"group:{name}-them", "list", "pods", f"{name}-extra"),
        "account": (f"sa:{account}", "list", "monitors.example.com", f"{name}-argocd"),
        "extra": (f"sa:{account}", "list", "readings.example.com", f"{name}-argocd"),
    }[way]
    resource, _, group = what.partition(".")
    asked = {"verb": verb, "resource": resource, "group": group, "namespace": where}
    by_name = {"groups": [who.removeprefix("group:")]} if way in ("group", "restricted") else {}
    user_name = {} if by_name else {"user": f"system:serviceaccount:{account.replace('/', ':')}"}

    async def allowed() -> bool:
        return await reviewed(world.admin, {**user_name, **by_name, "resourceAttributes": asked})

    assert await eventually(allowed, within=CONTROLLER_S)
    told = json.loads((await ask("can", who, verb, what, "-n", where, "-o", "json"))[1])
    ends = [[end for made in path["madeBy"] for end in made["ends"]] for path in told["paths"]]
    assert ends
    assert all(ends), told
    for each in ends:
        if not await allowed():
            break  # one edit was the end of several paths
        await act(world.admin, each[0])

    await eventually(allowed, lambda found: not found, within=CONTROLLER_S, what=f"{ends} end it")
    assert (await ask("can", who, verb, what, "-n", where))[0] == 1


async def test_a_namespace_that_is_listed_and_selected_leaves_by_both(world: Explained, ask: Asking) -> None:
    """One edit and one label are the one way out; both done, the right is gone."""
    scoping, name, key = Scoping(world.admin, START_S), f"both-{token()}", f"env-{token()}"
    other = f"also-{name}"
    await asyncio.gather(scoping.namespace(name, labels={key: "x"}), scoping.namespace(other))
    await scoping.template(name, role(name, rules=[EDITS], subjects=[user(name)]))
    await scoping.instance(name, name, namespaces=[name, other], namespaceSelector={"matchLabels": {key: "x"}})
    await scoping.scoped(name)
    told = json.loads((await ask("can", name, "get", "secrets", "-n", name, "-o", "json"))[1])
    way = told["paths"][0]["madeBy"][0]["ends"][0]
    edit, _, notes = way.partition("  # ")

    assert edit == f"kubectl edit scopeinstances.operators.coreos.com {name} && kubectl label namespaces {name} KEY-"
    assert notes == f"take {name} out of spec.namespaces; a label that spec.namespaceSelector asks for"
    first, second = edit.replace("KEY", key).split(" && ")
    await act(world.admin, f"{first}  # {notes.partition('; ')[0]}")
    assert (await ask("can", name, "get", "secrets", "-n", name))[0] == 0
    await act(world.admin, second)

    async def gone() -> bool:
        return (await ask("can", name, "get", "secrets", "-n", name))[0] == 1

    await eventually(gone, within=CONTROLLER_S)
