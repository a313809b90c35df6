"""The list of sources that a namespace may use: what admission would admit, for who asks for it (2.8)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from commanding import commanding
from flawless import Calm
from flux_policing import TEAM2, Policing, admitted, flux_object, helm_release, kustomization, reference
from fluxing import SOURCES, TWO, Fluxing, access_from, annotated
from times import FLUX_S

from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.flux.names import SHOW_SOURCES, SHOWN_MARK, SOURCE_GRANT, SOURCES_SHOWN
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj

HOME, OWNER = "dev-team2", "dev-team1"
KINDS = ("Bucket", "ExternalArtifact", "GitRepository", "HelmChart", "HelmRepository", "OCIRepository")
Lists = dict[str, list[str]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(policing: Policing, flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """scope-binding, with the policies of a profile for several tenants."""
    await policing.enforce()
    return await flawlessly({}, functions=[SOURCES])


@pytest.fixture
def flux(policing: Policing) -> Fluxing:
    """Owners of sources."""
    return Fluxing(policing.admin)


def consumer(key: str, *, writes: bool = False) -> Object:
    """What of dev-team2 would use a source."""
    kind, namespace, name = key.split("/")
    if writes:
        spec = {"interval": "1m", "sourceRef": reference(key)}
        return flux_object("ImageUpdateAutomation", HOME, spec=spec)
    if kind == "ImageRepository":
        return flux_object("ImagePolicy", HOME, spec={"imageRepositoryRef": {"name": name, "namespace": namespace}})
    if kind == "HelmRepository":
        return helm_release(HOME, chart=key)
    return helm_release(HOME, chart_ref=key) if kind == "HelmChart" else kustomization(HOME, key)


async def may(policing: Policing, keys: list[str]) -> Lists:
    """The sources that requests of the tenant are admitted for, by what they would do."""

    async def answers(several: list[str], *, writes: bool) -> list[str]:
        asked = await asyncio.gather(*(policing.create(consumer(each, writes=writes), user=TEAM2) for each in several))
        assert {each.status for each in asked} <= {201, 403}
        return sorted(key for key, each in zip(several, asked, strict=True) if each.status == 201)

    pushed = [each for each in keys if each.startswith("GitRepository/")]
    return {"read": await answers(keys, writes=False), "write": await answers(pushed, writes=True)}


async def shown(policing: Policing, namespace: str = HOME, user: str = TEAM2) -> Lists | None:
    """The list of a namespace, as its tenant reads it; None where there is none."""
    answer = await policing.ask("GET", CONFIG_MAP.path(namespace, SOURCES_SHOWN), user=user)
    if answer.status == 404:
        return None
    assert set(admitted(answer)["data"]) == {"read", "write"}
    return {key: text.splitlines() for key, text in answer.body["data"].items()}


async def comes_to(policing: Policing, wanted: Lists | None) -> None:
    """Wait until the list is this."""
    await eventually(lambda: shown(policing), lambda found: found == wanted, within=FLUX_S, what=f"shown: {wanted}")


@pytest.mark.check("f-127")
async def test_a_namespace_is_shown_what_it_may_use(
    policing: Policing, flux: Fluxing, system: Knative, calm: Calm, control_plane: ControlPlane
) -> None:
    """Exactly what is admitted, sorted; follows grants, revocations and labels; it is put back; it goes with the annotation."""
    keys = [f"{kind}/{OWNER}/{name}" for kind in KINDS for name in ("none", "other", "shared")] + [f"GitRepository/{HOME}/own"]
    await asyncio.gather(
        *(flux.source(OWNER, name, kind, labels={"name": name}) for kind in KINDS for name in ("none", "other", "shared")),
        *(
            flux.source(OWNER, name, "ImageRepository", accessFrom=access_from(who))
            for name, who in (("i", TWO), ("j", {"team": "three"}))
        ),
        flux.source(HOME, "own", annotations=annotated(TWO)),
    )
    keys += [f"ImageRepository/{OWNER}/{name}" for name in "ij"]
    for kind in KINDS:
        for name, who in (("shared", TWO), ("other", {"team": "three"})):
            await flux.grant(OWNER, who, sourceSelector={"kind": kind, "matchLabels": {"name": name}})
    home = obj(NAMESPACE, HOME)
    for namespace in (HOME, OWNER):
        assert await shown(policing, namespace, "") is None
    admitted(await policing.merge(home, {"metadata": {"annotations": {SHOW_SOURCES: "true"}}}, user=TEAM2, dry=False))
    shared = [f"{kind}/{OWNER}/shared" for kind in KINDS]
    granted = sorted([*shared, f"ImageRepository/{OWNER}/i"])
    await comes_to(policing, {"read": granted, "write": []})
    foreign = [each for each in keys if each.split("/")[1] != HOME]
    assert await may(policing, foreign) == {"read": granted, "write": []}

    both = await flux.grant(OWNER, {}, name="all", sourceRef={"kind": "GitRepository", "name": "none"}, access=["Read", "Write"])
    none = f"GitRepository/{OWNER}/none"
    await comes_to(policing, {"read": sorted([*granted, none]), "write": [none]})
    await policing.labelled(HOME, team="three")
    others = sorted([*(f"{kind}/{OWNER}/other" for kind in KINDS), none, f"ImageRepository/{OWNER}/j"])
    await comes_to(policing, {"read": others, "write": [none]})
    await eventually(
        lambda: may(policing, foreign), lambda found: found == {"read": others, "write": [none]}, within=FLUX_S, what="admitted"
    )
    await policing.labelled(HOME, team="two")
    await policing.admin.delete(SOURCE_GRANT, both["metadata"]["name"], OWNER)
    await comes_to(policing, {"read": granted, "write": []})

    stored = obj(CONFIG_MAP, SOURCES_SHOWN, HOME)
    edits: list[Object] = [
        {"data": {"read": none}},
        {"data": None},
        {"metadata": {"labels": {SHOWN_MARK: None}}, "data": {"write": none}},
        {"immutable": True, "data": {"read": ""}},
    ]
    for edit in edits:
        admitted(await policing.merge(stored, edit, user=TEAM2, dry=False))
        await comes_back(policing, {"read": granted, "write": []})
    admitted(await policing.delete(stored, user=TEAM2, dry=False))
    await comes_back(policing, {"read": granted, "write": []})

    run = commanding(control_plane)
    code, output, errors = await run("sources", "-n", HOME)
    assert (code, errors) == (0, "")
    assert output.splitlines() == [f"read {each}" for each in granted]
    await calm(system)
    lists = (await policing.admin.list(CONFIG_MAP, field_selector=f"metadata.name={SOURCES_SHOWN}")).items
    assert [each["metadata"]["namespace"] for each in lists] == [HOME]

    admitted(await policing.merge(home, {"metadata": {"annotations": {SHOW_SOURCES: None}}}, user=TEAM2, dry=False))
    await comes_to(policing, None)


async def comes_back(policing: Policing, wanted: Lists) -> None:
    """Wait until the list is there again, with its mark and open to changes."""

    async def found() -> bool:
        answer = await policing.ask("GET", CONFIG_MAP.path(HOME, SOURCES_SHOWN), user=TEAM2)
        body = answer.body
        if answer.status != 200 or "immutable" in body or SHOWN_MARK not in (body["metadata"].get("labels") or {}):
            return False
        return {key: text.splitlines() for key, text in (body.get("data") or {}).items()} == wanted

    await eventually(found, within=FLUX_S, what="put back")
