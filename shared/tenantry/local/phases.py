"""What the start of everything on one machine came to, in one line for each phase: for people who wait for it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from tenantry.local.install import Installed

Tell = Callable[[str, str, float], None]
"""Gets the name of a phase, what it came to, and its seconds."""
_SHOWN = 4


class Phases:
    """Counts what would be a line each, and tells a phase when it is over."""

    def __init__(self, tell: Tell, say: Callable[[str], None]) -> None:
        self._tell = tell
        self._say = say
        self._since = time.monotonic()
        self._installed: Counter[str] = Counter()
        self.unserved: set[str] = set()

    def install(self, line: str) -> None:
        """Take a line of the installation: of what is installed only the number is told."""
        if isinstance(line, Installed):
            self._installed[line.kind] += 1
        else:
            self._say(line)

    def installed(self) -> None:
        """CRDs, identities, rights and policies are in place."""
        most = self._installed.most_common(_SHOWN)
        kinds = ", ".join(f"{number} {kind}" for kind, number in most)
        rest = self._installed.total() - sum(number for _, number in most)
        self._over("installed", f"{kinds}{f' and {rest} more' if rest else ''}" if most else "everything was there already")

    def started(self, services: int, functions: int) -> None:
        """The functions answer."""
        self._over("functions", f"{functions}, as {services} services")

    def watched(self, sources: int) -> None:
        """The sources have seen what there is.  What nobody serves here is no error: it is watched as soon as somebody does."""
        groups = sorted({".".join(each.partition("/")[0].split(".")[-2:]) for each in self.unserved})  # whose they are is enough
        missing = f"; not here, so not watched: {', '.join(groups)}" if groups else ""
        self._over("sources", f"{sources}{missing}")

    def _over(self, phase: str, what: str) -> None:
        now = time.monotonic()
        self._tell(phase, what, now - self._since)
        self._since = now
