"""The wiring of policies: whatever changes what is wanted or what is there concerns the one owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lock_enforcement.policies.observe import observe_policies
from lock_enforcement.policies.report import not_told_yet, report_policies
from lock_enforcement.policies.seen import PoliciesSeen
from tenantry.engine.reader import Reader
from tenantry.engine.reads import if_served
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import Handler, Owner, Stages, Unit
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, TENANCY_PROFILE
from tenantry.model.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING, CUSTOM_RESOURCE_DEFINITION, Key, Object
from tenantry.serving import Settings

OWNER = Owner("policies", DEFAULT)
PAUSE_S = 0.5
"""An installation writes some thirty policies and as many bindings one after the other."""
STEADY_S = 1.0
"""What is to be told is the same for so long: an installation that is under way is not told piece by piece (f-95)."""


def generation_of(profile: Object | None) -> tuple[str, int] | None:
    """Which profile it is, and what of it people have written."""
    return (profile["metadata"]["uid"], profile["metadata"]["generation"]) if profile is not None else None


class Policies(Unit):
    """The unit ``policies`` of lock-enforcement."""

    name = "policies"
    kinds = frozenset({TENANCY_PROFILE, ADMISSION_POLICY, ADMISSION_POLICY_BINDING, CUSTOM_RESOURCE_DEFINITION})
    ours = frozenset({TENANCY_PROFILE, ACCESS_INDEX})

    def __init__(self) -> None:
        self._compared: Object | None = None
        self._told: tuple[str, int] | None = None
        """The profile that the last run has told about, as uid and generation: a hint."""
        self.handlers = {
            OWNER.type: Handler[PoliciesSeen](
                observe=self._observe,
                plan=report_policies,
                accepts=OWNER.__eq__,
                pause_s=PAUSE_S,
                doubtful=not_told_yet,
                second_look_after_s=lambda _: STEADY_S,
                ended=self._ended,
            )
        }

    async def _observe(self, _: Owner, reader: Reader) -> PoliciesSeen:
        seen = await observe_policies(reader)
        if reader.live:
            self._compared = seen.profile
        return seen

    def _ended(self, _: Owner, well: bool) -> None:
        self._told = generation_of(self._compared) if well else None

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The one owner, but for what is written about violations in the status of the profile that it knows."""
        del hint
        if key.kind == TENANCY_PROFILE.kind and self._told is not None:
            live = await if_served(TENANCY_PROFILE, reader, reader.get(TENANCY_PROFILE, DEFAULT))
            return [] if generation_of(live) == self._told else [[OWNER]]
        return [[OWNER]]

    def prefetch(self) -> Sequence[Prefetch]:
        """Nothing: there are few policies, and one owner."""
        return ()

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """The one owner."""
        del reader
        return [OWNER]


def made(settings: Settings) -> Policies:
    """The unit of a process."""
    del settings
    return Policies()
