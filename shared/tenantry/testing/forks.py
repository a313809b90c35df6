"""Function processes in milliseconds: forked from one that has imported everything and done nothing else.

Starting an interpreter costs a second of processor time, too much for hundreds of runs that kill theirs.  Run as a program,
this module imports what `tenantry serve` imports, then reads lines ``{"port": ..., "kubeconfig": ...}`` from standard input;
for each it forks a process that serves the function there, and answers with its pid.  All end when standard input does.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from pathlib import Path


def main(function: str, bug: str = "") -> None:
    """Serve requests for processes until standard input ends."""
    from tenantry.serving import logs, server, telemetry

    if bug:
        from tenantry.testing.seeded import plant

        plant(bug)
    import uvicorn.lifespan.off
    import uvicorn.loops.auto
    import uvicorn.protocols.http.httptools_impl  # noqa: F401

    server.make_app(function)
    del logs, telemetry
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    alive, end = os.pipe()
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.close(end)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            threading.Thread(target=_end_with, args=(alive,), daemon=True).start()
            asyncio.run(server.serve(function, "127.0.0.1", request["port"], Path(request["kubeconfig"])))
            os._exit(0)
        sys.stdout.write(json.dumps({"pid": pid}) + "\n")
        sys.stdout.flush()


def _end_with(alive: int) -> None:
    """End this process when the one that it was forked from is gone: its end of the pipe closes."""
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
