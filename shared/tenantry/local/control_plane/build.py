"""Builds the programs of one pinned module into the cache, once per machine and version.

A lock file serializes builders; whoever waited finds the work done.  A program is built under a temporary
name and renamed, so a file with a program's name in the cache is always whole.  The folder, lock included,
can be deleted at any time.  The compiler ends with the process that builds, however that ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenantry.local.control_plane.catalogue import Module, Program
from tenantry.local.control_plane.errors import BinariesError
from tenantry.local.control_plane.progress import Progress, duration
from tenantry.local.control_plane.toolchain import Go, find_go
from tenantry.local.tether import tethered

#: Free space that a first build needs: the build cache of Go, and the result.
NEEDED_CACHE_BYTES = 4 * 2**30
NEEDED_RESULT_BYTES = 2**30
_LAST_LINES = 15


def build_module(module: Module, folder: Path, progress: Progress) -> None:
    """Build what ``folder`` lacks of the module's programs.

    Raises:
        BinariesError: no Go, no room, or the compiler failed (with its last lines).
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder.parent / f".{module.key}.lock", progress):
        missing = [program for program in module.programs if not (folder / program.name).is_file()]
        if not missing:
            return
        go = find_go()
        _check_room(Path(go.env("GOCACHE")), folder)
        cores = os.cpu_count() or 1
        expected = sum(program.expected_seconds for program in missing) * 2 / cores
        names = ", ".join(program.name for program in missing)
        progress.say(
            f"Building {names} {module.version} with Go {go.version} into {folder}: once, about "
            f"{duration(expected)} on {cores} cores."
        )
        for program in missing:
            _build(go, module, program, folder, progress)


@contextmanager
def _lock(path: Path, progress: Progress) -> Iterator[None]:
    with path.open("w") as lock:
        started = time.monotonic()
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = time.monotonic() - started
                if waited < 0.1:
                    progress.say(f"Another process is building; waiting for it ({path}).")
                progress.still(f"Waiting for the other build, {duration(waited)}")
                time.sleep(0.2)
        yield


def _check_room(cache: Path, folder: Path) -> None:
    needs: dict[int, tuple[Path, int]] = {}
    for place, need in ((cache, NEEDED_CACHE_BYTES), (folder, NEEDED_RESULT_BYTES)):
        existing = next(parent for parent in (place, *place.parents) if parent.exists())
        device = existing.stat().st_dev
        first, total = needs.get(device, (existing, 0))
        needs[device] = (first, total + need)
    for place, need in needs.values():
        free = shutil.disk_usage(place).free
        if free < need:
            raise BinariesError(
                f"Building the control plane needs about {need / 2**30:.0f} GiB free at {place}, and there are "
                f"{free / 2**30:.1f}.\nRemedy: free some space, or set GOCACHE and TENANTRY_HOME to a larger disk, "
                "or set TENANTRY_CONTROL_PLANE to a folder with ready binaries."
            )


def _build(go: Go, module: Module, program: Program, folder: Path, progress: Progress) -> None:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as scratch:
        result = Path(scratch) / program.name
        output = Path(scratch) / "output"
        command = [str(go.path), "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
        command += ["-ldflags", " ".join(module.linker_flags), "-o", str(result), program.package]
        with (
            output.open("wb") as sink,
            subprocess.Popen(
                tethered(*command),
                cwd=module.folder,
                env=go.environment(),
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=subprocess.STDOUT,
                process_group=0,
            ) as compiler,
        ):
            try:
                while (code := _wait(compiler)) is None:
                    elapsed = duration(time.monotonic() - started)
                    progress.still(f"  {program.name}: building, {elapsed}")
            except BaseException:
                # SIGINT is the signal on which the go command stops its own children.
                if compiler.poll() is None:
                    os.killpg(compiler.pid, signal.SIGINT)
                compiler.wait()
                raise
        if code != 0:
            last = "\n".join(output.read_text(errors="replace").splitlines()[-_LAST_LINES:])
            raise BinariesError(
                f"Building {program.name} failed ({' '.join(command)} in {module.folder}):\n{last}\n"
                "Remedy: when modules could not be downloaded, check the network and GOPROXY and start again; "
                "what was built so far is kept."
            )
        result.chmod(0o755)
        result.replace(folder / program.name)
    progress.say(f"  {program.name}: built in {duration(time.monotonic() - started)}")


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(timeout=0.5)
    except subprocess.TimeoutExpired:
        return None
