"""``tenantry config``: check a configuration file, show what is in force."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

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
    given = _leaves(loaded.model_dump(mode="json", by_alias=True, exclude_unset=True))
    for key, value in _leaves(values).items():
        origin = str(path) if key in given else "default"
        note = "; Helm's Jobs have all rights in all namespaces while they run" if key in loaded.cluster_admins else ""
        click.echo(f"{key} = {value!r}  ({origin}){note}")


def _leaves(value: Any, path: str = "") -> dict[str, Any]:
    """The settings by their path in the file, such as ``helmProjectOperator.charts[0].releaseName``."""
    if isinstance(value, dict) and value:
        below = {f"{path}.{name}".lstrip("."): each for name, each in value.items()}
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        below = {f"{path}[{index}]": each for index, each in enumerate(value)}
    else:
        return {path: value}
    return {key: leaf for name, each in below.items() for key, leaf in _leaves(each, name).items()}
