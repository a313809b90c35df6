"""The hand-over of capabilities in tests: ApplicationSets, and the elements of Paas in them."""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from paasing import CONFIG, Paasing, make_roles, make_world, together
from times import VOLUME_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import NAMESPACE, Object
from tenantry.model.paas.names import APPLICATION_SET, PAAS
from tenantry.testing import eventually
from tenantry.testing.objects import obj

FUNCTIONS = ("namespace-registration", "rbac-aggregation", "release-provisioning")
IDENTITY = "release-provisioning-paas"
PART = "tenantry.dev/HandOver"
PLACE = "argo-system"
SET, OTHER = "argoas", "other"
QUESTION = "/api/v1/getparams.execute"
TOKEN = "a-token-of-argo-cd"
FIELDS: Mapping[str, Any] = {
    "git_url": {},
    "git_revision": {"default": "main"},
    "team": {"template": "{{ .Paas.Spec.Requestor }}"},
}


def handing_over(application_set: str = SET, fields: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The capabilities of a PaasConfig in which argocd is handed over; without permissions: those need scope-binding."""
    argocd = {"applicationset": application_set, "custom_fields": fields if fields is not None else {"git_url": {}}}
    return {"argocd": {"quotas": CONFIG["capabilities"]["argocd"]["quotas"], **argocd}, **more}


class HandingOver(Paasing):
    """Looks at the elements of ApplicationSets."""

    async def config(self, **changes: Any) -> Object:
        """Declare the PaasConfig of these tests, with other values in some fields."""
        return await super().config(**{"clusterwide_argocd_namespace": PLACE, "capabilities": handing_over(), **changes})

    async def leave_all(self, *several: str) -> None:
        """Many Paas go at once, for which no check names a time."""
        await together(*(self.admin.delete(PAAS, name) for name in several))
        await together(*(self.away(PAAS, name, within=VOLUME_S) for name in several))

    async def application_set(self, name: str = SET, *generators: Any) -> Object:
        """Make an ApplicationSet anew: with one empty list unless generators are given."""
        made = list(generators) or [{"list": {"elements": []}}]
        spec = {"generators": made, "template": {"metadata": {"name": "{{paas}}"}, "spec": {"weights": [1.5, 1]}}}
        await self.admin.delete(APPLICATION_SET, name, PLACE)
        return await self.admin.create(APPLICATION_SET, obj(APPLICATION_SET, name, PLACE, spec=spec))

    async def elements(self, name: str = SET) -> list[Any]:
        """The elements of the first list."""
        found = await self.admin.get(APPLICATION_SET, name, PLACE)
        lists = [each["list"] for each in ((found or {}).get("spec") or {}).get("generators") or () if "list" in each]
        return list(lists[0].get("elements") or ()) if lists else []

    async def element_of(self, paas: str, wanted: Mapping[str, Any] | None, name: str = SET) -> None:
        """Wait until a Paas has exactly this element, or with None has none."""
        expected = [] if wanted is None else [{**wanted, "paas": paas}]

        def own(found: list[Any]) -> bool:
            return [each for each in found if isinstance(each, dict) and each.get("paas") == paas] == expected

        await eventually(lambda: self.elements(name), own, within=self.eventually_s, what=f"element of {paas}: {expected}")


def without_elements_of(found: Object, *paas: str) -> Object:
    """What of an ApplicationSet is not ours, as it is."""
    made = copy.deepcopy(found["spec"])
    for each in made["generators"]:
        if "list" in each and each["list"].get("elements"):
            each["list"]["elements"] = [one for one in each["list"]["elements"] if _owner(one) not in paas]
    return dict(made)


def _owner(element: Any) -> Any:
    return element.get("paas") if isinstance(element, dict) else None


async def handing(start: Callable[..., Awaitable[Knative]], admin: Api, world: str = "argo", **options: Any) -> Knative:
    """Namespaces, rights and the hand-over at work, under the configuration of these tests."""
    await make_world(admin, world)
    await make_roles(admin)
    if await admin.get(NAMESPACE, PLACE) is None:
        await admin.create(NAMESPACE, obj(NAMESPACE, PLACE))
    running = await start({}, **{"functions": FUNCTIONS, **options})
    await HandingOver(admin).config()
    return running


def argo(**changes: Any) -> dict[str, Any]:
    """A spec with the capability argocd."""
    return {"requestor": "team", "capabilities": {"argocd": {"enabled": True, **changes}}}


# -- the plugin generator ------------------------------------------------------------------------------------------


class Plugin(NamedTuple):
    """Where the token of the plugin generator is, and what the functions log."""

    file: Path
    logs: list[str]


async def ask(system: Knative, body: Any, *, token: str = TOKEN, path: str = QUESTION, method: str = "POST") -> tuple[int, Any]:
    """Ask as Argo CD does: the status, and what is answered."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    data = body if isinstance(body, str) else json.dumps(body)
    url = system.functions[IDENTITY].url.rstrip("/") + path
    async with (
        aiohttp.ClientSession(trust_env=False) as session,
        session.request(method, url, data=data, headers=headers) as answer,
    ):
        text = await answer.text()
        return answer.status, json.loads(text) if answer.status == 200 else text


def about(capability: object) -> Object:
    """The question for a capability."""
    return {"applicationSetName": SET, "input": {"parameters": {"capability": capability}}}
