"""``tenantry cluster``: a real Kubernetes control plane on this machine, up until it is taken down.

``up`` owns the processes while they start, so that Ctrl-C or a kill leaves nothing; once the cluster is
usable they are handed to their supervisor and stay.  Every verb works on a data folder, by default the one
of this user.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import click
import yaml

from tenantry.kit.ending import end_in_order
from tenantry.local.control_plane import (
    ALL_MODULES,
    EXTRAS,
    HELM,
    ControlPlane,
    ControlPlaneError,
    Lines,
    Status,
    cluster_folder,
    ensure_binaries,
    find_binaries,
    take_down,
    wipe,
)
from tenantry.local.control_plane import status as read_status

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: Exit code of ``status`` when the control plane does not run (LSB: program is not running).
NOT_RUNNING = 3


def _told(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Show an error of the control plane as one message, without a trace."""

    @functools.wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except ControlPlaneError as error:
            raise click.ClickException(str(error)) from error

    return wrapper


_data_option = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Data folder.  Default: the folder `cluster` in TENANTRY_HOME.",
)


@click.group()
def cluster() -> None:
    """A real Kubernetes API on this machine, without containers or nodes."""


@cluster.command()
@_data_option
@click.option("--fresh", is_flag=True, help="Wipe the data first; stops what runs on it.")
@click.option("--port", type=click.IntRange(1, 65535), default=None, help="Port of the API server on 127.0.0.1.")
@_told
def up(data: Path | None, fresh: bool, port: int | None) -> None:
    """Start etcd, kube-apiserver and kube-controller-manager; return when the API is ready."""
    end_in_order()
    folder = _folder(data)
    before = read_status(folder)
    if before.running and not fresh:
        click.echo(f"Already up: Kubernetes {before.version} at {before.server}.")
        _next_steps(before)
        return
    progress = Lines()
    binaries = ensure_binaries(progress)
    if take_down(folder):
        progress.say("Stopped what was running.")
    if fresh:
        wipe(folder)
    started = time.monotonic()
    with ControlPlane(data_dir=folder, port=port, binaries=binaries, progress=progress) as plane:
        plane.detach()
    after = read_status(folder)
    progress.say(f"Kubernetes {after.version} is up at {after.server} (ready in {time.monotonic() - started:.1f} s).")
    _next_steps(after)


@cluster.command()
@_data_option
@_told
def down(data: Path | None) -> None:
    """Stop the control plane; its data stays."""
    folder = _folder(data)
    if take_down(folder):
        click.echo("Stopped.")
    else:
        click.echo(f"Nothing was running on {folder}.")


@cluster.command()
@_data_option
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
def status(data: Path | None, output: str) -> None:
    """Say what runs: version, ports, pids, memory, kubeconfig, Helm.  Exit code 3 when it does not run."""
    current = read_status(_folder(data))
    helm, missing = None, "not built yet: `tenantry cluster build`"
    try:
        found, _ = find_binaries((HELM,))
        helm = next(({"version": one.version, "place": one.place, "path": str(one.paths["helm"])} for one in found), None)
    except ControlPlaneError as error:
        missing = str(error)  # the rest is told all the same
    if output == "json":
        click.echo(json.dumps({**current.as_dict(), "helm": helm}, indent=2))
    elif output == "yaml":
        click.echo(yaml.safe_dump({**current.as_dict(), "helm": helm}, sort_keys=False), nl=False)
    else:
        click.echo(_as_text(current))
        told = "{version} ({place}): {path}".format(**helm) if helm else missing
        click.echo(f"helm        {told}")
    if not current.running:
        raise click.exceptions.Exit(NOT_RUNNING)


@cluster.command()
@_data_option
def kubeconfig(data: Path | None) -> None:
    """Print the path of the kubeconfig, and nothing else."""
    current = read_status(_folder(data))
    if not current.running:
        raise click.ClickException("The control plane is not running.\nRemedy: `tenantry cluster up`.")
    click.echo(current.kubeconfig)


@cluster.command()
@click.argument("extra", nargs=-1, type=click.Choice(list(EXTRAS)))
@_told
def build(extra: tuple[str, ...]) -> None:
    """Find the programs of the control plane, and Helm, or build them once (eight to ten minutes on two cores).

    EXTRA names further programs, which only some tests use.
    """
    end_in_order()
    further = tuple(module for name in EXTRAS if name in extra for module in EXTRAS[name])
    for found in ensure_binaries(Lines(), (*ALL_MODULES, *further)).found:
        for name, path in found.paths.items():
            click.echo(f"{name} {found.version} ({found.place}): {path}")


def _folder(data: Path | None) -> Path:
    return data.expanduser().absolute() if data is not None else cluster_folder()


def _next_steps(current: Status) -> None:
    click.echo(f"\nNext:\n  export KUBECONFIG={current.kubeconfig}\n  tenantry cluster status\n  tenantry cluster down")


def _as_text(current: Status) -> str:
    if not current.processes:
        return f"Not running (nothing was started on {current.data})."
    headline = "Running" if current.running else "Partly running" if current.partly else "Not running"
    lines = [
        f"{headline}: Kubernetes {current.version}",
        f"server      {current.server}",
        f"kubeconfig  {current.kubeconfig}",
        f"data        {current.data}",
        "",
        f"{'process':<25}{'state':<10}{'pid':>8}{'MiB':>7}  listens on",
    ]
    for process in current.processes:
        state = "running" if process.running else "ended"
        lines.append(f"{process.name:<25}{state:<10}{process.pid:>8}{process.resident_mib:>7}  {process.listens}")
    if current.running:
        lines.append(f"{'total':<43}{sum(process.resident_mib for process in current.processes):>7}")
    else:
        lines.append("\nRemedy: `tenantry cluster up`; why a process ended is in its log in the data folder.")
    return "\n".join(lines)
