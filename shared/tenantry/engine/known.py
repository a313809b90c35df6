"""What a run knows without a request, because it was read live a moment ago."""

from __future__ import annotations

from collections.abc import Mapping

from tenantry.model.kinds import Key, Kind, Object


class Known(dict[Key, Object | None]):
    """What was read live a moment ago: objects, kinds of which every object is known, and versions of the kinds' lists."""

    def __init__(self, known: Mapping[Key, Object | None] | None = None) -> None:
        super().__init__(known or {})
        before = known if isinstance(known, Known) else None
        self.whole: dict[Kind, list[Object]] = dict(before.whole) if before is not None else {}
        self.versions: dict[Kind, str] = dict(before.versions) if before is not None else {}
