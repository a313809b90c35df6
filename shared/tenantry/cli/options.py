"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path

import click

kubeconfig_option = click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),  # whether it is there and usable is said in one place: `tenantry.api.kubeconfig`
    help="The cluster to talk to; else KUBECONFIG, the pod's account, or ~/.kube/config.",
)
