"""Each reason that Paas, PaasNS and PaasConfigs can have: caused, told by condition and Event, mended, and over (1.4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import chain

import pytest
import pytest_asyncio
from flawless import flawless
from handing_over import PLACE, HandingOver
from paasing import CONFIG_NAME, make_roles, make_world, paas_name
from people import CORE_EVENT
from telling import NS, PLAIN, SERVED, Reason, Telling, plainly_configured
from times import LEFT_TO_MAKE_WHOLE

from namespace_registration.paas_config.report import WARNING_REASONS as CONFIG_WARNINGS
from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import NAMESPACE, Kind, Object
from tenantry.model.names import ADOPT
from tenantry.model.paas.names import PAAS, PAAS_CONFIG, PAAS_NS
from tenantry.model.paas.status import ERRORS, WARNING_REASONS
from tenantry.testing import eventually
from tenantry.testing.forks import Forks
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

FUNCTIONS = ["namespace-registration", "rbac-aggregation", "scope-binding", "release-provisioning"]


@pytest.fixture(scope="module")
def paasing(admin: Api) -> HandingOver:
    """Authors of Paas and the administrators."""
    return HandingOver(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(
    request: pytest.FixtureRequest,
    control_plane: ControlPlane,
    forks: Forks,
    tmp_path_factory: pytest.TempPathFactory,
    paasing: HandingOver,
) -> AsyncIterator[Knative]:
    """All functions that have a part in Paas in a world, without the policies that refuse what they have to bear."""
    await make_world(paasing.admin, request.param)
    await make_roles(paasing.admin)
    if await paasing.admin.get(NAMESPACE, PLACE) is None:
        await paasing.admin.create(NAMESPACE, obj(NAMESPACE, PLACE))
    folder = tmp_path_factory.mktemp("told")
    options = {"functions": FUNCTIONS, "spawn": forks.spawn, "without": ["all"]}
    async with Knative(control_plane.kubeconfig, folder, config={}, **options) as running, flawless(running):
        await plainly_configured(paasing)
        yield running


def test_every_reason_is_here() -> None:
    """Those of Paas and PaasNS, and those of PaasConfigs; what an Event alone tells is told below."""
    for kinds, warns, wanted in (
        ((PAAS, PAAS_NS), False, ERRORS),
        ((PAAS, PAAS_NS), True, WARNING_REASONS),
        ((PAAS_CONFIG,), True, CONFIG_WARNINGS),
    ):
        assert {each.reason for each in chain(PLAIN, SERVED) if each.on in kinds and each.warns == warns} == set(wanted)


@pytest.mark.check("p-159")
@pytest.mark.parametrize(
    ("system", "reason"),
    [pytest.param(world, each, id=f"{world}-{each}") for world, all_ in (("plain", PLAIN), ("argo", SERVED)) for each in all_],
    indirect=["system"],
    scope="module",
)
async def test_what_is_wrong_is_told_until_it_is_mended(system: Knative, paasing: HandingOver, reason: Reason) -> None:
    """Condition and Event name the object and the fix; then the condition says that all is well, and an Event that it healed."""
    telling = Telling(paasing, system, paas_name())
    name, namespace = {PAAS: (telling.name, ""), PAAS_NS: (NS, f"{telling.name}-a"), PAAS_CONFIG: (CONFIG_NAME, "")}[reason.on]
    types = ("Warnings",) if reason.warns else ("HasErrors",) if reason.on == PAAS_CONFIG else ("Ready", "HasErrors")
    words, fix = (each.format(name=telling.name) for each in (reason.words, reason.fix))
    where = {"kind": reason.on, "namespace": namespace}
    before = await _healed(paasing, reason.on, name, namespace)
    try:
        async with reason.cause(telling):
            for type_ in types:
                told = await paasing.says(name, type_, reason.reason, words, status=_bad(type_), **where)
                assert _has(told["message"], words, fix)
            await eventually(
                lambda: paasing.warnings(name, kind=reason.on, namespace=namespace or "default"),
                lambda told: any(each["reason"] == reason.reason and _has(each["message"], words, fix) for each in told),
                within=paasing.eventually_s,
                what=f"a Warning {reason.reason} that names {words} and {fix}",
            )
        for type_ in types:
            await paasing.says(name, type_, "Reconciling", status=_good(type_), **where)
        await eventually(
            lambda: _healed(paasing, reason.on, name, namespace),
            lambda found: found - before,
            within=paasing.eventually_s,
            what=f"Healed on {name}",
        )
    finally:
        await paasing.admin.delete(PAAS, telling.name)
        await plainly_configured(paasing)
    await paasing.away(PAAS, telling.name)


@pytest.mark.check("p-159")
@pytest.mark.parametrize("system", ["argo"], indirect=True, scope="module")
async def test_a_namespace_whose_paas_is_gone_is_told_until_it_is_handed_on(system: Knative, paasing: HandingOver) -> None:
    """By Event alone: a namespace has no condition of ours."""
    telling = Telling(paasing, system, paas_name())
    await telling.declare()
    await paasing.ready(telling.name)
    services = [each for name, each in system.functions.items() if name.startswith(FUNCTIONS[0])]
    for each in services:
        await each.stop()
    await paasing.admin.delete(PAAS, telling.name)
    await paasing.edit(PAAS, telling.name, "", ("remove", "/metadata/finalizers", None))
    await paasing.away(PAAS, telling.name)
    for each in services:
        await each.start()
    await telling.sweep(FUNCTIONS[0])
    said = await paasing.warned(f"{telling.name}-a", "PaasGone")
    assert f"namespace {telling.name}-a" in said
    assert f"{ADOPT}=<paas>" in said
    await telling.declare()
    await paasing.label(f"{telling.name}-a", {ADOPT: telling.name}, "annotations")
    await paasing.ready(telling.name)
    assert await _healed(paasing, NAMESPACE, f"{telling.name}-a", "")
    await paasing.leave(telling.name)


def _has(text: str, *parts: str) -> bool:
    return all(each in text for each in parts)


def _bad(type_: str) -> str:
    return "False" if type_ == "Ready" else "True"


def _good(type_: str) -> str:
    return "True" if type_ == "Ready" else "False"


async def _healed(paasing: HandingOver, kind: Kind, name: str, namespace: str) -> set[str]:
    """The Events that say of an object that what was told of it is over."""
    fields = f"involvedObject.kind={kind.kind},involvedObject.name={name},reason=Healed"
    found: list[Object] = (await paasing.admin.list(CORE_EVENT, namespace or "default", field_selector=fields)).items
    return {each["metadata"]["uid"] for each in found}
