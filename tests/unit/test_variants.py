"""Which variants of a test a run takes: pytest itself collects them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import variants

CONFTEST = """
from variants import leave_out


def pytest_collection_modifyitems(items):
    leave_out(items)
"""
TESTS = """
import pytest


@pytest.fixture(params=["x", "y"])
def c(request):
    return request.param


def table(test):
    return pytest.mark.parametrize("a", [{"n": 0}, {"n": 1}, {"n": 2}], ids="pqr")(pytest.mark.parametrize("b", ["s", "t"])(test))


@pytest.mark.one_variant("a", "b")
@table
def test_one_of_all(a, b): ...


@pytest.mark.one_variant("a")
@table
def test_one_for_each_of_the_others(a, b): ...


@pytest.mark.one_variant("c")
@table
def test_a_fixture(a, b, c): ...


@table
def test_not_marked(a, b): ...


@pytest.mark.one_variant("d")
@pytest.mark.parametrize("d", [pytest.param(0, marks=pytest.mark.skipif(True, reason="takes long")), 1, 2])
def test_what_may_not_run(d): ...


@pytest.mark.one_variant("d")
@pytest.mark.parametrize("d", [pytest.param(0, marks=pytest.mark.skipif(True, reason="takes long")), 1])
def test_the_only_one_that_may(d): ...


"""
MORE = """
@pytest.mark.one_variant("d")
@pytest.mark.parametrize("d", [0, 1])
def test_{}(d): ...


"""


def run(folder: Path) -> list[tuple[str, str]]:
    """(test, variant) of each that ran."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_them.py").write_text(TESTS + "".join(MORE.format(name) for name in "abcdef"))
    (folder / "pytest.ini").write_text("[pytest]\n")
    environment = {**os.environ, "PYTHONPATH": str(Path(variants.__file__).parent)}
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-W", "ignore", "-c", "pytest.ini"]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return re.findall(r"::(test_\w+)\[(\S+)\] PASSED", ended.stdout)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    return run(tmp_path_factory.mktemp("variants"))


def test_how_many_of_each(ran: list[tuple[str, str]]) -> None:
    """One of the parameters that are named for each combination of the others."""
    count = Counter(test for test, _ in ran)
    assert count["test_one_of_all"] == 1
    assert count["test_one_for_each_of_the_others"] == 2
    assert count["test_a_fixture"] == 6
    assert count["test_not_marked"] == 6
    assert count["test_what_may_not_run"] == count["test_the_only_one_that_may"] == 1


def test_each_of_the_others_is_there(ran: list[tuple[str, str]]) -> None:
    """Values that cannot be hashed, and those of fixtures, are told apart as well."""
    variants_of = {test: [variant.split("-") for each, variant in ran if each == test] for test, _ in ran}
    assert {"s", "t"} == {part for each in variants_of["test_one_for_each_of_the_others"] for part in each} & {"s", "t"}
    assert len({frozenset(each) - {"x", "y"} for each in variants_of["test_a_fixture"]}) == 6


def test_it_is_always_the_same_one_and_not_the_same_for_all(ran: list[tuple[str, str]], tmp_path: Path) -> None:
    assert run(tmp_path) == ran
    assert {variant for test, variant in ran if len(test) == len("test_a")} == {"0", "1"}
