"""Decisions as events: after the story of the README each write is in the ledger with its cause, and what is lost is named."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from ledgers import audited, history, holds, now, tenantry, writes_in
from letters import empty, kept
from people import People, registration, token
from rights import cluster_role, user
from times import HELM_S, PROJECTS_S

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane, Lines, ensure_helm
from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.event import DECISION_TYPE, RECONCILE_REQUESTED_TYPE, Event
from tenantry.model.kinds import CLUSTER_ROLE, CONFIG_MAP, PROJECT_HELM_CHART, ROLE_BINDING, Object
from tenantry.serving.cloudevents import encode_binary
from tenantry.serving.installed import services_of
from tenantry.serving.signing import SIGNATURE, signature
from tenantry.testing import eventually
from tenantry.testing.audit import AuditLog
from tenantry.testing.forks import Forks
from tenantry.testing.objects import obj
from tenantry.testing.settling import settle

FUNCTIONS = ("namespace-registration", "release-provisioning", "rbac-aggregation", "lock-enforcement")
REGISTRATION = FUNCTIONS[0]
KILLS = 5
"""So often is it tried to kill a function before it can tell."""
CHART = Path(__file__).parents[2] / "docs" / "examples" / "monitored-app"
CONFIG: dict[str, Any] = {
    "global": {"cattle": {"systemProjectId": "p-system"}},
    "helmProjectOperator": {
        "charts": [{"helmApiVersion": "apps.example.com/v1alpha1", "releaseName": "monitored", "chart": str(CHART)}]
    },
    "decisions": {"enabled": True},
}
SECRET_VALUE = "s3cret-of-the-team"
ARRIVES_S, DRAINED_S = 10.0, 40.0

pytestmark = pytest.mark.timeout(120)


class Heard(list[tuple[str, str]]):
    """The log lines of functions; ``kill_at`` ends a function the moment it says something."""

    kill_at: tuple[str, Callable[[], None]] | None = None

    def __call__(self, function: str, line: Mapping[str, str]) -> None:
        message = line.get("message", "")
        self.append((function, message))
        if self.kill_at is not None and message.startswith(self.kill_at[0]):
            kill, self.kill_at = self.kill_at[1], None
            kill()


@pytest.fixture(scope="module")
def heard() -> Heard:
    """What functions say."""
    return Heard()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def earlier(
    control_plane: ControlPlane, admin: Api, forks: Forks, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """The ledger of a system that has served a project and has ended; and the project."""
    ledger, folder, project = (
        tmp_path_factory.mktemp("ledger") / "ledger.db",
        tmp_path_factory.mktemp("earlier"),
        f"p-{token()}",
    )
    options: dict[str, Any] = {"functions": [REGISTRATION], "ledger": ledger, "spawn": forks.spawn}
    async with Knative(control_plane.kubeconfig, folder, config=CONFIG, **options):
        await People(admin).namespace(f"team-{project}", project)
        await People(admin).until(CONFIG_MAP, "apps.example.com.v1alpha1", registration(project), bool, within=PROJECTS_S)
    return ledger, project


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def keeping(knative: Callable[..., Awaitable[Knative]], heard: Heard, earlier: tuple[Path, str]) -> Knative:
    """The functions of the story, whose decisions are kept where a system before left its own."""
    return await knative(CONFIG, functions=FUNCTIONS, helm=ensure_helm(Lines()), ledger=earlier[0], on_log=heard)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def story(keeping: Knative, admin: Api, audit_log: AuditLog) -> AsyncIterator[tuple[str, str]]:
    """A project with a namespace, a chart and a reader, as in the README; and the moment before."""
    await keeping.drain()
    for role in documents(deployment_folder("knative") / "lockable-kinds"):
        await admin.apply(CLUSTER_ROLE, role)
    began, people, project = now(), People(admin), f"p-{token()}"
    home = registration(project)
    await people.namespace(f"team-{project}", project)
    await people.until(CONFIG_MAP, "apps.example.com.v1alpha1", home, bool, within=PROJECTS_S)
    spec = {"helmApiVersion": "apps.example.com/v1alpha1", "values": {"password": SECRET_VALUE}}
    await admin.create(PROJECT_HELM_CHART, obj(PROJECT_HELM_CHART, f"demo-{project}", home, spec=spec))
    await people.until(PROJECT_HELM_CHART, f"demo-{project}", home, _is_ready, within=HELM_S)
    await settle(keeping, admin)  # else the run that binds her may have a cause more: what comes at that moment of her chart
    reader = obj(ROLE_BINDING, "alice", home, roleRef=cluster_role("view"), subjects=[user(f"alice-{project}")])
    await admin.create(ROLE_BINDING, reader)
    await eventually(lambda: _bound(admin, project), within=HELM_S, what="alice has the role of the release")
    yield project, began


def _is_ready(chart: Object) -> bool:
    return (find_condition(chart, "Ready") or {}).get("status") == "True"


def _release(project: str) -> str:
    return f"demo-{project}-monitored"


async def _bound(admin: Api, project: str) -> bool:
    found = (await admin.list(ROLE_BINDING, _release(project))).items
    return any(each["name"] == f"alice-{project}" for binding in found for each in binding.get("subjects") or ())


async def _settled(keeping: Knative, project: str) -> list[Object]:
    """All decisions, when nothing more comes."""
    await asyncio.wait_for(keeping.drain(), DRAINED_S)
    seen: list[int] = []

    async def count() -> bool:
        seen.append(len((await history(keeping))["decisions"]))
        return len(seen) > 2 and seen[-1] == seen[-2] == seen[-3]

    await eventually(count, within=ARRIVES_S, what="no more decisions arrive")
    return list((await history(keeping))["decisions"])


async def test_each_write_of_the_story_is_there_with_its_cause(
    keeping: Knative, story: tuple[str, str], audit_log: AuditLog
) -> None:
    """What the API server stored for our identities, and what the ledger has, are the same writes; each has what it came from."""
    project, began = story
    found = await _settled(keeping, project)
    services = [service.name for service in services_of(FUNCTIONS)]
    ours = [each for each in found if each["time"] >= began[:19]]
    stored, told = audited(audit_log, services, began), writes_in(ours)

    assert len(stored) > 15
    assert told - stored == stored - told == {}
    causeless = [each for each in ours if not each["causes"] and not each["causesLeftOut"]]
    assert causeless == []
    assert all(cause.get("event") for each in ours for cause in each["causes"])
    assert any(each["inputs"] for each in ours)
    home = registration(project)
    made = next(each for each in ours if any(write["name"] == home for write in each["writes"]))
    assert (made["owner"], made["function"], made["verdict"]["status"]) == (f"project/{project}", REGISTRATION, 204)
    assert {cause.get("name") for cause in made["causes"]} == {f"team-{project}"}
    assert {"kind": "Namespace", "name": f"team-{project}"}.items() <= {
        (key, value) for each in made["inputs"] if each["name"] == f"team-{project}" for key, value in each.items()
    }
    assert (await history(keeping))["missing"] == []


async def test_decisions_outlive_a_restart_of_everything(
    keeping: Knative, story: tuple[str, str], earlier: tuple[Path, str]
) -> None:
    """A new start goes on in the same file; who ended in good order, told all until then, also the last, and left no gap."""
    found = await history(keeping)
    ended = [each for each in found["decisions"] if each["owner"] == f"project/{earlier[1]}"]
    now_at_work = {each["process"] for each in found["decisions"] if each["owner"] == f"project/{story[0]}"}

    assert {write["verb"] for each in ended for write in each["writes"]} >= {"create"}
    assert now_at_work
    assert now_at_work.isdisjoint(each["process"] for each in ended)
    assert found["missing"] == []


async def test_history_answers_by_owner_object_namespace_and_user(keeping: Knative, story: tuple[str, str]) -> None:
    """Each way to ask finds what concerns it; of a user the bindings that name him, and what led to them."""
    project, _ = story
    await _settled(keeping, project)
    home, reader = registration(project), f"alice-{project}"
    by_owner = (await history(keeping, f"project/{project}"))["decisions"]
    assert {each["owner"] for each in by_owner} == {f"project/{project}"}
    by_object = (await history(keeping, f"Namespace/{home}"))["decisions"]
    assert any(write["name"] == home and write["verb"] == "create" for each in by_object for write in each["writes"])
    by_namespace = (await history(keeping, home))["decisions"]
    assert any(write.get("namespace") == home for each in by_namespace for write in each["writes"])
    (by_user,) = (await history(keeping, reader))["decisions"]
    (given,) = [write for write in by_user["writes"] if f"User/{reader}" in write.get("subjectsAdded", ())]
    assert (given["kind"], given["namespace"]) == ("RoleBinding", _release(project))
    assert given["role"].endswith("-view")
    assert {cause["kind"] for cause in by_user["causes"]} == {"RoleBinding"}

    assert keeping.ledger.path is not None
    text = (await tenantry("history", reader, "--ledger", str(keeping.ledger.path))).stdout
    assert f"+User/{reader}" in text
    assert f"because of RoleBinding {home}/alice" in text
    assert "\x1b" not in text
    nothing = (await tenantry("history", "nobody-there", "--ledger", str(keeping.ledger.path))).stdout
    assert nothing.startswith("the ledger has no decision about nobody-there in that time; it begins at ")


async def test_what_an_owner_had_at_a_time(
    keeping: Knative, story: tuple[str, str], admin: Api, control_plane: ControlPlane
) -> None:
    """The objects with their versions as the API server has them, and plainly what is not proven; before, there was nothing."""
    project, began = story
    await _settled(keeping, project)
    assert keeping.ledger.path is not None
    asked = ("history", f"project/{project}", "--ledger", str(keeping.ledger.path), "--at")
    shown = json.loads((await tenantry(*asked, now(), "-o", "json")).stdout)
    objects = {(each["kind"], each["name"]): each for each in shown["objects"]}
    home = objects["Namespace", registration(project)]
    config_map = objects["ConfigMap", "apps.example.com.v1alpha1"]
    live = await admin.get(CONFIG_MAP, "apps.example.com.v1alpha1", registration(project))
    assert live is not None
    assert (home["made"], config_map["resourceVersion"]) == (True, live["metadata"]["resourceVersion"])
    assert any(field.startswith("data") for field in config_map["fields"])
    assert any("values of fields" in each for each in shown["notProven"])

    text = (await tenantry(*asked, now())).stdout
    assert f"Namespace {registration(project)}" in text
    assert "not proven by it: values of fields" in text
    before = await tenantry(*asked, began)
    assert before.exit_code == 1
    assert f"the ledger has no decision for project/{project} until" in before.stderr
    # `tenantry up` says where its ledger is.
    found = await tenantry("history", f"project/{project}", KUBECONFIG=str(control_plane.kubeconfig), TENANTRY_LEDGER="")
    assert found.exit_code == 0, found.stderr
    assert f"create Namespace {registration(project)}" in found.stdout


async def test_no_value_of_a_secret_is_in_the_ledger(keeping: Knative, story: tuple[str, str]) -> None:
    """A value that a team wrote, and that functions wrote on into Secrets, is nowhere in the file, plain or as base64."""
    project, _ = story
    await _settled(keeping, project)
    path = keeping.ledger.path
    assert path is not None
    encoded = base64.b64encode(SECRET_VALUE.encode()).decode()
    assert holds(path, SECRET_VALUE, encoded, f"team-{project}") == [f"team-{project}"]


async def test_at_rest_nothing_is_told(keeping: Knative, story: tuple[str, str]) -> None:
    """Sweeps over what is as declared, and events of our own writes, are no decisions."""
    project, _ = story
    before = len(await _settled(keeping, project))
    for function in FUNCTIONS:
        await keeping.sweep(function)
    assert len(await _settled(keeping, project)) == before


async def test_nobody_else_can_post_decisions(keeping: Knative, story: tuple[str, str], admin: Api) -> None:
    """An event that no function signed is refused, by whatever way it comes, and what was refused is told."""
    project, _ = story
    before = await _settled(keeping, project)
    await empty(admin)
    data = {**_data(f"project/{project}"), "instance": before[0]["process"]}

    def forged(identity: str, sign: str = "") -> Event:
        more = {SIGNATURE: sign} if sign else {}
        return Event(identity, "/tenantry/x", DECISION_TYPE, datacontenttype="application/json", extensions=more, data=data)

    async with aiohttp.ClientSession(trust_env=False) as session:
        for event in (forged("1"), forged("2", signature(b"somebody else's key", data)), forged("3", "ä")):
            headers, body = encode_binary(event)
            async with session.post(keeping.ledger.url, data=body, headers=headers) as answer:
                assert (answer.status, await answer.text()) == (403, "not signed by a function of this installation")
    await keeping.broker.accept(forged("4"))
    await keeping.drain()
    assert [(each.function, each.status) for each in await kept(admin)] == [("ledger", 403)]
    assert await _settled(keeping, project) == before
    await empty(admin)


def _data(owner: str) -> Object:
    verdict = {"status": 204, "reason": "done", "complete": True}
    of = {"type": DECISION_TYPE, "sequence": 999, "function": REGISTRATION, "service": REGISTRATION, "time": now()}
    parts = {"unit": "projects", "owner": owner, "causes": [], "inputs": [], "writes": [], "verdict": verdict}
    return {**of, **parts, "beganMs": 1, "durationMs": 1}


async def test_a_killed_function_loses_nothing_without_a_word(
    keeping: Knative, heard: Heard, admin: Api, audit_log: AuditLog
) -> None:
    """Killed at its first write, before it could tell: what it did then is named as missing, and its successor tells the rest."""
    people = People(admin)
    for _ in range(KILLS):
        function = keeping.functions[REGISTRATION]
        await asyncio.wait_for(keeping.drain(), DRAINED_S)
        project = f"p-{token()}"
        home = registration(project)
        await people.namespace(f"team-before-{project}", f"before-{project}")  # who is killed has told something: so it is known
        await people.until(CONFIG_MAP, "apps.example.com.v1alpha1", registration(f"before-{project}"), bool, within=PROJECTS_S)
        before = await _settled(keeping, project)
        instance = next(each["process"] for each in before if each["owner"] == f"project/before-{project}")
        began = now()
        heard.kill_at = (f"create Namespace {home}", function.kill)
        await people.namespace(f"team-{project}", project)
        await people.until(CONFIG_MAP, "apps.example.com.v1alpha1", home, bool, within=PROJECTS_S * 3)
        found = await _settled(keeping, project)
        told = await history(keeping, "--since", began)
        stored = audited(audit_log, [REGISTRATION], began)
        lost = stored - writes_in(each for each in found if each["service"] == REGISTRATION and each["time"] >= began[:19])
        successors = {each["process"] for each in told["decisions"] if each["owner"] == f"project/{project}"}
        if ("write", "namespaces", "", home) in lost and successors:
            break  # else the kill came when it had told already, or had left nothing to its successor
    else:
        pytest.fail("each kill came too late for this test")
    last = max(each["sequence"] for each in found if each["process"] == instance)
    (gap,) = told["missing"]
    assert (gap["process"], gap["first"]) == (instance, last + 1)
    assert gap["text"].startswith(f"process {instance} ended without a word, and {REGISTRATION}-")
    assert gap["text"].endswith(f"took its place: what it decided after number {last}, if anything, is missing")
    assert instance not in successors


async def test_what_was_decided_is_looked_at_again(
    keeping: Knative, story: tuple[str, str], control_plane: ControlPlane, tmp_path: Path
) -> None:
    """`tenantry replay --since` has the function look at each owner of that time once more, from the ledger or from a file."""
    project, _ = story
    assert keeping.ledger.path is not None
    ledger, owner = ("--ledger", str(keeping.ledger.path)), f"project/{project}"
    shown = await tenantry("replay", owner, "--since", "1h", "--dry-run", *ledger)
    assert shown.stdout == f"{REGISTRATION}: projects:{owner}\n"
    looked: list[int] = []

    def note(trigger: str, event: Event, status: int, attempt: int, seconds: float) -> None:
        if event.type == RECONCILE_REQUESTED_TYPE and event.extensions.get("owner") == owner:
            looked.append(status)

    keeping.on_delivery.append(note)
    told = tmp_path / "told.json"
    told.write_text(json.dumps(await history(keeping, owner)))
    for chosen in ((owner, "--since", "1h", *ledger), ("--decisions", str(told))):
        sent = await tenantry("replay", *chosen, KUBECONFIG=str(control_plane.kubeconfig))
        assert (sent.exit_code, sent.stdout) == (0, f"{REGISTRATION}: projects:{owner}: sent\n"), sent.stderr
    await asyncio.wait_for(keeping.drain(), DRAINED_S)
    assert looked == [204, 204]
    told.write_text("no JSON")
    wrong = await tenantry("replay", "--decisions", str(told))
    assert (wrong.exit_code, "this is not what `tenantry history -o json` says" in wrong.stderr) == (2, True)
