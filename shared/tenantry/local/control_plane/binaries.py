"""Finds the programs of the control plane, or has them built once.

Places, in order: ``TENANTRY_CONTROL_PLANE`` (a folder; when set, the only place), ``KUBEBUILDER_ASSETS``,
PATH, the cache of this user, else a build into that cache.  A place counts for a module only when it has
all its programs, in the same version and not too old; otherwise the reason is kept and the next is tried.
A module that the control plane does not need (Helm) may be missing in the folder that was named.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tenantry.local.control_plane import places
from tenantry.local.control_plane.build import build_module
from tenantry.local.control_plane.catalogue import HELM, HELM_4, MODULES, Module
from tenantry.local.control_plane.errors import BinariesError
from tenantry.local.control_plane.progress import Progress, Silent

#: The folder that, when named, has all programs.
FOLDER_VARIABLE = "TENANTRY_CONTROL_PLANE"
#: The folder of the envtest tools; it has no kube-controller-manager, which is why it may be passed over.
ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"


@dataclass(frozen=True)
class Found:
    """One module's programs: path by name, their version, and the place they come from."""

    module: str
    version: str
    place: str
    paths: Mapping[str, Path]


@dataclass(frozen=True)
class Binaries:
    """Everything that a control plane runs."""

    found: tuple[Found, ...]
    passed_over: tuple[str, ...] = ()

    def path(self, program: str) -> Path:
        """Return the executable of a program of the catalogue."""
        return next(found.paths[program] for found in self.found if program in found.paths)

    def version(self, module: str) -> str:
        """Return the version of a module, for example ``1.36.3``."""
        return next(found.version for found in self.found if found.module == module)


def ensure_binaries(progress: Progress | None = None, modules: Sequence[Module] = MODULES) -> Binaries:
    """Return the programs, building into the cache what is nowhere to be found.

    A build of everything takes six to eight minutes on two cores, once per version; call this before
    anything that has a timeout.

    Raises:
        BinariesError: a program is missing where it must be, or cannot be built.
    """
    progress = progress or Silent()
    found, passed_over = find_binaries(modules)
    present = {one.module for one in found}
    missing = [module for module in modules if module.name not in present]
    for reason in passed_over:
        progress.say(f"Not used: {reason}")
    for module in missing:
        folder = places.binaries_folder() / module.key
        build_module(module, folder, progress)
        found.append(_cached(module, folder))
    return Binaries(found=tuple(found), passed_over=tuple(passed_over))


def ensure_helm(progress: Progress | None = None) -> Path:
    """Return the Helm program, building it when it is nowhere to be found (under two minutes, once).

    Raises:
        BinariesError: it cannot be built.
    """
    return ensure_binaries(progress, (HELM,)).path("helm")


def ensure_helm4(progress: Progress | None = None) -> Path:
    """Return the program of Helm 4 (called ``helm4``), as `ensure_helm` does.

    Raises:
        BinariesError: it cannot be built.
    """
    return ensure_binaries(progress, (HELM_4,)).path("helm4")


def find_binaries(modules: Sequence[Module] = MODULES) -> tuple[list[Found], list[str]]:
    """Return what is there without building, and why places were passed over.

    Raises:
        BinariesError: ``TENANTRY_CONTROL_PLANE`` is set and its folder lacks a program or has an old one.
    """
    found: list[Found] = []
    passed_over: list[str] = []
    named = os.environ.get(FOLDER_VARIABLE)
    for module in modules:
        one = _from_named_folder(module, Path(named).expanduser()) if named else None
        one = one or _from_places(module, passed_over)
        if one is not None:
            found.append(one)
    return found, passed_over


def _from_named_folder(module: Module, folder: Path) -> Found | None:
    paths = {program.name: folder / program.name for program in module.programs}
    if not module.required and not any(path.exists() for path in paths.values()):
        return None
    result = _inspect(module, paths, f"{FOLDER_VARIABLE} ({folder})")
    if isinstance(result, Found):
        return result
    raise BinariesError(f"{result}.\nRemedy: put it there, or unset {FOLDER_VARIABLE} so that Tenantry finds or builds its own.")


def _from_places(module: Module, passed_over: list[str]) -> Found | None:
    if assets := os.environ.get(ASSETS_VARIABLE):
        paths = {program.name: Path(assets).expanduser() / program.name for program in module.programs}
        if (one := _accept(_inspect(module, paths, f"{ASSETS_VARIABLE} ({assets})"), passed_over)) is not None:
            return one
    on_path = {program.name: shutil.which(program.name) for program in module.programs}
    somewhere = any(on_path.values())
    if somewhere and (one := _accept(_inspect(module, on_path, "PATH"), passed_over)) is not None:
        return one
    folder = places.binaries_folder() / module.key
    if all((folder / program.name).is_file() for program in module.programs):
        return _cached(module, folder)
    return None


def _cached(module: Module, folder: Path) -> Found:
    paths = {program.name: folder / program.name for program in module.programs}
    return Found(module=module.name, version=module.version, place="cache", paths=paths)


def _accept(result: Found | str, passed_over: list[str]) -> Found | None:
    if isinstance(result, str):
        passed_over.append(result)
        return None
    return result


def _inspect(module: Module, candidates: Mapping[str, Path | str | None], place: str) -> Found | str:
    paths = {name: Path(candidate) for name, candidate in candidates.items() if candidate is not None}
    versions: dict[str, str] = {}
    for program in module.programs:
        name = program.name
        path = paths.get(name)
        if path is None or not path.is_file() or not os.access(path, os.X_OK):
            return f"{place} has no executable {name}"
        version = _version(path, program.asks_version)
        if version is None:
            return f"{name} of {place} does not tell its version (`{path} {' '.join(program.asks_version)}`)"
        if (wanted := _unfit(module, version)) is not None:
            return f"{name} of {place} is version {version}, and Tenantry needs {wanted}"
        versions[name] = version
    if len(set(versions.values())) > 1:
        mixed = ", ".join(f"{name} {version}" for name, version in versions.items())
        return f"{place} mixes versions ({mixed})"
    return Found(module.name, next(iter(versions.values())), place, paths)


def _unfit(module: Module, version: str) -> str | None:
    release = tuple(int(part) for part in version.split(".")[:2])
    newest = f" and older than {'.'.join(map(str, module.below))}" if module.below else ""
    if release < module.minimum or (module.below and release >= module.below):
        return f"{'.'.join(map(str, module.minimum))} or newer{newest}"
    return None


def _version(path: Path, arguments: Sequence[str]) -> str | None:
    try:
        result = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\bv?(\d+\.\d+\.\d+)", result.stdout)
    return match.group(1) if match else None
