"""``tenantry console``: the map as a page that follows the cluster, served on loopback to who has its address.

`live` keeps the map, `decided` the newest decisions, of which `story` and `deeds` make episodes, and `running` what runs the
functions; `asked` answers for one object and for one right, `page` is what the browser gets, `app` has the routes and lets nobody
in without the token.  Nothing here writes to the cluster.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
import tempfile
import webbrowser
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import click

from tenantry.cli.ledger import ledger_option
from tenantry.cli.options import kubeconfig_option

HOST = "127.0.0.1"
_REDIRECT = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={url}"><a href="{url}">Tenantry</a>'


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port on loopback; default: any that is free.")
@click.option("--no-open", is_flag=True, help="Open no browser.")
@ledger_option
@kubeconfig_option
def console(port: int, no_open: bool, ledger: Path | None, kubeconfig: Path | None) -> None:
    """Serve a page with the map of the cluster, which follows it, until Ctrl-C.

    The page shows problems first; then what people do, what functions do because of it and what that leads to, where the
    configuration has decisions.enabled; then projects, namespaces, roles, scopes, locks, sources and who reaches what; of what
    you choose whose it is and why; who can do what; and what runs.  It reads with the rights of your kubeconfig, and writes
    nothing.

    It listens on this machine only, and answers only to who has the address that is printed: do not pass that on.

    \b
    Examples:
      tenantry console
      tenantry console --port 8900 --no-open
      tenantry console --kubeconfig ~/.kube/other
    """
    try:
        listener = socket.create_server((HOST, port))
    except OSError as error:
        raise click.UsageError(f"port {port} cannot be listened on ({error.strerror}): choose another with --port") from error
    with listener:
        asyncio.run(_serve(listener, kubeconfig, ledger, opens=not no_open))


async def _serve(listener: socket.socket, kubeconfig: Path | None, ledger: Path | None, *, opens: bool) -> None:
    from tenantry.api import Api
    from tenantry.cli.standing.look import look
    from tenantry.cli.standing.read import PERSON
    from tenantry.kit.console.app import App
    from tenantry.kit.console.decided import Decided
    from tenantry.kit.console.live import Live, beside
    from tenantry.kit.console.running import Running
    from tenantry.serving import server

    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(32)
    url = f"http://{HOST}:{port}/{token}/"
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig))
        _, standing = await look(api, system=False)
        live = await stack.enter_async_context(Live(api, standing).following())
        decided = Decided(api, ledger, live.news, live.followed.config.project_label)
        await stack.enter_async_context(beside(decided.follow()))
        running = Running(live)
        await stack.enter_async_context(beside(running.follow()))
        app = App(live, decided, running, token, port)
        click.echo(f"console: {url}")
        click.echo("Only this machine reaches it, and only who has this address. It writes nothing. Ctrl-C ends it.")
        sys.stdout.flush()
        if opens and _has_screen():
            await asyncio.to_thread(_open, url, stack.enter_context(tempfile.TemporaryDirectory(prefix="tenantry-console-")))
        await server.run(server.make_server(app, HOST, port), listener, app.end)
    click.echo("ended")


def _has_screen() -> bool:
    """Whether a person with a graphical screen started this: elsewhere a browser would take the terminal."""
    return sys.stdout.isatty() and (
        sys.platform == "darwin" or any(os.environ.get(each) for each in ("DISPLAY", "WAYLAND_DISPLAY"))
    )


def _open(url: str, folder: str) -> None:
    """Show the page by a file that only this user can read: arguments of a process are for everybody on the machine."""
    path = Path(folder) / "console.html"
    path.write_text(_REDIRECT.format(url=url), encoding="utf-8")
    with suppress(webbrowser.Error, OSError):
        webbrowser.open(path.as_uri())
