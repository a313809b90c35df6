"""Reads for explanations: with the rights of who asks, each object once, and what could not be read is remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tenantry.api import Api, Keep
from tenantry.api.errors import Forbidden, KindNotServed
from tenantry.cli.explain.configured import Configured
from tenantry.cli.progress import ReadProgress
from tenantry.model.config import Config
from tenantry.model.kinds import Kind, Object
from tenantry.model.paas.names import GROUP


class Reading:
    """A `tenantry.model.origin.Looking` of one command.

    ``unread`` has what the caller may not read, in words.  A kind that is not served has no objects.
    """

    def __init__(self, api: Api, configured: Configured, progress: ReadProgress | None = None) -> None:
        self.api = api
        self.asked_config = False
        self.configured = configured
        self.unread: dict[str, None] = {}
        self._keep: Keep = (lambda each: each) if progress is None else progress.counting(lambda each: each)
        self._known: dict[tuple[str, ...], asyncio.Future[Any]] = {}

    @property
    def config(self) -> Config:
        """The configuration in force, as far as it is known; ``asked_config`` says that it counts."""
        self.asked_config = True
        return self.configured.config

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """A live object."""
        key = ("get", kind.api_version, kind.plural, namespace, name)
        found: Object | None = await self._once(key, named(kind, name, namespace), lambda: self.api.get(kind, name, namespace))
        return found

    async def groups_of(self, user: str) -> list[str]:
        """The Group objects of OpenShift that name a user, where there are such and they may be read: that decides nothing."""
        try:
            listed = (await self.api.list(GROUP)).items if user else []
        except (Forbidden, KindNotServed):
            return []
        return [each["metadata"]["name"] for each in listed if user in (each.get("users") or ())]

    async def list(self, kind: Kind, namespace: str = "", labels: str = "") -> Sequence[Object]:
        """Live objects, by label selector."""

        async def listed() -> Sequence[Object]:
            return (await self.api.list(kind, namespace, label_selector=labels, keep=self._keep)).items

        where = f"in namespace {namespace}" if namespace else "of all namespaces" if kind.namespaced else "of the cluster"
        key = ("list", kind.api_version, kind.plural, namespace, labels)
        return await self._once(key, f"{kind.plural} {where}", listed) or ()

    def could_not(self, kind: Kind, name: str, namespace: str = "") -> bool:
        """Whether an object that was asked for may not be read."""
        return named(kind, name, namespace) in self.unread

    async def _once(self, key: tuple[str, ...], what: str, read: Callable[[], Awaitable[Any]]) -> Any:
        if key not in self._known:
            self._known[key] = asyncio.ensure_future(self._read(what, read))
        return await self._known[key]

    async def _read(self, what: str, read: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await read()
        except KindNotServed:
            return None
        except Forbidden:
            self.unread[what] = None
            return None


def named(kind: Kind, name: str, namespace: str = "") -> str:
    """An object, in words."""
    return f"{kind.kind} {name}{f' in namespace {namespace}' if namespace and kind.namespaced else ''}"
