"""Locks and admission make the same decision (2.1)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from admitting import DRY, Admitting
from flawless import Calm
from flux_crds import install_flux
from flux_locking import LOCKS, FluxLocks, has_lock, named_elsewhere
from fluxing import SOURCES, served
from times import LEFT_TO_MAKE_WHOLE, POLICY_S

from tenantry.api import Api
from tenantry.cli.profile.applied import apply_profile
from tenantry.local.knative import Knative
from tenantry.local.policies import until_in_force
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

NUMBER = 200
LABELS = {"team": ("one", "two", "three"), "env": ("prod", "dev"), "tier": ("a", "b")}
READS, WRITES = "Kustomization", "ImageUpdateAutomation"


def labels_of_chance(chance: random.Random, most: int) -> dict[str, str]:
    """Some labels of those that there are."""
    return {key: chance.choice(LABELS[key]) for key in chance.sample(sorted(LABELS), chance.randint(0, most))}


@pytest.mark.check("f-93")
async def test_what_admission_would_refuse_is_locked_and_nothing_else(
    flawlessly: Callable[..., Awaitable[Knative]], admin: Api, admitting: Admitting, calm: Calm
) -> None:
    """200 random grants and labels, of sources that are read and written, in both classes."""
    flux, chance = FluxLocks(admin), random.Random(93)
    await install_flux(admin)
    system = await flawlessly({}, functions=[SOURCES, LOCKS])
    await flux.profile(profile="single-tenant")
    homes = [await flux.home(**labels_of_chance(chance, 3)) for _ in range(20)]
    owner = await flux.home()
    made: list[Object] = []
    for number in range(NUMBER):
        name = f"s{number:03}"
        await flux.source(owner, name)
        if chance.random() < 0.9:  # 2.1, row 6: some have no carrier
            selectors = [labels_of_chance(chance, 2) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
            access = chance.choice((["Read"], ["Write"], ["Read", "Write"]))
            await flux.grant(owner, *selectors, sourceRef={"kind": "GitRepository", "name": name}, access=access)
        kind = chance.choice((READS, READS, WRITES))
        spec = named_elsewhere(kind, owner)
        spec["sourceRef"]["name"] = name
        made.append(await flux.consumer(chance.choice(homes), kind, spec=spec))
    await calm(system)
    profile = Profile.of(await flux.profile())
    await apply_profile(admin, profile, prune=True)
    await until_in_force(admin)
    await calm(system)

    async def refused(consumer: Object) -> bool:
        kind, namespace = served(consumer["kind"]), consumer["metadata"]["namespace"]
        body = obj(kind, f"{consumer['metadata']['name']}-again", namespace, spec=consumer["spec"])
        answer = await admitting.ask("POST", kind.path(namespace), body, query=DRY)
        assert answer.status in (201, 403), answer
        return answer.status == 403

    async def states(ask: Callable[[Object], Awaitable[bool]]) -> list[bool]:
        return list(await asyncio.gather(*map(ask, made)))

    async def is_locked(consumer: Object) -> bool:
        return has_lock(await flux.now(consumer))

    answers = await states(refused)
    locked: Any = await eventually(lambda: states(is_locked), lambda found: found == answers, within=POLICY_S, what="agree")
    assert locked == answers
    assert NUMBER / 5 < sum(answers) < NUMBER * 4 / 5
