"""What `tenantry console` is made of, without a cluster: its page, when a map is a new one, and decisions as they come."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from map_objects import NOW as AT
from map_objects import said

from tenantry.cli.standing.page import data_text
from tenantry.cli.standing.read import Standing, marks, tells
from tenantry.kit.console.decided import KEPT, newer, shown
from tenantry.kit.console.live import News, drawn
from tenantry.kit.console.page import page, policy
from tenantry.model.config import Config
from tenantry.model.event import DECISION_TYPE
from tenantry.model.flux.names import TENANT
from tenantry.model.kinds import Object
from tenantry.model.limits import MIB
from tenantry.model.map import MapSeen
from tenantry.serving.ledger.asked import shown_time
from tenantry.serving.ledger.record import Told, told_in
from tenantry.serving.ledger.store import Ledger
from tenantry.testing.objects import obj

TEAM = {"apiVersion": "v1", "kind": "Namespace", "name": "team-a"}
NOW = 1_700_000_000_000


def test_the_policy_lets_this_page_run_and_nothing_else() -> None:
    """The digests in it are those of the page's script and style, and the page has no other; whatever the map says."""
    text = page(data_text({"version": 1, "at": "<script>alert(1)</script><style>@SCRIPT@@POLICY@</style>"}))
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        (found,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(found.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy()
    assert "unsafe" not in policy()
    assert policy().split("; ")[:-1] == re.findall('Content-Security-Policy" content="(.*?)"', text)[0].split("; ")
    assert "@SCRIPT@@POLICY@" in text, "what the cluster says is no place of the template"


def _standing(message: str) -> Standing:
    tenant = obj(TENANT, "a", status=said("Ready", "False", "R", message))
    return Standing(MapSeen({TENANT: [tenant]}, Config(), tells=tells(), marks=marks()))


def test_a_map_is_new_when_more_differs_than_ages() -> None:
    """Two looks at the same cluster have one digest, though an age grows; another message is another map."""
    text, first = drawn(_standing("wrong"), 3, AT)
    later, again = drawn(_standing("wrong"), 3, AT + timedelta(minutes=5))
    assert (later == text, again == first) == (False, True)
    assert drawn(_standing("worse"), 3, AT)[1] != first
    assert json.loads(text)["version"] == 3
    missing = replace(_standing("wrong").seen, missing=("x",))
    assert drawn(Standing(missing), 3, AT)[1] != first


def told(number: int, **more: object) -> Told:
    """A decision of a run that made a namespace."""
    data = {
        "type": DECISION_TYPE, "instance": "f-1", "sequence": number, "function": "f", "service": "f",
        "time": shown_time(NOW + number), "unit": "projects", "owner": "project/p-a", "causes": [{**TEAM, "event": "e"}],
        "inputs": [], "writes": [{"verb": "create", **TEAM, "resourceVersion": "1"}], "beganMs": NOW + number, "durationMs": 7,
        "verdict": {"status": 204, "reason": "done", "complete": True}, **more,
    }  # fmt: skip
    return told_in(data)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A new one."""
    made = Ledger(tmp_path / "ledger.db", max_age_days=3650, max_bytes=100 * MIB)
    made.open()
    yield made
    made.close()


def test_decisions_come_once(ledger: Ledger) -> None:
    """What was read is not read again; of very many at once the newest are; a file that is begun anew is read from its start."""
    assert newer(ledger.path, 0) == (0, ())
    ledger.add([(told(1), "")])
    newest, found = newer(ledger.path, 0)
    assert [each["sequence"] for each in found] == [1]
    assert newer(ledger.path, newest) == (newest, ())
    ledger.add([(told(number), "") for number in range(2, KEPT + 12)])
    after, found = newer(ledger.path, newest)
    assert [each["sequence"] for each in found] == [*range(12, KEPT + 12)]
    assert len(newer(ledger.path, after + 5)[1]) == KEPT


def test_a_decision_has_the_words_of_history(ledger: Ledger) -> None:
    """Who, for whom, how it ended; because of what; each write with its object; what was refused, marked as not well."""
    refused = {"verdict": {"status": 409, "reason": "Conflict", "complete": False}, "refused": [{**TEAM, "cause": "quota"}]}
    ledger.add([(told(1, **refused), "")])
    made: Object = shown(newer(ledger.path, 0)[1][0])
    assert made["text"].endswith("f/projects project/p-a: 409 Conflict in 7 ms")
    assert (made["well"], made["causes"]) == (False, ["because of Namespace team-a (event e)"])
    assert made["writes"] == [{"text": "create Namespace team-a", "kind": "Namespace", "namespace": "", "name": "team-a"}]
    assert made["refused"] == ["refused Namespace team-a: quota"]


async def test_news_wake_all_who_wait_and_are_not_missed() -> None:
    """News between asking and waiting are heard; ``heard`` is set as long as anybody listens."""
    news = News()
    with news, news:
        coming = news.next()
        news.tell()
        await asyncio.wait_for(asyncio.gather(coming.wait(), coming.wait()), 1)
        assert not news.next().is_set()
    assert not news.heard.is_set()
    with news:
        assert news.heard.is_set()
        coming = news.next()
        news.end()
        assert coming.is_set()
        assert news.ended
