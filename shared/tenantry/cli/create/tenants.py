"""``tenantry create tenant``: namespaces of a team, with an account that may do everything there (f-46 to f-54, f-145)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import click

from tenantry.cli.create.options import optional_name, parts
from tenantry.cli.create.tenants_written import Onboarding, onboarded
from tenantry.cli.create.written import export_option, exported, told
from tenantry.cli.one_line import OneLine
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option
from tenantry.model.flux.names import TENANT_LABEL
from tenantry.model.flux.onboarding import (
    CLUSTER_ADMIN,
    account_of,
    binding_of,
    is_tenant_name,
    namespace_of,
    rfc_names,
    shipped_names,
    tenant_labels,
)
from tenantry.model.identifiers import is_dns_label, is_label_key, is_label_value

STYLES = ("flux", "rfc")
_OURS = ("tenantry.dev/", "toolkit.fluxcd.io/", "kubernetes.io/")


def _tenant_name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if not is_tenant_name(value):
        text = "use 2 to 63 lower-case letters, digits and '-', a letter or digit first and last"
        raise click.BadParameter(f"{value!r} is no name of a tenant: {text}", ctx, parameter)
    return value


def _namespaces(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[str]:
    found = parts(values)
    if not found:
        raise click.BadParameter("name at least one namespace, such as --with-namespace=apps", ctx, parameter)
    if bad := [each for each in found if not is_dns_label(each)]:
        text = "use at most 63 lower-case letters, digits and '-', a letter or digit first and last"
        raise click.BadParameter(f"no namespace can be called {bad[0]!r}: {text}", ctx, parameter)
    return found


def _labels(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for each in parts(values):
        key, sign, value = each.partition("=")
        if not sign or not is_label_key(key) or not is_label_value(value):
            raise click.BadParameter(f"{each!r} is no label: write key=value", ctx, parameter)
        if key.startswith(_OURS):
            raise click.BadParameter(
                f"{key} has a meaning of its own: labels of {', '.join(_OURS)} are not for you", ctx, parameter
            )
        found[key] = value
    return found


def _cluster_role(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if not value or "/" in value or "%" in value:
        raise click.BadParameter("name a ClusterRole", ctx, parameter)
    return value


@click.command(cls=OneLine)
@click.argument("name", callback=_tenant_name)
@click.option(
    "--with-namespace", "namespaces", multiple=True, callback=_namespaces, metavar="NS", help="Repeatable; or with commas."
)
@click.option(
    "--cluster-role", default=CLUSTER_ADMIN, show_default=True, callback=_cluster_role, help="What the account may do there."
)
@click.option("--with-service-account", "account", default="", callback=optional_name, metavar="NAME", help="Another account.")
@click.option("--with-gotk-user", is_flag=True, help="Bind the user gotk:<namespace>:reconciler too, as Flux' own command does.")
@click.option("--skip-namespace", is_flag=True, help="Leave the namespaces themselves to others.")
@click.option("--label", "labels", multiple=True, callback=_labels, metavar="KEY=VALUE", help="For all objects; repeatable.")
@click.option(
    "--style", type=click.Choice(STYLES), default=STYLES[0], show_default=True, help="Names as Flux or as RFC-0003 has them."
)
@click.option("--adopt", is_flag=True, help="Take over namespaces that are there and belong to no tenant.")
@export_option
@kubeconfig_option
@output_option
def tenant(
    name: str,
    namespaces: list[str],
    cluster_role: str,
    account: str,
    with_gotk_user: bool,
    skip_namespace: bool,
    labels: Mapping[str, str],
    style: str,
    adopt: bool,
    export: bool,
    kubeconfig: Path | None,
    output: str,
) -> None:
    """Make the tenant NAME: its namespaces, and in each an account with all rights there and none elsewhere.

    In the cluster nothing is taken from others: labels that are there stay, a namespace of another tenant is refused before
    anything is written, one of nobody needs --adopt, and those of the platform are refused.

    \b
    Examples:
      tenantry create tenant dev-team --with-namespace=frontend --with-namespace=backend --label=stage=dev
      tenantry create tenant dev-team --with-namespace=apps --export > dev-team.yaml
      tenantry create tenant tenant1 --with-namespace=tenant1 --style=rfc --export
    """
    names, marks = shipped_names(name, account), tenant_labels(name, labels)
    if style == "rfc":
        names, marks = rfc_names(account), {key: value for key, value in marks.items() if key != TENANT_LABEL}
    wanted = [
        Onboarding(
            None if skip_namespace else namespace_of(each, marks),
            account_of(each, names, marks),
            binding_of(each, names, cluster_role, marks, with_gotk_user=with_gotk_user),
        )
        for each in namespaces
    ]
    if export:
        exported([document for each in wanted for document in each.documents], output)
        return
    told(asyncio.run(onboarded(name, wanted, kubeconfig, adopt=adopt)), output)
