"""``tenantry create source git``: where the manifests of a team are (f-58, f-147)."""

from __future__ import annotations

from pathlib import Path

import click

from tenantry.cli.create.options import GitUrl, git_url, interval, object_name, optional_name
from tenantry.cli.create.written import export_option, export_or_apply, namespace_option
from tenantry.cli.one_line import OneLine
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option
from tenantry.model.flux.onboarding import GIT_REPOSITORY, git_ref, git_repository


@click.command(cls=OneLine)
@click.argument("name", callback=object_name)
@click.option("--url", required=True, callback=git_url, help="Address of the repository: ssh, https or http.")
@click.option("--branch", default="", help="Follow a branch.")
@click.option("--tag", default="", help="A tag.")
@click.option("--tag-semver", "semver", default="", metavar="RANGE", help="The latest tag in a range, such as '>=1.0.0 <2.0.0'.")
@click.option("--commit", default="", metavar="SHA", help="A commit, of --branch if that is given.")
@click.option("--ref-name", default="", metavar="REF", help="A reference, such as refs/pull/420/head.")
@click.option("--secret-ref", default="", metavar="SECRET", callback=optional_name, help="The Secret with credentials or keys.")
@click.option("--interval", default="1m", show_default=True, callback=interval, help="How often to look for changes.")
@namespace_option
@export_option
@kubeconfig_option
@output_option
def git(
    name: str,
    url: GitUrl,
    branch: str,
    tag: str,
    semver: str,
    commit: str,
    ref_name: str,
    secret_ref: str,
    interval: str,
    namespace: str,
    export: bool,
    kubeconfig: Path | None,
    output: str,
) -> None:
    """Make the GitRepository NAME.

    Of several references one counts: a commit, else a name, a range, a tag, a branch.

    \b
    Examples:
      tenantry create source git apps -n apps --url=https://example.com/org/apps --branch=main --export
      tenantry create source git apps -n apps --url=ssh://git@example.com/org/apps --tag-semver='>=1.0.0' --secret-ref=apps-auth
    """
    ref = git_ref(branch=branch, tag=tag, semver=semver, commit=commit, name=ref_name)
    if not ref:
        raise click.UsageError("say what to follow: give --branch, --tag, --tag-semver, --commit or --ref-name")
    document = git_repository(name, namespace, url=url.text, ref=ref, interval=interval, secret=secret_ref)
    export_or_apply(GIT_REPOSITORY, document, export=export, kubeconfig=kubeconfig, output=output)
