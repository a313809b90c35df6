"""Of tests that are marked ``one_variant`` a run takes one variant each: all of them together take longer than `make test` may.

``@pytest.mark.one_variant("projection")``: one value of that parameter for each of the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from zlib import crc32

import pytest

LEFT_OUT = pytest.mark.skip(reason="one variant of several: make whole")


def leave_out(items: Iterable[pytest.Item]) -> None:
    """Skip all variants but one of each marked test: always the same one, so that a failure comes again.

    What is marked ``skip`` or ``skipif`` does not count: it may not run anyhow.
    """
    variants = defaultdict(list)
    values: defaultdict[tuple[str, str], list[object]] = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("one_variant")
        if mark and not (item.get_closest_marker("skip") or item.get_closest_marker("skipif")):
            test, params = item.nodeid.partition("[")[0], item.callspec.params  # type: ignore[attr-defined]  # no type of pytest's says it
            if unknown := set(mark.args) - params.keys():
                raise pytest.UsageError(f"{item.nodeid}: one_variant names {', '.join(sorted(unknown))}, which is no parameter")
            others = [_number(values[test, name], params[name]) for name in sorted(params) if name not in mark.args]
            variants[f"{test} {others}"].append(item)
    for which, several in variants.items():
        several.sort(key=lambda item: item.nodeid)
        kept = several[crc32(which.encode()) % len(several)]
        for item in several:
            if item is not kept:
                item.add_marker(LEFT_OUT)


def _number(known: list[object], value: object) -> int:
    """Which of the values of a parameter this is: values need not be hashable, and pytest's own numbers count the variants."""
    if value not in known:
        known.append(value)
    return known.index(value)
