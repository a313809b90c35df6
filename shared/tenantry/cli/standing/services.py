"""Reads what runs the functions: what `tenantry up` tells, Knative Services or Deployments, the way of events, dead letters."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tenantry.api import Api
from tenantry.api.errors import ApiError, KindNotServed, NotFound, RefusedError, TransientError
from tenantry.cli.config_maps import PART_OF
from tenantry.cli.served import ServedKinds
from tenantry.model.descriptor import Service
from tenantry.model.event import SWEPT
from tenantry.model.kinds import DEPLOYMENT, Kind, Object
from tenantry.model.map.system import (
    GivenUp,
    ServiceState,
    System,
    Told,
    absent_state,
    deployed_state,
    knative_state,
    not_ready,
    told_state,
)
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.dead_letters.store import Store
from tenantry.serving.installed import descriptors

KNATIVE_SERVICES = ("serving.knative.dev", "services")
EVENTS = (
    ("eventing.knative.dev", "brokers"),
    ("eventing.knative.dev", "triggers"),
    ("sources.knative.dev", "pingsources"),
    ("sources.knative.dev", "apiserversources"),
    ("sources.knative.dev", "containersources"),
    ("sources.knative.dev", "sinkbindings"),
)
NOTHING_RUNS = "nothing runs it: `tenantry up`, or apply knative/ again"
_ASK_S = 3.0
_BACKLOG_UNKNOWN = "the broker of a cluster tells nobody; with the Kafka broker it is the lag of its consumers"


async def read_system(api: Api, served: ServedKinds, told: Sequence[Told], unread: dict[str, str]) -> System:
    """What runs; what may not be read is noted in ``unread``."""
    documents = [each.document for each in told if each.document]
    silent = [each for each in told if not each.document]
    if silent and not documents:
        for each in silent:
            unread["what runs on one machine"] = each.why
    letters, dropped = await _letters(api, unread)
    events = await asyncio.gather(*(_list(api, served, each, unread) for each in EVENTS if each in served))
    names = [served[each].kind for each in EVENTS if each in served]
    readies = not_ready(zip(names, [found or [] for found in events], strict=True))
    knative = await _list(api, served, KNATIVE_SERVICES, unread) if KNATIVE_SERVICES in served else []
    deployments = await _deployments(api, unread)

    async def state(service: Service, sweep: str) -> ServiceState:
        given = next((each["services"][service.name] for each in documents if service.name in each["services"]), None)
        if given is not None:
            return told_state(service, sweep, given)
        if (live := _named(knative, service.name)) is not None:
            return knative_state(service, sweep, live)
        if (live := _named(deployments, service.name)) is not None:
            return deployed_state(service, sweep, live, *await _asked(api, service.name))
        if silent or knative is None or deployments is None:
            return absent_state(service, sweep, None, "unknown")
        if documents:
            return absent_state(service, sweep, None, "not served by this `tenantry up`")
        return absent_state(service, sweep, False, NOTHING_RUNS)

    wanted = [(service, function.sweep) for function in descriptors().values() for service in function.services]
    states = await asyncio.gather(*(state(service, sweep) for service, sweep in wanted))
    backlog = sum(int(count) for each in documents for count in each["backlog"].values()) if documents else None
    by_name = tuple(sorted(states, key=lambda each: each.name))
    return System(by_name, backlog, "" if documents else _BACKLOG_UNKNOWN, letters, dropped, readies)


def _named(found: Sequence[Object] | None, name: str) -> Object | None:
    return next((each for each in found or () if each["metadata"]["name"] == name), None)


async def _list(api: Api, served: ServedKinds, which: tuple[str, str], unread: dict[str, str]) -> list[Object] | None:
    group, plural = which
    try:
        return (await api.list(served[which], SYSTEM_NAMESPACE)).items
    except KindNotServed:
        return []
    except RefusedError as error:
        unread[f"{plural}.{group} in {SYSTEM_NAMESPACE}"] = error.line
        return None


async def _deployments(api: Api, unread: dict[str, str]) -> list[Object] | None:
    kind: Kind = DEPLOYMENT
    try:
        return (await api.list(kind, SYSTEM_NAMESPACE, label_selector=PART_OF)).items
    except RefusedError as error:
        unread[f"deployments.apps in {SYSTEM_NAMESPACE}"] = error.line
        return None


async def _letters(api: Api, unread: dict[str, str]) -> tuple[tuple[GivenUp, ...], int]:
    try:
        book = await Store(api).read()
    except RefusedError as error:
        unread["dead letters"] = error.line
        return (), 0
    letters = [GivenUp(each.function, each.key, each.status, each.count, each.last, each.reason) for each in book]
    return tuple(reversed(letters)), book.dropped


async def _asked(api: Api, service: str) -> tuple[str, str]:
    """When a Service behind a Deployment swept last, asked through the API server; or why that is not known."""
    path = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/services/http:{service}:80/proxy{SWEPT}"
    try:
        async with asyncio.timeout(_ASK_S):
            found = await api.request("GET", path)
    except (TimeoutError, TransientError, NotFound) as error:
        words = error.line if isinstance(error, ApiError) else f"no answer within {_ASK_S:g} s"
        why = f"the API server does not reach it ({words}), as the network policies of knative/base want it"
        return "", f"{why}; the metric tenantry.sweep.age has the time"
    except RefusedError as error:
        return "", f"{error.line}; that right, or the metric tenantry.sweep.age, tells the time"
    except ApiError as error:
        return "", error.message
    swept = str(found.get("swept") or "")
    return swept, "" if swept else "has not swept since it started"
