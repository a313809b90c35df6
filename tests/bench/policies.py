"""What our admission policies cost: the same projects with all of them and with none.

Rounds take turns, so that both see the same neighbours.  All functions are at work, under their own identities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import convergence, stack

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.install import INSTALL_MANAGER
from tenantry.local.policies import until_in_force
from tenantry.model.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING, Kind, Object
from tenantry.testing import eventually

SERVER, FUNCTIONS = "kube-apiserver", "functions"
AT_WORK = ("etcd", SERVER, "kube-controller-manager", "up", FUNCTIONS)
IN_ADMISSION = "apiserver_admission_controller_admission_duration_seconds_sum"
CHECKED_S = 60.0
OURS = "app.kubernetes.io/part-of=tenantry"


@dataclass
class Figures:
    """Rounds with all policies and with none; those of one place in the lists ran one after the other.

    ``shares``: of each round with all policies, the seconds that requests of anybody were in admission by policies, for each CPU
    second of everything at work.  That is more than their share of the CPU where requests wait for a core meanwhile.
    """

    projects: int
    members: int
    policies: int = 0
    shares: list[float] = field(default_factory=list)
    having: list[convergence.Round] = field(default_factory=list)
    bare: list[convergence.Round] = field(default_factory=list)

    def rows(self) -> list[tuple[str, list[float], list[float]]]:
        """What, with all, with none: seconds until all is as declared, CPU seconds of the API server and of everything."""

        def cpu(rounds: Sequence[convergence.Round], *who: str) -> list[float]:
            return [sum(each.cpu[name] for name in who) for each in rounds]

        return [
            ("until all is as declared", [each.seconds for each in self.having], [each.seconds for each in self.bare]),
            ("CPU of kube-apiserver", cpu(self.having, SERVER), cpu(self.bare, SERVER)),
            ("CPU of everything at work", cpu(self.having, *AT_WORK), cpu(self.bare, *AT_WORK)),
        ]


async def measure(plane: ControlPlane, folder: Path, projects: int, members: int, rounds: int) -> Figures:
    """Alternating rounds on one control plane, which fills; who begins changes each time.

    Without its bindings a policy is not asked.  With them the API server compiles it anew, which takes seconds of a core: each
    round waits for that.
    """
    figures = Figures(projects, members)
    async with stack.Up(plane, folder):
        pass  # its first start installs everything
    async with (
        stack.Up(plane, folder) as up,
        await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=plane.kubeconfig) as api,
    ):
        figures.policies = len(await _checked(api))
        bindings = [_as_written(each) for each in await _ours(api, ADMISSION_POLICY_BINDING)]
        await convergence.converge(plane, up, projects, members)
        for number in range(rounds):
            for bare in (False, True) if number % 2 == 0 else (True, False):
                stack.say(
                    f"{projects} x {members} {'without policies' if bare else 'with all policies'}, {number + 1} of {rounds}"
                )
                await _bind(api, bindings, away=bare)
                await stack.idle(plane)
                before = await _in_admission(plane)
                round_ = await convergence.converge(plane, up, projects, members)
                (figures.bare if bare else figures.having).append(round_)
                if not bare:
                    spent = await _in_admission(plane) - before
                    figures.shares.append(spent / sum(round_.cpu[name] for name in AT_WORK))
    return figures


async def _in_admission(plane: ControlPlane) -> float:
    """Seconds that requests have been in admission by policies, since the API server began."""
    async with stack.admin(plane, 1) as wire:
        found = await stack.samples(wire, IN_ADMISSION)
    return sum(value for labels, value in found if labels["name"] == "ValidatingAdmissionPolicy")


async def _ours(api: Api, kind: Kind) -> list[Object]:
    return (await api.list(kind, label_selector=OURS)).items


async def _checked(api: Api) -> list[Object]:
    """Our policies, when kube-controller-manager has looked at each of their expressions."""

    async def all_checked() -> list[Object]:
        found = await _ours(api, ADMISSION_POLICY)
        return found if all("typeChecking" in (each.get("status") or {}) for each in found) else []

    return await eventually(all_checked, within=CHECKED_S, what="the policies are type-checked")


def _as_written(found: Object) -> Object:
    kept = {name: value for name, value in found["metadata"].items() if name in ("name", "labels")}
    return {**found, "metadata": kept}


async def _bind(api: Api, bindings: Sequence[Object], *, away: bool) -> None:
    """Delete all bindings, or put back those that are away; returns when the API server acts on that."""
    there = {each["metadata"]["name"] for each in await _ours(api, ADMISSION_POLICY_BINDING)}
    for each in bindings:
        name = each["metadata"]["name"]
        if away and name in there:
            await api.delete(ADMISSION_POLICY_BINDING, name)
        elif not away and name not in there:
            await api.create(ADMISSION_POLICY_BINDING, each)
    await until_in_force(api)
