"""The largest memory of each function's process while it sweeps many projects, each with a release, rights and scopes.

The cluster is filled while functions are at work; then new processes start, as pods do, hear of everything, and are asked for a
sweep. No Helm runs, so locks have no records: what those cost is in the section ``locks``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.bench import convergence, objects, releases, scopes, stack
from tests.bench.namespace_scopes import right
from tests.bench.wire import Wire

from scope_binding.consent import consent_objects
from scope_binding.objects import binding_of
from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    NAMESPACE_SCOPE,
    PROJECT_HELM_CHART,
    ROLE,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SCOPE_TEMPLATE,
    SERVICE_ACCOUNT,
    Kind,
    Object,
)
from tenantry.model.names import AGGREGATE_FROM, OPERATED, REGISTRATION_PREFIX, ROLE_OF
from tenantry.serving.installed import service_named
from tenantry.testing.memory import forget_peak, limit_mib, peak_mib
from tenantry.testing.objects import obj

RESOURCES = {*scopes.RESOURCES, "roles", "projecthelmcharts", "helmcharts", "helmreleases", "namespacescopes"}
TEMPLATE = "bench-memory"
SCOPED_EACH = 5
"""One project of so many has a NamespaceScope: a thousand that are made at once are not done within an hour."""
FULL_S = 3600.0
"""Seconds until the cluster is as declared."""
REST_S = 3.0
"""Seconds without a write after which it is at rest: longer than any pause between runs."""
SWEEPS = 10
"""How often a sweep is asked for that does not end within its deadline: it goes on where the one before ended."""


@dataclass(frozen=True)
class Figure:
    """Mebibytes of one function; ``sweeps`` is how often it was asked until one ended."""

    function: str
    limit: int
    made: float
    """While everything was made."""
    begun: float
    """From the start of a process until it had heard of everything."""
    swept: float
    """In the sweep."""
    sweeps: int


async def measure(plane: ControlPlane, folder: Path, count: int, members: int) -> list[Figure]:
    """So many projects with so many namespaces, ScopeInstances and NamespaceScopes of as many members."""
    config = folder / "memory.yaml"
    config.write_text(yaml.safe_dump(releases.CONFIGURATION))
    async with stack.Up(plane, folder, config) as up, stack.admin(plane) as wire:
        await _fill(wire, convergence.names(count, members))
        made = {name: peak_mib(up.process_of(name).pid) for name in up.served()}
    found = []
    async with stack.Up(plane, folder, config) as up, stack.admin(plane, 1) as wire:
        await _at_rest(wire)
        for name in up.served():
            stack.say(f"one sweep of {name}")
            process = up.process_of(name)
            begun = peak_mib(process.pid)
            forget_peak(process.pid)
            sweeps = await _sweep(stack.url_of(process), name)
            found.append(Figure(name, limit_mib(name), made[name], begun, peak_mib(process.pid), sweeps))
    return found


async def _fill(wire: Wire, wanted: dict[str, list[str]]) -> None:
    projects, places = list(wanted), list(wanted.values())
    stack.say(f"{len(projects)} projects")
    await stack.create(wire, [(NAMESPACE, objects.namespace(name, project)) for project in projects for name in wanted[project]])
    await _until(wire, len(projects), NAMESPACE, f"{OPERATED}=true")
    stack.say("a chart in each")
    await stack.create(wire, [(PROJECT_HELM_CHART, releases.asked(project, f"demo-{project}")) for project in projects])
    for kind in (HELM_CHART, HELM_RELEASE):
        await _until(wire, len(projects), kind)
    stack.say("its Roles, and people")
    for project in projects:
        name = f"demo-{project}-dummy"
        role, _ = right(name, name, name, "nobody")
        role["metadata"]["labels"] = {ROLE_OF: name, AGGREGATE_FROM: "view"}
        people = {"kind": "User", "name": f"alice-{project}", "apiGroup": ROLE.group}
        metadata = {"name": "people", "namespace": f"{REGISTRATION_PREFIX}{project}"}
        binding = binding_of(ROLE_BINDING, metadata, (CLUSTER_ROLE, "view"), [people])
        await stack.create(wire, [(ROLE, role), (ROLE_BINDING, binding)])
    await _until(wire, len(projects), ROLE_BINDING, f"{OPERATED}=true")
    stack.say("a ScopeInstance in each")
    await stack.create(wire, [(SCOPE_TEMPLATE, scopes.template(TEMPLATE))])
    await scopes.owners_are_known(wire)
    await stack.create(
        wire,
        [
            (SCOPE_INSTANCE, {**scopes.instance(TEMPLATE, spaces), "metadata": {"name": project}})
            for project, spaces in wanted.items()
        ],
    )
    await _until(wire, len(scopes.ROLES) * sum(map(len, places)), ROLE_BINDING, scopes.UID)
    some = places[::SCOPED_EACH]
    stack.say(f"{len(some)} NamespaceScopes, each in a namespace of one project for those of another")
    for number, spaces in enumerate(some):
        await stack.create(wire, _scoped(some[number - 1][0], spaces))
    await stack.create(wire, [(NAMESPACE_SCOPE, _scope(some[number - 1][0], spaces)) for number, spaces in enumerate(some)])
    await _until(wire, sum(map(len, some)), ROLE_BINDING, "scope-binding/from-namespace")
    await _at_rest(wire)


def _scoped(home: str, spaces: Sequence[str]) -> list[tuple[Kind, Object]]:
    """An account with a Role, and the consents of the members."""
    pairs = [right("op", home, home, "op"), *(consent_objects(place, home) for place in spaces)]
    parts = [(kind, each) for pair in pairs for kind, each in zip((ROLE, ROLE_BINDING), pair, strict=True)]
    return [(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, "op", home)), *parts]


def _scope(home: str, spaces: Sequence[str]) -> Object:
    return obj(NAMESPACE_SCOPE, "bench", home, spec={"namespaceMembers": list(spaces), "serviceAccountMembers": ["op"]})


async def _until(wire: Wire, wanted: int, kind: Kind, labels: str = "") -> None:
    """Wait until there are so many objects of a kind, at least, with these labels."""
    selector = labels.replace("/", "%2F").replace("=", "%3D")
    # The API server counts for us only where it does not have to select.
    path = f"{kind.path()}?labelSelector={selector}" if labels else f"{kind.path()}?limit=1"
    deadline, found = time.monotonic() + FULL_S, 0
    while time.monotonic() < deadline:
        page = await wire.json("GET", path)
        found = len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)
        if found >= wanted:
            return
        await asyncio.sleep(2)
    raise RuntimeError(f"after {FULL_S:.0f} s there are {found} of {wanted} {kind.plural} {labels}")


async def _at_rest(wire: Wire) -> None:
    await stack.quiet(wire, REST_S, FULL_S, resources=RESOURCES, of=stack.all_writes)


async def _sweep(url: str, function: str) -> int:
    """Ask for sweeps until one ends; how many it took."""
    async with Wire(url, None, "", 1) as wire:
        for number in range(1, SWEEPS + 1):
            if (status := await stack.swept(wire, service_named(function).function)) == 204:
                return number
            if status != 503:
                break
    raise RuntimeError(f"the sweep of {function} answered {status}")
