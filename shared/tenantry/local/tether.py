"""Run as a plain script: starts a command, and kills its whole process group when standard input ends.

Whoever started it holds the other end, so that nothing outlives it, however it went.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading


def _watch() -> None:
    while os.read(0, 4096):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    if os.getpgrp() != os.getpid():
        os.setpgrp()
    # What asks the group to end is for the command to answer; this process ends with it.
    signal.signal(signal.SIGTERM, lambda *_: None)
    threading.Thread(target=_watch, daemon=True).start()
    code = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, check=False).returncode
    sys.exit(code if code >= 0 else 128 - code)
