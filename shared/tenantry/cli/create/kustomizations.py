"""``tenantry create kustomization``: what of a source is applied, and as whom (f-58, f-59, f-147)."""

from __future__ import annotations

from pathlib import Path

import click

from tenantry.cli.create.options import interval, object_name, optional_name, parts
from tenantry.cli.create.written import export_option, export_or_apply, namespace_option
from tenantry.cli.one_line import OneLine
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option
from tenantry.model.flux.onboarding import KUSTOMIZATION
from tenantry.model.flux.onboarding import kustomization as kustomization_object
from tenantry.model.identifiers import is_dns_label, is_dns_subdomain

SOURCE_KINDS = ("GitRepository", "OCIRepository", "Bucket", "ExternalArtifact")


def _source(ctx: click.Context, parameter: click.Parameter, value: str) -> dict[str, str]:
    """``[Kind/]name[.namespace]``, as Flux' own command takes it: what follows the last dot is the namespace."""
    before, slash, named = value.rpartition("/")
    kind = next((each for each in SOURCE_KINDS if each.lower() == before.lower()), "") if slash else SOURCE_KINDS[0]
    if not kind:
        raise click.BadParameter(f"the kind {before!r} is none of {', '.join(SOURCE_KINDS)}", ctx, parameter)
    name, _, namespace = named.rpartition(".") if "." in named else (named, "", "")
    if not is_dns_subdomain(name) or ("." in named and not is_dns_label(namespace)):
        raise click.BadParameter(f"{value!r} is no source: write [Kind/]name[.namespace]", ctx, parameter)
    return {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}


def _path(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if not value.startswith("./"):
        raise click.BadParameter(f"{value!r} does not begin with ./ : it is a path within the source", ctx, parameter)
    if ".." in value.split("/"):
        raise click.BadParameter(f"{value!r} leads out of the source: write it without ..", ctx, parameter)
    return value


def _depends_on(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[dict[str, str]]:
    """``[namespace/]name``, each."""
    found = []
    for value in parts(values):
        namespace, slash, name = value.rpartition("/")
        if not is_dns_subdomain(name) or (slash and not is_dns_label(namespace)):
            raise click.BadParameter(f"{value!r} is no Kustomization: write [namespace/]name", ctx, parameter)
        found.append({"name": name, **({"namespace": namespace} if slash else {})})
    return found


@click.command(cls=OneLine)
@click.argument("name", callback=object_name)
@click.option(
    "--source", required=True, callback=_source, metavar="[KIND/]NAME[.NS]", help="The source; a GitRepository by default."
)
@click.option("--path", default="./", show_default=True, callback=_path, help="What of the source to apply: a folder.")
@click.option("--prune", is_flag=True, help="Delete what is no longer in the source.")
@click.option("--service-account", default="", metavar="NAME", callback=optional_name, help="The account to apply as.")
@click.option("--interval", default="1m", show_default=True, callback=interval, help="How often to apply.")
@click.option("--target-namespace", default="", metavar="NS", help="Put everything into this namespace.")
@click.option("--depends-on", multiple=True, metavar="[NS/]NAME", callback=_depends_on, help="Apply after this; repeatable.")
@namespace_option
@export_option
@kubeconfig_option
@output_option
def kustomization(
    name: str,
    source: dict[str, str],
    path: str,
    prune: bool,
    service_account: str,
    interval: str,
    target_namespace: str,
    depends_on: list[dict[str, str]],
    namespace: str,
    export: bool,
    kubeconfig: Path | None,
    output: str,
) -> None:
    """Make the Kustomization NAME.

    \b
    Examples:
      tenantry create kustomization apps -n apps --source=apps --path=./deploy --prune --service-account=dev-team --export
      tenantry create kustomization apps -n apps --source=OCIRepository/shared.flux-system --service-account=flux
    """
    if target_namespace and not is_dns_label(target_namespace):
        raise click.UsageError(f"--target-namespace: no namespace can be called {target_namespace!r}")
    document = kustomization_object(
        name,
        namespace,
        source=source,
        path=path,
        prune=prune,
        interval=interval,
        account=service_account,
        target_namespace=target_namespace,
        depends_on=depends_on,
    )
    export_or_apply(KUSTOMIZATION, document, export=export, kubeconfig=kubeconfig, output=output)
