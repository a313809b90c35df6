"""``python tests/bench/run.py [--quick] [--only NAME] [--json]``: measure, and print one table at the end.

Progress goes to standard error.  Nothing is compared with a limit: a bench tells, it does not judge.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import psutil

if __name__ == "__main__":  # as a script, the tree is not on the path
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench import (
    aggregation,
    convergence,
    decisions,
    flux,
    flux_admission,
    growth,
    latency,
    locks,
    memory,
    namespace_scopes,
    paas,
    policies,
    process,
    releases,
    requests,
    rest,
    scopes,
    stack,
)
from tests.bench.report import Report

from tenantry.local.control_plane import ControlPlane, Lines, ensure_binaries
from tenantry.testing.audit import AuditLog

PROJECTS = (stack.FUNCTION, "release-provisioning", "rbac-aggregation")
ALL = " with all functions"


@contextmanager
def _plane(api_server_args: Sequence[str] = ()) -> Iterator[tuple[ControlPlane, Path]]:
    stack.say("starting a control plane")
    with (
        ControlPlane(ephemeral=True, api_server_args=api_server_args) as plane,
        tempfile.TemporaryDirectory(prefix="tenantry-bench-") as folder,
    ):
        yield plane, Path(folder)


async def _size(report: Report, plane: ControlPlane, folder: Path, projects: int, members: int, rounds: int) -> None:
    """Rounds of the function alone, of all functions and of the floor, in turn, so that all see the same neighbours."""
    variants = {"": (stack.FUNCTION,), ALL: ()}
    done: dict[str, list[convergence.Round]] = {name: [] for name in variants}
    peaks = dict.fromkeys(variants, 0.0)
    for number in range(rounds):
        stack.say(f"{projects} x {members}, round {number + 1} of {rounds}")
        for name, functions in variants.items():
            async with stack.Up(plane, folder, functions=functions) as up:
                done[name].append(await convergence.converge(plane, up, projects, members))
                peaks[name] = max(peaks[name], stack.peak_mb(up.function))
        floor, floor_cpu = await convergence.floor(plane, projects, members)
        for found in done.values():
            found[-1].floor, found[-1].floor_cpu = floor, floor_cpu
    for name, found in done.items():
        report.convergence(f"{projects} x {members}{name}", projects, found, peaks[name])


async def _small(report: Report, *, quick: bool) -> None:
    with _plane() as (plane, folder):
        await _size(report, plane, folder, 40, 5, 2 if quick else 5)
        if quick:
            async with stack.Up(plane, folder) as up:
                await _latency(report, plane, 15, 20)
                await _rest(report, plane, up, 5)


async def _medium(report: Report, *, quick: bool) -> None:
    del quick  # one size only
    with _plane() as (plane, folder):
        await _once(report, plane, folder, 200, 3)
        async with stack.Up(plane, folder):
            await _latency(report, plane, 40, 60)


async def _large(report: Report, *, quick: bool) -> None:
    del quick  # one size only
    with _plane() as (plane, folder):
        await _once(report, plane, folder, 1000, 5)
        async with stack.Up(plane, folder) as up:
            await _rest(report, plane, up, 30)


async def _once(report: Report, plane: ControlPlane, folder: Path, projects: int, members: int) -> None:
    stack.say(f"{projects} x {members}")
    async with stack.Up(plane, folder, functions=(stack.FUNCTION,)) as up:
        one = await convergence.converge(plane, up, projects, members)
        peak = stack.peak_mb(up.function)
    one.floor, one.floor_cpu = await convergence.floor(plane, projects, members)
    report.convergence(f"{projects} x {members}", projects, [one], peak)


async def _latency(report: Report, plane: ControlPlane, projects: int, joins: int) -> None:
    stack.say(f"latency: {projects} new projects, {joins} namespaces that join")
    new, joined = await latency.latency(plane, projects, joins)
    for what, values in (("new project", new), ("namespace joins", joined)):
        report.latency(what, values)


async def _rest(report: Report, plane: ControlPlane, up: stack.Up, seconds: float) -> None:
    stack.say(f"at rest for {seconds:.0f} s")
    report.at_rest(seconds, *await rest.at_rest(plane, seconds))
    stack.say("one sweep")
    report.sweep(*await rest.sweep(plane, up.function, stack.FUNCTION), stack.peak_mb(up.function))


async def _releases(report: Report, *, quick: bool) -> None:
    rounds, joins, rest_s = (1, 10, 5) if quick else (5, 40, 30)
    for others, functions in (("", PROJECTS), (ALL, ())):
        with _plane() as (plane, folder):
            stack.say(f"charts{others or ' with ' + ', '.join(functions)}")
            report.releases(others, await releases.measure(plane, folder, functions, 40, rounds, joins, rest_s))


async def _namespace_scopes(report: Report, *, quick: bool) -> None:
    del quick  # one size only
    with _plane() as (plane, folder):
        async with stack.Up(plane, folder) as up:
            for projection in ("managed", "own-roles"):
                stack.say(f"a NamespaceScope with 50 members, 10 accounts, 2 roles each: {projection}")
                report.namespace_scopes(await namespace_scopes.measure(plane, up, projection))


async def _scopes(report: Report, *, quick: bool) -> None:
    for others, functions in (("", ("scope-binding",)), (ALL, ())):
        with _plane() as (plane, folder):
            async with stack.Up(plane, folder, functions=functions) as up:
                for count, rounds, back in ((200, 1 if quick else 5, 20), *(() if quick else ((1000, 1, 0),))):
                    done = []
                    for number in range(rounds):
                        stack.say(f"2 roles in {count} namespaces{others}, round {number + 1} of {rounds}")
                        done.append(await scopes.measure(plane, up, count, back))
                    report.scopes(others, done)


async def _process(report: Report, *, quick: bool) -> None:
    with _plane() as (plane, _):
        stack.say("one function process")
        report.process(
            await process.measure(plane, starts=3 if quick else 7, noop_s=2 if quick else 6, events=300 if quick else 1000)
        )


async def _rights(report: Report, *, quick: bool) -> None:
    projects, rounds, ones = (40, 2, 10) if quick else (200, 5, 40)
    for others, functions in (("", PROJECTS), (ALL, ())):
        with _plane() as (plane, folder):
            config = folder / "tenantry.yaml"
            config.write_text(aggregation.CONFIG)
            stack.say(f"rights{others or ' with ' + ', '.join(functions)}")
            async with stack.Up(plane, folder, config, functions):
                report.rights(others, await aggregation.rights(plane, projects, rounds, ones))


async def _locks(report: Report, *, quick: bool) -> None:
    with _plane() as (plane, folder):
        releases, repairs, updates = (20, 20, 100) if quick else (100, 60, 1000)
        stack.say(f"locks: {releases} releases of 20 objects")
        report.locks(await locks.measure(plane, folder, releases=releases, each=5, repairs=repairs, updates=updates))


async def _policies(report: Report, *, quick: bool) -> None:
    with _plane() as (plane, folder):
        report.policies(await policies.measure(plane, folder, *((10, 5, 2) if quick else (40, 5, 20))))


async def _paas(report: Report, *, quick: bool) -> None:
    done: list[paas.Figures] = []
    for count, ones in ((20, 10),) if quick else ((40, 20), (200, 40), (600, 20)):
        with _plane() as (plane, folder):
            stack.say(f"{count} Paas of 3 namespaces")
            done.append(await paas.measure(plane, folder, count, ones))
            report.paas(done[-1])
    report.paas_growth(done)


async def _flux(report: Report, *, quick: bool) -> None:
    # The API server collects its garbage on all cores, for a tenth of a second each time: seldom, as for `make figures`.
    with patch.dict(os.environ, GOGC="1600"), _plane() as (plane, folder):
        report.flux(await flux.measure(plane, folder, flux_admission.QUICK if quick else flux_admission.Sizes()))


async def _audited(measure: Callable[..., Awaitable[list[requests.Phase]]], *sizes: int) -> list[requests.Phase]:
    with tempfile.TemporaryDirectory(prefix="tenantry-audit-") as place:
        log = AuditLog(Path(place), requests.POLICY)
        with _plane(log.api_server_args) as (plane, folder):
            return await measure(plane, folder, log, *sizes)


async def _requests(report: Report, *, quick: bool) -> None:
    for projects in (10,) if quick else (40, 200):
        report.requests(f"{projects} x {requests.MEMBERS}", await _audited(requests.measure, projects, 10))


async def _paas_requests(report: Report, *, quick: bool) -> None:
    for count in (20,) if quick else (40, 200):
        report.requests(f"{count} Paas", await _audited(requests.of_paas, count, 10))


async def _instances(report: Report, *, quick: bool) -> None:
    projects, joins = (10, 2) if quick else (40, 10)
    found = {count: await _audited(requests.measure, projects, joins, count) for count in (1, 2, 4)}
    report.instances(f"{projects} x {requests.MEMBERS}", found)


async def _growth(report: Report, *, quick: bool) -> None:
    done: list[growth.Figures] = []
    for projects in (10, 40) if quick else (40, 200, 1000):
        with _plane() as (plane, folder):
            done.append(await growth.measure(plane, folder, projects, 10 if quick else 60))
            report.size(done[-1])
    report.growth(done)


async def _decisions(report: Report, *, quick: bool) -> None:
    figures = decisions.Figures()
    stack.say("a run, with and without who listens")
    await decisions.runs(figures, 500 if quick else 2000, 3 if quick else 7)
    stack.say("a ledger")
    decisions.ledger(figures, 1000 if quick else 10_000)
    with _plane() as (plane, folder):
        await decisions.projects(plane, folder, figures, *((10, 5, 2) if quick else (40, 5, 5)))
    report.decisions(figures)


async def _memory(report: Report, *, quick: bool) -> None:
    count, members = 100 if quick else 1000, 5
    with _plane() as (plane, folder):
        report.memory(count, members, await memory.measure(plane, folder, count, members))


def _machine(version: str) -> str:
    memory = psutil.virtual_memory().total / stack.MIB / 1024
    load = psutil.getloadavg()[0]
    return (
        f"{len(psutil.Process().cpu_affinity())} cores of {platform.machine()}, {memory:.1f} GiB, "
        f"Python {platform.python_version()}, Kubernetes {version}, load at start {load:.1f}"
    )


SECTIONS = {
    "small": _small,
    "medium": _medium,
    "large": _large,
    "releases": _releases,
    "rights": _rights,
    "scopes": _scopes,
    "namespace-scopes": _namespace_scopes,
    "locks": _locks,
    "process": _process,
    "requests": _requests,
    "instances": _instances,
    "growth": _growth,
    "paas": _paas,
    "paas-requests": _paas_requests,
    "flux": _flux,
    "policies": _policies,
    "memory": _memory,
    "decisions": _decisions,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure Tenantry on a control plane of its own.")
    parser.add_argument("--quick", action="store_true", help="small sizes and few samples: about a minute")
    parser.add_argument("--only", choices=SECTIONS, help="one section")
    parser.add_argument("--json", action="store_true", help="the figures as JSON instead of a table")
    chosen = parser.parse_args()
    binaries = ensure_binaries(Lines())
    report = Report(_machine(binaries.version("kubernetes")))
    wanted = [chosen.only] if chosen.only else ["small", "process", "locks"] if chosen.quick else list(SECTIONS)
    began = time.monotonic()
    failed = []
    for section in wanted:
        try:
            asyncio.run(SECTIONS[section](report, quick=chosen.quick))
        except Exception:  # what the other sections measured is not lost with one of them
            traceback.print_exc()
            failed.append(section)
    stack.say(f"done in {time.monotonic() - began:.0f} s")
    print(report.json() if chosen.json else report.table())
    if failed:
        sys.exit(f"these sections failed, see above: {', '.join(failed)}")


if __name__ == "__main__":
    main()
