"""Names that two want, or that somebody has already: who has it keeps it, else the oldest; the rest goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from paasing import CONFIG, Paasing, at_work, paas_name
from people import swept
from times import LEFT_TO_MAKE_WHOLE, NAMESPACE_GONE_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import NAMESPACE, RESOURCE_QUOTA, Object, annotations_of, labels_of
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, MANAGED_BY_PAAS, PAAS, PAAS_UID
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

FUNCTION = "namespace-registration"
PART = "tenantry.dev/Namespaces"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """The function on OpenShift, without the policies that refuse what it has to bear when it got in."""
    return await at_work(flawlessly, admin, "os", [FUNCTION], without=["all"])


def _of(found: Object, paas: Object) -> bool:
    return bool(annotations_of(found).get(PAAS_UID) == paas["metadata"]["uid"])


@pytest.mark.parametrize("first", ["shorter", "longer"])
async def test_who_has_a_namespace_keeps_it(system: Knative, paasing: Paasing, first: str) -> None:
    """Of two Paas that want one name, the one that has it keeps it; the other's other namespaces are there (half of p-50)."""
    a = paas_name()
    declared: dict[str, dict[str, object]] = {a: {"b-c": {}, "own": {}}, f"{a}-b": {"c": {}, "own": {}}}
    order = [a, f"{a}-b"] if first == "shorter" else [f"{a}-b", a]
    keeper = await paasing.paas(order[0], namespaces=declared[order[0]], quota={"pods": "9"})
    await paasing.until(NAMESPACE, f"{a}-b-c", "", lambda found: _of(found, keeper))
    before = await paasing.get(NAMESPACE, f"{a}-b-c")
    await paasing.paas(order[1], namespaces=declared[order[1]], quota={"pods": "9"})
    await paasing.says(order[1], PART, "NamespaceConflict", f"namespace {a}-b-c is Paas {order[0]}'s")
    await paasing.until(NAMESPACE, f"{order[1]}-own", "", lambda found: labels_of(found)[MANAGED_BY_PAAS] == order[1])
    assert (await swept(system, FUNCTION))[0] == 204
    after = await paasing.get(NAMESPACE, f"{a}-b-c")
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]

    await paasing.leave(order[0])
    other = await paasing.get(PAAS, order[1])
    await paasing.until(NAMESPACE, f"{a}-b-c", "", lambda found: _of(found, other), within=NAMESPACE_GONE_S)
    await paasing.says(order[1], PART, "Reconciling", status="True")


async def test_two_that_want_a_name_at_once(system: Knative, paasing: Paasing) -> None:
    """Whoever comes first, exactly one has it in the end, and the other is told so."""
    a = paas_name()
    both = [a, f"{a}-b"]
    paas = {
        both[0]: await paasing.paas(both[0], namespaces={"b-c": {}}),
        both[1]: await paasing.paas(both[1], namespaces={"c": {}}),
    }

    async def told() -> list[str]:
        found = [(await paasing.get(PAAS, name)).get("status") or {} for name in both]
        return [
            name
            for name, status in zip(both, found, strict=True)
            for each in status.get("conditions") or ()
            if each["type"] == PART and each["reason"] == "NamespaceConflict"
        ]

    lost = await eventually(told, within=paasing.eventually_s)
    assert len(lost) == 1
    won = paas[both[1 - both.index(lost[0])]]
    await paasing.until(NAMESPACE, f"{a}-b-c", "", lambda found: _of(found, won))


async def test_a_namespace_that_exists_is_left_alone_until_it_is_handed_over(system: Knative, paasing: Paasing) -> None:
    """It keeps its labels, is told, and becomes the Paas' when an administrator says so (half of p-51, p-193)."""
    name = paas_name()
    made = await paasing.admin.create(NAMESPACE, obj(NAMESPACE, f"{name}-test", labels={MANAGED_BY_PAAS: name, "own": "1"}))
    paas = await paasing.paas(name, namespaces={"test": {}, "other": {}}, quota={"pods": "9"})
    await paasing.says(name, PART, "NamespaceConflict", f"tenantry.dev/adopt={name}")
    await paasing.warned(name, "NamespaceConflict", kind=PAAS)
    await paasing.until(NAMESPACE, f"{name}-other", "", lambda found: _of(found, paas))
    assert (await swept(system, FUNCTION))[0] == 204
    found = await paasing.get(NAMESPACE, f"{name}-test")
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]

    await paasing.label(f"{name}-test", {"tenantry.dev/adopt": name}, "annotations")
    adopted = await paasing.until(NAMESPACE, f"{name}-test", "", lambda found: _of(found, paas))
    assert adopted["metadata"]["uid"] == made["metadata"]["uid"]
    assert labels_of(adopted)["own"] == "1"
    assert labels_of(adopted)["clusterquotagroup"] == name
    await paasing.says(name, PART, "Reconciling", status="True")


async def test_another_controllers_namespace_stops_nothing(system: Knative, paasing: Paasing) -> None:
    """Existing namespaces, with a controller or without, stay; a further one is made; each is told (half of p-70)."""
    name = paas_name()
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "x",
        "uid": "00000000-0000-0000-0000-000000000001",
        "controller": True,
    }
    one = await paasing.admin.create(NAMESPACE, obj(NAMESPACE, f"{name}-one"))
    body = obj(NAMESPACE, f"{name}-two")
    body["metadata"]["ownerReferences"] = [owner]
    await paasing.admin.create(NAMESPACE, body)
    await paasing.paas(name, namespaces={"one": {}, "two": {}, "three": {}}, quota={"pods": "9"})
    told = await paasing.says(name, PART, "NamespaceConflict", f"namespace {name}-one exists and is of no Paas")
    assert f"namespace {name}-two" in told["message"]
    await paasing.until(NAMESPACE, f"{name}-three", "", lambda _: True)
    found = await paasing.get(NAMESPACE, f"{name}-one")
    assert found["metadata"]["resourceVersion"] == one["metadata"]["resourceVersion"]


async def test_upstreams_namespaces_are_taken_over_by_their_owner_reference(system: Knative, paasing: Paasing) -> None:
    """The Paas' uid in an owner reference is a proof; the namespace gets our marks, and the reference goes (half of p-190)."""
    name = paas_name()
    paas = await paasing.paas(name, namespaces={"later": {}}, quota={"pods": "9"})
    await paasing.has_namespaces(name, "later")
    body = obj(NAMESPACE, f"{name}-mine", labels={MANAGED_BY_PAAS: name})
    reference = {"apiVersion": "cpet.belastingdienst.nl/v1alpha1", "kind": "Paas", "name": name, "uid": paas["metadata"]["uid"]}
    body["metadata"]["ownerReferences"] = [reference]
    made = await paasing.admin.create(NAMESPACE, body)
    await paasing.says(name, f"{PART}Warnings", "Leftover", f"namespace {name}-mine")
    await paasing.paas(name, namespaces={"later": {}, "mine": {}}, quota={"pods": "9"})
    found = await paasing.until(
        NAMESPACE, f"{name}-mine", "", lambda found: _of(found, paas) and "ownerReferences" not in found["metadata"]
    )
    assert found["metadata"]["uid"] == made["metadata"]["uid"]


# -- names that cannot be, and quotas ----------------------------------------------------------------------


@pytest.mark.check("p-91")
@pytest.mark.parametrize("name", ["paas", "kube", "openshift-x", "cattle-y", "tenantry", "paas-tekton", "a.b"])
async def test_names_of_paas_that_cannot_be(system: Knative, paasing: Paasing, name: str) -> None:
    """Where such a Paas got in it says why, and nothing is made."""
    tekton = {"tekton": {"quotas": {"clusterwide": True, "ratio": 0.1, "defaults": {"pods": "1"}}}}
    await paasing.config(capabilities={**CONFIG["capabilities"], **tekton})
    await paasing.paas(name, namespaces={"one": {}}, quota={"pods": "9"})
    await paasing.says(name, PART, "QuotaConflict" if name == "paas-tekton" else "InvalidName", name)
    await paasing.says(name, "HasErrors", "QuotaConflict" if name == "paas-tekton" else "InvalidName", name, status="True")
    assert (await swept(system, FUNCTION))[0] == 204
    for each in (name, f"{name}-one"):
        assert await paasing.admin.get(NAMESPACE, each) is None
    assert await paasing.admin.get(CLUSTER_RESOURCE_QUOTA, name) is None
    await paasing.leave(name)
    await paasing.config()


@pytest.mark.check("p-92")
async def test_one_bad_entry_stops_no_other(system: Knative, paasing: Paasing) -> None:
    """Names and label values that cannot be are told, each with its name; the rest is there."""
    name = paas_name()
    long = "x" * (63 - len(name))
    bad: dict[str, object] = {"Test": {}, "a_b": {}, "-": {}, long: {}}
    capabilities = {"A_b": {"enabled": True}, "argocd": {"enabled": True}}
    await paasing.paas(name, namespaces={"one": {}, **bad}, capabilities=capabilities, requestor="a b", quota={"pods": "9"})
    told = await paasing.says(name, PART, "InvalidName", f"{name}-Test")
    assert all(f"{name}-{each}" in told["message"] for each in (*bad, "A_b"))
    assert "label requestor cannot be 'a b'" in told["message"]
    found = await paasing.has_namespaces(name, "one", "argocd")
    assert "requestor" not in labels_of(found[f"{name}-one"])


@pytest.mark.parametrize("first", ["capability", "paas"])
async def test_two_quotas_of_one_name(system: Knative, paasing: Paasing, first: str) -> None:
    """The one that was first keeps name and label; the other has no namespace that no quota counts (p-95)."""
    my = paas_name()
    other = f"{my}-argocd"
    specs: dict[str, dict[str, Any]] = {
        my: {"capabilities": {"argocd": {"enabled": True}}, "quota": {"pods": "9"}},
        other: {"namespaces": {"one": {}}, "quota": {"pods": "5"}},
    }
    order = [my, other] if first == "capability" else [other, my]
    keeper = await paasing.paas(order[0], **specs[order[0]])
    await paasing.until(CLUSTER_RESOURCE_QUOTA, other, "", lambda found: _of(found, keeper))
    await paasing.paas(order[1], **specs[order[1]])
    await paasing.says(order[1], PART, "QuotaConflict", f"ClusterResourceQuota {other} is Paas {order[0]}'s")
    assert (await swept(system, FUNCTION))[0] == 204
    assert await paasing.namespaces(order[1]) == {}
    assert _of(await paasing.get(CLUSTER_RESOURCE_QUOTA, other), keeper)

    await paasing.leave(order[0])
    await paasing.says(order[1], PART, "Reconciling", status="True")
    assert len(await paasing.namespaces(order[1])) == 1


async def test_a_quota_of_somebody_else_is_left_alone(system: Knative, paasing: Paasing) -> None:
    """No namespace is made that would count to it; when it goes, all is made."""
    name = paas_name()
    made = await paasing.admin.create(CLUSTER_RESOURCE_QUOTA, obj(CLUSTER_RESOURCE_QUOTA, name, spec={"quota": {"hard": {}}}))
    await paasing.paas(name, namespaces={"one": {}}, quota={"pods": "9"})
    await paasing.says(name, PART, "QuotaConflict", f"ClusterResourceQuota {name} exists and is of no Paas")
    assert await paasing.namespaces(name) == {}
    found = await paasing.get(CLUSTER_RESOURCE_QUOTA, name)
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    await paasing.admin.delete(CLUSTER_RESOURCE_QUOTA, name)
    await paasing.has_namespaces(name, "one")
    assert (await paasing.admin.list(RESOURCE_QUOTA, f"{name}-one")).items == []
