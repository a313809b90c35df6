"""Jobs of Helm in a container made from their image, in place of the program alone; ``make image`` runs tests so.

A container engine with a daemon or with namespaces is not needed: buildah, as root, runs the program in the file system of the
image (isolation ``chroot``), as its user, with the volumes where the Job mounts them.  What a kubelet does besides, a read-only
root, dropped capabilities and the termination log, it does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BUILDAH = "buildah"
OF_THE_RUNNER = ("PATH", "HOME", "HELM_JOB_ROOT", "HELM_JOB_HELM")


def make(image: str, folder: Path) -> tuple[str, Path]:
    """A container of an image, and a program that runs Helm's Jobs in it."""
    container = subprocess.check_output([BUILDAH, "from", "--pull-never", image], text=True).strip()
    program = folder / "helm_job.py"
    lines = ["import sys", f"sys.path.insert(0, {str(Path(__file__).parent)!r})", "import in_container"]
    program.write_text("\n".join([*lines, f"sys.exit(in_container.run({container!r}, sys.argv[1:]))", ""]))
    return container, program


def remove(container: str) -> None:
    """The container goes; its image stays."""
    subprocess.run([BUILDAH, "rm", container], check=True, stdout=subprocess.DEVNULL)


def run(container: str, arguments: list[str]) -> int:
    """Run the program of the image for the pod that is laid out in HELM_JOB_ROOT; what it said last is the pod's last word."""
    root = Path(os.environ["HELM_JOB_ROOT"])
    command = [BUILDAH, "run", "--isolation", "chroot"]
    for name, value in os.environ.items():
        if name not in OF_THE_RUNNER:
            command += ["--env", f"{name}={value}"]
    for volume in _volumes(root):
        inside = str(volume.relative_to(root)).removeprefix("var/")  # /var/run is a link to /run in most images
        command += ["--volume", f"{volume}:/{inside}"]
    result = subprocess.run([*command, container, "--", "helm-job", *arguments], capture_output=True, text=True, check=False)
    sys.stderr.write(result.stdout + result.stderr)
    said = [line for line in (result.stdout + result.stderr).splitlines() if line.startswith(("failed: ", "release "))]
    (root / "dev/termination-log").write_text(said[-1].removeprefix("failed: ") if said else "")
    return result.returncode


def _volumes(root: Path) -> list[Path]:
    """The folders of a pod that are mounts: those with files, and the scratch space.  The image's user may use them."""
    found = []
    for base, _, files in os.walk(root):
        Path(base).chmod(0o777)
        for name in files:
            Path(base, name).chmod(0o644)
        if (files and Path(base) != root) or base == str(root / "tmp"):
            found.append(Path(base))
    return [path for path in found if path.name != "dev"]
