"""The ``tenantry`` command.  Each subcommand is imported when it is called: a function must start fast."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from typing import Any, NoReturn

import click

from tenantry import __version__
from tenantry.model.descriptor import Command
from tenantry.serving.installed import descriptors

COMMANDS = (
    Command("serve", "tenantry.cli.serve", "Serve one function over HTTP."),
    Command(
        "status", "tenantry.cli.status", "Whether everything works: functions, backlog, dead letters, problems with their fixes."
    ),
    Command("tree", "tenantry.cli.tree", "What belongs to what: projects, Paas, tenants, namespaces, releases, rights, scopes."),
    Command("map", "tenantry.cli.map", "The same as one file for a report: HTML, SVG or JSON."),
    Command("completion", "tenantry.cli.completion", "Completion for bash, zsh and fish."),
    Command("dead-letters", "tenantry.cli.dead_letters", "Events that no function could handle: list, replay, clear."),
    Command("history", "tenantry.cli.history", "What was decided, and because of what; what an owner had at a time."),
    Command("replay", "tenantry.cli.replay", "Have functions look again: at dead letters, or at what was decided in a time."),
    Command("config", "tenantry.cli.configuration", "Check and show the configuration."),
    Command("check", "tenantry.cli.check", "Check manifests of a tenant before they are pushed."),
    Command("plan", "tenantry.cli.foresee", "What functions would write because of a change, before it is made."),
    Command("profile", "tenantry.cli.profile", "One tenant or many: the policies of Flux tenancy, printed or applied."),
    Command("audit", "tenantry.cli.audit", "What the profile of many tenants would refuse, before it is switched on."),
    Command("sources", "tenantry.cli.sources", "Which sources of other namespaces a namespace may use."),
    Command("explain", "tenantry.cli.explain", "Why a right exists, whose an object is, what is missing for a right."),
    Command("create", "tenantry.cli.create", "Onboard teams that deliver with Flux: tenants, keys, sources, Kustomizations."),
)
KIT = "tenantry.kit"
THE_KIT = f"the kit: pip install tenantry-kit=={__version__}"


def has_kit() -> bool:
    """Whether the kit is installed: it is a wheel of its own."""
    return importlib.util.find_spec(KIT) is not None


@cache
def commands() -> dict[str, Command]:
    """All commands by name: those of the kit, those that are always there, and those of functions."""
    found = list(importlib.import_module(KIT).COMMANDS) if has_kit() else []
    found += COMMANDS
    found += [command for function in descriptors().values() for command in function.commands]
    return {each.name: each for each in found}


class _Main(click.Group):
    """A lazy group whose expected failures are one message and exit code 1 or 2, never a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in commands():
            return None
        command: click.Command = getattr(importlib.import_module(commands()[cmd_name].module), cmd_name.replace("-", "_"))
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Names of commands and options, without importing each command."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(each.name, help=each.about) for each in commands().values() if each.name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if has_kit():
                raise
            raise click.UsageError(f"{error.message} More commands come with {THE_KIT}.", ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(each.name, each.about) for each in commands().values()])

    def invoke(self, ctx: click.Context) -> object:
        from tenantry.api import ConnectError
        from tenantry.api.errors import ApiError
        from tenantry.cli.output import wants_colours
        from tenantry.serving.config import ConfigError

        if not wants_colours():
            ctx.color = False
        try:
            return super().invoke(ctx)
        except (ConfigError, ConnectError) as error:
            _fail(str(error), 2)
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
      tenantry plan --label namespace/team-a field.cattle.io/projectId=p-1
      tenantry config check tenantry.yaml
      tenantry status                   whether everything works, and what to do where it does not
    """
