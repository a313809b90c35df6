"""The owner's end of the supervisor: starts the script, sends requests, reads answers."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tenantry.local.control_plane.errors import AlreadyRunning, ControlPlaneError

_SCRIPT = Path(__file__).with_name("supervisor.py")


class Owner:
    """Owns one supervisor process and, through it, the processes of one control plane.

    Losing this object's process by any signal ends all of them, unless :meth:`detach` was called.
    """

    def __init__(self, data: Path, *, ephemeral: bool, remove: bool) -> None:
        words = [word for word, wanted in (("ephemeral", ephemeral), ("remove", remove)) if wanted]
        self._mutex = threading.Lock()
        with (data / "supervisor.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SCRIPT), str(data), str(os.getpid()), *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the owner; it stops its children in order
            )
        answer = self._read()
        if answer.get("error") == "locked":
            self.close()
            raise AlreadyRunning(
                f"A control plane is already running on {data}.\n"
                "Remedy: `tenantry cluster status`, or `tenantry cluster down`, or another data folder."
            )

    @property
    def pid(self) -> int:
        """Process id of the supervisor."""
        return self._process.pid

    def start(self, name: str, command: list[str], log: Path) -> int:
        """Start a child and return its pid."""
        return int(self._ask(do="start", name=name, command=command, log=str(log))["pid"])

    def stop(self, name: str, grace: float) -> None:
        """Stop a child and wait for its end; nothing happens when it does not run."""
        self._ask(do="stop", name=name, grace=grace)

    def poll(self) -> dict[str, dict[str, int | None]]:
        """Return pid and exit code (None while running) of every child."""
        answer: dict[str, dict[str, int | None]] = self._ask(do="poll")
        return answer

    def detach(self) -> None:
        """Let the supervisor live on after this process, until SIGTERM."""
        self._ask(do="detach")
        self._close_pipes()
        # The process is now somebody else's; without this the interpreter warns that it still runs.
        self._process.returncode = 0

    def close(self) -> None:
        """Stop every child and the supervisor, and wait for their end."""
        self._close_pipes()
        self._process.wait()

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _ask(self, **request: object) -> Any:
        with self._mutex:
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
                answer = self._read()
            except (BrokenPipeError, ValueError) as error:
                raise ControlPlaneError("The control plane's supervisor is gone; start it again.") from error
        if "error" in answer:
            raise ControlPlaneError(f"{request['do']} {request.get('name', '')} failed: {answer['error']}")
        return answer["ok"]

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ControlPlaneError("The control plane's supervisor is gone; start it again.")
        answer: dict[str, Any] = json.loads(line)
        return answer
