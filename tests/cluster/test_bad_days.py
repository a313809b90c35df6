"""Days on which something is down, killed, forbidden or wrong: nothing is lost, and what heals, heals by itself."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from flawless import Calm
from one_function import ready, serving
from people import (
    C1,
    CHART_CONFIG_MAP,
    FUNCTION,
    POLICY,
    People,
    condition_of,
    look,
    marks,
    marks_of,
    post,
    registration,
    token,
    user_of,
)
from refusing import lacking
from slow_proxy import Gate
from times import DEAD_LETTER_S, LEFT_TO_MAKE_WHOLE, PROJECTS_S, until

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.identity import Identity
from tenantry.local.knative import Knative
from tenantry.model.config import Config
from tenantry.model.kinds import CONFIG_MAP, EVENT, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.charts import SETTING
from tenantry.serving.dead_letters.store import Store
from tenantry.serving.installed import descriptors
from tenantry.testing import eventually
from tenantry.testing.objects import obj
from tenantry.testing.settling import settle

pytestmark = LEFT_TO_MAKE_WHOLE

RIGHTS = "tenantry-namespace-registration"


def _projects(number: int) -> list[str]:
    run = token()
    return [f"p-{run}-{each}" for each in range(number)]


async def _registered(admin: Api, projects: list[str]) -> set[str]:
    found = await asyncio.gather(*(admin.get(NAMESPACE, registration(project)) for project in projects))
    return {project for project, each in zip(projects, found, strict=True) if each is not None}


async def _accounted(system: Knative, admin: Api, projects: list[str]) -> None:
    """Each project is served, or the events that would have served it are kept as dead letters."""
    kept = system.dead_letters.read_text() if system.dead_letters.exists() else ""
    assert {project for project in projects if project in kept} >= set(projects) - await _registered(admin, projects)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(knative: Callable[..., Awaitable[Knative]]) -> AsyncIterator[Knative]:
    """The system under the reference configuration; whatever happens to it, no answer is a 500."""
    running = await knative(C1, functions=[FUNCTION])
    statuses: set[int] = set()
    running.on_delivery.append(lambda _, __, status, *___: statuses.add(status))
    yield running
    assert 500 not in statuses


# -- the API server and the process ----------------------------------------------------------------------------


async def test_api_server_goes_and_comes_back(system: Knative, control_plane: ControlPlane, people: People, admin: Api) -> None:
    """While the API server is away the answer is 503, never 500, and nothing of what waited is lost.

    An event whose tries ran out meanwhile is kept as a dead letter, and the next sweep makes up for it.
    """
    projects = _projects(10)
    statuses: set[int] = set()
    system.on_delivery.append(lambda _, __, status, *___: statuses.add(status))
    await asyncio.gather(*(people.namespace(f"a1-{project}", project) for project in projects))
    await asyncio.to_thread(control_plane.stop_api_server, kill=True)
    try:
        status, text = await post(system.functions[FUNCTION].url, *look(NAMESPACE, f"a1-{projects[0]}"))
        assert status == 503
        assert 0 < len(text) <= 150
    finally:
        await asyncio.to_thread(control_plane.start_api_server)
    await system.drain()
    await _accounted(system, admin, projects)
    await system.sweep(FUNCTION)
    await settle(system, admin)

    assert statuses <= {204, 409, 503}
    for project in projects:
        assert marks_of(project) == marks(await people.get(NAMESPACE, registration(project)))


async def test_killed_function_is_made_up_for(system: Knative, people: People, admin: Api) -> None:
    """A function that is killed in the middle of its work comes back; what it had in hand is delivered again or kept.

    Kept are, as dead letters, events whose tries ran out before it was back; the next sweep makes up for those.
    """
    projects = _projects(20)
    function = system.functions[FUNCTION]
    before = function.pid
    await asyncio.gather(*(people.namespace(f"a1-{project}", project) for project in projects))
    await eventually(lambda: _registered(admin, projects), within=PROJECTS_S)
    function.kill()
    await system.drain()
    await _accounted(system, admin, projects)
    await system.sweep(FUNCTION)
    await settle(system, admin)

    assert function.pid != before
    for project in projects:
        assert marks_of(project) == marks(await people.get(NAMESPACE, registration(project)))
        await people.get(NETWORK_POLICY, POLICY, registration(project))
        await people.get(CONFIG_MAP, CHART_CONFIG_MAP, registration(project))


# -- rights and tokens -----------------------------------------------------------------------------------------


async def _answer(knative: Knative, name: str, status: int) -> str:
    """Look at a namespace until the answer has this status; the authorizer learns of a change after a moment."""

    async def ask() -> str:
        got, text = await post(knative.functions[FUNCTION].url, *look(NAMESPACE, name))
        return (text or "done") if got == status else ""

    return await eventually(ask, within=PROJECTS_S, what=f"{status} for {name}")


async def test_missing_right_to_write_is_told_and_heals(system: Knative, people: People, admin: Api, calm: Calm) -> None:
    """Without the right to make ConfigMaps the namespace says which right is missing, and everything else is done."""
    project, other = _projects(2)
    name = registration(project)
    await people.namespace(f"b1-{other}", other)
    await people.registered(other)
    async with lacking(admin, RIGHTS, "configmaps", {"create", "patch"}):
        await people.namespace(f"a1-{project}", project)
        text = await _answer(system, f"a1-{project}", 503)
        told = condition_of(await people.until(NAMESPACE, name, "", condition_of))
        assert told is not None
        assert told["reason"] == "RightMissing"
        assert 'resource "configmaps"' in told["message"]
        assert "rights.yaml" in told["message"]
        assert 'resource "configmaps"' in await people.warned(name, "RightMissing")
        assert "configmaps is missing" in text
        await people.get(NETWORK_POLICY, POLICY, name)
        await people.label(f"b1-{other}", {"field.cattle.io/projectId": None})
        await people.orphaned(other)
        assert await people.admin.get(CONFIG_MAP, CHART_CONFIG_MAP, name) is None
    await _answer(system, f"a1-{project}", 204)
    await calm(system)

    assert await people.condition(name) is None
    await people.get(CONFIG_MAP, CHART_CONFIG_MAP, name)


async def test_missing_right_to_read_is_named(system: Knative, people: People, admin: Api, calm: Calm) -> None:
    """Without the right to read, answer, dead letter and a Warning name the right; afterwards all goes on."""
    (project,) = _projects(1)
    async with lacking(admin, RIGHTS, "namespaces", {"get"}):
        text = await _answer(system, f"a1-{project}", 503)
        await people.namespace(f"a1-{project}", project)
    await _answer(system, f"a1-{project}", 204)
    await calm(system)

    warnings = await admin.list(EVENT, SYSTEM_NAMESPACE, field_selector="type=Warning,reason=RightMissing")
    told = [item["note"] for item in warnings.items if item["regarding"]["name"] == "namespace-registration"]

    assert text == "the right to get namespaces is missing"
    assert [note for note in told if note.startswith(text) and "rights.yaml" in note]
    assert marks_of(project) == marks(await people.get(NAMESPACE, registration(project)))


async def test_dead_letter_names_the_missing_right(system: Knative, people: People, admin: Api, calm: Calm) -> None:
    """An event that is given up for want of a right is kept with the right's name, and a sweep makes up for it."""
    (project,) = _projects(1)
    async with lacking(admin, RIGHTS, "configmaps", {"get", "create", "patch"}):
        await people.namespace(f"a1-{project}", project)
        letters = await until(
            lambda: [letter for letter in system.dead_letters.letters if project in letter.key],
            within=DEAD_LETTER_S,
            what="a dead letter",
        )
    await calm(system)
    await people.registered(project)

    assert {(letter.function, letter.status) for letter in letters} == {(FUNCTION, 503)}
    assert all("configmaps is missing" in letter.reason for letter in letters)
    stored = {letter.name: letter.reason for letter in await Store(admin).read()}
    assert stored.items() >= {letter.name: letter.reason for letter in letters}.items()


async def test_rotated_token_is_read_again(admin: Api, control_plane: ControlPlane, tmp_path: Path, people: People) -> None:
    """A client follows its token file: after the account was made anew and the file replaced, it is the new one at once."""
    name = f"rotating-{token()}"
    account = obj(SERVICE_ACCOUNT, name, SYSTEM_NAMESPACE)
    made = await admin.create(SERVICE_ACCOUNT, account)
    identity = Identity(admin, name, tmp_path, control_plane.kubeconfig, lambda _: None)
    async with await Api.connect(field_manager="tests", kubeconfig=await identity.open(lifetime_s=600)) as api:
        assert made["metadata"]["uid"] == (await user_of(api))["uid"]
        await people.delete(SERVICE_ACCOUNT, name, SYSTEM_NAMESPACE)
        again = await admin.create(SERVICE_ACCOUNT, account)
        await identity.close()
        await identity.open(lifetime_s=600)
        newest = again["metadata"]["uid"]
        await eventually(lambda: user_of(api), lambda user: user["uid"] == newest, within=5, what="followed")
    await identity.close()


# -- one function by itself --------------------------------------------------------------------------------------


async def test_sigterm_finishes_what_runs(
    identity: Callable[..., Awaitable[Path]], control_plane: ControlPlane, people: People, tmp_path: Path
) -> None:
    """On SIGTERM in the middle of a run the run is finished, its event answered with 204, and the exit code is 0."""
    (project,) = _projects(1)
    await people.namespace(f"a1-{project}", project)
    kubeconfig = await identity(FUNCTION, Config.model_validate(C1))
    async with Gate(control_plane.server_url) as gate:
        slow = gate.kubeconfig(kubeconfig, tmp_path / "slow.kubeconfig")
        async with serving(slow, C1, tmp_path) as (process, url):
            await ready(process, url)
            gate.close()
            answer = asyncio.create_task(post(url, *look(NAMESPACE, f"a1-{project}")))
            await asyncio.wait_for(gate.waiting.wait(), 10)
            process.send_signal(signal.SIGTERM)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.shield(answer), 0.3)
            assert process.returncode is None, "it waits for what runs"
            gate.open()

            assert await asyncio.wait_for(answer, 20) == (204, "")
            assert await asyncio.wait_for(process.wait(), 20) == 0
    assert marks_of(project) == marks(await people.get(NAMESPACE, registration(project)))


async def _refused(kubeconfig: Path, config: Mapping[str, Any], folder: Path, *, port: int = 0) -> str:
    """What ``tenantry serve`` says when it cannot start; the exit code is 2 and there is no traceback."""
    async with serving(kubeconfig, config, folder, port=port) as (process, _):
        _, errors = await asyncio.wait_for(process.communicate(), 20)
    text = errors.decode()
    assert process.returncode == 2, text
    assert "Traceback" not in text
    return text


async def test_unknown_key_stops_the_start(control_plane: ControlPlane, tmp_path: Path) -> None:
    """A key that nobody knows stops the start, with its path and what was perhaps meant."""
    config = {"helmProjectOperator": {"hardenedNamespaces": {"enabeld": True}}}

    text = await _refused(control_plane.kubeconfig, config, tmp_path)
    assert "helmProjectOperator.hardenedNamespaces.enabeld" in text
    assert "did you mean enabled" in text


@pytest.mark.parametrize(
    ("chart", "says"),
    [("nowhere", "is no chart"), ("empty", "no Chart.yaml"), ("double", "keep one")],
)
async def test_unusable_chart_stops_the_start(control_plane: ControlPlane, tmp_path: Path, chart: str, says: str) -> None:
    """A chart that is not there, is none, or holds a file twice stops the start, with the key's path."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "double").mkdir()
    for name in ("Chart.yaml", "values.yaml", "values.yml"):
        (tmp_path / "double" / name).write_text("name: x\n")
    given = {"helmApiVersion": "dummy.cattle.io/v1alpha1", "releaseName": "dummy", "chart": str(tmp_path / chart)}

    text = await _refused(control_plane.kubeconfig, {"helmProjectOperator": {"charts": [given]}}, tmp_path)
    assert "helmProjectOperator.charts[0].chart" in text
    assert says in text


@pytest.mark.parametrize("function", descriptors())
async def test_a_chart_that_is_not_there_stops_who_needs_it(control_plane: ControlPlane, tmp_path: Path, function: str) -> None:
    """Where a chart is not mounted, the functions that read charts refuse to start, and the others are ready."""
    given = {"helmApiVersion": "dummy.cattle.io/v1alpha1", "releaseName": "dummy", "chart": str(tmp_path / "nowhere")}
    config = {"helmProjectOperator": {"charts": [given]}}
    command = (sys.executable, "-m", "tenantry.cli", "serve", function)
    async with serving(control_plane.kubeconfig, config, tmp_path, command=command) as (process, url):
        if descriptors()[function].reads_setting(SETTING):
            _, errors = await asyncio.wait_for(process.communicate(), 20)
            assert process.returncode == 2
            assert "helmProjectOperator.charts[0].chart" in errors.decode()
        else:
            await ready(process, url)


async def test_taken_port_is_told(control_plane: ControlPlane, tmp_path: Path) -> None:
    """A port that somebody else has is one line that says so and what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        text = await _refused(control_plane.kubeconfig, C1, tmp_path, port=port)

    assert f"cannot listen on 127.0.0.1:{port}" in text
    assert "choose another --port" in text
