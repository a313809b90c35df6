"""When a project is complete, and when a member has its label: told by watches, with the time of arrival.

A project is complete with its registration namespace (labels and annotation), each chart's ConfigMap, the hardened
ServiceAccount ``default`` and the NetworkPolicy; a member has the label that remembers its project.
"""

from __future__ import annotations

from typing import Any

from tests.bench.objects import CONFIG, OURS, is_complete_registration
from tests.bench.wire import Watched, Wire

from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT
from tenantry.model.names import DEFAULT_SERVICE_ACCOUNT, HARDENING_POLICY, PROJECT_ID, REGISTRATION_PREFIX

_CONFIG_MAPS = {chart.config_map_name for chart in CONFIG.helm_project_operator.charts}


class Tracker(Watched):
    """Watches four collections; `wait` ends when everything that is expected has been seen."""

    def __init__(self) -> None:
        super().__init__()
        self.done_at: dict[str, float] = {}
        self.changes = 0
        self._missing: dict[str, set[str]] = {}
        self._open = 0

    async def start(self, wire: Wire) -> None:
        await wire.watch(NAMESPACE.path(), self._namespace)
        for kind in (CONFIG_MAP, SERVICE_ACCOUNT, NETWORK_POLICY):
            await wire.watch(f"{kind.path()}?{OURS}", self._inside)

    def expect_project(self, project: str) -> None:
        self._expect(REGISTRATION_PREFIX + project, {"Namespace", "ServiceAccount", "NetworkPolicy", *_CONFIG_MAPS})

    def expect_member(self, name: str) -> None:
        self._expect(name, {"label"})

    async def wait(self, within: float = 300.0) -> float:
        """The moment at which the last thing was complete."""
        try:
            await self.until(lambda: not self._open, within)
        except TimeoutError:
            missing = [f"{name}: {', '.join(parts)}" for name, parts in self._missing.items() if parts]
            raise RuntimeError(f"not seen within {within:g} s, {len(missing)}: {missing[:10]}") from None
        return max(self.done_at.values())

    async def wait_for(self, name: str, within: float = 60.0) -> float:
        """The moment at which this one was complete."""
        await self.until(lambda: name in self.done_at, within)
        return self.done_at[name]

    def _expect(self, name: str, parts: set[str]) -> None:
        self._missing[name] = parts
        self._open += 1

    def _seen(self, name: str, part: str) -> None:
        missing = self._missing.get(name)
        if missing is None or part not in missing:
            return
        missing.discard(part)
        if not missing:
            self._open -= 1
            self._changed()
            self.done_at[name] = self.changed_at

    def _namespace(self, change: str, obj: Any) -> None:
        self.changes += 1
        name = obj["metadata"]["name"]
        if name not in self._missing or change == "DELETED":
            return
        if name.startswith(REGISTRATION_PREFIX):
            if is_complete_registration(obj):
                self._seen(name, "Namespace")
        elif (obj["metadata"].get("labels") or {}).get(PROJECT_ID):
            self._seen(name, "label")

    def _inside(self, change: str, obj: Any) -> None:
        self.changes += 1
        if change == "DELETED":
            return
        metadata = obj["metadata"]
        if "automountServiceAccountToken" in obj:
            if metadata["name"] == DEFAULT_SERVICE_ACCOUNT and obj["automountServiceAccountToken"] is False:
                self._seen(metadata["namespace"], "ServiceAccount")
        elif "spec" in obj:
            if metadata["name"] == HARDENING_POLICY:
                self._seen(metadata["namespace"], "NetworkPolicy")
        else:
            self._seen(metadata["namespace"], metadata["name"])
