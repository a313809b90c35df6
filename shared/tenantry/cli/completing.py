"""Names for completion, from the cluster: within a second, with nothing on stderr, and none where anything is wrong."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tenantry.model.kinds import Kind, Object

WITHIN_S = 1.0
"""What was read by then is offered: who presses a key does not wait longer."""
MOST = 500
TYPES = ("project", "paas", "tenant", "namespace")

Found = set[str]


def targets(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """``project/``, and with a type the names of that type."""
    del parameter
    kind, slash, _ = typed.partition("/")
    if not slash:
        return [f"{each}/" for each in TYPES if each.startswith(typed)]
    return _offered(typed, lambda found: _owners(ctx, kind, found)) if kind in TYPES else []


def namespaces(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Names of namespaces."""
    from tenantry.model.kinds import NAMESPACE

    del parameter
    return _offered(typed, lambda found: _read(ctx, NAMESPACE, _name, found))


def tenants(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Names of Tenants."""
    from tenantry.model.flux.names import TENANT

    del parameter
    return _offered(typed, lambda found: _read(ctx, TENANT, _name, found))


def kinds(known: Sequence[str]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Kinds that a command knows, however they are written."""

    def offered(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
        del ctx, parameter
        return [each for each in known if each.lower().startswith(typed.lower())]

    return offered


def _offered(typed: str, read: Callable[[Found], Awaitable[None]]) -> list[str]:
    """What was read within the time and begins as typed."""
    found: Found = set()

    async def within() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WITHIN_S):
                await read(found)

    with contextlib.suppress(Exception), _quiet():
        asyncio.run(within())
    return sorted(each for each in found if each.startswith(typed))[:MOST]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Nothing on stderr, whoever writes there: programs of a kubeconfig too."""
    with Path(os.devnull).open("w") as nowhere:
        saved = os.dup(2)
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)


async def _owners(ctx: click.Context, kind: str, found: Found) -> None:
    from tenantry.model.flux.names import TENANT
    from tenantry.model.kinds import NAMESPACE, labels_of
    from tenantry.model.names import PROJECT_ID
    from tenantry.model.paas.names import PAAS

    def name(obj: Object) -> str:
        return labels_of(obj).get(PROJECT_ID, "") if kind == "project" else str(obj["metadata"]["name"])

    of_kind = {"paas": PAAS, "tenant": TENANT}.get(kind, NAMESPACE)
    await _read(ctx, of_kind, lambda obj: f"{kind}/{name(obj)}" if name(obj) else "", found)


async def _read(ctx: click.Context, kind: Kind, named: Callable[[Object], str], found: Found) -> None:
    """Note what objects of a kind are called, as the pages come."""
    from tenantry.api import Api

    def note(obj: Object) -> Object:
        if text := named(obj):
            found.add(text)
        return obj

    async with await Api.connect(
        field_manager="tenantry-cli", kubeconfig=ctx.params.get("kubeconfig"), timeout_s=WITHIN_S
    ) as api:
        await api.list(kind, metadata_only=True, keep=note)


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])
