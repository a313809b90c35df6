"""From kind to resource name: our constants first, then the guess that Knative makes.

Knative's source never asks the server how a kind is served, it pluralises.  A CRD whose plural differs from the guess is
not watched there, so the twin on one machine guesses too, and says so when the server knows the kind by another name.
"""

from __future__ import annotations

from tenantry.model import kinds
from tenantry.model.flux import names as flux
from tenantry.model.flux import onboarding
from tenantry.model.flux.consumers import CONSUMER_KINDS
from tenantry.model.kinds import Kind
from tenantry.model.paas import names as paas

_MODULES = (kinds, paas, flux, onboarding)
KNOWN = {(kind.api_version, kind.kind): kind for each in _MODULES for kind in vars(each).values() if isinstance(kind, Kind)}
KNOWN |= {(kind.api_version, kind.kind): kind for kind in (*flux.SHARED_KINDS, *CONSUMER_KINDS)}
_BY_PLURAL = {(kind.api_version, kind.plural): kind for kind in KNOWN.values()}


def kind_served_as(api_version: str, plural: str) -> Kind | None:
    """The kind of ours that is served under this name; None for others."""
    return _BY_PLURAL.get((api_version, plural))


def guess_plural(kind: str) -> str:
    """The plural that Knative guesses: ``s`` to ``ses``, ``y`` to ``ies``, else ``s``; endpoints stay."""
    name = kind.lower()
    if name == "endpoints":
        return name
    if name.endswith("s"):
        return name + "es"
    return name[:-1] + "ies" if name.endswith("y") else name + "s"


def kind_of(api_version: str, kind: str) -> tuple[Kind, bool]:
    """The kind as it is served, and whether its scope is known; an unknown one counts as namespaced until asked."""
    known = KNOWN.get((api_version, kind))
    if known is not None:
        return known, True
    return Kind(api_version, kind, guess_plural(kind)), False
