"""Run as a plain script: starts a command, and kills its whole process group when standard input ends.

Whoever started it holds the other end, so that nothing outlives it, however it went.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading


def tethered(*command: str) -> list[str]:
    """The command line that runs a command so, with a pipe as its standard input, in a process group of its own."""
    return [sys.executable, "-I", "-S", __file__, *command]


def _watch() -> None:
    while os.read(0, 4096):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    if os.getpgrp() != os.getpid():
        os.setpgrp()
    # What asks the group to end is for the command to answer; this process ends with it.
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: asked.append(received))
    threading.Thread(target=_watch, daemon=True).start()
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    for early in tuple(asked):  # before there was anybody to answer
        command.send_signal(early)
    code = command.wait()
    sys.exit(code if code >= 0 else 128 - code)
