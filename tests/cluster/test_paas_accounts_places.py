"""Where permissions of service accounts hold, and the namespaces that are held for them (p-157, p-158, p-192 in part)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass

import pytest
import pytest_asyncio
from accounting import IDENTITY, PART, Accounting, accounting, argo, names, never_free
from flawless import Calm
from paasing import paas_name, together
from people import swept_alone
from times import NAMESPACE_GONE_S, SIDE_BY_SIDE
from watching import history

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE_BINDING,
    Object,
    finalizers_of,
    is_terminating,
    labels_of,
)
from tenantry.model.paas.names import ACCOUNTS_FINALIZER, PAAS, PAAS_CONFIG, SUBJECTS_FINALIZER
from tenantry.testing import answers, eventually
from tenantry.testing.faults import Fault, Forward, Request, Response, creations, on
from tenantry.testing.proxy import FaultProxy

MONITORING = "monitoring-edit"
LOCAL = f"paas-sa-{MONITORING}"


@pytest.fixture(scope="module")
def paasing(admin: Api) -> Accounting:
    """Authors of Paas and the administrator of the PaasConfig."""
    return Accounting(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(proxy: FaultProxy, flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """Namespaces and permissions of service accounts, on plain Kubernetes."""
    return await accounting(flawlessly, admin, "plain", through=proxy)


@pytest.fixture
async def mine(system: Knative, paasing: Accounting) -> str:
    """A Paas whose account is bound."""
    name = paas_name()
    await paasing.paas(name, **argo())
    await paasing.bound_to(MONITORING, name, "argocd/argo-sa")
    return name


async def _local(paasing: Accounting, namespace: str) -> None:
    """Wait until the account is bound in its namespace."""
    wanted = [f"{namespace}/argo-sa"]
    await paasing.until(ROLE_BINDING, LOCAL, namespace, lambda found: names(found) == wanted)


@pytest.mark.check("p-157")
async def test_permissions_hold_in_the_namespace_where_that_is_configured(mine: str, paasing: Accounting, calm: Calm) -> None:
    """There and back without a moment in which the account has neither, but for two in which a hand takes it away."""
    place = f"{mine}-argocd"
    since = {kind: await paasing.version(kind) for kind in (CLUSTER_ROLE_BINDING, ROLE_BINDING)}
    await paasing.config(permissionScope="Namespace")
    await together(_local(paasing, place), paasing.unbound(MONITORING))
    other = paas_name()
    await paasing.paas(other, **argo())
    await _local(paasing, f"{other}-argocd")
    await paasing.says(other, PART, "Reconciling", status="True")
    assert await paasing.admin.get(CLUSTER_ROLE_BINDING, f"paas-{MONITORING}") is None

    await paasing.admin.delete(ROLE_BINDING, LOCAL, place)
    await _local(paasing, place)
    await paasing.edit(ROLE_BINDING, LOCAL, place, ("replace", "/subjects", []))
    await _local(paasing, place)
    await paasing.config()
    await together(
        paasing.bound_to(MONITORING, mine, "argocd/argo-sa"),
        paasing.bound_to(MONITORING, other, "argocd/argo-sa"),
        paasing.away(ROLE_BINDING, LOCAL, place),
        paasing.away(ROLE_BINDING, LOCAL, f"{other}-argocd"),
    )
    inside = [each for each in await history(paasing.admin, ROLE_BINDING, since[ROLE_BINDING]) if _is(each[1], LOCAL, place)]
    whole = await history(paasing.admin, CLUSTER_ROLE_BINDING, since[CLUSTER_ROLE_BINDING])
    told = [*inside, *(each for each in whole if _is(each[1], f"paas-{MONITORING}"))]
    there = {CLUSTER_ROLE_BINDING.kind: True, ROLE_BINDING.kind: False}
    steps = sorted(told, key=lambda each: int(each[1]["metadata"]["resourceVersion"]))
    without: list[str] = []
    for change, found in steps:
        there[found["kind"]] = change != "DELETED" and f"{place}/argo-sa" in names(found)
        without += [] if any(there.values()) else [f"{change} {found['kind']}"]
    assert without == ["DELETED RoleBinding", "MODIFIED RoleBinding"], [
        (change, found["kind"], names(found)) for change, found in steps
    ]
    await paasing.leave(other)
    await paasing.leave(mine)


def _is(found: Object, name: str, namespace: str = "") -> bool:
    metadata = found["metadata"]
    return bool(metadata["name"] == name and metadata.get("namespace", "") == namespace)


@pytest.mark.check("p-158")
async def test_a_name_is_not_free_while_a_binding_names_it(mine: str, system: Knative, paasing: Accounting) -> None:
    """Whoever deletes the namespace, and also while the function does not run."""
    place = f"{mine}-argocd"
    since = {"bindings": await paasing.version(), "namespaces": await paasing.version(NAMESPACE)}
    before = await paasing.get(NAMESPACE, place)
    await paasing.admin.delete(NAMESPACE, place)
    await paasing.bound_to(MONITORING, mine)
    await paasing.gone(place, before["metadata"]["uid"])
    await paasing.bound_to(MONITORING, mine, "argocd/argo-sa")
    assert _lives(await never_free(paasing, place, MONITORING, since)) == ["DELETED", "ADDED"]

    await system.functions[IDENTITY].stop()
    since = {"bindings": await paasing.version(), "namespaces": await paasing.version(NAMESPACE)}
    try:
        await paasing.admin.delete(NAMESPACE, place)
        await paasing.until(NAMESPACE, place, "", _is_emptied, within=NAMESPACE_GONE_S)
        assert f"{place}/argo-sa" in await paasing.subjects(MONITORING)
    finally:
        await system.functions[IDENTITY].start()
    before = await paasing.get(NAMESPACE, place)
    assert (await swept_alone(system, IDENTITY))[0] == 204
    await paasing.gone(place, before["metadata"]["uid"])
    await paasing.bound_to(MONITORING, mine, "argocd/argo-sa")
    assert _lives(await never_free(paasing, place, MONITORING, since)) == ["DELETED", "ADDED"]
    await paasing.leave(mine)
    await paasing.gone(place)


def _is_emptied(namespace: Object) -> bool:
    """Whether nothing but finalizers keeps a namespace that is being deleted."""
    conditions = {each["type"]: each["status"] for each in (namespace.get("status") or {}).get("conditions") or ()}
    return is_terminating(namespace) and conditions.get("NamespaceContentRemaining") == "False"


def _lives(changes: list[str]) -> list[str]:
    """When a namespace went and came."""
    return [each for each in changes if each != "MODIFIED"]


async def test_a_namespace_without_permissions_is_let_go(mine: str, paasing: Accounting) -> None:
    """When the configuration gives its accounts nothing any more, its deletion waits for nobody."""
    await paasing.config(capabilities={"argocd": {}})
    await paasing.bound_to(MONITORING, mine)
    await paasing.until(NAMESPACE, f"{mine}-argocd", "", lambda found: SUBJECTS_FINALIZER not in finalizers_of(found))
    await paasing.config()
    await paasing.bound_to(MONITORING, mine, "argocd/argo-sa")
    await paasing.leave(mine)


async def test_without_a_configuration_accounts_keep_what_they_have(mine: str, paasing: Accounting, calm: Calm) -> None:
    """A Paas that goes takes its subjects along all the same, and one that comes waits (our half of p-37 and p-182)."""
    other = paas_name()
    await paasing.paas(other, **argo())
    await paasing.bound_to(MONITORING, other, "argocd/argo-sa")
    (config,) = (await paasing.admin.list(PAAS_CONFIG)).items
    await paasing.admin.delete(PAAS_CONFIG, config["metadata"]["name"])
    await paasing.says(mine, PART, "NoPaasConfig", status="False")
    assert f"{mine}-argocd/argo-sa" in await paasing.subjects(MONITORING)
    await paasing.leave(other)
    assert [each for each in await paasing.subjects(MONITORING) if each.startswith((mine, other))] == [f"{mine}-argocd/argo-sa"]
    await paasing.config()
    await paasing.says(mine, PART, "Reconciling", status="True")
    await paasing.leave(mine)


async def test_subjects_of_a_paas_that_was_forced_away_go_with_the_next_sweep(
    mine: str, system: Knative, paasing: Accounting
) -> None:
    """Its finalizers were taken off by hand (our half of p-192); its namespace can be deleted."""
    await system.functions[IDENTITY].stop()
    try:
        await paasing.admin.delete(PAAS, mine)
        await paasing.edit(PAAS, mine, "", ("replace", "/metadata/finalizers", []))
        await paasing.away(PAAS, mine)
    finally:
        await system.functions[IDENTITY].start()
    assert (await swept_alone(system, IDENTITY))[0] == 204
    await paasing.bound_to(MONITORING, mine)
    await paasing.until(NAMESPACE, f"{mine}-argocd", "", lambda found: SUBJECTS_FINALIZER not in finalizers_of(found))
    await paasing.admin.delete(NAMESPACE, f"{mine}-argocd")
    await paasing.gone(f"{mine}-argocd")


async def test_a_paas_whose_capabilities_give_nothing_has_no_finalizer_of_ours(system: Knative, paasing: Accounting) -> None:
    """Nor is its part told."""
    name = paas_name()
    await paasing.paas(name, namespaces={"one": {}}, capabilities={"noperm": {"enabled": True}, "argocd": {"enabled": False}})
    found = await paasing.ready(name)
    assert found["status"] == "True"
    live = await paasing.get(PAAS, name)
    assert ACCOUNTS_FINALIZER not in finalizers_of(live)
    assert not [each for each in live["status"]["conditions"] if each["type"].startswith(PART)]
    await paasing.leave(name)


async def test_a_paas_whose_capabilities_give_nothing_any_more_is_as_if_they_never_had(mine: str, paasing: Accounting) -> None:
    """Its finalizer and its part go with the last subject."""
    await paasing.until(PAAS, mine, "", lambda found: ACCOUNTS_FINALIZER in finalizers_of(found))
    await paasing.edit(PAAS, mine, "", ("replace", "/spec/capabilities/argocd/enabled", False))
    await paasing.bound_to(MONITORING, mine)

    def told(live: Object) -> list[Object]:
        return [each for each in live["status"]["conditions"] if each["type"].startswith(PART)]

    await paasing.until(PAAS, mine, "", lambda found: ACCOUNTS_FINALIZER not in finalizers_of(found) and not told(found))


@dataclass(eq=False)
class StaleParam(Fault, name="stale param", concerns=creations):
    """A policy of ours refuses a write once, as it does while the API server still gives it an older PaasConfig."""

    _: KW_ONLY
    policy: str

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Answer; nothing is written."""
        del forward
        answer = answers.denied_by_policy(request, "no params found for policy binding with `Deny` parameterNotFoundAction")
        return Response(answer.status, answer.content.replace(b"'rules'", f"'{self.policy}'".encode()), answer.headers)


@pytest.mark.check("p-170")
async def test_what_a_policy_refused_by_mistake_is_done_at_once(
    mine: str, system: Knative, proxy: FaultProxy, paasing: Accounting, calm: Calm
) -> None:
    """A label of a namespace, a RoleBinding and a ClusterRoleBinding, changed while all else is at rest: each is put right within
    a second after the refusal."""
    place, fence = f"{mine}-argocd", "tenantry-fence-{}-paas-roles"
    faults = {
        "namespaces": StaleParam(where=on("namespaces", place), policy="tenantry-guard-paas-quota-label"),
        "rolebindings": StaleParam(where=on("rolebindings", namespace=place), policy=fence.format("rbac-aggregation")),
        "clusterrolebindings": StaleParam(where=on("clusterrolebindings"), policy=fence.format("scope-binding")),
    }
    await paasing.paas(mine, **argo(), groups={"us": {"users": ["me"]}})
    await paasing.bound(place, {"paas-view": [f"{mine}-us"]})
    for resource, fault in faults.items():
        await paasing.ready(mine)
        await calm(system)
        since = proxy.recording.mark()
        proxy.faults.append(fault)
        try:
            match resource:
                case "namespaces":
                    await paasing.label(place, {"clusterquotagroup": "mine"})
                case "rolebindings":
                    await paasing.admin.delete(ROLE_BINDING, "paas-view", place)
                case _:
                    await paasing.admin.delete(CLUSTER_ROLE_BINDING, f"paas-{MONITORING}")
            await eventually(lambda fault=fault: _has_acted(fault), within=paasing.eventually_s, what=f"refused: {resource}")
            await paasing.until(NAMESPACE, place, "", lambda found: labels_of(found)["clusterquotagroup"] == place)
            await paasing.bound(place, {"paas-view": [f"{mine}-us"]})
            await paasing.bound_to(MONITORING, mine, "argocd/argo-sa")
        finally:
            proxy.faults.remove(fault)
        told = [each for each in proxy.recording.writes(since) if each.resource == resource]
        (refused,) = [each for each in told if each.fault]
        done = [each.until for each in told if each.changed and each.seq > refused.seq]
        assert min(done) - refused.until < 1.0 * SIDE_BY_SIDE, resource
    await paasing.leave(mine)


async def _has_acted(fault: Fault) -> bool:
    return fault.acted == 1
