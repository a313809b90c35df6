"""When the sources that the function makes watch what they name.

Knative says in the status that a source is ready; then its adapter runs, and begins its watches one after the other, within the
API client's limits.  No event reports what changed before that, so all locks are observed once more afterwards.
"""

from __future__ import annotations

import asyncio

from tenantry.engine.reader import Reader
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import API_SERVER_SOURCE, Key, Object
from tenantry.model.names import LOCKED_CLUSTER_SOURCE, LOCKED_SOURCE, SYSTEM_NAMESPACE

WATCHES_PER_S, WATCHES_AT_ONCE = 5.0, 10
"""The limits of the adapter's API client, which an ApiServerSource cannot change."""

BEGIN_S = 1.0
LONGEST_S = 30.0
"""With the observation itself this is within the time of one event."""


def is_locked_source(key: Key) -> bool:
    """Whether this is one of the sources that the function makes."""
    ours = (LOCKED_SOURCE, LOCKED_CLUSTER_SOURCE)
    return key.kind == API_SERVER_SOURCE.kind and key.namespace == SYSTEM_NAMESPACE and key.name in ours


async def watches(key: Key, reader: Reader) -> bool:
    """Whether a source of ours watches as it is declared now; waits for the adapter of one that is ready.

    One that changes meanwhile reports its own readiness later, by another event.
    """
    before = await reader.get(API_SERVER_SOURCE, key.name, key.namespace)
    if before is None or not is_ready(before):
        return False
    await asyncio.sleep(beginning_s(before))
    after = await reader.get(API_SERVER_SOURCE, key.name, key.namespace, again=True)
    return is_ready(after) and after is not None and _generation(after) == _generation(before)


def is_ready(source: Object | None) -> bool:
    """Whether Knative says that a source, as it is declared now, is ready."""
    if source is None or source.get("status", {}).get("observedGeneration") != source["metadata"].get("generation"):
        return False
    return (find_condition(source, "Ready") or {}).get("status") == "True"


def beginning_s(source: Object) -> float:
    """How long the adapter of a ready source needs for its watches: one for each kind in each namespace that it was given.

    Who plays sources without an adapter names no namespaces, and watches when he says so.
    """
    watched = len(source["spec"]["resources"]) * len(source["status"].get("namespaces") or ())
    if not watched:
        return 0.0
    return min(LONGEST_S, BEGIN_S + max(0, watched - WATCHES_AT_ONCE) / WATCHES_PER_S)


def _generation(source: Object) -> tuple[str, int]:
    return source["metadata"]["uid"], source["metadata"].get("generation", 0)
