"""The configuration in force: of a file, of the ConfigMap of the installation where that may be read, or the defaults."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tenantry.api import Api
from tenantry.api.errors import Forbidden
from tenantry.cli.config_maps import CONFIG_MAP_NAME, FILE, newest_installed
from tenantry.model.config import Config
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.config import CONFIG_VARIABLE, load_config, parse_config

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Configured:
    """The configuration, where it comes from, its text, and what could not be known of it."""

    config: Config = field(default_factory=Config)
    source: str = "the defaults"
    text: str = ""
    note: str = ""

    def place(self, path: str) -> str:
        """Where a setting stands: file and line, or that it is a default."""
        line = line_of(self.text, path)
        return f"{self.source}:{line}" if line else "default"


async def configured(api: Api, file: Path | None, way: str = "name the file with --config") -> Configured:
    """Read the configuration.  ``way`` is how whoever asks can name its file, for where it cannot be known.

    Raises:
        ConfigError: a file cannot be used.
    """
    named = file or (Path(os.environ[CONFIG_VARIABLE]) if os.environ.get(CONFIG_VARIABLE) else None)
    if named is not None:
        return Configured(load_config(named), str(named), named.read_text(encoding="utf-8"))
    try:
        newest = await newest_installed(api)
    except Forbidden:
        return Configured(note=f"the configuration in namespace {SYSTEM_NAMESPACE} may not be read, so defaults count: {way}")
    if newest is None:
        note = f"no ConfigMap {CONFIG_MAP_NAME} is in namespace {SYSTEM_NAMESPACE}, so defaults count: {way}"
        return Configured(note=note)
    source, text = f"ConfigMap {SYSTEM_NAMESPACE}/{newest['metadata']['name']} {FILE}", newest["data"][FILE]
    return Configured(parse_config(text, source), source, text)


def line_of(text: str, path: str) -> int:
    """The line of a setting in a YAML text, from 1; 0 where it is not written there."""
    node = yaml.compose(text, Loader=yaml.SafeLoader) if text else None
    line = 0
    for key, number in _STEP.findall(path):
        if isinstance(node, yaml.SequenceNode) and number and int(number) < len(node.value):
            node = node.value[int(number)]
            line = node.start_mark.line + 1
            continue
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        found = next(((each, below) for each, below in pairs if each.value == key), None)
        if found is None:
            return 0
        line, node = found[0].start_mark.line + 1, found[1]
    return line
