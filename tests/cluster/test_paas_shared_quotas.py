"""Quotas that all Paas of a clusterwide capability share: what is in them, and that they follow every Paas (section 4.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
import pytest_asyncio
from configuring import ONE_CONFIG, refused, second
from paasing import CONFIG_NAME, Paasing, make_roles, make_world, paas_name
from people import FUNCTION
from times import LEFT_TO_MAKE_WHOLE, PAAS_S, VOLUME_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import Object, annotations_of
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, PAAS, PAAS_CONFIG, SHARED
from tenantry.testing import eventually
from tenantry.testing.objects import obj
from tenantry.testing.settling import snapshot

pytestmark = LEFT_TO_MAKE_WHOLE

CPU = "limits.cpu"


def wide(ratio: float = 0.1, default: str = "1", **limits: Any) -> Object:
    """A clusterwide capability."""
    least, most = limits.get("least"), limits.get("most")
    quotas: Object = {"clusterwide": True, "ratio": ratio, "defaults": {CPU: default}}
    quotas |= {"min": {CPU: least}} if least is not None else {}
    return {"quotas": quotas | ({"max": {CPU: most}} if most is not None else {})}


CAPABILITIES = {
    "tekton": wide(least="3", most="10"),
    "half": wide(0.5, "500m"),
    "whole": wide(1.0, "500m"),
    "fine": wide(default="250m"),
    "one": wide(1.0),
    "two": wide(1.0),
    "three": wide(1.0),
    "foreign": wide(1.0),
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sharing(admin: Api, flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """namespace-registration where ClusterResourceQuota is served, with a configuration of clusterwide capabilities."""
    await make_world(admin, "os")
    running = await flawlessly({}, functions=[FUNCTION])
    await make_roles(admin)
    await Paasing(admin).config(capabilities=CAPABILITIES)
    return running


@pytest.fixture
def paasing(sharing: Knative, admin: Api) -> Paasing:
    """The administrator, and the authors of Paas."""
    del sharing
    return Paasing(admin)


class Sharing:
    """Some Paas that have capabilities, until a test ends."""

    def __init__(self, paasing: Paasing) -> None:
        self.paasing = paasing
        self.made: list[str] = []

    async def join(self, count: int, *capabilities: str, cpu: str = "") -> list[str]:
        """Make Paas with these capabilities, each with a quota of its own or the default."""
        names = [paas_name() for _ in range(count)]
        self.made += names
        await asyncio.gather(*(self.ask(name, *capabilities, cpu=cpu) for name in names))
        return names

    async def ask(self, name: str, *capabilities: str, cpu: str = "") -> None:
        """Declare what a Paas has."""
        quota = {"quota": {CPU: cpu}} if cpu else {}
        await self.paasing.paas(name, capabilities={each: {"enabled": True, **quota} for each in capabilities})

    async def has(self, capability: str, cpu: str, within: float = 0.0) -> Object:
        """Wait until a shared quota has so much."""

        def holds(found: Object) -> bool:
            return bool(found["spec"]["quota"]["hard"] == {CPU: cpu})

        name, what = f"paas-{capability}", f"{capability} is {cpu}"
        return await self.paasing.until(CLUSTER_RESOURCE_QUOTA, name, "", holds, within=within, what=what)

    async def leave(self, names: Sequence[str]) -> None:
        """Delete Paas, and do not wait."""
        await asyncio.gather(*(self.paasing.admin.delete(PAAS, name) for name in names))
        self.made = [name for name in self.made if name not in names]


@pytest_asyncio.fixture(loop_scope="session")
async def some(paasing: Paasing) -> Any:
    """Paas of one test, which leave when it ends."""
    made = Sharing(paasing)
    yield made
    await made.leave(made.made)
    for capability in CAPABILITIES:
        await paasing.away(CLUSTER_RESOURCE_QUOTA, f"paas-{capability}")


@pytest.mark.check("p-30")
async def test_three_paas_share_the_least_there_is(some: Sharing) -> None:
    """min, by the label that the namespaces of the capability carry, and with our mark."""
    await some.join(3, "tekton")
    found = await some.has("tekton", "3")
    assert found["spec"]["selector"] == {"labels": {"matchLabels": {"clusterquotagroup": "paas-tekton"}}}
    assert annotations_of(found)[SHARED] == "quota"
    assert "ownerReferences" not in found["metadata"]


@pytest.mark.check("p-32")
async def test_two_paas_can_have_what_they_ask_for_at_the_same_time(some: Sharing) -> None:
    """The two largest, where a part of the sum is less; the whole sum with ratio 1, not cut to whole numbers."""
    await some.join(3, "half", "whole")
    await some.has("half", "1")
    await some.has("whole", "1500m")


@pytest.mark.check("p-33")
async def test_a_paas_that_goes_takes_its_part_along(some: Sharing) -> None:
    """One of two: the value is the other's; the last: the quota is gone."""
    first, second = await some.join(2, "one")
    await some.ask(second, "one", cpu="2500m")
    await some.has("one", "3500m")
    await some.leave([first])
    await some.has("one", "2500m")
    await some.leave([second])
    await some.paasing.away(CLUSTER_RESOURCE_QUOTA, "paas-one")


@pytest.mark.check("p-36")
@pytest.mark.check("p-66")
async def test_every_quota_that_a_paas_was_in_is_computed_anew(some: Sharing) -> None:
    """Two, then three, with others in each."""
    both, alone, every = await some.join(3)
    await some.ask(both, "one", "two")
    await some.ask(alone, "one", "two", "three")
    await some.ask(every, "one", "two", "three", cpu="5")
    await asyncio.gather(some.has("one", "7"), some.has("two", "7"), some.has("three", "6"))
    await some.leave([both])
    await asyncio.gather(some.has("one", "6"), some.has("two", "6"))
    await some.leave([every])
    await asyncio.gather(some.has("one", "1"), some.has("two", "1"), some.has("three", "1"))


@pytest.mark.check("p-67")
async def test_one_large_wish_is_met(some: Sharing) -> None:
    """The two largest together are more than min."""
    first, _ = await some.join(2, "tekton")
    await some.has("tekton", "3")
    await some.ask(first, "tekton", cpu="6")
    await some.has("tekton", "7")


@pytest.mark.check("p-68")
async def test_parts_of_a_cpu_are_not_cut(some: Sharing) -> None:
    """30 times 250m, of which one changes to 500m."""
    first, *_ = await some.join(30, "fine")
    await some.has("fine", "750m")
    await some.ask(first, "fine", cpu="500m")
    await some.has("fine", "775m")


async def test_a_capability_that_is_switched_off_counts_no_more(some: Sharing) -> None:
    """Off, removed, and on again; a Paas without the capability changes nothing."""
    first, second = await some.join(2, "whole")
    await some.has("whole", "1")
    await some.paasing.paas(first, capabilities={"whole": {"enabled": False}})
    await some.has("whole", "500m")
    await some.paasing.paas(second)
    await some.paasing.away(CLUSTER_RESOURCE_QUOTA, "paas-whole")
    await some.ask(first, "whole")
    await some.has("whole", "500m")


async def test_the_quota_is_put_back_and_follows_the_configuration(some: Sharing) -> None:
    """By hand changed or deleted; another label, ratio and default; not clusterwide any more."""
    await some.join(2, "two")
    before = await some.has("two", "2")
    await some.paasing.edit(CLUSTER_RESOURCE_QUOTA, "paas-two", "", ("replace", "/spec/quota/hard", {CPU: "99"}))
    assert (await some.has("two", "2"))["metadata"]["uid"] == before["metadata"]["uid"]
    await some.paasing.admin.delete(CLUSTER_RESOURCE_QUOTA, "paas-two")
    await some.has("two", "2")
    try:
        changed = {**CAPABILITIES, "two": wide(0.5, "4")}
        await some.paasing.config(capabilities=changed, quota_label="example.org/quota")
        found = await some.has("two", "8")
        assert found["spec"]["selector"]["labels"]["matchLabels"] == {"example.org/quota": "paas-two"}
        await some.paasing.config(capabilities={**CAPABILITIES, "two": {"quotas": {"defaults": {CPU: "1"}}}})
        await some.paasing.away(CLUSTER_RESOURCE_QUOTA, "paas-two")
    finally:
        await some.paasing.config(capabilities=CAPABILITIES)
    await some.has("two", "2")


async def test_a_foreign_quota_of_the_name_is_left_alone_and_told(some: Sharing) -> None:
    """On the PaasConfig, with the fix; when it is gone the shared one is there, and nothing is told any more."""
    spec = {"quota": {"hard": {CPU: "77"}}, "selector": {"labels": {"matchLabels": {"team": "x"}}}}
    theirs = await some.paasing.admin.create(CLUSTER_RESOURCE_QUOTA, obj(CLUSTER_RESOURCE_QUOTA, "paas-foreign", spec=spec))
    await some.join(1, "foreign")
    told = await some.paasing.says(CONFIG_NAME, "HasErrors", "QuotaConflict", "paas-foreign", kind=PAAS_CONFIG, status="True")
    assert "delete it" in told["message"]
    assert await some.paasing.warned(CONFIG_NAME, "QuotaConflict", kind=PAAS_CONFIG)
    assert await some.paasing.get(CLUSTER_RESOURCE_QUOTA, "paas-foreign") == theirs
    await some.paasing.admin.delete(CLUSTER_RESOURCE_QUOTA, "paas-foreign")
    await some.has("foreign", "1")
    found = await some.paasing.until(
        PAAS_CONFIG, CONFIG_NAME, "", lambda found: (find_condition(found, "HasErrors") or {}).get("status") == "False"
    )
    assert not [each for each in found["status"]["conditions"] if each["type"].startswith("tenantry.dev/SharedQuota")]


async def test_a_change_without_a_meaning_writes_no_quota(some: Sharing, sharing: Knative, calm: Callable[..., Any]) -> None:
    """p-180, of shared quotas: an annotation, a field without use, and quantities that are the same in other words."""
    await some.join(2, "tekton")
    await some.has("tekton", "3")
    await calm(sharing)
    before = await snapshot(some.paasing.admin, [CLUSTER_RESOURCE_QUOTA])
    same = {**CAPABILITIES, "tekton": wide(default="1000m", least="3000m", most="10")}
    try:
        await some.paasing.config(capabilities=dict(reversed(same.items())), debug=True)
        await some.paasing.says(CONFIG_NAME, "Warnings", "IgnoredField", "spec.debug", kind=PAAS_CONFIG)
        await calm(sharing)
        assert await snapshot(some.paasing.admin, [CLUSTER_RESOURCE_QUOTA]) == before
    finally:
        await some.paasing.config(capabilities=CAPABILITIES)


@pytest.mark.check("p-53", without=ONE_CONFIG)
async def test_a_second_configuration_is_refused_and_without_effect_where_it_got_in(some: Sharing) -> None:
    """It is told so on it, with the one that is in use; quotas follow that one, also when they are computed anew."""
    name = f"zz-{paas_name()}"
    await refused(some.paasing, name, CONFIG_NAME, capabilities={"tekton": wide(1.0, "9")})
    await second(some.paasing, name, capabilities={"tekton": wide(1.0, "9")})
    try:
        told = await some.paasing.says(name, "Active", "NotInUse", CONFIG_NAME, kind=PAAS_CONFIG, status="False")
        assert "no effect" in told["message"]
        await some.paasing.says(CONFIG_NAME, "Active", "Reconciling", kind=PAAS_CONFIG, status="True")
        first, _ = await some.join(2, "tekton")
        await some.has("tekton", "3")
        await some.ask(first, "tekton", cpu="6")
        await some.has("tekton", "7")
    finally:
        await some.paasing.admin.delete(PAAS_CONFIG, name)


@pytest.mark.check("p-31")
async def test_more_paas_share_more_up_to_the_most_there_is(some: Sharing) -> None:
    """A tenth of what 40 have, and max for 200."""
    await some.join(40, "tekton")
    await some.has("tekton", "4")
    await some.join(160, "tekton")
    await some.has("tekton", "10", within=PAAS_S)
    await some.leave(some.made)
    await eventually(
        lambda: some.paasing.admin.list(PAAS), lambda found: not found.items, within=VOLUME_S, what="200 Paas are gone"
    )
