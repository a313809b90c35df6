"""The ``tenantry`` command.  Each subcommand is imported when it is called: a function must start fast."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import NoReturn

import click

from tenantry import __version__

COMMANDS = {
    "up": ("tenantry.cli.up", "Run everything on this machine, in the foreground."),
    "cluster": ("tenantry.cli.cluster", "A Kubernetes control plane on this machine."),
    "serve": ("tenantry.cli.functions", "Serve one function over HTTP."),
    "invoke": ("tenantry.cli.functions", "Send one event to a function; show the verdict and the writes."),
    "uninstall": ("tenantry.cli.uninstall", "Take Tenantry out of a cluster; what people made stays."),
    "guards": ("tenantry.cli.guards", "Say whom the admission policies for everybody would refuse today."),
    "dead-letters": ("tenantry.cli.dead_letters", "Events that no function could handle: list, replay, clear."),
    "config": ("tenantry.cli.configuration", "Check and show the configuration."),
}


@cache
def commands() -> dict[str, tuple[str, str]]:
    """The module and the first line of help of each command: those of everybody, and those that come with a function."""
    from tenantry.serving.installed import descriptors

    return COMMANDS | {each.name: (each.module, each.about) for function in descriptors().values() for each in function.commands}


class _Main(click.Group):
    """A lazy group whose expected failures are one message and exit code 1 or 2, never a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in commands():
            return None
        command: click.Command = getattr(importlib.import_module(commands()[cmd_name][0]), cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in commands().items()])

    def invoke(self, ctx: click.Context) -> object:
        from tenantry.api import ConnectError
        from tenantry.api.errors import ApiError
        from tenantry.cli.extras import ExtraMissing
        from tenantry.serving.config import ConfigError

        try:
            return super().invoke(ctx)
        except (ConfigError, ExtraMissing) as error:
            _fail(str(error), 2)
        except ConnectError as error:
            _fail(error.message, 2)
        except ApiError as error:
            _fail(str(error), 1)


def _fail(message: str, code: int) -> NoReturn:
    for line in message.splitlines():
        click.echo(f"tenantry: {line}", err=True)
    sys.exit(code)


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, "-V", "--version")
def main() -> None:
    """Kubernetes multi-tenancy as small, stateless event functions.

    \b
    Examples:
      tenantry up                       everything on this machine, with a control plane of its own
      tenantry cluster up               only the control plane; it stays until `tenantry cluster down`
      tenantry invoke namespace-registration --kind Namespace --name team-a
      tenantry authorize-namespace tenant1 --to operators
      tenantry config check tenantry.yaml
    """
