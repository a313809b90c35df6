"""Shares of a quota: whatever is there before, the sum is never above it, stage by stage."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest
from paas_cluster import Cluster, config, namespace, paas, quota, share

from namespace_registration.quotas import number
from tenantry.model.kinds import RESOURCE_QUOTA, Object
from tenantry.model.plan import Apply, Delete, Edit, Plan

CPU = "limits.cpu"


def _sum(now: dict[str, dict[str, str]]) -> Fraction:
    return sum((number(hard[CPU]) for hard in now.values() if CPU in hard), Fraction(0))


def _played(plan: Plan, now: dict[str, dict[str, str]], sums: list[Fraction]) -> None:
    """The writes of a plan, in the worst order within each stage: what grows first."""
    for stage in plan.stages:
        for item in stage:
            if isinstance(item, Plan):
                _played(item, now, sums)
        writes = [each for each in stage if not isinstance(each, Plan) and each.key.kind == RESOURCE_QUOTA.kind]
        for write in sorted(writes, key=lambda each: isinstance(each, Delete)):
            if isinstance(write, Apply):
                now[write.key.namespace] = dict(write.wanted["spec"]["hard"])
            else:
                now.pop(write.key.namespace)
            sums.append(_sum(now))


async def _end(
    declared: Object, before: dict[str, dict[str, str]], *more: Object
) -> tuple[dict[str, dict[str, str]], list[Fraction]]:
    """Where the attempts of a run lead to, and all sums on the way."""
    now, sums = dict(before), [_sum(before)]
    for _ in range(3):
        shares = [share(name, "p", hard) for name, hard in now.items()]
        homes = [namespace(name, "p") for name in now if not any(each["metadata"]["name"] == name for each in more)]
        plan = await Cluster(declared, config(), *homes, *more, *shares, spans=False).plan("p")
        _played(plan, now, sums)
    return now, sums


@pytest.mark.parametrize(("before", "after"), [*itertools.product([("1",) * 3, ("3", "0", "0"), ("2", "1")], ["3", "6", "1"])])
async def test_from_any_shares_to_any_quota(before: tuple[str, ...], after: str) -> None:
    """Never more than before or after, whichever is more; at the end exactly the quota."""
    there = {f"p-{each}": {CPU: amount} for each, amount in zip("abc", before, strict=False)}
    now, sums = await _end(paas("p", "a", "b", "c", quota={CPU: after}), there)
    assert max(sums) <= max(Fraction(3), Fraction(after))
    assert _sum(now) == Fraction(after)
    assert set(now) == {"p-a", "p-b", "p-c"}


async def test_nothing_grows_before_what_leaves_is_gone() -> None:
    """The share of a namespace that is on its way out counts until it is deleted."""
    going = namespace("p-c", "p", deleted=True)
    there = {f"p-{each}": {CPU: "1"} for each in "abc"}
    now, sums = await _end(paas("p", "a", "b", quota={CPU: "3"}), there, going)
    assert now == {"p-a": {CPU: "1500m"}, "p-b": {CPU: "1500m"}}
    assert max(sums) == 3


async def test_one_resource_grows_and_another_shrinks() -> None:
    """Both are written twice: first what shrinks."""
    there = {f"p-{each}": {CPU: "1", "pods": "10"} for each in "ab"}
    cluster = Cluster(
        paas("p", "a", "b", quota={CPU: "4", "pods": "2"}),
        config(),
        *(namespace(name, "p") for name in there),
        *(share(name, "p", hard) for name, hard in there.items()),
        spans=False,
    )
    found = [each for each in (await cluster.plan("p")).writes() if each.key.kind == RESOURCE_QUOTA.kind]
    writes = [each for each in found if isinstance(each, Apply)]
    assert [each.wanted["spec"]["hard"] for each in writes] == [{CPU: "1", "pods": "1"}] * 2 + [{CPU: "2", "pods": "1"}] * 2


async def test_what_somebody_added_to_a_share_is_taken_away() -> None:
    """It would limit the tenant's neighbours in the namespace, and server-side apply leaves what others own."""
    there = share("p-a", "p", {CPU: "1", "count/pods": "1"})
    writes = [
        each
        for each in (
            await Cluster(paas("p", "a", quota={CPU: "1"}), config(), quota_label_of("p-a"), there, spans=False).plan("p")
        ).writes()
        if each.key.kind == RESOURCE_QUOTA.kind and isinstance(each, Edit)
    ]
    assert [each.operations for each in writes] == [({"op": "remove", "path": "/spec/hard/count~1pods"},)]


async def test_equal_amounts_are_not_written() -> None:
    """1000m is 1."""
    cluster = Cluster(
        paas("p", "a", quota={CPU: "1"}),
        config(),
        quota_label_of("p-a"),
        share("p-a", "p", {CPU: "1000m"}),
        spans=False,
    )
    assert not [each for each in await cluster.changes("p") if "ResourceQuota" in each]


def quota_label_of(name: str) -> Object:
    """A namespace that has its labels."""
    return namespace(name, "p", labels={"clusterquotagroup": "p"})


async def test_shares_go_when_a_quota_that_spans_namespaces_is_there() -> None:
    """Not before: at no moment has a namespace neither."""
    there: list[Any] = [paas("p", "a"), config(), quota_label_of("p-a"), share("p-a", "p", {"pods": "9"})]
    assert "delete ResourceQuota p-a/paas-quota" not in await Cluster(*there).changes("p")
    assert "delete ResourceQuota p-a/paas-quota" in await Cluster(*there, quota("p", "p")).changes("p")
