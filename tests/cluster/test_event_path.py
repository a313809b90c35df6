"""The way of an event: from source to function, and that neither its form, its order nor its loss matters (hpo-85, hpo-86)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from line import ORDERS, Line, concerns
from one_function import ready, serving
from people import (
    C1,
    CHART_CONFIG_MAP,
    FUNCTION,
    LABEL,
    OPERATED,
    ORPHANED,
    POLICY,
    PROJECT_ID,
    People,
    Start,
    condition_of,
    marks,
    marks_of,
    post,
    registration,
    token,
)
from times import LEFT_TO_MAKE_WHOLE, until

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.event import Event
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT, Object, labels_of
from tenantry.serving.cloudevents import encode_structured
from tenantry.testing.settling import normalised, settle, snapshot

INSIDE = (CONFIG_MAP, SERVICE_ACCOUNT, NETWORK_POLICY)
OURS = {OPERATED: "true"}


async def test_from_source_to_function(running: Start, people: People, admin: Api) -> None:
    """Every change that the source sees reaches the function through the broker, and every event is accounted for."""
    project = f"p-{token()}"
    delivered: list[Event] = []
    async with running(C1) as knative:
        knative.on_delivery.append(lambda _, event, status, *__: delivered.append(event) if status == 204 else None)
        await people.project(name=project)
        await settle(knative, admin)
        counters = knative.broker.counters

    kinds = {
        (event.type.rpartition("apiserver.")[2], event.extensions["kind"]) for event in delivered if concerns(event, project)
    }
    assert kinds >= {
        ("resource.add", "Namespace"),
        ("resource.update", "Namespace"),
        ("ref.add", "ConfigMap"),
        ("ref.add", "ServiceAccount"),
        ("ref.add", "NetworkPolicy"),
    }
    assert counters.accepted - counters.unmatched == counters.delivered
    assert (counters.in_flight, counters.dead_lettered, counters.lost) == (0, 0, 0)


async def test_objects_from_before_are_announced(running: Start, people: People, admin: Api) -> None:
    """What was declared before the system started is served after its start, without anybody touching it."""
    project = f"p-{token()}"
    await people.namespace(f"a1-{project}", project)
    async with running(C1) as knative:
        await people.registered(project)
        await settle(knative, admin)

    assert labels_of(await people.get(NAMESPACE, f"a1-{project}"))[PROJECT_ID] == project


@LEFT_TO_MAKE_WHOLE
async def test_a_function_that_is_away_for_long(
    running: Start, people: People, identity: Callable[..., Awaitable[Path]], tmp_path: Path
) -> None:
    """An event whose first four tries, seven seconds of them, find the function's port closed is delivered when it is back."""
    project, tries = f"p-{token()}", dict[str, list[tuple[int, int]]]()
    kubeconfig = await identity(FUNCTION)
    async with running(C1) as knative:

        def seen(_: str, event: Event, status: int, attempt: int, __: float) -> None:
            if concerns(event, project):
                tries.setdefault(event.id, []).append((attempt, status))

        knative.on_delivery.append(seen)
        function = knative.functions[FUNCTION]
        await knative.drain()
        await function.stop()
        function.close()
        await people.namespace(f"a1-{project}", project)
        await until(lambda: any((4, 0) in found for found in tries.values()), within=20, what="four tries without an answer")
        async with serving(kubeconfig, C1, tmp_path, port=function.port) as (process, url):
            await ready(process, url)
            await people.registered(project)
            await knative.drain()
        counters = knative.broker.counters

    assert [(1, 0), (2, 0), (3, 0), (4, 0), (5, 204)] in tries.values()
    assert (counters.dead_lettered, counters.lost) == (0, 0)


# -- the forms of an event -----------------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def line(knative: Callable[..., Awaitable[Knative]], admin: Api) -> AsyncIterator[Line]:
    """The system without sources of its own, and the line that feeds it."""
    system = await knative(C1, watch=False, functions=[FUNCTION])
    async with Line(system, admin) as running:
        await running.settle()
        yield running
    assert not system.dead_letters.exists(), system.dead_letters.read_text()


def _headers(event: Event, namespace: str | None) -> dict[str, str]:
    """The headers of an API server source in binary mode; the namespace of cluster-scoped objects may be empty or absent."""
    attributes = {
        "ce-specversion": "1.0",
        "ce-id": event.id,
        "ce-source": event.source,
        "ce-type": event.type,
        "ce-subject": event.subject or "",
        "ce-time": "2026-06-01T10:20:30.123456789Z",
        "ce-kind": event.extensions["kind"],
        "ce-apiversion": event.extensions["apiversion"],
        "ce-name": event.extensions["name"],
        "Content-Type": "application/json",
        "Kn-Namespace": "tenantry-system",
    }
    return attributes if namespace is None else {**attributes, "ce-namespace": namespace}


def _event(mode: str, verb: str, obj: Object) -> tuple[Event, Object]:
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    reference = {"kind": obj["kind"], "name": metadata["name"], "apiVersion": obj["apiVersion"]}
    if namespace:
        reference["namespace"] = namespace
    plural = obj["kind"].lower() + "s"
    event = Event(
        id=token(),
        source="https://10.96.0.1:443",
        type=f"dev.knative.apiserver.{mode}.{verb}",
        subject=f"/apis/{obj['apiVersion']}/namespaces/{namespace}/{plural}/{metadata['name']}",
        datacontenttype="application/json",
        extensions={
            "kind": obj["kind"],
            "apiversion": obj["apiVersion"],
            "name": metadata["name"],
            "namespace": namespace,
        },
    )
    return event, obj if mode == "resource" else reference


async def _post(line: Line, headers: dict[str, str], body: bytes) -> tuple[int, str]:
    return await post(line.knative.functions[FUNCTION].url, headers, body)


@pytest.fixture
def run(line: Line) -> str:
    """The text in all names of a test of whose objects no source speaks."""
    made = token()
    line.lose(lambda event: concerns(event, made))
    return made


@pytest.mark.parametrize("namespace", ["", None], ids=["empty namespace header", "no namespace header"])
@pytest.mark.parametrize("verb", ["add", "update", "delete"])
@pytest.mark.parametrize("mode", ["resource", "ref"])
async def test_event_as_the_source_sends_it(
    line: Line, run: str, people: People, mode: str, verb: str, namespace: str | None
) -> None:
    """Whatever mode and verb an event has, it means "look here", and 204 means that everything is done."""
    project = f"p-{run}"
    event, body = _event(mode, verb, await people.namespace(f"a1-{run}", project))

    assert await _post(line, _headers(event, namespace), json.dumps(body).encode()) == (204, "")
    assert marks_of(project) == marks(await people.get(NAMESPACE, registration(project)))
    assert labels_of(await people.get(NAMESPACE, f"a1-{run}"))[PROJECT_ID] == project
    await people.get(CONFIG_MAP, CHART_CONFIG_MAP, registration(project))
    await people.get(NETWORK_POLICY, POLICY, registration(project))


@pytest.mark.parametrize("body", ["attributes only", "structured"])
async def test_event_in_other_forms(line: Line, run: str, people: People, body: str) -> None:
    """Names may stand in the attributes alone, and the event may come as one JSON document."""
    project = f"p-{run}"
    event, reference = _event("ref", "update", await people.namespace(f"a1-{run}", project))
    if body == "structured":
        headers, encoded = encode_structured(replace(event, data=reference))
        assert await _post(line, headers, encoded) == (204, "")
    else:
        headers = {name: value for name, value in _headers(event, "").items() if name != "Content-Type"}
        assert await _post(line, headers, b"") == (204, "")
    assert marks_of(project) == marks(await people.get(NAMESPACE, registration(project)))


@pytest.mark.parametrize("kind", INSIDE, ids=lambda kind: kind.kind)
async def test_deletion_of_what_is_inside(line: Line, run: str, people: People, kind: Any) -> None:
    """The deletion of an object of ours is answered with 204 when the object is there again."""
    project = f"p-{run}"
    event, body = _event("ref", "add", await people.namespace(f"a1-{run}", project))
    await _post(line, _headers(event, ""), json.dumps(body).encode())
    name = {CONFIG_MAP: CHART_CONFIG_MAP, SERVICE_ACCOUNT: "default", NETWORK_POLICY: POLICY}[kind]
    before = await people.get(kind, name, registration(project))
    await people.delete(kind, name, registration(project))
    event, body = _event("ref", "delete", before)

    assert await _post(line, _headers(event, registration(project)), json.dumps(body).encode()) == (204, "")
    after = await people.get(kind, name, registration(project))
    assert labels_of(before) == labels_of(after)
    assert after.get("data") == before.get("data")


async def test_forged_payload_decides_nothing(line: Line, run: str, people: People, admin: Api) -> None:
    """Labels in a payload that the object does not have register nothing, and "delete" deletes nothing."""
    made = await people.namespace(f"a1-{run}")
    forged = {**made, "metadata": {**made["metadata"], "labels": {LABEL: f"p-{run}", PROJECT_ID: f"q-{run}"}}}
    for verb in ("add", "delete"):
        event, body = _event("resource", verb, forged)
        assert await _post(line, _headers(event, ""), json.dumps(body).encode()) == (204, "")

    assert await admin.get(NAMESPACE, registration(f"p-{run}")) is None
    assert await admin.get(NAMESPACE, registration(f"q-{run}")) is None
    assert made["metadata"]["resourceVersion"] == (await people.get(NAMESPACE, f"a1-{run}"))["metadata"]["resourceVersion"]


# -- order, repetition and loss --------------------------------------------------------------------------------


async def _before(people: People, run: str) -> None:
    """Seven projects, all served, one of which has a foreign namespace in its place; and a namespace with a bad id."""
    for member, project in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c"), ("d1", "d"), ("g1", "g")):
        await people.namespace(f"{member}-{run}", f"p-{run}-{project}")
    await people.namespace(registration(f"p-{run}-e"))
    await people.namespace(f"e1-{run}", f"p-{run}-e")
    await people.namespace(f"bad-{run}", "Foo_Bar")


async def _acts(people: People, run: str) -> None:
    """Namespaces move, leave, join and go; marks and contents of registration namespaces are damaged."""

    def inside(project: str) -> str:
        return registration(f"p-{run}-{project}")

    await people.label(f"a2-{run}", {LABEL: f"p-{run}-b"})
    await people.label(f"a1-{run}", {LABEL: None})
    await people.label(inside("b"), {OPERATED: None, ORPHANED: "true", "team": "x"})
    await people.label(f"a1-{run}", {LABEL: f"p-{run}-c"})
    await people.delete(NAMESPACE, f"c1-{run}")
    await people.label(f"b1-{run}", {LABEL: "p-denied"})
    await people.namespace(f"a3-{run}", f"p-{run}-a")
    await people.label(inside("b"), {LABEL: "c-test:p-other"}, "annotations")
    await people.delete(CONFIG_MAP, CHART_CONFIG_MAP, inside("c"))
    await people.edit(CONFIG_MAP, CHART_CONFIG_MAP, inside("b"), ("add", "/immutable", True))
    await people.edit(SERVICE_ACCOUNT, "default", inside("d"), ("replace", "/automountServiceAccountToken", True))
    await people.delete(NETWORK_POLICY, POLICY, inside("d"))
    await people.label(f"bad-{run}", {LABEL: f"p-{run}-d"})
    await people.label(f"d1-{run}", {LABEL: None})
    await people.label(f"g1-{run}", {LABEL: None})
    await people.label(inside("g"), {LABEL: None, PROJECT_ID: None})
    await people.label(inside("e"), {"tenantry.dev/adopt": "true"}, "annotations")


async def _end(admin: Api, run: str) -> dict[str, Any]:
    return {
        **await normalised(admin, [NAMESPACE], containing=run),
        **await normalised(admin, INSIDE, containing=run, labels=OURS),
    }


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reference(line: Line, people: People, admin: Api) -> dict[str, Any]:
    """Where the workload ends when every event is delivered at once and in order."""
    run = token()
    line.lose()
    await _before(people, run)
    await line.settle()
    await _acts(people, run)
    await line.settle()
    return await _end(admin, run)


def test_reference_end_is_as_declared(reference: dict[str, Any]) -> None:
    """The end that the others are compared with is the right one."""

    def projects(orphaned: bool) -> set[str]:
        names = (found["metadata"] for key, found in reference.items() if key.startswith("Namespace cattle-project-"))
        return {each["name"][-1] for each in names if (ORPHANED in each["labels"]) == orphaned}

    members = {
        each["metadata"]["name"][:2]: each["metadata"]["labels"].get(PROJECT_ID)
        for key, each in reference.items()
        if not key.startswith("Namespace cattle-project-") and each["kind"] == "Namespace"
    }
    expected = {"a1": "c", "a2": "b", "a3": "a", "b1": None, "d1": None, "ba": "d", "e1": "e", "g1": None}
    assert {name: f"p-RUN-{project}" if project else None for name, project in expected.items()} == members
    assert (set("abcde"), {"g"}) == (projects(orphaned=False), projects(orphaned=True))
    assert len([key for key in reference if key.startswith("ConfigMap")]) == 6
    assert [each for each in reference.values() if each["conditions"]] == []


@pytest.mark.check("hpo-85")
@pytest.mark.parametrize(
    ("order", "together"),
    [*((order, True) for order in ORDERS), ("reversed", False), ("shuffled 1", False)],
    ids=lambda value: {True: "at once", False: "one by one"}.get(value, value),
)
async def test_order_and_repetition_do_not_matter(
    line: Line, people: People, admin: Api, reference: dict[str, Any], order: str, together: bool
) -> None:
    """The events of many changes, held back and delivered in another order or twice, lead to the same objects."""
    run = token()
    line.lose()
    await _before(people, run)
    await line.settle()
    line.hold(run)
    await _acts(people, run)
    await line.release_as(order, together=together)
    assert reference == await _end(admin, run)


@pytest.mark.check("hpo-86")
@pytest.mark.parametrize(("share", "seed"), [(0.1, 1), (0.1, 2), (0.1, 3), (0.5, 4), (1.0, 5)])
async def test_lost_events_are_made_up_by_one_sweep(
    line: Line, people: People, admin: Api, reference: dict[str, Any], share: float, seed: int
) -> None:
    """With a tenth, a half or all of the events lost, one sweep brings the same end."""
    run = token()
    line.lose()
    await _before(people, run)
    await line.settle()
    with line.losing(run, share, seed):
        await _acts(people, run)
        await line.settle()
    await line.knative.sweep(FUNCTION)

    assert reference == await _end(admin, run)
    line.lose()


async def test_everything_again_writes_nothing(line: Line, people: People, admin: Api) -> None:
    """After convergence two sweeps and every event again, forwards and backwards, write nothing at all."""
    run = token()
    line.lose()
    await _before(people, run)
    await line.settle()
    await _acts(people, run)
    await line.settle()
    before = await snapshot(admin, [NAMESPACE, *INSIDE])

    await line.knative.sweep(FUNCTION)
    await line.at_once(line.of(run))
    await line.at_once(reversed(line.of(run)))
    await line.knative.sweep(FUNCTION)

    assert len(line.of(run)) > 30
    after = await snapshot(admin, [NAMESPACE, *INSIDE])
    # Other tests' namespaces may go away meanwhile; what is there is as it was.
    assert {uid: before[uid] for uid in after} == after


async def test_condition_survives_no_longer_than_its_reason(line: Line, people: People) -> None:
    """Told late is told rightly: events that arrive after the problem is solved leave no complaint behind."""
    run = token()
    name = f"x1-{run}"
    line.hold(run)
    await people.namespace(registration(f"p-{run}"))
    await people.namespace(name, f"p-{run}")
    await people.label(name, {LABEL: None})

    await line.release(line.one_by_one)
    assert condition_of(await people.get(NAMESPACE, name)) is None
