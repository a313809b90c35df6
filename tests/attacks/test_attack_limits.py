"""Names, numbers and texts at their limits, by the owner of a project: told where they cannot be served; others are served."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from attackers import Attackers
from forgery import forget_peak
from people import token
from releases import CONFIG, FUNCTIONS, Owners, conditions_of, values_of
from victims import Victim, asked, somebody

from tenantry.api.errors import ApiError
from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, PROJECT_HELM_CHART

LONG = 10_000
"""Digits and letters, where nothing bounds them."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """Projects and their releases."""
    running = await flawlessly(CONFIG, functions=FUNCTIONS)
    for function in running.functions.values():
        forget_peak(function.pid)
    return running


@pytest_asyncio.fixture(loop_scope="session")
async def victim(system: Knative, owners: Owners) -> Victim:
    return Victim(owners, system, await owners.project())


VALUES: dict[str, Any] = {
    "numbers": [2**63 - 1, -(2**63), 1e308, 5e-324, -0.0, 2**53 + 1],
    "texts": [
        "1e9999999",
        "9" * LONG,
        f"0x{'f' * LONG}",
        "1_000",
        "NaN",
        ".inf",
        "0o7",
        "12:30:45",
        "2001-01-01",
        "~",
        "no",
        "=",
        "<<",
    ],
    "9" * LONG: "a key of digits",
    "": "no key",
    "ключ \u2028 \U0001f600": "\ufeff\u0085",
    "{{ .Values }}": "--- !!python/object:os.system []",
}
"""What YAML reads as something else, what JSON cannot hold, and what is long."""


@pytest.mark.check("a-18")
async def test_values_and_names_at_their_limits(owners: Owners, attackers: Attackers, victim: Victim) -> None:
    """Values come to Helm as they were written; names that are too long are told on the object; others are served in time."""
    (project, home, owner), name = await somebody(owners, attackers), f"edge-{token()}"
    await owner.create(PROJECT_HELM_CHART, asked(name, home, VALUES))
    await victim.look()
    made = await owners.provisioned(f"{name}-dummy")
    stored = await owners.get(PROJECT_HELM_CHART, name, home)
    values = values_of(made)
    assert {key: values[key] for key in VALUES} == stored["spec"]["values"]
    assert stored["spec"]["values"] == VALUES

    for long in ("x" * 247, ".".join(["x" * 63] * 3), "x" * 45, f"{'9' * 60}.{'e' * 60}"):
        await owner.create(PROJECT_HELM_CHART, asked(long, home))
        await victim.look()
        told = await owners.told(long, project, "UnableToCreateHelmRelease")
        assert conditions_of(told)["Stalled"] == ("True", "InvalidReleaseName")
        assert "choose a shorter name" in told["status"]["statusMessage"] or "use lower-case" in told["status"]["statusMessage"]
    await owner.create(PROJECT_HELM_CHART, asked("unknown", home, helmApiVersion="x" * LONG))
    await owners.warning("unknown", project, "UnknownHelmApiVersion")
    with pytest.raises(ApiError):  # not a number that JSON has, so nobody can store it
        await owner.request("POST", PROJECT_HELM_CHART.path(home), None, asked("huge", home, {"n": 10**400}))
    await victim.served()


@pytest.mark.check("a-18")
async def test_the_longest_names_are_told(owners: Owners, attackers: Attackers) -> None:
    """A ProjectHelmChart whose name has as many characters as it can have is told that no release can be called so."""
    project, home, owner = await somebody(owners, attackers)
    await owner.create(PROJECT_HELM_CHART, asked("x" * 253, home))
    await owners.told("x" * 253, project, "UnableToCreateHelmRelease")


@pytest.mark.check("a-18")
async def test_project_ids_at_their_limits(owners: Owners, victim: Victim) -> None:
    """Labels of every length and look are told on the namespace, or served; annotations may be as large as they can be."""
    for project in ("x" * 63, "9" * 63, "1e9999999", f"{'a.' * 31}a", "A" * 48, "0" * 48):
        name = f"edge-{token()}"
        await owners.namespace(name, project, annotations={"x": "9" * 250_000})
        await victim.look()
        if project in ("0" * 48, "1e9999999"):
            await owners.registered(project)
        else:
            assert await owners.warned(name, "InvalidProjectID")
    await victim.served()


DASHBOARDS = {
    "digits.json": f'{{"a": {"9" * LONG}}}',
    "exponent.json": '{"b": 1e9999999}',
    "tiny.json": '{"c": 1e-9999999}',
    "list.json": "[1]",
    "deep.json": '{"d": ' + "[" * 5000 + "]" * 5000 + "}",
    "key.json": f'{{"{"9" * 1000}": 1}}',
    f"{'x' * 248}.json": '{"e": 9223372036854775808}',
    "good.json": '{"good": "1e9999999"}',
}
"""What a chart may leave as values of its dashboard."""


@pytest.mark.check("a-18")
async def test_dashboards_with_numbers_without_bounds(owners: Owners, attackers: Attackers, victim: Victim) -> None:
    """Numbers that Kubernetes does not keep are left out, by key and reason; the other values are shown."""
    (project, home, owner), name = await somebody(owners, attackers), f"board-{token()}"
    await owner.create(PROJECT_HELM_CHART, asked(name, home))
    release = f"{name}-dummy"
    await owners.provisioned(release)
    await owners.dashboard("board", release, release, **DASHBOARDS)
    await victim.look()
    told = await owners.told(name, project, "Deployed", holds=lambda found: "good" in found["status"]["dashboardValues"])
    shown = told["status"]["dashboardValues"]
    assert shown == {"good": "1e9999999", "c": 0, "9" * 1000: 1}
    assert "board/" in told["status"]["statusMessage"]
    assert "left out" in told["status"]["statusMessage"]
    await owners.delete(CONFIG_MAP, "board", release)
    await victim.served()


@pytest.mark.check("a-18", without="budgets")
async def test_a_dashboard_with_a_long_key_is_told(owners: Owners, attackers: Attackers) -> None:
    """A key that the API server's YAML does not take is left out and told, and the other values are shown."""
    (project, home, owner), name = await somebody(owners, attackers), f"board-{token()}"
    await owner.create(PROJECT_HELM_CHART, asked(name, home))
    await owners.provisioned(f"{name}-dummy")
    boards = {"key.json": f'{{"{"9" * LONG}": 1}}', "good.json": '{"good": 1}'}
    await owners.dashboard("board", f"{name}-dummy", f"{name}-dummy", **boards)
    told = await owners.told(name, project, "Deployed", holds=lambda found: "good" in found["status"]["dashboardValues"])
    assert "board/key.json" in told["status"]["statusMessage"]
