"""``tenantry create secret git``: keys or credentials for a repository (f-63, f-146)."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import click

from tenantry.api import Api
from tenantry.cli.create.options import GitUrl, git_url, object_name
from tenantry.cli.create.ssh_keys import ALGORITHMS, fingerprints, new_pair, scanned
from tenantry.cli.create.written import PERSON, Row, export_option, exported, namespace_option, row_of, told
from tenantry.cli.one_line import OneLine, WrongUse
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option
from tenantry.model.difference import difference
from tenantry.model.kinds import SECRET, Object, object_of

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(cls=OneLine)
@click.argument("name", callback=object_name)
@click.option("--url", required=True, callback=git_url, help="Address of the repository: ssh, https or http.")
@click.option("--ssh-key-algorithm", type=click.Choice(ALGORITHMS), default=ALGORITHMS[0], show_default=True, help="For ssh.")
@click.option("--known-hosts-file", type=_FILE, help="For ssh: the keys of the host; else they are read from the network.")
@click.option("-u", "--username", default="", help="For http and https, with --password.")
@click.option("-p", "--password", default="", help="For http and https, with --username.")
@click.option("--bearer-token", default="", help="For http and https, in place of both.")
@click.option("--ca-crt-file", type=_FILE, help="For https: the certificates of the host's authority, as PEM.")
@namespace_option
@export_option
@kubeconfig_option
@output_option
def git(
    name: str,
    url: GitUrl,
    ssh_key_algorithm: str,
    known_hosts_file: Path | None,
    username: str,
    password: str,
    bearer_token: str,
    ca_crt_file: Path | None,
    namespace: str,
    export: bool,
    kubeconfig: Path | None,
    output: str,
) -> None:
    """Make the Secret NAME, with which Flux reads a Git repository.

    For ssh a new pair of keys: put the public one, identity.pub, into the repository's settings as a deploy key.  For http and
    https the credentials that you give.  An exported Secret holds what it protects: encrypt it before it goes to Git.

    \b
    Examples:
      tenantry create secret git apps-auth -n apps --url=ssh://git@example.com/org/apps
      tenantry create secret git apps-auth -n apps --url=https://example.com/org/apps --username=me --password="$TOKEN" --export
    """
    if url.scheme == "ssh":
        if username or password or bearer_token or ca_crt_file:
            raise click.UsageError("with ssh there are only keys: leave out username, password, token and certificates")
        values = _keys(url, ssh_key_algorithm, known_hosts_file)
    else:
        if known_hosts_file is not None:
            raise click.UsageError("--known-hosts-file is for ssh: leave it out")
        values = _credentials(username, password, bearer_token)
        if ca_crt_file is not None:
            values["ca.crt"] = _certificates(ca_crt_file)
    metadata = {"name": name, "namespace": namespace}
    if export:
        exported([object_of(SECRET, metadata, stringData=values)], output)
        return
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    secret = object_of(SECRET, metadata, data=encoded)
    told([asyncio.run(_written(secret, kubeconfig, replaces=url.scheme != "ssh"))], output)
    if output == "text" and "identity.pub" in values:
        click.echo(f"deploy key: {values['identity.pub'].rstrip()}")


def _keys(url: GitUrl, algorithm: str, known_hosts_file: Path | None) -> dict[str, str]:
    if known_hosts_file is not None:
        known_hosts = _text_of(known_hosts_file)
        if not fingerprints(known_hosts):
            raise WrongUse(f"{known_hosts_file} has no key of a host: a line is host, kind and key, as of ssh-keyscan")
    pair = new_pair(algorithm)
    if known_hosts_file is None:
        known_hosts = scanned(url.host, url.port)
        shown = ", ".join(fingerprints(known_hosts))
        click.echo(f"keys of {url.host}, read from the network; compare them with what its owner publishes: {shown}", err=True)
    return {"identity": pair.private, "identity.pub": pair.public, "known_hosts": known_hosts}


def _credentials(username: str, password: str, token: str) -> dict[str, str]:
    if token and (username or password):
        raise click.UsageError("give --bearer-token, or --username and --password, not both")
    if token:
        return {"bearerToken": token}
    if not username or not password:
        raise click.UsageError("give --username and --password, or --bearer-token: http and https need credentials")
    return {"username": username, "password": password}


def _certificates(file: Path) -> str:
    text = _text_of(file)
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise WrongUse(f"{file} has no certificate in PEM")
    return text


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise WrongUse(f"{file} cannot be read: {type(error).__name__}") from None


async def _written(secret: Object, kubeconfig: Path | None, *, replaces: bool) -> Row:
    async with await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig) as api:
        name, namespace = secret["metadata"]["name"], secret["metadata"]["namespace"]
        if not replaces:
            if await api.get(SECRET, name, namespace) is not None:
                text = f"Secret {namespace}/{name} is there, and the repository may know its key: delete it to have another"
                raise WrongUse(text)
            await api.create(SECRET, secret)
            return row_of(secret, "created")
        live = await api.get(SECRET, name, namespace)
        if difference(secret, live, manager=api.field_manager) is None:
            return row_of(secret, "unchanged")
        await api.apply(SECRET, secret)
        return row_of(secret, "created" if live is None else "updated")
