"""Whoever acts in a test: an administrator, and users whom the administrator impersonates, each with the rights that he has."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tenantry.api import Api
from tenantry.api.errors import ApiError, ConflictError, NotFound
from tenantry.api.review import reviewed
from tenantry.model.kinds import Kind, Object
from tenantry.testing.cases.form import Access, Person

_APPLY, _MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
MANAGER = "person"
"""Of the fields that people write.  None of ours is called so: the names of those begin with `tenantry-`."""


class Impossible(Exception):
    """What a test wants done cannot be done; the message says why."""


class People:
    """The people of one cluster; between ``async with`` and its end."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._stack = AsyncExitStack()
        self._known: dict[tuple[str, ...], Api] = {}
        self.admin: Api

    async def __aenter__(self) -> Self:
        self.admin = await self._client("", ())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._stack.aclose()

    async def client(self, person: Person) -> Api:
        """A client that acts as somebody."""
        return await self._client(person.user, person.groups)

    async def _client(self, user: str, groups: Sequence[str]) -> Api:
        key = (user, *groups)
        if key not in self._known:
            api = await Api.connect(field_manager=MANAGER, kubeconfig=self._kubeconfig, user=user, groups=groups)
            self._known[key] = await self._stack.enter_async_context(api)
        return self._known[key]

    async def kind_of(self, obj: Object) -> Kind:
        """How a kind is served.

        Raises:
            Impossible: it is not.
        """
        api_version, kind = obj["apiVersion"], obj["kind"]
        found = await self.admin.served(api_version, kind) or await self.admin.served(api_version, kind, again=True)
        if found is None or found.kind != kind:
            raise Impossible(f"the cluster does not serve {kind} in {api_version}; is it written so, and is its CRD given?")
        return found

    async def write(self, person: Person, verb: str, obj: Object, subresource: str = "", *, dry_run: bool = False) -> None:
        """Apply, create, patch or delete an object as somebody.

        Raises:
            Impossible: its kind is not served, it lacks its namespace, or the API server cannot do it.
            RefusedError: the API server does not let them.
        """
        kind = await self.kind_of(obj)
        metadata = obj["metadata"]
        if kind.namespaced and not metadata.get("namespace"):
            raise Impossible(f"{kind.kind} {metadata['name']}: needs metadata.namespace")
        path = kind.path(metadata.get("namespace", ""), metadata["name"])
        query = {"dryRun": "All"} if dry_run else {}
        api = await self.client(person)
        try:
            match verb:
                case "apply":
                    await api.request("PATCH", path, {**query, "fieldManager": MANAGER}, obj, content_type=_APPLY)
                case "create":
                    await api.request("POST", kind.path(metadata.get("namespace", "")), {**query, "fieldManager": MANAGER}, obj)
                case "patch":
                    path += f"/{subresource}" if subresource else ""
                    await api.request("PATCH", path, {**query, "fieldManager": MANAGER}, obj, content_type=_MERGE)
                case _:
                    await api.request("DELETE", path, query)
        except (NotFound, ConflictError) as error:
            raise Impossible(error.message) from error

    async def may(self, access: Access, verb: str) -> bool:
        """Whether somebody may do one of the things that are asked about."""
        resource, _, subresource = access.resource.partition("/")
        plural, _, group = resource.partition(".")
        asked = {
            "verb": verb,
            "resource": plural,
            "group": group,
            "subresource": subresource,
            "namespace": access.namespace,
            "name": access.name,
        }
        spec: Object = {
            "user": access.user,
            "groups": [*access.groups, "system:authenticated"],
            "resourceAttributes": {key: value for key, value in asked.items() if value},
        }
        return await reviewed(self.admin, spec)


def told(error: ApiError) -> str:
    """What the API server says, in one line."""
    return " ".join(error.message.split())
