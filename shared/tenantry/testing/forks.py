"""Function processes in milliseconds: forked from one that has imported everything and done nothing else.

Starting an interpreter and importing a function costs a second of processor time, too much for tests that start hundreds.
`Forks.spawn` stands for `tenantry.local.processes.execute`: what it returns does what ``tenantry serve`` does, from the
command line on.  Run as a program, this module is what the processes of one function are forked from.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import runpy
import select
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, BinaryIO, NoReturn, Self

from tenantry.local.processes import FunctionFailed, Process

_MESSAGE_BYTES = 1 << 20
_FILES = 3
"""What a request hands over: the listening socket, standard input, standard error."""


class Forks:
    """Forks between ``async with`` and its end, which kills what is left."""

    def __init__(self) -> None:
        self._servers: dict[tuple[str, ...], _Server] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def spawn(
        self, program: Sequence[str], arguments: Sequence[str], environment: Mapping[str, str], listener: socket.socket
    ) -> Process:
        """A process that runs ``tenantry serve`` as `tenantry.local.processes.execute` would.

        Raises:
            FunctionFailed: what it should be forked from has ended.
        """
        key = (arguments[arguments.index("serve") + 1], *program)
        if key not in self._servers:
            self._servers[key] = _Server(key)
        return await self._servers[key].fork(arguments, environment, listener)

    async def close(self) -> None:
        """End what processes are forked from, and those."""
        await asyncio.gather(*(each.close() for each in self._servers.values()))
        self._servers.clear()


class _Forked:
    """One forked process, as `asyncio.subprocess.Process` shows one."""

    def __init__(self, pid: int, stdin: BinaryIO, stderr: asyncio.StreamReader, ended: asyncio.Future[int]) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stderr = stderr
        self._ended = ended

    @property
    def returncode(self) -> int | None:
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class _Server:
    """The process that those of one function are forked from, seen from outside."""

    def __init__(self, key: tuple[str, ...]) -> None:
        self._key = key
        self._numbers = itertools.count()
        self._pids: dict[int, asyncio.Future[int]] = {}
        self._codes: dict[int, asyncio.Future[int]] = {}
        self._starting = asyncio.Lock()
        self._control: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None

    async def fork(self, arguments: Sequence[str], environment: Mapping[str, str], listener: socket.socket) -> _Forked:
        loop = asyncio.get_running_loop()
        control = await self._started()
        number = next(self._numbers)
        forked = self._pids[number] = loop.create_future()
        ended = self._codes[number] = loop.create_future()
        stdin, write = os.pipe()
        read, stderr = os.pipe()
        our_stdin, our_stderr = os.fdopen(write, "wb", 0), os.fdopen(read, "rb", 0)
        request = {"number": number, "arguments": list(arguments), "environment": dict(environment)}
        try:
            try:
                socket.send_fds(control, [json.dumps(request).encode()], [listener.fileno(), stdin, stderr])
            finally:
                os.close(stdin)
                os.close(stderr)
            pid = await forked
        except (OSError, FunctionFailed) as error:
            our_stdin.close()
            our_stderr.close()
            raise FunctionFailed(f"what {' '.join(self._key)} is forked from has ended") from error
        said = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(said), our_stderr)
        return _Forked(pid, our_stdin, said, ended)

    async def _started(self) -> socket.socket:
        async with self._starting:
            if self._control is None:
                self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                command = [sys.executable, "-m", "tenantry.testing.forks", str(theirs.fileno()), *self._key]
                self._process = await asyncio.create_subprocess_exec(
                    *command, stdin=asyncio.subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
                )
                theirs.close()
                asyncio.get_running_loop().add_reader(self._control, self._heard, self._control)
            return self._control

    def _heard(self, control: socket.socket) -> None:
        said = control.recv(_MESSAGE_BYTES)
        if not said:
            self._lost()
            return
        answer = json.loads(said)
        futures = self._pids if "pid" in answer else self._codes
        future = futures.pop(answer["number"])
        if not future.done():
            future.set_result(answer["pid"] if "pid" in answer else answer["code"])

    def _lost(self) -> None:
        """What processes are forked from has gone, and they with it."""
        if self._control is not None:
            asyncio.get_running_loop().remove_reader(self._control)
        for waiting in self._pids.values():
            if not waiting.done():
                waiting.set_exception(FunctionFailed("ended"))
        for waiting in self._codes.values():
            if not waiting.done():
                waiting.set_result(-signal.SIGKILL)
        self._pids.clear()
        self._codes.clear()

    async def close(self) -> None:
        if self._process is None or self._control is None:
            return
        self._control.shutdown(socket.SHUT_WR)
        await self._process.wait()
        self._lost()
        self._control.close()
        self._control = None


def serve(control: socket.socket, function: str, *program: str) -> None:
    """Import what the function needs, fork a process for each request, and tell which ended; until the other side closes."""
    _prepare(function, program)
    children: dict[int, int] = {}
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    both: list[socket.socket | int] = [control, woken]
    while True:
        ready, _, _ = select.select(both, [], [])
        if woken in ready:
            os.read(woken, 4096)
            _tell_ended(control, children)
        if control not in ready:
            continue
        said, files, _, _ = socket.recv_fds(control, _MESSAGE_BYTES, _FILES)
        if not said:
            break
        request = json.loads(said)
        pid = os.fork()
        if pid == 0:
            for each in (woken, wake):
                os.close(each)
            control.close()
            _become(request, *files)
        children[pid] = request["number"]
        for each in files:
            os.close(each)
        control.send(json.dumps({"number": request["number"], "pid": pid}).encode())
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _prepare(function: str, program: Sequence[str]) -> None:
    """Import everything, and change what the program changes before it is ``tenantry``."""
    import uvicorn.lifespan.off
    import uvicorn.loops.auto
    import uvicorn.protocols.http.httptools_impl  # noqa: F401

    import tenantry.serving.logs
    import tenantry.serving.telemetry  # noqa: F401
    from tenantry.serving import server

    match program:
        case ["tenantry.testing.seeded", bug, "--"]:
            from tenantry.testing.seeded import plant

            plant(bug)
        case ["tenantry.testing.unprotected"]:
            from tenantry.testing.unprotected import take_away

            take_away()
        case ["tenantry.cli"]:
            pass
        case _:
            raise SystemExit(f"cannot fork {' '.join(program)}: say here what it does before it is tenantry")
    server.make_app(function)


def _tell_ended(control: socket.socket, children: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(OSError):  # nobody listens any more
                control.send(json.dumps({"number": children.pop(pid), "code": code}).encode())


def _become(request: Mapping[str, Any], listener: int, stdin: int, stderr: int) -> NoReturn:
    """Be ``tenantry`` with the arguments of the request, and end as it ends."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for given, number in ((stdin, 0), (stderr, 2)):
            os.dup2(given, number)
            os.close(given)
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv = ["tenantry", *request["arguments"], "--listener", str(listener)]
        try:
            runpy.run_module("tenantry.cli", run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException:
            traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), *sys.argv[2:])
