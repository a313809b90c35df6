"""What many objects of a sweep's lists have in common is kept once."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

from tenantry.api import Api
from tenantry.api.client import Listing
from tenantry.engine.copies import OneCopy
from tenantry.engine.snapshot import Lists, Prefetch, Snapshot
from tenantry.model.kinds import NAMESPACE, ROLE_BINDING, Object, object_of
from tenantry.model.values import LeftOut

OWNED = {"f:metadata": {"f:labels": {"f:of": {}}}, "f:roleRef": {}}


def binding(name: str, **labels: str) -> Object:
    """A new RoleBinding of this name, that shares nothing with any other."""
    made = object_of(
        ROLE_BINDING,
        {
            "name": name,
            "namespace": "n",
            "uid": name,
            "resourceVersion": "1",
            "labels": labels,
            "ownerReferences": [{"kind": "ScopeInstance", "uid": "i"}],
            "managedFields": [{"manager": "tenantry-x", "fieldsV1": OWNED}],
        },
        roleRef={"kind": "ClusterRole", "name": "view"},
        subjects=[{"kind": "User", "name": "me"}],
    )
    return cast(Object, json.loads(json.dumps(made)))


def test_equal_parts_are_one() -> None:
    """And the objects are as they were."""
    one = OneCopy()
    a, b, c = (one.with_shared_parts(each) for each in (binding("a", of="i"), binding("b", of="i"), binding("c", of="k")))
    assert (a, b, c) == (binding("a", of="i"), binding("b", of="i"), binding("c", of="k"))
    assert a["metadata"]["labels"] is b["metadata"]["labels"]
    assert a["metadata"]["labels"] is not c["metadata"]["labels"]
    for part in ("roleRef", "subjects"):
        assert a[part] is b[part] is c[part]
    assert a["metadata"]["ownerReferences"] is c["metadata"]["ownerReferences"]
    assert a["metadata"]["managedFields"][0]["fieldsV1"] is c["metadata"]["managedFields"][0]["fieldsV1"]


def test_an_object_of_two_lists_is_one() -> None:
    """Unless one of the lists keeps less of it."""
    one = OneCopy()
    whole = one.of_several_lists(binding("a", of="i"))
    assert one.of_several_lists(binding("a", of="i")) is whole
    less = {name: part for name, part in binding("a", of="i").items() if name != "subjects"}
    assert one.of_several_lists(dict(less)) == less
    assert one.of_several_lists(binding("b", of="i"))["metadata"]["labels"] is whole["metadata"]["labels"]


class Slow:
    """An API server that answers when it may: ``reads`` were asked for, ``given_up`` is waited for by nobody."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.reads: list[str] = []
        self.given_up: list[str] = []

    async def list(self, kind: Any, *_: Any, keep: Any, **__: Any) -> Listing:
        """Two objects of the kind, as ``keep`` wants them."""
        self.reads.append(kind.kind)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.given_up.append(kind.kind)
            raise
        return Listing([keep(binding(name, of="i")) for name in "ab"], "1")


async def test_lists_of_a_sweep_are_shared_and_not_kept() -> None:
    """Units that begin together read each list once; when they have it, only they keep it."""
    server, lists = Slow(), Lists()
    api, wanted = cast(Api, server), [Prefetch(ROLE_BINDING), Prefetch(NAMESPACE)]
    both = asyncio.gather(*(Snapshot.take(api, wanted, lists) for _ in range(2)))
    await asyncio.sleep(0)
    server.go.set()
    first, second = await both
    assert sorted(server.reads) == ["Namespace", "RoleBinding"]
    found = [await each.list(ROLE_BINDING, "n") for each in (first, second)]
    assert found[0] == found[1] == [binding(name, of="i") for name in "ab"]
    assert found[0][0]["metadata"]["labels"] is found[1][1]["metadata"]["labels"]
    del both
    assert not lists


async def test_two_lists_of_a_kind_share_their_objects() -> None:
    """What is left out of one stays what it is."""
    server = Slow()
    server.go.set()
    out = Prefetch(NAMESPACE, keep=LeftOut)
    wanted = [Prefetch(ROLE_BINDING, (("of", ""),)), Prefetch(ROLE_BINDING, (("x", ""),)), out]
    snapshot = await Snapshot.take(cast(Api, server), wanted)
    by_one, by_other = [table._items for table in snapshot._tables[ROLE_BINDING]]
    assert [one is other for one, other in zip(by_one, by_other, strict=True)] == [True, True]
    assert [type(each) for each in snapshot._tables[NAMESPACE][0]._items] == [LeftOut, LeftOut]


async def test_a_sweep_that_is_given_up_reads_no_further() -> None:
    """Its lists would else be read beside those of the next one."""
    server = Slow()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await Snapshot.take(cast(Api, server), [Prefetch(ROLE_BINDING), Prefetch(NAMESPACE)], Lists())
    await asyncio.sleep(0)
    assert sorted(server.given_up) == ["Namespace", "RoleBinding"]
