"""What a command needs beyond the packages that every installation has."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tenantry.serving.config import ConfigError

_LOCAL = ("croniter",)
"""The modules of the extra ``local``; click comes with functions-framework, and Go may come from PATH."""


class ExtraMissing(ConfigError):
    """An extra is not installed; the message says how to install it."""


def need_local(command: str) -> None:
    """End a command before it starts anything that only the extra ``local`` brings.

    Raises:
        ExtraMissing: it is not installed.
    """
    missing = [name for name in _LOCAL if importlib.util.find_spec(name) is None]
    if missing:
        raise ExtraMissing(
            f"`tenantry {command}` needs the extra `local` ({', '.join(missing)} missing): pip install 'tenantry[local]'"
        )


def helm_program() -> Path | None:
    """Helm, for the Jobs that nothing else runs on one machine; None, said to people, where there is none: releases wait."""
    from tenantry.local.control_plane import ControlPlaneError, Lines, ensure_helm

    progress = Lines()
    try:
        return ensure_helm(progress)
    except ControlPlaneError as error:
        progress.say(f"tenantry: without Helm no release is installed: {error}")
        return None
