"""The file of the ledger: what it keeps and for how long, what is missing in it, and what it does when it cannot be written."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenantry.model.event import DECISION_TYPE, DECISIONS_BEGUN_TYPE, DECISIONS_ENDED_TYPE
from tenantry.model.kinds import Object
from tenantry.model.limits import MIB
from tenantry.serving.ledger import store
from tenantry.serving.ledger.asked import FOREVER, asked_for, decisions, owner_at, owners_decided, reading, shown_time
from tenantry.serving.ledger.entry import Clerk
from tenantry.serving.ledger.gaps import missing
from tenantry.serving.ledger.record import NoRecord, Told, told_in
from tenantry.serving.ledger.store import DAY_MS, Ledger, LedgerError, now_ms

SILENT = "process f-1 is not heard of since f-2 began, and did not say that it ended"
NOW = 1_700_000_000_000
TEAM = {"apiVersion": "v1", "kind": "Namespace", "name": "team-a"}
INPUT = {**TEAM, "resourceVersion": "5"}
ROLES = "rbac.authorization.k8s.io/v1"


def decision(number: int, *writes: Object, instance: str = "f-1", owner: str = "project/p-a", at: int = NOW, **more: Any) -> Told:
    """What the outbox tells of one run; each second a further one."""
    began = at + 1000 * number
    verdict = {"status": 204, "reason": "done", "complete": True}
    data = {
        "type": DECISION_TYPE, "instance": instance, "sequence": number, "function": "f", "service": "f",
        "time": shown_time(began), "unit": "projects", "owner": owner, "causes": [{**TEAM, "event": f"e-{number}"}],
        "inputs": [INPUT],
        "writes": writes, "verdict": verdict, "beganMs": began, "durationMs": 7, **more,
    }  # fmt: skip
    return told_in(data)


def process(kind: str, number: int = 0, *, instance: str = "f-1", at: int = NOW, **more: Any) -> Told:
    """A process begins or ends."""
    of = {"instance": instance, "sequence": number, "function": "f", "service": "f", "time": shown_time(at + 1000 * number)}
    return told_in({"type": kind, **of, **more})


def config_map(verb: str = "update", name: str = "c", *, version: str = "1", **more: Any) -> Object:
    """A write of a ConfigMap."""
    return {
        "verb": verb,
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": "n",
        "name": name,
        "resourceVersion": version,
        **more,
    }


def binding(verb: str = "create", **more: Any) -> Object:
    """A write of a RoleBinding."""
    return {"verb": verb, "apiVersion": ROLES, "kind": "RoleBinding", "namespace": "n", "name": "b", "role": "Role/view", **more}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the ledger is."""
    return tmp_path / "kept" / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """A new ledger that keeps much."""
    made = Ledger(path, max_age_days=3650, max_bytes=100 * MIB)
    made.open()
    yield made
    made.close()


@pytest.fixture
def keep(ledger: Ledger) -> Callable[..., None]:
    """Keep what is told."""
    return lambda *told: ledger.add([(each, "") for each in told])


def asked(path: Path, what: str = "", since: int = 0, until: int = FOREVER, limit: int = 1000) -> list[Object]:
    with reading(path) as connection:
        return decisions(connection, asked_for(what), since, until, limit)[0]


def gaps(path: Path, since: int = 0, until: int = FOREVER) -> list[str]:
    with reading(path) as connection:
        return [each["text"] for each in missing(connection, since, until)]


def test_what_was_told_is_read_back(path: Path, keep: Callable[..., None]) -> None:
    """A decision comes back whole; one that is sent twice is there once."""
    told = decision(1, config_map(changed=["data[k]"]), refused=[{**TEAM, "cause": "quota"}], causesLeftOut=3)
    keep(told, told)
    keep(told)
    (found,) = asked(path)
    assert (found["time"], found["owner"], found["process"], found["sequence"]) == (
        shown_time(NOW + 1007),
        "project/p-a",
        "f-1",
        1,
    )
    assert found["causes"] == [{**TEAM, "event": "e-1"}]
    assert found["inputs"] == [{**TEAM, "resourceVersion": "5"}]
    assert found["writes"] == [config_map(changed=["data[k]"])]
    assert (found["refused"], found["causesLeftOut"]) == ([{**TEAM, "cause": "quota"}], 3)
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("what", "numbers"),
    [
        ("", [1, 2, 3, 4]),
        ("project/p-a", [1, 2, 3]),
        ("project/p-b", [4]),
        ("ConfigMap/n/c", [1]),
        ("Namespace/team-a", [1, 2, 3, 4]),
        ("RoleBinding.rbac.authorization.k8s.io/n/b", [2, 3]),
        ("RoleBinding.example.com/n/b", []),
        ("n", [1, 2, 3]),
        ("team-a", [1, 2, 3, 4]),
        ("alice", [2, 3]),
        ("User/alice", [2, 3]),
        ("Group/alice", []),
        ("ServiceAccount/n/robot", [2]),
        ("system:serviceaccount:n:robot", [2]),
        ("oidc/bob", [4]),
        ("' OR 1 --", []),
    ],
)
def test_each_way_to_ask_finds_what_concerns_it(path: Path, keep: Callable[..., None], what: str, numbers: list[int]) -> None:
    """Owners, objects, namespaces, and subjects of bindings, who came or went."""
    keep(
        decision(1, config_map()),
        decision(2, binding(subjectsAdded=["User/alice", "ServiceAccount/n/robot"])),
        decision(3, binding("update", subjectsRemoved=["User/alice"])),
        decision(4, binding(namespace="m", subjectsAdded=["User/oidc/bob"]), owner="project/p-b"),
    )
    assert [each["sequence"] for each in asked(path, what)] == numbers


def test_times_and_a_limit_choose(path: Path, keep: Callable[..., None]) -> None:
    """The newest are kept within a limit, the oldest of them first, and it is known how many are older."""
    keep(*(decision(number) for number in range(1, 11)))
    with reading(path) as connection:
        found, older = decisions(connection, asked_for(""), NOW + 3000, NOW + 9999, 4)
    assert ([each["sequence"] for each in found], older) == ([6, 7, 8, 9], 3)


def test_who_was_decided_on_is_named_once(path: Path, keep: Callable[..., None]) -> None:
    """Each owner of a time that a condition chooses, by its first decision then, however often it was decided on."""
    keep(decision(1), decision(2, owner="project/p-b"), decision(3), decision(4, config_map(), owner="project/p-c"))
    with reading(path) as connection:
        found = owners_decided(connection, asked_for(""), NOW + 2000, NOW + 9999)
        within = owners_decided(connection, asked_for("n"), 0, FOREVER)
    assert found == [("f", "projects", f"project/{name}") for name in ("p-b", "p-a", "p-c")]
    assert within == [("f", "projects", "project/p-c")]


def test_what_an_owner_had(path: Path, keep: Callable[..., None]) -> None:
    """Writes add up: fields, subjects and versions as they were left, and what was deleted is gone."""
    keep(
        decision(1, config_map("create", changed=["data[a]", "data[b]"]), config_map("create", "gone")),
        decision(2, binding(subjectsAdded=["User/alice", "User/bob"])),
        decision(3, config_map(version="9", changed=["data[c]"], givenUp=["data[a]"]), config_map("delete", "gone", version="")),
        decision(4, binding("update", subjectsRemoved=["User/alice"], resourceVersion="12")),
    )

    def at(number: int) -> Object | None:
        with reading(path) as connection:
            return owner_at(connection, "project/p-a", NOW + 1000 * number + 500)

    assert at(0) is None
    early, late = at(2), at(4)
    assert early is not None
    assert late is not None
    assert [(each["name"], each["fields"], each["subjects"]) for each in early["objects"]] == [
        ("c", ["data[a]", "data[b]"], []), ("gone", [], []), ("b", [], ["User/alice", "User/bob"]),
    ]  # fmt: skip
    assert [(each["name"], each["resourceVersion"], each["fields"], each["subjects"]) for each in late["objects"]] == [
        ("c", "9", ["data[b]", "data[c]"], []), ("b", "12", [], ["User/bob"]),
    ]  # fmt: skip
    assert late["lastDecision"]["inputs"] == [{**TEAM, "resourceVersion": "5"}]


# -- what is missing -----------------------------------------------------------------------------------------------


def test_numbers_that_are_not_there_are_named(path: Path, keep: Callable[..., None]) -> None:
    """Lost on the way in the middle, dropped before the end; whoever ended in good order leaves no more than that."""
    keep(process(DECISIONS_BEGUN_TYPE), decision(1), decision(4), process(DECISIONS_ENDED_TYPE, 6))
    assert gaps(path) == [
        "numbers 2 to 3 of process f-1 are missing: lost on the way",
        "number 5 of process f-1 is missing: lost on the way",
    ]


def test_numbers_that_may_still_come_are_told_as_that(path: Path, keep: Callable[..., None]) -> None:
    """Four are under way at a time, and brokers try again: what is missing for a moment is not lost."""
    keep(process(DECISIONS_BEGUN_TYPE, at=now_ms()), decision(2, at=now_ms()))
    assert gaps(path) == ["number 1 of process f-1 is missing: may still come"]


def test_what_a_process_dropped_is_told_as_that(path: Path, keep: Callable[..., None]) -> None:
    """Long ago, and the process itself said so at its end."""
    old = now_ms() - DAY_MS
    keep(process(DECISIONS_BEGUN_TYPE, at=old), decision(2, at=old), process(DECISIONS_ENDED_TYPE, 3, at=old, dropped=1))
    assert gaps(path) == ["number 1 of process f-1 is missing: the process dropped them"]


@pytest.mark.parametrize(
    ("host", "text"),
    [
        (
            "one",
            "process f-1 ended without a word, and f-2 took its place: what it decided after number 1, if anything, is missing",
        ),
        (
            "two",
            f"{SILENT}: what it decided after number 1, if anything, is missing",
        ),
    ],
)
def test_who_was_killed_is_named_when_another_follows(path: Path, keep: Callable[..., None], host: str, text: str) -> None:
    """A process without its last event: on the same host it has ended for sure, on another it may be at rest."""
    keep(process(DECISIONS_BEGUN_TYPE, host="one"), decision(1))
    assert gaps(path) == []
    keep(process(DECISIONS_BEGUN_TYPE, instance="f-2", at=NOW + 5000, host=host))
    assert gaps(path) == [text]
    assert gaps(path, since=NOW + 4000) == [text]
    assert gaps(path, since=NOW + 6000) == []
    assert gaps(path, until=NOW - 1) == []


def test_retention_by_age_leaves_no_gap(path: Path) -> None:
    """What was deleted because of its age is not missing, and its room is given back."""
    ledger = Ledger(path, max_age_days=1, max_bytes=100 * MIB)
    ledger.open()
    ledger.add([(process(DECISIONS_BEGUN_TYPE), ""), *((decision(number, config_map()), "") for number in range(1, 21))])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE decisions SET kept = kept - ? WHERE sequence <= 15", (2 * DAY_MS,))
    connection.close()
    ledger.prune()
    assert [each["sequence"] for each in asked(path)] == [16, 17, 18, 19, 20]
    assert gaps(path) == []
    ledger.close()


def test_retention_by_size_keeps_the_newest(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file stays within its size however much comes."""
    monkeypatch.setattr(store, "PRUNE_EVERY", 50)
    ledger = Ledger(path, max_age_days=3650, max_bytes=MIB)
    ledger.open()
    for number in range(1, 3001, 50):
        ledger.add([(decision(n, *(config_map(name=f"c-{n}-{i}") for i in range(5))), "") for n in range(number, number + 50)])
    found = asked(path, limit=10_000)
    assert found[-1]["sequence"] == 3000
    assert 500 < len(found) < 3000
    assert path.stat().st_size < 1.3 * MIB
    assert gaps(path) == []
    ledger.close()


# -- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data", [None, 1, [], {}, {"type": DECISION_TYPE}, {"type": "x"}, {"type": DECISIONS_BEGUN_TYPE, "sequence": -1}]
)
def test_what_is_no_decision_is_refused(data: Any) -> None:
    """In constant words."""
    with pytest.raises(NoRecord, match=r"^no decision$"):
        told_in(data)


def test_a_full_disk_is_said_and_gone_on_from(path: Path, ledger: Ledger, keep: Callable[..., None]) -> None:
    """Nothing of what was sent is kept by half, the message says what to do, and it goes on when there is room again."""
    keep(decision(1))
    connection = ledger._connection
    assert connection is not None
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    many = [(decision(n, *(config_map(name=f"c-{n}-{i}") for i in range(50))), "") for n in range(2, 12)]
    with pytest.raises(LedgerError, match=r"the disk is full: free room there, or lower decisions.ledger.maxMegabytes"):
        ledger.add(many)
    assert [each["sequence"] for each in asked(path)] == [1]
    connection.execute("PRAGMA max_page_count = 1000000")
    ledger.add(many)
    assert len(asked(path)) == 11


def test_a_file_that_is_gone_begins_anew_and_that_is_noted(path: Path, keep: Callable[..., None]) -> None:
    """SQLite would write on into a deleted file; what comes is kept, and `history` says from when on."""
    keep(decision(1))
    for each in path.parent.iterdir():
        each.unlink()
    keep(decision(2))
    assert [each["sequence"] for each in asked(path)] == [2]
    lost = "number 1 of process f-1 is missing: lost on the way"
    assert gaps(path) == [lost, "the ledger's file was taken away and begins anew: what it held before is not here"]


def test_a_damaged_file_is_put_aside(path: Path) -> None:
    """Whoever starts on one begins anew beside it, and says where the old one is."""
    path.parent.mkdir()
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)
    with pytest.raises(LedgerError, match="cannot be read"), reading(path):
        pass
    ledger = Ledger(path, max_age_days=1, max_bytes=MIB)
    ledger.open()
    ledger.add([(decision(1), "")])
    assert [each["sequence"] for each in asked(path)] == [1]
    (text,) = gaps(path)
    (aside,) = path.parent.glob("ledger.db.damaged-*")
    assert aside.name in text
    ledger.close()


def test_a_file_that_is_damaged_while_it_is_written(path: Path, ledger: Ledger, keep: Callable[..., None]) -> None:
    """The event that meets it is not kept and comes again; then there is a new file."""
    keep(*(decision(number, config_map(name=f"c-{number}")) for number in range(1, 200)))
    ledger.prune()
    with path.open("r+b") as file:
        file.seek(0)
        file.write(b"\x00" * path.stat().st_size)
    ledger.close()
    keep(decision(300))
    assert [each["sequence"] for each in asked(path)] == [300]
    assert len(list(path.parent.glob("ledger.db.damaged-*"))) == 1


def test_another_version_is_left_alone(path: Path, ledger: Ledger) -> None:
    """A newer program's ledger is neither read nor written."""
    ledger.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(LedgerError, match="no ledger of this version"), reading(path):
        pass
    with pytest.raises(LedgerError, match=r"move it away, or name another"):
        ledger.open()


def test_without_a_ledger_that_is_said(tmp_path: Path) -> None:
    """The way out is in the message."""
    with (
        pytest.raises(LedgerError, match=r"there is no ledger at .*: it begins with the first decision"),
        reading(tmp_path / "no.db"),
    ):
        pass


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A path that is no folder, as a pod without its volume has."""
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be written"):
        Ledger(tmp_path / "file" / "ledger.db", max_age_days=1, max_bytes=MIB).open()


async def test_the_clerk_writes_together_what_comes_together(path: Path, ledger: Ledger) -> None:
    """Senders are answered when it is on the disk; of a failure each of them hears, and the next are written."""
    clerk, calls = Clerk(ledger), []
    add = ledger.add

    def counted(told: Any) -> None:
        calls.append(len(told))
        if len(calls) == 2:
            raise LedgerError("full")
        add(told)

    ledger.add = counted  # type: ignore[method-assign]
    await asyncio.gather(*(clerk.keep(decision(number), "") for number in range(1, 21)))
    assert calls == [20]
    failed = await asyncio.gather(*(clerk.keep(decision(number), "") for number in (30, 31)), return_exceptions=True)
    assert [str(each) for each in failed] == ["full", "full"]
    await clerk.keep(decision(32), "")
    await clerk.close()
    assert json.dumps([each["sequence"] for each in asked(path)]) == json.dumps([*range(1, 21), 32])
