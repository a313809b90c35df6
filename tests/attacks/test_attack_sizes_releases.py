"""Objects of every size and number that a tenant may make beside a release: told where they are too large; others are served.

With TENANTRY_FULL_SIZE as many are made as the checks say, else a sample.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from attackers import Attackers
from forgery import forget_peak
from people import changed, registration, token
from releases import CONFIG, DASHBOARD, PROVISIONING, REGISTRATION, Owners, conditions_of, values_of
from rights import AGGREGATE_FROM, AGGREGATION, ROLE_OF, ROLES_BOUND, cluster_role, user
from times import FULL, LEFT_TO_MAKE_WHOLE, PROJECTS_S, SIDE_BY_SIDE
from victims import SPARE, Victim, as_written, asked, at_full_size, create_all, delete_all, somebody

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, PROJECT_HELM_CHART, ROLE, ROLE_BINDING, Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj
from tenantry.testing.settling import settle

MANY = 5000 if FULL else 800
LARGE = 1000
SINGLE = "single.example.com/v1"
MB = 1_000_000
SLOW_S = (90.0 if FULL else 30.0) * SIDE_BY_SIDE
"""Seconds until thousands of objects are told something each."""

pytestmark = [pytest.mark.timeout(600 if FULL else 180), LEFT_TO_MAKE_WHOLE]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(knative: Callable[..., Awaitable[Knative]]) -> Knative:
    """Projects, their releases and rights; one chart is there once for each project."""
    charts = [
        *CONFIG["helmProjectOperator"]["charts"],
        {"helmApiVersion": SINGLE, "releaseName": "single", "singleton": True},
    ]
    return await knative(changed(CONFIG, operator={"charts": charts}), functions=(REGISTRATION, PROVISIONING, AGGREGATION))


@pytest.fixture
def owners(admin: Api, system: Knative) -> Owners:
    return Owners(admin, PROJECTS_S * SIDE_BY_SIDE)


@pytest_asyncio.fixture(loop_scope="session")
async def victim(system: Knative, owners: Owners) -> Victim:
    """Another project; what the test before has left is done."""
    await settle(system, owners.admin)
    for function in system.functions.values():
        forget_peak(function.pid)
    return Victim(owners, system, await owners.project(), spare=SPARE)


def wide(size: int) -> str:
    return '{"x":[' + ",".join(["[]"] * (size // 3)) + "]}"


LARGE_VALUES: dict[str, tuple[str, str]] = {
    "text": (json.dumps({"x": "a b " * (MB // 4)}), "262,144 bytes"),
    "keys": ("{" + ",".join(f'"k{number}":0' for number in range(100_000)) + "}", "values"),
    "deep": ('{"a":' * 5000 + "0" + "}" * 5000, "100 levels"),
    "wide": (wide(MB), "10,000 values"),
    "many": (wide(60_000), "10,000 values"),
}
"""Values that are too large, and the limit that their author is told."""
QUICK = ("text", "keys", "deep")
"""The three that the check names; the others cost an API server many seconds."""
LARGEST = {f"key-{number}": f"{number:010}" for number in range(8000)}
"""Values as large as they may be."""


def spec_with(values: str) -> bytes:
    """A merge patch that sets the values, as they are written."""
    return b'{"spec":{"values":' + values.encode() + b"}}"


@pytest.mark.check("a-14", without="budgets")
@pytest.mark.parametrize("shape", [pytest.param(each, marks=() if each in QUICK else at_full_size) for each in LARGE_VALUES])
async def test_large_values_are_told_and_the_release_stays(
    owners: Owners, attackers: Attackers, victim: Victim, shape: str
) -> None:
    """Values over the budget are told on their object with the limit; the release stays as it is until they fit again."""
    values, limit = LARGE_VALUES[shape]
    (project, home, author), name = await somebody(owners, attackers), f"large-{token()}"
    await author.create(PROJECT_HELM_CHART, asked(name, home, {"mine": 1}))
    before = await owners.provisioned(f"{name}-dummy", holds=lambda found: values_of(found)["mine"] == 1)
    async with victim.watching():
        await as_written(author, "PATCH", PROJECT_HELM_CHART.path(home, name), spec_with(values), "application/merge-patch+json")
        told = await owners.told(name, project, "UnableToParseValues")
    assert conditions_of(told)["Stalled"] == ("True", "InvalidValues")
    message = told["status"]["statusMessage"]
    assert "spec.values" in message
    assert limit in message
    assert await owners.warning(name, project, "InvalidValues") == message
    await victim.served()
    after = await owners.provisioned(f"{name}-dummy")
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    smaller = {"op": "replace", "path": "/spec/values", "value": {"mine": 2}}
    await author.json_patch(PROJECT_HELM_CHART, name, home, [smaller])
    await owners.provisioned(f"{name}-dummy", holds=lambda found: values_of(found).get("mine") == 2)
    print(f"\nlarge values ({shape}): {victim.figures()}")


@pytest.mark.check("a-19", without="budgets")
@at_full_size
async def test_thousands_of_role_bindings(owners: Owners, attackers: Attackers, victim: Victim) -> None:
    """Thousands of RoleBindings where people are named: the release's Role is bound to all that fit, and who asked is told."""
    (_, home, author), name = await somebody(owners, attackers), f"bound-{token()}"
    await author.create(PROJECT_HELM_CHART, asked(name, home))
    release = f"{name}-dummy"
    await owners.provisioned(release)
    labels = {ROLE_OF: release, AGGREGATE_FROM: "view"}
    await owners.admin.create(ROLE, obj(ROLE, "viewers", release, labels=labels, rules=[]))
    bindings = [
        obj(ROLE_BINDING, f"b{number}", home, roleRef=cluster_role("view"), subjects=[user(f"user-{number}")])
        for number in range(MANY)
    ]
    async with victim.watching():
        await create_all(author, ROLE_BINDING, bindings)
    await victim.served()
    made = await owners.until(ROLE_BINDING, "viewers", release, lambda found: len(found["subjects"]) >= 1000, within=SLOW_S)
    assert len(made["subjects"]) == 1000

    def is_told(found: Object) -> bool:
        conditions = {each["type"]: each for each in found["status"]["conditions"]}
        told = conditions.get(ROLES_BOUND) or {}
        return told.get("reason") == "TooManyPeople" and "1,000" in told["message"]

    await owners.until(PROJECT_HELM_CHART, name, home, is_told, within=SLOW_S)
    print(f"\n{MANY} RoleBindings: {victim.figures()}")
    async with victim.watching():
        await delete_all(author, ROLE_BINDING, home)
    await victim.served()


@pytest.mark.check("a-19")
async def test_thousands_of_config_maps(owners: Owners, attackers: Attackers, victim: Victim) -> None:
    """Thousands of ConfigMaps, with labels of ours and without."""
    project = await owners.project()
    home, place = registration(project), f"a1-{project}"
    author = await attackers.someone("owner", home, place)

    def made(number: int) -> Object:
        labels = [{}, {DASHBOARD: f"{home}-single"}, {"helm.cattle.io/helm-project-operated": "true"}][number % 3]
        return obj(CONFIG_MAP, f"c{number}", (home, place)[number % 2], labels=labels, data={"x.json": '{"x": 1}'})

    async with victim.watching():
        await create_all(author, CONFIG_MAP, [made(number) for number in range(MANY)])
    await victim.served()
    print(f"\n{MANY} ConfigMaps: {victim.figures()}")
    for namespace in (home, place):
        for label in (DASHBOARD, "helm.cattle.io/helm-project-operated"):
            await delete_all(author, CONFIG_MAP, namespace, label)


@pytest.mark.check("a-19")
@at_full_size
async def test_thousands_that_ask_for_one_name(owners: Owners, attackers: Attackers, victim: Victim) -> None:
    """Thousands of ProjectHelmCharts that ask for one release name: one has it, each other is told, and costs others nothing."""
    _, home, author = await somebody(owners, attackers)
    await author.create(PROJECT_HELM_CHART, asked("first", home, helmApiVersion=SINGLE))
    await owners.provisioned(f"{home}-single")
    charts = [asked(f"n{number}", home, helmApiVersion=SINGLE) for number in range(MANY)]
    async with victim.watching():
        await create_all(author, PROJECT_HELM_CHART, charts)
        await victim.served()

        async def all_told() -> bool:
            found = (await owners.admin.list(PROJECT_HELM_CHART, home)).items
            told = [each for each in found if (each.get("status") or {}).get("status") == "UnableToCreateHelmRelease"]
            return len(told) == MANY

        await eventually(all_told, within=SLOW_S, what="each is told")
    last = await owners.get(PROJECT_HELM_CHART, f"n{MANY - 1}", home)
    assert f"{home}/first" in last["status"]["statusMessage"]
    async with victim.watching():
        for number in range(20):
            await owners.edit(PROJECT_HELM_CHART, f"n{number}", home, ("add", "/metadata/annotations", {"touched": str(number)}))
            await asyncio.sleep(0.05)
    await victim.served()
    print(f"\n{MANY} with one name: {victim.figures()}")
    await delete_all(author, PROJECT_HELM_CHART, home)


@pytest.mark.check("a-19")
@at_full_size
async def test_thousands_that_are_deleted_at_once(owners: Owners, attackers: Attackers, victim: Victim) -> None:
    """Thousands of ProjectHelmCharts that ask for one release name, and go together: the release goes, others are served."""
    _, home, author = await somebody(owners, attackers)
    await author.create(PROJECT_HELM_CHART, asked("first", home, helmApiVersion=SINGLE))
    await owners.provisioned(f"{home}-single")
    await create_all(author, PROJECT_HELM_CHART, [asked(f"n{number}", home, helmApiVersion=SINGLE) for number in range(MANY)])
    async with victim.watching():
        await delete_all(author, PROJECT_HELM_CHART, home)
    await Owners(owners.admin, SLOW_S).taken_away(f"{home}-single")
    await victim.served()
    print(f"\n{MANY} deleted: {victim.figures()}")


# -- last, for what they leave behind keeps the API server busy ---------------------------------------------------------------


@pytest.mark.check(
    "a-14", open="where 60 releases of 8,000 keys are made at once, on two cores, a single answer took 2.2 s in one run of seven"
)
@at_full_size
async def test_releases_with_large_values(owners: Owners, attackers: Attackers, victim: Victim, system: Knative) -> None:
    """Releases whose values are as large as they may be are made, and a sweep finds them as declared: it writes nothing."""
    (_, home, author), run = await somebody(owners, attackers), token()
    names = [f"r{number}-{run}" for number in range(60)]
    async with victim.watching():
        await create_all(author, PROJECT_HELM_CHART, [asked(name, home, LARGEST) for name in names])
        made = [await Owners(owners.admin, SLOW_S).provisioned(f"{name}-dummy") for name in names]
    await victim.served()
    after = [await owners.provisioned(f"{name}-dummy") for name in names]
    assert [each["metadata"]["resourceVersion"] for each in after] == [each["metadata"]["resourceVersion"] for each in made]
    print(f"\n{len(names)} releases of large values: {victim.figures()}")
    await delete_all(author, PROJECT_HELM_CHART, home)


@pytest.mark.check(
    "a-14",
    open="several objects of a third of a million values keep the API server busy: answers took up to 3.8 s in one run of five",
    without="budgets",
)
@at_full_size
async def test_many_large_values(owners: Owners, attackers: Attackers, victim: Victim) -> None:
    """Several ProjectHelmCharts of a megabyte of lists, made at the same time: each is told, others are served."""
    (project, home, author), run = await somebody(owners, attackers), token()
    body = json.dumps(asked("NAME", home, "VALUES"))
    names = [f"m{number}-{run}" for number in range(6)]
    async with victim.watching():
        for name in names:
            raw = body.replace("NAME", name).replace('"VALUES"', wide(MB)).encode()
            await as_written(author, "POST", PROJECT_HELM_CHART.path(home), raw)
        for name in names:
            await owners.told(name, project, "UnableToParseValues")
    await victim.served()
    print(f"\nmany large values: {victim.figures()}")
    await delete_all(author, PROJECT_HELM_CHART, home)


@pytest.mark.check("a-14")
@at_full_size
async def test_very_many_values_within_the_budget(owners: Owners, attackers: Attackers, victim: Victim) -> None:
    """Very many ProjectHelmCharts with values as large as they may be: a sweep over all of them stays within its memory."""
    project = await owners.project()
    place, run = f"a1-{project}", token()
    author = await attackers.someone("owner", place)
    async with victim.watching():
        charts = [asked(f"v{number}-{run}", place, LARGEST) for number in range(LARGE)]
        await create_all(author, PROJECT_HELM_CHART, charts)
    try:
        await victim.served()
    finally:
        await delete_all(author, PROJECT_HELM_CHART, place)
    print(f"\n{LARGE} with large values: {victim.figures()}")
