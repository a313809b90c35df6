"""The section ``decisions`` of the configuration."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, StrictBool
from pydantic.alias_generators import to_camel


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, alias_generator=to_camel)


class LedgerSettings(_Section):
    """``decisions.ledger``: what the ledger keeps, by whichever is reached first."""

    max_age_days: int = Field(90, ge=1, le=3650, strict=True)
    """Older decisions are deleted."""
    max_megabytes: int = Field(512, ge=1, le=100_000, strict=True)
    """MiB of the file; of more the oldest decisions are deleted."""


class DecisionSettings(_Section):
    """``decisions``: what each run has written, and because of what, as events for a ledger or any other sink."""

    enabled: StrictBool = False
    ledger: LedgerSettings = LedgerSettings()
