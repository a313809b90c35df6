"""PaasNS: which count, what they give, and what becomes of it (p-9, p-38, p-105 to p-110)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from paasing import Paasing, at_work, paas_name
from people import swept

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, annotations_of, labels_of
from tenantry.model.paas.names import ASKED_BY, MANAGED_BY_PAAS, PAAS_NS
from tenantry.testing.objects import obj

FUNCTION = "namespace-registration"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """The function on OpenShift, without the policies that refuse what it has to bear when it got in."""
    return await at_work(flawlessly, admin, "os", [FUNCTION], without=["all"])


async def _conflict(paasing: Paasing, namespace: str, name: str, words: str) -> None:
    await paasing.says(name, "Ready", "NamespaceConflict", words, status="False", kind=PAAS_NS, namespace=namespace)


async def _paas(paasing: Paasing, *namespaces: str, **spec: Any) -> str:
    name = paas_name()
    await paasing.paas(name, **{"namespaces": {each: {} for each in namespaces}, "quota": {"pods": "9"}, **spec})
    await paasing.has_namespaces(name, *namespaces)
    return name


@pytest.mark.check("p-9")
async def test_paas_ns_are_stacked(system: Knative, paasing: Paasing) -> None:
    """A PaasNS may live in the namespace of another one, and goes with it."""
    name = await _paas(paasing, "cicd")
    await paasing.paas_ns(f"{name}-cicd", "plain", paas=name)
    await paasing.has_namespaces(name, "cicd", "plain")
    await paasing.paas_ns(f"{name}-plain", "deep", paas=name)
    found = await paasing.has_namespaces(name, "cicd", "plain", "deep")
    assert annotations_of(found[f"{name}-deep"])[ASKED_BY] == f"{name}-plain/deep"
    assert labels_of(found[f"{name}-deep"])["clusterquotagroup"] == name
    await paasing.until(
        PAAS_NS, "deep", f"{name}-plain", lambda each: (each.get("status") or {}).get("namespace") == f"{name}-deep"
    )

    await paasing.admin.delete(PAAS_NS, "plain", f"{name}-cicd")
    await paasing.has_namespaces(name, "cicd")


async def test_a_paas_ns_that_goes_takes_its_namespace(system: Knative, paasing: Paasing) -> None:
    """Nothing waits for a PaasNS, and its namespace goes (the half of p-38 that is about namespaces)."""
    name = await _paas(paasing, "cicd")
    await paasing.paas_ns(f"{name}-cicd", "adminonly", paas=name, groups=["us"])
    await paasing.has_namespaces(name, "cicd", "adminonly")
    await paasing.admin.delete(PAAS_NS, "adminonly", f"{name}-cicd")
    await paasing.away(PAAS_NS, "adminonly", f"{name}-cicd")
    await paasing.has_namespaces(name, "cicd")


async def test_the_spec_comes_before_a_paas_ns(system: Knative, paasing: Paasing) -> None:
    """A PaasNS named like an entry, a capability or its own namespace changes nothing there, and is told (our half of p-105)."""
    name = paas_name()
    await paasing.paas(name, namespaces={"cicd": {}, "test": {}}, capabilities={"argocd": {"enabled": True}})
    await paasing.has_namespaces(name, "cicd", "test", "argocd")
    before = await paasing.namespaces(name)
    for each in ("test", "argocd", "cicd"):
        await paasing.paas_ns(f"{name}-cicd", each, paas=name, groups=["us"])
        await _conflict(paasing, f"{name}-cicd", each, f"namespace {name}-{each} is in the spec of Paas {name}")
    assert (await swept(system, FUNCTION))[0] == 204
    after = await paasing.namespaces(name)
    assert {each: (labels_of(found), annotations_of(found)) for each, found in after.items()} == {
        each: (labels_of(found), annotations_of(found)) for each, found in before.items()
    }
    await paasing.says(name, "tenantry.dev/Namespaces", "Reconciling", status="True")


async def test_the_next_paas_ns_of_a_name_gets_a_new_namespace(system: Knative, paasing: Paasing) -> None:
    """Never the contents of one that was another's (the half of p-106 that is about namespaces)."""
    name = await _paas(paasing, "one", "two")
    await paasing.paas_ns(f"{name}-one", "secret", paas=name, groups=["us"])
    found = await paasing.has_namespaces(name, "one", "two", "secret")
    await paasing.paas_ns(f"{name}-two", "secret", paas=name)
    await _conflict(paasing, f"{name}-two", "secret", f"that of PaasNS {name}-one/secret")
    await paasing.admin.create(CONFIG_MAP, obj(CONFIG_MAP, "kept", f"{name}-secret"))

    await paasing.admin.delete(PAAS_NS, "secret", f"{name}-one")
    old = found[f"{name}-secret"]["metadata"]["uid"]
    await paasing.gone(f"{name}-secret", old)
    anew = await paasing.has_namespaces(name, "one", "two", "secret")
    assert anew[f"{name}-secret"]["metadata"]["uid"] != old
    assert annotations_of(anew[f"{name}-secret"])[ASKED_BY] == f"{name}-two/secret"
    assert await paasing.admin.get(CONFIG_MAP, "kept", f"{name}-secret") is None


@pytest.mark.check("p-107")
async def test_two_that_hold_each_other_up_do_not_stay(system: Knative, paasing: Paasing) -> None:
    """A PaasNS in the namespace that another made, and that one's in the first's: without the way there both go."""
    name = await _paas(paasing, "cicd")
    await paasing.paas_ns(f"{name}-cicd", "q", paas=name)
    await paasing.has_namespaces(name, "cicd", "q")
    await paasing.paas_ns(f"{name}-q", "p", paas=name)
    await paasing.has_namespaces(name, "cicd", "q", "p")
    await paasing.paas_ns(f"{name}-p", "q", paas=name)
    await _conflict(paasing, f"{name}-p", "q", f"that of PaasNS {name}-cicd/q")
    await paasing.admin.delete(PAAS_NS, "q", f"{name}-cicd")
    await paasing.has_namespaces(name, "cicd")


async def test_a_namespace_that_the_spec_asks_for_too_becomes_the_specs(system: Knative, paasing: Paasing) -> None:
    """It stays the same namespace, the PaasNS does not count any more, and may go (our half of p-108)."""
    name = await _paas(paasing, "cicd")
    await paasing.paas_ns(f"{name}-cicd", "more", paas=name, groups=["us"])
    before = await paasing.has_namespaces(name, "cicd", "more")
    await paasing.paas(name, namespaces={"cicd": {}, "more": {}}, quota={"pods": "9"})
    await _conflict(paasing, f"{name}-cicd", "more", "is in the spec")
    await paasing.until(NAMESPACE, f"{name}-more", "", lambda found: ASKED_BY not in annotations_of(found))
    await paasing.admin.delete(PAAS_NS, "more", f"{name}-cicd")
    await paasing.away(PAAS_NS, "more", f"{name}-cicd")
    assert (await swept(system, FUNCTION))[0] == 204
    after = await paasing.has_namespaces(name, "cicd", "more")
    assert after[f"{name}-more"]["metadata"]["uid"] == before[f"{name}-more"]["metadata"]["uid"]


@pytest.mark.check("p-110")
async def test_a_forged_label_makes_nothing(system: Knative, paasing: Paasing) -> None:
    """A PaasNS in a namespace that only says it is the Paas' makes no namespace, and is told."""
    name = await _paas(paasing, "cicd")
    forged = paas_name()
    await paasing.admin.create(NAMESPACE, obj(NAMESPACE, forged, labels={MANAGED_BY_PAAS: name}))
    await paasing.paas_ns(forged, "mine", paas=name)
    await _conflict(paasing, forged, "mine", f"namespace {forged} is not part of a Paas")
    await paasing.warned("mine", "NamespaceConflict", kind=PAAS_NS, namespace=forged)
    assert (await swept(system, FUNCTION))[0] == 204
    assert await paasing.admin.get(NAMESPACE, f"{name}-mine") is None


async def test_a_paas_ns_of_another_paas_makes_nothing(system: Knative, paasing: Paasing) -> None:
    """Where spec.paas is another one than that of the namespace nothing is made, and that is told (p-43, where it got in)."""
    name, other = await _paas(paasing, "cicd"), await _paas(paasing, "cicd")
    await paasing.paas_ns(f"{name}-cicd", "mine", paas=other)
    await _conflict(paasing, f"{name}-cicd", "mine", f"spec.paas is {other}")
    await paasing.paas_ns("default", "mine", paas=other)
    await _conflict(paasing, "default", "mine", "not part of a Paas")
    assert await paasing.admin.get(NAMESPACE, f"{name}-mine") is None
    assert await paasing.admin.get(NAMESPACE, f"{other}-mine") is None
    await paasing.admin.delete(PAAS_NS, "mine", "default")


async def test_names_that_cannot_be_are_told(system: Knative, paasing: Paasing) -> None:
    """Where such a PaasNS got in it is told why, and the Paas goes on (p-44, where it got in)."""
    name = await _paas(paasing, "cicd")
    long = "x" * (63 - len(name))
    for each in ("a.b", long):
        await paasing.paas_ns(f"{name}-cicd", each, paas=name)
        await paasing.says(each, "Ready", "InvalidName", kind=PAAS_NS, namespace=f"{name}-cicd")
    await paasing.says(name, "tenantry.dev/Namespaces", "Reconciling", status="True")
    await paasing.paas_ns(f"{name}-cicd", long[1:], paas=name)
    await paasing.has_namespaces(name, "cicd", long[1:])


async def test_an_older_paas_ns_takes_no_namespace_away(system: Knative, paasing: Paasing) -> None:
    """Who has a namespace keeps it, also when the namespace of an older PaasNS joins the Paas later."""
    name = await _paas(paasing, "cicd")
    await paasing.admin.create(NAMESPACE, obj(NAMESPACE, f"{name}-late"))
    await paasing.paas_ns(f"{name}-late", "same", paas=name, groups=["us"])
    await _conflict(paasing, f"{name}-late", "same", "not part of a Paas")
    await paasing.paas_ns(f"{name}-cicd", "same", paas=name)
    before = await paasing.has_namespaces(name, "cicd", "same")
    await paasing.label(f"{name}-late", {"tenantry.dev/adopt": name}, "annotations")
    await paasing.paas(name, namespaces={"cicd": {}, "late": {}}, quota={"pods": "9"})
    after = await paasing.has_namespaces(name, "cicd", "same", "late")
    await _conflict(paasing, f"{name}-late", "same", f"that of PaasNS {name}-cicd/same")
    assert after[f"{name}-same"]["metadata"]["uid"] == before[f"{name}-same"]["metadata"]["uid"]
