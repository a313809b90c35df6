"""The queue between watch and sink: the newest state of every object, in order, and nothing lost."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenantry.local.backlog import Backlog, Change, Verb
from tenantry.model.event import Event
from tenantry.model.kinds import Key


def change(verb: Verb, name: str, state: int = 0) -> Change:
    return Change(verb, Key("v1", "ConfigMap", "a", name), name, {"state": state})


def event_of(each: Change) -> Event:
    return Event(id="1", source="/s", type=each.verb, subject=each.subject, data=each.obj)


def backlog(sink: Any, **options: Any) -> Backlog:
    return Backlog(sink, event_of, say=lambda _: None, **options)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (["add", "update", "update"], ["add"]),
        (["update", "update"], ["update"]),
        (["add", "delete"], ["delete"]),
        (["delete", "add"], ["add"]),
        (["update", "delete", "add", "update"], ["add"]),
    ],
)
async def test_changes_that_wait_become_one(changes: list[Verb], told: list[str]) -> None:
    """Of several changes of one object only the newest state is sent, as add while nobody was told of it."""
    sent: list[Event] = []

    async def sink(event: Event) -> int:
        sent.append(event)
        return 202

    queue = backlog(sink)
    for state, verb in enumerate(changes):
        queue.put(change(verb, "x", state))
    await queue.drain()

    assert [event.type for event in sent] == told
    assert sent[-1].data == {"state": len(changes) - 1}


async def test_a_slow_send_holds_up_only_its_own_object() -> None:
    """While one send hangs all others go on; later changes of the same object wait for it and arrive after it."""
    gate, others, sent = asyncio.Event(), asyncio.Event(), list[tuple[str, str]]()

    async def sink(event: Event) -> int:
        if event.subject == "slow" and event.type == "add":
            await gate.wait()
        sent.append((event.type, str(event.subject)))
        if len(sent) == 20:
            others.set()
        return 202

    queue = backlog(sink, concurrency=2)
    queue.put(change("add", "slow"))
    await asyncio.sleep(0)
    for number in range(20):
        queue.put(change("add", f"fast{number}"))
    queue.put(change("update", "slow"))
    await asyncio.wait_for(others.wait(), 5)
    assert all(name != "slow" for _, name in sent)
    gate.set()
    await queue.drain()

    assert sent[20:] == [("add", "slow"), ("update", "slow")]


async def test_a_sink_that_raises_costs_one_event() -> None:
    """An unexpected error of the sink drops its event and leaves the queue working."""
    sent: list[str] = []

    async def sink(event: Event) -> int:
        if event.subject == "bad":
            raise RuntimeError("bug")
        sent.append(str(event.subject))
        return 202

    queue = backlog(sink)
    for name in ("bad", "good"):
        queue.put(change("add", name))
    await queue.drain()

    assert (sent, queue.refused, queue.sent) == (["good"], 1, 1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["add", "update", "delete"]), st.booleans()), max_size=40))
def test_the_last_state_of_every_object_arrives_last(steps: list[tuple[int, Verb, bool]]) -> None:
    """Whatever the order of changes and sends, never two of one object at once, and the newest one last."""

    async def run() -> None:
        running: set[str] = set()
        seen: dict[str, list[int]] = defaultdict(list)

        async def sink(event: Event) -> int:
            name = str(event.subject)
            assert name not in running
            running.add(name)
            await asyncio.sleep(0)
            running.discard(name)
            assert isinstance(event.data, dict)
            seen[name].append(event.data["state"])
            return 202

        queue = backlog(sink, concurrency=2)
        last: dict[str, int] = {}
        for state, (which, verb, pause) in enumerate(steps):
            queue.put(change(verb, str(which), state))
            last[str(which)] = state
            if pause:
                await asyncio.sleep(0)
        await queue.drain()
        assert {name: states[-1] for name, states in seen.items()} == last
        assert all(states == sorted(states) for states in seen.values())
        assert queue.waiting == 0

    asyncio.run(run())
