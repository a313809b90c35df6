"""The AccessIndex: what carriers come to, and what is told of those that do not count (1.5, 2.1)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from flawless import Calm
from flux_crds import install_flux
from fluxing import SOURCES, TWO, Fluxing, access_from, annotated, served
from paasing import together
from people import token
from times import FLUX_S, LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.api.errors import Invalid
from tenantry.local.knative import Knative
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.names import ACCESS_FROM, ACCESS_INDEX, DEFAULT, SOURCE_GRANT, TENANCY_PROFILE, TENANT_LABEL
from tenantry.model.kinds import NAMESPACE
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

GIT = served("GitRepository")
CHART_OWNER = {"helm.toolkit.fluxcd.io/name": "b-c", "helm.toolkit.fluxcd.io/namespace": "a"}
IMITATIONS: list[dict[str, str]] = [
    {"team": "x|*"},
    {"team": "x,kubernetes.io/metadata.name=dev-team2"},
    {"a=b": "c"},
    {"team": "*"},
]


@pytest.fixture(scope="module")
def flux(admin: Api) -> Fluxing:
    """Owners of sources, and the platform."""
    return Fluxing(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """scope-binding with Flux' kinds, until the module ends."""
    await install_flux(admin)
    running = await flawlessly({}, functions=[SOURCES])
    await running.drain()
    return running


async def test_a_source_grant_shares_a_source(flux: Fluxing) -> None:
    """By name and by labels, with each class that it says, for as long as it and the source are there (f-12)."""
    home = await flux.home()
    named = await flux.grant(home, TWO)
    assert "there is no GitRepository app1" in await flux.valid(named, "SourceNotFound")
    assert await flux.granted(home) == {}
    await flux.source(home)
    await flux.grants(home, app1="team=two")
    await flux.valid(named)
    every = await flux.grant(
        home, {}, sourceSelector={"kind": "GitRepository", "matchLabels": {"shared": "yes"}}, access=["Write", "Read"]
    )
    await flux.valid(every, "SourceNotFound")
    await flux.source(home, "app2", labels={"shared": "yes"})
    await flux.grants(home, app1="team=two", app2=("*", "*"))
    await flux.valid(every)
    await flux.edit(GIT, "app1", home, ("add", "/metadata/labels", {"shared": "yes"}))
    await flux.grants(home, app1=("*", "*"), app2=("*", "*"))
    await flux.edit(SOURCE_GRANT, every["metadata"]["name"], home, ("replace", "/spec/access", ["Write"]))
    await flux.grants(home, app1=("team=two", "*"), app2=("", "*"))
    await flux.edit(GIT, "app2", home, ("remove", "/metadata/labels", None))
    await flux.grants(home, app1=("team=two", "*"))
    await flux.admin.delete(SOURCE_GRANT, every["metadata"]["name"], home)
    await flux.grants(home, app1="team=two")
    await flux.admin.delete(GIT, "app1", home)
    await flux.grants(home)
    await flux.valid(named, "SourceNotFound")


@pytest.mark.check("f-13")
async def test_a_source_grant_of_another_namespace_grants_nothing(flux: Fluxing) -> None:
    """It names a source that is not beside it, and says so."""
    owner, other = await flux.home(), await flux.home()
    await flux.source(owner)
    grant = await flux.grant(other, {})
    assert "in this namespace" in await flux.valid(grant, "SourceNotFound")
    assert await flux.granted(owner) == await flux.granted(other) == {}


async def test_each_carrier_counts_and_they_are_united(flux: Fluxing) -> None:
    """Field, annotation and SourceGrants; field and annotation grant both classes (1.5)."""
    home = await flux.home()
    both = {"accessFrom": access_from({"a": "field"}), "annotations": annotated({"b": "annotation"})}
    await flux.source(home, "repo", "HelmRepository", **both)
    for labels in ({"c": "grant"}, {"a": "field"}):
        await flux.grant(home, labels, sourceRef={"kind": "HelmRepository", "name": "repo"})
    await flux.has(home, {"HelmRepository/repo": ("a=field|b=annotation|c=grant", "a=field|b=annotation")})
    found = await flux.index()
    assert {"a", "b", "c"} <= set(found.label_keys)
    assert found.complete


async def test_an_image_repository_is_opened_by_its_field_alone(flux: Fluxing) -> None:
    """An annotation opens nothing, and is told (f-18)."""
    home = await flux.home()
    await flux.source(home, "annotated", "ImageRepository", annotations=annotated(TWO))
    await flux.source(home, "img", "ImageRepository", accessFrom=access_from(TWO))
    await flux.has(home, {"ImageRepository/img": ("team=two", "team=two")})
    (note,) = await eventually(lambda: flux.told(home, "annotated"), within=FLUX_S)
    assert "spec.accessFrom" in note


@pytest.mark.check("f-14")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ('{"matchLabels": {}}', 'unknown field "matchLabels"'),
        (json.dumps(access_from({"team": "x" * 200 * 1024})), "is more than 16,384 bytes"),
    ],
    ids=["broken", "shape", "size"],
)
async def test_a_bad_annotation_grants_nothing(system: Knative, flux: Fluxing, calm: Calm, text: str, words: str) -> None:
    """Nobody gains access, one Warning names the field, and a SourceGrant beside it counts; sweeps tell it no more."""
    home = await flux.home()
    await flux.source(home, annotations={ACCESS_FROM: text})
    notes = await eventually(lambda: flux.told(home), within=FLUX_S)
    assert await flux.granted(home) == {}
    await flux.grant(home, TWO)
    await flux.grants(home, app1="team=two")
    await calm(system)
    assert await flux.told(home) == notes
    (note,) = notes
    assert note.startswith(f"metadata.annotations[{ACCESS_FROM}]")
    assert words in note


async def test_an_illegal_selector_takes_nothing_from_the_others(system: Knative, flux: Fluxing, calm: Calm) -> None:
    """Of an annotation the legal one counts, and one Warning names the position of the other (f-15)."""
    home = await flux.home()
    await flux.source(home, annotations=annotated({"team": "a b"}, TWO))
    await flux.grants(home, app1=("team=two", "team=two"))
    await eventually(lambda: flux.told(home), within=FLUX_S)
    await calm(system)
    (note,) = await flux.told(home)
    assert "namespaceSelectors[0].matchLabels[team]" in note
    with pytest.raises(Invalid):
        await flux.grant(home, {"team": "a b"})


@pytest.mark.check("f-80")
@pytest.mark.parametrize("labels", IMITATIONS)
async def test_selectors_that_imitate_the_index_grant_nothing(flux: Fluxing, labels: dict[str, str]) -> None:
    """In an annotation and in a field they grant nothing, and are told; in a SourceGrant they are refused by 422."""
    home = await flux.home()
    await flux.source(home, annotations=annotated(labels))
    await flux.source(home, "repo", "HelmRepository", accessFrom=access_from(labels))
    for name in ("app1", "repo"):
        await eventually(lambda name=name: flux.told(home, name), within=FLUX_S)  # type: ignore[misc]
    assert await flux.granted(home) == {}
    with pytest.raises(Invalid) as caught:
        await flux.grant(home, labels)
    assert caught.value.status == 422


@pytest.mark.check("f-118")
async def test_a_chart_of_a_release_elsewhere_is_shared_by_its_name_alone(flux: Fluxing) -> None:
    """Its annotation and its labels came from there; of a HelmChart without owner labels all carriers count."""
    home = await flux.home()
    labels = {"shared": "yes"}
    await flux.source(home, "foreign", "HelmChart", labels={**CHART_OWNER, **labels}, annotations=annotated({}))
    await flux.source(home, "own", "HelmChart", labels=labels, annotations=annotated({"a": "annotation"}))
    await flux.grant(home, {"b": "selector"}, sourceSelector={"kind": "HelmChart", "matchLabels": labels})
    await flux.grant(home, {"c": "selector"}, sourceSelector={"kind": "HelmChart", "matchLabels": CHART_OWNER})
    own = {"HelmChart/own": ("a=annotation|b=selector", "a=annotation")}
    await flux.has(home, own)
    (note,) = await eventually(lambda: flux.told(home, "foreign"), within=FLUX_S)
    assert "sourceRef" in note
    assert await flux.granted(home) == {key: tuple(texts) for key, texts in own.items()}
    for name in ("foreign", "own"):
        await flux.grant(home, TWO, sourceRef={"kind": "HelmChart", "name": name})
    await flux.has(
        home,
        {"HelmChart/foreign": ("team=two", ""), "HelmChart/own": ("a=annotation|b=selector|team=two", "a=annotation")},
    )


async def test_labels_that_tenants_may_set_grant_nothing(flux: Fluxing) -> None:
    """The selector is told on the SourceGrant, and counts when the key is taken off the list (f-122)."""
    home = await flux.home()
    await flux.source(home)
    await flux.profile(tenantLabelKeys=["env", "example.com/*"])
    grant = await flux.grant(home, {"env": "prod"}, TWO, {"example.com/a": "b"})
    assert "namespaceSelectors[0].matchLabels has the key env" in await flux.valid(grant, "TenantSettableKey")
    await flux.grants(home, app1="team=two")
    await flux.profile(tenantLabelKeys=["example.com/*"])
    await flux.grants(home, app1="env=prod|team=two")
    await flux.valid(grant, "TenantSettableKey")
    await flux.admin.delete(TENANCY_PROFILE, DEFAULT)
    await flux.grants(home, app1="env=prod|example.com/a=b|team=two")
    await flux.valid(grant)


async def test_namespaces_of_a_tenant_are_in_the_index_where_that_counts(flux: Fluxing) -> None:
    """With allowIntraTenant, of tenants of two or more, and not where tenants set the label themselves (1.5)."""
    tenant = f"t-{token()}"
    frontend, backend, alone = [await flux.home(**{TENANT_LABEL: each}) for each in (tenant, tenant, f"{tenant}-alone")]

    async def tenants() -> dict[str, str]:
        found = (await flux.index()).tenants
        return {each: found[each] for each in (frontend, backend, alone) if each in found}

    async def becomes(expected: dict[str, str]) -> None:
        await eventually(tenants, lambda found: found == expected, within=FLUX_S, what=f"tenants are {expected}")

    assert await tenants() == {}
    await flux.profile(allowIntraTenant=True)
    await becomes({frontend: tenant, backend: tenant})
    await flux.label(backend, {TENANT_LABEL: None})
    await becomes({})
    await flux.label(backend, {TENANT_LABEL: tenant})
    await becomes({frontend: tenant, backend: tenant})
    await flux.profile(allowIntraTenant=True, tenantLabelKeys=["toolkit.fluxcd.io/*"])
    await becomes({})
    await flux.admin.delete(TENANCY_PROFILE, DEFAULT)
    await becomes({})


@pytest.mark.check("f-76")
async def test_a_grant_that_is_written_by_hand_goes(flux: Fluxing) -> None:
    """One that is added, one that is widened, and all of them taken away: the index says what carriers say."""
    home = await flux.home()
    await flux.source(home)
    await flux.grant(home, TWO)
    await flux.grants(home, app1="team=two")
    name = f"GitRepository/{home}/app1".replace("/", "~1")
    for edit in (
        ("add", f"/spec/read/GitRepository~1{home}~1other", "*"),
        ("replace", f"/spec/read/{name}", "*"),
        ("add", f"/spec/read/GitRepository~1{home}~1other", 5),  # which is no text
        ("replace", "/spec", {"complete": True, "read": {f"GitRepository/{home}/app1": "*"}}),
        ("replace", "/spec", {}),
    ):
        await flux.edit(ACCESS_INDEX, DEFAULT, "", edit)
        await flux.grants(home, app1="team=two")
    assert (await flux.index()).complete


async def test_a_missing_index_comes_back_as_it_was(flux: Fluxing) -> None:
    """Whole, by one creation (f-26)."""
    home = await flux.home()
    await flux.source(home)
    await flux.grant(home, TWO)
    await flux.grants(home, app1="team=two")
    before = await flux.get(ACCESS_INDEX, DEFAULT)
    await flux.admin.delete(ACCESS_INDEX, DEFAULT)
    uid = before["metadata"]["uid"]
    found = await flux.until(ACCESS_INDEX, DEFAULT, "", lambda found: found["metadata"]["uid"] != uid)
    assert found["spec"] == before["spec"]
    assert found["metadata"]["generation"] == 1


async def test_a_shipped_index_is_filled_and_stays_filled(flux: Fluxing) -> None:
    """Whoever applies the empty one again wipes no grants: it states no maps (3.6, f-73)."""
    home = await flux.home()
    await flux.source(home)
    await flux.grant(home, TWO)
    await flux.grants(home, app1="team=two")
    for _ in range(2):
        await flux.admin.apply(ACCESS_INDEX, obj(ACCESS_INDEX, DEFAULT, spec={}))
        assert (await flux.granted(home)) == {"GitRepository/app1": ("team=two", "")}


async def test_what_changes_nothing_writes_nothing(system: Knative, flux: Fluxing, calm: Calm) -> None:
    """A namespace that comes, its labels (f-69), status and intervals of sources: neither the index nor SourceGrants move."""
    home = await flux.home()
    await flux.source(home)
    grant = await flux.grant(home, TWO)
    await flux.valid(grant)
    await calm(system)

    async def now() -> list[Any]:
        index = await flux.get(ACCESS_INDEX, DEFAULT)  # which `calm` touches
        parts = [index["metadata"]["generation"], index["spec"], index.get("status")]
        return [*parts, await flux.get(SOURCE_GRANT, grant["metadata"]["name"], home)]

    before = await now()
    other = await flux.home(team="two")
    await flux.label(other, {"team": "three"})
    await flux.edit(GIT, "app1", home, ("add", "/spec/interval", "5m"))
    status = {"conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": token()}]}
    await flux.admin.apply(GIT, obj(GIT, "app1", home, status=status), subresource="status")
    await calm(system)
    assert await now() == before


@pytest.mark.check("f-79")
async def test_many_grants_at_once_are_all_in_the_index(system: Knative, flux: Fluxing, calm: Calm) -> None:
    """Two in one moment, a hundred in a second: fewer writes than grants; made in another order they are the same bytes."""
    home = await flux.home()
    names = [f"app{number:03}" for number in range(100)]

    async def share(several: list[str]) -> None:
        await together(
            *(
                flux.grant(home, TWO, {"name": name}, name=name, sourceRef={"kind": "GitRepository", "name": name})
                for name in several
            )
        )

    await together(*(flux.source(home, name) for name in names))
    await share(names[:2])
    await flux.grants(home, **{name: f"name={name}|team=two" for name in names[:2]})
    await calm(system)
    started = (await flux.get(ACCESS_INDEX, DEFAULT))["metadata"]["generation"]
    await share(names[2:])
    await flux.grants(home, **{name: f"name={name}|team=two" for name in names})
    await calm(system)
    first = await flux.get(ACCESS_INDEX, DEFAULT)
    assert first["metadata"]["generation"] - started < len(names) - 2
    for name in names:
        await flux.admin.delete(SOURCE_GRANT, name, home)
    await flux.grants(home)
    await share(names[::-1])
    await flux.grants(home, **{name: f"name={name}|team=two" for name in names})
    again = await flux.get(ACCESS_INDEX, DEFAULT)
    assert json.dumps(again["spec"]) == json.dumps(first["spec"])


async def test_grants_that_stay_are_there_all_the_time(flux: Fluxing) -> None:
    """While 5 grants become 95 and 5 again, in every version of the index between: none that stays lacks, none comes that is
    not granted (f-78)."""
    home = await flux.home()
    names = [f"app{number:02}" for number in range(95)]
    await together(*(flux.source(home, name) for name in [*names, "never"]))

    def grant(name: str) -> Any:
        return flux.grant(home, TWO, name=name, sourceRef={"kind": "GitRepository", "name": name})

    await together(*map(grant, names[:5]))
    await flux.grants(home, **dict.fromkeys(names[:5], "team=two"))
    version = (await flux.get(ACCESS_INDEX, DEFAULT))["metadata"]["resourceVersion"]
    await together(*map(grant, names[5:]))
    await flux.grants(home, **dict.fromkeys(names, "team=two"))
    await together(*(flux.admin.delete(SOURCE_GRANT, name, home) for name in names[5:]))
    await flux.grants(home, **dict.fromkeys(names[:5], "team=two"))
    stays, never = {f"GitRepository/{home}/{name}" for name in names[:5]}, f"GitRepository/{home}/never"
    seen = 0
    async for _, found in flux.admin.watch(ACCESS_INDEX, resource_version=version, timeout_s=1.0):
        if "spec" in found:
            entries = AccessEntries.of(found)
            assert stays <= entries.granted
            assert never not in entries.granted
            seen += 1
    assert seen >= 2


async def test_a_namespace_that_ends_takes_its_grants_along(system: Knative, flux: Fluxing) -> None:
    """Also one with mistakes, of which nothing can be told any more; the others are served meanwhile."""
    home, other = await flux.home(), await flux.home()
    await flux.source(home, annotations=annotated(TWO, {"team": "a b"}))
    await flux.edit(GIT, "app1", home, ("add", "/metadata/finalizers", ["example.com/stays"]))
    await flux.grants(home, app1=("team=two", "team=two"))
    await flux.admin.delete(NAMESPACE, home)
    await flux.source(other, annotations=annotated(TWO))
    await flux.grants(other, app1=("team=two", "team=two"))
    await flux.edit(GIT, "app1", home, ("remove", "/metadata/finalizers", None))
    await flux.gone(home)
    await flux.grants(home)
    await system.drain()
