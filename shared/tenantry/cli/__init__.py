"""The ``tenantry`` command."""

from __future__ import annotations

import sys

import click

from tenantry import __version__
from tenantry.api import ConnectError
from tenantry.api.errors import ApiError
from tenantry.cli.cluster import cluster
from tenantry.cli.configuration import config
from tenantry.cli.functions import invoke, serve
from tenantry.cli.up import up
from tenantry.serving.config import ConfigError


class _Main(click.Group):
    """A group whose expected failures are one message and exit code 1 or 2, never a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except ConfigError as error:
            click.echo(f"tenantry: {error}", err=True)
            sys.exit(2)
        except ConnectError as error:
            click.echo(f"tenantry: {error.message}", err=True)
            sys.exit(2)
        except ApiError as error:
            click.echo(f"tenantry: {error}", err=True)
            sys.exit(1)


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, "-V", "--version")
def main() -> None:
    """Kubernetes multi-tenancy as small, stateless event functions.

    \b
    Examples:
      tenantry up                       everything on this machine, with a control plane of its own
      tenantry cluster up               only the control plane; it stays until `tenantry cluster down`
      tenantry invoke namespace-registration --kind Namespace --name team-a
      tenantry config check tenantry.yaml
    """


for _command in (up, cluster, serve, invoke, config):
    main.add_command(_command)
