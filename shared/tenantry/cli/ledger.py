"""Where the ledger is, and times as people write them: for commands that ask it."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from tenantry.api import Api, ConnectError
from tenantry.api.errors import ApiError, Forbidden
from tenantry.cli import has_kit
from tenantry.serving.ledger import LEDGER_VARIABLE
from tenantry.serving.ledger.store import LedgerError

PERSON = "tenantry-cli"
_AGO = re.compile(r"([0-9]{1,9})(s|m|h|d)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_IN_POD = "kubectl exec -n tenantry-system deploy/ledger -- tenantry history"

ledger_option = click.option(
    "--ledger",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar=LEDGER_VARIABLE,
    help="The file of the ledger; default: that of the cluster on this machine.",
)


class Time(click.ParamType[int]):
    """A time, as milliseconds since 1970: an age such as 90s, 30m, 2h or 7d, or one such as 2026-11-27T15:00:00Z."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """From text; a time without a zone is one of this machine."""
        if isinstance(value, int):
            return value
        try:
            if found := _AGO.fullmatch(value):
                return int((datetime.now(UTC) - timedelta(**{_UNITS[found[2]]: int(found[1])})).timestamp() * 1000)
            return int(datetime.fromisoformat(value).timestamp() * 1000)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no time: give an age such as 90s, 30m, 2h or 7d, or 2026-11-27T15:00:00Z", param, ctx)


def ledger_path(given: Path | None, kubeconfig: Path | None) -> Path:
    """The file of the ledger: the one that is named, or that of the cluster on this machine.

    Raises:
        LedgerError: there is none here; the message says where it is.
    """
    if given is not None:
        return given
    if not has_kit():
        raise LedgerError(f"name the file of the ledger with --ledger or {LEDGER_VARIABLE}; in a cluster: {_IN_POD}")
    return asyncio.run(_of_cluster(kubeconfig))


async def _of_cluster(kubeconfig: Path | None) -> Path:
    from tenantry.local.ledger_box import ledgers

    try:
        async with await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig) as api:
            return await ledger_of_cluster(api)
    except (ConnectError, ApiError) as error:
        there = ", ".join(str(each) for each in sorted(ledgers().glob("*.db"))) or "none yet"
        raise LedgerError(f"{error}\nWithout the cluster name a ledger with --ledger; on this machine: {there}") from error


async def ledger_of_cluster(api: Api) -> Path:
    """The ledger on this machine of the cluster that a client talks to; with the kit only.

    Raises:
        LedgerError: there is none here, or which one it is may not be seen; the message says where to ask.
        ApiError: the API server does not say.
    """
    from tenantry.local.ledger_box import ledger_file, ledgers_told

    try:
        told = await ledgers_told(api)
        path = told.path or await ledger_file(api)
    except Forbidden as error:
        raise LedgerError(f"which ledger is this cluster's cannot be seen ({error.message}): name it with --ledger") from error
    if path.is_file():
        return path
    if told.elsewhere:
        raise LedgerError(f"`tenantry up` serves this cluster on {told.elsewhere}, and its ledger is there: ask on that machine")
    raise LedgerError(
        f"there is no ledger of this cluster at {path}.\n"
        "Decisions are kept where the configuration has decisions.enabled: true (docs/history.md).\n"
        f"One that runs in the cluster is asked there: {_IN_POD}"
    )
