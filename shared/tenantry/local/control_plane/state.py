"""What is written down about a running control plane, and how to tell its processes from strangers.

``state.json`` in the data folder names the processes by :class:`Identity`: pid, start time and boot.  A pid
alone can be reused; the three together cannot, so nothing that we did not start is ever signalled.
"""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tenantry.local.control_plane.credentials import write_private
from tenantry.local.control_plane.errors import ControlPlaneError

_FILE = "state.json"
SUPERVISOR = "supervisor"


@dataclass(frozen=True)
class Identity:
    """One process of one boot of this machine."""

    pid: int
    started: int
    boot: str

    def runs(self) -> bool:
        """Return whether this very process runs; one that only waits to be reaped has ended."""
        return self.boot == _boot() and _stat(self.pid) == self.started

    def resident_bytes(self) -> int:
        """Return the memory that it holds, 0 when it has ended."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE") if self.runs() else 0


def identify(pid: int) -> Identity:
    """Return the identity of a process of ours; one that has just ended gets one that never runs."""
    return Identity(pid, _stat(pid) or 0, _boot())


@dataclass(frozen=True)
class State:
    """The content of ``state.json``."""

    version: str
    server: str
    kubeconfig: str
    ports: dict[str, int]
    processes: dict[str, Identity]


@dataclass(frozen=True)
class Process:
    """One process as ``status`` shows it."""

    name: str
    running: bool
    pid: int
    resident_mib: int
    listens: str


@dataclass(frozen=True)
class Status:
    """What a data folder's control plane is doing; ``running`` means all of its processes are."""

    running: bool
    data: str
    version: str | None = None
    server: str | None = None
    kubeconfig: str | None = None
    processes: tuple[Process, ...] = field(default_factory=tuple)

    @property
    def partly(self) -> bool:
        """Whether some of the processes run, and some do not."""
        return not self.running and any(process.running for process in self.processes)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON and YAML."""
        return {**asdict(self), "processes": [asdict(process) for process in self.processes]}


def write_state(data: Path, state: State) -> None:
    """Write the file."""
    write_private(data / _FILE, json.dumps(asdict(state), indent=1))


def read_state(data: Path) -> State | None:
    """Return the file's content, None when there is none that can be read."""
    try:
        raw = json.loads((data / _FILE).read_text())
        raw["processes"] = {name: Identity(**identity) for name, identity in raw["processes"].items()}
        return State(**raw)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def status(data: Path) -> Status:
    """Return what the control plane of a data folder is doing, from its state file and the process table."""
    state = read_state(data)
    if state is None:
        return Status(running=False, data=str(data))
    processes = tuple(
        Process(
            name=name,
            running=identity.runs(),
            pid=identity.pid,
            resident_mib=identity.resident_bytes() >> 20,
            listens=f"127.0.0.1:{state.ports[name]}" if name in state.ports else "unix socket",
        )
        for name, identity in state.processes.items()
        if name != SUPERVISOR
    )
    running = bool(processes) and all(process.running for process in processes)
    return Status(running, str(data), state.version, state.server, state.kubeconfig, processes)


def take_down(data: Path, timeout: float = 40.0) -> bool:
    """Stop the control plane of a data folder and wait for its end; False when none was running.

    Only the supervisor is signalled, and only when it is the process that the state file names; it stops
    the others in order.

    Raises:
        ControlPlaneError: it did not end in time.
    """
    state = read_state(data)
    if state is None:
        return False
    supervisor = state.processes[SUPERVISOR]
    if not supervisor.runs():
        return False
    os.kill(supervisor.pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout
    while any(identity.runs() for identity in state.processes.values()):
        if time.monotonic() > deadline:
            raise ControlPlaneError(
                f"The control plane on {data} did not end within {timeout:.0f} s (supervisor pid "
                f"{supervisor.pid}).\nRemedy: see {data}/supervisor.log; killing the supervisor ends the rest."
            )
        time.sleep(0.05)
    return True


def _stat(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command name may hold spaces and parentheses; what follows the last one is regular (proc(5)).
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
