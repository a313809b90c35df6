"""Commands whose errors are one line on stderr that says what to do, with nothing on stdout (f-52)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click

from tenantry.api.errors import ApiError

T = TypeVar("T")


class WrongUse(click.ClickException):
    """What was typed cannot be done; the message is one line."""

    exit_code = 2


def answer_of(asking: Coroutine[Any, Any, T]) -> T:
    """Ask a cluster, where exit code 1 is an answer: that there is none is `WrongUse`."""
    try:
        return asyncio.run(asking)
    except ApiError as error:
        raise WrongUse(" ".join(str(error).split())) from error


def _in_one_line(ctx: click.Context, work: Callable[[], T]) -> T:
    try:
        return work()
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        said = " ".join(error.format_message().split())
        raise WrongUse(f"{said.rstrip('.')}; see `{(error.ctx or ctx).command_path} --help`") from error


class OneLine(click.Command):
    """A command without the lines about usage before its errors.

    What was typed beyond the arguments may be part of a password, so it is not repeated (f-63).
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        settings["context_settings"] = {"allow_extra_args": True, **(settings.get("context_settings") or {})}
        super().__init__(*arguments, **settings)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what was typed."""
        return _in_one_line(ctx, lambda: super(OneLine, self).parse_args(ctx, args))

    def invoke(self, ctx: click.Context) -> Any:
        """Do it."""
        if ctx.args:
            raise WrongUse(f"{len(ctx.args)} more arguments than `{ctx.command_path}` takes; put values with spaces in quotes")
        return _in_one_line(ctx, lambda: super(OneLine, self).invoke(ctx))


class OneLineGroup(click.Group):
    """A group of such commands."""

    command_class = OneLine
    group_class = type

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command that was named."""
        return _in_one_line(ctx, lambda: super(OneLineGroup, self).resolve_command(ctx, args))
