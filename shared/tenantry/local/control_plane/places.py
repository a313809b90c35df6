"""The folders of one machine: state and cache below ``TENANTRY_HOME``."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """Return the folder of state and cache.

    ``TENANTRY_HOME``, else ``$XDG_CACHE_HOME/tenantry``, else ``~/.cache/tenantry``.  It need not exist.
    """
    if named := os.environ.get("TENANTRY_HOME"):
        return Path(named).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser().absolute() / "tenantry"


def binaries_folder() -> Path:
    """Return the folder with one sub-folder per pinned module."""
    return home() / "bin"


def cluster_folder() -> Path:
    """Return the data folder that ``tenantry cluster`` uses unless told otherwise."""
    return home() / "cluster"
