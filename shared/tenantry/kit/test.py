"""``tenantry test``: a platform team's tests of its own configuration, charts and policies, against a real control plane."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenantry.cli.output import output_option, structured
from tenantry.kit.ending import end_in_order

if TYPE_CHECKING:
    from tenantry.testing.cases.files import Case
    from tenantry.testing.cases.ground import Ground
    from tenantry.testing.cases.results import Result

PASSED, COULD_NOT_RUN, FAILED = 0, 1, 2


class _Wrong(click.UsageError):
    exit_code = COULD_NOT_RUN


class _Test(click.Command):
    """What was typed wrongly could not run either: 2 means that a test failed."""

    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **settings)
        except click.UsageError as error:
            raise _Wrong(error.message, error.ctx) from error


@click.command(cls=_Test)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="DIR|FILE...")
@click.option("-k", "wanted", multiple=True, metavar="TEXT", help="Only tests with this text in their name or file; repeatable.")
@click.option(
    "--junit", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the results as JUnit's XML."
)
@click.option("--keep", is_flag=True, help="After the first failure wait, with the cluster as the test left it, until Ctrl-C.")
@click.option(
    "--patience",
    type=click.FloatRange(min=0.1, max=100),
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="Makes every time limit longer, for a slow machine.",
)
@output_option
def test(paths: tuple[Path, ...], wanted: tuple[str, ...], junit: Path | None, keep: bool, patience: float, output: str) -> None:
    """Run tests, which are YAML files: what is given, what people do, and what must follow.

    Of a DIR each file *.yaml in it is a test; keep manifests, charts and configurations in folders below.  Each test begins on
    a cluster of its own with Tenantry and nothing else, under the configuration that it names, else that of TENANTRY_CONFIG.

    Exit codes: 0 all passed, 1 they could not be run, 2 at least one failed.

    \b
    Examples:
      tenantry test tests/tenancy
      tenantry test tests/tenancy -k quota --keep
      tenantry test tests/tenancy --junit results.xml
    """
    from tenantry.kit.extras import need_local
    from tenantry.local.control_plane import ControlPlaneError
    from tenantry.local.manifests import ManifestError
    from tenantry.local.processes import FunctionFailed
    from tenantry.serving.config import ConfigError
    from tenantry.testing.cases.files import read_all

    try:
        cases = _chosen(read_all(paths), wanted)
        need_local("test")
        end_in_order()
        began = time.monotonic()
        results = asyncio.run(_run(cases, keep, patience, quiet=output != "text"))
    except (ConfigError, ControlPlaneError, FunctionFailed, ManifestError) as error:
        for line in str(error).splitlines():
            click.echo(f"tenantry: {line}", err=True)
        sys.exit(COULD_NOT_RUN)
    except KeyboardInterrupt:
        sys.exit(130)
    _tell(results, junit, output, time.monotonic() - began)
    if left := len(cases) - len(results):
        click.echo(f"{left} not run", err=True)
    sys.exit(PASSED if all(each.passed for each in results) else FAILED)


def _chosen(cases: Sequence[Case], wanted: Sequence[str]) -> list[Case]:
    from tenantry.serving.config import ConfigError

    texts = [each.lower() for each in wanted]
    found = [
        each
        for each in cases
        if not texts or any(text in each.name.lower() or text in Path(each.written.file).name.lower() for text in texts)
    ]
    if not found:
        names = ", ".join(repr(each.name) for each in cases[:5])
        raise ConfigError(f"-k {' -k '.join(wanted)}: none of {len(cases)} tests has that in its name or file; there are {names}")
    return found


async def _run(cases: Sequence[Case], keep: bool, patience: float, *, quiet: bool) -> list[Result]:
    from tenantry.kit.extras import helm_program
    from tenantry.local.control_plane import Lines
    from tenantry.testing.cases.running import Runner
    from tenantry.testing.forks import Forks
    from tenantry.testing.planes import ControlPlanes

    helm = await asyncio.to_thread(helm_program)
    with ControlPlanes() as planes:
        async with Forks() as forks:
            runner = Runner(
                planes,
                forks,
                helm,
                patience=patience,
                say=Lines().say,
                on_result=lambda result: None if quiet else _show(result),
                on_failure=_kept if keep else None,
            )
            return await runner.run(cases)


async def _kept(result: Result, ground: Ground) -> bool:
    """Leave the cluster to whoever wants to look at it; then no other test is run."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    click.echo(
        f"\nThe cluster is as {result.name!r} left it, and Tenantry is at work on it:\n\n"
        f"  export KUBECONFIG={ground.plane.kubeconfig}\n\nCtrl-C ends it.",
        err=True,
    )
    await stop.wait()
    return False


def _show(result: Result) -> None:
    mark, colour = ("PASS", "green") if result.passed else ("FAIL", "red")
    name = result.name.rstrip(".")
    click.echo(f"{click.style(mark, fg=colour)}  {name}  {click.style(f'{result.file}  {result.seconds:.1f} s', dim=True)}")
    for line in result.lines():
        click.echo(f"      {line}")


def _tell(results: Sequence[Result], to: Path | None, output: str, seconds: float) -> None:
    from tenantry.testing.cases.results import junit

    if to is not None:
        try:
            to.write_text(junit(results, seconds), encoding="utf-8")
        except OSError as error:
            click.echo(f"tenantry: cannot write {to}: {error.strerror}", err=True)
            sys.exit(COULD_NOT_RUN)
    failed = sum(not each.passed for each in results)
    if output != "text":
        click.echo(
            structured({"passed": len(results) - failed, "failed": failed, "tests": [e.document() for e in results]}, output)
        )
        return
    summary = f"{len(results) - failed} passed, {failed} failed" if failed else f"{len(results)} passed"
    click.secho(f"{summary} in {seconds:.1f} s", fg="red" if failed else "green")
