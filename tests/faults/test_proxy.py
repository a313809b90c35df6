"""The fault proxy against the real API server: it passes on what it should, and each fault becomes the error that it should."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic_core import from_json

from tenantry.api import Api
from tenantry.api import errors as api_errors
from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, RESOURCE_QUOTA, SECRET, SERVICE_ACCOUNT, Object
from tenantry.testing import eventually, faults
from tenantry.testing.objects import obj
from tenantry.testing.proxy import FaultProxy

MANAGER = "tenantry-probe"


def config_map(namespace: str, name: str = "one", **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def via(proxy: FaultProxy, control_plane: ControlPlane) -> AsyncIterator[Api]:
    """A function's client, through the proxy."""
    path = proxy.kubeconfig_for(control_plane.kubeconfig)
    async with await Api.connect(field_manager=MANAGER, kubeconfig=path) as api:
        yield api


@pytest_asyncio.fixture(loop_scope="session")
async def place(admin: Api, proxy: FaultProxy) -> AsyncIterator[str]:
    """A fresh namespace with the ConfigMap ``one``; afterwards no fault is left."""
    name = f"proxy-{secrets.token_hex(3)}"
    await admin.apply(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    await admin.apply(CONFIG_MAP, config_map(name, a="0"))
    yield name
    proxy.faults.clear()
    await admin.delete(NAMESPACE, name)


# -- passing on, and the record ------------------------------------------------------------------------------


async def test_identity_passes_through(proxy: FaultProxy, via: Api) -> None:
    """The API server sees the identity of the client, and nothing of its credentials is recorded."""
    answer = await via.request(
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        body={"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    )
    last = proxy.recording[-1]

    assert answer["status"]["userInfo"]["username"] == "tenantry-admin"
    assert (last.function, last.verb, last.status, last.changed) == (MANAGER, "create", 201, False)
    assert b"Bearer" not in last.sent + last.seen
    assert "Bearer" not in repr(vars(last))


async def test_writes_are_told_from_effective_writes(proxy: FaultProxy, via: Api, admin: Api, place: str) -> None:
    """Effective are a creation, a change and a deletion; not a repetition, a dry run, a refusal, or another's change."""
    begin = proxy.recording.mark()
    await via.apply(CONFIG_MAP, config_map(place, "two", a="1"))
    await via.apply(CONFIG_MAP, config_map(place, "two", a="1"))
    await via.apply(CONFIG_MAP, config_map(place, "two", a="2"), dry_run=True)
    await admin.apply(CONFIG_MAP, {**config_map(place, "two"), "data": {"b": "1"}})
    await via.get(NAMESPACE, place)
    await via.list(CONFIG_MAP, place)
    await via.apply(CONFIG_MAP, config_map(place, "two", a="1"))
    await via.apply(CONFIG_MAP, config_map(place, "two", a="2"))
    with pytest.raises(api_errors.ConflictError):
        await via.delete(CONFIG_MAP, "two", place, uid="other")
    await via.delete(CONFIG_MAP, "two", place)
    await via.delete(CONFIG_MAP, "two", place)
    found = proxy.recording.writes(begin)

    assert [(each.verb, each.status, each.changed) for each in found] == [
        ("apply", 201, True),
        ("apply", 200, False),
        ("apply", 200, False),
        ("apply", 200, True),
        ("delete", 409, False),
        ("delete", 200, True),
        ("delete", 404, False),
    ]
    history = proxy.recording.history(("v1", "configmaps", place, "two"))
    assert [state and state["data"] for _, state in history] == [{"a": "1"}, {"a": "1", "b": "1"}, {"a": "2", "b": "1"}, None]
    assert found[0].request["data"] == {"a": "1"}
    assert found[0].key == ("v1", "configmaps", place, "two")


async def test_an_object_that_waits_for_a_finalizer_is_deleted_once(proxy: FaultProxy, via: Api, place: str) -> None:
    """A deletion that only marks the object is effective the first time and not when it is repeated."""
    held = config_map(place, "held")
    held["metadata"]["finalizers"] = ["tests.tenantry.dev/held"]
    begin = proxy.recording.mark()
    await via.apply(CONFIG_MAP, held)
    await via.delete(CONFIG_MAP, "held", place)
    await via.delete(CONFIG_MAP, "held", place)
    await via.json_patch(CONFIG_MAP, "held", place, [{"op": "remove", "path": "/metadata/finalizers"}])

    assert [each.changed for each in proxy.recording.writes(begin)] == [True, True, False, True]


async def test_watches_are_streamed_and_end(via: Api, admin: Api, place: str) -> None:
    """A watch through the proxy tells changes as they happen, and ends when the server ends it."""
    listing = await via.list(CONFIG_MAP, place)
    seen: list[tuple[str, Object]] = []

    async def watch() -> None:
        async for verb, found in via.watch(CONFIG_MAP, place, resource_version=listing.resource_version, timeout_s=3):
            seen.append((verb, found))  # what is seen is looked at meanwhile

    async def told(verb: str) -> bool:
        return any(each == verb and found["metadata"]["name"] == "one" for each, found in seen)

    watching = asyncio.create_task(watch())
    await admin.apply(CONFIG_MAP, config_map(place, a="9"))
    await eventually(lambda: told("MODIFIED"), what="the change is told")
    assert not watching.done()
    await admin.delete(CONFIG_MAP, "one", place)
    await eventually(lambda: told("DELETED"), what="the deletion is told")
    await asyncio.wait_for(watching, 10)


async def test_what_follows_a_dead_client_is_recorded(proxy: FaultProxy, via: Api, place: str) -> None:
    """A write whose client goes away meanwhile is carried out and recorded, with status 0: nobody heard the answer."""
    gate = faults.Gate(where=faults.on("configmaps", "late"))
    proxy.faults.append(gate)
    task = asyncio.create_task(via.apply(CONFIG_MAP, config_map(place, "late")))
    held = await gate.next()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    held.release()

    async def recorded() -> Any:
        return next((each for each in proxy.recording if each.key[2:] == (place, "late")), None)

    exchange = await eventually(recorded)
    assert (exchange.status, exchange.answered, exchange.changed) == (0, 201, True)


# -- faults --------------------------------------------------------------------------------------------------

ANSWERED = [
    (faults.Conflict409(), api_errors.ConflictError),
    (faults.Exists409(), api_errors.AlreadyExists),
    (faults.Error500(), api_errors.TransientError),
    (faults.Unavailable503(), api_errors.TransientError),
    (faults.Reset(times=2), api_errors.TransientError),
    (faults.Forbidden403(), api_errors.Forbidden),
    (faults.KindMissing404(), api_errors.KindNotServed),
    (faults.Invalid422(), api_errors.AdmissionDenied),
    (faults.Invalid422(by="policy"), api_errors.AdmissionDenied),
    (faults.Invalid422(by="schema"), api_errors.Invalid),
    (faults.QuotaExceeded403(), api_errors.QuotaExceeded),
    (faults.NamespaceTerminating403(), api_errors.NamespaceTerminating),
]


@pytest.mark.parametrize(("fault", "error"), ANSWERED, ids=[f"{fault.name}-{error.__name__}" for fault, error in ANSWERED])
async def test_an_answered_fault_is_its_error_and_changes_nothing(
    proxy: FaultProxy, via: Api, admin: Api, place: str, fault: faults.Fault, error: type[Exception]
) -> None:
    """The client raises the error of the fault, the object stays as it was, and the next request is undisturbed."""
    proxy.faults.append(fault)
    with pytest.raises(error) as raised:
        await via.apply(CONFIG_MAP, config_map(place, a="1"))
    last = proxy.recording[-1]

    assert type(raised.value) is error
    assert (fault.acted, last.fault, last.answered, last.changed) == (1, fault.name, 0, False)
    assert ((await admin.get(CONFIG_MAP, "one", place)) or {})["data"] == {"a": "0"}
    proxy.faults.clear()
    await via.apply(CONFIG_MAP, config_map(place, a="1"))
    assert proxy.recording[-1].fault == ""


async def test_429_is_waited_for(proxy: FaultProxy, via: Api, place: str) -> None:
    """The client waits as long as Retry-After asks for and then succeeds by itself."""
    proxy.faults.append(fault := faults.TooMany429(1))
    begin = proxy.recording.mark()
    await via.apply(CONFIG_MAP, config_map(place, a="1"))
    refused, done = proxy.recording[begin:]

    assert (fault.acted, refused.status, done.status) == (1, 429, 200)
    assert done.at - refused.until >= 1.0


async def test_slow_answers_come(proxy: FaultProxy, via: Api, place: str) -> None:
    """A slow request is carried out, and answered late."""
    proxy.faults.append(faults.Slow(0.3))
    await via.apply(CONFIG_MAP, config_map(place, a="1"))
    last = proxy.recording[-1]

    assert (last.fault, last.status, last.changed) == ("slow", 200, True)
    assert last.until - last.at >= 0.3


@pytest.mark.parametrize("timeout", [False, True])
async def test_an_ambiguous_write_is_committed_and_fails(
    proxy: FaultProxy, via: Api, admin: Api, place: str, timeout: bool
) -> None:
    """The client sees a transient error although the write took place; the record has both truths."""
    proxy.faults.append(faults.Ambiguous(1, timeout=timeout))
    with pytest.raises(api_errors.TransientError):
        await via.apply(CONFIG_MAP, config_map(place, a="1"))
    last = proxy.recording[-1]

    assert (last.status, last.answered, last.changed) == (504 if timeout else 0, 200, True)
    assert ((await admin.get(CONFIG_MAP, "one", place)) or {})["data"] == {"a": "1"}


@pytest.mark.parametrize(("kind", "committed"), [(faults.CrashBefore, False), (faults.CrashAfter, True)])
async def test_a_crash_takes_place_at_the_kth_write_of_its_function(
    proxy: FaultProxy, via: Api, admin: Api, place: str, kind: Callable[..., faults.Fault], committed: bool
) -> None:
    """Of one function's writes the k-th is met, before or after it is committed; reads and other functions do not count."""
    killed: list[str] = []

    async def kill() -> None:
        now = await admin.get(CONFIG_MAP, "one", place)
        killed.append((now or {})["data"]["a"])

    proxy.faults += [kind(1, kill=kill, function="somebody-else"), kind(2, kill=kill, function="probe")]
    await via.apply(CONFIG_MAP, config_map(place, a="1"))
    await via.get(CONFIG_MAP, "one", place)
    with pytest.raises(api_errors.TransientError):
        await via.apply(CONFIG_MAP, config_map(place, a="2"))
    await via.apply(CONFIG_MAP, config_map(place, a="3"))

    assert killed == ["2" if committed else "1"]


async def test_an_expired_token_starts_the_list_anew(proxy: FaultProxy, via: Api, place: str, admin: Api) -> None:
    """The second page of a list is answered 410; the client lists again and gets everything."""
    await admin.apply(CONFIG_MAP, config_map(place, "two"))
    proxy.faults.append(fault := faults.Expired410(where=faults.on("configmaps", namespace=place)))
    begin = proxy.recording.mark()
    listing = await via.list(CONFIG_MAP, place)

    assert {item["metadata"]["name"] for item in listing.items} >= {"one", "two"}
    assert [each.status for each in proxy.recording[begin:]] == [200, 410, 200]
    assert proxy.faults == [fault]


async def test_a_stale_get_is_the_object_as_it_was(proxy: FaultProxy, via: Api, admin: Api, place: str) -> None:
    """A read shows the object before its last change, or as of a version: also that it was not there, or was still there."""
    born = (await admin.get(CONFIG_MAP, "one", place) or {})["metadata"]["resourceVersion"]
    await admin.apply(CONFIG_MAP, config_map(place, a="1"))
    where = faults.on("configmaps", "one")
    proxy.faults.append(faults.StaleGet(where=where))
    before = await via.get(CONFIG_MAP, "one", place)
    direct = await admin.get(CONFIG_MAP, "one", place)

    assert ((before or {})["data"], (before or {})["kind"]) == ({"a": "0"}, "ConfigMap")
    assert (direct or {})["data"] == {"a": "1"}
    assert proxy.recording[-1].response == before
    assert proxy.recording[-1].stored == direct
    proxy.faults[:] = [faults.StaleGet(where=where, version=str(int(born) - 1))]
    assert await via.get(CONFIG_MAP, "one", place) is None
    await admin.delete(CONFIG_MAP, "one", place)
    proxy.faults[:] = [faults.StaleGet(where=where, version=born)]
    assert ((await via.get(CONFIG_MAP, "one", place)) or {})["data"] == {"a": "0"}
    assert await via.get(CONFIG_MAP, "one", place) is None


async def test_a_stale_list_is_the_list_as_it_was(proxy: FaultProxy, via: Api, admin: Api, place: str) -> None:
    """A list shows what there was before the last change of its items."""
    await admin.apply(CONFIG_MAP, config_map(place, "two"))
    proxy.faults.append(faults.StaleList())
    stale = await via.list(CONFIG_MAP, place)
    fresh = await via.list(CONFIG_MAP, place)

    assert {item["metadata"]["name"] for item in fresh.items} - {item["metadata"]["name"] for item in stale.items} == {"two"}


async def test_a_gate_decides_the_order(proxy: FaultProxy, via: Api, admin: Api, place: str) -> None:
    """Held requests go on one by one in the order in which they are released."""
    proxy.faults.append(gate := faults.Gate(where=faults.on("configmaps", "one", verb="apply")))
    first = asyncio.create_task(via.apply(CONFIG_MAP, config_map(place, a="first")))
    one = await gate.next()
    second = asyncio.create_task(via.apply(CONFIG_MAP, config_map(place, a="second")))

    async def both_wait() -> bool:
        return len(gate.held) == 2

    await eventually(both_wait)
    gate.held[1].release()
    assert (await second)["data"] == {"a": "second"}
    assert not first.done()
    one.release()
    await one.answered.wait()
    assert (await first)["data"] == {"a": "first"}


async def test_faults_stand_one_behind_the_other(proxy: FaultProxy, via: Api, place: str) -> None:
    """A fault that forwards meets the next one, and both are named."""
    proxy.faults += [faults.Slow(0.05), faults.Unavailable503()]
    with pytest.raises(api_errors.TransientError):
        await via.get(CONFIG_MAP, "one", place)

    assert proxy.recording[-1].fault == "503 unavailable, slow"


# -- the words of the server ---------------------------------------------------------------------------------


def words(answer: Object) -> Object:
    """What a Status says, without the uid or the version that the server found."""
    return {**answer, "message": re.sub(r"in record \([^)]*\)", "in record ()", answer["message"])}


async def test_the_words_are_those_of_the_server(
    proxy: FaultProxy, via: Api, admin: Api, control_plane: ControlPlane, place: str, tmp_path: Path
) -> None:
    """What can be provoked at the real server reads the same as the fault."""
    path = f"/api/v1/namespaces/{place}/configmaps"
    await eventually(lambda: admin.get(SERVICE_ACCOUNT, "default", place))
    token = await admin.request(
        "POST", f"/api/v1/namespaces/{place}/serviceaccounts/default/token",
        body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )  # fmt: skip
    poor_path = tmp_path / "poor.kubeconfig"
    admin_token = control_plane.admin_token
    text = control_plane.kubeconfig.read_text()
    assert admin_token in text
    poor_path.write_text(text.replace(admin_token, token["status"]["token"]))
    poor = await Api.connect(field_manager="tenantry-poor", kubeconfig=proxy.kubeconfig_for(poor_path))

    async def compare(api: Api, fault: faults.Fault, method: str, where: str, query: Any = None, body: Any = None) -> None:
        begin = proxy.recording.mark()
        for faulty in (False, True):
            proxy.faults[:] = [fault] if faulty else []
            with pytest.raises(api_errors.ApiError):
                await api.request(method, where, query, body)
        real, made = proxy.recording[begin:]
        assert (real.fault, made.fault) == ("", fault.name)
        assert real.status == made.status
        if real.response is None:
            assert real.seen == made.seen
            return
        assert words(real.response) == words(made.response)

    one = config_map(place)
    old = {**one, "metadata": {**one["metadata"], "resourceVersion": "1"}}
    options = {"apiVersion": "v1", "kind": "DeleteOptions"}
    await compare(via, faults.Exists409(), "POST", path, None, one)
    await compare(via, faults.Conflict409(), "PUT", f"{path}/one", None, old)
    await compare(via, faults.Conflict409(), "DELETE", f"{path}/one", None, {**options, "preconditions": {"uid": "u"}})
    await compare(
        via, faults.Conflict409(), "DELETE", f"{path}/one", None, {**options, "preconditions": {"resourceVersion": "1"}}
    )
    await compare(via, faults.KindMissing404(), "GET", f"/apis/nothing.tenantry.dev/v1/namespaces/{place}/things/one")
    async with poor:
        for method, where in (("GET", path), ("GET", f"{path}/one"), ("GET", f"/api/v1/namespaces/{place}"), ("DELETE", path)):
            await compare(poor, faults.Forbidden403(), method, where)
        await compare(poor, faults.Forbidden403(), "POST", path, None, config_map(place, "new"))
        await compare(poor, faults.Forbidden403(), "GET", "/api/v1/configmaps", {"fieldSelector": "metadata.name=one"})
    await admin.create(SECRET, obj(SECRET, "old", place))
    await admin.create(RESOURCE_QUOTA, obj(RESOURCE_QUOTA, "full", place, spec={"hard": {"count/secrets": "1"}}))

    async def counted() -> bool:
        quota = await admin.get(RESOURCE_QUOTA, "full", place) or {}
        return bool(quota.get("status", {}).get("used", {}).get("count/secrets") == "1")

    await eventually(counted)
    await compare(via, faults.QuotaExceeded403(), "POST", SECRET.path(place), None, obj(SECRET, "new", place))
    await admin.delete(NAMESPACE, place)
    await compare(via, faults.NamespaceTerminating403(), "POST", path, None, config_map(place, "new"))
    assert from_json(proxy.recording[-1].seen)["details"]["causes"]
