"""The files of manifests that follow from descriptors.

``make manifests`` writes them into ``knative/`` and ``triggers/``; ``make check`` says which differ.  A document that says what
the descriptor wants stays as it is, with its comments; of another one the comment above it stays.

The kustomization of a described folder lists all its files.  That of an installation is written by hand, except for the entries
of Services and of images of functions: they stand together where the first of them was.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from tenantry import __version__
from tenantry.local.deployment import deployment_folder
from tenantry.local.described import described, first_rights, image_of
from tenantry.local.readable import readable
from tenantry.model.descriptor import Descriptor
from tenantry.model.kinds import Object
from tenantry.serving.installed import descriptors

_TAG = re.compile(rf"({re.escape(image_of(''))}.*\n +newTag: ).*")


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
    return document["kind"], document.get("metadata", {}).get("name", "")


def kustomizations(functions: list[Descriptor], made: Iterable[str], root: Path) -> dict[str, list[Object]]:
    """Those of the described folders: they list the files that are made and those there are, but fences (``make fences``)."""
    paths = [Path(name) for name in made]

    def listing(folder: str, images: list[Object]) -> list[Object]:
        names = {
            path.name for path in [*(root / folder).glob("*.yaml"), *(path for path in paths if path.parent == Path(folder))]
        }
        document: Object = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
        document["resources"] = sorted(names - {"kustomization.yaml", "fence.yaml"})
        return [{**document, "images": images} if images else document]

    services = [service for function in functions for service in function.services]
    folders: dict[str, list[Object]] = {
        "triggers": [],
        **{f"knative/{folder}": [] for each in services for folder in each.folders},
    }
    folders |= {f"knative/{each.name}": [{"name": image_of(each.function), "newTag": __version__}] for each in services}
    return {f"{folder}/kustomization.yaml": listing(folder, images) for folder, images in folders.items()}


def installation(text: str, functions: list[Descriptor]) -> str:
    """The text of an installation's kustomization: each list that has one Service or image of these functions has them all."""
    names = [service.name for function in functions for service in function.services]
    text = _TAG.sub(rf"\g<1>{__version__}", text)
    images = [f"  - name: {image_of(each.name)}\n    newTag: {__version__}\n" for each in functions]
    for entries in (images, *([f"  - {form.format(name)}\n" for name in names] for form in ("{}", "../../{}", "{}.yaml"))):
        found = [text.index(each) for each in entries if each in text]
        if found:
            rest = text
            for each in entries:
                rest = rest.replace(each, "", 1)
            text = rest[: min(found)] + "".join(entries) + rest[min(found) :]
    return text


def rewrite(functions: Iterable[Descriptor], root: Path, *, verify: bool = False) -> list[Path]:
    """Write what differs, or with ``verify`` only say so; returns the files."""
    changed = []
    functions = list(functions)
    files = described(functions)
    for service in (each for function in functions for each in function.services):
        if not (root / service.rights_file).is_file():
            files[service.rights_file] = first_rights(service)
    files |= kustomizations(functions, files, root)
    wanted = {root / name: text_of(documents, _text_in(root / name)) for name, documents in files.items()}
    for path in (root / "knative/kustomization.yaml", *sorted(root.glob("knative/overlays/*/kustomization.yaml"))):
        wanted[path] = installation(_text_in(path), functions)
    for path, after in wanted.items():
        if after.rstrip("\n") != _text_in(path).rstrip("\n"):
            changed.append(path)
            if not verify:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(after.rstrip("\n") + "\n", encoding="utf-8")
    return changed


def _text_in(path: Path) -> str:
    """What a file has, with a line end at its end; empty where there is none."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return text if text.endswith("\n") or not text else text + "\n"


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
