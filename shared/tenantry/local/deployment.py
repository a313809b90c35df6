"""The files in ``knative/`` and ``triggers/``: where they are, and what of them one machine needs."""

from __future__ import annotations

from pathlib import Path

import yaml

import tenantry
from tenantry.model.kinds import Object
from tenantry.serving.installed import descriptors, services_of


class DeploymentFilesMissing(RuntimeError):
    """The installation lacks ``knative/`` or ``triggers/``."""


def deployment_folder(name: str) -> Path:
    """``knative`` or ``triggers``: packed into an installed distribution, or in the source tree.

    Raises:
        DeploymentFilesMissing: it is in neither place.
    """
    package = Path(tenantry.__file__).parent
    for folder in (package / "_deploy" / name, package.parents[1] / name):
        if folder.is_dir():
            return folder
    raise DeploymentFilesMissing(f"the folder {name}/ is not part of this installation; install tenantry again")


def documents(*paths: Path) -> list[Object]:
    """All YAML documents of these files and folders (not of their kustomizations), in order."""
    found: list[Object] = []
    for path in paths:
        files = sorted(path.rglob("*.yaml")) if path.is_dir() else [path]
        for file in files:
            if file.name != "kustomization.yaml":
                found += [
                    document for document in yaml.load_all(file.read_text(), yaml.CSafeLoader) if isinstance(document, dict)
                ]
    return found


def event_files(root: Path | None = None) -> list[Path]:
    """What wakes the functions: ``triggers/``, and what a cluster adds with a system that a Service needs, such as OLM.

    ``root`` has both folders, default: those of this installation.
    """
    root = root or deployment_folder("triggers").parent
    apart = dict.fromkeys(folder for each in services_of(descriptors()) for folder in each.folders)
    files = [root / "knative" / folder / f"{name}.yaml" for folder in apart for name in ("source", "triggers")]
    return [root / "triggers", *(file for file in files if file.is_file())]
