"""``tenantry test``: the tests of the documentation hold, and tests that fail say what differed and where.

All of them run on one system, which is put back between them.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
import pytest_asyncio
from times import LEFT_TO_MAKE_WHOLE
from upping import ROOT, tenantry

from tenantry.local.control_plane import Lines, ensure_helm
from tenantry.testing.cases.files import read_all
from tenantry.testing.cases.results import Result
from tenantry.testing.cases.running import Runner
from tenantry.testing.forks import Forks
from tenantry.testing.planes import ControlPlanes

EXAMPLES = read_all([ROOT / "docs" / "examples" / "tests"])
FAILING = ROOT / "tests" / "cluster" / "cases" / "failing.yaml"

pytestmark = [pytest.mark.timeout(240), LEFT_TO_MAKE_WHOLE]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def results(control_planes: ControlPlanes, forks: Forks) -> dict[str, Result]:
    """What came of each test, by its name."""
    helm = await asyncio.to_thread(ensure_helm, Lines())
    runner = Runner(control_planes, forks, helm, patience=3.0, say=print, on_result=print)
    done = await runner.run([*EXAMPLES, *read_all([FAILING])])
    return {each.name: each for each in done}


@pytest.mark.parametrize("name", [each.name for each in EXAMPLES])
async def test_what_the_documentation_tells_holds(results: dict[str, Result], name: str) -> None:
    """Each test in docs/examples/tests passes."""
    assert results[name].passed, "\n".join(results[name].lines())


async def test_each_thing_that_differs_has_its_line(results: dict[str, Result]) -> None:
    """All checks of a step are told, each with the line that says so, what is there, and what would be near."""
    failures = results["Nothing of this is so"].failures
    told = {each.line: (each.said, *each.more) for each in failures}

    assert {each.step for each in failures} == {"step 1, it joins"}
    assert told == {
        16: ("Namespace team-a: metadata.labels.team is 'a'; expected 'b'",),
        17: ("ConfigMap team-a/settings is not there", "in namespace team-a there is: kube-root-ca.crt"),
        18: ("none of 7 objects is like Namespace; the closest:", *told[18][1:]),
        19: ("Namespace team-a is there, and should not be",),
        20: ("bob (g) may not get pods in team-a",),
        21: ("root (system:masters) may get deployments.apps/scale in the whole cluster",),
        22: ("Namespace team-a has no condition tenantry.dev/Registered; it has none",),
        24: ("an administrator may create Namespace team-b: it is not refused",),
        26: ("the cluster does not serve Nobody in example.com/v1; is it written so, and is its CRD given?",),
    }
    assert any("metadata.labels.team is 'a'; expected 'c'" in each for each in told[18])


async def test_what_cannot_be_done_ends_a_test(results: dict[str, Result]) -> None:
    """A write that the API server refuses is told with its words, and at the line of the object."""
    (failure,) = results["It cannot be done"].failures

    assert failure.line == 35
    assert failure.said.startswith('bob cannot create ConfigMap a: refused: configmaps is forbidden: User "bob" cannot create')


async def test_a_loss_that_does_not_happen_is_no_test(results: dict[str, Result]) -> None:
    """Where no event was there to be lost the test shows nothing, and fails."""
    (failure,) = results["No event is there to be lost"].failures

    assert (failure.line, failure.said) == (43, "there was no event of such a Namespace to lose")


async def test_each_test_begins_on_an_empty_cluster(results: dict[str, Result]) -> None:
    """What the tests before made is not there any more, though they had the same cluster and names."""
    assert results["What tests before it made has gone"].passed


async def test_a_pipeline_gets_exit_code_and_junit(tmp_path: Path) -> None:
    """0 when all passed, 2 when one failed, and the results as XML and JSON."""
    examples, junit = str(ROOT / "docs" / "examples" / "tests"), tmp_path / "junit.xml"

    code, told, errors = await tenantry("test", examples, "-k", "scope says", "--junit", str(junit), within=150)
    assert code == 0, told + errors
    assert "PASS  An operator acts where its scope says, and nowhere else" in told
    assert ElementTree.parse(junit).getroot().get("tests") == "1"

    code, told, errors = await tenantry("test", str(FAILING), "-k", "cannot be", "-o", "json", within=150)
    assert code == 2, told + errors
    assert [each["failures"][0]["line"] for each in json.loads(told)["tests"]] == [35]
