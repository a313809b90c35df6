"""What runs on one machine tells of itself: functions, their last sweeps, and what waits, at ``/status`` beside the broker.

In memory alone: what is told at rest costs nothing.  `tenantry status` asks for it (`told_of`); it finds the address where
replays find it, in the Lease of `tenantry.local.presence`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp

from tenantry.api import Api
from tenantry.local.presence import BROKER, Present, present
from tenantry.model.config import Config
from tenantry.model.event import PING_TYPE, Event

if TYPE_CHECKING:
    from tenantry.local.broker import Broker
    from tenantry.local.processes import FunctionProcess
    from tenantry.local.schedule import Schedule
    from tenantry.local.source import ApiServerSource

STATUS = "/status"
PLACES: Any = {
    "global_": {"cattle": {"project_label", "system_project_id"}},
    "helm_project_operator": {
        "system_namespace",
        "system_namespaces",
        "project_release_namespaces",
        "other_system_project_label_values",
    },
}
"""Of the configuration what says which namespace is what (`tenantry.model.projects`)."""
ANSWER_S = 3.0
_ANSWER_BYTES = 1 << 20


class Sweeps:
    """The last sweep of each Service, by what it answered; ``services`` are those of the Triggers."""

    def __init__(self, services: Mapping[str, str]) -> None:
        self._services = services
        self._last: dict[str, dict[str, Any]] = {}

    def delivered(self, trigger: str, event: Event, status: int, attempt: int, seconds: float) -> None:
        """Note a delivery; only those of sweeps count (`tenantry.local.subscription.OnDelivery`)."""
        del attempt
        service = self._services.get(trigger)
        if event.type != PING_TYPE or "resync" not in event.extensions or service is None:
            return
        known = self._last.setdefault(service, {})
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        known["tried"] = {"at": now, "status": status, "seconds": round(seconds, 3)}
        if status == 204:
            known["swept"] = now

    def of(self, service: str) -> dict[str, Any]:
        """``swept`` is the time of the last complete one, ``tried`` the last try with its status; empty before the first."""
        return self._last.get(service, {})


def document(
    functions: Mapping[str, FunctionProcess],
    sweeps: Sweeps,
    broker: Broker,
    sources: Sequence[ApiServerSource],
    schedule: Schedule | None,
    config: Config,
) -> dict[str, Any]:
    """What is told, as JSON has it."""
    counters = broker.counters
    return {
        "services": {
            name: {"up": function.is_running, "pid": function.pid, "starts": function.starts, **sweeps.of(name)}
            for name, function in functions.items()
        },
        "backlog": {"deliveries": counters.in_flight, "changes": sum(each.backlog.waiting for each in sources)},
        "events": {
            "accepted": counters.accepted,
            "delivered": counters.delivered,
            "retried": counters.retried,
            "deadLettered": counters.dead_lettered,
            "lost": counters.lost,
        },
        "places": config.model_dump(mode="json", by_alias=True, include=PLACES),
        "next": {name: schedule.next_tick(name).isoformat() for name in schedule.pings} if schedule is not None else {},
    }


@dataclass(frozen=True, slots=True)
class ToldHere:
    """What one `tenantry up` says; ``document`` is empty where it cannot be asked, and ``why`` says why not."""

    holder: str
    document: Mapping[str, Any]
    why: str = ""


async def told_of(api: Api) -> list[ToldHere]:
    """What each `tenantry up` that serves the cluster says of itself.

    Raises:
        ApiError: its Lease cannot be read.
    """
    return [await _ask(each) for each in await present(api)]


async def _ask(there: Present) -> ToldHere:
    holder, address = there.holder, there.told.get(BROKER, "")
    if not there.is_here:
        return ToldHere(holder, {}, f"`tenantry up` runs on {there.machine}: ask there")
    if not address:
        return ToldHere(holder, {}, "`tenantry up` is starting: ask again in a moment")
    url = urlsplit(address)._replace(path=STATUS).geturl()
    timeout = aiohttp.ClientTimeout(total=ANSWER_S)
    try:
        async with aiohttp.ClientSession(trust_env=False, timeout=timeout) as session, session.get(url) as response:
            if response.status != 200:
                return ToldHere(holder, {}, f"the `tenantry up` of {holder} is of another version: start it again")
            found = json.loads(await response.content.read(_ANSWER_BYTES))
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return ToldHere(holder, {}, f"nothing answers at {url}: if {holder} was killed, `tenantry up` is to be started again")
    return ToldHere(holder, found)
