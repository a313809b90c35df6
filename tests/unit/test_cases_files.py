"""Tests of platform teams, read: what is wrong is named with its line and path before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tenantry.cli import main
from tenantry.testing.cases.files import read_all
from tenantry.testing.cases.limits import time_for

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "tests"
THEN = "then: [{absent: {apiVersion: v1, kind: Namespace}}]"
NS = "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"


def run(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["test", *map(str, arguments)])
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "{file}: there is no test in it"),
        ("kind: ConfigMap\n", "{file}:1: this is no test: it has no key `test`"),
        ("test: x\n", "{file}:1: steps: required, and not given"),
        ("test: [\n", "{file} is not YAML: "),
        ("test: x\ntest: y\n", "{file}: line 2: key 'test' is given twice"),
        (f"test: x\nsteps:\n  - {THEN}\ncleanup: []\n", "{file}:4: cleanup: unknown key (allowed here: test, configuration,"),
        (
            "test: x\nsteps:\n  - then:\n      - expct: {}\n",
            "{file}:4: steps[0].then[0].expct: unknown key; did you mean expect?",
        ),
        (
            "test: x\nsteps:\n  - then:\n      - can: {as: a, verb: [get], resource: pods}\n",
            "{file}:4: steps[0].then[0].can.verb: unknown key; did you mean verbs? (allowed here: as, groups, verbs, resource,",
        ),
        (
            "test: x\nsteps:\n  - then:\n      - expect: {kind: Namespace}\n",
            "{file}:4: steps[0].then[0].expect: an object needs apiVersion, as",
        ),
        (
            "test: x\nsteps:\n  - then:\n      - {}\n",
            "{file}:4: steps[0].then[0]: needs one of expect, absent, can, cannot, condition, refused, and",
        ),
        (
            "test: x\nsteps:\n  - then:\n      - {expect: {apiVersion: v1, kind: A}, absent: {apiVersion: v1, kind: A}}\n",
            "and has expect and absent",
        ),
        (
            f"test: x\nsteps:\n  - when: [{{apply: [{NS}, {{}}]}}]\n    {THEN}\n",
            "{file}:3: steps[0].when[0].apply: an object needs apiVersion",
        ),
        (
            f"test: x\nsteps:\n  - when: [{{create: {{apiVersion: v1, kind: Pod}}}}]\n    {THEN}\n",
            "{file}:3: steps[0].when[0].create: the Pod needs metadata.name",
        ),
        (f"test: x\nsteps:\n  - when: [{{apply: not-there.yaml}}]\n    {THEN}\n", "{file}:3: cannot read "),
        (
            f"test: x\nsteps:\n  - when: [{{sweep: [registration]}}]\n    {THEN}\n",
            "{file}:3: steps[0].when[0].sweep: there is no function 'regi",
        ),
        (
            f"test: x\nsteps:\n  - when: [{{groups: [g], delete: {NS}}}]\n    {THEN}\n",
            "{file}:3: steps[0].when[0]: groups without `as`",
        ),
        (
            f"test: x\nfunctions: [what]\nsteps:\n  - {THEN}\n",
            "{file}:2: functions: there is no function 'what': there are lock-",
        ),
        (f"test: x\nwithin: 0\nsteps:\n  - {THEN}\n", "{file}:2: within: Input should be greater than 0"),
        (f"test: x\nconfiguration: none.yaml\nsteps:\n  - {THEN}\n", "{file}:2: cannot read the configuration "),
        (
            f"test: x\nconfiguration: {{global: {{cattl: {{}}}}}}\nsteps:\n  - {THEN}\n",
            "{file}:2: global.cattl: unknown key; did you mean cattle?",
        ),
        (
            f"test: x\nconfiguration: {{decisions: {{enabled: 2024-01-01}}}}\nsteps:\n  - {THEN}\n",
            "{file}:2: decisions.enabled: ",
        ),
        (
            f"test: x\ncharts: {{monitored: none}}\nsteps:\n  - {THEN}\n",
            "{file}:2: charts.monitored: the configuration has no chart with this",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    """Each mistake ends with exit code 1 and a line with the file, the line and the path of the key, and nothing is started."""
    file = tmp_path / "a.yaml"
    file.write_text(text)

    code, told = run(file)

    assert code == 1
    assert said.format(file=file) in told
    assert "Traceback" not in told


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    """Of several files, and of several tests in one, each mistake has its line."""
    (tmp_path / "a.yaml").write_text("test: x\n---\ntest: y\nsteps: []\n")
    (tmp_path / "b.yaml").write_text("kind: ConfigMap\n")

    code, told = run(tmp_path)

    assert code == 1
    assert [f"{name}:{line}:" in told for name, line in (("a.yaml", 1), ("a.yaml", 4), ("b.yaml", 1))] == [True] * 3


@pytest.mark.parametrize(
    "typed", [[], ["--nothing", "x"], ["/not/there"], ["{folder}"], [str(EXAMPLES), "-k", "nobody wrote this"]]
)
def test_what_is_typed_wrongly_could_not_run(tmp_path: Path, typed: list[str]) -> None:
    """Exit code 1, not 2, which says that a test failed; also for a folder without tests and a selection that selects none."""
    code, told = run(*(each.format(folder=tmp_path) for each in typed))

    assert code == 1
    assert "Traceback" not in told


def test_the_examples_run_on_one_system() -> None:
    """The tests of the documentation have one configuration, so that they share a control plane."""
    cases = read_all([EXAMPLES])

    assert len(cases) >= 7
    assert len({each.system for each in cases}) == 1


@pytest.mark.parametrize(
    ("versions", "seconds"),
    [
        (["v1"], 10),
        ([], 10),
        (["operators.coreos.com/v1alpha1"], 5),
        (["tenantry.dev/v1alpha1", "kustomize.toolkit.fluxcd.io/v1"], 5),
        (["cpet.belastingdienst.nl/v1alpha2", "v1"], 10),
        (["v1", "helm.cattle.io/v1"], 30),
    ],
)
def test_a_step_has_the_time_of_what_it_writes(versions: list[str], seconds: float) -> None:
    """Scopes, Paas and Flux 5 s, projects and all else 10 s, and 30 s where Helm runs: the times of the acceptance checks."""
    assert time_for([{"apiVersion": each} for each in versions]) == seconds
