"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path

import click

kubeconfig_option = click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),  # `tenantry.api.kubeconfig` reports what is wrong with it
    help="The cluster to talk to; else KUBECONFIG, the pod's account, or ~/.kube/config.",
)


def known_function(ctx: click.Context, parameter: click.Parameter, function: str) -> str:
    """Checked before anything else, also before options that are missing."""
    from tenantry.serving.installed import UnknownFunction, descriptor_of

    try:
        descriptor_of(function)
    except UnknownFunction as error:
        raise click.BadParameter(str(error), ctx, parameter) from error
    return function
