"""Flux in tests: owners of sources who share them, and what the AccessIndex says of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from flux_crds import flux_kind
from people import CORE_EVENT, People, token
from times import FLUX_S

from tenantry.api import Api
from tenantry.model.conditions import find_condition
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.names import ACCESS_FROM, ACCESS_INDEX, ACL_VALID, DEFAULT, SOURCE_GRANT, TENANCY_PROFILE
from tenantry.model.kinds import NAMESPACE, Kind, Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj

SOURCES = "scope-binding"
"""The function that makes the index."""
TWO = {"team": "two"}


def served(kind: str) -> Kind:
    """A kind of Flux as ``current`` serves it."""
    found = flux_kind(kind)
    return Kind(f"{found.group}/{found.version}", found.kind, found.plural)


def access_from(*labels: Mapping[str, Any]) -> Object:
    """``accessFrom`` with a selector for each of these."""
    return {"namespaceSelectors": [{"matchLabels": dict(each)} for each in labels]}


def annotated(*labels: Mapping[str, Any]) -> dict[str, str]:
    """The annotation that says the same."""
    return {ACCESS_FROM: json.dumps(access_from(*labels))}


class Fluxing(People):
    """Acts as the platform and as owners of sources, and waits for what follows."""

    def __init__(self, admin: Api) -> None:
        super().__init__(admin, FLUX_S)

    async def home(self, **labels: str) -> str:
        """A namespace that no other test uses."""
        name = f"team-{token()}"
        await self.admin.create(NAMESPACE, obj(NAMESPACE, name, labels=labels))
        return name

    async def profile(self, **spec: Any) -> Object:
        """The TenancyProfile, multi-tenant unless told otherwise."""
        return await self.admin.apply(TENANCY_PROFILE, obj(TENANCY_PROFILE, DEFAULT, spec={"profile": "multi-tenant", **spec}))

    async def source(
        self,
        namespace: str,
        name: str = "app1",
        kind: str = "GitRepository",
        *,
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        **spec: Any,
    ) -> Object:
        """A source."""
        return await self.admin.create(
            served(kind), obj(served(kind), name, namespace, labels=labels, annotations=annotations, spec=spec)
        )

    async def grant(self, namespace: str, *labels: Mapping[str, str], name: str = "", **spec: Any) -> Object:
        """A SourceGrant for namespaces with these labels; of GitRepository app1 unless told otherwise."""
        if "sourceSelector" not in spec:
            spec.setdefault("sourceRef", {"kind": "GitRepository", "name": "app1"})
        spec.setdefault("accessFrom", access_from(*labels))
        return await self.admin.create(SOURCE_GRANT, obj(SOURCE_GRANT, name or f"g-{token()}", namespace, spec=spec))

    async def index(self) -> AccessEntries:
        """What the index says now; nothing where there is none."""
        return AccessEntries.of(await self.admin.get(ACCESS_INDEX, DEFAULT) or {})

    async def granted(self, namespace: str) -> dict[str, tuple[str, str]]:
        """By kind and name of the sources of a namespace who may read and who may write."""
        found = await self.index()
        return {
            "/".join((name.split("/")[0], name.split("/")[2])): (found.read.get(name, ""), found.write.get(name, ""))
            for name in found.granted
            if name.split("/")[1] == namespace
        }

    async def grants(self, namespace: str, **texts: str | Sequence[str]) -> None:
        """Wait until the GitRepositories of a namespace have exactly these texts: of reading, or of reading and writing."""
        wanted = {f"GitRepository/{name}": (text, "") if isinstance(text, str) else tuple(text) for name, text in texts.items()}
        await self.has(namespace, wanted)

    async def has(self, namespace: str, wanted: Mapping[str, Sequence[str]]) -> None:
        """Wait until the index has exactly these texts for the sources of a namespace, by kind and name."""
        expected = {name: tuple(texts) for name, texts in wanted.items()}
        await eventually(
            lambda: self.granted(namespace),
            lambda found: found == expected,
            within=self.eventually_s,
            what=f"the index has {expected} for {namespace}",
        )

    async def valid(self, grant: Object, reason: str = "Valid") -> str:
        """Wait until a SourceGrant says with this reason whether it counts, as of its generation; returns the message."""
        name, namespace = grant["metadata"]["name"], grant["metadata"]["namespace"]

        def says(found: Object) -> bool:
            said = find_condition(found, ACL_VALID) or {}
            current = said.get("observedGeneration") == found["metadata"]["generation"]
            return current and (said.get("reason"), said.get("status")) == (reason, "True" if reason == "Valid" else "False")

        found = await self.until(SOURCE_GRANT, name, namespace, says)
        return str((find_condition(found, ACL_VALID) or {})["message"])

    async def told(self, namespace: str, name: str = "app1", reason: str = "InvalidACL") -> list[str]:
        """The notes of the Warnings of a reason about an object of a namespace."""
        events = (
            await self.admin.list(CORE_EVENT, namespace, field_selector=f"involvedObject.name={name},reason={reason}")
        ).items
        return [each["message"] for each in events]
