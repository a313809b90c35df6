"""Random declarations: what the schema allows is accepted and nothing else; any history of labels ends as its last labels say."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from times import LEFT_TO_MAKE_WHOLE, WHOLE

from tenantry.api.errors import RefusedError
from tenantry.local.invocation import reference_event
from tenantry.local.policies import guard_names
from tenantry.local.sinks import Poster
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, TENANCY_PROFILE, TENANT
from tenantry.model.kinds import NAMESPACE, Kind
from tenantry.model.paas.names import GROUP_OF_KINDS
from tenantry.serving.encoding import encode_binary
from tenantry.testing import fuzz
from tenantry.testing.arena import Arena
from tenantry.testing.masks import Mask
from tenantry.testing.objects import obj
from tenantry.testing.planes import ControlPlanes
from tenantry.testing.runner import learn
from tenantry.testing.schemas import Mistake, invalid, valid
from tenantry.testing.workload import load_workload

pytestmark = pytest.mark.timeout(300)
BOUNDED = settings(max_examples=25 if WHOLE else 4, deadline=None, database=None, suppress_health_check=list(HealthCheck))
SOME = settings(BOUNDED, max_examples=10)
FEW = settings(BOUNDED, max_examples=3)
TWICE = settings(BOUNDED, max_examples=2)


class Fuzzing:
    """An arena in a loop of its own, because Hypothesis calls its examples without one."""

    def __init__(self, runner: asyncio.Runner, arena: Arena, mask: Mask) -> None:
        self.run = runner.run
        self.arena = arena
        self.mask = mask
        self.count = 0


@contextmanager
def _arena(planes: ControlPlanes, function: str, scenarios: list[str]) -> Iterator[Fuzzing]:
    workload = load_workload(function, Path(__file__).parent / "workloads")
    with asyncio.Runner() as runner, tempfile.TemporaryDirectory() as folder:
        # Of Paas the schemas are tried; their policies refuse more, and have tests of their own.
        without = [name for name in guard_names() if name.startswith("tenantry-guard-paas-")]
        arena = Arena(workload, Path(folder), planes=planes, without=without)

        async def start() -> Mask:
            await arena.__aenter__()
            await arena.hands.apply(NAMESPACE, obj(NAMESPACE, "fuzz"))
            return (await learn(arena, scenarios)).mask

        try:
            yield Fuzzing(runner, arena, runner.run(start()))
        finally:
            runner.run(arena.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def fuzzing(arena_planes: ControlPlanes) -> Iterator[Fuzzing]:
    with _arena(arena_planes, "namespace-registration", ["register", "clash"]) as found:
        yield found


@pytest.fixture(scope="module")
def scoping(arena_planes: ControlPlanes) -> Iterator[Fuzzing]:
    with _arena(arena_planes, "scope-binding-switches", ["to-the-cluster", "rename-role"]) as found:
        yield found


async def accepted(fuzzing: Fuzzing, kind: Kind, value: dict[str, Any], *, its_own: bool = False) -> tuple[bool, str]:
    """Whether the API server takes an object, and what it says; the function hears of it and must not mind.

    It writes nothing for an object that is not ``its_own``.
    """
    fuzzing.count += 1
    only = kind in (TENANCY_PROFILE, ACCESS_INDEX)
    name, namespace = DEFAULT if only else f"fuzz-{fuzzing.count}", "fuzz" if kind.namespaced else ""
    try:
        await fuzzing.arena.hands.create(kind, {**obj(kind, name, namespace), **value}, dry_run=only)
    except RefusedError as error:
        return False, error.message
    marks = [len(proxy.recording) for proxy in fuzzing.arena.proxies]
    async with Poster() as poster:
        event = reference_event(kind.api_version, kind.kind, namespace, name)
        answer = await poster.post(next(iter(fuzzing.arena.pool.shared[0].urls.values())), *encode_binary(event), 30.0)
    assert answer.status < 500, f"the function answers {answer.status}"
    for proxy, mark in zip(fuzzing.arena.proxies, marks, strict=True):
        assert its_own or not proxy.recording.writes(mark, effective=True), (
            "the function writes for an object that is not its own"
        )
    return True, ""


def taken(fuzzing: Fuzzing, kind: Kind, schema: dict[str, Any], examples: settings, *, its_own: bool = False) -> None:
    """The API server takes whatever a schema allows, and the function does not mind."""

    @seed(1)
    @examples
    @given(valid(schema))
    def check(value: Any) -> None:
        stored, why = fuzzing.run(accepted(fuzzing, kind, value, its_own=its_own))
        assert stored, f"{value} is refused: {why}"

    check()


def ends_as_declared(fuzzing: Fuzzing, number: int, histories: st.SearchStrategy[Any], steps: Callable[[Any], Any]) -> None:
    """The steps of random histories end as their last declarations do alone."""

    @seed(number)
    @FEW
    @given(histories)
    def check(history: Any) -> None:
        found, expected = fuzzing.run(fuzz.end_states(fuzzing.arena, steps(history)))
        assert not fuzzing.mask.differences(expected, found)

    check()


@pytest.mark.parametrize("custom", fuzz.custom_resources(), ids=lambda custom: custom[0].kind)
def test_what_the_schema_allows_is_accepted(fuzzing: Fuzzing, custom: tuple[Kind, dict[str, Any]]) -> None:
    """Every object that a CRD's schema allows is stored, and no function minds it."""
    taken(fuzzing, *custom, BOUNDED, its_own=custom[0].group == GROUP_OF_KINDS or custom[0] == TENANT)


@pytest.mark.parametrize("custom", fuzz.custom_resources(), ids=lambda custom: custom[0].kind)
def test_one_mistake_is_refused(fuzzing: Fuzzing, custom: tuple[Kind, dict[str, Any]]) -> None:
    """Objects with exactly one mistake are refused by the API server: each mistake that the schema knows, twice."""
    kind, schema = custom
    for mistake, broken in invalid(schema):
        refused(fuzzing, kind, mistake, broken)


def refused(fuzzing: Fuzzing, kind: Kind, mistake: Mistake, broken: st.SearchStrategy[Any]) -> None:
    """The API server takes no object with a certain mistake, and says where it is."""
    place = re.escape(".".join(mistake.path)).replace(r"\.\*", r"[.\[][^:]+")

    @seed(1)
    @TWICE
    @given(broken)
    def check(value: Any) -> None:
        stored, why = fuzzing.run(accepted(fuzzing, kind, value))
        assert not stored, f"{value} is accepted although {mistake}"
        assert re.search(place, why), f"{value}, where {mistake}, is refused for something else: {why}"

    check()


def test_any_history_of_labels_ends_as_its_last_labels_say(fuzzing: Fuzzing) -> None:
    """Random labels, bad ids included, moves and deletions end as their last declarations do alone."""
    ends_as_declared(fuzzing, 1, fuzz.sequences(), fuzz.steps_of)


def test_the_way_back_restores_the_former_state(fuzzing: Fuzzing) -> None:
    """After any detour, going back to good labels gives the state of those labels alone: no bad input is a trap."""
    back: list[fuzz.Move] = [("a-@", "p-@", True), ("b-@", "q-@", True)]
    ends_as_declared(fuzzing, 2, fuzz.sequences(), lambda moves: fuzz.steps_of([*back, *moves, *back]))


SCOPES = [custom for custom in fuzz.custom_resources() if custom[0].kind in ("ScopeTemplate", "ScopeInstance", "NamespaceScope")]


@LEFT_TO_MAKE_WHOLE
@pytest.mark.parametrize("custom", SCOPES, ids=lambda custom: f"{custom[0].kind}.{custom[0].group}")
def test_a_scope_of_any_shape_is_answered(scoping: Fuzzing, custom: tuple[Kind, dict[str, Any]]) -> None:
    """Whatever a scope says that its schema allows, the function answers with neither 400 nor 500, and so does its sweep."""
    taken(scoping, *custom, SOME, its_own=True)
    scoping.run(scoping.arena.sweep())


@LEFT_TO_MAKE_WHOLE
def test_any_history_of_a_scope_ends_as_its_last_declaration_says(scoping: Fuzzing) -> None:
    """Lists of namespaces, the whole cluster and deletions, in any order, end as the last of them does alone."""
    ends_as_declared(scoping, 1, fuzz.reaches(), fuzz.scope_steps)


@LEFT_TO_MAKE_WHOLE
def test_the_way_back_of_a_scope_restores_the_former_state(scoping: Fuzzing) -> None:
    """After any detour the former list of namespaces gives what it gave: no wider right stays."""
    former: fuzz.Reach = (("a-@", "b-@"), True)
    ends_as_declared(scoping, 2, fuzz.reaches(), lambda history: fuzz.scope_steps([former, *history, former]))
