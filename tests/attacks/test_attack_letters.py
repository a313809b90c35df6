"""Events that nobody can handle, from somebody who reaches the broker, the function and the sink, and has no right in the API.

Whatever he sends, what is kept is one object of bounded size, the function answers others, and who can mend it reads what was
given up and why.  With TENANTRY_FULL_SIZE as much is sent as the checks say, else a sample.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from forgery import Served, limit_mib, meanwhile, peak_mib
from letters import FUNCTION, MOST_BYTES, MOST_LETTERS, SINK, Sender, empty, kept, refused, sinks, size, stored, tenantry, writes
from people import C1, People, look, post, token
from times import FULL, LEFT_TO_MAKE_WHOLE, PROJECTS_S, SERVED_MEANWHILE_S
from victims import SPARE

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.deployment import deployment_folder
from tenantry.local.invocation import reference_event
from tenantry.local.knative import Knative
from tenantry.model import limits
from tenantry.model.event import Event
from tenantry.model.kinds import CLUSTER_ROLE, CONFIG_MAP, JOB, NAMESPACE, POD, SECRET, Object
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.cloudevents import encode_binary
from tenantry.testing import eventually
from tenantry.testing.audit import AuditLog

EVENTS = 5000 if FULL else 650
LARGE = 900_000
GIVEN_UP_S = 60.0
"""The timeout of a delivery, also of one to the sink."""
PAYLOAD = b"payload-of-the-attacker "
_BODY = (PAYLOAD * (LARGE // len(PAYLOAD) + 1))[:LARGE]

pytestmark = [pytest.mark.timeout(900 if FULL else 120), LEFT_TO_MAKE_WHOLE]


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The function's Triggers, with tries that follow each other a hundred times sooner."""
    folder = tmp_path_factory.mktemp("triggers")
    text = (deployment_folder("triggers") / f"{FUNCTION}.yaml").read_text()
    assert "backoffDelay: PT1S" in text
    (folder / "triggers.yaml").write_text(text.replace("backoffDelay: PT1S", "backoffDelay: PT0.01S"))
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(knative: Callable[..., Awaitable[Knative]], hasty: Path) -> Knative:
    """The function with its sources, broker and sink."""
    running = await knative(C1, functions=[FUNCTION], triggers=hasty, on_log=_heard)
    await running.drain()
    return running


_LOGGED: list[str] = []


def _heard(function: str, line: Mapping[str, str]) -> None:
    _LOGGED.append(f"{function} {json.dumps(dict(line))}")


@pytest_asyncio.fixture(loop_scope="session")
async def wire() -> AsyncIterator[Sender]:
    """Somebody who reaches what takes events."""
    async with Sender(at_once=8) as made:
        yield made


def malformed(system: Knative) -> Iterator[tuple[str, dict[str, str], bytes, bool]]:
    """Without end: address, headers and body of events that nobody can use, and whether they become dead letters."""
    box, function = system.dead_letters.url, system.functions[FUNCTION].url
    for number in itertools.count():
        about = {"kind": "Namespace", "apiversion": "v1", "namespace": "", "name": f"evil-{number}", "watch": FUNCTION}
        subject = f"{number}" + "s" * 3000
        event = Event(str(number), "/wire", "dev.knative.apiserver.resource.update", subject=subject, extensions=about)
        headers, _ = encode_binary(event)
        yield system.broker_url, {**headers, "content-type": "text/plain"}, _BODY, True
        if number % 10 == 0:
            yield system.broker_url, {**headers, "content-type": "application/json"}, _BODY, False  # the broker refuses it
            yield system.broker_url, {"content-type": "application/json"}, _BODY, False
            yield function, {**headers, "content-type": "text/plain"}, _BODY, False
        yield box + FUNCTION, {**headers, "ce-name": f"direct-{number}", "ce-id": f"d-{number}"}, _BODY, True
        yield box + f"nobody-{number}", {"content-type": "text/plain"}, _BODY, True


async def objects(admin: Api) -> dict[str, str]:
    """What there is in the system namespace of the kinds that events could pile up in: name and uid."""
    found = {}
    for kind in (CONFIG_MAP, SECRET, JOB, POD):
        for each in (await admin.list(kind, SYSTEM_NAMESPACE)).items:
            found[f"{kind.kind} {each['metadata']['name']}"] = each["metadata"]["uid"]
    return found


@asynccontextmanager
async def served(system: Knative, people: People) -> AsyncIterator[list[float]]:
    """Meanwhile another project is asked about again and again, by the function's entry; the seconds of each answer."""
    project = f"p-{token()}"
    await people.namespace(f"a1-{project}", project)
    await people.registered(project)
    served = Served()

    async def ask() -> None:
        status, text = await served.time(post(system.functions[FUNCTION].url, *look(NAMESPACE, f"a1-{project}")))
        assert status == 204, text

    async with meanwhile(ask, 0.2):
        yield served.seconds


@pytest.mark.check("a-20", without="bounded-letters")
async def test_malformed_events_fill_nothing(
    system: Knative, wire: Sender, people: People, admin: Api, audit_log: AuditLog, control_plane: ControlPlane
) -> None:
    """Large malformed events to the broker, the function and the sink: one object of bounded size, few writes, and others are
    served meanwhile; people see what came, by key and reason, and nothing of what it held is kept or logged."""
    await empty(admin)
    before, written, began = await objects(admin), writes(audit_log), asyncio.get_running_loop().time()
    assert not system.dead_letters.exists()
    attack = list(itertools.islice(malformed(system), EVENTS))
    async with served(system, people) as took:
        answers = Counter(await asyncio.gather(*(wire.post(url, headers, body) for url, headers, body, _ in attack)))
        project = f"p-{token()}"
        await people.namespace(f"a1-{project}", project)
        await people.registered(project, within=PROJECTS_S)
        await system.drain()
    letters = sum(1 for each in attack if each[3])

    async def all_kept() -> Any:
        book = await kept(admin)
        return book if sum(letter.count for letter in book) + book.dropped >= letters else None

    book = await eventually(all_kept, within=PROJECTS_S, what=f"{letters} letters")
    elapsed = asyncio.get_running_loop().time() - began
    assert sum(letter.count for letter in book) + book.dropped == letters
    assert set(answers) <= {202, 204, 400}, answers
    assert max(took) < SERVED_MEANWHILE_S, sorted(took)[-5:]
    assert len(took) >= 3
    assert (await objects(admin)).keys() - before.keys() == {"ConfigMap tenantry-dead-letters"}
    assert len(book) <= MOST_LETTERS < letters
    live = await stored(admin)
    assert size(live) < MOST_BYTES
    assert writes(audit_log) - written <= elapsed + 3
    assert PAYLOAD.decode() not in json.dumps(live)
    assert not [line for line in _LOGGED if PAYLOAD.decode() in line]

    code, text, errors = await tenantry(control_plane.kubeconfig, "-o", "json")
    assert code == 0, errors
    reasons = {(each["key"][:15], each["reason"]) for each in json.loads(text)["letters"]}
    assert ("Namespace/evil-", "data is not an object") in reasons
    assert ("unreadable", "no CloudEvents attributes in the headers") in reasons


@pytest.mark.check("a-20")
async def test_a_flood_of_the_sink_stays_under_its_limit(
    identity: Callable[..., Awaitable[Path]], tmp_path: Path, admin: Api, audit_log: AuditLog
) -> None:
    """The sink itself, under its own identity, flooded by 300 connections at once: it answers each, has a quarter of its memory
    to spare, and letters that a broker sends meanwhile are stored long before that gives up."""
    kubeconfig = await identity(SINK)
    await empty(admin)
    async with sinks(1, kubeconfig, tmp_path) as ((process, url),), Sender(at_once=300) as wire, Sender() as broker:
        written, began = writes(audit_log), asyncio.get_running_loop().time()

        async def forged(number: int) -> int:
            headers, _ = encode_binary(refused(f"n-{number}" + "x" * 8000, reason="r" * 600, junk="j" * 4000))
            return await wire.post(url + f"f-{number % 50}", headers, _BODY)

        async def honest() -> list[float]:
            took = []
            for number in range(5):
                at = asyncio.get_running_loop().time()
                assert await broker.send(url + FUNCTION, refused(f"honest-{number}")) == 204
                took.append(asyncio.get_running_loop().time() - at)
            return took

        answers, took = await asyncio.gather(asyncio.gather(*(forged(number) for number in range(EVENTS))), honest())
        elapsed = asyncio.get_running_loop().time() - began
        peak = peak_mib(process.pid)
    book = await kept(admin)

    assert set(answers) == {204}
    assert max(took) < GIVEN_UP_S / 4, took
    assert peak < limit_mib(SINK) * SPARE, f"{peak:.0f} MiB"
    assert sum(letter.count for letter in book) + book.dropped == EVENTS + 5
    assert size(await stored(admin)) < MOST_BYTES
    assert writes(audit_log) - written <= elapsed + 3


@asynccontextmanager
async def unable(admin: Api) -> AsyncIterator[None]:
    """The function lacks the right to read namespaces, so that no event about one can be handled."""
    name = f"tenantry-{FUNCTION}"
    role = await admin.get(CLUSTER_ROLE, name)
    assert role is not None
    rules = [
        {**rule, "verbs": [verb for verb in rule["verbs"] if verb != "get"]} if rule["resources"] == ["namespaces"] else rule
        for rule in role["rules"]
    ]
    await admin.json_patch(CLUSTER_ROLE, name, "", [{"op": "replace", "path": "/rules", "value": rules}])
    try:
        yield
    finally:
        await admin.json_patch(CLUSTER_ROLE, name, "", [{"op": "replace", "path": "/rules", "value": role["rules"]}])


def large(name: str, data_bytes: int) -> Event:
    """What a source says of a namespace, with a Secret's worth of data in an annotation."""
    reference = reference_event("v1", "Namespace", "", name)
    metadata: Object = {"name": name, "annotations": {"note": "s3cret " * (data_bytes // 7)}}
    return Event(
        f"large-{name}", "https://10.0.0.1:443", "dev.knative.apiserver.resource.update",
        datacontenttype="application/json", extensions={**reference.extensions, "watch": FUNCTION},
        data={"apiVersion": "v1", "kind": "Namespace", "metadata": metadata},
    )  # fmt: skip


@pytest.mark.check("a-21", without="letters-without-data")
@pytest.mark.parametrize("megabytes", [1.1, 3.9])
async def test_a_large_event_that_fails_is_accounted(
    system: Knative, wire: Sender, people: People, admin: Api, control_plane: ControlPlane, megabytes: float
) -> None:
    """An event larger than any object of the API server that no try delivers: its key and the function's reason are kept, its
    data are not, and its replay does the work."""
    await empty(admin)
    project = f"p-{token()}"
    name = f"a1-{project}"
    headers, body = encode_binary(large(name, int(megabytes * 2**20)))
    async with unable(admin):

        async def forbidden() -> bool:
            status, _ = await post(system.functions[FUNCTION].url, *look(NAMESPACE, name))
            return status == 503

        await eventually(forbidden, within=PROJECTS_S)
        await people.namespace(name, project)
        assert await wire.post(system.broker_url, headers, body) == 202
        await system.drain()
        (letter,) = [each for each in await kept(admin) if name in each.key]
        assert (letter.function, letter.key, letter.status) == (FUNCTION, f"Namespace/{name}", 503)
        assert letter.reason == "the right to get namespaces is missing"
        assert letter.event == f"large-{name}" or letter.count > 1
        assert "s3cret" not in json.dumps(await stored(admin))
        assert size(await stored(admin)) < 2000

    async def allowed() -> bool:
        status, _ = await post(system.functions[FUNCTION].url, *look(NAMESPACE, f"somebody-elses-{token()}"))
        return status == 204

    await eventually(allowed, within=PROJECTS_S)
    await system.drain()
    assert await admin.get(NAMESPACE, f"cattle-project-{project}") is None, "nobody has done it meanwhile"
    code, output, errors = await tenantry(control_plane.kubeconfig, "replay", f"Namespace/{name}")
    assert code == 0, errors + output
    await people.registered(project)
    await system.drain()
    assert [each for each in await kept(admin) if name in each.key] == []


@pytest.mark.check("a-21")
async def test_what_the_broker_cannot_take_its_sender_is_told(system: Knative, wire: Sender, admin: Api) -> None:
    """An event above the broker's own limit is refused at its door with 413: its sender has it, and nothing is kept here."""
    await empty(admin)
    headers, _ = encode_binary(refused("too-large"))

    assert await wire.post(system.broker_url, {**headers, "content-type": "text/plain"}, b"x" * (limits.EVENT_BYTES + 1)) == 413
    assert system.broker.counters.in_flight == 0
    assert list(await kept(admin)) == []
