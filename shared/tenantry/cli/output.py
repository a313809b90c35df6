"""What commands print: text for people, YAML or JSON for programs."""

from __future__ import annotations

import json
from typing import Any

import click
import yaml

output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "yaml", "json"]),
    default="text",
    show_default=True,
    help="How to print the result.",
)


def structured(value: Any, output: str) -> str:
    """A value as YAML or JSON."""
    if output == "json":
        return json.dumps(value, indent=2, ensure_ascii=False)
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).rstrip()
