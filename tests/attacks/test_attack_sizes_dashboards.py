"""ConfigMaps that claim to have dashboard values, as large and as many as tenants may make them, where we read them or not.

With TENANTRY_FULL_SIZE there are as many as the checks say, else a sample.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attackers import Attackers
from people import changed, registration, token
from releases import CONFIG, DASHBOARD, PROVISIONING, REGISTRATION, Owners
from times import FULL, LEFT_TO_MAKE_WHOLE, PROJECTS_S, SIDE_BY_SIDE
from victims import SPARE, Victim, asked, create_all, delete_all

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, PROJECT_HELM_CHART, Object
from tenantry.testing.objects import obj

MANY = 200 if FULL else 25
MB = 1_000_000

pytestmark = [pytest.mark.timeout(300 if FULL else 150), LEFT_TO_MAKE_WHOLE]


@pytest.fixture
def owners(admin: Api) -> Owners:
    return Owners(admin, PROJECTS_S * SIDE_BY_SIDE)


def board(name: str, namespace: str, release: str, **data: str) -> Object:
    return obj(CONFIG_MAP, name, namespace, {DASHBOARD: release}, data=data)


@pytest.mark.check("a-15", without="budgets")
@pytest.mark.check("a-16", without="budgets")
@pytest.mark.parametrize("dedicated", [True, False], ids=["dedicated", "in-registration-namespaces"])
async def test_large_and_many_dashboards(
    control_plane: ControlPlane, tmp_path: Path, owners: Owners, attackers: Attackers, dedicated: bool
) -> None:
    """Of ConfigMaps of a megabyte each, and of 35,000 keys, as much is shown as fits, and the rest is told with the limit."""
    config = changed(CONFIG, operator={"projectReleaseNamespaces": {"enabled": dedicated}})
    async with Knative(control_plane.kubeconfig, tmp_path, config=config, functions=(REGISTRATION, PROVISIONING)) as system:
        victim = Victim(owners, system, await owners.project(), spare=SPARE)
        project = await owners.project()
        home, name = registration(project), f"board-{token()}"
        release = f"{name}-dummy"
        author = await attackers.someone("owner", home, f"a1-{project}")
        await author.create(PROJECT_HELM_CHART, asked(name, home))
        await owners.provisioned(release)
        place = release if dedicated else home
        chart = owners.admin if dedicated else author  # in the release namespace only the chart itself
        await chart.create(CONFIG_MAP, board("a-good", place, release, **{"good.json": '{"good": 1}'}))
        full = json.dumps({"x": "y" * (MB - 100)})
        large = [board(f"l{number}", place, release, **{"large.json": full}) for number in range(MANY)]
        elsewhere = [
            board(f"l{number}", where, release if number % 2 else where, **{"large.json": full})
            for number in range(MANY // 2)
            for where in ([home, f"a1-{project}"] if dedicated else [f"a1-{project}"])
        ]
        async with victim.watching():
            await create_all(chart, CONFIG_MAP, large, at_once=8)
            await create_all(author, CONFIG_MAP, elsewhere, at_once=8)
            # the first by name is told first; eight are made at a time, so others may be told before it is there
            first = "l0/large.json is too large: the dashboard values of a release have at most 262,144 bytes"
            told = await owners.told(name, project, "Deployed", holds=lambda found: first in found["status"]["statusMessage"])
        assert told["status"]["dashboardValues"] == {"good": 1}
        await victim.served()
        print(f"\n{MANY} large dashboards, {'dedicated' if dedicated else 'in registration namespaces'}: {victim.figures()}")

        for namespace in {place, home, f"a1-{project}"}:
            await delete_all(owners.admin, CONFIG_MAP, namespace, DASHBOARD)
        keys = {f"{number:05}.json": '{"k": 1}' for number in range(35_000)}
        async with victim.watching():
            await chart.create(CONFIG_MAP, board("b-keys", place, release, **keys))
            told = await owners.told(
                name, project, "Deployed", holds=lambda found: "the first 1,000" in found["status"]["statusMessage"]
            )
        assert told["status"]["dashboardValues"] == {"k": 1}
        await victim.look()
        print(f"35,000 keys: {victim.figures()}")
        await delete_all(owners.admin, CONFIG_MAP, place, DASHBOARD)
        await owners.delete(PROJECT_HELM_CHART, name, home)
