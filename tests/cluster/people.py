"""The people of a cluster, and what they look at: short forms of what the tests do over and over."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
from times import NAMESPACE_GONE_S, PROJECTS_S

from tenantry.api import Api
from tenantry.api.review import reviewed
from tenantry.engine.request import requested
from tenantry.local.deployment import deployment_folder
from tenantry.local.invocation import reference_event
from tenantry.local.knative import Knative
from tenantry.local.manifests import load
from tenantry.local.schedule import ping_event
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Kind, Object, annotations_of, is_terminating, labels_of
from tenantry.model.names import ALLOW_DELETION
from tenantry.serving.cloudevents import encode_binary
from tenantry.serving.installed import descriptor_of, service_named
from tenantry.testing import eventually
from tenantry.testing.objects import obj

FUNCTION = "namespace-registration"
LABEL = "field.cattle.io/projectId"
PROJECT_ID = "helm.cattle.io/projectId"
OPERATED = "helm.cattle.io/helm-project-operated"
ORPHANED = "helm.cattle.io/helm-project-operator-orphaned"
CHART_CONFIG_MAP = "dummy.cattle.io.v1alpha1"
POLICY = "hpo-generated-default"
REGISTERED = "tenantry.dev/Registered"
CORE_EVENT = Kind("v1", "Event", "events")
ASKED_AGAIN = 6
"""How often a broker tries again, as knative/base/broker.yaml says."""

C1: dict[str, Any] = {
    "global": {"cattle": {"projectLabel": LABEL, "clusterId": "c-test", "systemProjectId": "p-system"}},
    "helmProjectOperator": {
        "otherSystemProjectLabelValues": ["p-denied"],
        "charts": [{"helmApiVersion": "dummy.cattle.io/v1alpha1", "releaseName": "dummy"}],
    },
}
"""The reference configuration of the acceptance checks."""

Start = Callable[..., AbstractAsyncContextManager[Knative]]


def token() -> str:
    """A text that no other test uses."""
    return secrets.token_hex(4)


def registration(project: str) -> str:
    """The name of the registration namespace."""
    return f"cattle-project-{project}"


def changed(config: Mapping[str, Any], **sections: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with other values in ``cattle`` or ``operator``."""
    cattle = {**config["global"]["cattle"], **sections.get("cattle", {})}
    operator = {**config["helmProjectOperator"], **sections.get("operator", {})}
    return {"global": {"cattle": cattle}, "helmProjectOperator": operator}


def pointer(key: str) -> str:
    """A map key inside a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


class People:
    """Acts as an administrator with all rights, and waits for what the system does about it, for ``eventually_s``."""

    def __init__(self, admin: Api, eventually_s: float = PROJECTS_S) -> None:
        self.admin = admin
        self.eventually_s = eventually_s

    async def namespace(
        self,
        name: str,
        project: str | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> Object:
        """Create a namespace, in a project if one is given."""
        carried = {**(labels or {}), **({LABEL: project} if project is not None else {})}
        return await self.admin.create(NAMESPACE, obj(NAMESPACE, name, labels=carried, annotations=dict(annotations or {})))

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object:
        """An object that must be there."""
        found = await self.admin.get(kind, name, namespace)
        assert found is not None, f"{kind.kind} {namespace}/{name} is not there"
        return found

    async def label(self, name: str, labels: Mapping[str, str | None], field: str = "labels") -> Object:
        """Set labels of a namespace by hand; None removes."""
        live = await self.get(NAMESPACE, name)
        present = live["metadata"].get(field) or {}
        edits: list[Object] = [] if present else [{"op": "add", "path": f"/metadata/{field}", "value": {}}]
        for key, value in labels.items():
            path = f"/metadata/{field}/{pointer(key)}"
            if value is not None:
                edits.append({"op": "add", "path": path, "value": value})
            elif key in present:
                edits.append({"op": "remove", "path": path})
        return await self.admin.json_patch(NAMESPACE, name, "", edits)

    async def edit(self, kind: Kind, name: str, namespace: str, *edits: tuple[str, str, Any]) -> Object:
        """A JSON patch as (op, path, value)."""
        operations = [{"op": op, "path": path, "value": value} for op, path, value in edits]
        return await self.admin.json_patch(kind, name, namespace, operations)

    async def delete(self, kind: Kind, name: str, namespace: str = "") -> None:
        """Delete an object, whatever state it is in, a namespace also when a project or a release uses it."""
        found = await self.admin.get(kind, name) if kind is NAMESPACE else None
        if OPERATED in labels_of(found) and ORPHANED not in labels_of(found):
            await self.label(name, {ALLOW_DELETION: "true"}, "annotations")
        await self.admin.delete(kind, name, namespace)

    async def gone(self, name: str, uid: str = "") -> None:
        """Wait until a namespace is gone, or another one has its name; the controller takes five seconds at least."""

        async def check() -> bool:
            found = await self.admin.get(NAMESPACE, name)
            return found is None or (uid != "" and found["metadata"]["uid"] != uid)

        await eventually(check, within=NAMESPACE_GONE_S, what=f"namespace {name} gone")

    async def away(self, kind: Kind, name: str, namespace: str = "", *, within: float = 0.0) -> None:
        """Wait until there is no such object."""
        await eventually(
            lambda: self.admin.get(kind, name, namespace),
            lambda found: found is None,
            within=within or self.eventually_s,
            what=f"{kind.kind} {namespace}/{name} gone",
        )

    async def until(
        self, kind: Kind, name: str, namespace: str, holds: Callable[[Object], Any], *, within: float = 0.0, what: str = ""
    ) -> Object:
        """Wait until an object is there and a condition holds for it."""

        async def check() -> Object:
            found = await self.admin.get(kind, name, namespace)
            return found if found is not None and holds(found) else {}

        try:
            return await eventually(check, within=within or self.eventually_s, what=what or f"{kind.kind} {namespace}/{name}")
        except AssertionError as error:
            last = await self.admin.get(kind, name, namespace)
            raise AssertionError(f"{error}\n{kind.kind} {namespace}/{name} is {last!r}") from None

    async def registered(self, project: str, *, within: float = 0.0) -> Object:
        """Wait until a project has its living, unorphaned registration namespace with the chart's ConfigMap."""
        name = registration(project)
        await self.until(CONFIG_MAP, CHART_CONFIG_MAP, name, lambda _: True, within=within)
        return await self.until(
            NAMESPACE, name, "", lambda found: ORPHANED not in labels_of(found) and not is_terminating(found), within=within
        )

    async def project(self, *, members: int = 1, name: str = "") -> str:
        """A project with namespaces ``a1-<project>`` and on, registered."""
        project = name or f"p-{token()}"
        for number in range(1, members + 1):
            await self.namespace(f"a{number}-{project}", project)
        await self.registered(project)
        return project

    async def orphaned(self, project: str) -> Object:
        """Wait until a registration namespace is marked as orphaned."""
        return await self.until(NAMESPACE, registration(project), "", lambda found: labels_of(found).get(ORPHANED) == "true")

    async def warnings(self, name: str, *, kind: Kind = NAMESPACE, namespace: str = "default") -> list[Object]:
        """The Warning Events about an object."""
        fields = f"involvedObject.kind={kind.kind},involvedObject.name={name},type=Warning"
        return (await self.admin.list(CORE_EVENT, namespace, field_selector=fields)).items

    async def warned(self, name: str, reason: str, *, within: float = 0.0, **where: Any) -> str:
        """Wait for a Warning Event of that reason about an object; returns its text."""

        async def check() -> str:
            return next((event["message"] for event in await self.warnings(name, **where) if event["reason"] == reason), "")

        return await eventually(check, within=within or self.eventually_s, what=f"a Warning {reason} on {name}")

    async def condition(self, name: str) -> Object | None:
        """Our condition on a namespace."""
        return condition_of(await self.get(NAMESPACE, name))


def condition_of(namespace: Object) -> Object | None:
    """Our condition in a namespace's status."""
    return find_condition(namespace, REGISTERED)


def marks(namespace: Object) -> dict[str, str | None]:
    """What the system declares on a registration namespace: four marks and the orphan label."""
    labels, annotations = labels_of(namespace), annotations_of(namespace)
    return {
        "operated": labels.get(OPERATED),
        "projectId": labels.get(PROJECT_ID),
        "label": labels.get(LABEL),
        "annotation": annotations.get(LABEL),
        "orphaned": labels.get(ORPHANED),
    }


def marks_of(project: str, *, orphaned: bool = False) -> dict[str, str | None]:
    """The marks that a registration namespace has under C1 (hpo-1)."""
    return {
        "operated": "true",
        "projectId": project,
        "label": project,
        "annotation": f"c-test:{project}",
        "orphaned": "true" if orphaned else None,
    }


def look(kind: Kind, name: str, namespace: str = "") -> tuple[dict[str, str], bytes]:
    """Headers and body of an event that says: look at this object."""
    return encode_binary(reference_event(kind.api_version, kind.kind, namespace, name))


async def post(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
    """Send an event to a function by hand: the status and the text of the answer."""
    async with (
        aiohttp.ClientSession(trust_env=False) as session,
        session.post(url, headers=headers, data=body) as response,
    ):
        assert not [name for name in response.headers if name.lower().startswith("ce-")]
        return response.status, await response.text()


async def may(
    admin: Api, user: str, verb: str, resource: str, namespace: str = "", *, groups: Sequence[str] = (), **attributes: str
) -> bool:
    """Whether RBAC lets a user do something now (SubjectAccessReview)."""
    asked = {"verb": verb, "resource": resource, "namespace": namespace, **attributes}
    spec = {"user": user, "groups": list(groups), "resourceAttributes": asked}
    return await reviewed(admin, spec)


async def user_of(api: Api) -> Object:
    """The user that the API server takes a client for (SelfSubjectReview)."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await api.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=body)
    found: Object = answer["status"]["userInfo"]
    return found


async def swept(system: Knative, function: str) -> tuple[int, str]:
    """Ask a function for a sweep, in all of its Services at once; the worst answer."""
    return max(await asyncio.gather(*(swept_alone(system, service.name) for service in descriptor_of(function).services)))


async def swept_alone(system: Knative, service: str) -> tuple[int, str]:
    """Ask one Service for its sweep."""
    pings = load(deployment_folder("knative") / "base" / "broker.yaml", deployment_folder("triggers")).pings
    headers, body = encode_binary(
        ping_event(next(each for each in pings if each.name == f"{service_named(service).function}-sweep"))
    )
    return await post(system.functions[service].url, headers, body)


async def swept_whole(system: Knative, service: str) -> tuple[int, str]:
    """Ask one Service for its sweep, and as the broker does again where that lasts longer than a request may."""
    for _ in range(ASKED_AGAIN):
        status, text = await swept_alone(system, service)
        if (status, text) != (503, "deadline exceeded"):
            break
    return status, text


async def tell(system: Knative, function: str, kind: Kind, name: str, namespace: str = "") -> None:
    """Have a function look at an object, in all of its Services at once, and wait until it has."""
    await _handled(system, function, *look(kind, name, namespace))


async def forced(system: Knative, function: str, unit: str, owner: str) -> None:
    """Have a function run an owner although nothing has changed, and wait until it has."""
    await _handled(system, function, *encode_binary(requested(function, unit, owner, "test")))


async def _handled(system: Knative, function: str, headers: Mapping[str, str], body: bytes) -> None:
    """Send an event to all Services of a function at once."""
    answers = await asyncio.gather(
        *(post(system.functions[each.name].url, headers, body) for each in descriptor_of(function).services)
    )
    assert [status for status, _ in answers] == [204] * len(answers), answers
