"""References between namespaces, as admission decides them from the AccessIndex (2.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import pytest_asyncio
from flux_policing import (
    APP1,
    BITNAMI,
    SHARED,
    TEAM1,
    TEAM2,
    TEAM3,
    TWO,
    Policing,
    admitted,
    denied,
    flux_object,
    helm_release,
    kustomization,
    reference,
)
from people import token
from times import FLUX_S, LEFT_TO_MAKE_WHOLE

from tenantry.model.flux.names import SOURCES
from tenantry.testing import eventually

pytestmark = LEFT_TO_MAKE_WHOLE


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def enforced(policing: Policing) -> None:
    """Profile multi-tenant, everything else default."""
    await policing.enforce()


@pytest.mark.check("f-1")
@pytest.mark.check("f-2")
async def test_local_references_need_no_grant(policing: Policing) -> None:
    """Without a namespace, with an empty one, and with its own."""
    for source in ("GitRepository//app1", APP1):
        await policing.admitted(kustomization("dev-team1", source, "app1"), user=TEAM1)
    empty = {"kind": "GitRepository", "name": "app1", "namespace": ""}
    await policing.admitted(kustomization("dev-team1", sourceRef=empty), user=TEAM1)


@pytest.mark.check("f-3")
async def test_a_grant_is_not_read_for_local_references(policing: Policing) -> None:
    """A source that is shared with another namespace only serves its own."""
    await policing.index({APP1: TWO})
    await policing.admitted(kustomization("dev-team1", "GitRepository//app1", "app1"), user=TEAM1)
    await policing.admitted(kustomization("dev-team1", APP1, "app1"), user=TEAM1)


@pytest.mark.check("f-4")
async def test_what_is_not_shared_is_denied(policing: Policing) -> None:
    """The message names the field and the source."""
    await policing.index()
    said = await policing.denied(kustomization("dev-team2", APP1, "app1"), user=TEAM2)
    assert f"spec.sourceRef: {APP1} is not shared with namespace dev-team2" in said


@pytest.mark.check("f-5")
@pytest.mark.check("f-6")
async def test_a_source_for_everybody_is_for_namespaces_without_labels_too(policing: Policing) -> None:
    """A selector without labels in the index is a star."""
    await policing.index({BITNAMI: "*"})
    await policing.admitted(helm_release("dev-team2", chart=BITNAMI, name="redis"), user=TEAM2)
    await policing.admitted(helm_release("dev-team3", chart=BITNAMI, name="redis"), user=TEAM3)


@pytest.mark.check("f-7")
async def test_an_empty_list_of_selectors_is_nobody(policing: Policing) -> None:
    """It has no entry in the index."""
    await policing.index()
    await policing.denied(kustomization("dev-team2", APP1), APP1, user=TEAM2)


@pytest.mark.check("f-8")
async def test_a_namespace_is_selected_by_its_name(policing: Policing) -> None:
    """The label that the API server sets is a label like others."""
    await policing.index({APP1: "kubernetes.io/metadata.name=dev-team2"})
    await policing.admitted(kustomization("dev-team2", APP1), user=TEAM2)
    await policing.denied(kustomization("dev-team3", APP1), APP1, user=TEAM3)


@pytest.mark.check("f-9")
async def test_a_selector_needs_all_of_its_pairs(policing: Policing) -> None:
    """A label that the platform adds opens, without a write of the index."""
    written = await policing.index({APP1: "env=prod,team=two"})
    body = kustomization("dev-team2", APP1)
    await policing.denied(body, APP1, user=TEAM2)
    await policing.labelled("dev-team2", env="prod")
    await until_admitted(policing, body, TEAM2)
    assert await policing.index_version() == written
    await policing.labelled("dev-team2", env=None)
    await until_denied(policing, body, TEAM2)


@pytest.mark.check("f-10")
async def test_one_of_several_selectors_is_enough(policing: Policing) -> None:
    """In any place."""
    for selectors in ("team=nine|team=two", "team=two|team=zero"):
        await policing.index({APP1: selectors})
        await policing.admitted(kustomization("dev-team2", APP1), user=TEAM2)
        await policing.denied(kustomization("dev-team1", "GitRepository/dev-team2/x"), user=TEAM1)


@pytest.mark.parametrize("entry", [5, True, ["*"], {"*": "*"}, {"team": "two"}, ""])
async def test_what_is_no_text_in_the_index_grants_nothing(policing: Policing, entry: Any) -> None:
    """The request is refused, by an error of the expression or as what is not shared; that of a good entry is not."""
    await policing.index({APP1: entry, BITNAMI: "team=two"})
    answer = await policing.create(kustomization("dev-team2", APP1), user=TEAM2)
    assert answer.status == (403 if entry == "" else 422), answer
    await policing.admitted(helm_release("dev-team2", chart=BITNAMI, name="redis"), user=TEAM2)


@pytest.mark.check("f-11")
async def test_values_are_compared_exactly(policing: Policing) -> None:
    """Upper case is another value; so is a part of one, and a longer one."""
    for selector in ("team=Two", "team=tw", "team=two2", "Team=two", "team="):
        await policing.index({APP1: selector})
        await policing.denied(kustomization("dev-team2", APP1), APP1, user=TEAM2)


@pytest.mark.check("f-16")
async def test_a_denial_does_not_say_whether_the_source_exists(policing: Policing) -> None:
    """It differs in nothing but the name."""
    await policing.index()
    await policing.made(flux_object("GitRepository", "flux-system", "shared", spec={"url": "https://x"}))
    there = await policing.create(kustomization("dev-team2", SHARED, "k"), user=TEAM2)
    nowhere = await policing.create(kustomization("dev-team2", "GitRepository/flux-system/nope", "k"), user=TEAM2)
    assert there.status == nowhere.status == 403
    assert there.message.replace("/shared", "/nope") == nowhere.message
    assert there.body == {**nowhere.body, "message": there.message, "details": there.body["details"]}
    told = str(nowhere.body["details"]).replace("/nope", "/shared")
    assert str(there.body["details"]) == told


@pytest.mark.check("f-17")
async def test_image_automation_needs_a_grant_to_write(policing: Policing) -> None:
    """The story of RFC-0002: a repository of the platform, shared with one namespace."""
    key = "GitRepository/flux-system/cluster-config"
    spec = {"interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "cluster-config", "namespace": "flux-system"}}
    body = flux_object("ImageUpdateAutomation", "dev-team1", "app1", spec=spec)
    await policing.index()
    await policing.denied(body, key, user=TEAM1)
    # An annotation grants both.
    named = {key: "kubernetes.io/metadata.name=dev-team1"}
    await policing.index(named, write=named)
    await policing.admitted(body, user=TEAM1)


@pytest.mark.check("f-19")
async def test_a_source_that_is_a_chart_needs_a_grant(policing: Policing) -> None:
    """OCIRepository by chartRef."""
    key = "OCIRepository/flux-system/chart"
    await policing.index()
    await policing.denied(helm_release("dev-team2", chart_ref=key, name="x"), f"spec.chartRef: {key}", user=TEAM2)
    await policing.index({key: TWO})
    await policing.admitted(helm_release("dev-team2", chart_ref=key, name="x"), user=TEAM2)


@pytest.mark.check("f-20")
async def test_no_grant_opens_alerts(policing: Policing) -> None:
    """Not even one for every source and every namespace."""
    kinds = (*SOURCES, "Kustomization", "HelmRelease")
    for name in ("*", "app1"):
        await policing.index({f"{kind}/dev-team2/{name}": "*" for kind in kinds})
        for kind in kinds:
            found = {"kind": kind, "name": name, "namespace": "dev-team2"}
            spec = {"eventSources": [found], "providerRef": {"name": "p"}}
            said = await policing.denied(flux_object("Alert", "dev-team1", "a", spec=spec), user=TEAM1)
            assert f"spec.eventSources: {kind}/dev-team2/{name}" in said


@pytest.mark.check("f-21")
async def test_receivers_are_local(policing: Policing) -> None:
    """One foreign resource among local ones is enough."""
    local: Any = {"kind": "GitRepository", "name": "a"}
    foreign = {**local, "namespace": "dev-team2"}
    spec: Any = {"type": "generic", "resources": [local, {**local, "namespace": "dev-team1"}]}
    await policing.admitted(flux_object("Receiver", "dev-team1", "r", spec=spec), user=TEAM1)
    spec = {"type": "generic", "resources": [local, foreign]}
    await policing.denied(flux_object("Receiver", "dev-team1", "r", spec=spec), "GitRepository/dev-team2/a", user=TEAM1)


@pytest.mark.check("f-23")
async def test_exempt_namespaces_may_name_everything(policing: Policing) -> None:
    """The platform's own consumers."""
    await policing.index()
    await policing.admitted(kustomization("flux-system", APP1))


@pytest.mark.check("f-69")
async def test_a_new_namespace_has_what_its_labels_give(policing: Policing) -> None:
    """Its first request is admitted, and the index is not written."""
    written = await policing.index({APP1: TWO})
    name = f"new-{token()}"
    user = await policing.tenant(name, {"team": "two"})
    await policing.admitted(kustomization(name, APP1), user=user)
    assert await policing.index_version() == written


@pytest.mark.check("f-86")
async def test_references_are_judged_whoever_asks(policing: Policing) -> None:
    """A cluster administrator, and Flux' own controller, which is one too, write for tenants."""
    await policing.index()
    controller = await policing.administrator("flux-system", "kustomize-controller")
    for user in ("", controller):
        await policing.denied(kustomization("dev-team1", SHARED), SHARED, user=user)
        await policing.admitted(kustomization("dev-team1"), user=user)


async def test_only_new_references_are_judged(policing: Policing) -> None:
    """An object that has become illegal may be edited, also to something legal; a second denied reference is refused."""
    await policing.index({APP1: TWO})
    body = await policing.made(kustomization("dev-team2", APP1))
    await policing.index()
    for change in (
        {"spec": {"interval": "5m", "path": "./x"}},
        {"metadata": {"finalizers": ["finalizers.fluxcd.io"], "annotations": {"a": "b"}}},
        {"spec": {"sourceRef": {"kind": "GitRepository", "name": "own", "namespace": None}}},
    ):
        admitted(await policing.merge(body, change, user=TEAM2))
    said = denied(await policing.merge(body, {"spec": {"sourceRef": {"name": "other"}}}, user=TEAM2))
    assert "GitRepository/dev-team1/other" in said
    admitted(await policing.delete(body, user=TEAM2))


@pytest.mark.check("f-91")
async def test_a_thousand_references_are_judged_within_the_budget(policing: Policing) -> None:
    """Each granted by 30 selectors of which the last matches; a refusal names ten; what is too much is never admitted."""
    keys = [f"GitRepository/dev-team1/source-number-{number}" for number in range(1000)]
    others = [f"team=number-{number}" for number in range(29)]
    await policing.index(dict.fromkeys(keys, "|".join([*others, "team=two"])))
    await policing.admitted(generator("dev-team2", *keys), user=TEAM2)

    said = await policing.denied(generator("dev-team3", *keys), user=TEAM3)
    assert said.count("is not shared with namespace dev-team3") == 10
    assert "; and 990 more" in said

    pairs = [f"env=prod,team={each.removeprefix('team=')}" for each in others]
    await policing.index(dict.fromkeys(keys, "|".join([*pairs, "kubernetes.io/metadata.name=dev-team2,team=two"])))
    await policing.admitted(generator("dev-team2", *keys), user=TEAM2)

    # Too much to judge: one source a thousand times, by selectors of which none or the last of 65 matches.
    key, *_ = keys
    many = [f"env=prod,team=number-{number}" for number in range(64)]
    await policing.index({key: "|".join(many)})
    for user, namespace in ((TEAM2, "dev-team2"), (TEAM3, "dev-team3")):
        answer = await policing.create(generator(namespace, *[key] * 1000), user=user)
        assert answer.status in (403, 422), answer.status
    await policing.index({key: "|".join([*many, "kubernetes.io/metadata.name=dev-team2,team=two"])})
    answer = await policing.create(generator("dev-team2", *[key] * 1000), user=TEAM2)
    assert answer.status == 422, answer.status
    assert "cost limit exceeded" in answer.message


async def until_admitted(policing: Policing, body: Any, user: str) -> None:
    """Wait until an object is admitted: policies hear of labels by a watch."""

    async def check() -> bool:
        return (await policing.create(body, user=user)).status == 201

    await eventually(check, within=FLUX_S, what="admitted")


async def until_denied(policing: Policing, body: Any, user: str) -> None:
    """Wait until an object is denied."""

    async def check() -> bool:
        return (await policing.create(body, user=user)).status == 403

    await eventually(check, within=FLUX_S, what="denied")


# Each source kind that a field of a consumer may name, with what makes a consumer of it (1.3).
MATRIX: list[tuple[str, Callable[[str], Any], str]] = [
    *(
        (f"{kind}/dev-team1/s", lambda key: kustomization("dev-team2", key), "read")
        for kind in ("GitRepository", "OCIRepository", "Bucket", "ExternalArtifact")
    ),
    *(
        (f"{kind}/dev-team1/s", lambda key: helm_release("dev-team2", chart=key), "read")
        for kind in ("HelmRepository", "GitRepository", "Bucket")
    ),
    *(
        (f"{kind}/dev-team1/s", lambda key: helm_release("dev-team2", chart_ref=key), "read")
        for kind in ("OCIRepository", "HelmChart", "ExternalArtifact")
    ),
    (
        "GitRepository/dev-team1/s",
        lambda key: flux_object("ImageUpdateAutomation", "dev-team2", spec={"interval": "1m", "sourceRef": reference(key)}),
        "write",
    ),
    (
        "ImageRepository/dev-team1/s",
        lambda key: flux_object(
            "ImagePolicy", "dev-team2", spec={"imageRepositoryRef": {"name": "s", "namespace": key.split("/")[1]}}
        ),
        "read",
    ),
    *(
        (f"{kind}/dev-team1/s", lambda key: generator("dev-team2", key), "read")
        for kind in ("Bucket", "GitRepository", "OCIRepository", "HelmChart", "ExternalArtifact")
    ),
]


def generator(namespace: str, *sources: str) -> Any:
    """An ArtifactGenerator of these sources."""
    found = [{"alias": f"a{number}", **reference(key)} for number, key in enumerate(sources)]
    return flux_object("ArtifactGenerator", namespace, spec={"sources": found, "artifacts": [{"name": "x"}]})


@pytest.mark.check("f-68")
@pytest.mark.parametrize("number", range(len(MATRIX)))
async def test_each_kind_of_source_needs_a_grant(policing: Policing, number: int) -> None:
    """Every pair of field and kind of source is denied without a grant, and admitted with one of its class."""
    key, consumer, access = MATRIX[number]
    other = "write" if access == "read" else "read"
    await policing.index(**{other: {key: TWO}})
    assert key in await policing.denied(consumer(key), user=TEAM2)
    await policing.index(**{access: {key: TWO}})
    await policing.admitted(consumer(key), user=TEAM2)
