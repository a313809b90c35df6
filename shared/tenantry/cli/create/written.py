"""What the commands of ``tenantry create`` do with their objects: print them, or make them so in the cluster."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import yaml

from tenantry.api import Api
from tenantry.cli.completing import namespaces
from tenantry.cli.create.options import object_name
from tenantry.cli.output import structured
from tenantry.model.difference import difference
from tenantry.model.kinds import Kind, Object

PERSON = "tenantry-cli"
Row = dict[str, str]
"""What became of an object: kind, namespace, name, result."""

namespace_option = click.option(
    *("-n", "--namespace"),
    default="flux-system",
    show_default=True,
    metavar="NS",
    callback=object_name,
    shell_complete=namespaces,
    help="The namespace of the object.",
)
export_option = click.option("--export", is_flag=True, help="Print the manifests and do nothing; no cluster is needed.")

_NO_TEXT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+|[yYnN]")
"""Texts that some readers of YAML take for numbers or booleans, beyond those of PyYAML."""


class _Dumper(yaml.SafeDumper):
    """YAML in the form of Flux' own command: sorted keys, double quotes where there must be some, blocks for several lines."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True

    def choose_scalar_style(self) -> str:
        style: str = super().choose_scalar_style()
        return '"' if style == "'" else style


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else '"' if _NO_TEXT.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def exported(documents: Iterable[Object], output: str) -> None:
    """Print documents, each preceded by ``---``, or as one list in JSON."""
    if output == "json":
        click.echo(structured({"apiVersion": "v1", "kind": "List", "items": list(documents)}, output))
        return
    for each in documents:
        text = yaml.dump(each, Dumper=_Dumper, sort_keys=True, allow_unicode=True, default_flow_style=False, width=2**30)
        click.echo(f"---\n{text}", nl=False)


def row_of(document: Object, result: str) -> Row:
    """What became of an object."""
    metadata = document["metadata"]
    named = {"namespace": metadata["namespace"]} if "namespace" in metadata else {}
    return {"kind": document["kind"], **named, "name": metadata["name"], "result": result}


def told(rows: Sequence[Row], output: str) -> None:
    """Print what became of objects."""
    if output != "text":
        click.echo(structured(list(rows), output))
        return
    for each in rows:
        where = f"{each['namespace']}/{each['name']}" if "namespace" in each else each["name"]
        click.echo(f"{each['kind']} {where} {each['result']}")


def export_or_apply(kind: Kind, document: Object, *, export: bool, kubeconfig: Path | None, output: str) -> None:
    """Print an object, or make it so: its fields that we do not name are left as they are."""
    if export:
        exported([document], output)
    else:
        told([asyncio.run(_applied(kind, document, kubeconfig))], output)


async def _applied(kind: Kind, document: Object, kubeconfig: Path | None) -> Row:
    async with await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig) as api:
        metadata = document["metadata"]
        live = await api.get(kind, metadata["name"], metadata["namespace"])
        if difference(document, live, manager=api.field_manager) is None:
            return row_of(document, "unchanged")
        await api.apply(kind, document)
        return row_of(document, "created" if live is None else "updated")
