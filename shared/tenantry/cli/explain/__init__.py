"""``tenantry explain``: why a right exists, whose an object is, and what is missing for a right that somebody expects."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

import click

from tenantry.api import Api
from tenantry.api.connect import current_namespace
from tenantry.api.served import served_resources
from tenantry.cli.explain.asking import Right, Telling, Where, right_judged, right_told
from tenantry.cli.explain.can import can_told
from tenantry.cli.explain.configured import configured
from tenantry.cli.explain.missing import missing_told
from tenantry.cli.explain.objects import named_object_told
from tenantry.cli.explain.printed import (
    can_answer,
    can_lines,
    heading,
    lacking_lines,
    missing_answer,
    object_answer,
    object_lines,
    say,
)
from tenantry.cli.explain.reading import Reading
from tenantry.cli.explain.resources import find, resource_named
from tenantry.cli.explain.subjects import asked_about
from tenantry.cli.explain.told import Told
from tenantry.cli.one_line import OneLine, OneLineGroup, WrongUse, answer_of
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option, structured
from tenantry.cli.progress import ReadProgress
from tenantry.model.rbac import VERBS

PERSON = "tenantry-cli"
_OBJECT = "object"
NO = 1
"""Exit code of an answer that is no: the right is not there, or the object is not ours."""
UNKNOWN = 2
"""Exit code where nothing can be said: wrong use, no cluster, or no right to read what decides."""


class _Explain(OneLineGroup):
    """What is no command is an object."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        known = args and (args[0] in self.commands or args[0].startswith("-"))
        return super().resolve_command(ctx, args if known else [_OBJECT, *args])


@click.group(cls=_Explain, subcommand_metavar="KIND/NAME | can | why-not ...")
def explain() -> None:
    """Why a right exists, whose an object is, and what is missing for a right.

    \b
    Examples:
      tenantry explain can jane get secrets -n team-a      each path from a binding to its declaration
      tenantry explain why-not jane get secrets -n team-a  what would give it
      tenantry explain rolebinding/paas-admin -n team-a    whose it is, and what would take it away
    """


def _verbs(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The verbs that shells complete."""
    del ctx, parameter
    return [each for each in VERBS if each.startswith(incomplete)]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question as it was typed: the arguments and options of `_asking`."""

    subject: str
    verb: str
    resource: str
    namespace: str
    everywhere: bool
    groups: Sequence[str]
    subresource: str
    name: str
    config: Path | None
    kubeconfig: Path | None
    output: str


def _asking(command: Callable[[_Asked], None]) -> Callable[..., None]:
    """The arguments of a question, and its options, as one value."""

    @wraps(command)
    def asking(**typed: Any) -> None:
        command(_Asked(**typed))

    for option in (
        click.argument("subject", metavar="SUBJECT"),
        click.argument("verb", metavar="VERB", shell_complete=_verbs),
        click.argument("resource", metavar="RESOURCE"),
        click.option("-n", "--namespace", default="", metavar="NS", help="Where; else the namespace of the current context."),
        click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="In all namespaces: by bindings of the cluster."),
        click.option("--group", "groups", multiple=True, metavar="NAME", help="A group that the user is in; several times."),
        click.option("--subresource", default="", metavar="NAME", help="Such as log of pods; the same as pods/log."),
        click.option("--name", default="", metavar="NAME", help="Of one object; the same as pods/NAME."),
        _config_option,
        kubeconfig_option,
        output_option,
    )[::-1]:
        asking = option(asking)
    return asking


_config_option = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The configuration file; else TENANTRY_CONFIG, or the ConfigMap in tenantry-system.",
)


@explain.command(cls=OneLine)
@_asking
def can(asked: _Asked) -> None:
    """Whether SUBJECT may VERB a RESOURCE, and each path that gives it: binding, rule, declaration, and what would end it.

    SUBJECT is a user, group:NAME, system:serviceaccount:NS:NAME or sa:NS/NAME.  RESOURCE is as kubectl takes it: plural,
    short name, RESOURCE.GROUP, RESOURCE/NAME, RESOURCE/SUBRESOURCE, or a path such as /metrics.  The API server is asked, too,
    where you may make a SubjectAccessReview.  Exit code 0: yes; 1: no; 2: that cannot be said.

    \b
    Examples:
      tenantry explain can jane delete deploy -n team-a
      tenantry explain can group:devs get pods/log -n team-a
      tenantry explain can sa:ops/op list secrets --all-namespaces
      tenantry explain can jane get /metrics
    """
    _told(answer_of(_can(asked, can_told)), asked.output, _say_can)


@explain.command("why-not", cls=OneLine)
@_asking
def why_not(asked: _Asked) -> None:
    """What is missing for SUBJECT to VERB a RESOURCE: the nearest rule, bindings elsewhere, and declarations that would give it.

    Arguments as of `tenantry explain can`.  Exit code 0: nothing is missing; 1: it is not allowed; 2: that cannot be said.

    \b
    Examples:
      tenantry explain why-not jane delete secrets -n team-a
      tenantry explain why-not sa:ops/op watch pods -n tenant-1
    """
    _told(answer_of(_can(asked, missing_told)), asked.output, _say_missing)


@explain.command(_OBJECT, cls=OneLine, hidden=True)
@click.argument("kind", metavar="KIND/NAME")
@click.argument("name", metavar="[NAME]", default="")
@click.option("-n", "--namespace", default="", metavar="NS", help="Where; else the namespace of the current context.")
@_config_option
@kubeconfig_option
@output_option
def object_(kind: str, name: str, namespace: str, config: Path | None, kubeconfig: Path | None, output: str) -> None:
    """Whose object KIND/NAME is: which function, unit and owner, by what proof; which fields are ours; what would take it away.

    Exit code 0: it is ours, or fields of it are; 1: nothing of it is ours; 2: it is not there, or may not be read.

    \b
    Examples:
      tenantry explain rolebinding/paas-admin -n my-paas-test
      tenantry explain namespace cattle-project-p-1 -o yaml
    """
    _told(answer_of(_object(kind, name, namespace, config, kubeconfig)), output, _say_object)


def _told(told: Told, output: str, say_it: Callable[[Told], None]) -> NoReturn:
    """Print an answer, and end with its exit code."""
    if output == "text":
        say_it(told)
    else:
        click.echo(structured(told, output))
    sys.exit(UNKNOWN if told.get("unknown") else 0 if told.get("allowed", told.get("ours")) else NO)


def _say_can(told: Told) -> None:
    heading(*can_answer(told), good=bool(told["allowed"]))
    say(can_lines(told))


def _say_missing(told: Told) -> None:
    heading(*missing_answer(told), good=bool(told["allowed"]))
    if not told["allowed"]:
        say(lacking_lines(told))


def _say_object(told: Told) -> None:
    answer, rest = object_answer(told)
    heading(answer, rest, good=told["ours"])
    say(object_lines(told))


async def _can(asked: _Asked, tell: Telling) -> Told:
    place = Where(_namespace(asked), chosen=bool(asked.namespace))
    who = asked_about(asked.subject, asked.groups)
    right = Right(who, asked.verb, asked.resource, place, asked.subresource, asked.name)
    async with (
        await Api.connect(field_manager=PERSON, kubeconfig=asked.kubeconfig) as api,
        ReadProgress("reading bindings") as progress,
    ):
        reading = Reading(api, await configured(api, asked.config), progress)
        return await right_told(right, await right_judged(right, reading), reading, tell)


def _namespace(asked: _Asked) -> str:
    if asked.everywhere and asked.namespace:
        raise WrongUse("-n and --all-namespaces exclude each other: leave one out")
    return "" if asked.everywhere else asked.namespace or current_namespace(asked.kubeconfig)


async def _object(kind: str, name: str, namespace: str, config: Path | None, kubeconfig: Path | None) -> Told:
    head, _, rest = kind.partition("/")
    if bool(rest) == bool(name):
        raise WrongUse("name one object, as KIND/NAME or KIND NAME; or ask `tenantry explain can` or `why-not`")
    async with (
        await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig) as api,
        ReadProgress("reading its causes") as progress,
    ):
        served = await served_resources(api)
        found = find(head, served)
        if found is None:
            resource_named(head, "get", served)  # says what is near
            raise WrongUse(f"the server serves no {head}")
        place = (namespace or current_namespace(kubeconfig)) if found.kind.namespaced else ""
        reading = Reading(api, await configured(api, config), progress)
        return await named_object_told(found.kind, rest or name, place, reading)
