"""``tenantry up``: everything on this machine, in the foreground, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenantry.kit.ending import end_in_order

if TYPE_CHECKING:
    from tenantry.model.config import Config

_COLOURS = {"warning": "yellow", "error": "red", "critical": "red"}
READY = "Ready."
"""What a line begins with that is printed once everything runs."""
_NEXT = f"""
{READY} Ctrl-C ends everything. To see what it does, in another terminal:

  export KUBECONFIG={{kubeconfig}}
  {{program}} demo
  {{program}} status     what runs, and what is wrong
  {{program}} tree       each project with all that it has
{{page}}{{history}}{{story}}
What functions write is shown here. Events that none of them could handle: {{program}} dead-letters
"""
_STORY = """
or by hand (docs/running.md goes on from there):

  kubectl create namespace team-a
  kubectl label namespace team-a {label}=p-a
  kubectl get namespaces,configmaps -A -l helm.cattle.io/helm-project-operated=true
"""
_PAGE = "  {program} console    the same as a page\n"
_SERVED = """\
  {url}
             the same as a page, which follows it all; only who has this address reaches it
"""
_HISTORY = "  {program} history    what was written, and because of what\n"
_IDLE = "sweep: nothing to do, 0 writes"
"""What a function says when a schedule came round and all was well: no news."""
Then = Callable[[Path], Awaitable[int]]
"""What is done when everything runs, by the kubeconfig: an exit code."""


@click.command()
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="Use this cluster, as an administrator, instead of the embedded control plane.",
)
@click.option("--function", "functions", multiple=True, metavar="NAME", help="Only this function, and what wakes it; repeatable.")
@click.option("--fresh", is_flag=True, help="Begin with an empty cluster (only with the embedded control plane).")
@click.option(
    "--without-guards",
    is_flag=True,
    help="Leave out the admission policies that hold for everybody (knative/guards), and take out those that are there.",
)
@click.option(
    "--instances",
    type=click.IntRange(1, 16),
    default=1,
    show_default=True,
    help="Processes of each function behind one address, as many instances of a Knative Service are.",
)
@click.option("--console", is_flag=True, help="Serve the page of `tenantry console`, too, and print its address.")
def up(
    kubeconfig: Path | None, functions: tuple[str, ...], fresh: bool, without_guards: bool, instances: int, console: bool
) -> None:
    """Run sources, broker, schedules and functions here, against an embedded control plane or --kubeconfig.

    Installs the CRDs, and an identity with the least rights for each function.  TENANTRY_CONFIG names the
    configuration.  Ends cleanly on Ctrl-C and SIGTERM; what was declared in the cluster stays there.

    \b
    Examples:
      tenantry up
      tenantry up --console
      tenantry up --function namespace-registration --function release-provisioning
      TENANTRY_CONFIG=tenantry.yaml tenantry up --kubeconfig ~/.kube/config
    """
    from tenantry.kit.extras import need_local
    from tenantry.local.policies import guard_names
    from tenantry.serving.charts import SETTING, chart_files
    from tenantry.serving.config import load_config
    from tenantry.serving.installed import descriptors

    need_local("up")
    unknown = [name for name in functions if name not in descriptors()]
    if unknown:
        raise click.BadParameter(f"no function {unknown[0]}: there are {', '.join(descriptors())}", param_hint="--function")
    config = load_config()  # a wrong configuration ends here, before anything is started
    if any(descriptors()[name].reads_setting(SETTING) for name in functions or descriptors()):
        chart_files(config)
    without = guard_names() if without_guards else frozenset()
    sys.exit(run_everything(kubeconfig, functions, without, fresh=fresh, instances=instances, console=console))


def run_everything(
    kubeconfig: Path | None,
    functions: Sequence[str] = (),
    without: Collection[str] = (),
    *,
    fresh: bool = False,
    instances: int = 1,
    console: bool = False,
    then: Then | None = None,
) -> int:
    """Start what is not there and run until a signal, or until ``then`` is done; returns the exit code.

    With ``console`` its page is served too, where nothing else is to be done ``then``.
    """
    from tenantry.kit.extras import helm_program
    from tenantry.local.control_plane import ControlPlane, ControlPlaneError, Lines, status, take_down, wipe
    from tenantry.local.control_plane.places import cluster_folder
    from tenantry.local.manifests import ManifestError
    from tenantry.local.processes import FunctionFailed

    try:
        end_in_order()
        if kubeconfig is not None:
            return asyncio.run(_run(kubeconfig, functions, without, instances=instances, console=console, then=then))
        running = status(cluster_folder())
        if running.running and running.kubeconfig and not fresh:
            _phase("control plane", f"Kubernetes {running.version} at {running.server}, which runs already")
            known = Path(running.kubeconfig)
            return asyncio.run(_run(known, functions, without, helm_program(), instances=instances, console=console, then=then))
        if fresh:
            take_down(cluster_folder())
            wipe(cluster_folder())
        helm = helm_program()
        began = time.monotonic()
        with ControlPlane(progress=Lines()) as plane:
            _phase("control plane", f"Kubernetes {plane.version} at {plane.server_url}", time.monotonic() - began)
            return asyncio.run(
                _run(plane.kubeconfig, functions, without, helm, own=True, instances=instances, console=console, then=then)
            )
    except (ControlPlaneError, FunctionFailed, ManifestError) as error:
        click.echo(f"tenantry: {error}", err=True)
        return 1
    except KeyboardInterrupt:
        return 130


async def _run(
    kubeconfig: Path,
    functions: Sequence[str],
    without: Collection[str],
    helm: Path | None = None,
    *,
    own: bool = False,
    instances: int = 1,
    console: bool = False,
    then: Then | None = None,
) -> int:
    """Run until a signal, or until Tenantry is uninstalled, which needs an ``own`` control plane for longer than us.

    With ``helm`` there is no node, and the Jobs that run Helm are run here too.
    """
    from tenantry.kit.console.process import console_process
    from tenantry.local.knative import Knative
    from tenantry.serving.config import load_config

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    with tempfile.TemporaryDirectory(prefix="tenantry-up-") as folder:
        knative = Knative(
            kubeconfig,
            Path(folder),
            functions=functions or None,
            say=_say if then is None else lambda _: None,
            on_log=_log if then is None else None,
            on_delivery=_delivery if then is None else None,
            helm=helm,
            without=without,
            tell=_phase,
            instances=instances,
        )
        page = console_process(kubeconfig) if console and then is None else nullcontext("")
        code = await _until_stopped(knative, stop, kubeconfig, load_config(), page, own, then)
    if then is None:
        click.echo("ended")
    return code


async def _until_stopped(
    knative: Any,
    stop: asyncio.Event,
    kubeconfig: Path,
    config: Config,
    page: AbstractAsyncContextManager[str],
    own: bool,
    then: Then | None,
) -> int:
    from tenantry.serving.garbage import settle

    entering = asyncio.create_task(knative.__aenter__())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({entering, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not entering.done():
        entering.cancel()
        await asyncio.gather(entering, return_exceptions=True)
        return 0
    entering.result()
    settle()
    async with AsyncExitStack() as stack:
        stack.push_async_exit(knative)
        if then is not None:
            return await _unless(stopping, then(kubeconfig))
        url = await stack.enter_async_context(page)
        click.echo(_next(kubeconfig, config, url))
        sys.stdout.flush()
        ended = asyncio.create_task(knative.ended.wait())
        await asyncio.wait({stopping, ended}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            ended.cancel()
            click.echo("stopping: finishing what runs")
            return 0
        click.echo("Tenantry was taken out of this cluster: sources, broker and functions have ended")
        if own:
            click.echo("Ctrl-C ends the control plane")
            sys.stdout.flush()
            await stopping
        return 0


def _next(kubeconfig: Path, config: Config, url: str) -> str:
    """What to try next; with the address of the page where it is served."""
    program = "tenantry" if shutil.which("tenantry") or sys.argv[0].endswith(".py") else sys.argv[0]
    story = _STORY.format(label=config.project_label) if config.project_label else ""
    history = _HISTORY.format(program=program) if config.decisions.enabled else ""
    page = _SERVED.format(url=url) if url else _PAGE.format(program=program)
    return _NEXT.format(program=program, kubeconfig=kubeconfig, story=story, history=history, page=page)


async def _unless(stopping: asyncio.Task[Any], work: Awaitable[int]) -> int:
    """The result of some work, or 130 when it is to stop before."""
    working = asyncio.ensure_future(work)
    await asyncio.wait({stopping, working}, return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    return 130


def _phase(name: str, what: str, seconds: float | None = None) -> None:
    took = click.style(f"  ({seconds:.1f} s)", dim=True) if seconds is not None else ""
    click.echo(f"{name:<14} {what}{took}")
    sys.stdout.flush()


def _line(who: str, text: str, level: str = "info") -> None:
    stamp = time.strftime("%H:%M:%S")
    click.echo(f"{stamp} {click.style(f'{who:<24}', dim=True)} {click.style(text, fg=_COLOURS.get(level))}")
    sys.stdout.flush()


def _say(text: str) -> None:
    _line("tenantry", text)


def _log(function: str, line: Mapping[str, str]) -> None:
    if line.get("message") == _IDLE:
        return
    _line(function, line.get("message", ""), line.get("level", "info"))
    if error := line.get("error"):
        click.echo(error)


def _delivery(trigger: str, event: Any, status: int, attempt: int, seconds: float) -> None:
    if status < 200 or status >= 300:
        what = event.extensions.get("name") or event.type
        _line("broker", f"{trigger}: {what}: {status or 'no answer'} (try {attempt}, {seconds:.2f} s)", "warning")
