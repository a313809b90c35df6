"""The console over a real API server that holds ten thousand namespaces of two thousand projects; a sample without full size.

Figures are printed with ``-s``: docs/status.md has them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest
import pytest_asyncio
from browsing import NEEDS_CHROMIUM, Page, browser, search, shown
from commanding import Command
from consoles import Console, serving
from many import LABEL, large
from people import token
from times import FULL, LEFT_TO_MAKE_WHOLE, SERVED_S, VOLUME_S

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.deployment import deployment_folder, documents
from tenantry.model.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    PROJECT_HELM_CHART,
    ROLE_BINDING,
    Kind,
    Object,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = [LEFT_TO_MAKE_WHOLE, NEEDS_CHROMIUM, pytest.mark.timeout(1500)]
PROJECTS, MEMBERS = (2000 if FULL else 40), 4
NAMESPACES = PROJECTS * (MEMBERS + 1)
LAST = f"team-{PROJECTS - 1:05}-{MEMBERS - 1}"
AT_ONCE = 32
INTERACTIVE_MS = 2000
"""On two cores: the page answers the first key."""
STATUS_S = 20.0
"""`tenantry status`, with the start of its process, on two cores that the API server uses, too."""
SEEN_S = 15.0
"""A namespace that comes is on the page."""


async def made(api: Api, kind: Kind, objects: Iterable[Object]) -> None:
    """Create objects, some at once; what is there stays."""
    waiting = iter(objects)

    async def some() -> None:
        for each in waiting:
            bare = {name: value for name, value in each.items() if name != "status"}
            await api.create(
                kind, {**bare, "metadata": {name: value for name, value in bare["metadata"].items() if name != "uid"}}
            )

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def filled(admin: Api) -> float:
    """The cluster with all of it, and our CRDs; the seconds that it took."""
    began = time.monotonic()
    for crd in documents(deployment_folder("knative") / "crds"):
        await admin.apply(CUSTOM_RESOURCE_DEFINITION, crd)
    lists = large(PROJECTS, MEMBERS, wrong=0).objects

    async def served() -> bool:
        return (await admin.served(PROJECT_HELM_CHART.api_version, PROJECT_HELM_CHART.kind, again=True)) is not None

    await eventually(served, within=SERVED_S, what="our kinds are served")
    for kind in (NAMESPACE, ROLE_BINDING, PROJECT_HELM_CHART):
        await made(admin, kind, lists[kind])
    return time.monotonic() - began


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def console(control_plane: ControlPlane, filled: float) -> AsyncIterator[Console]:
    """The command over all of it."""
    print(f"{NAMESPACES:,} namespaces of {PROJECTS:,} projects, with bindings: made in {filled:.0f} s")
    began = time.monotonic()
    async with serving(control_plane.kubeconfig) as found:
        print(f"console: its address is printed after {time.monotonic() - began:.1f} s")
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(console: Console, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


async def test_the_page_is_interactive_at_once(page: Page, console: Console) -> None:
    """It answers the first key within two seconds, and what is typed is found and opened, whatever its place."""
    await page.see(width=1280)
    took = []
    for _ in range(3):
        took.append(await page.open(console.url))
        assert await page.run("document.querySelectorAll('*').length") < 3000
    size = len((await console.get()).encode())
    print(f"page: {size:,} bytes, ready after {', '.join(map(str, took))} ms")
    assert max(took) < INTERACTIVE_MS
    assert f"{PROJECTS:,} projects" in await page.run("document.getElementById('summary').textContent")

    await search(page, LAST, lambda text: text.endswith("found"))
    began = time.monotonic()
    await page.press("Tab")
    await page.press("Enter")
    assert await page.run("document.activeElement.querySelector('.title').textContent") == LAST
    print(f"page: {LAST} is opened by keys in {(time.monotonic() - began) * 1000:.0f} ms")
    assert page.problems == []


async def test_what_comes_is_seen(page: Page, console: Console, admin: Api) -> None:
    """A namespace that joins the last project is on the page soon, and the page still answers."""
    await page.open(console.url)
    await shown(page, "document.getElementById('live').textContent", lambda text: text == "Live.")
    await search(page, LAST, lambda text: text.endswith("found"))
    await page.press("Tab")
    await page.press("Enter")
    name, began = f"team-{token()}", time.monotonic()
    await admin.create(NAMESPACE, obj(NAMESPACE, name, labels={LABEL: f"p-{PROJECTS - 1:05}"}))

    async def seen() -> bool:
        return bool(
            await page.run(f"[...document.querySelectorAll('.row .title')].some((each) => each.textContent === '{name}')")
        )

    await eventually(seen, within=SEEN_S, what="it is on the page")
    print(f"page: a namespace that comes is seen after {time.monotonic() - began:.1f} s")


@pytest.mark.parametrize(("verb", "answer"), [("delete", "yes"), ("impersonate", "no")])
async def test_who_can_is_answered(console: Console, verb: str, answer: str) -> None:
    """A question about one of all these bindings is answered with its path; for a no, all are read; it says what is missing."""
    began = time.monotonic()
    found = await console.get("can", subject=f"dev-{PROJECTS - 1}", verb=verb, resource="pods", namespace=LAST)
    print(f"who can: {answer} after {time.monotonic() - began:.1f} s")
    assert (found["answer"], bool(found["missing"])) == (answer, answer == "no")


async def test_status_is_told(as_admin: Command, filled: float, tmp_path: Path) -> None:
    """`tenantry status` and `tenantry map` of all of it."""
    assert filled
    for arguments in (("status",), ("map", "-o", str(tmp_path / "map.html"))):
        began = time.monotonic()
        code, output, errors = await as_admin(*arguments)
        took = time.monotonic() - began
        print(f"tenantry {arguments[0]}: {took:.1f} s")
        assert took < (STATUS_S if FULL else VOLUME_S), errors
        assert code in ((0, 3) if arguments[0] == "status" else (0,)), output + errors
