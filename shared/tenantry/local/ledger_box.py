"""The ledger of one machine: the HTTP entry of a cluster in this process, its file in a folder that outlives it.

Each start has a key of its own, which the functions get with their environment: nobody else on the machine can post decisions.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tenantry.api import Api
from tenantry.local.control_plane.places import home
from tenantry.local.deployment import deployment_folder
from tenantry.local.loopback import OnLoopback
from tenantry.local.presence import LEDGER, present
from tenantry.model.config import Config
from tenantry.model.kinds import NAMESPACE
from tenantry.serving import server
from tenantry.serving.ledger import NAME
from tenantry.serving.ledger.entry import Clerk, LedgerEntry
from tenantry.serving.ledger.settings import ledger_of
from tenantry.serving.ledger.store import LedgerError


def ledgers() -> Path:
    """The folder with a ledger for each cluster that `tenantry up` served."""
    return home() / "ledger"


async def ledger_file(api: Api) -> Path:
    """The ledger of the cluster that a client talks to: what happened in another cluster is in another one.

    Raises:
        ApiError: the API server does not say which cluster it is.
    """
    found = await api.get(NAMESPACE, "kube-system")
    return ledgers() / f"{found['metadata']['uid'] if found is not None else 'unknown'}.db"


class Told(NamedTuple):
    """What `tenantry up` says in the cluster of its ledger."""

    path: Path | None = None
    """The file, on this machine."""
    elsewhere: str = ""
    """The machine that it is on, where that is another one."""


async def ledgers_told(api: Api) -> Told:
    """Where the ledger of a cluster is that `tenantry up` serves now.

    Raises:
        ApiError: the API server does not say.
    """
    told = Told()
    for each in await present(api):
        if path := each.told.get(LEDGER):
            told = Told(Path(path)) if each.is_here else Told(elsewhere=each.machine)
    return told


def trigger_file() -> Path:
    """The Trigger that sends decisions to the ledger."""
    return deployment_folder("knative") / NAME / "trigger.yaml"


class LedgerBox(OnLoopback):
    """Open between `open` and `close`; ``url`` is where decisions go, ``key`` the file with the key of who may send them."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self.key = Path()
        self.path: Path | None = None
        self._say = say
        self._clerk: Clerk | None = None

    async def open(self, path: Path, folder: Path, config: Config) -> None:
        """Serve on a free port of loopback.  A file that cannot be written now is tried again with each event."""
        key = secrets.token_hex(32).encode()
        self.key = folder / "decisions.key"
        with os.fdopen(os.open(self.key, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
            file.write(key)
        self.path, ledger = path, ledger_of(path, config)
        try:
            await asyncio.to_thread(ledger.open)
        except LedgerError as error:
            self._say(f"decisions are not kept: {error}")
        self._clerk = Clerk(ledger)
        self._serve(partial(server.make_server, LedgerEntry(self._clerk, key)))

    async def close(self) -> None:
        """Keep what has come, and end."""
        await self._end()
        if self._clerk is not None:
            await self._clerk.close()
