"""Functions as processes, each behind its real HTTP entry.

A function is started as ``tenantry serve`` and watched: one that ends by itself is started again after a
pause, and what it had in hand is delivered anew by the broker.  A process dies with its parent.

The socket that a function listens on is made here and outlives its processes, so a request that comes while none is there
waits for the next, as Knative's activator lets requests wait for a cold start.  Several processes behind one address have
a socket each, between which the kernel divides connections, whatever they bring: as instances of a Knative Service get requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

from tenantry.model.descriptor import DUTY_VARIABLE
from tenantry.serving.installed import service_named

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
_RESTART_AFTER_S = 1.0
_BACKLOG = 1024
_READY_POLL_S = 0.02

Say = Callable[[str], None]


class FunctionFailed(RuntimeError):
    """A function did not start; the message has what it said last."""


def free_port() -> int:
    """A TCP port on loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def ready(port: int) -> None:
    """Wait until the function on a port of loopback says that it is ready."""
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, IndexError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /health/readiness HTTP/1.1\r\nHost: local\r\nConnection: close\r\n\r\n")
            status = (await reader.readline()).split()[1]
            writer.close()
            if status == b"200":
                return
        await asyncio.sleep(_READY_POLL_S)


class Closable(Protocol):
    """What can be closed."""

    def close(self) -> object:
        """Close it."""


class Process(Protocol):
    """What `FunctionProcess` uses of `asyncio.subprocess.Process`."""

    @property
    def pid(self) -> int:
        """Its number."""

    @property
    def returncode(self) -> int | None:
        """None as long as it runs, less than 0 when a signal ended it."""

    @property
    def stdin(self) -> Closable | None:
        """It ends when this closes."""

    @property
    def stderr(self) -> asyncio.StreamReader | None:
        """Its lines."""

    async def wait(self) -> int:
        """Wait for its end; returns the code."""

    def send_signal(self, number: int, /) -> None:
        """Send it a signal."""


Spawn = Callable[[Sequence[str], Sequence[str], Mapping[str, str], socket.socket], Awaitable[Process]]
"""Starts a module, with arguments of its own, that runs ``tenantry`` with arguments, environment and listening socket."""


async def execute(
    program: Sequence[str], arguments: Sequence[str], environment: Mapping[str, str], listener: socket.socket
) -> Process:
    """Start a Python interpreter (`Spawn`)."""
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-m", *program, *arguments, "--listener", str(listener.fileno())]
    return await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stderr=pipe, env=dict(environment), start_new_session=True, pass_fds=[listener.fileno()]
    )


async def lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The lines of a stream until it ends; one that is longer than its buffer comes in parts.

    Whoever stopped to read would stop the process that writes, too: nothing that it says may end this.
    """
    while True:
        try:
            line = await stream.readuntil()
        except asyncio.LimitOverrunError as error:
            line = await stream.readexactly(error.consumed)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                yield error.partial
            return
        yield line


class FunctionProcess:
    """One Service of a function on a port of its own, which is taken from now until `close`; ``url`` is where events go.

    A process that is one of ``several`` lets others have the same ``port``.
    """

    program: ClassVar[str] = "tenantry.cli"
    """The module that is run; tests have others."""

    def __init__(
        self,
        name: str,
        kubeconfig: Path,
        *,
        say: Say,
        environment: Mapping[str, str] | None = None,
        on_log: Callable[[dict[str, str]], None] | None = None,
        spawn: Spawn = execute,
        several: bool = False,
        port: int = 0,
    ) -> None:
        self.name = name
        self._service = service_named(name)
        self._listener = socket.create_server(("127.0.0.1", port), backlog=_BACKLOG, reuse_port=several)
        self.port = int(self._listener.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}/"
        self.pid = 0
        self.starts = 0
        """How often it was started."""
        self._kubeconfig = kubeconfig
        self._say = say
        self.environment = dict(environment or {})
        self._on_log = on_log
        self._start_process = spawn
        self._process: Process | None = None
        self._watch: asyncio.Task[None] | None = None
        self._last_lines: list[str] = []
        self._ready = asyncio.Event()
        self._stopping = False

    async def start(self) -> None:
        """Start and wait until it answers.

        Raises:
            FunctionFailed: it ended or did not answer in time.
        """
        self._stopping = False
        await self._spawn()
        self._watch = asyncio.create_task(self._keep_running())
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._answers()
        except (TimeoutError, FunctionFailed):
            said = "\n".join(self._last_lines[-10:])
            await self.stop()
            raise FunctionFailed(f"{self.name} did not start:\n{said}") from None

    async def _spawn(self) -> None:
        arguments = ["serve", self._service.function, "--kubeconfig", str(self._kubeconfig), "--end-with-parent"]
        duty = {DUTY_VARIABLE: self._service.duty} if self._service.duty else {}
        environment = {**os.environ, **self.environment, **duty}
        self._process = await self._start_process(self._program(), arguments, environment, self._listener)
        self.pid = self._process.pid
        self.starts += 1

    @property
    def is_running(self) -> bool:
        """Whether there is a process now."""
        return self._process is not None and self._process.returncode is None

    def _program(self) -> list[str]:
        return [self.program]

    async def _answers(self) -> None:
        assert self._process is not None
        answer, ended = asyncio.ensure_future(ready(self.port)), asyncio.ensure_future(self._process.wait())
        try:
            await asyncio.wait((answer, ended), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise FunctionFailed(self.name)
            answer.result()
        finally:
            answer.cancel()
            ended.cancel()

    async def _keep_running(self) -> None:
        while not self._stopping:
            process = self._process
            assert process is not None
            assert process.stderr is not None
            async for line in lines(process.stderr):
                self._heard(line.decode("utf-8", "replace").rstrip())
            code = await process.wait()
            if process.stdin is not None:
                process.stdin.close()
            if self._stopping or not self._watch_restarts():
                return
            self._say(f"{self.name} ended with code {code}; starting it again")
            await asyncio.sleep(_RESTART_AFTER_S)
            if not self._stopping:
                await self._spawn()

    def _watch_restarts(self) -> bool:
        return bool(self._process and self._process.returncode != 2)  # 2: it cannot start as configured

    def _heard(self, line: str) -> None:
        self._last_lines = [*self._last_lines[-50:], line]
        if self._on_log is None:
            return
        try:
            self._on_log(json.loads(line))
        except ValueError:
            self._on_log({"level": "info", "message": line})

    def kill(self) -> None:
        """Kill it at once, as a crash would; it is started again."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)

    async def stop(self) -> None:
        """End it: finish what runs, then go."""
        self._stopping = True
        process = self._process
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
            except TimeoutError:
                process.send_signal(signal.SIGKILL)
                await process.wait()
        if self._watch is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch

    def close(self) -> None:
        """Give the port back, after `stop`; who waits there is refused."""
        self._listener.close()
