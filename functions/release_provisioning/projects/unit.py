"""The wiring of releases: whom an event touches, and what a sweep looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenantry.engine.reader import Prefetch, Reader
from tenantry.model.config import DNS_LABEL, Config
from tenantry.model.kinds import CONFIG_MAP, HELM_CHART, HELM_RELEASE, NAMESPACE, PROJECT_HELM_CHART, Key
from tenantry.model.plan import NOTHING, Plan, Refusal
from tenantry.model.projects import ChartFiles


class Releases:
    """The unit ``projects`` of release-provisioning."""

    name = "projects"
    kinds = frozenset({PROJECT_HELM_CHART, NAMESPACE, HELM_CHART, HELM_RELEASE, CONFIG_MAP})

    def __init__(self, config: Config, charts: tuple[ChartFiles, ...]) -> None:
        self._config = config
        self._charts = charts

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Sequence[Sequence[str]]:
        """The releases that a key concerns."""
        del key, hint, reader
        return []

    def accepts(self, owner: str) -> bool:
        """Whether the owner is ``release/<DNS label>``."""
        kind, _, name = owner.partition("/")
        return kind == "release" and DNS_LABEL.fullmatch(name) is not None

    def pause_s(self, owner: str) -> float:
        """No pause."""
        del owner
        return 0.0

    def ended(self, owner: str, succeeded: bool) -> None:
        """Nothing is kept."""
        del owner, succeeded

    async def observe(self, owner: str, reader: Reader) -> str:
        """Read what decides about the release."""
        del reader
        return owner

    def plan(self, observed: str) -> Plan:
        """The writes that make it as declared."""
        del observed
        return NOTHING

    def report(self, observed: str, refusals: Sequence[Refusal]) -> Plan:
        """The status of the ProjectHelmCharts concerned."""
        del observed, refusals
        return NOTHING

    def prefetch(self) -> Sequence[Prefetch]:
        """Nothing yet."""
        return []

    async def sweep(self, reader: Reader) -> Sequence[str]:
        """Nothing yet."""
        del reader
        return []
