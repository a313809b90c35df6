"""The files of manifests that follow from descriptors.

``make manifests`` writes them into ``knative/`` and ``triggers/``; ``make check`` says which differ.  A document that says what
the descriptor wants stays as it is, with its comments; of another one the comment above it stays.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from tenantry.local.deployment import deployment_folder
from tenantry.local.described import described, first_rights
from tenantry.local.readable import readable
from tenantry.model.descriptor import Descriptor
from tenantry.model.kinds import Object
from tenantry.serving.installed import descriptors


def same(one: Object, other: Object) -> bool:
    """Whether two documents say the same: rules in any order and grouping, and JSON in any form."""
    return bool(_meant(one) == _meant(other))


def _meant(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _rights(below) if name == "rules" else _json(below) if name == "value" else _meant(below)
            for name, below in value.items()
        }
    return [_meant(each) for each in value] if isinstance(value, list) else value


def _rights(rules: list[Object]) -> frozenset[tuple[str, str, str]]:
    return frozenset(
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    )


def _json(text: Any) -> Any:
    return json.loads(text) if isinstance(text, str) and text.startswith("{") else text


def text_of(wanted: Iterable[Object], text: str) -> str:
    """A file with these documents: those that it has and that say the same stay, of the others the comment above them."""
    there = {_name(parsed): (parsed, part) for part in _parts(text) if (parsed := yaml.safe_load(part))}
    made = []
    for document in wanted:
        parsed, before = there.get(_name(document), ({}, ""))
        if same(parsed, document):
            made.append(before)
            continue
        comment = "".join(line for line in before.splitlines(keepends=True) if line.startswith("#"))
        made.append(comment + readable([document], width=130))
    return "---\n".join(made)


def _parts(text: str) -> list[str]:
    return [f"{part.strip(chr(10))}\n" for part in f"\n{text}".split("\n---\n")] if text else []


def _name(document: Object) -> tuple[str, str]:
    return document["kind"], document["metadata"]["name"]


def rewrite(functions: Iterable[Descriptor], root: Path, *, verify: bool = False) -> list[Path]:
    """Write what differs, or with ``verify`` only say so; returns the files."""
    changed = []
    functions = list(functions)
    files = described(functions)
    for service in (each for function in functions for each in function.services):
        if not (root / service.rights_file).is_file():
            files[service.rights_file] = first_rights(service)
    for name, wanted in files.items():
        path = root / name
        before = path.read_text(encoding="utf-8") if path.is_file() else ""
        after = text_of(wanted, before if before.endswith("\n") or not before else before + "\n")
        if after.rstrip("\n") != before.rstrip("\n"):
            changed.append(path)
            if not verify:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(after.rstrip("\n") + "\n", encoding="utf-8")
    return changed


def main() -> None:
    """``python -m tenantry.local.manifest_files [--verify]``."""
    verify = "--verify" in sys.argv[1:]
    root = deployment_folder("knative").parent
    ours = [each for each in descriptors().values() if (root / "functions" / each.name.replace("-", "_")).is_dir()]
    changed = rewrite(ours, root, verify=verify)
    for path in changed:
        print(f"{path}: {'differs from the descriptors: run `make manifests`' if verify else 'written'}")  # noqa: T201
    if verify and changed:
        sys.exit(1)


if __name__ == "__main__":
    main()
