"""The three documents of the source, as they are, and exactly the table of 2.9."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from admitting import example_documents
from paasing import Paasing, make_roles, make_world, together
from righting import FUNCTIONS, example_bindings, has_users, only

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Kind, Object, labels_of
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, GROUP, MANAGED_BY_PAAS, PAAS, PAAS_CONFIG, PAAS_NS

NAME = "my-paas"
PLACES = ("cicd", "test", "prod", "argocd")


async def declare(admin: Api, document: Object) -> None:
    """Apply a document in the version that it is written in."""
    known = next(each for each in (PAAS, PAAS_NS, PAAS_CONFIG) if each.kind == document["kind"])
    await admin.apply(Kind(document["apiVersion"], known.kind, known.plural, namespaced=known.namespaced), document)


@pytest.mark.check("p-61")
async def test_the_example_gives_exactly_what_it_says(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> None:
    """Rights, groups, quota, the policy of Argo CD, and conditions."""
    paasing = Paasing(admin)
    await make_world(admin, "os")
    await make_roles(admin)
    await flawlessly({}, functions=FUNCTIONS)
    documents = {each["kind"]: each for each in example_documents()}
    await declare(admin, documents["PaasConfig"])
    await declare(admin, documents["Paas"])
    await paasing.has_namespaces(NAME, *PLACES)
    await declare(admin, documents["PaasNS"])

    await together(
        *(paasing.bound(f"{NAME}-{each}", example_bindings(NAME)) for each in PLACES),
        paasing.bound(f"{NAME}-adminonly", only(NAME, "us")),
        has_users(paasing, f"{NAME}-us", ["me", "you"]),
        has_users(paasing, f"{NAME}-them", ["friend"]),
    )
    groups = (await admin.list(GROUP)).items
    assert {each["metadata"]["name"] for each in groups} == {f"{NAME}-us", f"{NAME}-them"}

    quota = await paasing.until(CLUSTER_RESOURCE_QUOTA, NAME, "", lambda _: True)
    assert quota["spec"]["quota"]["hard"] == {"limits.cpu": "40"}
    counted = [await paasing.get(NAMESPACE, f"{NAME}-{each}") for each in (*PLACES, "adminonly")]
    assert {labels_of(each)["clusterquotagroup"] for each in counted} == {NAME}
    assert len((await admin.list(CLUSTER_RESOURCE_QUOTA, label_selector=MANAGED_BY_PAAS)).items) == 1

    lines = [
        "g, system:cluster-admins, role:admin",
        *(f"g, {each}, role:admin" for each in (f"{NAME}-them", f"{NAME}-us", "others")),
    ]
    policy = await paasing.until(CONFIG_MAP, "argocd-rbac-cm", f"{NAME}-argocd", lambda live: live.get("data"))
    assert policy["data"]["policy.csv"].splitlines() == lines

    await paasing.ready(NAME)
    await paasing.says(NAME, "HasErrors", "Reconciling", status="False")
    told = await paasing.says(NAME, "Warnings", "UnknownCapability", status="True")
    assert all(word in told["message"] for word in ("argocd", "'view'", "'others'"))
    config = documents["PaasConfig"]["metadata"]["name"]
    for type_ in ("Active", "Warnings"):
        await paasing.until(
            PAAS_CONFIG,
            config,
            "",
            lambda live, type_=type_: (
                {"True"} == {each["status"] for each in live.get("status", {}).get("conditions", ()) if each["type"] == type_}
            ),
            what=f"{type_} of the PaasConfig",
        )
