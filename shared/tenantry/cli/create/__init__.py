"""``tenantry create``: what gives a team its namespaces, and Flux its repository, as objects or as manifests for Git.

The output is that of Flux' own command of this name, or of the example of RFC-0003 (f-46, f-143 to f-147).
"""

from __future__ import annotations

import click

from tenantry.cli.create.git_secrets import git as git_secret
from tenantry.cli.create.git_sources import git as git_source
from tenantry.cli.create.kustomizations import kustomization
from tenantry.cli.create.tenants import tenant
from tenantry.cli.one_line import OneLineGroup


@click.group(cls=OneLineGroup)
def create() -> None:
    """Onboard teams that deliver with Flux: namespaces, rights, keys, repositories.

    With --export each command prints manifests, for the Git repository that defines the cluster, and does nothing else.

    \b
    Examples:
      tenantry create tenant dev-team --with-namespace=apps --export
      tenantry create secret git apps-auth -n apps --url=ssh://git@example.com/org/apps --export
      tenantry create source git apps -n apps --url=ssh://git@example.com/org/apps --branch=main --secret-ref=apps-auth
      tenantry create kustomization apps -n apps --source=apps --path=./deploy --prune --service-account=dev-team
    """


@create.group()
def secret() -> None:
    """Secrets that Flux reads: credentials and keys of Git repositories."""


@create.group()
def source() -> None:
    """Sources of Flux: Git repositories."""


create.add_command(tenant)
create.add_command(kustomization)
secret.add_command(git_secret)
source.add_command(git_source)
