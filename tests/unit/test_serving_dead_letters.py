"""Dead letters as values: what is kept of an event, how much of it, what goes first, and what a replay sends."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tenantry.api.errors import TransientError
from tenantry.engine.request import Look, RunOwner, Sweep, request_of
from tenantry.local.deployment import deployment_folder
from tenantry.local.filters import attributes_of
from tenantry.local.manifests import load
from tenantry.model import limits
from tenantry.model.event import PING_TYPE, RECONCILE_REQUESTED_TYPE, Event
from tenantry.serving.cloudevents import encode_binary, parse_event
from tenantry.serving.dead_letters.book import Book
from tenantry.serving.dead_letters.letter import NO_REASON, UNKNOWN, Letter, clipped, letter_of, replayed, unreadable
from tenantry.serving.dead_letters.store import Collector
from tenantry.testing import eventually

AT = "2026-01-02T03:04:05Z"
FUNCTION = "release-provisioning"
CHART = {"apiversion": "helm.cattle.io/v1", "kind": "HelmChart", "namespace": "ns", "name": "web", "watch": FUNCTION}
NAMESPACE = {"apiversion": "v1", "kind": "Namespace", "namespace": "", "name": "team-a", "watch": "namespace-registration"}


def event(extensions: dict[str, str] | None = None, kind: str = "dev.knative.apiserver.ref.update", **more: Any) -> Event:
    return Event("1", "/source", kind, extensions=extensions or {}, **more)


def refused(reason: str, status: str = "503") -> dict[str, str]:
    return {"knativeerrorcode": status, "knativeerrordata": base64.b64encode(reason.encode()).decode()}


def letter(number: int = 0, **changes: Any) -> Letter:
    return replace(Letter("f", f"Namespace/{number}", 503, "why", 1, AT, AT, str(number), {"kind": "Namespace"}), **changes)


@pytest.mark.parametrize(
    ("given", "key"),
    [
        (event(NAMESPACE), "Namespace/team-a"),
        (event(CHART), "HelmChart.helm.cattle.io/ns/web"),
        (event({"unit": "projects", "owner": "project/p-a"}, RECONCILE_REQUESTED_TYPE), "projects:project/p-a"),
        (event({"resync": FUNCTION}, PING_TYPE), "sweep"),
        (event({}, "com.example.thing", subject="x"), "com.example.thing x"),
        (event({"kind": "Namespace"}), "dev.knative.apiserver.ref.update"),
    ],
)
def test_the_key_is_what_the_event_is_about(given: Event, key: str) -> None:
    """A letter is named by the object, the owner or the schedule that its event was about; the path says by which function."""
    found = letter_of(replace(given, extensions={**given.extensions, **refused("busy")}), "/lock-enforcement", AT)

    assert (found.function, found.key) == ("lock-enforcement", key)
    assert (found.status, found.reason, found.count, found.first, found.last) == (503, "busy", 1, AT, AT)


@pytest.mark.parametrize(
    ("path", "extensions", "function"),
    [
        ("/", {"watch": "a"}, "a"),
        ("/", {"function": "b"}, "b"),
        ("/", {"resync": "c"}, "c"),
        ("/d/e", {}, UNKNOWN),
        ("/../x", {}, UNKNOWN),
        ("/" + "a" * 64, {}, UNKNOWN),
        ("/A%0a", {"watch": "\u202e"}, UNKNOWN),
    ],
)
def test_without_a_path_the_event_says_whose_it_was(path: str, extensions: dict[str, str], function: str) -> None:
    """Where the path names no function the event's own extensions do; what can be no function's name is none."""
    assert letter_of(event(extensions), path, AT).function == function


@pytest.mark.parametrize(
    ("attributes", "status", "reason"),
    [
        ({}, 0, NO_REASON),
        ({"knativeerrorcode": "500"}, 500, NO_REASON),
        ({"knativeerrorcode": "-1", "knativeerrordata": "plain words!"}, 0, "plain words!"),
        ({"knativeerrorcode": "²", "knativeerrordata": base64.b64encode(b"\xff\x1b[31m").decode()}, 0, "��[31m"),
        ({"knativeerrorcode": "99999"} | {"knativeerrordata": base64.b64encode(b"x" * 900).decode()}, 0, "x" * 199 + "…"),
    ],
)
def test_the_reason_may_be_missing_or_anything(attributes: dict[str, str], status: int, reason: str) -> None:
    """Knative leaves its attributes out at times, and anybody may send others: what is kept is short and printable."""
    found = letter_of(event({**NAMESPACE, **attributes}), "/f", AT)

    assert (found.status, found.reason) == (status, reason)


def test_nothing_of_the_data_is_kept() -> None:
    """Whatever an event holds, its letter has attributes only, each cut, printable, and from a list."""
    secret, long = "s3cret", "n\x1b" + "x" * 100_000
    data = {"metadata": {"name": secret}, "data": {"password": secret}}
    given = {**CHART, "name": long, "namespace": long, "evil": secret, "traceparent": secret}
    found = letter_of(event(given, data=data, subject=long), "/f", AT)
    text = json.dumps(found.document(), ensure_ascii=False)

    assert secret not in text
    assert text.isprintable()
    assert len(text) < 2000
    assert set(found.about) == {"apiversion", "kind", "namespace", "name", "watch"}
    assert replayed(found) is None, "a name that was cut is another object's"


@pytest.mark.parametrize("text", ["a\x00b", "a\x1b[2Jb", "a\u202eb", "a\u2028b", "a\nb", "a\x85b", "a\ud800b"])
def test_what_no_terminal_should_see_is_replaced(text: str) -> None:
    """Control characters, line ends, marks of direction and lone surrogates do not get through."""
    found = clipped(text, 20)

    assert found.isprintable()
    assert found.startswith("a")
    assert found.endswith("b")
    found.encode()


def test_one_name_is_one_letter() -> None:
    """Events of one name are one letter with a count, the first and the last time, and the last reason; a repeat counts once."""
    book = Book()
    book.add(letter(1, event="x"))
    book.add(letter(2))
    book.add(letter(1, event="y", reason="later", last="2026-01-03T00:00:00Z"))
    book.add(letter(1, event="y", reason="later", last="2026-01-04T00:00:00Z"))
    book.add(letter(1, function="other"))

    assert [(each.function, each.key, each.count) for each in book] == [
        ("f", "Namespace/2", 1),
        ("f", "Namespace/1", 2),
        ("other", "Namespace/1", 1),
    ]
    (_, found, _) = book
    assert (found.first, found.last, found.reason) == (AT, "2026-01-04T00:00:00Z", "later")


def test_a_book_has_a_bounded_number_of_letters() -> None:
    """The letter that was quiet for longest goes first, and is counted."""
    book = Book()
    for number in range(limits.DEAD_LETTERS + 10):
        book.add(letter(number))
        book.add(letter(3, event=f"again {number}"))

    assert (len(book), book.dropped) == (limits.DEAD_LETTERS, 10)
    assert "Namespace/3" in [each.key for each in book]
    assert next(iter(book)).key == "Namespace/11"
    assert list(book)[-1].count == limits.DEAD_LETTERS + 11


def test_a_book_has_a_bounded_size() -> None:
    """Letters as long as they can be: as many of the last as fit into the limit, and the text says how many had to go."""
    book = Book()
    about = {"apiversion": "ä" * 317, "kind": "ä" * 63, "namespace": "ä" * 63, "name": "ä" * 253}
    for number in range(limits.DEAD_LETTERS):
        book.add(letter(number, about=about, reason="ä" * 200))
    text = book.text()

    assert limits.DEAD_LETTERS_BYTES * 0.98 < len(text.encode()) <= limits.DEAD_LETTERS_BYTES
    assert 50 < len(book) < limits.DEAD_LETTERS
    assert book.dropped == limits.DEAD_LETTERS - len(book)
    assert [each.key for each in Book.of(text)] == [f"Namespace/{number}" for number in range(book.dropped, limits.DEAD_LETTERS)]


def test_a_book_reads_what_it_wrote() -> None:
    """The text of a book is the book."""
    book = Book()
    book.dropped = 7
    for each in (letter(1), letter(2, reason='"\\ü\u2026'), unreadable("/f", "no type", AT)):
        book.add(each)
    again = Book.of(book.text())

    assert (list(again), again.dropped, again.text()) == (list(book), 7, book.text())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "null",
        "[" * 100_000,
        '{"dropped": "x", "letters": []}',
        '{"dropped": 0, "letters": 7}',
        json.dumps({"dropped": 0, "letters": [None, {}, {"about": 1}, {**letter().document(), "count": []}]}),
        json.dumps({"dropped": 0, "letters": [{**letter().document(), "function": "\x1b"}]}),
        json.dumps({"dropped": 0, "letters": [{**letter().document(), "about": {"kind": 7}}]}),
    ],
)
def test_what_somebody_broke_is_left_out(text: str) -> None:
    """A store that somebody edited is read as far as it makes sense, and never ends who reads it."""
    assert list(Book.of(text)) == []


def test_what_somebody_wrote_is_cut_like_what_was_sent() -> None:
    """Reading cuts and replaces as writing does."""
    (found,) = Book.of(json.dumps({"dropped": -1, "letters": [{**letter().document(), "key": "\x1b" * 9999, "count": -5}]}))

    assert found.key.isprintable()
    assert len(found.key) <= 1024
    assert found.count == 1


def test_two_writers_keep_both_letters_in_order_of_time() -> None:
    """Merging keeps what either side has, the later reason, and the order of time."""
    stored, pending = Book(), Book()
    stored.add(letter(1, count=3, last="2026-01-02T03:04:06Z"))
    stored.add(letter(2, last="2026-01-02T03:04:09Z"))
    pending.add(letter(3, last="2026-01-02T03:04:07Z"))
    pending.add(letter(1, event="new", reason="now", last="2026-01-02T03:04:08Z"))
    before = pending.text()
    stored.merge(pending)

    assert [(each.key, each.count) for each in stored] == [("Namespace/3", 1), ("Namespace/1", 4), ("Namespace/2", 1)]
    assert pending.text() == before


def test_only_what_was_seen_is_removed() -> None:
    """A letter to which something was added meanwhile stays."""
    book = Book()
    book.add(letter(1))
    seen = next(iter(book))
    book.add(letter(1, event="another"))
    book.remove(seen)
    assert len(book) == 1
    book.remove(next(iter(book)))
    assert len(book) == 0


@pytest.mark.parametrize(
    "trigger", load(deployment_folder("knative") / "base" / "broker.yaml", deployment_folder("triggers")).triggers
)
def test_a_replay_reaches_the_function_that_gave_up(trigger: Any) -> None:
    """For what any Trigger passes on, the replay of its letter reaches that function, asks for the same, and wakes nobody new."""
    triggers = load(deployment_folder("knative") / "base" / "broker.yaml", deployment_folder("triggers")).triggers
    function = trigger.subscriber.ref.name
    samples = [
        event({"apiversion": api_version, "kind": kind, "namespace": "ns", "name": "web", **route})
        for api_version, kind in (("v1", "Namespace"), ("v1", "Secret"), ("helm.cattle.io/v1alpha1", "HelmRelease"))
        for route in ({"watch": function}, {"locked": "records"}, {"locked": "true"})
    ]
    samples += [event({"resync": function}, PING_TYPE)]
    samples += [event({"function": function, "unit": "u", "owner": "o/x"}, RECONCILE_REQUESTED_TYPE)]
    passed = [each for each in samples if trigger.filter.matches(each)]
    for each in passed:
        again = replayed(letter_of(each, f"/{function}", AT))
        assert again is not None
        before, after = ({some.subscriber.ref.name for some in triggers if some.filter.matches(one)} for one in (each, again))
        assert function in after
        assert after <= before
        wanted, found = request_of(each, function), request_of(parse_event(*encode_binary(again)), function)
        assert isinstance(found, Look | RunOwner | Sweep)
        assert found == wanted
        assert attributes_of(again)["source"] == "/tenantry/dead-letters"


@pytest.mark.parametrize(
    "given",
    [
        unreadable("/f", "no type", AT),
        letter_of(event({}, "com.example.thing"), "/f", AT),
        Letter(UNKNOWN, "Namespace/a", about={"kind": "Namespace", "name": "a"}),
        letter_of(event({**NAMESPACE, "name": "a\x07"}), "/f", AT),
    ],
)
def test_what_names_nothing_is_not_replayed(given: Letter) -> None:
    """What is no event, of no type of ours, of no function, or has a damaged name is not sent to anybody."""
    assert replayed(given) is None


class Cluster:
    """In place of the store: counts writes, and fails as long as it is told to."""

    def __init__(self) -> None:
        self.book = Book()
        self.writes: list[float] = []
        self.away = False

    async def change(self, edit: Callable[[Book], None]) -> Book:
        self.writes.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0)
        if self.away:
            raise TransientError("away")
        edit(self.book)
        return self.book


async def test_writes_are_few_whatever_comes_in() -> None:
    """Letters of a moment are stored together: one write, then one for each pause; each is stored when its sender is answered."""
    cluster = Cluster()
    collector = Collector(cluster, pause_s=0.1)  # type: ignore[arg-type]

    async def send(number: int) -> None:
        await asyncio.sleep(number * 0.005)
        await collector.take(letter(number % 8, event=str(number)))
        assert f"Namespace/{number % 8}" in [each.key for each in cluster.book]

    began = asyncio.get_running_loop().time()
    await asyncio.gather(*(send(number) for number in range(limits.DEAD_LETTER_SENDERS)))
    elapsed = asyncio.get_running_loop().time() - began
    await collector.close()

    assert sum(each.count for each in cluster.book) == limits.DEAD_LETTER_SENDERS
    assert len(cluster.writes) <= elapsed / 0.1 + 2
    gaps = [later - sooner for sooner, later in itertools.pairwise(cluster.writes[:-1])]
    assert all(gap >= 0.095 for gap in gaps), gaps


async def test_a_flood_does_not_wait() -> None:
    """Beyond a number of senders that wait for the write the next are answered at once; their letters are stored all the same."""
    cluster = Cluster()
    collector = Collector(cluster, pause_s=30)  # type: ignore[arg-type]
    await collector.take(letter(0))
    held = [asyncio.create_task(collector.take(letter(number))) for number in range(1, limits.DEAD_LETTER_SENDERS + 1)]
    await asyncio.sleep(0)
    async with asyncio.timeout(1):
        for number in range(limits.DEAD_LETTER_SENDERS + 1, limits.DEAD_LETTERS + 100):
            await collector.take(letter(number))
    await collector.close()
    await asyncio.gather(*held)

    assert (len(cluster.book), len(cluster.writes)) == (limits.DEAD_LETTERS, 2)
    assert cluster.book.dropped == 100


async def test_what_could_not_be_stored_is_told_and_stored_later() -> None:
    """While the API server is away senders hear so, and what they sent is stored when it is back, without their asking again."""
    cluster = Cluster()
    cluster.away = True
    collector = Collector(cluster, pause_s=0.01)  # type: ignore[arg-type]
    with pytest.raises(TransientError):
        await collector.take(letter(1))
    with pytest.raises(TransientError):
        await collector.take(letter(2))
    cluster.away = False

    async def stored() -> bool:
        return len(cluster.book) == 2

    await eventually(stored, within=5)
    await collector.close()

    assert [each.count for each in cluster.book] == [1, 1]


async def test_the_end_waits_for_no_pause() -> None:
    """A process that ends writes what it has at once, and ends too when it cannot."""
    cluster = Cluster()
    collector = Collector(cluster, pause_s=60)  # type: ignore[arg-type]
    await collector.take(letter(1))
    waiting = asyncio.create_task(collector.take(letter(2)))
    await asyncio.sleep(0)
    cluster.away = True
    async with asyncio.timeout(1):
        await collector.close()
    with pytest.raises(TransientError):
        await waiting

    assert len(cluster.writes) == 2
