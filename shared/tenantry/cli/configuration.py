"""``tenantry config``: check a configuration file, show what is in force."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import yaml

from tenantry.cli.output import output_option, structured
from tenantry.serving.charts import chart_files
from tenantry.serving.config import CONFIG_VARIABLE, load_config


@click.group()
def config() -> None:
    """Check and show the configuration."""


@config.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def check(file: Path) -> None:
    """Check FILE: unknown keys, wrong values, charts that cannot be read.

    \b
    Example:
      tenantry config check tenantry.yaml
    """
    chart_files(load_config(file))
    click.echo(f"{file}: valid")


@config.command()
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@output_option
def show(file: Path | None, output: str) -> None:
    """Show the values in force, and whether each comes from the file or is a default.

    Without FILE, the configuration that TENANTRY_CONFIG names, or the defaults.

    \b
    Example:
      tenantry config show -o yaml
    """
    named = os.environ.get(CONFIG_VARIABLE)
    path = file or (Path(named) if named else None)
    loaded = load_config(path)
    values = loaded.model_dump(mode="json", by_alias=True)
    if output != "text":
        click.echo(structured(values, output))
        return
    given = (yaml.safe_load(path.read_text()) or {}) if path else {}
    for key, value in _leaves(values):
        origin = str(path) if _given(given, key) else "default"
        note = "; Helm's Jobs have all rights in all namespaces while they run" if _dotted(key) in loaded.cluster_admins else ""
        click.echo(f"{_dotted(key)} = {value!r}  ({origin}){note}")


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict) and value:
        return [leaf for name, below in value.items() for leaf in _leaves(below, (*path, name))]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [leaf for index, below in enumerate(value) for leaf in _leaves(below, (*path, index))]
    return [(path, value)]


def _given(document: Any, path: tuple[Any, ...]) -> bool:
    here = document
    for step in path:
        if (isinstance(here, dict) and step in here) or (isinstance(here, list) and isinstance(step, int) and step < len(here)):
            here = here[step]
        else:
            return False
    return True


def _dotted(path: tuple[Any, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
