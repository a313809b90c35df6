"""A control plane with Tenantry at work on it, put back to how it was before each test.

What is held in etcd once everything is installed and at rest is remembered; before the next test it is put back
(`tenantry.testing.etcd`), while sources, broker and functions go on: they follow by their watches, as they follow any other
change.  So each test finds a cluster without namespaces of others, and pays a second and not twenty for it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tenantry.local.control_plane import ControlPlane
from tenantry.local.control_plane.flags import ETCD_SOCKET
from tenantry.local.knative import Knative
from tenantry.local.lasting import Lasting
from tenantry.model.config import Config
from tenantry.model.event import Event
from tenantry.model.kinds import JOB, Object
from tenantry.testing.cases.events import Way
from tenantry.testing.cases.people import People
from tenantry.testing.etcd import Baseline, Etcd, NotQuiet
from tenantry.testing.forks import Forks
from tenantry.testing.planes import ControlPlanes

QUIET_S = 0.3
"""Nothing was written for so long, and no event is on its way: then nothing more follows from what was done."""
_POLL_S = 0.05
_CALM_S = 5.0
"""How long it may take until nothing goes on any more between two tests."""
_REMEMBERED = 12
_OVER = ("Complete", "Failed")
Say = Callable[[str], None]


class NotAtRest(Exception):
    """Something goes on writing."""


class Ground(Lasting):
    """The system under one configuration; between ``async with`` and its end.

    Args:
        planes: where the control plane comes from, and goes to afterwards.
        forks: what starts the functions.
        config: the configuration, as a file has it.
        functions: which of them run.
        helm: the program, without which nothing is released.
        say: gets a line for people now and then.
    """

    def __init__(
        self, planes: ControlPlanes, forks: Forks, config: Mapping[str, Any], functions: list[str], helm: Path | None, say: Say
    ) -> None:
        super().__init__()
        self.way = Way()
        self.said: deque[str] = deque(maxlen=_REMEMBERED)
        """What functions and broker complained about lately."""
        self.people: People
        self.plane: ControlPlane
        self.knative: Knative
        self._planes = planes
        self._forks = forks
        self._config = config
        self._functions = functions
        self._helm = helm
        self._say = say
        self._namespace = Config.model_validate(dict(config), by_alias=True, by_name=False).helm_project_operator.system_namespace
        self._baseline: Baseline
        self._etcd: Etcd

    async def _start(self) -> None:
        began = time.monotonic()
        self.plane = await asyncio.to_thread(self._planes.take)
        self._stack.push_async_callback(asyncio.to_thread, self._planes.give_back, self.plane)
        self._say(f"Kubernetes {self.plane.version} is there ({time.monotonic() - began:.1f} s)")
        began = time.monotonic()
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="tenantry-test-"))
        self.knative = Knative(
            self.plane.kubeconfig,
            Path(folder),
            config=self._config,
            functions=self._functions,
            on_log=self._log,
            on_delivery=self._delivery,
            helm=self._helm,
            spawn=self._forks.spawn,
            between=self.way.through,
        )
        await self._stack.enter_async_context(self.knative)
        self.people = await self._stack.enter_async_context(People(self.plane.kubeconfig))
        self._etcd = Etcd(self.plane.data_dir / ETCD_SOCKET)
        self._stack.callback(self._etcd.close)
        await self.knative.drain()
        # by a client of its own: the thread of a wait that was given up may still ask by the other one
        self._baseline = await asyncio.to_thread(Baseline, Etcd(self.plane.data_dir / ETCD_SOCKET), 20.0, QUIET_S)
        self.said.clear()
        self._say(f"Tenantry is at work with {len(self.knative.functions)} services ({time.monotonic() - began:.1f} s)")

    async def cleared(self) -> bool:
        """Put everything back to how it was before the last test; whether that was possible."""
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.knative.deliver(), _CALM_S)
            await asyncio.to_thread(self._baseline.restore)
            await self.at_rest(_CALM_S)
            await asyncio.to_thread(self._baseline.restore, quiet_s=0.01)  # what was under way may have come late
        except (NotQuiet, NotAtRest, OSError, http.client.HTTPException):
            return False
        self.said.clear()
        return True

    async def at_rest(self, within: float) -> None:
        """Wait until all events are handled, no Helm works, and nothing was written for `QUIET_S`.

        Raises:
            NotAtRest: it did not come to that in time.
        """
        before: dict[str, str] = {}
        quiet_since = time.monotonic()
        busy = "events are on their way"
        try:
            async with asyncio.timeout(within):
                while True:
                    await self.knative.deliver()
                    now = await asyncio.to_thread(self._etcd.versions)
                    if now != before:
                        busy = f"written last: {_names(before, now)}"
                        before, quiet_since = now, time.monotonic()
                    elif time.monotonic() > quiet_since + QUIET_S:
                        if not (jobs := await self._jobs_at_work()):
                            return
                        busy = f"Jobs at work: {', '.join(jobs)}"
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise NotAtRest(f"the cluster is not at rest after {within:.3g} s; {busy}") from None

    async def _jobs_at_work(self) -> list[str]:
        """The Jobs of Helm that are to be run, and have neither succeeded nor failed."""
        if self._helm is None:
            return []
        jobs = (await self.people.admin.list(JOB, self._namespace)).items
        return [each["metadata"]["name"] for each in jobs if not _is_over(each)]

    def _log(self, service: str, line: Mapping[str, str]) -> None:
        if line.get("level") in ("warning", "error", "critical"):
            self.said.append(f"{service}: {line.get('message', '')}")

    def _delivery(self, trigger: str, event: Event, status: int, attempt: int, seconds: float) -> None:
        del seconds
        if not 200 <= status < 300:
            what = event.extensions.get("name") or event.type
            self.said.append(f"broker: {trigger}: {what}: {status or 'no answer'} (try {attempt})")


def _is_over(job: Object) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or []
    return bool(job["spec"].get("suspend")) or any(each["type"] in _OVER and each["status"] == "True" for each in conditions)


def _names(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """A few of the keys that differ."""
    keys = [base64.b64decode(key).decode() for key in before.keys() | now.keys() if before.get(key) != now.get(key)]
    return ", ".join(sorted(keys)[:_REMEMBERED])
