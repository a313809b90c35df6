"""Dead letters: the sink behind its HTTP entry, under its own identity, with a real API server."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from letters import FUNCTION, MOST_BYTES, MOST_LETTERS, Sender, empty, kept, refused, sinks, size, stored, tenantry, writes
from people import token
from times import LEFT_TO_MAKE_WHOLE, until

from tenantry.api import Api
from tenantry.api.errors import Forbidden
from tenantry.local.control_plane import ControlPlane
from tenantry.model.event import Event
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, SECRET, Object, labels_of
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.cloudevents import encode_binary, encode_structured
from tenantry.testing.audit import AuditLog
from tenantry.testing.objects import obj

STORED_S = 5.0


# -- what is kept ----------------------------------------------------------------------------------------------------


async def test_a_letter_is_key_and_reason(url: str, sender: Sender, admin: Api, control_plane: ControlPlane) -> None:
    """When the broker is answered the key, the reason and the count are stored; the data are neither stored nor shown."""
    secret = {"metadata": {"name": "team-a"}, "data": {"password": "s3cret-payload"}}
    for number in range(3):
        assert await sender.send(url + FUNCTION, refused("team-a", identity=str(number), data=secret)) == 204

    live = await stored(admin)
    (letter,) = await kept(admin)
    assert (letter.function, letter.key, letter.status, letter.count) == (FUNCTION, "Namespace/team-a", 503, 3)
    assert letter.reason == "the API server is away"
    assert "s3cret" not in json.dumps(live)
    assert labels_of(live)["app.kubernetes.io/part-of"] == "tenantry"

    code, text, errors = await tenantry(control_plane.kubeconfig)
    assert code == 0, errors
    assert text.splitlines()[1].split()[:4] == [FUNCTION, "Namespace/team-a", "503", "3"]
    assert text.splitlines()[1].endswith("the API server is away")
    assert "\x1b" not in text, "colours are for terminals"
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        _, text, _ = await tenantry(control_plane.kubeconfig, "-o", output)
        shown = read(text)
        assert shown["dropped"] == 0
        assert [(each["key"], each["count"]) for each in shown["letters"]] == [("Namespace/team-a", 3)]
        assert "s3cret" not in text


async def test_of_one_event_the_reasons_of_both_functions_are_kept(url: str, sender: Sender, admin: Api) -> None:
    """Two functions give one event up: both are told, each with its own reason, also where Knative says nothing of who it was."""
    one = refused("team-b", reason="no quota")
    other = Event(one.id, one.source, one.type, extensions={k: v for k, v in one.extensions.items() if "knative" not in k})
    assert await sender.send(url + FUNCTION, one) == 204
    assert await sender.send(url + "release-provisioning", other) == 204
    found = {letter.function: (letter.key, letter.status, letter.reason) for letter in await kept(admin)}

    assert found == {
        FUNCTION: ("Namespace/team-b", 503, "no quota"),
        "release-provisioning": ("Namespace/team-b", 0, "the broker passed no reason on"),
    }


async def test_the_same_event_again_counts_once(url: str, sender: Sender, admin: Api) -> None:
    """A broker that got no answer sends a letter again: that is no second failure."""
    for _ in range(3):
        assert await sender.send(url + FUNCTION, refused("team-c")) == 204

    assert [letter.count for letter in await kept(admin)] == [1]


@LEFT_TO_MAKE_WHOLE
async def test_the_store_is_bounded_and_the_oldest_go_first(url: str, sender: Sender, admin: Api, audit_log: AuditLog) -> None:
    """More keys than there is room for: the newest are kept, what had to go is counted, and writes are as few as seconds."""
    written, began = writes(audit_log), asyncio.get_running_loop().time()
    for part in range(7):
        answers = await asyncio.gather(
            *(sender.send(url + FUNCTION, refused(f"n-{part}-{number}", reason="x" * 190)) for number in range(100))
        )
        assert set(answers) == {204}
    book = await kept(admin)
    keys = [letter.key for letter in book]
    elapsed = asyncio.get_running_loop().time() - began

    assert len(book) <= MOST_LETTERS
    assert len(book) + book.dropped == 700
    assert {f"Namespace/n-{part}-{number}" for part in (5, 6) for number in range(100)} <= set(keys)
    assert not [key for key in keys if key.startswith("Namespace/n-0-")]
    assert size(await stored(admin)) < MOST_BYTES
    assert writes(audit_log) - written <= elapsed + 3


@pytest.mark.parametrize("structured", [True, False])
async def test_either_mode_is_taken(url: str, sender: Sender, admin: Api, structured: bool) -> None:
    """Brokers send binary mode; a small event in structured mode is taken as well."""
    headers, body = (encode_structured if structured else encode_binary)(refused("team-d", data={"a": "s3cret"}))

    assert await sender.post(url + FUNCTION, headers, body) == 204
    assert [letter.key for letter in await kept(admin)] == ["Namespace/team-d"]
    assert "s3cret" not in json.dumps(await stored(admin))


@pytest.mark.parametrize(
    ("headers", "body", "status", "reason"),
    [
        ({}, b"garbage", 400, "no CloudEvents attributes in the headers"),
        ({"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s"}, b"", 400, "type is missing"),
        ({"content-type": "application/cloudevents+json"}, b"{" + b" " * 70_000, 413, "body too large"),
        ({"content-type": "application/cloudevents-batch+json"}, b"[]", 415, "batches and event formats other than JSON"),
    ],
)
async def test_what_is_no_event_is_refused_and_counted(
    url: str, sender: Sender, admin: Api, headers: dict[str, str], body: bytes, status: int, reason: str
) -> None:
    """A request that is no event is refused in constant words; that it came is kept, in one letter for all of them."""
    for _ in range(3):
        assert await sender.post(url + FUNCTION, headers, body) == status
    (letter,) = await kept(admin)

    assert (letter.function, letter.key, letter.count) == (FUNCTION, "unreadable", 3)
    assert letter.reason.startswith(reason)


async def test_the_body_is_not_waited_for(url: str, admin: Api) -> None:
    """An event of 100 MB is answered, and its letter stored, when its headers and a first kilobyte have come."""

    def exchange() -> bytes:
        headers, _ = encode_binary(refused("team-e"))
        host, port = url.removeprefix("http://").rstrip("/").split(":")
        lines = [f"POST /{FUNCTION} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in headers.items())]
        lines += ["Content-Type: application/json", "Content-Length: 100000000"]
        with closing(socket.create_connection((host, int(port)), timeout=STORED_S)) as connection:
            connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + b"x" * 1024)
            return connection.recv(1024)

    assert (await asyncio.to_thread(exchange)).startswith(b"HTTP/1.1 204")
    assert [letter.key for letter in await kept(admin)] == ["Namespace/team-e"]


async def test_names_that_could_hurt_a_terminal_are_shown_without_harm(
    url: str, sender: Sender, admin: Api, control_plane: ControlPlane
) -> None:
    """Whatever a sender writes into attributes, the list is printable, with one line of bounded length for each letter."""
    evil = "\u202eevil\u2028" + "x" * 5000
    assert await sender.send(url + FUNCTION, refused(evil, reason="\x1b[2J\x07\r\nroot# " * 40)) == 204
    code, text, _ = await tenantry(control_plane.kubeconfig)
    assert code == 0
    head, line = text.splitlines()
    assert (head + line).isprintable()
    assert len(line) < 1000

    code, text, _ = await tenantry(control_plane.kubeconfig, "replay", "--all", "--broker", "http://127.0.0.1:1/")
    assert code == 1
    assert "not sent: it does not say what to look at" in text
    assert len(await kept(admin)) == 1


# -- who writes ------------------------------------------------------------------------------------------------------


async def test_replicas_lose_nothing_to_each_other(sink_identity: Path, tmp_path: Path, admin: Api, sender: Sender) -> None:
    """Two replicas and a person write at once: every letter that was answered is there, with the sum of the counts."""
    await empty(admin)
    async with sinks(2, sink_identity, tmp_path) as replicas:
        urls = [address for _, address in replicas]

        async def letter(number: int) -> int:
            name = f"both-{number % 20}" if number % 3 == 0 else f"own-{number}"
            return await sender.send(urls[number % 2] + FUNCTION, refused(name, identity=str(number)))

        async def person() -> None:
            for _ in range(10):
                await tenantry_store(admin)

        answers, _ = await asyncio.gather(asyncio.gather(*(letter(number) for number in range(400))), person())
    book = await kept(admin)

    assert set(answers) == {204}
    assert book.dropped == 0
    assert sum(each.count for each in book) == 400
    assert len(book) == 20 + len([number for number in range(400) if number % 3])


async def tenantry_store(admin: Api) -> None:
    """A write beside the replicas' own."""
    live = await stored(admin)
    if live is not None:
        await admin.json_patch(
            CONFIG_MAP,
            live["metadata"]["name"],
            SYSTEM_NAMESPACE,
            [{"op": "add", "path": "/metadata/annotations", "value": {"somebody": token()}}],
        )
    await asyncio.sleep(0.1)


async def test_what_was_answered_survives_a_kill(sink_identity: Path, tmp_path: Path, admin: Api, sender: Sender) -> None:
    """One of two replicas is killed while letters come: each that was answered is stored, and the other goes on."""
    await empty(admin)
    answered: set[str] = set()
    async with sinks(2, sink_identity, tmp_path) as replicas:
        (doomed, first), (_, second) = replicas

        async def letter(number: int) -> None:
            name = f"killed-{number}"
            for address in (first, second):  # a broker tries again; its next try meets the other replica
                if await sender.send(address + FUNCTION, refused(name)) == 204:
                    answered.add(f"Namespace/{name}")
                    return

        async def kill() -> None:
            await until(lambda: len(answered) > 20, within=STORED_S, what="the first answers")
            doomed.kill()

        await asyncio.gather(kill(), *(letter(number) for number in range(200)))
    found = {each.key for each in await kept(admin)}

    assert len(answered) == 200
    assert answered <= found


async def test_sigterm_stores_what_was_taken(sink_identity: Path, tmp_path: Path, admin: Api, sender: Sender) -> None:
    """A sink that is ended answers and stores what it has in hand, without waiting for the next second, and exits with 0."""
    await empty(admin)
    async with sinks(1, sink_identity, tmp_path) as ((process, address),):
        assert await sender.send(address + FUNCTION, refused("first")) == 204
        later = asyncio.create_task(sender.send(address + FUNCTION, refused("second")))
        await asyncio.sleep(0.1)  # it waits for its turn to write, which cannot be seen from outside
        process.terminate()

        assert await later == 204
        assert await asyncio.wait_for(process.wait(), 20) == 0
    assert [each.key for each in await kept(admin)] == ["Namespace/first", "Namespace/second"]


async def test_the_identity_reaches_its_one_object(sink_identity: Path, admin: Api) -> None:
    """Whoever has the sink's token reads and writes the dead letters and nothing else: no other ConfigMap, no Secret, no list."""
    body: Object = obj(CONFIG_MAP, "other", SYSTEM_NAMESPACE)
    home: Object = obj(CONFIG_MAP, "tenantry-dead-letters", "default")
    async with await Api.connect(field_manager="tests-thief", kubeconfig=sink_identity) as thief:
        assert await thief.get(CONFIG_MAP, "tenantry-dead-letters", SYSTEM_NAMESPACE) == await stored(admin)
        for attempt in (
            lambda: thief.list(CONFIG_MAP, SYSTEM_NAMESPACE),
            lambda: thief.get(CONFIG_MAP, "kube-root-ca.crt", SYSTEM_NAMESPACE),
            lambda: thief.apply(CONFIG_MAP, body),
            lambda: thief.create(CONFIG_MAP, body),
            lambda: thief.apply(CONFIG_MAP, home),
            lambda: thief.delete(CONFIG_MAP, "tenantry-dead-letters", SYSTEM_NAMESPACE),
            lambda: thief.list(SECRET, SYSTEM_NAMESPACE),
            lambda: thief.list(NAMESPACE),
        ):
            with pytest.raises(Forbidden):
                await attempt()


async def test_a_store_that_somebody_broke_is_begun_anew(url: str, sender: Sender, admin: Api) -> None:
    """Whatever stands in the ConfigMap, the next letter is stored."""
    assert await sender.send(url + FUNCTION, refused("before")) == 204
    await admin.json_patch(
        CONFIG_MAP,
        "tenantry-dead-letters",
        SYSTEM_NAMESPACE,
        [{"op": "replace", "path": "/data", "value": {"letters.json": "{"}}],
    )
    assert await sender.send(url + FUNCTION, refused("after")) == 204

    assert [each.key for each in await kept(admin)] == ["Namespace/after"]
