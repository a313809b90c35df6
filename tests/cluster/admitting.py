"""Whoever writes Paas, PaasNS and PaasConfig, and what the API server says to them: answers with their warnings.

CRDs and policies are installed, and no function is at work.  What is only to be judged is sent as a dry run: policies judge that,
too.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import aiohttp
import yaml
from paasing import CONFIG_NAME, example
from people import token
from times import POLICY_S

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import ADMISSION_POLICY_BINDING, NAMESPACE, Kind, Object
from tenantry.model.paas.names import GROUP_OF_KINDS, MANAGED_BY_PAAS, PAAS, PAAS_CONFIG, PAAS_NS
from tenantry.testing import eventually
from tenantry.testing.objects import obj

V1, V2 = (f"{GROUP_OF_KINDS}/{version}" for version in ("v1alpha1", "v1alpha2"))
VERSIONS = (V1, V2)
EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "paas.yaml"
JSON, MERGE, APPLY = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
DRY: dict[str, str] = {"dryRun": "All"}
_WARNING = re.compile(r'^299 \S+ "(.*)"$', re.DOTALL)
_POLICY = "Validation failed for ValidatingAdmissionPolicy"


class Answer(NamedTuple):
    """What the API server answers."""

    status: int
    body: Object
    warnings: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """Why something is refused; empty when it is not."""
        return "" if self.status < 300 else str(self.body.get("message") or self.body)

    @property
    def told(self) -> str:
        """The warnings of policies, as one text."""
        return "\n".join(each for each in self.warnings if each.startswith(_POLICY))


def example_documents() -> list[Object]:
    """The three documents of the source: PaasConfig, Paas, PaasNS."""
    return list(yaml.safe_load_all(EXAMPLE.read_text(encoding="utf-8")))


def in_version(kind: Kind, version: str) -> Kind:
    """A kind as another version serves it."""
    return Kind(version, kind.kind, kind.plural, kind.namespaced)


def paas(name: str = "", version: str = V2, *, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """A Paas; without a name one that nobody else has."""
    spec = {"quota": {}, **({"requestor": "team"} if version == V1 else {}), **spec}
    return obj(in_version(PAAS, version), name or f"p{token()}", labels=labels, spec=spec)


def of_example(name: str, version: str, **changes: Any) -> Object:
    """The Paas of the source, in the shape of v1alpha1 or of v1alpha2, under another name."""
    spec = example()
    if version == V1:
        spec["namespaces"] = list(spec["namespaces"])
    return obj(in_version(PAAS, version), name, spec={**spec, **changes})


def paas_ns(namespace: str, name: str = "", version: str = V2, **spec: Any) -> Object:
    """A PaasNS; without a name one that nobody else has."""
    return obj(in_version(PAAS_NS, version), name or f"n{token()}", namespace, spec=spec)


def paas_config(name: str = "", version: str = V2, **spec: Any) -> Object:
    """A PaasConfig; without a name one that nobody else has."""
    return obj(in_version(PAAS_CONFIG, version), name or f"c{token()}", spec=spec)


KINDS = {each.kind: each for each in (PAAS, PAAS_NS, PAAS_CONFIG)}


class Admitting:
    """Asks the API server, as an administrator or as a user that the administrator plays."""

    def __init__(self, admin: Api, plane: ControlPlane) -> None:
        self.admin = admin
        self._url = plane.server_url
        self._ssl = ssl.create_default_context(cafile=str(plane.ca_file))
        self._headers = {"Authorization": f"Bearer {plane.admin_token}"}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(trust_env=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: str = "",
        content: str = JSON,
        accept: str = JSON,
        query: dict[str, str] | None = None,
    ) -> Answer:
        """The answer to a request; of a ServiceAccount the name as it is in a token."""
        assert self._session is not None
        headers = {**self._headers, "Content-Type": content, "Accept": accept}
        if user:
            # Of a ServiceAccount the API server knows the groups.
            account = user.startswith("system:serviceaccount:")
            headers |= {"Impersonate-User": user, **({} if account else {"Impersonate-Group": "system:authenticated"})}
        data = None if body is None else json.dumps(body)
        asked = self._session.request(method, self._url + path, params=query, data=data, headers=headers, ssl=self._ssl)
        async with asked as response:
            texts = [found[1] for each in response.headers.getall("Warning", ()) if (found := _WARNING.match(each))]
            # Of a kind that is not served yet the answer is a text.
            found = await response.json() if "json" in response.content_type else {"message": await response.text()}
            return Answer(response.status, found, tuple(texts))

    async def table(self, kind: Kind) -> Object:
        """The list of a kind as kubectl shows it."""
        return (await self.ask("GET", kind.path(), accept=TABLE)).body

    async def create(self, body: Object, *, user: str = "", dry: bool = True) -> Answer:
        """Make an object of one of our kinds, in the version that it names."""
        path = in_version(KINDS[body["kind"]], body["apiVersion"]).path(body["metadata"].get("namespace", ""))
        return await self.ask("POST", path, body, user=user, query=DRY if dry else None)

    async def made(self, body: Object) -> Object:
        """Make an object of one of our kinds, and keep it."""
        answer = await self.create(body, dry=False)
        assert answer.status == 201, answer
        return answer.body

    async def merge(self, body: Object, change: Object, *, user: str = "", dry: bool = True, subresource: str = "") -> Answer:
        """Change an object of one of our kinds by a merge patch, in the version that it names."""
        kind, metadata = in_version(KINDS[body["kind"]], body["apiVersion"]), body["metadata"]
        path = kind.path(metadata.get("namespace", ""), metadata["name"]) + (f"/{subresource}" if subresource else "")
        return await self.ask("PATCH", path, change, user=user, content=MERGE, query=DRY if dry else None)

    async def apply(self, body: Object, manager: str = "tests", *, dry: bool = False, force: bool = False) -> Answer:
        """Server-side apply, in the version that the object names."""
        kind, metadata = in_version(KINDS[body["kind"]], body["apiVersion"]), body["metadata"]
        path = kind.path(metadata.get("namespace", ""), metadata["name"])
        query = {"fieldManager": manager, "force": str(force).lower(), **(DRY if dry else {})}
        return await self.ask("PATCH", path, body, content=APPLY, query=query)

    async def refused(self, body: Object, *words: str, user: str = "") -> str:
        """A new object is refused, with these words; returns all of them."""
        return says(await self.create(body, user=user), *words)

    async def admitted(self, body: Object, *, user: str = "") -> str:
        """A new object is admitted; returns the warnings of policies."""
        answer = await self.create(body, user=user)
        assert answer.status == 201, answer
        return answer.told

    async def configure(self, good: Object | None = None, /, **spec: Any) -> Object:
        """Declare the one PaasConfig, and wait until policies judge by it: they hear of it by a watch.

        ``good`` is what of a Paas an expression asks for: what is refused first is all that is told.
        """
        probe = f"requests.probe-{token()}"
        most = spec.get("maxAllowedSubmittedQuota", {}).get("maxQuota", {})
        spec["maxAllowedSubmittedQuota"] = {"maxQuota": {**most, probe: 0}}
        stored = await self.apply(paas_config(CONFIG_NAME, **spec), "tests-config")
        assert stored.status in (200, 201), stored

        if not await self.guarded_by("tenantry-guard-paas-configured"):
            return stored.body

        async def judged() -> bool:
            return probe in (await self.create(paas(**{"requestor": "team", **(good or {})}, quota={probe: 1}))).message

        await eventually(judged, within=POLICY_S, what=f"policies judge by {spec}")
        return stored.body

    async def guarded_by(self, policy: str) -> bool:
        """Whether a policy is there: a run without some shows what they stop."""
        return await self.admin.get(ADMISSION_POLICY_BINDING, policy) is not None

    async def forget(self) -> None:
        """Take the PaasConfig away, and wait until no policy has one any more."""
        await self.admin.delete(PAAS_CONFIG, CONFIG_NAME)
        if not await self.guarded_by("tenantry-guard-paas-config-one"):
            return

        async def forgotten() -> bool:
            return (await self.create(paas_config())).status == 201

        await eventually(forgotten, within=POLICY_S, what="no PaasConfig in policies")

    async def namespace(self, name: str, paas_name: str = "", **more: Any) -> Object:
        """Make a namespace, marked for a Paas if one is named, as the function does."""
        labels = {MANAGED_BY_PAAS: paas_name} if paas_name else {}
        return await self.admin.create(NAMESPACE, obj(NAMESPACE, name, labels=labels, **more))

    @asynccontextmanager
    async def kept(self, body: Object) -> AsyncIterator[Object]:
        """An object of one of our kinds, for as long as the block lasts."""
        kind, metadata = KINDS[body["kind"]], body["metadata"]
        yield await self.made(body)
        await self.admin.delete(kind, metadata["name"], metadata.get("namespace", ""))


def says(answer: Answer, *words: str) -> str:
    """Something is refused, with these words; returns all of them."""
    assert answer.status >= 400, answer
    assert [each for each in words if each not in answer.message] == [], answer.message
    return answer.message
