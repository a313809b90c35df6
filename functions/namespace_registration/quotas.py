"""Quantities of quotas: shares, limits of capabilities, and what all Paas together have of a clusterwide one (2.6).

Numbers are exact.  What is above the largest number of Kubernetes counts as that; what is no quantity, or less than nothing,
counts as 0: the schema refuses it, and where it got in it gives nobody anything.  Results are written as Kubernetes itself writes
quantities: without fractions, in the shortest form that says the same.

>>> shares({"limits.cpu": "40"}, ["p-cicd", "p-prod", "p-test"])["p-cicd"]
{'limits.cpu': '13334m'}
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil

from tenantry.model.comparison import quantity
from tenantry.model.paas.config import CapabilityConfig
from tenantry.model.paas.declared import Amounts

MOST = 2**63 - 1
"""The largest quantity of Kubernetes."""
_CPU = frozenset({"cpu", "requests.cpu", "limits.cpu"})
_MILLI = Fraction(1, 1000)
_NANO = Fraction(1, 10**9)
_LONG = re.compile(r"\+?([0-9]*)(?:\.([0-9]*))?(?:[eE]([-+]?)([0-9]+))?(m|u|n|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
_DIGITS = 28
"""More whole digits than that are above the largest quantity with any suffix."""
_DECIMAL = tuple((Fraction(1000) ** power, suffix) for power, suffix in enumerate(("", *"kMGTPE")))
_SMALL = ((_MILLI, "m"), (_MILLI**2, "u"), (_NANO, "n"))
_BINARY = tuple((Fraction(1024) ** power, f"{suffix}i") for power, suffix in enumerate("KMGTPE", 1))


def unit_of(resource: str) -> Fraction:
    """What a resource is counted in: thousandths of a CPU, and whole ones of everything else."""
    return _MILLI if resource in _CPU else Fraction(1)


def number(text: str) -> Fraction:
    """A quantity as a number between 0 and `MOST`; as in Kubernetes nothing is finer than a billionth."""
    found = quantity(text)
    if found is None:
        found = _long(text)
    if found <= 0:
        return Fraction(0)
    if found >= MOST:
        return Fraction(MOST)
    if found < Decimal("1e-9"):
        return _NANO
    return Fraction(ceil(Fraction(found) / _NANO)) * _NANO


def _long(text: str) -> Decimal:
    """A quantity of more digits than anybody writes, as near as it matters, at no cost; 0 for what is none."""
    found = _LONG.fullmatch(text)
    if found is None or not (found[1] or found[2]):
        return Decimal(0)
    whole, rest, sign, exponent = found[1].lstrip("0"), found[2] or "", found[3], (found[4] or "").lstrip("0")
    if not whole and not rest.strip("0"):
        return Decimal(0)
    if len(exponent) > 3:
        return Decimal(0 if sign == "-" else MOST)
    if len(whole) >= _DIGITS:
        return Decimal(0 if sign == "-" else MOST)
    power = f"e{sign}{exponent}" if exponent else ""
    return quantity(f"{whole or '0'}.{rest[: _DIGITS - 2 - len(whole)]}{power}{found[5] or ''}") or Decimal(0)


def written(value: Fraction) -> str:
    """The shortest exact form of a number, without fractions: 1500m, 8, 1Gi."""
    if value == 0:
        return "0"
    scales = _DECIMAL if value.denominator == 1 else _SMALL
    fitting = [(value / scale, suffix) for scale, suffix in (*scales, *_BINARY) if (value / scale).denominator == 1]
    return min((f"{amount.numerator}{suffix}" for amount, suffix in fitting), key=len)


def normal(amounts: Amounts) -> dict[str, str]:
    """Quantities in the form in which they are written into quotas, by resource."""
    return {resource: written(number(text)) for resource, text in sorted(amounts.items())}


def _down(resource: str, value: Fraction) -> int:
    """How many whole units of a resource a number has."""
    return int(value / unit_of(resource))


def shares(total: Amounts, namespaces: Sequence[str]) -> dict[str, dict[str, str]]:
    """What each namespace gets of a quota, by namespace and resource: the shares together are the quota, in whole units.

    Units that are left over go to the first namespaces in order of their names, one each.
    """
    names = sorted(set(namespaces))
    made: dict[str, dict[str, str]] = {name: {} for name in names}
    for resource, text in sorted(total.items()) if names else ():
        each, left = divmod(_down(resource, number(text)), len(names))
        for place, name in enumerate(names):
            made[name][resource] = written((each + (place < left)) * unit_of(resource))
    return made


def _asked(own: Amounts, known: CapabilityConfig) -> dict[str, Fraction]:
    """What a Paas has of a capability, by resource: its own value, else the default."""
    return {resource: number(text) for resource, text in sorted({**known.defaults, **own}.items())}


def _at_most(resource: str, value: Fraction, known: CapabilityConfig) -> Fraction:
    return min(value, number(known.most[resource])) if resource in known.most else value


def _at_least(resource: str, value: Fraction, known: CapabilityConfig) -> Fraction:
    return max(value, number(known.least[resource])) if resource in known.least else value


def capability_quota(own: Amounts, known: CapabilityConfig) -> dict[str, str]:
    """The quota of a capability that is not clusterwide: the Paas' value, else the default; then not below min, not above max."""
    return {
        resource: written(_at_most(resource, _at_least(resource, value, known), known))
        for resource, value in _asked(own, known).items()
    }


def fallback_quota(own: Amounts, known: CapabilityConfig) -> dict[str, str]:
    """The quota of one namespace of a clusterwide capability, where no quota spans namespaces: min and ratio are not used."""
    return {resource: written(_at_most(resource, value, known)) for resource, value in _asked(own, known).items()}


def clusterwide_quota(values: Sequence[Amounts], known: CapabilityConfig) -> dict[str, str]:
    """The quota that all Paas with a clusterwide capability share: min(max(ratio x sum, two largest, min), max), in whole units.

    Args:
        values: what each Paas says for itself; it counts with the default for what it does not say.
    """
    asked = [_asked(own, known) for own in values]
    ratio = min(max(Fraction(quantity(known.ratio) or 0), Fraction(0)), Fraction(1))
    made = {}
    for resource in sorted({name for each in asked for name in each}):
        found = sorted((each[resource] for each in asked if resource in each), reverse=True)
        wanted = max(ratio * sum(found), Fraction(sum(found[:2])))
        wanted = min(_at_most(resource, _at_least(resource, wanted, known), known), Fraction(MOST))
        made[resource] = written(_down(resource, wanted) * unit_of(resource))
    return made


def zero_shares(share: Amounts) -> list[str]:
    """The resources of which there is nothing, sorted."""
    return sorted(resource for resource, text in share.items() if number(text) == 0)


def requests_above_limits(quota: Amounts) -> list[str]:
    """The requests of which a quota has more than of the limits of the same resource, sorted; ``cpu`` is ``requests.cpu``."""
    return sorted(
        requests
        for limits, text in quota.items()
        if limits.startswith("limits.")
        for requests in (limits.replace("limits.", "requests.", 1), limits.removeprefix("limits."))
        if requests in quota and number(quota[requests]) > number(text)
    )


def equal(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two quotas mean the same: the same resources, each of the same number."""
    return one.keys() == other.keys() and all(number(text) == number(other[resource]) for resource, text in one.items())
