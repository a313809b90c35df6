"""Tenants where the policies of a profile for several tenants are in force: what their accounts may, and may not (3.4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from admitting import JSON, MERGE, Admitting, Answer
from flux_cases import consumer
from flux_crds import install_flux
from flux_declaring import FUNCTIONS, SOURCE, Tenants
from flux_policing import Policing, admitted, denied, flux_object, kind_named, kustomization
from people import token
from times import FLUX_S, LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.followed import stand_in
from tenantry.local.install import until_served
from tenantry.local.knative import Knative
from tenantry.model.flux.names import MADE_FOR_TENANT, TENANT
from tenantry.model.flux.onboarding import GIT_REPOSITORY, KUSTOMIZATION
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    NAMESPACE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Kind,
    Object,
    annotations_of,
    finalizers_of,
    labels_of,
)
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

SERVICE = Kind("v1", "Service", "services")
CANARY = Kind("flagger.app/v1beta1", "Canary", "canaries")
REQUESTED = "reconcile.fluxcd.io/requestedAt"
MANAGED = "what was made for a Tenant is changed by its Tenant only"
CONSUMERS = ("Kustomization", "HelmRelease", "ImageUpdateAutomation", "Alert", "Receiver")


class Team(Tenants):
    """The accounts of Tenants, where policies judge what they write."""

    def __init__(self, admin: Api, admitting: Admitting) -> None:
        super().__init__(admin, FLUX_S)
        self.policing = Policing(admin, admitting)

    async def ask(
        self, user: str, method: str, kind: Kind, name: str, namespace: str = "", body: Any = None, content: str = JSON
    ) -> Answer:
        """The answer to a request of an account."""
        return await self.policing.ask(method, kind.path(namespace, name), body, user=user, content=content)

    async def create(self, user: str, kind: Kind, body: Object) -> Answer:
        """The answer to who makes an object."""
        return await self.ask(user, "POST", kind, "", body["metadata"].get("namespace", ""), body)

    async def merge(self, user: str, kind: Kind, name: str, namespace: str, change: Object) -> Answer:
        """The answer to who changes an object."""
        return await self.ask(user, "PATCH", kind, name, namespace, change, MERGE)

    async def account(self, namespace: str) -> str:
        """The account of a namespace as a user, when its rights are in force."""
        user = f"system:serviceaccount:{namespace}:flux"
        await self.policing.may(user, "delete", kustomization(namespace))
        return user


@pytest.fixture(scope="module")
def team(admin: Api, admitting: Admitting) -> Team:
    """Teams and the platform."""
    return Team(admin, admitting)


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api, team: Team) -> Knative:
    """The three functions, Flux' kinds, and all policies."""
    await install_flux(admin)
    running = await flawlessly({}, functions=FUNCTIONS)
    await team.policing.furnish()
    await team.policing.enforce(kubeConfig="Deny", pinToTenant=True)
    await team.policing.index()
    await running.drain()
    return running


async def test_tenants_are_kept_under_the_policies(team: Team) -> None:
    """All of a Tenant is made, put back, changed and taken away by functions that the policies know."""
    name = f"t{token()}"
    first, second = f"a-{name}", f"b-{name}"
    await team.declare(name, first, second, source=SOURCE)
    await team.ready(name)
    for kind, called in ((ROLE_BINDING, f"{name}-reconciler"), (SERVICE_ACCOUNT, "flux"), (KUSTOMIZATION, name)):
        before = await team.get(kind, called, first)
        await team.admin.delete(kind, called, first)
        uid = before["metadata"]["uid"]
        await team.until(kind, called, first, lambda found, uid=uid: found["metadata"]["uid"] != uid, what=f"{kind.kind} is back")
    await team.declare(name, first, source=SOURCE, clusterRole="admin", serviceAccountName="deployer", deletionPolicy="Delete")
    await team.ready(name)
    await team.gone(second)
    await team.until(KUSTOMIZATION, name, first, lambda found: found["spec"]["serviceAccountName"] == "deployer")
    await team.admin.delete(TENANT, name)
    await team.away(TENANT, name)
    await team.gone(first)


async def test_content_is_applied_as_the_tenant(team: Team) -> None:
    """The account that the Kustomization names may do everything in the first namespace, and nothing outside of it."""
    name = f"t{token()}"
    first, second = f"a-{name}", f"b-{name}"
    await team.declare(name, first, second, source=SOURCE)
    await team.ready(name)
    delivery = await team.get(KUSTOMIZATION, name, first)
    assert delivery["spec"]["sourceRef"] == {"kind": "GitRepository", "name": name}
    assert (await team.get(GIT_REPOSITORY, name, first))["spec"]["url"] == SOURCE["url"]
    user = await team.account(first)
    assert user.endswith(f":{delivery['spec']['serviceAccountName']}")
    admitted(await team.create(user, DEPLOYMENT, _deployment(first)))
    for kind, body in (
        (DEPLOYMENT, _deployment(second)),
        (CLUSTER_ROLE, obj(CLUSTER_ROLE, name)),
        (NAMESPACE, obj(NAMESPACE, name)),
    ):
        assert (await team.create(user, kind, body)).status == 403


def _deployment(namespace: str) -> Object:
    labels = {"app": "x"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "x", "image": "image.invalid/x"}]}}
    return obj(DEPLOYMENT, "x", namespace, spec={"replicas": 0, "selector": {"matchLabels": labels}, "template": pod})


@pytest.mark.check("f-148")
async def test_a_tenant_delivers_all_that_it_needs(team: Team) -> None:
    """Workload, a kind of another system, and everything of Flux with local references: made, changed and deleted."""
    await team.admin.apply(CUSTOM_RESOURCE_DEFINITION, stand_in(CANARY))
    await until_served(team.admin, stand_in(CANARY))
    name = f"t{token()}"
    place = f"apps-{name}"
    await team.declare(name, place)
    await team.ready(name)
    user = await team.account(place)
    made = [
        (DEPLOYMENT, _deployment(place)),
        (SERVICE, obj(SERVICE, "x", place, spec={"ports": [{"port": 80}]})),
        (CANARY, obj(CANARY, "x", place, spec={"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}})),
        (kind_named("GitRepository"), flux_object("GitRepository", place, "x", spec={"url": "https://example.com/x"})),
        *((kind_named(each), consumer(each, place, name="x")) for each in CONSUMERS),
    ]
    for kind, body in made:
        admitted(await team.create(user, kind, body))
    for kind, body in made:
        called = body["metadata"]["name"]
        changed = admitted(await team.merge(user, kind, called, place, {"metadata": {"labels": {"example.com/a": "b"}}}))
        assert labels_of(changed) == {"example.com/a": "b"}
        admitted(await team.ask(user, "DELETE", kind, called, place))
        await team.away(kind, called, place)


@pytest.mark.check("f-150")
async def test_what_a_tenant_made_its_account_cannot_change(team: Team) -> None:
    """Edits, deletions and the label are refused; finalizers, and the wish for another run, are admitted."""
    name = f"t{token()}"
    place = f"apps-{name}"
    await team.declare(name, place, source=SOURCE)
    await team.ready(name)
    user = await team.account(place)
    view = {"apiGroup": ROLE_BINDING.group, "kind": "ClusterRole", "name": "view"}
    edits: list[tuple[Kind, str, Object, Object]] = [
        (ROLE_BINDING, f"{name}-reconciler", {"subjects": []}, {"roleRef": view, "subjects": []}),
        (SERVICE_ACCOUNT, "flux", {"automountServiceAccountToken": False}, {}),
        (GIT_REPOSITORY, name, {"spec": {"url": "https://example.com/mine"}}, {"spec": {"url": "https://example.com/x"}}),
        (KUSTOMIZATION, name, {"spec": {"path": "./mine"}}, {"spec": kustomization(place)["spec"]}),
    ]
    for kind, called, edit, own in edits:
        before = await team.get(kind, called, place)
        for change in (edit, {"metadata": {"labels": {MADE_FOR_TENANT: None}}}, {"metadata": {"labels": {"team": "mine"}}}):
            denied(await team.merge(user, kind, called, place, change), MANAGED)
        denied(await team.ask(user, "DELETE", kind, called, place), MANAGED)
        assert await team.get(kind, called, place) == before

        marked = {"metadata": {"labels": {MADE_FOR_TENANT: name}}}
        denied(await team.create(user, kind, obj(kind, "marked", place, {MADE_FOR_TENANT: name}, **own)), MANAGED)
        admitted(await team.create(user, kind, obj(kind, "own", place, **own)))
        denied(await team.merge(user, kind, "own", place, marked), MANAGED)
        admitted(await team.ask(user, "DELETE", kind, "own", place))

        held = ["example.com/held"]
        asked = {"metadata": {"finalizers": held, "annotations": {REQUESTED: "now"}}}
        found = admitted(await team.merge(user, kind, called, place, asked))
        assert finalizers_of(found) == held
        assert annotations_of(found)[REQUESTED] == "now"
        admitted(await team.merge(user, kind, called, place, {"metadata": {"finalizers": None}}))
