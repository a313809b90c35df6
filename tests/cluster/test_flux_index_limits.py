"""The AccessIndex has a limit: it warns, what finds no place waits, and what stands stays (3.6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from flux_crds import install_flux
from fluxing import SOURCES, TWO, Fluxing, annotated
from paasing import together
from times import FLUX_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, NEARLY_FULL, SOURCE_GRANT
from tenantry.model.kinds import Object
from tenantry.testing import eventually

MOST = 35


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def flux(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Fluxing:
    """Owners of sources in a cluster whose index takes few grants."""
    await install_flux(admin)
    await flawlessly({"flux": {"maxGrants": MOST}}, functions=[SOURCES])
    return Fluxing(admin)


def reason(index: Object) -> str:
    """Why the index warns; empty when it does not."""
    return str((find_condition(index, NEARLY_FULL) or {}).get("reason") or "")


@pytest.mark.check("f-77")
async def test_a_full_index_keeps_what_it_has(flux: Fluxing) -> None:
    """The 28th grant brings the warning, the 36th waits and says so, and has a place when one is withdrawn."""
    home, other = await flux.home(), await flux.home()
    names = [f"app{number:02}" for number in range(1, MOST + 2)]
    await together(*(flux.source(home, name) for name in names))

    async def share(name: str) -> Object:
        return await flux.grant(home, TWO, name=name, sourceRef={"kind": "GitRepository", "name": name})

    grants = [await share(name) for name in names[:27]]
    await flux.grants(home, **dict.fromkeys(names[:27], "team=two"))
    await together(*map(flux.valid, grants))
    assert reason(await flux.get(ACCESS_INDEX, DEFAULT)) == ""
    grants.append(await share(names[27]))
    await flux.until(ACCESS_INDEX, DEFAULT, "", lambda found: reason(found) == "NearlyFull")
    grants += [await share(name) for name in names[28:MOST]]
    await together(*map(flux.valid, grants))
    waiting = await share(names[MOST])
    assert "administrator" in await flux.valid(waiting, "IndexFull")
    await flux.until(ACCESS_INDEX, DEFAULT, "", lambda found: reason(found) == "IndexFull")
    await flux.grants(home, **dict.fromkeys(names[:MOST], "team=two"))
    await together(*map(flux.valid, grants))

    await flux.source(other, annotations=annotated(TWO))
    (note,) = await eventually(lambda: flux.told(other, reason="IndexFull"), within=FLUX_S)
    assert f"GitRepository/{other}/app1" in note
    assert await flux.granted(other) == {}

    await flux.admin.delete(SOURCE_GRANT, names[0], home)
    await flux.grants(home, **dict.fromkeys(names[1:], "team=two"))
    await flux.valid(waiting)
    await flux.admin.delete(SOURCE_GRANT, names[1], home)
    await flux.grants(other, app1=("team=two", "team=two"))
    await together(*(flux.admin.delete(SOURCE_GRANT, name, home) for name in names[2:20]))
    await flux.until(ACCESS_INDEX, DEFAULT, "", lambda found: reason(found) == "")
