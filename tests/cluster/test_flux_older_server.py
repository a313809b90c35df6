"""Where discovery shows no mutations, what would be filled is required, and what would be quarantined is refused (2.2, 2.3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from admitting import Admitting
from flawless import flawless
from flux_locking import LOCKS
from flux_policing import APP1, FLUX, TEAM1, TEAM2, Policing, helm_release, kustomization
from fluxing import Fluxing
from older_server import WithoutMutations
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.flux.names import DEFAULT, TENANCY_PROFILE
from tenantry.model.flux.policies.parts import LABELS
from tenantry.model.kinds import ADMISSION_MUTATION, ADMISSION_MUTATION_BINDING, ADMISSION_POLICY, Object
from tenantry.testing.forks import Forks
from tenantry.testing.proxy import FaultProxy

pytestmark = [LEFT_TO_MAKE_WHOLE, pytest.mark.no_policies]
MINE = ",".join(f"{key}={value}" for key, value in LABELS.items())


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def policing(
    control_plane: ControlPlane, admitting: Admitting, proxy: FaultProxy, forks: Forks, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Policing]:
    """An administrator and lock-enforcement, who see the older server; tenants ask the server itself."""
    older = WithoutMutations()
    proxy.faults = [older]
    kubeconfig: Path = proxy.kubeconfig_for(control_plane.kubeconfig)
    async with await Api.connect(field_manager="tests-admin", kubeconfig=kubeconfig) as admin:
        found = Policing(admin, admitting)
        await found.furnish()
        folder = tmp_path_factory.mktemp("older")
        async with (
            Knative(kubeconfig, folder, config={}, functions=[LOCKS], spawn=forks.spawn) as running,
            flawless(running),
        ):
            yield found
        assert older.hidden


@pytest.mark.check("f-139")
@pytest.mark.parametrize("on_denied", ["Deny", "Quarantine"])
async def test_a_server_without_mutations_requires_and_refuses(policing: Policing, admin: Api, on_denied: str) -> None:
    """By mode Require and Deny, which the profile's status says; nothing is told to be missing."""
    profile = await policing.enforce(mutated=False, onDenied=on_denied)
    assert (profile.service_account_mode, profile.on_denied) == ("Default", on_denied)
    for kind in (ADMISSION_MUTATION, ADMISSION_MUTATION_BINDING):
        assert (await admin.list(kind, label_selector=MINE)).items == []
    assert (await admin.list(ADMISSION_POLICY, label_selector=MINE)).items

    def says(found: Object) -> bool:
        said: Any = find_condition(found, "Ready") or {}
        return bool(said.get("status") == "True" and said["observedGeneration"] == found["metadata"]["generation"])

    live = await Fluxing(admin).until(TENANCY_PROFILE, DEFAULT, "", says)
    assert live["spec"]["onDenied"] == on_denied
    assert (live["status"]["serviceAccountMode"], live["status"]["onDenied"]) == ("Require", "Deny")
    assert (find_condition(live, "Enforced") or {})["status"] == "True"

    for name in (None, ""):
        for body in (kustomization("dev-team1", serviceAccountName=name), helm_release("dev-team1", serviceAccountName=name)):
            await policing.denied(body, "spec.serviceAccountName", user=TEAM1)
    for body in (kustomization("dev-team1"), helm_release("dev-team1")):
        assert (await policing.admitted(body, user=TEAM1))["spec"]["serviceAccountName"] == "flux"
    assert "serviceAccountName" not in (await policing.admitted(kustomization(FLUX, serviceAccountName=None)))["spec"]
    await policing.denied(kustomization("dev-team2", APP1, "app1"), APP1, user=TEAM2)
