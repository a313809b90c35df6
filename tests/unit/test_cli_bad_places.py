"""Commands whose terminal can do little, or whose ledger is not there or none: a message, a way out, an exit code."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tenantry.cli import main
from tenantry.model.event import DECISION_TYPE
from tenantry.model.limits import MIB
from tenantry.serving.ledger.record import told_in
from tenantry.serving.ledger.store import Ledger, now_ms

DECISION = {
    "type": DECISION_TYPE, "instance": "f-1", "sequence": 1, "function": "f", "service": "f", "time": "2026-11-27T15:00:00Z",
    "unit": "projects", "owner": "project/p-a", "causes": [], "inputs": [], "writes": [],
    "verdict": {"status": 409, "reason": "refused", "complete": False}, "beganMs": now_ms(), "durationMs": 7,
}  # fmt: skip


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger with one decision, which ended badly: it is told in yellow."""
    path = tmp_path / "ledger.db"
    made = Ledger(path, max_age_days=90, max_bytes=MIB)
    made.open()
    made.add([(told_in(DECISION), "")])
    made.close()
    return path


def run(*arguments: str | Path, **environment: str) -> Result:
    """The command on a terminal that takes colours."""
    named = {"TERM": "xterm-256color", "NO_COLOR": "", "TENANTRY_LEDGER": "", "KUBECONFIG": "/nowhere", **environment}
    return CliRunner().invoke(main, [str(each) for each in arguments], env=named, color=True)


# -- terminals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": "", "COLUMNS": "40"}, True)],
)
def test_colours_are_for_terminals_that_want_them(ledger: Path, environment: dict[str, str], coloured: bool) -> None:
    """NO_COLOR, and a terminal that is called dumb, get the same text without escape sequences."""
    found = run("history", "--ledger", ledger, **environment)

    assert (found.exit_code, "\x1b[" in found.stdout) == (0, coloured)
    assert "project/p-a: 409 refused in 7 ms" in found.stdout


@pytest.mark.parametrize("columns", ["5", "many"])
@pytest.mark.parametrize("command", ["plan", "explain", "history", "replay", "status", "tree", "map", "console", "test", "demo"])
def test_help_is_given_at_any_width(command: str, columns: str) -> None:
    """However narrow the terminal says it is, or whatever it says."""
    found = run(command, "--help", COLUMNS=columns)

    assert (found.exit_code, "Usage:" in found.stdout) == (0, True)


# -- ledgers ---------------------------------------------------------------------------------------------------------


def spoilt(path: Path, how: str) -> Path:
    """A ledger that cannot be read, in one of several ways."""
    if how == "gone":
        path.unlink()
    elif how == "no ledger":
        path.write_text("hello, this is some text that somebody took for a ledger" * 100)
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "newer":
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version = 99")
        connection.close()
    return path


COMMANDS: Sequence[tuple[str, ...]] = (("history",), ("history", "--at", "1h", "project/p-a"), ("replay", "--since", "1h"))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("gone", "it begins with the first decision, where decisions.enabled is true"),
        ("no ledger", "name another file with --ledger"),
        ("empty", "is no ledger of this version: it says 0, and 1 is known"),
        ("newer", "is no ledger of this version: it says 99, and 1 is known"),
    ],
)
def test_a_ledger_that_cannot_be_read_is_said(ledger: Path, command: tuple[str, ...], how: str, words: str) -> None:
    """The file, what is wrong with it and the way out, in a line; exit code 1, and nothing that looks like an empty history."""
    found = run(*command, "--ledger", spoilt(ledger, how))

    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr.startswith("tenantry: ")
    assert str(ledger) in found.stderr
    assert words in found.stderr


@pytest.mark.parametrize("command", [("history",), ("replay", "--since", "1h")], ids=" ".join)
def test_no_cluster_names_the_ledgers_that_are_here(command: tuple[str, ...], tmp_path: Path) -> None:
    """Which ledger is meant is not known without the cluster: those of this machine are told, with the option that chooses."""
    kept = tmp_path / "ledger"
    kept.mkdir()
    (kept / "1234.db").write_text("")
    away = tmp_path / "away"
    away.write_text(
        "{clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, user: {token: t}}], "
        "contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}"
    )
    found = run(*command, KUBECONFIG=str(away), TENANTRY_HOME=str(tmp_path))

    assert (found.exit_code, found.stdout) == (1, "")
    assert "127.0.0.1:1" in found.stderr
    assert f"Without the cluster name a ledger with --ledger; on this machine: {kept / '1234.db'}" in found.stderr


@pytest.mark.parametrize("when", ["yesterday", "5x", "-1h", "99999999999d", ""])
def test_a_time_that_is_none_says_how_to_write_one(ledger: Path, when: str) -> None:
    """Wrong use, exit code 2."""
    found = run("history", "--since", when, "--ledger", ledger)

    assert (found.exit_code, found.stdout) == (2, "")
    assert "is no time: give an age such as 90s, 30m, 2h or 7d" in found.stderr
