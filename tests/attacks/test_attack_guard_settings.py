"""Guards in clusters that are set up otherwise: another project label, none, and guards that are taken out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_asyncio
from attackers import Attackers, refused
from people import C1, FUNCTION, LABEL, OPERATED, changed, token
from times import LEFT_TO_MAKE_WHOLE
from writing import WAYS, create, with_part

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.local.policies import bound_to, guard_names
from tenantry.model.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING, NAMESPACE, Object
from tenantry.testing.forks import Forks
from tenantry.testing.objects import obj
from tenantry.testing.plugin import policies_left_out

KEY = "example.com/project"

pytestmark = [pytest.mark.no_policies, LEFT_TO_MAKE_WHOLE]
Start = Callable[..., Knative]


@pytest.fixture
def running(control_plane: ControlPlane, forks: Forks, tmp_path: Path) -> Start:
    """``async with running(label, ...)``: the system for a project label."""

    def start(label: str, **options: object) -> Knative:
        options.setdefault("without", policies_left_out())
        options.setdefault("spawn", forks.spawn)
        config = changed(C1, cattle={"projectLabel": label})
        return Knative(control_plane.kubeconfig, tmp_path, config=config, functions=[FUNCTION], **options)  # type: ignore[arg-type]

    return start


@pytest_asyncio.fixture(loop_scope="session")
async def labeller(attackers: Attackers) -> Api:
    return await attackers.someone("labeller")


async def label(who: Api, **labels: str) -> Object:
    """Make a namespace, and give it labels then."""
    made = await create(who, NAMESPACE, obj(NAMESPACE, f"n-{token()}"))
    after = made
    for key, value in labels.items():
        after = with_part(after, "labels", key, value)
    return await WAYS["merge"](who, NAMESPACE, made, after)


@pytest.mark.check("a-33", without="tenantry-guard-namespaces")
async def test_another_project_label_is_guarded_in_place_of_the_usual_one(running: Start, labeller: Api) -> None:
    """Installed for another label key, the guard asks for the right there, and the usual key is whoever's."""
    async with running(KEY):
        await refused(label(labeller, **{KEY: "p-b"}), f"metadata.labels[{KEY}]")
        await label(labeller, **{LABEL: "p-b"})


@pytest.mark.check("a-34", without="tenantry-guard-namespaces")
async def test_without_projects_no_project_label_is_guarded(running: Start, labeller: Api) -> None:
    """In single-namespace mode labels of projects are other systems'; our marks are guarded all the same."""
    async with running(""):
        await label(labeller, **{KEY: "p-b", LABEL: "p-b"})
        await refused(label(labeller, **{OPERATED: "true"}))


async def test_guards_that_are_left_out_go_with_all_that_binds_them(running: Start, labeller: Api, admin: Api) -> None:
    """An installation without the guards takes them out of the cluster; everything is anybody's who may write namespaces."""
    async with running(LABEL):
        pass
    async with running(LABEL, without=guard_names()):
        await label(labeller, **{LABEL: f"p-{token()}", OPERATED: "true"})
        for kind in (ADMISSION_POLICY, ADMISSION_POLICY_BINDING):
            assert not guard_names() & {bound_to(each) for each in (await admin.list(kind)).items}
