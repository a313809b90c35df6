"""Bearer tokens that do not last: in a file that others replace, or printed by a program.

A projected token is replaced on disk every hour or so, and a process that keeps the first one is locked out.  `TokenFile` reads
the file at most once a second.  `ExecToken` runs the program again when its token ends, or when the server refuses it.
"""

from __future__ import annotations

import asyncio
import base64
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tenantry.api.errors import ConnectError
from tenantry.api.official import kube_config

_LOOK_AGAIN_AFTER_S = 1.0
_BEFORE_THE_END_S = 10.0
_CERTIFICATE = {"client-certificate-data": "clientCertificateData", "client-key-data": "clientKeyData"}


class Token(ABC):
    """A token that may be replaced while we run."""

    @abstractmethod
    async def current(self) -> str:
        """The token that counts now."""

    @abstractmethod
    def forget(self) -> None:
        """Read it again at the next use: the server refused what we had."""

    async def install(self, configuration: Any) -> None:
        """Make the client use the token that counts at each request."""

        async def refresh(target: Any) -> None:
            target.api_key["BearerToken"] = f"Bearer {await self.current()}"

        await refresh(configuration)
        configuration.refresh_api_key_hook = refresh


class TokenFile(Token):
    """A bearer token in a file that others replace; ``token`` counts until the file can be read."""

    def __init__(self, path: Path, token: str = "") -> None:
        self._path = path
        self._token = token
        self._looked = float("-inf")

    async def current(self) -> str:
        """The token as it is on disk, at most one second old; the last good one while there is no file."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_AGAIN_AFTER_S:
            self._looked = now
            try:
                self._token = self._path.read_text().strip()
            except OSError as error:
                if not self._token:
                    raise ConnectError(f"cannot read the token file {self._path}: {error.strerror}") from error
        return self._token

    def forget(self) -> None:
        """Read the file at the next use."""
        self._looked = float("-inf")


class ExecToken(Token):
    """What the program in a kubeconfig's ``exec`` prints; ``where`` names the user in messages."""

    def __init__(self, program: Mapping[str, Any], where: str) -> None:
        self._program = program
        self._where = where
        self._token = ""
        self._asked = float("-inf")
        self._ends = float("inf")
        self._lock = asyncio.Lock()

    async def ask(self) -> dict[str, str]:
        """Run the program; the client certificate that it gave, as keys of a kubeconfig's user, or nothing.

        The certificate of the first run stays in use; the program runs again for a token that expires.

        Raises:
            ConnectError: it cannot be run, failed, or gave nothing of use.
        """
        command = self._program["command"]
        try:
            status = await kube_config.ExecProvider(kube_config.ConfigNode("exec", dict(self._program))).run()
        except (FileNotFoundError, PermissionError) as error:
            hint = " ".join(self._program.get("installHint", "install it, or put it on PATH").split())
            raise ConnectError(
                f"kubeconfig {self._where}.exec.command: cannot run {command}: {error.strerror}; {hint}"
            ) from error
        except Exception as error:
            raise ConnectError(f"kubeconfig {self._where}.exec: {command}: {' '.join(str(error).split())}") from error
        status = status if isinstance(status, dict) else {}
        certificate = {
            key: base64.b64encode(str(status[given]).encode()).decode() for key, given in _CERTIFICATE.items() if given in status
        }
        self._token, self._asked = str(status.get("token") or ""), time.monotonic()
        self._ends = _moment(status.get("expirationTimestamp"))
        if not self._token and len(certificate) < len(_CERTIFICATE):
            raise ConnectError(f"kubeconfig {self._where}.exec: {command} gave neither a token nor a certificate with its key")
        return certificate

    async def current(self) -> str:
        """The token; another one when it ends."""
        async with self._lock:
            if time.time() > self._ends - _BEFORE_THE_END_S and time.monotonic() - self._asked >= _LOOK_AGAIN_AFTER_S:
                await self.ask()
        return self._token

    def forget(self) -> None:
        """Run the program again at the next use, unless it has just been run."""
        if time.monotonic() - self._asked >= _LOOK_AGAIN_AFTER_S:
            self._ends = float("-inf")

    async def install(self, configuration: Any) -> None:
        """Make the client use the token, if the program gave one and not a certificate only."""
        if self._token:
            await super().install(configuration)


def _moment(text: Any) -> float:
    """An RFC 3339 time in seconds since 1970; never, where there is none."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return float("inf")
