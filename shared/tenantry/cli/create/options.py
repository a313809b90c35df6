"""Values that several commands of ``tenantry create`` take, checked as they are read."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

import click

from tenantry.model.flux.durations import duration
from tenantry.model.identifiers import is_dns_label, is_dns_subdomain


class GitUrl(NamedTuple):
    """The address of a Git repository, and its parts that matter."""

    text: str
    scheme: str
    host: str
    port: int


def object_name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """A name that objects can have, without dots: these separate name and namespace in references."""
    if not is_dns_label(value):
        raise click.BadParameter(
            f"{value!r} is no name: use at most 63 lower-case letters, digits and '-', a letter or digit first and last",
            ctx,
            parameter,
        )
    return value


def optional_name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """A name that objects can have, or nothing."""
    if value and not is_dns_subdomain(value):
        raise click.BadParameter(f"{value!r} is no name that an object can have", ctx, parameter)
    return value


def parts(values: tuple[str, ...]) -> list[str]:
    """The values of an option that is given several times, or with commas, each once."""
    return list(dict.fromkeys(part.strip() for value in values for part in value.split(",")))


def interval(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """A duration, in the form that Flux prints."""
    try:
        return duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, parameter) from error


def git_url(ctx: click.Context, parameter: click.Parameter, value: str) -> GitUrl:
    """The address of a Git repository by ssh, http or https; never repeated in an error, since it may hold a password."""
    problem = "give one as ssh://git@host/path, https://host/path or http://host/path"
    try:
        found = urlsplit(value)
        scheme, host, port, password = found.scheme, found.hostname or "", found.port, found.password
    except ValueError:
        raise click.BadParameter(problem, ctx, parameter) from None
    if scheme not in ("ssh", "http", "https"):
        raise click.BadParameter(f"the scheme {scheme!r} is not one of Git: {problem}" if scheme else problem, ctx, parameter)
    if not host or any(each.isspace() for each in value):
        raise click.BadParameter(problem, ctx, parameter)
    if password is not None:
        raise click.BadParameter("it holds a password: take it out, and use `tenantry create secret git`", ctx, parameter)
    return GitUrl(value, scheme, host, port or {"ssh": 22, "http": 80, "https": 443}[scheme])
