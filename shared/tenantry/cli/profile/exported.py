"""``tenantry profile export``: prints what `apply` does, and what changes in Flux' own installation (2.5)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from tenantry.api import Api
from tenantry.cli.create.options import object_name, parts
from tenantry.cli.create.written import exported
from tenantry.cli.one_line import OneLine
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.profile.wanted import PERSON, current_profile, served_by, tenancy_profile
from tenantry.model.flux.policies import Served, documents
from tenantry.model.flux.policies.served import newest
from tenantry.model.flux.profile import MULTI_TENANT, PROFILES, Profile
from tenantry.model.flux.security_profile import EXTRAS, Extra, flux_part, least_privilege
from tenantry.model.kinds import Object

PARTS = ("flux", "cluster")


@click.command(cls=OneLine)
@click.option("--security-profile", required=True, type=click.Choice(PROFILES), help="Whether anything is enforced.")
@click.option("--part", type=click.Choice(PARTS), help="Only the kustomization of Flux, or only what a cluster gets.")
@click.option("--with", "extras", multiple=True, metavar=f"[{'|'.join(EXTRAS)}]", help="What to add; several with commas.")
@click.option(
    "--default-service-account",
    "account",
    default="",
    metavar="NAME",
    callback=lambda ctx, parameter, value: value and object_name(ctx, parameter, value),
    help="The account that objects without one are applied as; else that of the profile, which is flux.",
)
@kubeconfig_option
def export(security_profile: str, part: str | None, extras: tuple[str, ...], account: str, kubeconfig: Path | None) -> None:
    """Print the manifests of a security profile.

    Part flux is the kustomization.yaml of `flux bootstrap`; part cluster are TenancyProfile, AccessIndex, roles and admission
    policies, in the order in which they are applied. Without --kubeconfig they are for the newest known versions and all kinds of
    Flux; with it for what that cluster serves, and with what else its TenancyProfile says.

    \b
    Example:
      tenantry profile export --security-profile=multi-tenant --part=flux
    """
    added = _extras(extras)
    if added and security_profile != MULTI_TENANT:
        raise click.UsageError(f"--with adds to {MULTI_TENANT} only: leave it out")
    found, served = asyncio.run(_asked(kubeconfig)) if kubeconfig else (None, newest())
    wanted = tenancy_profile(security_profile, account, (found or {}).get("spec"))
    read = Profile.of(wanted)
    if part != "cluster":
        multi_tenant = read.is_multi_tenant
        click.echo(flux_part(multi_tenant=multi_tenant, account=read.default_service_account, extras=added), nl=False)
    if part != "flux":
        more = least_privilege() if "least-privilege" in added else []
        exported([wanted, *documents(read, served), *more], "text")


def _extras(values: tuple[str, ...]) -> list[Extra]:
    named = parts(values)
    if unknown := [each for each in named if each not in EXTRAS]:
        raise click.UsageError(f"--with: {unknown[0]!r} is not one of {', '.join(EXTRAS)}")
    return [each for each in EXTRAS if each in named]


async def _asked(kubeconfig: Path) -> tuple[Object | None, Served]:
    async with await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig) as api:
        return await current_profile(api), await served_by(api)
