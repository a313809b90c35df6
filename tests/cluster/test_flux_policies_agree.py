"""Admission decides what the table of 2.1 says, from what owners wrote to the answer (2.1)."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest
from flawless import Calm
from flux_locking import named_elsewhere
from flux_model import SETTABLE, Model, ModelSource, labels_of_chance, source_of_chance
from flux_policing import FLUX, Policing, flux_object
from fluxing import SOURCES, Fluxing
from people import token
from times import LEFT_TO_MAKE_WHOLE, POLICY_S

from tenantry.local.knative import Knative
from tenantry.model.flux.names import ACCESS_FROM, TENANT_LABEL
from tenantry.model.kinds import NAMESPACE, Object, labels_of
from tenantry.testing import eventually

pytestmark = LEFT_TO_MAKE_WHOLE

NUMBER = 200
AT_ONCE = 20
READ_KINDS = ("GitRepository", "OCIRepository", "Bucket", "HelmRepository")


class Question(NamedTuple):
    """A consumer that somebody wants to make: of a class, in a namespace, of a source."""

    access: str
    home: str
    source: ModelSource

    def body(self) -> Object:
        """The consumer: a HelmRelease of a HelmRepository, else a Kustomization, or an ImageUpdateAutomation that writes."""
        source = self.source
        named = {"kind": source.kind, "name": source.name, "namespace": source.namespace}
        if self.access == "local":
            depends = [{"name": source.name, "namespace": source.namespace}]
            return flux_object("Kustomization", self.home, spec={**named_elsewhere("Kustomization", ""), "dependsOn": depends})
        if self.access == "write":
            return flux_object("ImageUpdateAutomation", self.home, spec={"interval": "1m", "sourceRef": named})
        if source.kind == "HelmRepository":
            chart = {"spec": {"chart": "x", "sourceRef": named}}
            return flux_object("HelmRelease", self.home, spec={"interval": "1m", "chart": chart})
        return flux_object("Kustomization", self.home, spec={**named_elsewhere("Kustomization", ""), "sourceRef": named})


async def declare(flux: Fluxing, source: ModelSource) -> None:
    """Make a source with what its owner says."""
    if not source.exists:
        return
    said = {"namespaceSelectors": list(source.both)} if source.both is not None else None
    annotations, spec = {}, {}
    if source.kind == "HelmRepository" and said is not None:
        spec = {"accessFrom": said}
    elif said is not None:
        annotations = {ACCESS_FROM: "{" if source.broken else json.dumps(said)}
    await flux.source(source.namespace, source.name, source.kind, annotations=annotations, **spec)
    for classes, selectors in source.granted:
        await flux.grant(
            source.namespace,
            sourceRef={"kind": source.kind, "name": source.name},
            access=[each.capitalize() for each in classes],
            accessFrom={"namespaceSelectors": list(selectors)},
        )


@pytest.mark.check("f-92")
async def test_admission_decides_what_the_table_says(
    policing: Policing, flawlessly: Callable[..., Awaitable[Knative]], calm: Calm
) -> None:
    """200 random sources, carriers and labels: every answer is that of the model."""
    chance, flux = random.Random(92), Fluxing(policing.admin)
    system = await flawlessly({}, functions=[SOURCES])
    await policing.enforce(allowIntraTenant=True, tenantLabelKeys=[SETTABLE])
    tenants = [f"tenant-{token()}" for _ in range(2)]
    homes = [FLUX]
    for number in range(20):
        tenant = {TENANT_LABEL: tenants[number % 2]} if number < 6 else {TENANT_LABEL: ""} if number == 6 else {}
        homes.append(await flux.home(**labels_of_chance(chance, 4), **tenant))
    owners = [*homes[:4], await flux.home()]
    sources = [
        source_of_chance(chance, chance.choice(READ_KINDS), chance.choice(owners), f"s{number:03}") for number in range(NUMBER)
    ]
    listed = (await policing.admin.list(NAMESPACE)).items
    model = Model({FLUX, "kube-system"}, TENANT_LABEL, {each["metadata"]["name"]: labels_of(each) for each in listed})
    for at in range(0, NUMBER, AT_ONCE):
        await asyncio.gather(*(declare(flux, each) for each in sources[at : at + AT_ONCE]))
    await calm(system)

    questions = []
    for source in sources:
        classes = ("read", "read", "write", "local") if source.kind == "GitRepository" else ("read", "read", "read")
        several = chance.sample(homes, len(classes))
        questions += [Question(access, home, source) for access, home in zip(classes, several, strict=True)]
        if chance.random() < 0.1:
            questions.append(Question(classes[-1], source.namespace, source))

    async def answer(question: Question) -> bool:
        found = await policing.create(question.body())
        assert found.status in (201, 403), found
        if found.status == 403:
            assert found.body["reason"] == "Forbidden"
            assert f"/{question.source.namespace}/{question.source.name} is " in found.message
        return found.status == 201

    async def differing() -> list[Question]:
        found: list[Question] = []
        for at in range(0, len(questions), AT_ONCE):
            asked = questions[at : at + AT_ONCE]
            answers = await asyncio.gather(*map(answer, asked))
            found += [
                each
                for each, allowed in zip(asked, answers, strict=True)
                if allowed != model.allows(each.access, each.source, each.home)
            ]
        return found

    await eventually(differing, lambda found: found == [], within=POLICY_S, what="admission and model agree")
    expected = [model.allows(each.access, each.source, each.home) for each in questions]
    assert len(expected) / 6 < sum(expected) < len(expected) * 5 / 6
