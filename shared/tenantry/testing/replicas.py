"""Function processes for the matrix: shared ones that live on, and spare ones that may be killed.

The shared ones are `tenantry serve`, as in production; the spare ones do the same but are forked (`tenantry.testing.forks`).
All have their identity's kubeconfig pointed at a fault proxy, and none is started again by itself: what takes the place of a
killed one is a spare, as the next pod does in a cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tenantry.local.processes import FunctionProcess, free_port, ready
from tenantry.testing.awaiting import POLL_S

START_S = 30.0
_QUIET = {"TENANTRY_LOG_LEVEL": "warning"}
OnLog = Callable[[dict[str, str]], None]


class Shared(FunctionProcess):
    """A process that all runs share; ``bug`` names a seeded mutation (`tenantry.testing.seeded`)."""

    def __init__(self, name: str, kubeconfig: Path, *, bug: str = "", environment: Mapping[str, str], on_log: OnLog) -> None:
        super().__init__(name, kubeconfig, say=lambda _: None, environment={**_QUIET, **environment}, on_log=on_log)
        self._bug = bug

    def _program(self) -> list[str]:
        return ["tenantry.testing.seeded", self._bug, "--"] if self._bug else super()._program()

    def _watch_restarts(self) -> bool:
        return False


class Spare:
    """A forked process that one run has for itself."""

    def __init__(self, pid: int, port: int) -> None:
        self.pid = pid
        self.port = port
        self.url = f"http://127.0.0.1:{port}/"

    async def ready(self) -> None:
        """Wait until it answers.

        Raises:
            TimeoutError: it does not.
        """
        async with asyncio.timeout(START_S):
            await ready(self.port)

    async def crash(self) -> None:
        """Kill it and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
            while True:
                os.kill(self.pid, 0)
                await asyncio.sleep(POLL_S / 10)


Replica = Shared | Spare


class Pool:
    """The shared processes, and as many spare ones as are asked for, reused as long as they live."""

    def __init__(self, name: str, kubeconfigs: list[Path], *, bug: str, environment: Mapping[str, str], on_log: OnLog) -> None:
        self.shared = [Shared(name, kubeconfig, bug=bug, environment=environment, on_log=on_log) for kubeconfig in kubeconfigs]
        self.started = 0
        self._command = [sys.executable, "-m", "tenantry.testing.forks", name, bug]
        self._kubeconfig = kubeconfigs[0]
        self._environment = {**os.environ, **_QUIET, **environment}
        self._on_log = on_log
        self._ready: list[Spare] = []
        self._asking = asyncio.Lock()
        self._forks: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start the shared processes and the one that others are forked from."""
        pipe = asyncio.subprocess.PIPE
        self._forks = await asyncio.create_subprocess_exec(
            *self._command, stdin=pipe, stdout=pipe, stderr=pipe, env=self._environment, start_new_session=True
        )
        self._listener = asyncio.create_task(self._listen())
        await asyncio.gather(*(each.start() for each in self.shared))

    async def take(self, count: int = 1) -> list[Replica]:
        """Processes for one run alone."""
        taken: list[Replica] = [self._ready.pop() for _ in range(min(count, len(self._ready)))]
        return taken + list(await asyncio.gather(*(self._fork() for _ in range(count - len(taken)))))

    def give_back(self, replica: Replica) -> None:
        """Return one that was not killed."""
        if isinstance(replica, Spare):
            self._ready.append(replica)

    async def close(self) -> None:
        """Stop all."""
        if self._forks is not None and self._forks.stdin is not None:
            self._forks.stdin.close()
            await self._forks.wait()
        if self._listener is not None:
            await self._listener
        await asyncio.gather(*(each.stop() for each in self.shared))
        for each in self.shared:
            each.close()

    async def _fork(self) -> Spare:
        assert self._forks is not None
        assert self._forks.stdin is not None
        assert self._forks.stdout is not None
        async with self._asking:
            port = free_port()
            request = {"port": port, "kubeconfig": str(self._kubeconfig)}
            self._forks.stdin.write(json.dumps(request).encode() + b"\n")
            answer = await self._forks.stdout.readline()
        self.started += 1
        spare = Spare(int(json.loads(answer)["pid"]), port)
        await spare.ready()
        return spare

    async def _listen(self) -> None:
        assert self._forks is not None
        assert self._forks.stderr is not None
        trace: list[str] = []
        async for line in self._forks.stderr:
            text = line.decode("utf-8", "replace").rstrip()
            try:
                self._on_log(json.loads(text))
            except ValueError:
                if trace or text.startswith("Traceback"):
                    trace.append(text)
                if not trace:
                    self._on_log({"message": text})
                elif not text.startswith((" ", "Traceback")):  # what was raised ends it
                    self._on_log({"message": trace[0], "error": "\n".join(trace)})
                    trace = []
