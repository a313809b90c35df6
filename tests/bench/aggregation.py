"""Rights: a ClusterRoleBinding that comes and goes in many projects, a RoleBinding in one, and the floor of the first."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from tests.bench import objects, stack
from tests.bench.wire import Watched, Wire

from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, EVENT, NAMESPACE, PROJECT_HELM_CHART, ROLE, ROLE_BINDING, Kind, Object
from tenantry.model.names import AGGREGATE_FROM, OPERATED, PROJECT_ID, REGISTRATION_PREFIX, ROLE_OF
from tenantry.testing.objects import obj

CONFIG = "global: {cattle: {systemProjectId: p-system}}"
_GROUP = "rbac.authorization.k8s.io"
_ADMIN = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": "admin"}


@dataclass
class Figures:
    projects: int
    comes: list[float] = field(default_factory=list)
    goes: list[float] = field(default_factory=list)
    floor: list[float] = field(default_factory=list)
    one_ms: list[float] = field(default_factory=list)


class Names(Watched):
    """Who is named in which release namespace, as a watch tells it."""

    def __init__(self) -> None:
        super().__init__()
        self._named: dict[str, set[str]] = {}

    async def start(self, wire: Wire) -> None:
        await wire.watch(f"{ROLE_BINDING.path()}?labelSelector={OPERATED}%3Dtrue", self._seen)

    def _seen(self, change: str, binding: Any) -> None:
        gone = change == "DELETED"
        found = set() if gone else {subject["name"] for subject in binding.get("subjects") or ()}
        self._named[binding["metadata"]["namespace"]] = found
        self._changed()

    async def named(self, name: str, times: int) -> float:
        """The moment at which a name stands so many times."""
        return await self.until(lambda: sum(name in found for found in self._named.values()) == times)


async def rights(plane: ControlPlane, projects: int, rounds: int, ones: int) -> Figures:
    """Seconds from sending a change to the arrival of the last watch event that shows it."""
    figures = Figures(projects)
    run = token_hex(2)
    ids = [f"p-{run}-{number}" for number in range(projects)]
    async with stack.admin(plane) as wire, stack.admin(plane, 1) as watching:
        names = Names()
        await names.start(watching)
        await _set_up(wire, ids)
        await names.named(f"owner-{run}", projects)
        await stack.quiet(wire)
        for number in range(rounds):
            stack.say(f"a ClusterRoleBinding in {projects} projects, round {number + 1} of {rounds}")
            ops = f"ops-{run}-{number}"
            began = time.perf_counter()
            await stack.create(wire, [(CLUSTER_ROLE_BINDING, _binding(CLUSTER_ROLE_BINDING, ops, "", "Group", ops))])
            figures.comes.append(await names.named(ops, projects) - began)
            await stack.quiet(wire)
            began = time.perf_counter()
            await wire.do("DELETE", CLUSTER_ROLE_BINDING.path(name=ops))
            figures.goes.append(await names.named(ops, 0) - began)
            await stack.quiet(wire)
            figures.floor.append(await _floor(wire, ids, number))
            await stack.quiet(wire)
        for number in range(ones):
            who, home = f"one-{run}-{number}", REGISTRATION_PREFIX + ids[number % projects]
            began = time.perf_counter()
            await stack.create(wire, [(ROLE_BINDING, _binding(ROLE_BINDING, who, home, "User", who))])
            figures.one_ms.append((await names.named(who, 1) - began) * 1000)
            await stack.quiet(wire, 0.1)
    return figures


async def _set_up(wire: Wire, ids: list[str]) -> None:
    async def one(project: str) -> None:
        home, chart = REGISTRATION_PREFIX + project, f"demo-{project}"
        release = f"{chart}-dummy"
        ours = {OPERATED: "true", PROJECT_ID: project}
        await wire.do("POST", NAMESPACE.path(), objects.namespace(f"member-{project}", project))
        for name, label in ((home, project), (release, "p-system")):
            labels = {**ours, objects.PROJECT_LABEL: label}
            await wire.do("POST", NAMESPACE.path(), obj(NAMESPACE, name, labels=labels), but=(409,))
        body = obj(PROJECT_HELM_CHART, chart, home, spec={"helmApiVersion": "dummy.cattle.io/v1alpha1"})
        await wire.do("POST", PROJECT_HELM_CHART.path(home), body)
        labels = {ROLE_OF: release, AGGREGATE_FROM: "admin"}
        await wire.do("POST", ROLE.path(release), obj(ROLE, "r-admin", release, labels, rules=[]))
        owner = f"owner-{project.split('-')[1]}"
        await wire.do("POST", ROLE_BINDING.path(home), _binding(ROLE_BINDING, owner, home, "User", owner))

    await stack.in_flight(one, ids)


def _binding(kind: Kind, name: str, namespace: str, subject: str, who: str, reference: Object = _ADMIN) -> Object:
    subjects = [{"apiGroup": _GROUP, "kind": subject, "name": who}]
    return obj(kind, name, namespace, roleRef=reference, subjects=subjects)


async def _floor(wire: Wire, ids: list[str], number: int) -> float:
    """One apply of a RoleBinding that changes it and one Event for each project, straight to the API server."""
    reference = {"apiGroup": _GROUP, "kind": "Role", "name": "r-admin"}

    async def one(project: str) -> None:
        release = f"demo-{project}-dummy"
        body = _binding(ROLE_BINDING, "floor", release, "Group", f"floor-{number}", reference)
        await wire.apply(ROLE_BINDING.path(release, "floor"), body)
        event = objects.event({**body, "metadata": {**body["metadata"], "uid": str(number)}}, project)
        event["metadata"]["namespace"] = release
        await wire.do("POST", EVENT.path(release), event)

    began = time.perf_counter()
    await asyncio.gather(*(one(project) for project in ids))
    return time.perf_counter() - began
