"""For whom an event is delivered, read for and run: the project of a Namespace, else the namespace, else the object itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from engine_units import Still, make

from namespace_registration.projects.unit import MEMBER, NEW, PROJECT, Projects
from tenantry.api.turns import party
from tenantry.engine.flight import PARTIES_KEPT, Ask
from tenantry.engine.reader import Reader
from tenantry.engine.request import Look, RunOwner, Sweep, party_of
from tenantry.engine.unit import Owner
from tenantry.local import subscription
from tenantry.model.config import Config
from tenantry.model.event import Event
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Key, Kind

LABEL = "example.com/project"


def update(kind: Kind, namespace: str, labels: Mapping[str, Any] | None) -> Event:
    """The event of an object, whole or, without labels, by its name."""
    place = {"name": "it", "namespace": namespace}
    data = place if labels is None else {"metadata": {**place, "labels": labels}}
    extensions = {"kind": kind.kind, **{name: value for name, value in place.items() if value}}
    return Event(id="1", source="/s", type="dev.knative.apiserver.resource.update", data=data, extensions=extensions)


@pytest.mark.parametrize(
    ("kind", "namespace", "labels", "expected"),
    [
        (NAMESPACE, "", {LABEL: "p-a"}, "p-a"),
        (NAMESPACE, "", {LABEL: ""}, "it"),
        (NAMESPACE, "", {LABEL: 1}, "it"),
        (NAMESPACE, "", {}, "it"),
        (NAMESPACE, "", None, "it"),
        (CONFIG_MAP, "n", {LABEL: "p-a"}, "n"),
    ],
)
def test_the_party_of_an_event(kind: Kind, namespace: str, labels: Mapping[str, Any] | None, expected: str) -> None:
    """On its way and in the function; who may label other objects does not choose whose turn they take."""
    assert subscription.party_of(update(kind, namespace, labels), LABEL) == expected
    hint = {name: value for name, value in (labels or {}).items() if isinstance(value, str)}
    assert party_of(Look(Key(kind.api_version, kind.kind, namespace, "it"), hint), LABEL) == expected


def test_without_a_project_label_a_namespace_is_its_own_party() -> None:
    assert subscription.party_of(update(NAMESPACE, "", {"": "x", LABEL: "p-a"}), "") == "it"
    assert party_of(Look(Key("v1", "Namespace", "", "it"), {LABEL: "p-a"})) == "it"


def test_the_party_of_what_is_no_event_of_an_object() -> None:
    assert (party_of(RunOwner("unit", "o/1")), party_of(Sweep())) == ("o/1", "*")


async def parties_of_runs(labels: Mapping[str, str], unit_party: str = "") -> list[str]:
    """For whom the run is that follows from the event of a Namespace."""
    seen: list[str] = []

    async def act(owner: str, reader: Reader) -> None:
        del owner, reader
        seen.append(party.get())

    event = update(NAMESPACE, "", labels)
    data = {"apiVersion": "v1", "kind": "Namespace", **event.data}
    await make(Still(act=act, party=unit_party), project_label=LABEL).handle(replace(event, data=data))
    return seen


async def test_a_run_is_for_the_project_of_the_namespace_that_asks_or_for_whom_its_handler_says() -> None:
    assert await parties_of_runs({LABEL: "p-a"}) == ["p-a"]
    assert await parties_of_runs({}) == ["it"]
    assert await parties_of_runs({LABEL: "p-a"}, "all of them") == ["all of them"]


def test_those_who_share_a_run_are_its_parties_some_of_them_where_they_are_many() -> None:
    ask = Ask()
    for number in range(100):
        ask |= Ask(parties=frozenset({f"p-{number}"}))
    assert len(ask.parties) == PARTIES_KEPT
    assert "p-0" in ask.parties


def test_projects_that_this_process_has_put_right_are_no_new_ones() -> None:
    """However many new ones come at once, the others do not wait for them; one that could not be put right is new again."""
    unit = Projects(Config(), ())
    project, member = Owner(PROJECT, "p-a"), Owner(MEMBER, "n")
    handler = unit.handlers[PROJECT]
    assert handler.party(project) == NEW
    handler.ended(project, True)
    assert handler.party(project) == ""
    handler.ended(project, False)
    assert handler.party(project) == NEW
    assert unit.handlers[MEMBER].party(member) == ""
