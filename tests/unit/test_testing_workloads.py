"""Workload files: found by name, loaded from any folder, sharing steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from tenantry.testing.perturbations import Perturbation
from tenantry.testing.runner import Plan, rounds_of
from tenantry.testing.workload import NoWorkload, Run, Workload, load_workload, together, workload_names

SHARED = "from tenantry.testing.workload import Workload\nmade = Workload('some-function', config={{'of': '{}'}})\n"


def folder(path: Path, of: str) -> Path:
    path.mkdir()
    (path / "_shared.py").write_text(SHARED.format(of))
    (path / "some_function.py").write_text("from ._shared import made as workload\n")
    return path


def test_workloads_of_two_folders_share_within_each(tmp_path: Path) -> None:
    """What a workload imports from beside it is of its own folder; what is shared is no workload."""
    folders = {of: folder(tmp_path / of, of) for of in ("one", "two")}
    for of, path in [*folders.items(), *folders.items()]:
        assert workload_names(path) == ["some-function"]
        loaded = load_workload("some-function", path)
        assert (loaded.name, loaded.config) == ("some-function", {"of": of})
        loaded.scenario("added")  # to this one only
    with pytest.raises(NoWorkload, match=r"write .*another\.py"):
        load_workload("another", tmp_path / "one")


async def test_steps_together_are_done_in_their_order() -> None:
    """One after the other; what comes of them is waited for by whoever plays."""
    done: list[tuple[int, Any]] = []

    def step(number: int) -> Any:
        async def do(run: Run) -> None:
            done.append((number, run))

        return do

    run = cast(Run, object())
    await together(step(1), together(step(2), step(3)))(run)
    assert done == [(1, run), (2, run), (3, run)]


def test_what_concerns_other_runs_is_performed_by_itself() -> None:
    """In a round of its own, after the others: what changes what all share, or disturbs what others read."""
    workload = Workload("some-function", read_by_others="list rolebindings [x=")
    for name in ("a", "b"):
        workload.scenario(name)
        workload.scenario(f"{name}-alone", by_itself=True)
    plans = [Plan(name, Perturbation) for name in ("a-alone", "a", "b", "b-alone", "a")]
    plans += [Plan("a", Perturbation, "list rolebindings [x=p-@] #1"), Plan("b", Perturbation, "list rolebindings #1")]
    rounds = [[plan.scenario for plan in some] for some in rounds_of(workload, plans, 2)]
    assert rounds == [["a", "b"], ["a", "b"], ["a-alone"], ["b-alone"], ["a"]]


async def test_what_hands_made_over_something_going_is_made_again_when_that_is_gone() -> None:
    """It goes with that, as for anybody who applies a namespace that is being deleted; what is there, or declared anew, stays."""
    going = {"metadata": {"name": "ns", "uid": "old", "resourceVersion": "5", "deletionTimestamp": "now"}}
    gets: list[Any] = [going, going, None]
    applied: list[Any] = []

    class Dying:
        async def apply(self, _: Any, body: Any, **__: Any) -> Any:
            applied.append(body)
            return going if len(applied) == 1 else {"metadata": {"name": "ns", "uid": "new", "resourceVersion": "9"}}

        async def get(self, *_: Any) -> Any:
            return gets.pop(0)

    run = Run("t1", cast(Any, Dying()), cast(Any, None))
    await run.apply("Namespace", "ns")
    assert await run.make_again()
    assert (len(applied), gets) == (2, [])
    assert applied[0] == applied[1]
    assert not await run.make_again()
    assert len(applied) == 2
