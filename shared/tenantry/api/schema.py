"""How an API server merges and compares the fields of its kinds, from the OpenAPI documents that it publishes.

`/openapi/v3` names a document for each group version, with a hash of what is in it.  A document is asked for once, reduced at
once to what merging and comparing needs, and asked for again when its hash is another one: hashes are asked for every
`SERVED_S`, and after `MISSING_S` when a kind was not found, because a CRD may have been made meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from typing import Any

from tenantry.api.discovery import MISSING_S, SERVED_S, Request
from tenantry.api.errors import NotFound, RefusedError
from tenantry.model.comparison import FREE, UNKNOWN, Schema
from tenantry.model.kinds import Kind, Object

_INDEX = "/openapi/v3"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"


class Schemas:
    """The schemas of an API server; ``request`` makes a request as (method, path)."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._lock = asyncio.Lock()
        self._asked = float("-inf")
        self._addresses: Mapping[str, str] = {}
        self._known: dict[str, tuple[str, dict[str, Schema]]] = {}

    async def find(self, kind: Kind) -> Schema:
        """How the fields of a kind are merged and compared; `UNKNOWN` where the server does not say."""
        async with self._lock:
            address, kinds = self._known.get(kind.api_version, ("", {}))
            if time.monotonic() - self._asked > (SERVED_S if kind.kind in kinds else MISSING_S):
                paths = (await self._read(_INDEX)).get("paths") or {}
                self._addresses = {path: found.get("serverRelativeURL", "") for path, found in paths.items()}
                self._asked = time.monotonic()
            root = f"apis/{kind.api_version}" if kind.group else f"api/{kind.api_version}"
            now = self._addresses.get(root, "")
            if now != address:
                document = await self._read(f"{_INDEX}/{root}")  # without the hash, with which it might be a redirection
                kinds = {name: schema for api_version, name, schema in reduced(document) if api_version == kind.api_version}
                self._known[kind.api_version] = now, kinds
            return kinds.get(kind.kind, UNKNOWN)

    async def _read(self, path: str) -> Object:
        try:
            return await self._request("GET", path)
        except (NotFound, RefusedError):
            return {}


def reduced(document: Object) -> Iterator[tuple[str, str, Schema]]:
    """API version, kind and schema of everything in an OpenAPI document that is a kind."""
    schemas = (document.get("components") or {}).get("schemas") or {}
    made: dict[str, Schema] = {_QUANTITY: Schema(meaning="quantity")}

    def named(name: str) -> Schema:
        if name not in made:
            made[name] = Schema()  # it may contain itself
            _fill(made[name], schemas.get(name) or {}, of)
        return made[name]

    def of(node: Object) -> Schema:
        for part in (node, *(node.get("allOf") or ())):
            if "$ref" in part:
                found = named(part["$ref"].rpartition("/")[2])
                atomic = node.get("x-kubernetes-map-type") == "atomic" and not found.atomic
                return Schema(True, properties=found.properties, other=found.other) if atomic else found
        schema = Schema()
        return schema if _fill(schema, node, of) else FREE

    for name, node in schemas.items():
        for kind in node.get("x-kubernetes-group-version-kind") or ():
            yield "/".join(filter(None, (kind["group"], kind["version"]))), kind["kind"], named(name)


def _fill(schema: Schema, node: Object, of: Any) -> bool:
    """Take over what a node of a document says; False when that is nothing."""
    schema.atomic = node.get("x-kubernetes-map-type") == "atomic"
    lists = node.get("x-kubernetes-list-type")
    if lists in ("map", "set"):
        schema.keys = tuple(node.get("x-kubernetes-list-map-keys") or ()) if lists == "map" else ()
    schema.meaning = "bytes" if node.get("format") == "byte" else ""
    schema.default = node.get("default")
    schema.properties.update((name, of(below)) for name, below in (node.get("properties") or {}).items())
    other = node.get("items") or node.get("additionalProperties")
    schema.other = of(other) if isinstance(other, dict) else None
    plain = schema.other in (None, FREE) and not schema.properties and schema.default is None
    return not plain or schema.atomic or schema.keys is not None or schema.meaning != ""
