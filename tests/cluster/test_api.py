"""The API adapter against a real API server: reads, server-side apply, preconditions, errors, credentials."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
import yaml
from people import user_of

from tenantry.api import Api, ConnectError, connect
from tenantry.api.errors import AlreadyExists, ConflictError, Forbidden, Invalid, KindNotServed, NamespaceNotFound, Unauthorized
from tenantry.model.difference import difference, entries_of
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, SECRET, Kind, Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj

MANAGER = "tests-api"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def api(control_plane: Any) -> AsyncIterator[Api]:
    async with await Api.connect(field_manager=MANAGER, kubeconfig=control_plane.kubeconfig) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(admin: Api) -> str:
    name = f"api-{token_hex(4)}"
    await admin.create(NAMESPACE, {"metadata": {"name": name}})
    return name


def config_map(namespace: str, name: str = "one", **data: str) -> Object:
    return obj(CONFIG_MAP, name, namespace, data=data)


async def test_get_is_none_for_what_is_not_there(api: Api, namespace: str) -> None:
    """A missing object, and one in a missing namespace, read as None; a missing kind is an error."""
    assert await api.get(CONFIG_MAP, "none", namespace) is None
    assert await api.get(CONFIG_MAP, "none", "no-such-namespace") is None
    with pytest.raises(KindNotServed):
        await api.get(Kind("tenantry.dev/v1", "Nothing", "nothings"), "x", namespace)


async def test_list_pages_until_the_end(api: Api, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list follows its continue tokens, and its items carry apiVersion and kind."""
    monkeypatch.setattr("tenantry.model.limits.PAGE_OBJECTS", 3)
    for number in range(10):
        await api.apply(CONFIG_MAP, config_map(namespace, f"page-{number}"))

    listing = await api.list(CONFIG_MAP, namespace, field_selector="metadata.name!=kube-root-ca.crt")

    assert [item["metadata"]["name"] for item in listing.items] == [f"page-{number}" for number in range(10)]
    assert {(item["apiVersion"], item["kind"]) for item in listing.items} == {("v1", "ConfigMap")}
    assert int(listing.resource_version) > 0


async def test_a_list_of_large_objects_is_read_in_pages_by_bytes(
    api: Api, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No answer of several objects is larger than the budget; one that is larger than all of it is read by itself."""
    monkeypatch.setattr("tenantry.model.limits.PAGE_BYTES", 100_000)
    sizes = [20_000] * 12 + [150_000] + [100] * 12
    for number, size in enumerate(sizes):
        body = config_map(namespace, f"large-{number:02}", text="x" * size)
        await api.apply(CONFIG_MAP, {**body, "metadata": {**body["metadata"], "labels": {"large": "yes"}}})
    pages: list[tuple[int, int]] = []
    sized = api._sized

    async def seen(*arguments: Any, most: int = 0, **more: Any) -> tuple[Object, int]:
        page, size = await sized(*arguments, most=most, **more)
        pages.append((len(page["items"]), size))
        return page, size

    monkeypatch.setattr(api, "_sized", seen)
    for version in ("", (await api.list(CONFIG_MAP, namespace, limit=1)).resource_version):
        pages.clear()
        kept: list[str] = []

        def keep(item: Object, kept: list[str] = kept) -> Object:
            kept.append(item["metadata"]["name"])
            return {"length": len(item["data"]["text"])}

        listing = await api.list(CONFIG_MAP, namespace, label_selector="large=yes", not_older_than=version, keep=keep)
        assert [item["length"] for item in listing.items] == sizes
        assert kept == [f"large-{number:02}" for number in range(len(sizes))]
        assert all(size <= 100_000 or items == 1 for items, size in pages), pages
        assert max(items for items, _ in pages) > 1
    few = await api.list(CONFIG_MAP, namespace, label_selector="large=yes", limit=7)
    assert (len(few.items), few.complete) == (7, False)


async def test_what_is_kept_of_a_kind_is_kept_of_every_answer(control_plane: Any, admin: Api, namespace: str) -> None:
    """Get, list, create, apply and patch answer with what is kept of the kind; other kinds are whole."""

    def bare(whole: Object) -> Object:
        return {name: value for name, value in whole.items() if name != "data"}

    await admin.create(CONFIG_MAP, config_map(namespace, "whole", text="x"))
    await admin.create(SECRET, {"metadata": {"name": "whole", "namespace": namespace}, "stringData": {"text": "x"}})
    async with await Api.connect(field_manager="tests", kubeconfig=control_plane.kubeconfig, keeps={CONFIG_MAP: bare}) as api:
        answers = [
            await api.get(CONFIG_MAP, "whole", namespace),
            *(await api.list(CONFIG_MAP, namespace, field_selector="metadata.name=whole")).items,
            await api.create(CONFIG_MAP, config_map(namespace, "created", text="x")),
            await api.apply(CONFIG_MAP, config_map(namespace, "applied", text="x")),
            await api.json_patch(CONFIG_MAP, "whole", namespace, [{"op": "add", "path": "/data/more", "value": "y"}]),
        ]
        secret = await api.get(SECRET, "whole", namespace)
    assert [("data" in (answer or {}), (answer or {})["metadata"]["name"]) for answer in answers] == [
        (False, name) for name in ("whole", "whole", "created", "applied", "whole")
    ]
    assert secret is not None
    assert "data" in secret


async def test_list_selects_by_label_and_field(api: Api, namespace: str) -> None:
    """Label and field selectors narrow a list on the server."""
    wanted = config_map(namespace, "labelled")
    wanted["metadata"]["labels"] = {"team": "x"}
    await api.apply(CONFIG_MAP, wanted)
    await api.apply(CONFIG_MAP, config_map(namespace, "other"))

    by_label = await api.list(CONFIG_MAP, namespace, label_selector="team=x")
    by_field = await api.list(CONFIG_MAP, namespace, field_selector="metadata.name=other")

    assert [item["metadata"]["name"] for item in by_label.items] == ["labelled"]
    assert [item["metadata"]["name"] for item in by_field.items] == ["other"]


async def test_list_that_is_no_older_than_another(api: Api, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has all that the version has that it names, page by page where the server pages."""
    monkeypatch.setattr("tenantry.model.limits.PAGE_OBJECTS", 2)
    for number in range(5):
        await api.apply(CONFIG_MAP, config_map(namespace, f"at-least-{number}"))
    first = await api.list(CONFIG_MAP, namespace, field_selector="metadata.name!=kube-root-ca.crt")
    newest = await api.apply(CONFIG_MAP, config_map(namespace, "at-least-5"))

    for version, names in ((first.resource_version, 5), (newest["metadata"]["resourceVersion"], 6)):
        found = await api.list(CONFIG_MAP, namespace, not_older_than=version)
        there = {item["metadata"]["name"] for item in found.items}
        assert {f"at-least-{number}" for number in range(names)} <= there
        assert int(found.resource_version) >= int(version)


async def test_a_version_without_contents(api: Api, namespace: str) -> None:
    """That of the object as it is now; none of one that is not there."""
    stored = await api.apply(CONFIG_MAP, config_map(namespace, "versioned"))
    assert await api.version(CONFIG_MAP, "versioned", namespace) == stored["metadata"]["resourceVersion"]
    assert await api.version(CONFIG_MAP, "nope", namespace) == ""


async def test_apply_owns_and_gives_up(api: Api, admin: Api, namespace: str) -> None:
    """What an apply leaves out is removed when it was ours, and stays when it was somebody else's."""
    await api.apply(CONFIG_MAP, config_map(namespace, a="1", b="2"))
    await admin.apply(CONFIG_MAP, config_map(namespace, foreign="3"))

    stored = await api.apply(CONFIG_MAP, config_map(namespace, a="1"))

    assert stored["data"] == {"a": "1", "foreign": "3"}


async def test_difference_agrees_with_the_server(api: Api, admin: Api, namespace: str) -> None:
    """The difference is None exactly when an apply would leave the object's version as it is."""
    steps = [
        config_map(namespace, a="1", b="2"),
        config_map(namespace, a="1", b="2"),
        config_map(namespace, a="1"),
        config_map(namespace, a="9"),
        {**config_map(namespace, a="9"), "metadata": {"name": "one", "namespace": namespace, "labels": {"x": "y"}}},
        config_map(namespace, a="9"),
    ]
    for wanted in steps:
        live = await api.get(CONFIG_MAP, "one", namespace)
        expected = difference(wanted, live, manager=MANAGER)
        stored = await api.apply(CONFIG_MAP, wanted)
        moved = live is None or stored["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"]

        assert (expected is not None) == moved
        assert difference(wanted, stored, manager=MANAGER) is None


async def test_an_update_never_resurrects(api: Api, namespace: str) -> None:
    """An apply that carries the uid of a vanished object is a conflict and makes nothing."""
    stored = await api.apply(CONFIG_MAP, config_map(namespace, a="1"))
    await api.delete(CONFIG_MAP, "one", namespace)
    body = config_map(namespace, a="2")
    body["metadata"]["uid"] = stored["metadata"]["uid"]

    with pytest.raises(ConflictError):
        await api.apply(CONFIG_MAP, body)

    assert await api.get(CONFIG_MAP, "one", namespace) is None


async def test_an_update_never_takes_a_successor(api: Api, namespace: str) -> None:
    """An apply that carries the uid of an object that was deleted and made anew is a conflict, too."""
    old = await api.apply(CONFIG_MAP, config_map(namespace, a="1"))
    await api.delete(CONFIG_MAP, "one", namespace)
    new = await api.apply(CONFIG_MAP, config_map(namespace, a="2"))
    body = config_map(namespace, a="3")
    body["metadata"]["uid"] = old["metadata"]["uid"]

    with pytest.raises(ConflictError):
        await api.apply(CONFIG_MAP, body)

    assert await api.get(CONFIG_MAP, "one", namespace) == new


async def test_create_takes_nothing_over(api: Api, admin: Api, namespace: str) -> None:
    """A create of what exists fails and changes nothing."""
    before = await admin.create(CONFIG_MAP, config_map(namespace, a="1"))

    with pytest.raises(AlreadyExists):
        await api.create(CONFIG_MAP, config_map(namespace, a="2"))

    assert await api.get(CONFIG_MAP, "one", namespace) == before


async def test_delete_needs_the_observed_state(api: Api, admin: Api, namespace: str) -> None:
    """A delete whose uid or resourceVersion no longer holds is a conflict; a second delete is fine."""
    old = await api.apply(CONFIG_MAP, config_map(namespace, a="1"))
    new = await admin.apply(CONFIG_MAP, config_map(namespace, b="2"))
    metadata = old["metadata"]

    with pytest.raises(ConflictError):
        await api.delete(CONFIG_MAP, "one", namespace, resource_version=metadata["resourceVersion"])
    with pytest.raises(ConflictError):
        await api.delete(CONFIG_MAP, "one", namespace, uid="00000000-0000-0000-0000-000000000000")
    await api.delete(CONFIG_MAP, "one", namespace, uid=metadata["uid"], resource_version=new["metadata"]["resourceVersion"])
    await api.delete(CONFIG_MAP, "one", namespace)

    assert await api.get(CONFIG_MAP, "one", namespace) is None


async def test_status_is_written_apart(api: Api, namespace: str) -> None:
    """An apply of the status subresource owns its conditions and leaves the rest alone."""
    conditions = [{"type": "tenantry.dev/Test", "status": "False", "reason": "R", "message": "m"}]
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}

    stored = await api.apply(NAMESPACE, {**body, "status": {"conditions": conditions}}, subresource="status")
    emptied = await api.apply(NAMESPACE, body, subresource="status")

    assert stored["status"]["conditions"][0]["type"] == "tenantry.dev/Test"
    assert stored["status"]["phase"] == "Active"
    assert "conditions" not in emptied["status"]
    assert entries_of(stored, MANAGER, "status")


async def test_json_patch_guards_hold(api: Api, namespace: str) -> None:
    """A JSON patch whose test fails is a conflict and changes nothing."""
    await api.apply(CONFIG_MAP, config_map(namespace, a="1"))
    operations = [{"op": "test", "path": "/data/a", "value": "2"}, {"op": "remove", "path": "/data/a"}]

    with pytest.raises(ConflictError):
        await api.json_patch(CONFIG_MAP, "one", namespace, operations)

    assert (await api.get(CONFIG_MAP, "one", namespace) or {})["data"] == {"a": "1"}


async def test_errors_have_their_kind(api: Api, namespace: str) -> None:
    """Invalid bodies and missing namespaces are told apart."""
    with pytest.raises(Invalid):
        await api.apply(CONFIG_MAP, config_map(namespace, "Not_A_Name"))
    with pytest.raises(NamespaceNotFound):
        await api.apply(CONFIG_MAP, config_map("no-such-namespace"))


@pytest.mark.parametrize("name", ["", ".", "..", "/", "a/b", "%", "%2F", "a%2e"])
async def test_what_cannot_be_a_name_names_nothing(api: Api, namespace: str, name: str) -> None:
    """A name out of somebody's spec that no object can have finds nothing, and never a list or another object."""
    assert await api.get(NAMESPACE, name) is None
    assert await api.get(CONFIG_MAP, name, namespace) is None
    if name:
        assert await api.get(CONFIG_MAP, "kube-root-ca.crt", name) is None
        assert (await api.list(CONFIG_MAP, name)).items == []


async def test_watch_tells_what_follows_a_list(api: Api, namespace: str) -> None:
    """A watch from a list's version tells each later change, and nothing earlier."""
    await api.apply(CONFIG_MAP, config_map(namespace, "before"))
    listing = await api.list(CONFIG_MAP, namespace)
    await api.apply(CONFIG_MAP, config_map(namespace, "after", a="1"))
    await api.delete(CONFIG_MAP, "after", namespace)

    seen = []
    async for change, found in api.watch(CONFIG_MAP, namespace, resource_version=listing.resource_version):
        if change != "BOOKMARK" and found["metadata"]["name"] != "kube-root-ca.crt":
            seen.append((change, found["metadata"]["name"]))
        if len(seen) == 2:
            break

    assert seen == [("ADDED", "after"), ("DELETED", "after")]


async def test_rights_that_are_missing(identity: Any) -> None:
    """A function's identity may not read Secrets: the error names the right."""
    kubeconfig = await identity("namespace-registration")
    async with await Api.connect(field_manager=MANAGER, kubeconfig=kubeconfig) as function:
        with pytest.raises(Forbidden, match="cannot list resource"):
            await function.list(SECRET)


async def test_a_token_is_read_again_from_disk(identity: Any, control_plane: Any, tmp_path: Path) -> None:
    """When the token file changes the next request has the new identity; a refused token is read again at once."""
    document = yaml.safe_load(Path(await identity("namespace-registration")).read_text())
    good = Path(document["users"][0]["user"]["tokenFile"]).read_text()
    token = tmp_path / "token"
    token.write_text(good)
    document["users"][0]["user"] = {"tokenFile": str(token)}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(document))

    async with await Api.connect(field_manager=MANAGER, kubeconfig=kubeconfig) as client:
        assert (await user_of(client))["username"] == "system:serviceaccount:tenantry-system:namespace-registration"
        token.write_text(control_plane.admin_token)
        await eventually(lambda: user_of(client), lambda user: "serviceaccount" not in user["username"], within=5)

        async def refused() -> bool:
            token.write_text("not-a-token")
            try:
                await user_of(client)
            except Unauthorized:
                return True
            return False

        assert await eventually(refused, within=5)
        token.write_text(good)
        assert (await user_of(client))["username"] == "system:serviceaccount:tenantry-system:namespace-registration"


async def test_a_pods_token_is_read_again_from_disk(
    identity: Any, control_plane: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pod the server comes from the environment and the identity from the projected files, replaced ones included."""
    document = yaml.safe_load(Path(await identity("namespace-registration")).read_text())
    good = Path(document["users"][0]["user"]["tokenFile"]).read_text()
    (tmp_path / "token").write_text(good)
    (tmp_path / "ca.crt").write_text(Path(control_plane.ca_file).read_text())
    (tmp_path / "namespace").write_text("tenantry-system")
    where = urlsplit(control_plane.server_url)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(where.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(where.port))
    monkeypatch.setattr(connect, "SERVICE_ACCOUNT_DIR", tmp_path)

    assert connect.current_namespace() == "tenantry-system"
    async with await Api.connect(field_manager=MANAGER) as client:
        assert (await user_of(client))["username"] == "system:serviceaccount:tenantry-system:namespace-registration"
        replacement = tmp_path / "next"
        replacement.write_text(control_plane.admin_token)
        replacement.replace(tmp_path / "token")  # as the kubelet does
        await eventually(lambda: user_of(client), lambda user: "serviceaccount" not in user["username"], within=5)


async def test_nothing_to_talk_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a kubeconfig the message says what to set; with a broken one it names the file."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConnectError, match="set KUBECONFIG"):
        await Api.connect(field_manager=MANAGER)
    broken = tmp_path / "broken"
    broken.write_text("- not a mapping")
    with pytest.raises(ConnectError, match="broken"):
        await Api.connect(field_manager=MANAGER, kubeconfig=broken)
