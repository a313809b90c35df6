"""``tenantry paas``: what a Paas comes to, its manifests in other versions, and namespaces that are handed to it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import yaml

from namespace_registration.paas_checked import findings
from namespace_registration.paas_converted import VERSIONS, NotConvertible, converted, is_convertible
from namespace_registration.paas_shown import Read, described
from tenantry.api import Api
from tenantry.api.errors import ApiError, KindNotServed, NotFound
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option, structured, table
from tenantry.model.kinds import NAMESPACE, RESOURCE_QUOTA, ROLE_BINDING, Kind, Object, annotations_of, object_of
from tenantry.model.names import ADOPT
from tenantry.model.paas.config import active_of, config_of
from tenantry.model.paas.declared import Paas, paas_ns_of, paas_of
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, MANAGED_BY_PAAS, PAAS, PAAS_CONFIG, PAAS_NS
from tenantry.model.paas.ours import is_ours
from tenantry.serving.config import load_config

MANAGER = "tenantry-cli"


@click.group()
def paas() -> None:
    """Paas: what they come to, and their manifests.

    \b
    Examples:
      tenantry paas show my-paas
      tenantry paas check deploy/            what would be refused; no cluster is needed
      tenantry paas convert --to v1alpha2 my-paas.yaml > new.yaml
      tenantry paas adopt my-paas            lists; --yes does it
    """


# -- show ------------------------------------------------------------------------------------------------------------


@paas.command()
@click.argument("name")
@kubeconfig_option
@output_option
def show(name: str, kubeconfig: Path | None, output: str) -> None:
    """Show the Paas NAME: its namespaces and who asked for them, groups and their subjects, rights and the mappings that they
    come from, quotas with use, and problems with their fix.

    \b
    Example:
      tenantry paas show my-paas -o yaml
    """
    found = described(asyncio.run(_read(name, kubeconfig)))
    if output != "text":
        click.echo(structured(found, output))
        return
    _heading(f"Paas {found['name']}", found["requestor"])
    _rows("Namespaces", ("name", "asked for by", "groups", "state"), [_of_namespace(each) for each in found["namespaces"]])
    _rows("Groups", ("key", "subject", "users or query", "roles"), [_of_group(each) for each in found["groups"]])
    for names, rights in _alike(found["rights"]):
        _rows(f"Rights in {', '.join(names)}", ("binding", "subjects", "from", "state"), rights)
    uses = [
        (each["name"], resource, amounts["hard"], amounts["used"] or "-")
        for each in found["quotas"]
        for resource, amounts in each["resources"].items()
    ]
    _rows("Quotas", ("quota", "resource", "hard", "used"), uses)
    _rows("Problems", ("on", "reason", "message"), [tuple(each.values()) for each in found["problems"]])


def _heading(text: str, requestor: str) -> None:
    click.secho(text + (f", requested by {requestor}" if requestor else ""), bold=True)


def _rows(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if rows:
        click.echo()
        click.secho(title, bold=True)
        table(head, rows)


def _of_namespace(each: dict[str, Any]) -> tuple[str, ...]:
    return each["name"], each["askedBy"], ", ".join(each["groups"]) or "-", each["state"]


def _of_group(each: dict[str, Any]) -> tuple[str, ...]:
    roles = ", ".join(f"{role} ({' '.join(mapped) or 'nothing'})" for role, mapped in each["roles"].items())
    return each["key"], each["problem"] or each["subject"], each["query"] or ", ".join(each["users"]) or "-", roles


def _alike(rights: list[dict[str, Any]]) -> Iterator[tuple[list[str], list[tuple[str, ...]]]]:
    """Namespaces with the same rights, and these rights."""
    tables: dict[str, list[tuple[str, ...]]] = {}
    for each in rights:
        row = (each["binding"], ", ".join(each["subjects"]), ", ".join(each["from"]) or "-", each["state"])
        tables.setdefault(each["namespace"], []).append(row)
    same: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for namespace, rows in tables.items():
        same.setdefault(tuple(rows), []).append(namespace)
    for alike, names in same.items():
        yield names, list(alike)


async def _read(name: str, kubeconfig: Path | None) -> Read:
    async with await Api.connect(field_manager=MANAGER, kubeconfig=kubeconfig) as api:
        live = await _paas(api, name)
        ours = f"{MANAGED_BY_PAAS}={name}"
        configs, namespaces, asked, bindings, quotas, shared = await asyncio.gather(
            _listed(api, PAAS_CONFIG),
            _listed(api, NAMESPACE, ours),
            _listed(api, PAAS_NS),
            _listed(api, ROLE_BINDING, ours),
            _listed(api, RESOURCE_QUOTA, ours),
            _listed(api, CLUSTER_RESOURCE_QUOTA, ours),
        )
    held = {each["metadata"]["name"]: each for each in namespaces}
    by_namespace: dict[str, list[Object]] = {}
    for each in bindings:
        by_namespace.setdefault(each["metadata"]["namespace"], []).append(each)
    active = active_of(configs)
    return Read(
        paas=live,
        config=config_of(active) if active is not None else None,
        namespaces=held,
        asked=tuple(paas_ns_of(each) for each in asked if each["metadata"]["namespace"] in held),
        bindings=by_namespace,
        quotas=(*shared, *quotas),
    )


async def _paas(api: Api, name: str) -> Paas:
    found = await api.get(PAAS, name)
    if found is None:
        raise NotFound(f"there is no Paas {name}")
    return paas_of(found)


async def _listed(api: Api, kind: Kind, labels: str = "") -> list[Object]:
    """All objects with these labels; none where the kind is not served."""
    try:
        return (await api.list(kind, label_selector=labels)).items
    except KindNotServed:
        return []


# -- convert ---------------------------------------------------------------------------------------------------------


@paas.command()
@click.option("--to", "version", type=click.Choice(VERSIONS), required=True, help="The version to convert to.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@output_option
def convert(version: str, file: Path, output: str) -> None:
    """Print the documents of FILE (-: of the standard input) in the shape that opr-paas has in a version.

    Both versions are served as they are, so this is for manifests that go to opr-paas, or come from it: namespaces as a list
    or a map; only enabled capabilities in v1alpha2, enabled: true in v1alpha1; git fields and custom fields.  What is no Paas,
    PaasNS or PaasConfig stays as it is.  Exit code 1, and nothing printed, where a right would become wider.

    \b
    Example:
      tenantry paas convert --to v1alpha2 my-paas.yaml > new.yaml
    """
    made, refused = [], []
    for document in _documents(file):
        try:
            made.append(converted(document, version) if is_convertible(document) else document)
        except NotConvertible as error:
            refused.append(str(error))
    if refused:
        raise ApiError("\n".join(refused))
    if output == "json":
        click.echo(structured(made[0] if len(made) == 1 else {"apiVersion": "v1", "kind": "List", "items": made}, output))
    else:
        click.echo(yaml.safe_dump_all(made, sort_keys=False, allow_unicode=True), nl=False)


def _documents(file: Path) -> list[Any]:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        found = [each for each in yaml.safe_load_all(text) if each is not None]
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        raise click.ClickException(f"cannot read {file}: {error}") from error
    lists = [each for each in found if isinstance(each, dict) and each.get("kind") == "List"]
    return [item for each in found for item in (each.get("items") or [] if each in lists else [each])]


# -- check -----------------------------------------------------------------------------------------------------------


@paas.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@output_option
def check(path: Path, output: str) -> None:
    """Check the manifests in PATH, a file or a folder, without a cluster: what would be refused, and what warned of.

    What a PaasConfig decides is judged when it is among them.  Regular expressions are judged by the API server only.  Exit code
    1 when something would be refused.

    \b
    Example:
      tenantry paas check deploy/
    """
    files = sorted(each for each in path.rglob("*") if each.suffix in (".yaml", ".yml")) if path.is_dir() else [path]
    found = findings([each for file in files for each in _documents(file)], load_config().project_label)
    if output != "text":
        click.echo(structured([each._asdict() for each in found], output))
    for each in found if output == "text" else ():
        click.echo(f"{each.document}: {'' if each.refused else 'warning: '}{each.text}")
    if any(each.refused for each in found):
        sys.exit(1)
    if output == "text":
        click.echo(f"{path}: would be accepted")


# -- adopt -----------------------------------------------------------------------------------------------------------


@paas.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Hand them over.")
@kubeconfig_option
@output_option
def adopt(name: str, yes: bool, kubeconfig: Path | None, output: str) -> None:
    """List the namespaces with the label of the Paas NAME that are not proven to be its own; with --yes hand them to it.

    Such are namespaces of a Paas that was deleted with its finalizers forced off, or that came back from a backup.  A policy lets
    administrators do this, who may update every Paas.

    \b
    Examples:
      tenantry paas adopt my-paas
      tenantry paas adopt my-paas --yes
    """
    rows = asyncio.run(_adopt(name, kubeconfig, yes=yes))
    if output != "text":
        click.echo(structured(rows, output))
    elif not rows:
        click.echo(f"every namespace with the label of {name} is its own")
    for row in rows if output == "text" else ():
        click.echo(f"Namespace {row['name']} {row['result']}")


async def _adopt(name: str, kubeconfig: Path | None, *, yes: bool) -> list[dict[str, str]]:
    async with await Api.connect(field_manager=MANAGER, kubeconfig=kubeconfig) as api:
        owner = await _paas(api, name)
        rows = []
        for each in await _listed(api, NAMESPACE, f"{MANAGED_BY_PAAS}={name}"):
            if is_ours(each, owner.name, owner.uid):
                continue
            called = each["metadata"]["name"]
            if annotations_of(each).get(ADOPT) == name:
                result = "is being handed over"
            elif yes:
                metadata = {"name": called, "uid": each["metadata"]["uid"], "annotations": {ADOPT: name}}
                await api.apply(NAMESPACE, object_of(NAMESPACE, metadata))
                result = "is handed over"
            else:
                result = "can be handed over: --yes does it"
            rows.append({"name": called, "result": result})
        return rows
