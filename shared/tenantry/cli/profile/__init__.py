"""``tenantry profile``: the security profile of Flux' tenants, as manifests for Git or applied (RFC-0003)."""

from __future__ import annotations

import click

from tenantry.cli.one_line import OneLineGroup
from tenantry.cli.profile.applied import apply
from tenantry.cli.profile.exported import export


@click.group(cls=OneLineGroup)
def profile() -> None:
    """Choose between one tenant and many for a cluster with Flux.

    \b
    Examples:
      tenantry profile export --security-profile=multi-tenant --part=flux > clusters/production/flux-system/kustomization.yaml
      tenantry profile export --security-profile=multi-tenant --part=cluster | kubectl apply --server-side -f -
      tenantry profile apply
    """


profile.add_command(export)
profile.add_command(apply)
