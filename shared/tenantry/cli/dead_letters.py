"""``tenantry dead-letters``: list, replay and clear the events that no function could handle."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click

from tenantry.api import Api
from tenantry.api.errors import NotFound
from tenantry.cli import THE_KIT, has_kit
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option, structured, table
from tenantry.cli.served import discovered
from tenantry.serving.dead_letters.book import Book
from tenantry.serving.dead_letters.letter import Letter, replayed
from tenantry.serving.dead_letters.store import Store

T = TypeVar("T")
PERSON = "tenantry-cli"
_COLUMNS = ("function", "key", "status", "count", "last", "reason")

function_option = click.option("--function", default="", metavar="NAME", help="Only what this function gave up.")
broker_option = click.option(
    "--broker", default="", metavar="URL", help="Where to send it; default: the broker that serves the cluster."
)
all_option = click.option("--all", "every", is_flag=True, help="All of them.")


@click.group("dead-letters", invoke_without_command=True)
@kubeconfig_option
@output_option
@click.pass_context
def dead_letters(ctx: click.Context, kubeconfig: Path | None, output: str) -> None:
    """List events that no function could handle: by function and key, the one that was given up last at the end.

    A key names an object (Namespace/team-a), an owner (projects:project/p-a) or a sweep.  What an event held is not kept.

    \b
    Examples:
      tenantry dead-letters
      tenantry dead-letters -o json
      tenantry dead-letters replay Namespace/team-a
      tenantry dead-letters replay --all --function release-provisioning
      tenantry dead-letters clear --all
    """
    if ctx.invoked_subcommand is not None:
        ctx.obj = kubeconfig
        return

    book = _run(lambda api: Store(api).read(), kubeconfig)
    letters = [letter.document() for letter in book]
    if output != "text":
        click.echo(structured({"letters": letters, "dropped": book.dropped}, output))
        return
    if letters:
        table(_COLUMNS, [[str(letter[name] or "-") for name in _COLUMNS] for letter in letters])
    else:
        click.echo("no dead letters")
    if book.dropped:
        click.secho(f"{book.dropped} older ones were deleted to make room", fg="yellow")


@dead_letters.command()
@click.argument("key", default="")
@all_option
@function_option
@broker_option
@kubeconfig_option
@output_option
@click.pass_context
def replay(ctx: click.Context, key: str, every: bool, function: str, broker: str, kubeconfig: Path | None, output: str) -> None:
    """Have the functions look again at KEY, or with --all at everything.

    The functions are sent the key and nothing else.  What was sent leaves the list, and comes back if it fails again.  A letter
    that does not say what to look at stays; the next sweep looks at everything.  Exit code 1 when something was not sent.

    From outside of a cluster the event goes through the API server: that takes the right to create services/proxy where the
    broker is.
    """
    sys.exit(send_letters(key, every, function, broker, kubeconfig or ctx.obj, output))


def send_letters(key: str, every: bool, function: str, broker: str, kubeconfig: Path | None, output: str) -> int:
    """Send dead letters again and tell of it; the exit code, 1 when something was not sent."""
    _one_or_all(key, every)

    async def letters_of(api: Api) -> list[Letter]:
        return _chosen(await Store(api).read(), key, function)

    return send_again(letters_of, broker, kubeconfig, output)


def send_again(found: Callable[[Api], Awaitable[list[Letter]]], broker: str, kubeconfig: Path | None, output: str) -> int:
    """Send what letters say to look at, and tell of it; the exit code, 1 when something was not sent.

    Those that are in the list of dead letters leave it.
    """
    if not has_kit():
        raise click.UsageError(f"to send events again needs {THE_KIT}.")
    from tenantry.local.replay import Sender, broker_of

    async def send(api: Api) -> list[tuple[Letter, str]]:
        letters = await found(api)
        if not letters:
            await discovered(api)  # else there is nothing because there is no Tenantry
            return []
        sent: list[Letter] = []
        try:
            async with Sender(api, broker or await broker_of(api)) as sender:
                for letter in letters:
                    if (event := replayed(letter)) is not None:
                        await sender.send(event)
                        sent.append(letter)
        finally:
            await Store(api).change(lambda book: book.remove(*sent))
        return [(letter, "sent" if letter in sent else "not sent: it does not say what to look at") for letter in letters]

    done = _run(send, kubeconfig)
    _tell(done, output)
    return 0 if all(result == "sent" for _, result in done) else 1


@dead_letters.command()
@click.argument("key", default="")
@all_option
@function_option
@kubeconfig_option
@output_option
@click.pass_context
def clear(ctx: click.Context, key: str, every: bool, function: str, kubeconfig: Path | None, output: str) -> None:
    """Forget KEY, or with --all everything."""
    _one_or_all(key, every)

    async def forget(api: Api) -> list[tuple[Letter, str]]:
        letters = _chosen(await Store(api).read(), key, function)

        def edit(book: Book) -> None:
            book.remove(*letters)
            if every and not function:
                book.dropped = 0

        await Store(api).change(edit)
        return [(letter, "cleared") for letter in letters]

    _tell(_run(forget, kubeconfig or ctx.obj), output)


def _one_or_all(key: str, every: bool) -> None:
    if bool(key) == every:
        raise click.UsageError("give a KEY, or --all")


def _chosen(book: Book, key: str, function: str) -> list[Letter]:
    letters = [each for each in book if key in ("", each.key) and function in ("", each.function)]
    if key and not letters:
        raise NotFound(f"there is no dead letter {key}; `tenantry dead-letters` shows those that are")
    return letters


def _tell(done: list[tuple[Letter, str]], output: str) -> None:
    if output != "text":
        rows = [{"function": letter.function, "key": letter.key, "result": result} for letter, result in done]
        click.echo(structured(rows, output))
        return
    for letter, result in done:
        click.secho(f"{letter.function}: {letter.key}: {result}", fg="yellow" if result.startswith("not") else "green")
    if not done:
        click.echo("nothing to send")


def _run(work: Callable[[Api], Awaitable[T]], kubeconfig: Path | None) -> T:
    async def run() -> T:
        async with await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig) as api:
            return await work(api)

    return asyncio.run(run())
