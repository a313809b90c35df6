"""Asks the public databases of vulnerabilities what they know of what is locked and of what was built from it.

    python tools/audit.py

Python packages: pip-audit over requirements.lock, by name and version, with the data of osv.dev.  Go programs: govulncheck over
each program of the control plane that is built here, and Helm, with the data of vuln.go.dev.  Both need the network: a database
that does not answer counts as a finding.  Exit code 0: everybody answered, and nothing is known.
"""

from __future__ import annotations

import subprocess
import sys

from locked import LOCK
from tenantry.local.control_plane.binaries import find_binaries
from tenantry.local.control_plane.catalogue import ALL_MODULES
from tenantry.local.control_plane.toolchain import find_go

GOVULNCHECK = "golang.org/x/vuln/cmd/govulncheck@v1.1.4"
"""With its own pinned modules; the checksum database of Go says whether they are what they were."""


def commands() -> list[list[str]]:
    """What is run: nothing of it is built or installed here, but for govulncheck."""
    asked = ["--require-hashes", "--disable-pip", "--vulnerability-service", "osv", "--progress-spinner", "off"]
    go = str(find_go().path)
    found, _ = find_binaries(ALL_MODULES)
    programs = sorted({str(path) for each in found for path in each.paths.values()})
    return [
        [sys.executable, "-m", "pip_audit", *asked, "--requirement", str(LOCK)],
        *([go, "run", GOVULNCHECK, "-mode=binary", program] for program in programs),
    ]


def main() -> int:
    """Run all, also after a finding."""
    failed = 0
    for command in commands():
        print("$", *command[-6:], flush=True)
        failed += subprocess.run(command, check=False).returncode != 0
    print(f"audit: {failed} with findings or without an answer" if failed else "audit: nothing is known")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
