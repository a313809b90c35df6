"""``tenantry console`` through HTTP, over a real control plane: who gets in, what is answered, and what comes by itself."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from commanding import Command, account_kubeconfig
from consoles import Console, awaited, serving
from people import C1, FUNCTION, People, registration, token
from times import LEFT_TO_MAKE_WHOLE, PROJECTS_S, SERVED_S

from tenantry.api import Api
from tenantry.api.errors import Forbidden
from tenantry.kit.console.app import NO_HOST, NO_TOKEN, ONLY_GET
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj
from tenantry.testing.proxy import FaultProxy

pytestmark = LEFT_TO_MAKE_WHOLE

PATHS = ("", "map", "about?kind=Namespace&name=default", "can?subject=a&verb=get&resource=pods", "events")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ledger(knative: Callable[..., Awaitable[Knative]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One function whose decisions are kept, until the module ends; the file of its ledger."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    await knative({**C1, "decisions": {"enabled": True}}, functions=[FUNCTION], ledger=path)
    return path


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def project(ledger: Path, people: People) -> str:
    """A project that is served, with one member."""
    name = f"p-{token()}"
    await people.namespace(f"team-{name}", name)
    await people.until(CONFIG_MAP, "dummy.cattle.io.v1alpha1", registration(name), bool, within=PROJECTS_S)
    return name


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def console(control_plane: ControlPlane, project: str) -> AsyncIterator[Console]:
    """The command as a process, until the module ends; it finds the ledger by itself."""
    async with serving(control_plane.kubeconfig) as found:
        yield found


@pytest.mark.parametrize("path", PATHS)
async def test_who_has_no_token_gets_nothing(console: Console, path: str) -> None:
    """Without the token, with another, or a part of it each path is refused in the same words, which say what to open."""
    for prefix in ("", "x" * len(console.token), console.token[:-1]):
        address = f"http://{console.origin}/{f'{prefix}/' if prefix else ''}{path}"
        async with console.session.get(address) as answer:
            assert (answer.status, await answer.text()) == (403, NO_TOKEN)


@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1", "127.0.0.1:1", ""])
async def test_another_name_of_this_machine_gets_nothing(console: Console, host: str) -> None:
    """A name that an attacker leads to loopback is refused, with the token too; localhost with the port is the page itself."""
    async with console.session.get(console.url, headers={"Host": host}) as answer:
        assert (answer.status, await answer.text()) in ((403, NO_HOST), (400, "Invalid HTTP request received."))
    port = console.origin.partition(":")[2]
    async with console.session.get(console.url, headers={"Host": f"localhost:{port}"}) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"])
async def test_there_is_no_method_but_get(console: Console, method: str) -> None:
    """Every other method is refused on every path, so nothing can be written; no answer lets another origin read it."""
    for path in PATHS:
        headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "GET"}
        async with console.session.request(method, console.url + path, headers=headers) as answer:
            assert (answer.status, answer.headers.get("allow")) == (405, "GET")
            assert await answer.text() == ("" if method == "HEAD" else ONLY_GET)
            assert not [each for each in answer.headers if each.lower().startswith("access-control")]


async def test_it_listens_on_loopback_alone(console: Console) -> None:
    """Another machine finds nothing at its port."""
    found = [each.laddr.ip for each in psutil.Process(console.process.pid).net_connections() if each.status == psutil.CONN_LISTEN]
    assert found == ["127.0.0.1"]


async def test_the_page_may_do_nothing_but_ask_here(console: Console, project: str) -> None:
    """It has the map in it, no script but its own by their digests, no other origin, and is neither kept nor framed."""
    async with console.session.get(console.url) as answer:
        text, headers = await answer.text(), answer.headers
    policy = dict(each.partition(" ")[::2] for each in headers["content-security-policy"].split("; "))
    assert f'"{registration(project)}"' in text
    assert (policy["default-src"], policy["connect-src"], policy["frame-ancestors"]) == ("'none'", "'self'", "'none'")
    assert re.fullmatch("'sha256-[A-Za-z0-9+/=]+'", policy["script-src"])
    assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "no-referrer")
    assert console.token not in text, "the page knows its own address"

    data = json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[0])
    assert (await console.get("map"))["groups"] == data["groups"]


async def test_an_object_is_explained(console: Console, project: str) -> None:
    """As by `tenantry explain`: whose it is, why, what would end it; with the decisions about it, the newest first."""
    found = await console.get("about", kind="Namespace", name=registration(project))
    (answer,) = found["answers"]
    assert (answer["answer"], answer["ours"]) == ("ours", True)
    assert answer["explained"]["madeBy"][0]["owner"] == f"project/{project}"
    assert any("to end it:" in line for line in answer["lines"])
    assert any(each["text"] == f"create Namespace {registration(project)}" for each in found["decisions"][-1]["writes"])

    found = await console.get("about", kind="project", name=project)
    assert found["answers"] == []
    assert f"project/{project}" in found["decisions"][0]["text"]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "name an object: kind, name and, if it has one, namespace"),
        ({"kind": "Namespace", "name": "x" * 600}, "name an object: kind, name and, if it has one, namespace"),
        ({"kind": "Namespace", "name": "gone"}, "there is no Namespace gone"),
        ({"kind": "Starship", "name": "x"}, "the server serves no Starship"),
        ({"kind": "ConfigMap", "name": "../../secrets", "namespace": "default"}, "there is no ConfigMap ../../secrets"),
    ],
)
async def test_what_cannot_be_explained_is_said(console: Console, asked: dict[str, str], says: str) -> None:
    """A question about nothing is answered with what is wrong with it."""
    assert (await console.get("about", **asked))["error"].startswith(says)


async def test_what_comes_is_told(console: Console, people: People, project: str) -> None:
    """A namespace that comes is in the next map, and the decision about it follows, without being asked for again."""
    before = (await console.get("map"))["version"]
    name = f"new-{token()}"
    async with console.events(f"{before}.0") as events:
        await awaited(events, "state", lambda state: state == {"old": "", "noDecisions": ""})
        await people.namespace(name, f"p-{name}")

        def about(story: Any) -> bool:
            return f"created Namespace {name}, in project p-{name}" in story[0]["text"] and bool(made(story))

        def made(story: Any) -> list[Any]:
            (step,) = [each for each in story[0]["steps"] if each["by"] == FUNCTION] or [{"did": []}]
            return [each for each in step["did"] if registration(f"p-{name}") in [it["name"] for it in each["objects"]]]

        (episode, *_) = await awaited(events, "story", about)
        assert [each["says"] for each in made([episode])] == ["made"]
        assert episode["decisions"][0]["causes"][0].startswith(f"because of Namespace {name} (")
        while registration(f"p-{name}") not in json.dumps((await console.get("map"))["groups"]):
            await awaited(events, "map")
    assert (await console.get("map"))["version"] > before


async def test_a_page_that_comes_again_gets_what_it_missed(console: Console, people: People, project: str) -> None:
    """A stream that breaks goes on behind what its page has had: no map again, no story again until there is more of it."""
    async with console.events() as events:
        await awaited(events, "story")
        await awaited(events, "running")
    had = console.had.split(".")
    async with console.events(console.had) as events:
        await people.namespace(f"again-{project}", f"q-{project}")
        async for name, data in events:
            assert name != "map" or data["version"] > int(had[0])
            if name == "story":
                break
        assert f"again-{project}" in json.dumps(data)
    async with console.session.get(console.url + "events", headers={"Last-Event-ID": "a.b"}) as answer:
        assert answer.status == 200


async def test_who_can_do_what_is_answered(console: Console, people: People, admin: Api, project: str) -> None:
    """As by `tenantry explain can`, with its paths; where it is no, what is missing; without a namespace for all of them."""
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"ann-{project}"}
    await admin.create(ROLE_BINDING, obj(ROLE_BINDING, "ann", f"team-{project}", roleRef=ref, subjects=[subject]))
    asked = {"subject": f"ann-{project}", "verb": "get", "resource": "pods", "namespace": f"team-{project}"}

    async def answered() -> Any:
        return await console.get("can", **asked)

    found = await eventually(answered, lambda each: each["good"], what="the binding is in force")
    assert (found["answer"], found["missing"]) == ("yes", [])
    assert any(f"binds User ann-{project} to " in line and "view" in line for line in found["lines"])
    assert "SubjectAccessReview agrees" in found["lines"]

    for change in ({"verb": "delete"}, {"namespace": ""}):
        found = await console.get("can", **{**asked, **change})
        assert (found["answer"], found["good"]) == ("no", False)
        assert found["missing"]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "name who, a verb and a resource"),
        ({"subject": "sa:x", "verb": "get", "resource": "pods"}, "a ServiceAccount is written sa:NS/NAME"),
        ({"subject": "jane", "verb": "get", "resource": "podz"}, "the server serves no resource 'podz'; did you mean"),
        ({"subject": "j" * 600, "verb": "get", "resource": "pods"}, "a name is longer than"),
    ],
)
async def test_a_question_that_means_nothing_is_said(console: Console, asked: dict[str, str], says: str) -> None:
    """With what to write instead, as the command says it."""
    assert (await console.get("can", **asked))["error"].startswith(says)


async def test_what_runs_is_shown(console: Console, project: str) -> None:
    """The functions with their last sweep, the backlog and dead letters, as `tenantry status` has them."""
    async with console.events() as events:
        found = await awaited(events, "running", lambda each: each.get("services"))
    mine = {each["name"]: each for each in found["services"]}
    assert (mine[FUNCTION]["up"], mine[FUNCTION]["everySeconds"]) == (True, 600)
    assert {each["well"] for name, each in mine.items() if name != FUNCTION} == {True}
    assert isinstance(found["backlog"]["waiting"], int)
    assert (found["deadLetters"], found["unread"]) == ([], {})


async def test_ctrl_c_ends_it_at_once(control_plane: ControlPlane, ledger: Path, tmp_path: Path) -> None:
    """Also while pages are open; where there is no ledger, those were told where decisions would come from."""
    async with serving(control_plane.kubeconfig, "--ledger", tmp_path / "none.db") as other, other.events() as events:
        said = await awaited(events, "state", lambda state: state["noDecisions"].startswith("there is no ledger"))
        assert "decisions.enabled is true" in said["noDecisions"]
        assert await other.end() == 0


async def test_a_cluster_that_is_gone_is_told(control_plane: ControlPlane, project: str, tmp_path: Path) -> None:
    """Where the API server is not reached any more the page keeps its map, and is told that it may be old, and why."""
    async with AsyncExitStack() as reached:
        proxy = await reached.enter_async_context(FaultProxy(control_plane.kubeconfig, tmp_path))
        async with serving(proxy.kubeconfig_for(control_plane.kubeconfig)) as other, other.events() as events:
            await awaited(events, "state", lambda state: state == {"old": "", "noDecisions": ""})
            await reached.aclose()
            assert (await awaited(events, "state", lambda state: state["old"]))["old"]
            assert f'"{registration(project)}"' in json.dumps((await other.get("map"))["groups"])
            found = await other.get("about", kind="Namespace", name=registration(project))
            assert "cannot" in found["error"] or "connect" in found["error"].lower()


async def test_it_has_the_rights_of_its_kubeconfig(control_plane: ControlPlane, admin: Api, project: str, tmp_path: Path) -> None:
    """Who may see namespaces alone gets these, is told first what could not be read, and of an object that it may not be read."""
    name = f"looks-{token()}"
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]}]
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    await admin.create(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, name, "default"))
    await admin.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, name, rules=rules))
    await admin.create(CLUSTER_ROLE_BINDING, obj(CLUSTER_ROLE_BINDING, name, roleRef=ref, subjects=[subject]))
    kubeconfig = await account_kubeconfig(admin, control_plane, "default", name, tmp_path / "kubeconfig")
    async with await Api.connect(field_manager=name, kubeconfig=kubeconfig) as theirs:
        await eventually(lambda: _may_list(theirs), what="the rights are in force")
    async with serving(kubeconfig) as other, other.events() as events:
        found = await other.get("map")
        assert f'"{registration(project)}"' in json.dumps(found["groups"])
        assert "rolebindings.rbac.authorization.k8s.io" in dict(found["unread"])
        said = await awaited(events, "state", lambda state: state["noDecisions"].startswith("which ledger"))
        assert "name it with --ledger" in said["noDecisions"]
        runs = await awaited(events, "running", lambda each: each.get("unread"))
        assert "dead letters" in runs["unread"]
        about = await other.get("can", subject="jane", verb="get", resource="pods", namespace="default")
        assert about["answer"] == "not known"
        assert any("you may not read: " in line for line in about["lines"])
        asked = {"kind": "ConfigMap", "name": "dummy.cattle.io.v1alpha1", "namespace": registration(project)}
        assert (await other.get("about", **asked))["error"].startswith("you may not read ConfigMap dummy.cattle.io.v1alpha1")


async def _may_list(api: Api) -> bool:
    try:
        return bool((await api.list(NAMESPACE)).items)
    except Forbidden:
        return False


async def test_a_port_that_is_taken_is_said(as_admin: Command) -> None:
    """With the option that chooses another."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, errors = await as_admin("console", "--no-open", "--port", str(taken.getsockname()[1]))
    assert code == 2
    assert "choose another with --port" in errors


# -- at the end ----------------------------------------------------------------------------------------------------------


async def test_an_older_installation_is_told_to_the_page(control_plane: ControlPlane, admin: Api, project: str) -> None:
    """A kind of ours that the cluster does not serve is named, and everything else is there and explained."""
    await admin.delete(CUSTOM_RESOURCE_DEFINITION, "sourcegrants.tenantry.dev")

    async def asked() -> dict[str, Any]:
        async with serving(control_plane.kubeconfig) as other:
            found = await other.get("map")
            return {**found, "about": await other.get("about", kind="Namespace", name=registration(project))}

    missing = ["sourcegrants.tenantry.dev"]
    found = await eventually(asked, lambda each: each["missing"] == missing, within=SERVED_S, what="the kind is not served")
    assert f'"{registration(project)}"' in json.dumps(found["groups"])
    assert "error" not in found["about"], found["about"]
