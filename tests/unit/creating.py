"""``tenantry create`` without a cluster: what it prints, and the one line with which it refuses."""

from __future__ import annotations

from typing import Any

import yaml
from click.testing import CliRunner

from tenantry.cli import main

NOWHERE = "/nowhere/kubeconfig"
"""Who asks for a cluster with it is told that there is none."""


def create(*arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of ``tenantry create``."""
    result = CliRunner().invoke(main, ["create", *arguments], env={"KUBECONFIG": NOWHERE})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def printed(*arguments: str) -> list[dict[str, Any]]:
    """The documents that a command prints with ``--export``."""
    code, output, errors = create(*arguments, "--export")
    assert (code, errors) == (0, "")
    return list(yaml.safe_load_all(output))


def refused(*arguments: str, why: str) -> None:
    """A command ends with one line that has these words, and prints nothing."""
    code, output, errors = create(*arguments, "--export")
    assert code != 0, arguments
    assert output == ""
    assert errors.endswith("\n")
    assert errors.count("\n") == 1, errors
    assert why in errors
