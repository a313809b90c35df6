"""Chooses TCP ports on 127.0.0.1 that stay ours, also while the server behind them is down.

Ports come from below the kernel's ephemeral range, so no outgoing connection of anybody can take one while
the API server restarts, and a client that retries cannot connect to itself.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Container

from tenantry.local.control_plane.errors import ControlPlaneError

_LOW, _HIGH = 20000, 32000


def is_free(port: int) -> bool:
    """Return whether a server can listen on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def choose(preferred: int | None = None, *, besides: Container[int] = ()) -> int:
    """Return the preferred port when it is free, else a random free one; none of ``besides``, which are spoken for."""
    if preferred is not None and preferred not in besides and is_free(preferred):
        return preferred
    for candidate in random.SystemRandom().sample(range(_LOW, _HIGH), 200):
        if candidate not in besides and is_free(candidate):
            return candidate
    raise ControlPlaneError(f"No free TCP port between {_LOW} and {_HIGH} on 127.0.0.1.")


def demand(port: int) -> int:
    """Return the port.

    Raises:
        ControlPlaneError: it is taken.
    """
    if not is_free(port):
        raise ControlPlaneError(
            f"Port {port} on 127.0.0.1 is taken by another process.\n"
            f"Remedy: end it (`ss -ltnp 'sport = :{port}'` shows it), or choose another port, or name none."
        )
    return port
