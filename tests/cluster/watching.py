"""What happened in between, which the state at the end does not show."""

from __future__ import annotations

from contextlib import aclosing

from tenantry.api import Api
from tenantry.model.kinds import Kind, Object


async def history(admin: Api, kind: Kind, since: str, namespace: str = "") -> list[tuple[str, Object]]:
    """All changes of a kind after a resource version, in order: (``ADDED|MODIFIED|DELETED``, object).

    A watch from the past tells them at once, and the API server ends it after a second; that it was not cut short shows in what
    is there now.
    """
    live = (await admin.list(kind, namespace)).items
    watch = admin.watch(kind, namespace, resource_version=since, timeout_s=1)
    async with aclosing(watch) as changes:  # type: ignore[type-var]
        told = [(change, obj) async for change, obj in changes if change != "BOOKMARK"]
    versions = {obj["metadata"]["resourceVersion"] for _, obj in told}
    new = {obj["metadata"]["resourceVersion"] for obj in live if int(obj["metadata"]["resourceVersion"]) > int(since)}
    assert new <= versions, "the watch was cut short"
    return told
