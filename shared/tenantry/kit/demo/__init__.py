"""``tenantry demo``: the story of a project, acted out step by step against a ``tenantry up``, which it starts if none runs."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import click

from tenantry.api import Api
from tenantry.api.errors import ApiError
from tenantry.cli.served import discovered
from tenantry.kit.demo.story import MANAGER, Stuck, act
from tenantry.kit.extras import need_local
from tenantry.kit.up import run_everything
from tenantry.model.config import Config
from tenantry.serving.config import ConfigError, load_config

_ANSWERS_S = 1.0


@click.command()
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="Act it out in this cluster, as an administrator, instead of the one of `tenantry up`; Tenantry must run there.",
)
@click.option("--step", is_flag=True, help="Wait for Enter before each step.")
def demo(kubeconfig: Path | None, step: bool) -> None:
    """Act out the story of a project: a namespace joins it, a chart comes, somebody gets rights, a change is put back.

    For each step it shows the command that you would type, which objects came, by which function, and after how many
    milliseconds.  It does not need kubectl.  What it made stays, to be looked at; another run takes other names.

    \b
    Examples:
      tenantry demo
      tenantry demo --step
      TENANTRY_CONFIG=tenantry.yaml tenantry demo --kubeconfig ~/.kube/config
    """
    from tenantry.local.control_plane import status
    from tenantry.local.control_plane.places import cluster_folder

    need_local("demo")

    async def tell(config: Path) -> int:
        return await _tell(config, step)

    if kubeconfig is not None:
        sys.exit(asyncio.run(tell(kubeconfig)))
    running = status(cluster_folder())
    if running.running and running.kubeconfig and asyncio.run(_runs(Path(running.kubeconfig))):
        sys.exit(asyncio.run(tell(Path(running.kubeconfig))))
    load_config()  # a wrong configuration ends here, before anything is started
    click.echo("no `tenantry up` runs here: starting everything for as long as the story takes\n")
    code = run_everything(None, then=tell)
    if code == 0:
        click.echo("\nEverything has ended; the cluster's data stay, and `tenantry up` goes on with them.")
    sys.exit(code)


async def _runs(kubeconfig: Path) -> bool:
    """Whether somebody who says that he runs Tenantry there, on this machine, takes events."""
    from tenantry.local.presence import BROKER

    return any([await asyncio.to_thread(_answers, annotations.get(BROKER, "")) for annotations in await _leases(kubeconfig)])


async def _leases(kubeconfig: Path) -> list[Mapping[str, str]]:
    from tenantry.local.presence import present

    async with await Api.connect(field_manager=MANAGER, kubeconfig=kubeconfig) as api:
        return [each.told for each in await present(api)]


def _answers(url: str) -> bool:
    address = urlsplit(url)
    try:
        with socket.create_connection((address.hostname or "", address.port or 0), _ANSWERS_S):
            return True
    except OSError:
        return False


async def _tell(kubeconfig: Path, step: bool) -> int:
    async with await Api.connect(field_manager=MANAGER, kubeconfig=kubeconfig) as api:
        await discovered(api)  # a story that nobody carries on would only leave its first objects behind
    config = _config(await _leases(kubeconfig))
    if not config.project_label:
        raise ConfigError("the configuration has no projectLabel: without projects there is no story to tell")
    async with await Api.connect(field_manager=MANAGER, kubeconfig=kubeconfig) as api:
        try:
            await act(api, config, kubeconfig, wait_for_enter=step)
        except Stuck as error:
            click.secho(f"\n{error}", fg="red", err=True)
            return 1
        except ApiError as error:
            click.secho(f"\nthe API server answers: {error.message}", fg="red", err=True)
            return 1
    return 0


def _config(leases: Iterable[Mapping[str, str]]) -> Config:
    """The configuration of the `tenantry up` that runs there, as far as it is of this machine; else that of TENANTRY_CONFIG."""
    from tenantry.local.presence import CONFIGURATION

    named = (Path(each[CONFIGURATION]) for each in leases if each.get(CONFIGURATION))
    return load_config(next((each for each in named if each.is_file()), None))
