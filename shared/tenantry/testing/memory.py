"""The memory of a function's process, and what its pod may have: for tests and measurements.

Figures are resident memory of one process, as the kernel keeps them in ``/proc``: Linux only.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from tenantry.local.deployment import deployment_folder


def limit_mib(function: str) -> int:
    """The memory that the shipped manifest gives a function's pod."""
    service = yaml.safe_load((deployment_folder("knative") / function / "service.yaml").read_text(encoding="utf-8"))
    (container,) = service["spec"]["template"]["spec"]["containers"]
    found = re.fullmatch(r"(\d+)Mi", container["resources"]["limits"]["memory"])
    assert found is not None, container
    return int(found[1])


def forget_peak(pid: int) -> None:
    """Let the kernel begin anew with the largest memory of a process (proc(5), clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_mib(pid: int) -> float:
    """The largest memory that a process had since then, or since it began."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024
