"""When an event tells of nothing that the last run for its owner did not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tenantry.engine.last_runs import ABSENT, LastRuns, ReadStates, States, ended
from tenantry.model import limits
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Key, Object, key_in

KEY = key_in(NAMESPACE, "n", "")


def namespace(version: str, **parts: Any) -> Object:
    metadata = {"name": "n", "uid": "u", "resourceVersion": version, **parts}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def left(seen: ReadStates, *written: Key) -> LastRuns:
    """What is known after one run that saw and wrote these."""
    runs = LastRuns()
    runs.ended_well("o", [NAMESPACE.gvk], seen, written)
    return runs


def knew(runs: LastRuns, now: Mapping[Key, Object | None], owner: str = "o", states: States | None = None) -> bool:
    """Whether the last run knew these objects as they are now."""
    seen = ReadStates(states or {})
    for key, obj in now.items():
        seen.add(key, obj)
    return runs.knew(owner, seen)


def test_an_object_is_known_in_the_version_that_was_read() -> None:
    seen = ReadStates()
    seen.add(KEY, namespace("1"))
    runs = left(seen)
    assert knew(runs, {KEY: namespace("1")})
    assert not knew(runs, {KEY: namespace("2")})
    assert not knew(runs, {KEY: None})
    assert not knew(runs, {KEY: namespace("1")}, "other")


def test_an_object_that_was_not_there_is_known_as_long_as_it_is_not_there() -> None:
    seen = ReadStates()
    seen.add(KEY, None)
    runs = left(seen)
    assert knew(runs, {KEY: None})
    assert not knew(runs, {KEY: namespace("1")})


def test_an_object_that_was_read_in_two_versions_is_not_known() -> None:
    seen = ReadStates()
    seen.add(KEY, namespace("1"))
    seen.listed(NAMESPACE, [namespace("2")])
    runs = left(seen)
    assert not any(knew(runs, {KEY: namespace(version)}) for version in "12")


def test_of_a_long_list_nothing_is_noted() -> None:
    seen = ReadStates()
    seen.listed(NAMESPACE, [namespace("1")] * (limits.LIST_NOTED + 1))
    assert not seen


def test_what_a_run_has_written_is_not_known() -> None:
    """Another process may have acted on newer input between the reads of this one and its write: another run has to look."""
    seen = ReadStates()
    seen.add(KEY, namespace("1"))
    runs = left(seen, KEY)
    assert not any(knew(runs, {KEY: namespace(version)}) for version in "12")


def test_what_is_written_after_it_was_known_is_not_known_any_more() -> None:
    seen = ReadStates()
    seen.add(KEY, namespace("1"))
    runs = left(seen)
    runs.ended_well("o", [NAMESPACE.gvk], ReadStates(), [KEY])
    assert not knew(runs, {KEY: namespace("1")})


def test_a_run_that_ended_badly_has_known_nothing() -> None:
    seen = ReadStates()
    seen.add(KEY, namespace("1"))
    runs = left(seen)
    runs.ended_badly("o")
    assert not knew(runs, {KEY: namespace("1")})


def test_a_run_that_reads_a_part_leaves_what_is_known_of_the_rest() -> None:
    seen, part = ReadStates(), ReadStates()
    seen.add(KEY, namespace("1"))
    other = key_in(NAMESPACE, "other", "")
    part.add(other, None)
    runs = left(seen)
    runs.ended_well("o", [NAMESPACE.gvk], part, ())
    assert knew(runs, {KEY: namespace("1"), other: None})


@pytest.mark.parametrize("before", [None, namespace("1", labels={"in": "p"})])
def test_a_state_that_can_come_back_is_known_only_from_the_last_run(before: Object | None) -> None:
    """A namespace was in the project, the last run did not find it there, and it is back: another run has to follow."""
    states: States = {("v1", "Namespace"): lambda obj: tuple(obj["metadata"].get("labels", ()))}
    seen = ReadStates(states or {})
    seen.add(KEY, before)
    runs = left(seen)
    runs.ended_well("o", [NAMESPACE.gvk], ReadStates(states), ())
    assert not knew(runs, {KEY: before}, states=states)


def deleted(state: str, seen: ReadStates | None = None, *written: Key) -> LastRuns:
    """What is known after a run that deleted, looked again at what is in ``seen``, and wrote these at its end."""
    runs = LastRuns()
    runs.begins("o")
    runs.wrote("o", {KEY: state})
    runs.wrote("o", dict.fromkeys(written, "9"))
    runs.ended_well("o", [NAMESPACE.gvk], seen or ReadStates(), written)
    return runs


def test_what_a_run_has_deleted_is_known_to_have_ended() -> None:
    """By its uid, and for good: later runs need not look there."""
    absent = ReadStates()
    absent.add(KEY, None)
    for runs in deleted(ended("u")), deleted(ended("u"), absent):
        assert runs.knows("o", KEY, ended("u"))
        assert not runs.knows("o", KEY, ended("v"))
        assert not runs.knows("other", KEY, ended("u"))
        runs.begins("o")
        runs.ended_well("o", [NAMESPACE.gvk], absent, ())
        assert runs.knows("o", KEY, ended("u"))


def test_what_waits_for_finalizers_has_not_ended() -> None:
    assert not deleted(ABSENT).knows("o", KEY, ended("u"))


def test_what_came_in_the_place_of_a_deleted_object_is_known_by_itself() -> None:
    seen = ReadStates()
    seen.add(KEY, namespace("7", uid="v"))
    runs = deleted(ended("u"), seen)
    assert knew(runs, {KEY: namespace("7")})
    assert not runs.knows("o", KEY, ended("v"))


def test_what_was_deleted_at_the_end_of_a_run_or_in_one_that_failed_is_not_known() -> None:
    """Nobody has looked since."""
    assert not deleted(ended("u"), None, KEY).knows("o", KEY, ended("u"))
    runs = LastRuns()
    runs.begins("o")
    runs.wrote("o", {KEY: ended("u")})
    runs.ended_badly("o")
    runs.begins("o")
    runs.ended_well("o", [NAMESPACE.gvk], ReadStates(), ())
    assert not runs.knows("o", KEY, ended("u"))


def test_only_kinds_whose_events_concern_the_owner_are_kept() -> None:
    seen = ReadStates()
    other = Key("v1", "ConfigMap", "n", "c")
    seen.add(other, None)
    runs = left(seen)
    assert not runs.may_know("o", [other])
    runs.ended_well("o", [CONFIG_MAP.gvk], seen, ())
    assert runs.may_know("o", [other])


def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REMEMBERED", 2)
    seen, runs = ReadStates(), LastRuns()
    seen.add(KEY, None)
    for owner in "abc":
        runs.ended_well(owner, [NAMESPACE.gvk], seen, ())
    assert [owner for owner in "abc" if knew(runs, {KEY: None}, owner)] == ["b", "c"]


def test_what_no_decision_rests_on_is_no_news() -> None:
    """A unit says what of a kind it looks at; what others change beside that needs no run."""
    states: States = {("v1", "Namespace"): lambda obj: obj["metadata"].get("labels", {}).get("ours")}
    seen = ReadStates(states or {})
    seen.add(KEY, namespace("1", labels={"ours": "1"}))
    runs = left(seen)
    assert knew(runs, {KEY: namespace("2", labels={"ours": "1", "theirs": "2"})}, states=states)
    assert not knew(runs, {KEY: namespace("2", labels={"ours": "2"})}, states=states)
    assert not knew(runs, {KEY: None}, states=states)


def test_an_event_with_the_version_that_was_read_tells_nothing_new() -> None:
    """One without a version, or with another, may."""
    seen = ReadStates()
    seen.add(KEY, namespace("1"))
    runs = left(seen)
    assert runs.knows("o", KEY, "1")
    assert not runs.knows("o", KEY, "2")
    assert not runs.knows("o", KEY, None)
    assert not runs.knows("other", KEY, "1")
    assert not left(seen, KEY).knows("o", KEY, "1")  # what a run has written has a further run


def test_what_the_last_run_has_written_comes_back_as_an_echo() -> None:
    """In the version that was written, or in an event that has none; what it knew before is no news either."""
    seen, runs = ReadStates(), LastRuns()
    seen.add(KEY, namespace("1"))
    other, third = key_in(NAMESPACE, "other", ""), key_in(NAMESPACE, "third", "")
    runs.begins("o")
    runs.wrote("o", {KEY: "2", other: ABSENT})
    runs.wrote("o", {third: "5"})
    assert all(runs.is_echo("o", *each) for each in ((KEY, "2"), (KEY, None), (third, "5")))
    assert not runs.is_echo("o", KEY, "3")
    assert runs.is_echo("o", other, None)
    assert not runs.is_echo("o", other, "4")
    assert not runs.is_echo("o", key_in(NAMESPACE, "fourth", ""), None)
    runs.ended_well("o", [NAMESPACE.gvk], seen, [])
    runs.begins("o")
    assert runs.is_echo("o", KEY, "1")
    assert not runs.is_echo("o", third, "5")


def test_what_was_written_is_forgotten_of_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REMEMBERED", 1)
    runs = LastRuns()
    runs.wrote("o", {KEY: "1"})
    runs.wrote("other", {KEY: "1"})
    assert [runs.is_echo(owner, KEY, "1") for owner in ("o", "other")] == [False, True]
