"""``tenantry authorize-namespace``: consent of a namespace to be served by the operators of another (N-16)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click
import yaml

from scope_binding.consent import DEFAULT_FROM, FULL_CONSENT, consent_name, consent_objects, given_to
from scope_binding.objects import KINDS
from tenantry.api import Api
from tenantry.api.connect import current_namespace
from tenantry.api.errors import ApiError, RefusedError
from tenantry.cli.completing import namespaces
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option, structured
from tenantry.model.difference import difference
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import NAMESPACE, ROLE_BINDING, Kind, Object, is_terminating

MANAGER = "tenantry-cli"


class _Usage(click.UsageError):
    exit_code = 1


class _LikeTheScript(click.Command):
    """Usage errors have the exit code of the script that this command follows: 1."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise _Usage(error.message, ctx) from error


@click.command("authorize-namespace", cls=_LikeTheScript)
@click.argument("namespace", required=False, default="", shell_complete=namespaces)
@click.option(
    "--to", "-to", "to", default=DEFAULT_FROM, show_default=True, help="The namespace whose operators may act in NAMESPACE."
)
@click.option("--delete", "-delete", "delete", is_flag=True, help="Take the consent back; rights that follow from it go with it.")
@click.option(
    "--subject",
    default="",
    metavar="NS/SA",
    help="The ServiceAccount to bind, which has all of the consent itself then: ibm-namespace-scope-operator in --to, or one of "
    "the configuration's scopeBinding.namespaceScope.consentAccounts.  Default: one that is never made.",
)
@click.option(
    "--role-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML with the rules to consent to: a Role, a ClusterRole, or a list of rules.  Default: eight verbs on everything.",
)
@click.option("--dry-run", is_flag=True, help="Let the API server check and say what would change, and change nothing.")
@click.option("--export", is_flag=True, help="Print the manifests and do nothing; no cluster is needed.")
@kubeconfig_option
@output_option
def authorize_namespace(
    namespace: str,
    to: str,
    delete: bool,
    subject: str,
    role_file: Path | None,
    dry_run: bool,
    export: bool,
    kubeconfig: Path | None,
    output: str,
) -> None:
    """Let the operators of another namespace act in NAMESPACE (default: the one of the current context).

    Makes the Role and the RoleBinding `nss-managed-role-from-<to>` there: the consent without which a NamespaceScope gives
    no right, and the bound of all rights that it gives.  You need the right to write both, and whatever the Role allows.

    The consent is for the namespace that has the name --to now, by its uid: when that is deleted and made again, consent again.
    An exported consent names no uid.  It is for the namespace that is there when it is applied.

    \b
    Examples:
      tenantry authorize-namespace tenant1 --to operators
      tenantry authorize-namespace tenant1 --to operators --role-file least.yaml
      tenantry authorize-namespace tenant1 --to operators --export > consent.yaml
      tenantry authorize-namespace tenant1 --to operators --delete
    """
    target = namespace or current_namespace(kubeconfig)
    for name in (target, to):
        if not is_dns_label(name):
            raise click.ClickException(f"Invalid namespace {name}: no namespace can have this name")
    role, binding = consent_objects(target, to, _rules(role_file), _subject(subject))
    if export:
        if output == "json":
            click.echo(structured({"apiVersion": "v1", "kind": "List", "items": [role, binding]}, output))
        else:
            click.echo(yaml.safe_dump_all([role, binding], sort_keys=False), nl=False)
        return
    done, refusals = asyncio.run(_write(kubeconfig, target, to, role, binding, delete=delete, dry_run=dry_run))
    if output != "text":
        click.echo(structured(done, output))
    else:
        for each in done:
            click.echo(f"{each['kind']} {each['namespace']}/{each['name']} {each['result']}")
    if refusals:
        raise ApiError("\n".join(str(refusal) for refusal in refusals))


def _subject(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    namespace, _, name = text.partition("/")
    if not is_dns_label(namespace) or not name or "/" in name:
        raise click.ClickException(f"--subject {text!r} is not a ServiceAccount as namespace/name")
    return namespace, name


def _rules(path: Path | None) -> tuple[Object, ...]:
    if path is None:
        return FULL_CONSENT
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        raise click.ClickException(f"cannot read {path}: {error}") from error
    rules: Any = document.get("rules") if isinstance(document, dict) else document
    if not isinstance(rules, list) or not rules or not all(isinstance(rule, dict) and rule.get("verbs") for rule in rules):
        raise click.ClickException(f"{path} has no rules: write a Role, or a list of rules with apiGroups, resources and verbs")
    return tuple(rules)


async def _write(
    kubeconfig: Path | None, target: str, to: str, role: Object, binding: Object, *, delete: bool, dry_run: bool
) -> tuple[list[dict[str, str]], list[RefusedError]]:
    """Write or delete both; returns what became of each, and the refused deletions, which keep no other from being tried.

    Any other refusal is raised: a RoleBinding needs its Role.  What is written names the uid of the namespace ``to``.
    """
    async with await Api.connect(field_manager=MANAGER, kubeconfig=kubeconfig) as api:
        for name in (target,) if delete else (target, to):
            found = await api.get(NAMESPACE, name)
            if found is None or is_terminating(found):
                raise click.ClickException(f"Invalid namespace {name}: it {'is being deleted' if found else 'does not exist'}")
            if name == to:
                binding = given_to(binding, found["metadata"]["uid"])
        done: list[dict[str, str]] = []
        refusals: list[RefusedError] = []
        for body in (role, binding):
            kind = KINDS[body["kind"]]
            try:
                live = await api.get(kind, consent_name(to), target)
                result = await (_delete(api, kind, live, dry_run) if delete else _apply(api, kind, body, live, dry_run))
            except RefusedError as refusal:
                if not delete:
                    raise
                refusals.append(refusal)
                result = "refused"
            done.append({"kind": body["kind"], "namespace": target, "name": consent_name(to), "result": result})
        return done, refusals


async def _apply(api: Api, kind: Kind, body: Object, live: Object | None, dry_run: bool) -> str:
    if difference(body, live, manager=api.field_manager) is None:
        return "unchanged"
    if not (dry_run and kind is ROLE_BINDING):  # its Role is not there in a dry run, and the API server looks for it
        await api.apply(kind, body, dry_run=dry_run)
    return ("created" if live is None else "updated") + (" (dry run)" if dry_run else "")


async def _delete(api: Api, kind: Kind, live: Object | None, dry_run: bool) -> str:
    if live is None:
        return "absent"
    if dry_run:
        return "deleted (dry run)"
    metadata = live["metadata"]
    await api.delete(kind, metadata["name"], metadata["namespace"], uid=metadata["uid"])
    return "deleted"
