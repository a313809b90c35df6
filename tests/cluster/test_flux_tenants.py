"""Tenants: what is made for them, what is put back, and how it goes (2.7)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from flawless import Calm
from flux_crds import current, install_flux
from flux_declaring import FLUX_FINALIZER, FUNCTIONS, SOURCE, Tenants
from people import CORE_EVENT, token
from refusing import lacking
from times import FLUX_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.flux.names import ACCOUNT_LABEL, MADE_FOR_TENANT, PRUNE, SHOW_SOURCES, TENANT, TENANT_LABEL
from tenantry.model.flux.onboarding import GIT_REPOSITORY, KUSTOMIZATION
from tenantry.model.kinds import (
    EVENT,
    NAMESPACE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Object,
    annotations_of,
    finalizers_of,
    is_terminating,
    labels_of,
)
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.testing import eventually
from tenantry.testing.objects import obj


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """The three functions, where Flux' kinds are served."""
    await install_flux(admin, current("GitRepository", "Kustomization"))
    return await flawlessly({}, functions=FUNCTIONS)


@pytest.fixture
def tenants(admin: Api, system: Knative) -> Tenants:
    return Tenants(admin, FLUX_S)


@pytest.mark.check("f-151")
async def test_a_tenant_gets_all_that_it_declares(tenants: Tenants, system: Knative, calm: Calm) -> None:
    """Namespaces with marks, accounts, bindings, source and Kustomization; then nothing is written any more."""
    name = f"t{token()}"
    first, second = f"b-{name}", f"a-{name}"
    kustomization = {"path": "./deploy", "interval": "5m"}
    await tenants.declare(name, first, second, labels={"stage": "dev"}, source=SOURCE, kustomization=kustomization)
    live = await tenants.ready(name)

    assert live["status"]["namespaces"] == [second, first]
    marks = {"stage": "dev", TENANT_LABEL: name, MADE_FOR_TENANT: name}
    for place in (first, second):
        namespace = await tenants.get(NAMESPACE, place)
        assert {**marks, ACCOUNT_LABEL: "flux"}.items() <= labels_of(namespace).items()
        assert {PRUNE: "disabled", SHOW_SOURCES: "true"}.items() <= annotations_of(namespace).items()
        assert labels_of(await tenants.get(SERVICE_ACCOUNT, "flux", place)) == marks
        binding = await tenants.get(ROLE_BINDING, f"{name}-reconciler", place)
        assert labels_of(binding) == marks
        assert binding["roleRef"]["name"] == "cluster-admin"
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "flux", "namespace": place}]
    source, delivery = [await tenants.get(kind, name, first) for kind in (GIT_REPOSITORY, KUSTOMIZATION)]
    assert source["spec"] == {
        "interval": "1m",
        "ref": {"branch": "main"},
        "secretRef": {"name": "auth"},
        "url": "https://example.com/app",
    }
    assert delivery["spec"] == {
        "interval": "5m",
        "path": "./deploy",
        "prune": True,
        "serviceAccountName": "flux",
        "sourceRef": {"kind": "GitRepository", "name": name},
    }
    assert await tenants.admin.get(KUSTOMIZATION, name, second) is None
    await calm(system)


@pytest.mark.check("f-55")
async def test_a_deleted_binding_is_back(tenants: Tenants) -> None:
    """With the same content; so is one that was edited, and the account, the source and the Kustomization."""
    name = f"t{token()}"
    place, binding = f"apps-{name}", f"{name}-reconciler"
    await tenants.declare(name, place, source=SOURCE)
    await tenants.ready(name)
    parts = ((ROLE_BINDING, binding), (SERVICE_ACCOUNT, "flux"), (GIT_REPOSITORY, name), (KUSTOMIZATION, name))
    for kind, called in parts:
        before = await tenants.get(kind, called, place)
        await tenants.admin.delete(kind, called, place)

        def same(found: Object, before: Object = before) -> bool:
            kept = [part for part in before if part not in ("metadata", "status", "secrets")]
            return (
                found["metadata"]["uid"] != before["metadata"]["uid"]
                and labels_of(found) == labels_of(before)
                and all(found.get(part) == before[part] for part in kept)
            )

        await tenants.until(kind, called, place, same, what=f"{kind.kind} is back")
    before = await tenants.get(ROLE_BINDING, binding, place)
    stranger = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}
    await tenants.edit(ROLE_BINDING, binding, place, ("add", "/subjects/-", stranger))
    await tenants.until(ROLE_BINDING, binding, place, lambda found: found["subjects"] == before["subjects"])
    await tenants.edit(KUSTOMIZATION, name, place, ("replace", "/spec/serviceAccountName", "default"))
    await tenants.until(KUSTOMIZATION, name, place, lambda found: found["spec"]["serviceAccountName"] == "flux")


@pytest.mark.check("f-56")
async def test_a_namespace_that_leaves_is_left_alone(tenants: Tenants, system: Knative, calm: Calm) -> None:
    """Its binding, account and labels go; the namespace stays, with labels of others; the other one is not touched."""
    name = f"t{token()}"
    frontend, backend = f"frontend-{name}", f"backend-{name}"
    await tenants.declare(name, frontend, backend)
    await tenants.ready(name)
    await tenants.label(backend, {"team": "one"})
    await calm(system)
    kept = await tenants.get(ROLE_BINDING, f"{name}-reconciler", frontend)
    before = await tenants.get(NAMESPACE, backend)
    await tenants.declare(name, frontend)
    await tenants.ready(name)

    ours = {TENANT_LABEL, MADE_FOR_TENANT, ACCOUNT_LABEL}
    after = await tenants.until(NAMESPACE, backend, "", lambda found: not ours & labels_of(found).keys())
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert not is_terminating(after)
    assert labels_of(after)["team"] == "one"
    assert PRUNE not in annotations_of(after)
    await tenants.away(ROLE_BINDING, f"{name}-reconciler", backend)
    await tenants.away(SERVICE_ACCOUNT, "flux", backend)
    assert await tenants.get(ROLE_BINDING, f"{name}-reconciler", frontend) == kept
    assert [each for each in await tenants.labelled(name) if "backend" in each] == []


async def test_a_namespace_that_leaves_is_deleted_if_that_is_declared(tenants: Tenants) -> None:
    """With ``deletionPolicy: Delete``."""
    name = f"t{token()}"
    await tenants.declare(name, f"a-{name}", f"b-{name}", deletionPolicy="Delete")
    await tenants.ready(name)
    await tenants.declare(name, f"a-{name}", deletionPolicy="Delete")
    await tenants.until(NAMESPACE, f"b-{name}", "", is_terminating)
    assert not is_terminating(await tenants.get(NAMESPACE, f"a-{name}"))


@pytest.mark.check("f-57")
async def test_a_tenant_goes_in_order(tenants: Tenants) -> None:
    """The Kustomization before account and binding, which stay until it has pruned; then nothing is left but the namespaces."""
    name = f"t{token()}"
    places = [f"a-{name}", f"b-{name}"]
    await tenants.declare(name, *places, source=SOURCE)
    await tenants.ready(name)
    await tenants.edit(KUSTOMIZATION, name, places[0], ("add", "/metadata/finalizers", [FLUX_FINALIZER]))
    await tenants.admin.delete(TENANT, name)
    await tenants.until(KUSTOMIZATION, name, places[0], is_terminating)
    await asyncio.sleep(FLUX_S)  # "nothing happens" is asserted after this time
    for place in places:
        assert not is_terminating(await tenants.get(ROLE_BINDING, f"{name}-reconciler", place))
        assert not is_terminating(await tenants.get(SERVICE_ACCOUNT, "flux", place))
    assert finalizers_of(await tenants.get(TENANT, name))
    await tenants.edit(KUSTOMIZATION, name, places[0], ("remove", "/metadata/finalizers", None))
    await tenants.away(TENANT, name)
    assert await tenants.labelled(name) == []
    for place in places:
        namespace = await tenants.get(NAMESPACE, place)
        assert not is_terminating(namespace)
        assert not {TENANT_LABEL, MADE_FOR_TENANT, ACCOUNT_LABEL} & labels_of(namespace).keys()
        assert await tenants.admin.get(SERVICE_ACCOUNT, "flux", place) is None
        assert await tenants.admin.get(ROLE_BINDING, f"{name}-reconciler", place) is None


async def test_a_tenant_takes_its_namespaces_with_it_if_that_is_declared(tenants: Tenants) -> None:
    """With ``deletionPolicy: Delete``."""
    name = f"t{token()}"
    await tenants.declare(name, f"a-{name}", deletionPolicy="Delete")
    await tenants.ready(name)
    await tenants.admin.delete(TENANT, name)
    await tenants.away(TENANT, name)
    await tenants.gone(f"a-{name}")


@pytest.mark.check("f-54")
async def test_a_namespace_of_another_tenant_is_a_conflict(tenants: Tenants) -> None:
    """The Tenant says so, once, and nothing is written there; it gets its other namespaces."""
    name, other = f"t{token()}", f"o{token()}"
    await tenants.namespace(f"apps-{name}", labels={TENANT_LABEL: other})
    before = await tenants.get(NAMESPACE, f"apps-{name}")
    await tenants.declare(name, f"apps-{name}", f"own-{name}", adoptNamespaces=True)
    told = await tenants.says(name, "NamespaceConflict", f"namespace apps-{name} belongs to tenant {other}", "False")
    assert told["status"]["namespaces"] == [f"own-{name}"]
    await tenants.until(ROLE_BINDING, f"{name}-reconciler", f"own-{name}", lambda _: True)
    assert await tenants.get(NAMESPACE, f"apps-{name}") == before
    assert await tenants.admin.get(SERVICE_ACCOUNT, "flux", f"apps-{name}") is None
    assert await tenants.warned(name, "NamespaceConflict", kind=TENANT)


async def test_the_older_of_two_tenants_has_the_namespace(tenants: Tenants) -> None:
    """The newer one is told, and gets it when the older one is gone."""
    older, newer = f"a{token()}", f"b{token()}"
    place = f"apps-{older}"
    await tenants.declare(older, place)
    await tenants.ready(older)
    await tenants.declare(newer, place, adoptNamespaces=True)
    await tenants.says(newer, "NamespaceConflict", f"belongs to tenant {older}")
    assert labels_of(await tenants.get(NAMESPACE, place))[MADE_FOR_TENANT] == older
    assert await tenants.admin.get(ROLE_BINDING, f"{newer}-reconciler", place) is None
    await tenants.admin.delete(TENANT, older)
    await tenants.ready(newer)
    assert labels_of(await tenants.get(NAMESPACE, place))[MADE_FOR_TENANT] == newer
    assert await tenants.admin.get(ROLE_BINDING, f"{older}-reconciler", place) is None


async def test_namespaces_that_are_there_are_adopted_if_that_is_declared(tenants: Tenants) -> None:
    """Else it is told what to do; labels of others stay; namespaces of the platform are refused."""
    name = f"t{token()}"
    await tenants.namespace(f"apps-{name}", labels={"team": "one", "pod-security.kubernetes.io/enforce": "restricted"})
    await tenants.declare(name, f"apps-{name}")
    await tenants.says(name, "NamespaceNotAdopted", "set adoptNamespaces")
    await tenants.declare(name, f"apps-{name}", adoptNamespaces=True)
    await tenants.ready(name)
    labels = labels_of(await tenants.get(NAMESPACE, f"apps-{name}"))
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert labels["team"] == "one"
    for place in ("kube-system", "default", "flux-system", "tenantry-system"):
        await tenants.declare(name, place, adoptNamespaces=True)
        await tenants.says(name, "NamespaceReserved", f"namespace {place} is the platform's")


async def test_namespaces_are_left_to_others_if_that_is_declared(tenants: Tenants) -> None:
    """Nothing is made until they are there; then only what is in them."""
    name = f"t{token()}"
    await tenants.declare(name, f"apps-{name}", skipNamespace=True)
    await tenants.says(name, "NamespaceMissing", "make it")
    await tenants.namespace(f"apps-{name}")
    before = await tenants.get(NAMESPACE, f"apps-{name}")
    await tenants.ready(name)
    assert await tenants.get(NAMESPACE, f"apps-{name}") == before
    await tenants.admin.delete(TENANT, name)
    await tenants.away(TENANT, name)
    assert await tenants.labelled(name) == []


async def test_other_names_are_followed(tenants: Tenants) -> None:
    """Another role makes the binding anew; another account takes over, and the old one goes; so is another branch."""
    name = f"t{token()}"
    place, binding = f"apps-{name}", f"{name}-reconciler"
    await tenants.declare(name, place, source=SOURCE)
    await tenants.ready(name)
    await tenants.declare(name, place, source=SOURCE, clusterRole="view", serviceAccountName="deployer")
    await tenants.ready(name)
    found = await tenants.until(ROLE_BINDING, binding, place, lambda found: found["roleRef"]["name"] == "view")
    assert [each["name"] for each in found["subjects"]] == ["deployer"]
    await tenants.away(SERVICE_ACCOUNT, "flux", place)
    await tenants.until(KUSTOMIZATION, name, place, lambda found: found["spec"]["serviceAccountName"] == "deployer")
    assert labels_of(await tenants.get(NAMESPACE, place))[ACCOUNT_LABEL] == "deployer"
    elsewhere = {**SOURCE, "branch": "next"}
    await tenants.declare(name, place, source=elsewhere, clusterRole="view", serviceAccountName="deployer")
    await tenants.until(GIT_REPOSITORY, name, place, lambda found: found["spec"]["ref"] == {"branch": "next"})


async def test_labels_of_ours_that_are_changed_by_hand_are_put_back(tenants: Tenants) -> None:
    """On the namespace and on the account."""
    name = f"t{token()}"
    place = f"apps-{name}"
    await tenants.declare(name, place, labels={"stage": "dev"})
    await tenants.ready(name)
    for label, value in ((TENANT_LABEL, "other"), (TENANT_LABEL, None), ("stage", "prod"), (ACCOUNT_LABEL, None)):
        before = labels_of(await tenants.get(NAMESPACE, place))
        await tenants.label(place, {label: value})
        await tenants.until(
            NAMESPACE, place, "", lambda found, before=before: labels_of(found) == before, what=f"{label} is back"
        )
    before = labels_of(await tenants.get(SERVICE_ACCOUNT, "flux", place))
    await tenants.edit(SERVICE_ACCOUNT, "flux", place, ("remove", "/metadata/labels", None))
    await tenants.until(SERVICE_ACCOUNT, "flux", place, lambda found: labels_of(found) == before, what="labels are back")


async def test_a_binding_of_others_to_another_role_is_told(tenants: Tenants) -> None:
    """It stays as it is, and goes by hand; a binding to the same role is taken over."""
    name = f"t{token()}"
    place, binding = f"apps-{name}", f"{name}-reconciler"
    await tenants.namespace(place)
    view = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    before = await tenants.admin.create(ROLE_BINDING, obj(ROLE_BINDING, binding, place, roleRef=view, subjects=[]))
    await tenants.declare(name, place, adoptNamespaces=True)
    await tenants.says(name, "ObjectConflict", f"RoleBinding {place}/{binding} is there", "False")
    assert await tenants.get(ROLE_BINDING, binding, place) == before
    await tenants.admin.delete(ROLE_BINDING, binding, place)
    await tenants.declare(name, place, adoptNamespaces=True, labels={"stage": "dev"})
    await tenants.ready(name)
    assert (await tenants.get(ROLE_BINDING, binding, place))["roleRef"]["name"] == "cluster-admin"


async def test_a_source_that_is_no_longer_declared_goes(tenants: Tenants) -> None:
    """Kustomization first; and one of somebody else's in the way is told."""
    name = f"t{token()}"
    place = f"apps-{name}"
    await tenants.declare(name, place, source=SOURCE)
    await tenants.ready(name)
    await tenants.declare(name, place)
    await tenants.away(KUSTOMIZATION, name, place)
    await tenants.away(GIT_REPOSITORY, name, place)
    await tenants.ready(name)
    foreign = obj(GIT_REPOSITORY, name, place, spec={"url": "https://example.com/other", "interval": "1m"})
    before = await tenants.admin.create(GIT_REPOSITORY, foreign)
    await tenants.declare(name, place, source=SOURCE)
    await tenants.says(name, "ObjectConflict", f"GitRepository {place}/{name} is there", "False")
    assert await tenants.get(GIT_REPOSITORY, name, place) == before


async def test_nothing_is_told_twice(tenants: Tenants, system: Knative, calm: Calm, admin: Api) -> None:
    """While a problem stands, sweeps write nothing and record no further Event."""
    name = f"t{token()}"
    await tenants.declare(name, "kube-system")
    before = await tenants.says(name, "NamespaceReserved")
    await calm(system)
    await calm(system)

    async def events() -> list[Object]:
        fields = f"involvedObject.kind=Tenant,involvedObject.name={name},reason=NamespaceReserved"
        return (await admin.list(CORE_EVENT, "default", field_selector=fields)).items

    found = await eventually(events, within=FLUX_S)
    assert len(found) == 1
    now = await tenants.get(TENANT, name)
    assert find_condition(now, "Ready") == find_condition(before, "Ready")


@pytest.mark.parametrize("duty", ["rbac-aggregation-tenants", "release-provisioning-tenants"])
async def test_missing_right_to_read_is_told_on_the_account(duty: str, tenants: Tenants, system: Knative, calm: Calm) -> None:
    """A Warning names the right and the file that gives it; afterwards all goes on."""
    name = f"t{token()}"

    async def told() -> list[str]:
        found = await tenants.admin.list(EVENT, SYSTEM_NAMESPACE, field_selector="type=Warning,reason=RightMissing")
        return [each["note"] for each in found.items if each["regarding"]["name"] == duty]

    async with lacking(tenants.admin, f"tenantry-{duty}", "tenants", {"get"}):
        await tenants.declare(name, f"apps-{name}")
        notes = await eventually(told, within=FLUX_S, what=f"a Warning about {duty}")
    await calm(system)
    await tenants.ready(name)

    assert f"the right to get tenants.tenantry.dev is missing: apply knative/{duty}/rights.yaml again" in notes
