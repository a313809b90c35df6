"""The commands that people type, as processes of their own, and what they print."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
import upping
import yaml
from one_function import ready, serving
from people import C1, CHART_CONFIG_MAP, FUNCTION, People, look, marks, marks_of, post, registration, token

import namespace_registration
from tenantry.model.config import Config
from tenantry.model.kinds import NAMESPACE

tenantry = partial(upping.tenantry, within=30)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def kubeconfig(identity: Callable[..., Awaitable[Path]]) -> Path:
    """The function's own identity: a person who tries the function has the rights that it has."""
    return await identity(FUNCTION, Config.model_validate(C1))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The reference configuration as a file."""
    path = tmp_path / "tenantry.yaml"
    path.write_text(yaml.safe_dump(C1))
    return path


# -- help and configuration --------------------------------------------------------------------------------------


async def test_help_shows_every_command() -> None:
    """The help lists all commands with a line each, and examples."""
    code, output, _ = await tenantry("--help")

    assert code == 0
    for command in ("up", "cluster", "serve", "invoke", "config"):
        assert f"\n  {command} " in output
    assert "tenantry invoke namespace-registration" in output


async def test_config_check_accepts_the_reference(config: Path) -> None:
    """A correct file is called valid."""
    assert (0, f"{config}: valid\n", "") == await tenantry("config", "check", str(config))


async def test_config_check_names_every_problem(config: Path) -> None:
    """A wrong file is refused with the path of each key, what is allowed there, and exit code 2."""
    config.write_text("global:\n  cattle:\n    clusterID: c\nhelmProjectOperator:\n  charts: []\n")
    code, output, errors = await tenantry("config", "check", str(config))

    assert (code, output) == (2, "")
    assert "global.cattle.clusterID: unknown key; did you mean clusterId?" in errors
    assert "helmProjectOperator.charts" in errors
    assert "Traceback" not in errors


async def test_config_show_says_where_values_come_from(config: Path) -> None:
    """Every value in force is shown with its origin; for programs as YAML that is a valid file again."""
    code, output, _ = await tenantry("config", "show", str(config))
    assert code == 0
    assert f"global.cattle.clusterId = 'c-test'  ({config})" in output
    assert "helmProjectOperator.systemNamespace = 'cattle-helm-system'  (default)" in output

    code, output, _ = await tenantry("config", "show", "-o", "yaml", TENANTRY_CONFIG=str(config))
    assert code == 0
    assert Config.model_validate(C1) == Config.model_validate(yaml.safe_load(output))


# -- the way to a cluster ----------------------------------------------------------------------------------------

GOOD = """
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
"""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "{path}: does not exist; pass --kubeconfig FILE, or set KUBECONFIG to a file that does"),
        ("a: [", "{path}: is not YAML: "),
        ("just text", "{path}: is not a mapping; is this a kubeconfig?"),
        (GOOD, "{path}: current-context: is not set; choose one with `kubectl config use-context NAME`: x"),
        (GOOD + "current-context: y", "{path}: current-context: there is no context 'y'; choose one with `kubectl config"),
        (GOOD + "current-context: x", "{path}: contexts[x].context.user: there is no user 'u'; there are: none"),
        (GOOD + "current-context: x\nusers: [{name: u, user: {as: me}}]", "{path}: users[u].user.as: impersonation is not"),
    ],
)
async def test_a_wrong_kubeconfig_is_one_line(content: str | None, said: str, tmp_path: Path) -> None:
    """Whatever is wrong with a kubeconfig is said in one line with its name and what to do, and exit code 2."""
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    code, output, errors = await tenantry("lock", "list", KUBECONFIG=str(path))

    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert errors.startswith("tenantry: kubeconfig " + said.format(path=path))


async def test_a_list_of_files_names_the_one_that_is_missing(tmp_path: Path) -> None:
    """Where a file of KUBECONFIG is missing and what it should have is needed, both are said."""
    (tmp_path / "a").write_text(GOOD + "current-context: x")
    listed = f"{tmp_path}/a:{tmp_path}/b"
    code, output, errors = await tenantry("lock", "list", KUBECONFIG=listed)

    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert f"there is no user 'u'; there are: none ({tmp_path}/b of KUBECONFIG does not exist)" in errors


@pytest.mark.parametrize(
    "command",
    [
        ("up",),
        ("serve", FUNCTION),
        ("serve", "dead-letters"),
        ("dead-letters",),
        ("dead-letters", "replay", "--all"),
        ("dead-letters", "clear", "x"),
        ("invoke", FUNCTION, "--kind", "Namespace", "--name", "x"),
        ("uninstall", "--dry-run"),
        ("authorize-namespace", "x"),
        ("authorize-namespace", "--export"),
        *(("lock", verb, "x") for verb in ("show", "pause", "resume", "diff")),
    ],
    ids=" ".join,
)
async def test_every_command_refuses_a_wrong_kubeconfig(command: tuple[str, ...], tmp_path: Path) -> None:
    """Each command that talks to a cluster ends so, before it does anything."""
    path = tmp_path / "kubeconfig"
    path.write_text(GOOD + "current-context: y")
    code, output, errors = await tenantry(*command, "--kubeconfig", str(path), TENANTRY_HOME=str(tmp_path))

    assert (code, output) == (2, "")
    assert errors.startswith(f"tenantry: kubeconfig {path}: current-context: there is no context 'y'")
    assert errors.count("\n") == 1


# -- one event ---------------------------------------------------------------------------------------------------


async def test_invoke_shows_verdict_and_writes(kubeconfig: Path, config: Path, people: People) -> None:
    """One event by hand shows what was answered and written; the same again writes nothing."""
    project = f"p-{token()}"
    await people.namespace(f"a1-{project}", project)
    call = ("invoke", FUNCTION, "--kind", "Namespace", "--name", f"a1-{project}", "--kubeconfig", str(kubeconfig))
    environment = {"TENANTRY_CONFIG": str(config)}

    code, output, errors = await tenantry(*call, "-o", "json", **environment)
    assert code == 0, errors
    result = json.loads(output)
    assert result["status"] == 204
    assert f"create Namespace {registration(project)}" in result["writes"]
    assert f"create ConfigMap {registration(project)}/{CHART_CONFIG_MAP}" in result["writes"]
    assert any(write.startswith(f"update Namespace a1-{project}: ~ metadata.labels") for write in result["writes"])
    assert marks_of(project) == marks(await people.get(NAMESPACE, registration(project)))

    code, output, _ = await tenantry(*call, **environment)
    assert code == 0
    assert output.startswith("204 ")
    assert "no writes" in output


async def test_invoke_tells_what_is_wrong(kubeconfig: Path, tmp_path: Path) -> None:
    """An unknown function or kind is a usage error that lists the known ones; no API server is exit code 1 and 503."""
    for rest in ((), ("--kind", "Foo"), ("--kind", "Foo", "--name", "x", "--kubeconfig", str(kubeconfig))):
        code, _, errors = await tenantry("invoke", "nobody", *rest)
        assert (code, "no function 'nobody'; there are: lock-enforcement" in errors) == (2, True), "the function comes first"
    code, _, errors = await tenantry("invoke", FUNCTION, "--kind", "Foo", "--name", "x", "--kubeconfig", str(kubeconfig))
    assert (code, "--api-version" in errors) == (2, True)

    document = yaml.safe_load(kubeconfig.read_text())
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    away = tmp_path / "away.kubeconfig"
    away.write_text(yaml.safe_dump(document))
    code, output, errors = await tenantry("invoke", FUNCTION, "--kind", "Namespace", "--name", "x", "--kubeconfig", str(away))
    assert (code, output.startswith("503 ")) == (1, True)
    assert "Traceback" not in errors


async def test_functions_framework_serves_the_function(kubeconfig: Path, people: People, tmp_path: Path) -> None:
    """The stock functions-framework command serves the function from its main.py."""
    project = f"p-{token()}"
    await people.namespace(f"a1-{project}", project)
    source = Path(namespace_registration.__file__).parent / "main.py"
    program = Path(sys.executable).parent / "functions-framework"
    command = (str(program), "--source", str(source), "--target", "handle", "--host", "127.0.0.1")
    async with serving(kubeconfig, C1, tmp_path, command=command) as (process, url):
        await ready(process, url)

        assert await post(url, *look(NAMESPACE, f"a1-{project}")) == (204, "")
    assert marks_of(project) == marks(await people.get(NAMESPACE, registration(project)))
