"""Tenants and administrators of a cluster with Flux, and what its admission policies answer them: no function is at work.

CRDs and policies are installed, and the AccessIndex is written by an administrator, in the place of scope-binding.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from admitting import APPLY, DRY, JSON, MERGE, Admitting, Answer
from flux_crds import KINDS as FLUX_KINDS
from flux_crds import flux_kind, install_flux
from people import token
from times import POLICY_S

from tenantry.api import Api
from tenantry.api.errors import ConflictError
from tenantry.cli.profile.applied import apply_profile
from tenantry.local.policies import until_in_force
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, LOCKED, TENANCY_PROFILE
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Kind,
    Object,
    annotations_of,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

NATIVE = (
    ACCESS_INDEX,
    CLUSTER_ROLE,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
)
TENANTS: Mapping[str, Mapping[str, str]] = {"dev-team1": {"team": "one"}, "dev-team2": {"team": "two"}, "dev-team3": {}}
FLUX = "flux-system"
TEAM1, TEAM2, TEAM3 = (f"system:serviceaccount:{each}:flux" for each in TENANTS)
TWO = "team=two"
APP1 = "GitRepository/dev-team1/app1"
SHARED = "GitRepository/flux-system/shared"
BITNAMI = "HelmRepository/flux-system/bitnami"


def kind_named(name: str) -> Kind:
    """A kind of Flux as the newest release serves it."""
    found = flux_kind(name)
    return Kind(f"{found.group}/{found.version}", found.kind, found.plural)


def flux_object(kind: str, namespace: str, name: str = "", *, version: str = "", **parts: Any) -> Object:
    """An object of Flux; without a name one that nobody else has."""
    found = kind_named(kind)
    api_version = f"{found.group}/{version}" if version else found.api_version
    return obj(Kind(api_version, kind, found.plural), name or f"o{token()}", namespace, **parts)


def reference(key: str) -> dict[str, str]:
    """A reference to ``Kind/namespace/name``."""
    kind, namespace, name = key.split("/")
    return {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}


def kustomization(namespace: str, source: str = "", name: str = "", **spec: Any) -> Object:
    """A Kustomization of a source, by default of a local one."""
    named = {"serviceAccountName": "flux"} if "serviceAccountName" not in spec else {}
    spec = {"interval": "1m", "prune": True, "sourceRef": reference(source or "GitRepository//app1"), **named, **spec}
    return flux_object("Kustomization", namespace, name, spec=_given(spec))


def helm_release(
    namespace: str, *, chart: str = "", chart_ref: str = "", chart_spec: Object | None = None, name: str = "", **spec: Any
) -> Object:
    """A HelmRelease of a chart in a source, or of a source that is one."""
    if chart_ref:
        spec["chartRef"] = reference(chart_ref)
    else:
        spec["chart"] = chart_spec or {"spec": {"chart": "redis", "sourceRef": reference(chart or "HelmRepository//charts")}}
    spec = {"interval": "1m", "serviceAccountName": "flux", **spec}
    return flux_object("HelmRelease", namespace, name, spec=_given(spec))


def _given(spec: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if value is not None}


class Policing:
    """Asks the API server as an administrator, or as a user that the administrator plays."""

    def __init__(self, admin: Api, admitting: Admitting) -> None:
        self.admin = admin
        self.admitting = admitting

    # -- what is there ----------------------------------------------------------------------------------------------

    async def furnish(self, crds: Sequence[Object] = ()) -> None:
        """Flux' kinds, the namespaces and their accounts, and an empty index."""
        await install_flux(self.admin, crds)
        await self.admin.apply(NAMESPACE, obj(NAMESPACE, FLUX))
        for name, labels in TENANTS.items():
            await self.tenant(name, labels)

    async def tenant(self, name: str, labels: Mapping[str, str] | None = None) -> str:
        """A namespace whose account ``flux`` may do everything in it; returns the account as a user."""
        await self.admin.apply(NAMESPACE, obj(NAMESPACE, name, labels=dict(labels or {})))
        await self.admin.apply(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, "flux", name))
        subject = {"kind": "ServiceAccount", "name": "flux", "namespace": name}
        role = {"apiGroup": ROLE_BINDING.group, "kind": "ClusterRole", "name": "cluster-admin"}
        await self.admin.apply(ROLE_BINDING, obj(ROLE_BINDING, "flux", name, subjects=[subject], roleRef=role))
        return f"system:serviceaccount:{name}:flux"

    async def enforce(self, *, mutated: bool = True, **spec: Any) -> Profile:
        """Declare the TenancyProfile, apply its policies, and wait until they are in force, and no others.

        Without ``mutated`` nobody waits for mutations: the server does not mutate.
        """
        spec = {"profile": "multi-tenant", **spec}
        stored = await self.admin.apply(TENANCY_PROFILE, obj(TENANCY_PROFILE, DEFAULT, spec=spec))
        profile = Profile.of(stored)
        await apply_profile(self.admin, profile, prune=True)
        await until_in_force(self.admin)
        if mutated:
            await self._mutations_in_force(profile)
        return profile

    async def _mutations_in_force(self, profile: Profile) -> None:
        """Mutations are read by themselves: what they do, or do not do any more, shows that they count."""
        mutates = profile.is_multi_tenant and not profile.is_audit
        fills = mutates and profile.account_mode(mutates=True) == "Default"
        quarantines = mutates and profile.denial(mutates=True) == "Quarantine"

        async def as_wanted() -> bool:
            local = await self.create(kustomization("dev-team3", serviceAccountName=""))
            foreign = await self.create(kustomization("dev-team3", "ExternalArtifact/nowhere/probe"))
            filled = local.body.get("spec", {}).get("serviceAccountName") == profile.default_service_account
            return filled == fills and (LOCKED in annotations_of(foreign.body)) == quarantines

        await eventually(as_wanted, within=POLICY_S, what="mutations in force")

    async def index(self, read: Mapping[str, str] | None = None, **spec: Any) -> str:
        """Write the whole index, and wait until policies judge by it; returns its resourceVersion."""
        probe = f"GitRepository/nowhere/{token()}"
        spec = {"read": {**(read or {}), probe: "*"}, "complete": True, **spec}
        while True:
            live = await self.admin.get(ACCESS_INDEX, DEFAULT) or obj(ACCESS_INDEX, DEFAULT)
            try:
                await self.admin.request("PUT", ACCESS_INDEX.path("", DEFAULT), None, {**live, "spec": spec})
                break
            except ConflictError:
                continue
        await eventually(lambda: self._admitted("dev-team3", probe), within=POLICY_S, what="policies judge by the index")
        return await self.index_version()

    async def index_version(self) -> str:
        """The resourceVersion of the index."""
        stored = await self.admin.get(ACCESS_INDEX, DEFAULT)
        assert stored is not None
        return str(stored["metadata"]["resourceVersion"])

    async def administrator(self, namespace: str, name: str) -> str:
        """A ServiceAccount that is a cluster administrator; returns it as a user."""
        user = f"system:serviceaccount:{namespace}:{name}"
        await self.bound(user, "cluster-admin")
        await self.may(user, "delete", obj(NAMESPACE, namespace))
        return user

    async def bound(self, user: str, role: str) -> None:
        """Give a user a ClusterRole in the whole cluster."""
        subject = {"apiGroup": CLUSTER_ROLE.group, "kind": "User", "name": user}
        ref = {"apiGroup": CLUSTER_ROLE.group, "kind": "ClusterRole", "name": role}
        name = f"{user.rpartition(':')[2]}-{role}"
        await self.admin.apply(CLUSTER_ROLE_BINDING, obj(CLUSTER_ROLE_BINDING, name, subjects=[subject], roleRef=ref))

    async def controller(self, name: str) -> str:
        """A controller of Flux with the rights that its installation gives all of them, and no others; returns it as a user."""
        groups = sorted({each.group for each in FLUX_KINDS})
        rules = [
            {"apiGroups": groups, "resources": ["*"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["namespaces", "secrets", "configmaps"], "verbs": ["get", "list", "watch"]},
        ]
        await self.admin.apply(CLUSTER_ROLE, obj(CLUSTER_ROLE, "crd-controller-flux-system", rules=rules))
        user = f"system:serviceaccount:{FLUX}:{name}"
        await self.bound(user, "crd-controller-flux-system")
        await self.may(user, "patch", flux_object("HelmChart", FLUX, "x"))
        return user

    def path(self, body: Object) -> str:
        """The path of an object."""
        return path_of(body)

    async def may(self, user: str, verb: str, body: Object) -> None:
        """Wait until rights are in force: a request that takes them is not refused by RBAC any more."""

        async def allowed() -> bool:
            asked = {"verb": verb, "resource": PLURALS[body["kind"]], "name": body["metadata"]["name"]}
            group, _, _ = body["apiVersion"].rpartition("/")
            namespace = body["metadata"].get("namespace", "")
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {"user": user, "resourceAttributes": {**asked, "group": group, "namespace": namespace}},
            }
            path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
            return bool((await self.admin.request("POST", path, None, review))["status"]["allowed"])

        await eventually(allowed, within=POLICY_S, what=f"{user} may {verb} {body['kind']}")

    async def _admitted(self, namespace: str, source: str) -> bool:
        answer = await self.create(kustomization(namespace, source))
        return answer.status == 201 and "annotations" not in answer.body["metadata"]

    # -- requests ---------------------------------------------------------------------------------------------------

    async def create(self, body: Object, *, user: str = "", dry: bool = True, **query: str) -> Answer:
        """Make an object of a kind of Flux."""
        return await self.ask("POST", path_of(body, named=False), body, user=user, dry=dry, **query)

    async def made(self, body: Object, *, user: str = "") -> Object:
        """Make an object of a kind of Flux, and keep it."""
        answer = await self.create(body, user=user, dry=False)
        assert answer.status == 201, answer
        return answer.body

    async def merge(self, body: Object, change: Object, *, user: str = "", dry: bool = True, subresource: str = "") -> Answer:
        """Change an object by a merge patch."""
        path = path_of(body) + (f"/{subresource}" if subresource else "")
        return await self.ask("PATCH", path, change, user=user, dry=dry, content=MERGE)

    async def apply(
        self, body: Object, *, user: str = "", dry: bool = False, subresource: str = "", manager: str = "kustomize-controller"
    ) -> Answer:
        """Server-side apply, as Flux' controllers do it."""
        path = path_of(body) + (f"/{subresource}" if subresource else "")
        query = {"fieldManager": manager, "force": "true"}
        return await self.ask("PATCH", path, body, user=user, dry=dry, content=APPLY, **query)

    async def delete(self, body: Object, *, user: str = "", dry: bool = True) -> Answer:
        """Delete an object.  Without a body: of a request that has one, the API server reads the options there only."""
        return await self.ask("DELETE", path_of(body), user=user, dry=dry)

    async def ask(
        self, method: str, path: str, body: Any = None, *, user: str = "", dry: bool = False, content: str = JSON, **query: str
    ) -> Answer:
        """The answer to a request."""
        asked = {**query, **(DRY if dry else {})}
        return await self.admitting.ask(method, path, body, user=user, content=content, query=asked)

    # -- what is expected -------------------------------------------------------------------------------------------

    async def denied(self, body: Object, *words: str, user: str = "") -> str:
        """A new object is refused by 403, with these words; returns all of them."""
        return denied(await self.create(body, user=user), *words)

    async def admitted(self, body: Object, *, user: str = "") -> Object:
        """A new object is admitted as a dry run; returns it as it would be stored."""
        return admitted(await self.create(body, user=user))

    async def until(self, ask: Callable[[], Awaitable[Answer]], *statuses: int) -> None:
        """Wait until a request is answered by one of these."""

        async def check() -> bool:
            return (await ask()).status in statuses

        await eventually(check, within=POLICY_S, what=f"answered by {statuses}")

    async def labelled(self, namespace: str, **labels: str | None) -> None:
        """The platform sets labels of a namespace."""
        admitted(await self.merge(obj(NAMESPACE, namespace), {"metadata": {"labels": labels}}, dry=False))


PLURALS = {each.kind: each.plural for each in (*FLUX_KINDS, *NATIVE)}


def path_of(body: Object, *, named: bool = True) -> str:
    """The path of an object, or of the collection that it is made in."""
    kind, metadata = body["kind"], body["metadata"]
    found = Kind(body["apiVersion"], kind, PLURALS[kind])
    return found.path(metadata.get("namespace", ""), metadata["name"] if named else "")


def denied(answer: Answer, *words: str) -> str:
    """Refused by an admission policy (403, Forbidden), with these words; returns all of them."""
    assert answer.status == 403, answer
    assert answer.body["reason"] == "Forbidden", answer
    assert "ValidatingAdmissionPolicy" in answer.message, answer
    assert [each for each in words if each not in answer.message] == [], answer.message
    return answer.message


def admitted(answer: Answer) -> Object:
    """Admitted; returns what is or would be stored."""
    assert answer.status in (200, 201), answer
    return answer.body


def warnings(policy: Object) -> str:
    """What the type checker says to a policy that it has looked at."""
    found = policy["status"]["typeChecking"].get("expressionWarnings") or ()
    return "\n".join(f"{policy['metadata']['name']} {each['fieldRef']}: {each['warning']}" for each in found)


def is_checked(policy: Object) -> bool:
    """Whether the type checker has looked at it as it is now."""
    status = policy.get("status") or {}
    return "typeChecking" in status and status.get("observedGeneration") == policy["metadata"]["generation"]
