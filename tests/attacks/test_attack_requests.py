"""Forged requests for owners, to every function: they cost a look, and write nothing that a sweep would not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from forgery import Wire, requested
from people import CHART_CONFIG_MAP, People, registration, token
from releases import CONFIG, PROVISIONING, REGISTRATION, SYSTEM, Owners
from rights import AGGREGATION
from scoping import SCOPES
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP
from tenantry.serving.installed import descriptor_of
from tenantry.testing.proxy import FaultProxy
from tenantry.testing.recording import Exchange

pytestmark = LEFT_TO_MAKE_WHOLE

LOCKS = "lock-enforcement"
ALL = (REGISTRATION, PROVISIONING, AGGREGATION, SCOPES, LOCKS)
LOOK = 25
"""How many requests one look at one owner may cost; a sweep of these functions costs more."""

UNITS = {
    REGISTRATION: {"projects": ["project/{project}", "namespace/a1-{project}", "namespace/{home}", "project/p-denied"]},
    PROVISIONING: {
        "projects": ["release/{release}", "unserved/{home}/demo"],
        "jobs": ["chart/{system}/{release}", "chart/kube-system/{release}"],
    },
    AGGREGATION: {"projects": ["release/{home}/{release}", "release/{release}/{release}", "release/kube-system/{release}"]},
    SCOPES: {
        "scopes": ["ScopeTemplate.operators.coreos.com/{release}", "ScopeInNamespace.operators.coreos.com/{home}/{release}"],
        "namespace-scopes": ["namespace/{home}", "namespace/kube-system"],
        "olm": ["csv/{home}/x", "csv/kube-system/x"],
    },
    LOCKS: {"releases": ["release/{release}", "release/nothing"], "sources": ["sources/locked"]},
}
"""The owners of each unit, and others in their form."""
STRANGE = ("../x", "", "*", "/", "x", "..", ".", "a/b/c/d", "%2e%2e%2f", "X" * 5000, "x?limit=1", "a#b", "ä", "a b")
"""What no object can be named, and what would lead elsewhere in a path."""


def owners_of(form: str) -> list[str]:
    """A form of an owner as it is, with names of nothing, and with strange ones in each of its places."""
    type_, _, rest = form.partition("/")
    places = rest.split("/")
    found = [form, *(f"{type_}/{'/'.join('nothing' for _ in places)}",)]
    for strange in STRANGE:
        found += ["/".join([type_, *places[:at], strange, *places[at + 1 :]]) for at in range(len(places))]
    return [*found, *STRANGE]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(proxy: FaultProxy, flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """All functions behind a proxy; no source tells them anything, so that only the requests do."""
    running = await flawlessly(CONFIG, functions=ALL, through=proxy, watch=False)
    await running.drain()
    return running


@pytest.fixture
def owners(admin: Api) -> Owners:
    return Owners(admin)


@pytest_asyncio.fixture(loop_scope="session")
async def places(system: Knative, owners: Owners) -> dict[str, str]:
    """A project with a release as sweeps leave it, by the names that forms of owners have."""
    project = f"p-{token()}"
    home = registration(project)
    await owners.namespace(f"a1-{project}", project)
    await system.sweep(REGISTRATION)
    await owners.ask(f"demo-{project}", project)
    release = f"demo-{project}-dummy"
    for _ in range(2):
        for function in ALL:
            await system.sweep(function)
    await owners.provisioned(release)
    return {"project": project, "home": home, "release": release, "system": SYSTEM}


async def forge(system: Knative, proxy: FaultProxy, function: str, unit: str, owner: str) -> list[Exchange]:
    """Send one forged request; what the function asked the API server for it."""
    mark = proxy.recording.mark()
    async with Wire() as wire:
        for service in (each.name for each in descriptor_of(function).services):
            status = await wire.send(system.functions[service].url, *requested(function, unit, owner))
            assert status in (204, 400), f"{service} answers {status} to {unit} {owner[:100]}"
    return [each for each in proxy.recording.between(mark) if each.function == f"tenantry-{function}"]


def leads_elsewhere(path: str) -> bool:
    """Whether a path has a part that the API server reads as another path, or as a query."""
    return bool({".", ".."} & set(path.split("/"))) or "?" in path or "%2f" in path.lower()


@pytest.mark.check("a-23")
@pytest.mark.parametrize(
    "function",
    [*(pytest.param(each, marks=pytest.mark.check("a-23", without="owners-by-name")) for each in ALL if each != LOCKS), LOCKS],
)
async def test_forged_requests_cost_a_look(system: Knative, proxy: FaultProxy, places: dict[str, str], function: str) -> None:
    """Owners that there are, that there are not, that lead elsewhere: a bounded number of reads, of no other path, no write."""
    for unit, forms in {**UNITS[function], "nothing": ["x/y"], "../x": ["x/y"]}.items():
        for form in forms:
            for owner in owners_of(form.format(**places)):
                asked = await forge(system, proxy, function, unit, owner)
                what = f"{unit} {owner[:100]}: {[(each.verb, each.path) for each in asked][:40]}"
                assert len(asked) <= LOOK, what
                assert not [each for each in asked if each.is_write and each.changed], what
                assert not [each.path for each in asked if leads_elsewhere(each.path)], what
        assert any([await forge(system, proxy, function, unit, form.format(**places)) for form in forms]) == (
            unit in UNITS[function]
        )
    mark = proxy.recording.mark()
    await system.sweep(function)
    assert not proxy.recording.writes(mark, effective=True)


@pytest.mark.check("a-23")
async def test_a_forged_request_does_what_a_sweep_does(
    system: Knative, proxy: FaultProxy, people: People, places: dict[str, str]
) -> None:
    """Drift that no event told is put back for the owner that is named, and nothing else is written, as a sweep would."""
    home, project = places["home"], places["project"]
    before = await people.get(CONFIG_MAP, CHART_CONFIG_MAP, home)
    written = []
    for tell in ("forged", "swept"):
        await people.edit(CONFIG_MAP, CHART_CONFIG_MAP, home, ("replace", "/data/values.yaml", "x: evil"))
        mark = proxy.recording.mark()
        if tell == "forged":
            await forge(system, proxy, REGISTRATION, "projects", f"project/{project}")
        else:
            await system.sweep(REGISTRATION)
        assert (await people.get(CONFIG_MAP, CHART_CONFIG_MAP, home))["data"] == before["data"]
        found = [each for each in proxy.recording.writes(mark, effective=True) if each.resource != "events"]
        written.append([(each.verb, each.resource, each.namespace, each.name) for each in found])

    assert written[0] == written[1] == [("apply", "configmaps", home, CHART_CONFIG_MAP)]
