"""The identity of a function outside a pod: a kubeconfig with a short-lived token of its ServiceAccount.

The token lives in a file of its own and is replaced before it ends, as the kubelet does for a pod, so that
functions run under exactly the rights that they have in a cluster, token rotation included.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import yaml

from tenantry.api import Api
from tenantry.api.errors import ApiError
from tenantry.api.kubeconfig import find as find_kubeconfig
from tenantry.model.kinds import SERVICE_ACCOUNT
from tenantry.model.names import SYSTEM_NAMESPACE

TOKEN_LIFETIME_S = 3600  # the API server gives ten minutes at least
_RENEW_AFTER = 0.8
_RETRY_S = 5.0


class Identity:
    """A ServiceAccount's kubeconfig in a folder, kept valid until `close`."""

    def __init__(self, api: Api, service_account: str, folder: Path, admin_kubeconfig: Path, say: Callable[[str], None]) -> None:
        self.kubeconfig = folder / f"{service_account}.kubeconfig"
        self._token = folder / f"{service_account}.token"
        self._api = api
        self._service_account = service_account
        self._admin_kubeconfig = admin_kubeconfig
        self._say = say
        self._renewal: asyncio.Task[None] | None = None

    async def open(self, *, lifetime_s: int = TOKEN_LIFETIME_S) -> Path:
        """Request the first token, write both files, and begin to renew; returns the kubeconfig's path.

        Raises:
            ApiError: the ServiceAccount does not exist, or tokens may not be requested.
        """
        await self._request(lifetime_s)
        self._write_kubeconfig()
        self._renewal = asyncio.create_task(self._renew(lifetime_s))
        return self.kubeconfig

    async def close(self) -> None:
        """Stop renewing; the token runs out by itself."""
        if self._renewal is not None:
            self._renewal.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._renewal

    async def _request(self, lifetime_s: int) -> None:
        path = SERVICE_ACCOUNT.path(SYSTEM_NAMESPACE, self._service_account) + "/token"
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": lifetime_s},
        }
        answer = await self._api.request("POST", path, body=body)
        fresh = self._token.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(answer["status"]["token"])
        fresh.replace(self._token)

    async def _renew(self, lifetime_s: int) -> None:
        wait = lifetime_s * _RENEW_AFTER
        while True:
            await asyncio.sleep(wait)
            try:
                await self._request(lifetime_s)
                wait = lifetime_s * _RENEW_AFTER
            except ApiError as error:
                self._say(f"cannot renew the token of {self._service_account}: {error.message}; trying again")
                wait = _RETRY_S

    def _write_kubeconfig(self) -> None:
        admin = find_kubeconfig(self._admin_kubeconfig)
        assert admin is not None, "a file that is named is read or refused"
        made = admin.as_user({"tokenFile": str(self._token)})
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(yaml.safe_dump(made, sort_keys=False))
