"""``tenantry up``: everything on this machine, in the foreground, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenantry.kit.ending import end_in_order

if TYPE_CHECKING:
    from tenantry.model.config import Config

_COLOURS = {"warning": "yellow", "error": "red", "critical": "red"}
_NEXT = """
Ready. In another terminal:

  export KUBECONFIG={kubeconfig}
  kubectl create namespace team-a
  kubectl label namespace team-a {label}=p-a
  kubectl get namespaces,configmaps -A -l helm.cattle.io/helm-project-operated=true
{story}
{history}Events that no function could handle are shown by tenantry dead-letters
The broker takes CloudEvents at {broker}
Ctrl-C ends everything.
"""
_STORY = """  kubectl create -f - <<'END'
{{"apiVersion": "helm.cattle.io/v1alpha1", "kind": "ProjectHelmChart",
 "metadata": {{"name": "demo", "namespace": "cattle-project-p-a"}}, "spec": {{"helmApiVersion": "{version}"}}}}
END
  kubectl create rolebinding alice --clusterrole=view --user=alice -n cattle-project-p-a
  kubectl get projecthelmcharts,helmcharts,rolebindings -A
  kubectl apply --server-side -k {lockable}     # which kinds locks may write: from now on a release stays as Helm left it
"""


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
def up(kubeconfig: Path | None, functions: tuple[str, ...], fresh: bool, without_guards: bool) -> None:
    """Run sources, broker, schedules and functions here, against an embedded control plane or --kubeconfig.

    Installs the CRDs, and an identity with the least rights for each function.  TENANTRY_CONFIG names the
    configuration.  Ends cleanly on Ctrl-C and SIGTERM; what was declared in the cluster stays there.

    \b
    Examples:
      tenantry up
      tenantry up --function namespace-registration --function release-provisioning
      TENANTRY_CONFIG=tenantry.yaml tenantry up --kubeconfig ~/.kube/config
    """
    from tenantry.kit.extras import need_local
    from tenantry.local.control_plane import ControlPlane, ControlPlaneError, Lines, status, take_down, wipe
    from tenantry.local.control_plane.places import cluster_folder
    from tenantry.local.manifests import ManifestError
    from tenantry.local.policies import guard_names
    from tenantry.local.processes import FunctionFailed
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
    try:
        end_in_order()
        if kubeconfig is not None:
            sys.exit(asyncio.run(_run(kubeconfig, functions, without)))
        running = status(cluster_folder())
        if running.running and running.kubeconfig and not fresh:
            click.echo(f"using the control plane that runs already: {running.server}")
            sys.exit(asyncio.run(_run(Path(running.kubeconfig), functions, without, _helm())))
        if fresh:
            take_down(cluster_folder())
            wipe(cluster_folder())
        helm = _helm()
        click.echo("starting etcd, kube-apiserver and kube-controller-manager")
        with ControlPlane(progress=Lines()) as plane:
            click.echo(f"Kubernetes {plane.version} at {plane.server_url}")
            sys.exit(asyncio.run(_run(plane.kubeconfig, functions, without, helm, own=True)))
    except (ControlPlaneError, FunctionFailed, ManifestError) as error:
        click.echo(f"tenantry: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _helm() -> Path | None:
    """Helm, for the Jobs that nothing else runs here; without it everything but releases works."""
    from tenantry.local.control_plane import ControlPlaneError, Lines, ensure_helm

    try:
        return ensure_helm(Lines())
    except ControlPlaneError as error:
        click.echo(f"tenantry: without Helm no release is installed: {error}", err=True)
        return None


async def _run(
    kubeconfig: Path, functions: Sequence[str], without: Collection[str], helm: Path | None = None, *, own: bool = False
) -> int:
    """Run until a signal, or until Tenantry is uninstalled, which needs an ``own`` control plane for longer than us.

    With ``helm`` there is no node, and the Jobs that run Helm are run here too.
    """
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
            say=_say,
            on_log=_log,
            on_delivery=_delivery,
            helm=helm,
            without=without,
        )
        starting = asyncio.create_task(_until_stopped(knative, stop, kubeconfig, load_config(), own))
        await starting
    click.echo("ended")
    return 0


async def _until_stopped(knative: Any, stop: asyncio.Event, kubeconfig: Path, config: Config, own: bool) -> None:
    from tenantry.serving.garbage import settle

    entering = asyncio.create_task(knative.__aenter__())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({entering, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not entering.done():
        entering.cancel()
        await asyncio.gather(entering, return_exceptions=True)
        return
    entering.result()
    settle()
    try:
        story = _story(config) if config.project_label else ""
        click.echo(
            _NEXT.format(
                kubeconfig=kubeconfig,
                label=config.project_label or "team",
                story=story,
                history="What was written, and because of what, is shown by tenantry history\n"
                if config.decisions.enabled
                else "",
                broker=knative.broker_url,
            )
        )
        sys.stdout.flush()
        ended = asyncio.create_task(knative.ended.wait())
        await asyncio.wait({stopping, ended}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            ended.cancel()
            click.echo("stopping: finishing what runs")
            return
        click.echo("Tenantry was taken out of this cluster: sources, broker and functions have ended")
        if own:
            click.echo("Ctrl-C ends the control plane")
            sys.stdout.flush()
            await stopping
    finally:
        await knative.__aexit__(None, None, None)


def _story(config: Config) -> str:
    from tenantry.local.deployment import deployment_folder

    version = config.helm_project_operator.charts[0].helm_api_version
    return _STORY.format(version=version, lockable=deployment_folder("knative") / "lockable-kinds")


def _line(who: str, text: str, level: str = "info") -> None:
    stamp = time.strftime("%H:%M:%S")
    click.echo(f"{stamp} {click.style(f'{who:<24}', dim=True)} {click.style(text, fg=_COLOURS.get(level))}")
    sys.stdout.flush()


def _say(text: str) -> None:
    _line("tenantry", text)


def _log(function: str, line: Mapping[str, str]) -> None:
    _line(function, line.get("message", ""), line.get("level", "info"))
    if error := line.get("error"):
        click.echo(error)


def _delivery(trigger: str, event: Any, status: int, attempt: int, seconds: float) -> None:
    if status < 200 or status >= 300:
        what = event.extensions.get("name") or event.type
        _line("broker", f"{trigger}: {what}: {status or 'no answer'} (try {attempt}, {seconds:.2f} s)", "warning")
