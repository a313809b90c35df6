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
from tenantry.model.duties import DUTY_VARIABLE, duty_of, function_of
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


Process = Shared | Spare


class Replica:
    """One process of each Service of a function, by the Service's name; a crash takes all of them, as the loss of a node does."""

    def __init__(self, processes: Mapping[str, Process]) -> None:
        self.processes = dict(processes)

    @property
    def urls(self) -> dict[str, str]:
        """Where the events of each Service go."""
        return {service: process.url for service, process in self.processes.items()}

    async def crash(self) -> None:
        """Kill all and wait until they are gone."""
        await asyncio.gather(*(each.crash() for each in self.processes.values() if isinstance(each, Spare)))


class Pool:
    """The shared processes, and as many spare ones as are asked for, reused as long as they live.

    ``kubeconfigs`` has for each Service one of its identity for each shared replica.
    """

    def __init__(self, kubeconfigs: Mapping[str, list[Path]], *, bug: str, environment: Mapping[str, str], on_log: OnLog) -> None:
        count = min(len(each) for each in kubeconfigs.values())
        self.shared = [
            Replica(
                {
                    service: Shared(service, given[number], bug=bug, environment=environment, on_log=on_log)
                    for service, given in kubeconfigs.items()
                }
            )
            for number in range(count)
        ]
        self._forks = {service: _Forks(service, given[0], bug, environment, on_log) for service, given in kubeconfigs.items()}
        self._ready: list[Replica] = []

    @property
    def started(self) -> int:
        """How many spare processes were forked."""
        return sum(each.started for each in self._forks.values())

    async def open(self) -> None:
        """Start the shared processes and those that others are forked from."""
        for forks in self._forks.values():
            await forks.open()
        await asyncio.gather(*(each.start() for each in self._all_shared()))

    async def take(self, count: int = 1) -> list[Replica]:
        """Replicas for one run alone."""
        taken = [self._ready.pop() for _ in range(min(count, len(self._ready)))]
        return taken + list(await asyncio.gather(*(self._fork() for _ in range(count - len(taken)))))

    def give_back(self, replica: Replica) -> None:
        """Return one that was not killed."""
        if replica not in self.shared:
            self._ready.append(replica)

    async def close(self) -> None:
        """Stop all."""
        for forks in self._forks.values():
            await forks.close()
        await asyncio.gather(*(each.stop() for each in self._all_shared()))
        for each in self._all_shared():
            each.close()

    def _all_shared(self) -> list[Shared]:
        return [each for replica in self.shared for each in replica.processes.values() if isinstance(each, Shared)]

    async def _fork(self) -> Replica:
        made = await asyncio.gather(*(forks.fork() for forks in self._forks.values()))
        return Replica(dict(zip(self._forks, made, strict=True)))


class _Forks:
    """The process that the spare ones of a Service are forked from."""

    def __init__(self, service: str, kubeconfig: Path, bug: str, environment: Mapping[str, str], on_log: OnLog) -> None:
        self.started = 0
        self._command = [sys.executable, "-m", "tenantry.testing.forks", function_of(service), bug]
        self._kubeconfig = kubeconfig
        self._environment = {**os.environ, **_QUIET, **environment, DUTY_VARIABLE: duty_of(service)}
        self._on_log = on_log
        self._asking = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start it."""
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=pipe, stdout=pipe, stderr=pipe, env=self._environment, start_new_session=True
        )
        self._listener = asyncio.create_task(self._listen())

    async def close(self) -> None:
        """End it, and what it forked."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            await self._process.wait()
        if self._listener is not None:
            await self._listener

    async def fork(self) -> Spare:
        """One more process that answers."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        async with self._asking:
            port = free_port()
            request = {"port": port, "kubeconfig": str(self._kubeconfig)}
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            answer = await self._process.stdout.readline()
        self.started += 1
        spare = Spare(int(json.loads(answer)["pid"]), port)
        await spare.ready()
        return spare

    async def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        trace: list[str] = []
        async for line in self._process.stderr:
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
