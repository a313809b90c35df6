"""``tenantry sources``: which sources of other namespaces a namespace may use, by nothing but the rights of who asks (2.8)."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

import click

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, RefusedError
from tenantry.cli.completing import kinds, namespaces
from tenantry.cli.create.options import object_name
from tenantry.cli.one_line import OneLine, WrongUse, answer_of
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option, structured
from tenantry.model.flux.access import NamedObject
from tenantry.model.flux.names import LOCKED, SHOW_SOURCES, SOURCES_SHOWN
from tenantry.model.flux.trying import TRIED_KINDS, TriedConsumer, consumer_of, named_in
from tenantry.model.kinds import CONFIG_MAP, annotations_of, object_of

PERSON = "tenantry-cli"


@click.command(cls=OneLine)
@click.option(
    "-n",
    "--namespace",
    required=True,
    metavar="NS",
    callback=object_name,
    shell_complete=namespaces,
    help="The namespace that would use them.",
)
@click.option(
    "--try",
    "tried",
    metavar="KIND/NS/NAME",
    shell_complete=kinds([f"{each}/" for each in TRIED_KINDS]),
    help=f"Ask of one source; KIND is one of {', '.join(TRIED_KINDS)}.",
)
@click.option("--write", is_flag=True, help="With --try: whether image automation may push to it.")
@click.option("--service-account", "account", default="", metavar="NAME", help="With --try: for profiles that require one.")
@kubeconfig_option
@output_option
def sources(namespace: str, tried: str | None, write: bool, account: str, kubeconfig: Path | None, output: str) -> None:
    """List the sources of other namespaces that a namespace may use, or ask of one.

    The list is the ConfigMap tenantry-sources, which a namespace with the annotation tenantry.dev/show-sources: "true" gets. One
    source is asked for by a dry run of an object that names it: nothing is stored. Exit code 1 when the answer is no.

    \b
    Examples:
      tenantry sources -n dev-team2
      tenantry sources -n dev-team2 --try GitRepository/flux-system/shared
    """
    if tried is None:
        if write or account:
            raise click.UsageError("--write and --service-account are for --try: name a source with it")
        _list(namespace, kubeconfig, output)
        return
    try:
        source = named_in(tried)
        consumer = consumer_of(source, account=account, writes=write)
    except ValueError as error:
        raise click.UsageError(f"--try: {error}") from error
    refusal = answer_of(_refusal(namespace, source, consumer, kubeconfig))
    verb = "write to" if write else "use"
    if output != "text":
        click.echo(structured({"source": str(source), "namespace": namespace, "allowed": not refusal, "text": refusal}, output))
    elif refusal:
        click.echo(f"no: {refusal}")
    else:
        click.echo(f"yes: namespace {namespace} may {verb} {source}")
    if refusal:
        sys.exit(1)


def _list(namespace: str, kubeconfig: Path | None, output: str) -> None:
    found = answer_of(_shown(namespace, kubeconfig))
    if output != "text":
        click.echo(structured(found, output))
        return
    for access, several in found.items():
        for each in several:
            click.echo(f"{access} {each}")
    if not any(found.values()):
        click.echo(f"nothing of other namespaces is shared with namespace {namespace}")


async def _shown(namespace: str, kubeconfig: Path | None) -> dict[str, list[str]]:
    async with await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig) as api:
        found = await api.get(CONFIG_MAP, SOURCES_SHOWN, namespace)
    if found is None:
        fix = f"kubectl annotate namespace {namespace} {SHOW_SOURCES}=true"
        raise WrongUse(f"namespace {namespace} has no list of sources; have one made: {fix}, or ask of one with --try")
    data = found.get("data") or {}
    return {access: [each for each in data.get(access, "").splitlines() if each] for access in ("read", "write")}


async def _refusal(namespace: str, source: NamedObject, consumer: TriedConsumer, kubeconfig: Path | None) -> str:
    """Why the source cannot be used; empty when it can."""
    async with await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig) as api:
        kind = await api.preferred(consumer.group, consumer.kind)
        if kind is None:
            raise WrongUse(f"the cluster serves no {consumer.kind}, which is what uses a {source.kind}: ask the platform")
        metadata = {"name": f"tenantry-try-{secrets.token_hex(4)}", "namespace": namespace}
        try:
            answer = await api.create(kind, object_of(kind, metadata, spec=consumer.spec), dry_run=True)
        except AdmissionDenied as error:
            if f"{source} is not shared" in error.message:
                return f"{source} is not shared with namespace {namespace}"
            raise WrongUse(f"{source} cannot be tried: {error.message}") from error
        except RefusedError as error:
            raise WrongUse(f"{source} cannot be tried: {error.message}") from error
    # Under Quarantine it would be stored, but locked.
    return f"{source} is not shared with namespace {namespace}" if LOCKED in annotations_of(answer) else ""
