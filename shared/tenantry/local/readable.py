"""YAML that people read: texts of several lines as blocks, and no anchors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from tenantry.model.kinds import Object

FOLD_ABOVE = 80
"""Characters of a line; longer texts are folded where that is asked for."""


class _Blocks(yaml.SafeDumper):
    folds = False

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


class _Folding(_Blocks):
    folds = True


def _text(dumper: _Blocks, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else ">" if dumper.folds and len(text) > FOLD_ABOVE else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


for _dumper in (_Blocks, _Folding):
    _dumper.add_representer(str, _text)


def readable(documents: Iterable[Object], *, width: int, folds: bool = False) -> str:
    """Documents as YAML in the order of their keys; with ``folds`` long texts, such as expressions, go over several lines."""
    dumper = _Folding if folds else _Blocks
    return str(yaml.dump_all(documents, Dumper=dumper, sort_keys=False, width=width))
