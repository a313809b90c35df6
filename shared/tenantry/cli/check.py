"""``tenantry check manifests``: what of a tenant's repository will not be applied, before it is pushed (2.4, f-44)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tenantry.api import Api
from tenantry.api.errors import KindNotServed
from tenantry.cli import completing
from tenantry.cli.one_line import OneLineGroup, WrongUse
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option, structured
from tenantry.model.flux.deliveries import INSTRUCTIONS, Undeliverable, delivery_of, undeliverable
from tenantry.model.flux.names import TENANT, TENANT_LABEL
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import NAMESPACE

PERSON = "tenantry-cli"
_SUFFIXES = (".yaml", ".yml")


@click.group(cls=OneLineGroup)
def check() -> None:
    """Check manifests before they are pushed.

    \b
    Example:
      tenantry check manifests deploy/ --tenant dev-team
    """


@check.command()
@click.argument("path", metavar="DIR", type=click.Path(exists=True, path_type=Path))
@click.option("--tenant", required=True, metavar="NAME", shell_complete=completing.tenants, help="Whose manifests these are.")
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NS",
    shell_complete=completing.namespaces,
    help="A namespace of the tenant, in place of those that the cluster knows.",
)
@kubeconfig_option
@output_option
def manifests(path: Path, tenant: str, namespaces: tuple[str, ...], kubeconfig: Path | None, output: str) -> None:
    """List what of the manifests in DIR the account of a tenant cannot apply: objects without namespace, and those of a namespace
    that is not the tenant's.

    Which kinds have no namespace, the cluster says; and, without --namespace, which namespaces are the tenant's: those of the
    Tenant, those with its label, or the one of its name.  What instructions of kustomize fetch from elsewhere, and what they
    generate, is not judged.  Exit code 1 when something is listed.

    \b
    Examples:
      tenantry check manifests deploy/ --tenant dev-team
      tenantry check manifests deploy/ --tenant dev-team -n apps -o json
    """
    texts = _texts(path)
    found = asyncio.run(_judged(texts, tenant, namespaces, kubeconfig))
    if output != "text":
        click.echo(structured([each._asdict() for each in found], output))
    for each in found if output == "text" else ():
        what = f"{each.kind} {each.name} " if each.kind else ""
        click.echo(f"{each.file}: {what}{each.why}")
    if found:
        sys.exit(1)
    if output == "text":
        click.echo(f"{path}: everything can be applied by tenant {tenant}")


def _texts(path: Path) -> dict[str, str]:
    """The YAML files by their path."""
    every = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    files = [each for each in every if each.suffix in _SUFFIXES or each.name in INSTRUCTIONS or each == path]
    try:
        return {str(each): each.read_text(encoding="utf-8") for each in files}
    except (OSError, UnicodeError) as error:
        raise WrongUse(f"a file of {path} cannot be read: {error}") from None


async def _judged(texts: dict[str, str], tenant: str, namespaces: Sequence[str], kubeconfig: Path | None) -> list[Undeliverable]:
    async with await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig) as api:
        own = frozenset(namespaces) or await _namespaces_of(tenant, api)
        delivery = delivery_of(texts, own)
        scopes = {}
        for api_version, kind in sorted(delivery.kinds):
            if (served := await api.served(api_version, kind)) is not None:
                scopes[api_version, kind] = served.namespaced
        return undeliverable(delivery, scopes, own)


async def _namespaces_of(tenant: str, api: Api) -> frozenset[str]:
    if not is_dns_label(tenant):
        raise WrongUse(f"no tenant can be called {tenant!r}")
    try:
        declared = await api.get(TENANT, tenant)
    except KindNotServed:
        declared = None
    found = set((declared or {"spec": {}})["spec"].get("namespaces") or ())
    found |= {each["metadata"]["name"] for each in (await api.list(NAMESPACE, label_selector=f"{TENANT_LABEL}={tenant}")).items}
    if not found and await api.get(NAMESPACE, tenant) is not None:
        found.add(tenant)
    if not found:
        raise WrongUse(f"no namespace belongs to tenant {tenant}: is it spelled like this? Else name some with --namespace")
    return frozenset(found)
