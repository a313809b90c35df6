"""Large values as text: made in a thread, one after the other, and once for each change (a-14).

PyYAML takes up to a tenth of a second for values as large as they may be.  What is remembered are digests, of what a text is made
of and of the text: a HelmChart that has that text needs none.  A process that has just started remembers nothing, and makes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from release_provisioning.kept import are_small
from release_provisioning.projects.seen import Contender, ObservedRelease, checked
from release_provisioning.projects.values import values_text
from tenantry.engine.reader import Reader
from tenantry.engine.unit import OutdatedError
from tenantry.model import limits
from tenantry.model.config import Config
from tenantry.model.digest import Digest, digest_of
from tenantry.model.kinds import PROJECT_HELM_CHART, Object


class Texts:
    """Makes the text of large values, and remembers which it made."""

    def __init__(self) -> None:
        self._made: dict[bytes, Digest] = {}
        self._one_at_a_time = asyncio.Semaphore(1)

    async def of(self, seen: ObservedRelease, config: Config, reader: Reader) -> str | Digest | None:
        """The text of the holder's values, where they are large; None where the plan makes it, or makes none.

        Raises:
            OutdatedError: the values are not those of ``seen`` any more.
        """
        holder = seen.holder
        if holder is None or holder.chart is None:
            return None
        spec = holder.object.get("spec") or {}
        if are_small(spec.get("values")):
            return None
        targets, problem = checked(holder, seen, config)
        if problem is not None:
            return None
        live: str | Digest | None = ((seen.helm_chart or {}).get("spec") or {}).get("valuesContent")
        made_of = _made_of(holder, spec, targets)
        if live is not None and self._made.get(made_of) == live:
            return live
        async with self._one_at_a_time:
            # Read here, one at a time: how many wait must not decide how much memory their values take.
            asked = await reader.fetch(PROJECT_HELM_CHART, holder.key.name, holder.key.namespace)
            if asked is None or spec["values"] != (asked.get("spec") or {}).get("values"):
                raise OutdatedError(f"the values of ProjectHelmChart {holder.key} changed while they were read")
            text = await asyncio.to_thread(values_text, asked, holder.chart, holder.project, targets, config)
        if len(self._made) >= limits.REMEMBERED:
            self._made.clear()
        self._made[made_of] = Digest(text)
        return text


def _made_of(holder: Contender, spec: Object, targets: Sequence[str]) -> bytes:
    """What the text of a release's values depends on, the configuration apart, which is the same for the life of a process."""
    values = spec["values"]
    digest = repr(values if isinstance(values, Digest) else Digest(values))
    return digest_of([digest, {**spec, "values": None}, str(holder.key), holder.project, list(targets)])
