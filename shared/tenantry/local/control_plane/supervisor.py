"""The process that owns etcd, kube-apiserver and kube-controller-manager, so that none outlives its purpose.

Run as a plain script with nothing but the standard library.  It takes one JSON request a line on standard
input and gives one JSON answer a line on standard output.  Three ties hold the processes:

* the owner (whoever started this script) holds the other end of standard input, and a pidfd watches the
  owner itself: when either is gone, however it went, everything is stopped;
* every child asks the kernel to be killed when this process dies;
* a lock on the data folder is held for as long as this process lives, so a folder never has two.

``detach`` cuts the first tie: then SIGTERM is what stops everything.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def _die_with_parent() -> None:
    # Safe here although not in general: this process has one thread, and it is the parent to the end.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Supervisor:
    """Starts, stops and reports child processes; the order of starting is kept for stopping."""

    def __init__(self, data: Path, *, ephemeral: bool, remove: bool) -> None:
        self._data = data
        self._ephemeral = ephemeral
        self._remove = remove
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self.detached = False

    def start(self, name: str, command: list[str], log: str) -> dict[str, Any]:
        """Start a child in the data folder with its output appended to ``log``; answer its pid."""
        with Path(log).open("ab") as sink:
            child = subprocess.Popen(
                command,
                cwd=self._data,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one thread, see _die_with_parent
            )
        self._children[name] = child
        return {"pid": child.pid}

    def stop(self, name: str, grace: float) -> dict[str, Any]:
        """End a child: SIGTERM and, after ``grace`` seconds, SIGKILL; at once SIGKILL when grace is 0."""
        child = self._children.pop(name, None)
        if child is None:
            return {"code": None}
        if grace > 0 and child.poll() is None:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(grace)
        child.kill()
        return {"code": child.wait()}

    def poll(self) -> dict[str, Any]:
        """Answer pid and exit code (None while running) of every child."""
        return {name: {"pid": child.pid, "code": child.poll()} for name, child in self._children.items()}

    def detach(self) -> dict[str, Any]:
        """Stay when the owner goes."""
        self.detached = True
        return {}

    def end(self) -> None:
        """Stop everything, last started first, and remove the data folder when it was ours to remove."""
        for name in reversed(list(self._children)):
            self.stop(name, 0 if self._ephemeral else 10)
        if self._remove:
            shutil.rmtree(self._data, ignore_errors=True)


def _lock(data: Path) -> TextIO | None:
    handle = (data / "lock").open("w")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        return None
    return handle


def _answer(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _handle(line: bytes, operations: dict[str, Callable[..., dict[str, Any]]]) -> None:
    request = json.loads(line)
    operation = operations[request.pop("do")]
    try:
        _answer({"ok": operation(**request)})
    except OSError as error:
        _answer({"error": str(error)})


def _serve(supervisor: Supervisor, wakeup: int, owner: int | None) -> None:
    operations: dict[str, Callable[..., dict[str, Any]]] = {
        "start": supervisor.start,
        "stop": supervisor.stop,
        "poll": supervisor.poll,
        "detach": supervisor.detach,
    }
    buffer = b""
    while not supervisor.detached:
        watched = [0, wakeup] if owner is None else [0, wakeup, owner]
        ready, _, _ = select.select(watched, [], [])
        if wakeup in ready or (owner is not None and owner in ready):
            return
        chunk = os.read(0, 65536)
        if not chunk:
            return
        *lines, buffer = (buffer + chunk).split(b"\n")
        for line in lines:
            _handle(line, operations)
    select.select([wakeup], [], [])


def _owner_handle(owner: int) -> int | None:
    if os.getppid() != owner:
        return None
    with contextlib.suppress(OSError, AttributeError):
        return os.pidfd_open(owner)
    return None


def main(arguments: list[str]) -> int:
    """Serve requests until the owner goes or a signal comes; then stop everything.

    ``arguments``: the data folder, the owner's pid, and any of ``ephemeral`` and ``remove``.
    """
    data, owner = Path(arguments[0]), int(arguments[1])
    lock = _lock(data)
    if lock is None:
        _answer({"error": "locked"})
        return 1
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    supervisor = Supervisor(data, ephemeral="ephemeral" in arguments, remove="remove" in arguments)
    _answer({"ok": {"pid": os.getpid()}})
    try:
        with contextlib.suppress(BrokenPipeError):
            _serve(supervisor, reader, _owner_handle(owner))
    finally:
        # A second signal must not interrupt the stopping; the handlers above swallow it.
        started = time.monotonic()
        supervisor.end()
        if supervisor.detached:
            sys.stderr.write(f"control plane stopped in {time.monotonic() - started:.1f} s\n")
        lock.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
