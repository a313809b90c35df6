"""How long a step may take until what it expects is so, where its test does not say: the times of the acceptance checks."""

from __future__ import annotations

from collections.abc import Iterable

from tenantry.model.kinds import Object

HELM_S = 30.0
"""Where Helm has to run."""
PROJECTS_S = 10.0
"""Projects, and everything else."""
PROMPT_S = 5.0
"""Scopes, NamespaceScopes, Paas, Tenants, grants and consumers of Flux."""
_HELM = ("helm.cattle.io",)
_PROMPT = (
    "operators.coreos.com",
    "operators.io.operator-framework",
    "operator.ibm.com",
    "cpet.belastingdienst.nl",
    "tenantry.dev",
    "toolkit.fluxcd.io",
)


def time_for(written: Iterable[Object]) -> float:
    """Seconds from the last write of a step, by the kinds that it writes: the longest of theirs."""
    groups = [each["apiVersion"].rpartition("/")[0] for each in written]
    if any(group in _HELM for group in groups):
        return HELM_S
    return PROMPT_S if groups and all(_is_prompt(group) for group in groups) else PROJECTS_S


def _is_prompt(group: str) -> bool:
    return any(group == each or group.endswith(f".{each}") for each in _PROMPT)
