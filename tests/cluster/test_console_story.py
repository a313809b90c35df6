"""The story of `tenantry demo`, understood by who has nothing but the page of ``tenantry console``: a screen for each step."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from browsing import CONTRAST, NEEDS_CHROMIUM, Page, browser, shown
from consoles import serving
from test_up import programs
from times import HELM_S, LEFT_TO_MAKE_WHOLE, VOLUME_S
from upping import CONFIGURATION, run_up

from tenantry.api import Api
from tenantry.kit.demo.story import MANAGER, Names, Story
from tenantry.serving.config import load_config
from tenantry.testing import eventually

pytestmark = [LEFT_TO_MAKE_WHOLE, NEEDS_CHROMIUM, pytest.mark.timeout(300)]
DOCS = Path(__file__).parents[2] / "docs"
SCREEN = (1280, 900)
PHONE = (400, 900)
NEWEST = "document.getElementById('newest').innerText.replaceAll(/\\s+/g, ' ')"
NOW = "document.querySelector('#newest .now').innerText.replaceAll(/\\s+/g, ' ')"
STORY = (
    "[document.getElementById('story').innerText, JSON.stringify(story.map((each) => [each.text, each.decisions]))].join('\\n')"
)
ENDS = "Math.ceil(document.getElementById('newest').getBoundingClientRect().bottom)"


@dataclass(frozen=True, slots=True)
class Told:
    """What the page says of a step: what somebody did, what functions did because of it, and what stands then."""

    did: str
    because: tuple[str, ...]
    now: tuple[str, ...]
    is_gone: tuple[str, ...] = ()
    """What stood before, and does not stand any more."""


STEPS = (
    Told(
        "created Namespace team-a, in project p-a",
        ("namespace-registration", "made Namespace cattle-project-p-a", "NetworkPolicy hpo-generated-default"),
        ("project/p-a now", "cattle-project-p-a registration namespace: here its people ask for charts", "team-a", "Nobody"),
    ),
    Told(
        "created ProjectHelmChart demo in cattle-project-p-a: the project asks for the chart apps.example.com/v1alpha1",
        (
            "release-provisioning",
            "made Namespace demo-monitored",
            "HelmChart demo-monitored",
            "for a while",
            "Helm, ",
            "lock-enforcement",
        ),
        ("project/p-a now", "ProjectHelmChart demo what the project asks for", "Deployed", "demo-monitored release namespace"),
        ("ServiceAccount cattle-helm-system/helm-demo-monitored",),
    ),
    Told(
        "created RoleBinding alice in cattle-project-p-a: ClusterRole/view for User alice",
        ("rbac-aggregation", "gave User alice Role/demo-monitored-view by RoleBinding demo-monitored-view in demo-monitored"),
        ("User alice: ", "ClusterRole/view in cattle-project-p-a", "Role/demo-monitored-view in demo-monitored"),
    ),
    Told(
        "allowed locks to watch and write more kinds, by ClusterRole lockable-kinds-source",
        ("lock-enforcement", "the status of HelmRelease demo-monitored"),
        ("HelmRelease demo-monitored the lock on it: Deployed, revision 1 locked",),
        ("RightMissing",),
    ),
    Told(
        "changed ConfigMap demo-monitored-dashboard in demo-monitored",
        ("lock-enforcement", "deployed Helm releases stay as Helm left them", "set right ConfigMap demo-monitored-dashboard"),
        ("revision 1 locked", "User alice: "),
    ),
    Told(
        "RoleBinding alice in cattle-project-p-a was deleted",
        ("rbac-aggregation", "took Role/demo-monitored-view from User alice"),
        ("project/p-a now", "Nobody", "gone RoleBinding alice", "gone RoleBinding demo-monitored-view in demo-monitored"),
        ("User alice: ",),
    ),
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """``tenantry up`` with the configuration of `make run`, until the module ends."""
    folder = tmp_path_factory.mktemp("up")
    async with run_up(folder / "home", **await asyncio.to_thread(programs, folder)) as up:
        await up.says("Ready.", within=VOLUME_S)
        yield Path((await up.says("export KUBECONFIG=")).partition("=")[2])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    """The console's page, which is opened before the story begins, and not touched afterwards."""
    async with browser(tmp_path_factory.mktemp("browser")) as opened, serving(kubeconfig) as console:
        await opened.see(width=SCREEN[0], height=SCREEN[1])
        await opened.open(console.url)
        await shown(opened, "document.getElementById('live').textContent", lambda text: text == "Live.")
        yield opened


async def test_each_step_is_understood_from_one_screen(page: Page, kubeconfig: Path, tmp_path: Path) -> None:
    """What somebody did, what which function did because of it, and what stands now is in the window, without any click.

    At the width of a phone what was done and because of what is; nothing is wider than it, and every text stands out, in both
    colours.  TENANTRY_WRITE_DOCS=1 writes the pictures of docs/story.md.
    """
    config = load_config(Path(CONFIGURATION))
    async with await Api.connect(field_manager=MANAGER, kubeconfig=kubeconfig) as api:
        story = Story(api, await Names.free(api), config)
        for number, (make, told) in enumerate(zip(story.steps(), STEPS, strict=True), 1):
            step = await make()
            assert step is not None
            await step.act()
            await eventually(step.done, within=HELM_S, what=step.title)
            await _told(page, NEWEST, (told.did, *told.because))
            await _told(page, NOW, told.now, told.is_gone)
            assert page.problems == []
            await _seen(page, number, tmp_path)


async def _told(page: Page, where: str, parts: tuple[str, ...], is_gone: tuple[str, ...] = ()) -> None:
    """Wait until a part of the page says all that it should; decisions come one by one, each when its run has ended."""

    async def lacking() -> str:
        text = await page.run(where)
        return ", ".join([*(each for each in parts if each not in text), *(f"still {each}" for each in is_gone if each in text)])

    what = "the page says it"
    try:
        await eventually(lacking, lambda lacks: not lacks, within=HELM_S, what=what)
    except AssertionError as error:
        raise AssertionError(f"{error}; the page: {await page.run(STORY)}") from error


async def _seen(page: Page, number: int, tmp_path: Path) -> None:
    """One screen of the newest episode: its end is in the window, of a phone its beginning; the pictures."""
    for name, (width, height), dark in (
        ("", SCREEN, False),
        ("-dark", SCREEN, True),
        ("-phone", PHONE, True),
        ("-small", PHONE, False),
    ):
        await page.see(width=width, height=height, dark=dark)
        assert await page.run("document.documentElement.scrollWidth") <= width
        assert await page.run(CONTRAST) == []
        assert await page.run("window.scrollY") == 0, "nobody scrolled"
        picture = await page.picture(tmp_path / f"{number}{name}.png", whole=False)
        if (name == "" or (name, number) == ("-phone", 3)) and os.environ.get("TENANTRY_WRITE_DOCS"):
            (DOCS / f"story-{number}{name}.png").write_bytes(picture.read_bytes())
    await page.see(width=PHONE[0], height=PHONE[1])
    assert await page.run("document.querySelector('#newest .deed').getBoundingClientRect().bottom") <= PHONE[1]
    await page.see(width=SCREEN[0], height=SCREEN[1])
    assert await page.run(ENDS) <= SCREEN[1], f"step {number} does not fit on one screen"
