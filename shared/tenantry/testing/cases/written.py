"""YAML as somebody wrote it: its documents, and on which line of the file each part of them stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from tenantry.serving.config import ConfigError, StrictLoader

Place = tuple[int | str, ...]
"""A way into a document: keys of mappings, and positions in lists from 0."""


@dataclass(frozen=True, slots=True)
class Written:
    """One document and where it stands."""

    file: str
    value: Any
    first_line: int
    _lines: Mapping[Place, int] = field(repr=False)

    def line(self, place: Place) -> int:
        """The line, from 1, of a part, or of the nearest part around it that the file has."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place, self.first_line)

    def at(self, place: Place) -> str:
        """The same with the file, as editors and compilers write it."""
        return f"{self.file}:{self.line(place)}"


def written(text: str, file: str) -> list[Written]:
    """The documents of a text; empty ones are left out.

    Raises:
        ConfigError: it is not YAML, or has a key twice.
    """
    found = []
    loader = StrictLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            value = loader.construct_document(node)
            if node is not None and value is not None:
                found.append(Written(file, value, node.start_mark.line + 1, dict(_lines(node, ()))))
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2024-13-45
        raise ConfigError(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    finally:
        loader.dispose()
    return found


def _lines(node: yaml.Node, place: Place) -> Iterator[tuple[Place, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = (*place, key.value)
            yield below, key.start_mark.line + 1
            yield from _lines(value, below)
    elif isinstance(node, yaml.SequenceNode):
        for position, value in enumerate(node.value):
            below = (*place, position)
            yield below, value.start_mark.line + 1
            yield from _lines(value, below)
