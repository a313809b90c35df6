"""Function processes for the matrix: shared ones that live on, and spare ones that may be killed.

All do what `tenantry serve` does, forked (`tenantry.testing.forks`), with their identity's kubeconfig pointed at a fault proxy,
and none is started again by itself: what takes the place of a killed one is a spare, as the next pod does in a cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from tenantry.local.processes import FunctionProcess, Spawn
from tenantry.testing.forks import Forks

_QUIET = {"TENANTRY_LOG_LEVEL": "warning"}
OnLog = Callable[[dict[str, str]], None]


class Member(FunctionProcess):
    """A process of a replica; ``bug`` names a seeded mutation (`tenantry.testing.seeded`)."""

    def __init__(
        self, name: str, kubeconfig: Path, *, bug: str, environment: Mapping[str, str], on_log: OnLog, spawn: Spawn
    ) -> None:
        quiet = {**_QUIET, **environment}
        super().__init__(name, kubeconfig, say=lambda _: None, environment=quiet, on_log=on_log, spawn=spawn)
        self._bug = bug

    def _program(self) -> list[str]:
        return ["tenantry.testing.seeded", self._bug, "--"] if self._bug else super()._program()

    def _watch_restarts(self) -> bool:
        return False

    async def crash(self) -> None:
        """Kill it, refuse who waits for it, and wait until it is gone."""
        self.kill()
        self.close()
        await self.stop()


class Replica:
    """One process of each Service of a function, by the Service's name; a crash takes all of them, as the loss of a node does."""

    def __init__(self, processes: Mapping[str, Member]) -> None:
        self.processes = dict(processes)

    @property
    def urls(self) -> dict[str, str]:
        """Where the events of each Service go."""
        return {service: process.url for service, process in self.processes.items()}

    async def start(self) -> None:
        """Start all and wait until they answer."""
        await asyncio.gather(*(each.start() for each in self.processes.values()))

    async def stop(self) -> None:
        """End all: finish what runs, then go."""
        await asyncio.gather(*(each.stop() for each in self.processes.values()))
        for each in self.processes.values():
            each.close()

    async def crash(self) -> None:
        """Kill all and wait until they are gone."""
        await asyncio.gather(*(each.crash() for each in self.processes.values()))


class Pool:
    """The shared processes, and as many spare ones as are asked for, reused as long as they live.

    ``kubeconfigs`` has for each Service one of its identity for each shared replica.
    """

    def __init__(self, kubeconfigs: Mapping[str, list[Path]], *, bug: str, environment: Mapping[str, str], on_log: OnLog) -> None:
        self.started = 0
        """How many spare processes were forked."""
        self._forks = Forks()
        self._kubeconfigs = kubeconfigs
        self._bug = bug
        self._environment = environment
        self._on_log = on_log
        self.shared = [self._replica(number) for number in range(min(len(each) for each in kubeconfigs.values()))]
        self._spares: list[Replica] = []
        self._ready: list[Replica] = []

    async def open(self) -> None:
        """Start the shared processes."""
        await asyncio.gather(*(each.start() for each in self.shared))

    async def take(self, count: int = 1) -> list[Replica]:
        """Replicas for one run alone."""
        taken = [self._ready.pop() for _ in range(min(count, len(self._ready)))]
        return taken + list(await asyncio.gather(*(self._spare() for _ in range(count - len(taken)))))

    def give_back(self, replica: Replica) -> None:
        """Return one that was not killed."""
        if replica not in self.shared:
            self._ready.append(replica)

    async def close(self) -> None:
        """Stop all."""
        await asyncio.gather(*(each.stop() for each in self.shared), *(each.crash() for each in self._spares))
        await self._forks.close()

    def _replica(self, number: int) -> Replica:
        return Replica({service: self._member(service, given[number]) for service, given in self._kubeconfigs.items()})

    def _member(self, service: str, kubeconfig: Path) -> Member:
        return Member(
            service,
            kubeconfig,
            bug=self._bug,
            environment=self._environment,
            on_log=self._on_log,
            spawn=self._forks.spawn,
        )

    async def _spare(self) -> Replica:
        made = self._replica(0)
        self._spares.append(made)
        await made.start()
        self.started += len(made.processes)
        return made
