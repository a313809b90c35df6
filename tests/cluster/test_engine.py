"""The engine against a real API server: who shares a run or a sweep, and who waits for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
import pytest_asyncio
from people import LABEL, changed, registration, swept, tell, token
from releases import CONFIG, PROVISIONING, REGISTRATION, SYSTEM, Owners
from times import PROJECTS_S, until

from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, HELM_CHART, HELM_RELEASE, JOB, NAMESPACE, PROJECT_HELM_CHART, labels_of
from tenantry.model.names import ORPHANED, PROJECT_ID
from tenantry.testing import faults
from tenantry.testing.proxy import FaultProxy

CHART = "dummy.cattle.io.v1alpha1"
MANY_KEYS = 35_000
MakeGate = Callable[[faults.Predicate], faults.Gate]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(proxy: FaultProxy, flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """Two functions that hear only what a test sends them."""
    config = changed(CONFIG, operator={"helmController": {"enabled": True}})
    return await flawlessly(config, functions=(REGISTRATION, PROVISIONING), watch=False, through=proxy)


@pytest.fixture
def gate(proxy: FaultProxy) -> Iterator[MakeGate]:
    """``gate(which)`` holds requests; all go on when the test ends."""

    def make(which: faults.Predicate) -> faults.Gate:
        made = faults.Gate(where=which)
        proxy.faults.append(made)
        return made

    yield make
    for each in proxy.faults:
        each.disarm()
    proxy.faults.clear()


async def project_of(system: Knative, owners: Owners) -> str:
    """A project with one namespace that namespace-registration has served."""
    project = f"p-{token()}"
    await owners.namespace(f"a1-{project}", project)
    await tell(system, REGISTRATION, NAMESPACE, f"a1-{project}")
    await owners.registered(project)
    return project


async def release_of(system: Knative, owners: Owners) -> tuple[str, str, str]:
    """A project with a release: project, ProjectHelmChart and release."""
    project = await project_of(system, owners)
    name = f"demo-{project}"
    await owners.ask(name, project)
    await tell(system, PROVISIONING, PROJECT_HELM_CHART, name, registration(project))
    await owners.provisioned(f"{name}-dummy")
    return project, name, f"{name}-dummy"


def all_namespaces(request: faults.Request) -> bool:
    """The list that only a sweep of namespace-registration asks for."""
    return request.verb == "list" and request.resource == "namespaces" and "labelSelector" not in request.query


async def test_who_asks_for_a_sweep_during_one_shares_the_next(system: Knative, owners: Owners, gate: MakeGate) -> None:
    """Of four sweeps that are asked for at once, one is under way and one waits for it, for all the others."""
    project = await project_of(system, owners)
    lists = gate(all_namespaces)
    asked = [asyncio.create_task(swept(system, REGISTRATION))]
    first = await lists.next()
    asked += [asyncio.create_task(swept(system, REGISTRATION)) for _ in range(3)]
    await tell(system, REGISTRATION, CONFIG_MAP, CHART, registration(project))  # what was sent before has arrived by then
    assert lists.held == [first]

    first.release()
    second = await lists.next()
    assert lists.held == [second]
    second.release()
    assert {status for status, _ in await asyncio.gather(*asked)} == {204}
    assert lists.acted == 2


async def test_a_sweep_that_joins_an_event_looks_at_everything(system: Knative, owners: Owners, gate: MakeGate) -> None:
    """An event about one ConfigMap waits for its turn when a sweep comes: the run that both share sees what no event told, that
    the last namespace has left the project."""
    project = await project_of(system, owners)
    home = registration(project)
    runs = gate(faults.on("configmaps", CHART, namespace=home, verb="get"))
    told = [asyncio.create_task(tell(system, REGISTRATION, CONFIG_MAP, CHART, home))]
    await runs.next()
    told.append(asyncio.create_task(tell(system, REGISTRATION, CONFIG_MAP, CHART, home)))
    await owners.label(f"a1-{project}", {LABEL: None})
    lists = gate(all_namespaces)
    sweep = asyncio.create_task(swept(system, REGISTRATION))
    (await lists.next()).release()
    # The sweep has its list before this is answered, and wants the project then.
    other = await project_of(system, owners)
    await tell(system, REGISTRATION, CONFIG_MAP, CHART, registration(other))
    assert ORPHANED not in labels_of(await owners.get(NAMESPACE, home))

    runs.disarm()
    await asyncio.gather(*told)
    assert labels_of(await owners.get(NAMESPACE, home)).get(ORPHANED) == "true"  # before the sweep looks a second time
    lists.disarm()
    assert (await sweep)[0] == 204


async def test_an_event_that_a_sweep_joins_is_looked_at_as_carefully_as_alone(
    system: Knative, owners: Owners, gate: MakeGate
) -> None:
    """The run that both share looks again after its write: who left the project meanwhile is seen before the event is answered,
    not only when the sweep looks a second time."""
    project, other = await project_of(system, owners), await project_of(system, owners)
    home = registration(project)
    looks = gate(faults.on("configmaps", CHART, namespace=home, verb="get"))
    first = asyncio.create_task(tell(system, REGISTRATION, CONFIG_MAP, CHART, home))
    held = await looks.next()
    second = asyncio.create_task(tell(system, REGISTRATION, CONFIG_MAP, CHART, home))
    lists = gate(all_namespaces)
    sweep = asyncio.create_task(swept(system, REGISTRATION))
    (await lists.next()).release()
    # What is held may take ten seconds; when these are answered the sweep waits for the same run as the second event.
    for _ in range(3):
        await tell(system, REGISTRATION, CONFIG_MAP, CHART, registration(other))
    held.release()
    await first

    held = await looks.next()
    await owners.delete(CONFIG_MAP, CHART, home)
    made = gate(lambda request: request.is_write and (request.resource, request.namespace) == ("configmaps", home))
    held.release()
    write = await made.next()
    await owners.label(f"a1-{project}", {LABEL: None})
    looks.disarm()
    made.disarm()
    await write.answered.wait()
    await second
    assert labels_of(await owners.get(NAMESPACE, home)).get(ORPHANED) == "true"
    lists.disarm()
    assert (await sweep)[0] == 204


async def test_a_list_that_fails_ends_no_other_unit_of_a_sweep(
    system: Knative, owners: Owners, proxy: FaultProxy, gate: MakeGate
) -> None:
    """What one unit cannot read is tried again with the next sweep; when that is told the other one has put drift right."""
    project, _, release = await release_of(system, owners)
    await owners.edit(HELM_RELEASE, release, SYSTEM, ("replace", "/spec/release/name", "evil"))
    proxy.faults.append(away := faults.Unavailable503(where=faults.on("helmchartconfigs", verb="list"), times=0))
    lists = gate(faults.on("projecthelmcharts", verb="list"))
    sweep = asyncio.create_task(swept(system, PROVISIONING))
    await lists.next()
    await until(lambda: away.acted > 0, within=PROJECTS_S)
    await tell(system, REGISTRATION, CONFIG_MAP, CHART, registration(project))
    assert not sweep.done()

    lists.disarm()
    status, _ = await sweep
    assert status == 503
    assert (await owners.get(HELM_RELEASE, release, SYSTEM))["spec"]["release"]["name"] == release
    away.disarm()
    assert (await swept(system, PROVISIONING))[0] == 204


async def test_units_of_a_function_wait_for_none_of_each_other(system: Knative, owners: Owners, gate: MakeGate) -> None:
    """An event about a HelmChart concerns two units: the Job that runs Helm is there while the other one still reads."""
    _, _, release = await release_of(system, owners)
    reads = gate(faults.on("helmreleases", release, verb="get"))
    told = asyncio.create_task(tell(system, PROVISIONING, HELM_CHART, release, SYSTEM))
    await reads.next()
    await owners.until(JOB, f"helm-install-{release}", SYSTEM, bool)
    assert not told.done()
    reads.disarm()
    await told


async def test_an_event_that_tells_nothing_new_costs_one_read(system: Knative, owners: Owners, proxy: FaultProxy) -> None:
    """What the last run for the release has read, and not written, is as it was: one look at it, and no run."""
    project, _, release = await release_of(system, owners)
    await tell(system, PROVISIONING, HELM_RELEASE, release, SYSTEM)  # the first echo of what was written has a run
    for kind, name, namespace in (
        (HELM_RELEASE, release, SYSTEM),
        (PROJECT_HELM_CHART, f"demo-{project}", registration(project)),
    ):
        begin = proxy.recording.mark()
        await tell(system, PROVISIONING, kind, name, namespace)
        asked = proxy.recording.between(begin, function=f"tenantry-{PROVISIONING}")
        assert [(each.verb, each.name) for each in asked] == [("get", name)]


async def test_an_echo_hides_nobody_elses_write(system: Knative, owners: Owners, gate: MakeGate) -> None:
    """A namespace moves to another project while its label for the first one is written: the object has the version of our
    write, and the event of either leads to the second project all the same."""
    first, second = await project_of(system, owners), await project_of(system, owners)
    name = f"a2-{first}"
    await owners.namespace(name, first)
    labels = gate(faults.on("namespaces", name, verb="apply"))
    told = asyncio.create_task(tell(system, REGISTRATION, NAMESPACE, name))
    held = await labels.next()
    await owners.label(name, {LABEL: second})
    held.release()
    labels.disarm()
    await told

    await tell(system, REGISTRATION, NAMESPACE, name)
    assert labels_of(await owners.get(NAMESPACE, name)).get(PROJECT_ID) == second


async def test_very_many_dashboards_keep_nobody_waiting(system: Knative, owners: Owners) -> None:
    """While the dashboard values of one project are made of 35,000 keys, events about another one are answered."""
    project, name, release = await release_of(system, owners)
    neighbour, other, _ = await release_of(system, owners)
    keys = {f"{number:05}.json": f'{{"k{number}":1}}' for number in range(MANY_KEYS)}
    await owners.dashboard("many", release, release, **keys)
    merging = asyncio.create_task(tell(system, PROVISIONING, CONFIG_MAP, "many", release))
    answered = 0
    while not merging.done():
        async with asyncio.timeout(PROJECTS_S):
            await tell(system, PROVISIONING, PROJECT_HELM_CHART, other, registration(neighbour))
        answered += 1
    await merging

    assert answered
    told = await owners.told(name, project, "Deployed")
    assert len(told["status"]["dashboardValues"]) == 1000
    assert "the keys after the first 1,000" in told["status"]["statusMessage"]
