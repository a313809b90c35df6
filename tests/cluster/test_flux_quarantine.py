"""Quarantine: an object with a denied reference is stored suspended and marked, by a mutation before the validation (2.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from admitting import Admitting
from flux_cases import BY_KIND, CONSUMER_KINDS, consumer
from flux_policing import APP1, TEAM2, TWO, Policing, admitted, denied, kustomization
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.install import INSTALL_MANAGER, install
from tenantry.model.config import Config
from tenantry.model.flux.names import ACCESS_DENIED, LOCK_FINALIZER, LOCKED, SUSPENDED_BY_LOCK
from tenantry.model.kinds import ADMISSION_MUTATION, Object, annotations_of, finalizers_of

pytestmark = LEFT_TO_MAKE_WHOLE

FLUX_FINALIZER = "finalizers.fluxcd.io"


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def quarantining(policing: Policing) -> None:
    """onDenied: Quarantine, and nothing is shared."""
    await policing.enforce(onDenied="Quarantine")
    await policing.index()


def is_stopped(body: Object) -> bool:
    stop = BY_KIND[body["kind"]].stop
    if stop.field:
        return body["spec"].get("suspend") is True
    return annotations_of(body).get(stop.annotation) == stop.value


def quarantined(body: Object, *, by_lock: bool) -> None:
    """Stopped, marked, with our finalizer, and marked as ours if it is."""
    assert is_stopped(body)
    assert annotations_of(body)[LOCKED] == ACCESS_DENIED
    assert list(finalizers_of(body)).count(LOCK_FINALIZER) == 1
    assert (annotations_of(body).get(SUSPENDED_BY_LOCK) == "true") == by_lock


@pytest.mark.check("f-103")
@pytest.mark.parametrize("kind", CONSUMER_KINDS)
async def test_a_denied_reference_is_quarantined(policing: Policing, kind: str) -> None:
    """Whatever its author says about suspension; what is allowed is stored as it came; and an update is quarantined, too."""
    stop = BY_KIND[kind].stop
    for stopped in (None, False, True):
        body = consumer(kind, "dev-team2", other="dev-team1")
        if stop.field and stopped is not None:
            body["spec"]["suspend"] = stopped
        elif stopped:
            body["metadata"]["annotations"] = {stop.annotation: stop.value}
        stored = await policing.made(body, user=TEAM2)
        quarantined(stored, by_lock=not stopped)

    local = consumer(kind, "dev-team2")
    stored = await policing.made(local, user=TEAM2)
    assert annotations_of(stored) == {}
    assert finalizers_of(stored) == ()
    assert not is_stopped(stored)
    assert stored["spec"] == local["spec"]
    changed = consumer(kind, "dev-team2", other="dev-team1")["spec"]
    updated = admitted(await policing.merge(local, {"spec": changed}, user=TEAM2, dry=False))
    quarantined(updated, by_lock=True)


@pytest.mark.check("f-103")
async def test_what_is_granted_is_stored_as_it_came(policing: Policing) -> None:
    """Neither suspended nor marked."""
    await policing.index({APP1: TWO})
    body = kustomization("dev-team2", APP1)
    stored = await policing.made(body, user=TEAM2)
    assert annotations_of(stored) == {}
    assert finalizers_of(stored) == ()
    assert stored["spec"] == body["spec"]
    await policing.index()


@pytest.mark.check("f-104")
async def test_a_parent_that_states_suspend_false_comes_to_rest(policing: Policing) -> None:
    """By server-side apply it is made once; what is applied again writes nothing, though it says something else."""
    body = kustomization("dev-team2", APP1, suspend=False)
    stored = [admitted(await policing.apply(body, user=TEAM2)) for _ in range(4)]
    for each in stored:
        quarantined(each, by_lock=True)
    versions = [each["metadata"]["resourceVersion"] for each in stored]
    assert versions[1:] == [versions[1]] * 3


async def test_a_quarantined_object_stays_so(policing: Policing) -> None:
    """The marks and the suspension come back whatever is written; other finalizers are not taken off; a person may free it."""
    body = kustomization("dev-team2", APP1)
    body["metadata"]["finalizers"] = [FLUX_FINALIZER]
    await policing.made(body, user=TEAM2)
    free: Object = {
        "metadata": {"annotations": {LOCKED: None, SUSPENDED_BY_LOCK: None}, "finalizers": [FLUX_FINALIZER]},
        "spec": {"suspend": False},
    }
    local = {"spec": {"sourceRef": {"name": "own", "namespace": None}}}
    for change in (free, local, {"spec": {"suspend": None}}, {"metadata": {"annotations": {SUSPENDED_BY_LOCK: "false"}}}):
        quarantined(admitted(await policing.merge(body, change, user=TEAM2)), by_lock=True)
    denied(await policing.merge(body, {"metadata": {"finalizers": [LOCK_FINALIZER]}}, user=TEAM2), "lock-guard")
    freed = admitted(await policing.merge(body, {**free, "spec": {"suspend": None, **local["spec"]}}))
    assert annotations_of(freed) == {}
    assert "suspend" not in freed["spec"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def without_mutations() -> AsyncIterator[Policing]:
    """A server that lists mutations and does not mutate; policies of the default profile but for Quarantine."""
    off = "--disable-admission-plugins=MutatingAdmissionPolicy"
    with ControlPlane(ephemeral=True, api_server_args=[off]) as plane:
        async with await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=plane.kubeconfig) as api:
            await install(api, ["scope-binding"], Config(), lambda line: None)
        admin = await Api.connect(field_manager="tests-admin", kubeconfig=plane.kubeconfig)
        async with admin, Admitting(admin, plane) as admitting:
            found = Policing(admin, admitting)
            await found.furnish()
            await found.enforce(mutated=False, onDenied="Quarantine")
            yield found


@pytest.mark.check("f-105")
@pytest.mark.check("f-138")
async def test_a_server_that_does_not_mutate_refuses(without_mutations: Policing) -> None:
    """What would be quarantined is denied, and what would be filled is never stored without an account."""
    served = await without_mutations.admin.served(ADMISSION_MUTATION.api_version, ADMISSION_MUTATION.kind)
    assert served is not None
    await without_mutations.denied(kustomization("dev-team2", APP1, "app1"), APP1, user=TEAM2)
    for name in (None, ""):
        body = kustomization("dev-team2", serviceAccountName=name)
        await without_mutations.denied(body, "spec.serviceAccountName", user=TEAM2)
    await without_mutations.admitted(kustomization("dev-team2"), user=TEAM2)
