"""Permissions of service accounts: one ClusterRoleBinding for all Paas, with exactly who is declared (4.1, 4.2, 4.6, 4.18)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from accounting import CAPABILITIES, IDENTITY, PART, Accounting, accounting, argo, foreign_binding, names
from admitting import Admitting
from admitting import paas as body_of
from flawless import Calm
from paasing import example, paas_name, together
from people import swept_alone
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, NAMESPACE, Object, annotations_of, finalizers_of
from tenantry.model.paas.names import ACCOUNTS_FINALIZER, CLUSTER_RESOURCE_QUOTA, PAAS, SHARED, SUBJECTS_FINALIZER

pytestmark = LEFT_TO_MAKE_WHOLE

MONITORING = "monitoring-edit"


@pytest.fixture(scope="module")
def paasing(admin: Api) -> Accounting:
    """Authors of Paas and the administrator of the PaasConfig."""
    return Accounting(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """Namespaces and permissions of service accounts."""
    return await accounting(flawlessly, admin)


@pytest.mark.check("p-11")
@pytest.mark.check("p-12")
async def test_accounts_of_a_capability_are_bound_in_the_cluster(system: Knative, paasing: Accounting) -> None:
    """By default, and by extra permissions while the Paas asks for them; finalizers hold both, and it is told."""
    name = paas_name()
    await paasing.paas(name, **example())
    await paasing.bound_to(MONITORING, name, "argocd/argo-sa")
    assert await paasing.admin.get(CLUSTER_ROLE_BINDING, "paas-cluster-reader") is None
    binding = await paasing.get(CLUSTER_ROLE_BINDING, f"paas-{MONITORING}")
    assert annotations_of(binding)[SHARED] == "permissions"
    assert binding["roleRef"]["name"] == MONITORING
    await paasing.says(name, PART, "Reconciling", status="True")
    assert ACCOUNTS_FINALIZER in finalizers_of(await paasing.get(PAAS, name))
    assert SUBJECTS_FINALIZER in finalizers_of(await paasing.get(NAMESPACE, f"{name}-argocd"))
    assert SUBJECTS_FINALIZER not in finalizers_of(await paasing.get(NAMESPACE, f"{name}-cicd"))

    await paasing.edit(PAAS, name, "", ("add", "/spec/capabilities/argocd/extra_permissions", True))
    await paasing.bound_to("cluster-reader", name, "argocd/argo-sa")
    await paasing.edit(PAAS, name, "", ("replace", "/spec/capabilities/argocd/extra_permissions", False))
    await paasing.unbound("cluster-reader")
    assert names(await paasing.get(CLUSTER_ROLE_BINDING, f"paas-{MONITORING}")) == [f"{name}-argocd/argo-sa"]
    await paasing.ready(name)


async def test_many_paas_stand_in_one_list_in_order(system: Knative, paasing: Accounting, calm: Calm) -> None:
    """However they come; and when all is still nothing is written."""
    several = [paas_name() for _ in range(12)]
    await together(*(paasing.paas(name, **argo()) for name in several))
    await together(*(paasing.bound_to(MONITORING, name, "argocd/argo-sa") for name in several))
    await together(*(paasing.ready(name) for name in several))
    found = await paasing.subjects(MONITORING)
    assert found == sorted(found)
    await calm(system)
    before = await paasing.get(CLUSTER_ROLE_BINDING, f"paas-{MONITORING}")
    status, text = await swept_alone(system, IDENTITY)
    assert (status, text) == (204, ""), text
    assert await paasing.get(CLUSTER_ROLE_BINDING, f"paas-{MONITORING}") == before
    await together(*(paasing.leave(name) for name in several))
    assert not {f"{name}-argocd/argo-sa" for name in several} & {*await paasing.subjects(MONITORING)}


@pytest.mark.check("p-23")
async def test_a_capability_that_is_switched_off_takes_all_along(system: Knative, paasing: Accounting) -> None:
    """Its namespace, its quota and its subjects."""
    name = paas_name()
    await paasing.paas(name, **example())
    await paasing.bound_to(MONITORING, name, "argocd/argo-sa")
    await paasing.until(CLUSTER_RESOURCE_QUOTA, f"{name}-argocd", "", lambda _: True)
    await paasing.edit(PAAS, name, "", ("replace", "/spec/capabilities/argocd/enabled", False))
    await together(
        paasing.bound_to(MONITORING, name),
        paasing.has_namespaces(name, "cicd", "test", "prod"),
        paasing.away(CLUSTER_RESOURCE_QUOTA, f"{name}-argocd"),
    )
    await paasing.gone(f"{name}-argocd")


@pytest.mark.check("p-26")
async def test_another_role_in_the_configuration_moves_the_subject(system: Knative, paasing: Accounting) -> None:
    """Bindings of other capabilities stay as they are."""
    name = paas_name()
    capabilities = {each: {"enabled": True} for each in ("argocd", "three")}
    await paasing.paas(name, capabilities=capabilities)
    others = {role: await _stands(paasing, role, name, "three/argo-sa") for role in ("r1", "r2")}
    await paasing.bound_to(MONITORING, name, "argocd/argo-sa")
    changed = {**CAPABILITIES["argocd"], "default_permissions": {"argo-sa": ["alert-routing-edit"]}}
    await paasing.config(capabilities={**CAPABILITIES, "argocd": changed})
    await together(paasing.bound_to(MONITORING, name), paasing.bound_to("alert-routing-edit", name, "argocd/argo-sa"))
    assert {role: await paasing.get(CLUSTER_ROLE_BINDING, f"paas-{role}") for role in others} == others
    await paasing.config()
    await together(paasing.bound_to(MONITORING, name, "argocd/argo-sa"), paasing.bound_to("alert-routing-edit", name))


async def _stands(paasing: Accounting, role: str, name: str, *accounts: str) -> Object:
    """The ClusterRoleBinding of a role when these accounts stand in it, and the Paas is Ready."""
    await paasing.bound_to(role, name, *accounts)
    await paasing.ready(name)
    return await paasing.get(CLUSTER_ROLE_BINDING, f"paas-{role}")


@pytest.mark.check("p-35")
@pytest.mark.check("p-65")
async def test_a_name_that_begins_another_takes_nothing_of_it(system: Knative, paasing: Accounting) -> None:
    """When the capability is switched off, and when the Paas is deleted."""
    name = paas_name()
    longer = f"{name}-b"
    await together(paasing.paas(name, **argo()), paasing.paas(longer, **argo()))
    both = (f"{longer}-argocd/argo-sa", f"{name}-argocd/argo-sa")
    await together(paasing.bound_to(MONITORING, name, "argocd/argo-sa", "b-argocd/argo-sa"), paasing.ready(longer))
    since = await paasing.version()
    await paasing.edit(PAAS, name, "", ("replace", "/spec/capabilities/argocd/enabled", False))
    await paasing.bound_to(MONITORING, name, "b-argocd/argo-sa")
    await paasing.gone(f"{name}-argocd")
    await paasing.edit(PAAS, name, "", ("replace", "/spec/capabilities/argocd/enabled", True))
    await paasing.bound_to(MONITORING, name, "argocd/argo-sa", "b-argocd/argo-sa")
    await paasing.leave(name)
    await paasing.bound_to(MONITORING, name, "b-argocd/argo-sa")
    await paasing.always_bound(MONITORING, both[0], since)
    await paasing.leave(longer)


@pytest.mark.check("p-52")
async def test_a_binding_that_is_not_ours_is_unchanged(system: Knative, paasing: Accounting, calm: Calm) -> None:
    """It is told; when it is out of the way the name is ours, and it is told no more."""
    name = paas_name()
    labels = {"tenantry.dev/paas-permissions": "cluster", "app.kubernetes.io/created-by": "opr-paas"}
    before = await paasing.admin.create(CLUSTER_ROLE_BINDING, foreign_binding("r-foreign", labels=labels))
    await paasing.paas(name, capabilities={"foreign": {"enabled": True}, "argocd": {"enabled": True}})
    await paasing.says(name, PART, "ClusterRoleBindingConflict", "ClusterRoleBinding paas-r-foreign", status="False")
    await paasing.says(name, "HasErrors", "ClusterRoleBindingConflict", f"{name}-foreign/sa", status="True")
    await paasing.bound_to(MONITORING, name, "argocd/argo-sa")
    assert "annotate it" in await paasing.warned(name, "ClusterRoleBindingConflict", kind=PAAS)
    await calm(system)
    assert await paasing.get(CLUSTER_ROLE_BINDING, "paas-r-foreign") == before

    await paasing.admin.delete(CLUSTER_ROLE_BINDING, "paas-r-foreign")
    await paasing.bound_to("r-foreign", name, "foreign/sa")
    await paasing.says(name, PART, "Reconciling", status="True")
    await paasing.leave(name)


@pytest.mark.check("p-63")
async def test_a_permission_that_the_configuration_drops_goes_everywhere(
    system: Knative, paasing: Accounting, calm: Calm
) -> None:
    """Default and extra ones; what is left is not written."""
    name = paas_name()
    await paasing.paas(name, capabilities={"three": {"enabled": True, "extra_permissions": True}})
    await together(*(paasing.bound_to(role, name, "three/argo-sa") for role in ("r1", "r2", "r3")))
    await paasing.ready(name)
    before = await paasing.get(CLUSTER_ROLE_BINDING, "paas-r1")
    less = {"default_permissions": {"argo-sa": ["r1"]}, "extra_permissions": {"argo-sa": []}}
    await paasing.config(capabilities={**CAPABILITIES, "three": less})
    await together(paasing.bound_to("r2", name), paasing.bound_to("r3", name))
    await calm(system)
    assert await paasing.get(CLUSTER_ROLE_BINDING, "paas-r1") == before
    assert not [each for role in ("r2", "r3") for each in await paasing.subjects(role) if each.startswith(name)]
    await paasing.config()
    await paasing.bound_to("r3", name, "three/argo-sa")
    await paasing.leave(name)


@pytest.mark.check("p-64")
async def test_a_capability_without_permissions_touches_no_binding(system: Knative, paasing: Accounting, calm: Calm) -> None:
    """However often a Paas with it changes, and when it goes."""
    name, other = paas_name(), paas_name()
    await paasing.paas(name, capabilities={"extra": {"enabled": True, "extra_permissions": True}})
    before = await _stands(paasing, "r-extra", name, "extra/extra-sa")
    for number in range(4):
        await paasing.paas(other, capabilities={"noperm": {"enabled": True, "custom_fields": {}}}, requestor=f"team-{number}")
        await paasing.ready(other)
    await paasing.leave(other)
    await calm(system)
    assert await paasing.get(CLUSTER_ROLE_BINDING, "paas-r-extra") == before
    await paasing.leave(name)


@pytest.mark.check("p-81")
async def test_a_binding_that_somebody_spoils_is_put_right(system: Knative, paasing: Accounting) -> None:
    """Emptied, with somebody else in it, without our label, deleted, or to another role."""
    name = paas_name()
    await paasing.paas(name, **argo())
    await paasing.bound_to(MONITORING, name, "argocd/argo-sa")
    whole = await paasing.subjects(MONITORING)

    async def is_whole() -> None:
        wanted = f"paas-{MONITORING} is whole"
        await paasing.until(CLUSTER_ROLE_BINDING, f"paas-{MONITORING}", "", lambda found: names(found) == whole, what=wanted)

    await paasing.edit(CLUSTER_ROLE_BINDING, f"paas-{MONITORING}", "", ("replace", "/subjects", []))
    await is_whole()
    eve = {"kind": "ServiceAccount", "name": "eve", "namespace": "default"}
    await paasing.edit(CLUSTER_ROLE_BINDING, f"paas-{MONITORING}", "", ("add", "/subjects/-", eve))
    await is_whole()
    await paasing.admin.delete(CLUSTER_ROLE_BINDING, f"paas-{MONITORING}")
    await is_whole()
    binding = await paasing.get(CLUSTER_ROLE_BINDING, f"paas-{MONITORING}")
    await paasing.admin.delete(CLUSTER_ROLE_BINDING, f"paas-{MONITORING}")
    forged = foreign_binding("view", annotations=annotations_of(binding))
    forged["metadata"]["name"] = f"paas-{MONITORING}"
    await paasing.admin.apply(CLUSTER_ROLE_BINDING, forged)
    await paasing.until(
        CLUSTER_ROLE_BINDING,
        f"paas-{MONITORING}",
        "",
        lambda found: names(found) == whole and found["roleRef"]["name"] == MONITORING,
    )
    await paasing.leave(name)


@pytest.mark.check("p-156")
async def test_extra_permissions_that_nobody_configured_are_told(
    system: Knative, paasing: Accounting, admitting: Admitting
) -> None:
    """The Paas is admitted with a warning and is Ready; nothing is bound."""
    name = paas_name()
    body = body_of(name, capabilities={"noperm": {"enabled": True, "extra_permissions": True}})
    answer = await admitting.create(body, dry=False)
    assert answer.status == 201, answer
    assert "spec.capabilities[noperm].extra_permissions" in answer.told
    await paasing.says(name, "Warnings", "ExtraPermissionsNotConfigured", "capability noperm", status="True")
    await paasing.ready(name)
    every = (await paasing.admin.list(CLUSTER_ROLE_BINDING)).items
    assert not [each for binding in every for each in names(binding) if each.startswith(f"{name}-")]
    await paasing.edit(PAAS, name, "", ("remove", "/spec/capabilities/noperm/extra_permissions", None))
    await paasing.says(name, "Warnings", "Reconciling", status="False")
