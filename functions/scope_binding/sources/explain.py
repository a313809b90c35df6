"""Where the index of grants comes from."""

from __future__ import annotations

from tenantry.model.flux.names import ACCESS_FROM, ACCESS_INDEX, DEFAULT, SOURCE_GRANT, SOURCES
from tenantry.model.kinds import Object, key_of
from tenantry.model.origin import Because, Looking, Origin
from tenantry.model.rbac import BoundSubject

KINDS = frozenset({ACCESS_INDEX})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The SourceGrants of all namespaces; sources that say it themselves are not listed here."""
    del subject
    if obj["metadata"]["name"] != DEFAULT:
        return None
    because = [Because(key_of(each), "spec") for each in await look.list(SOURCE_GRANT)]
    because.append(Because(None, "flux.maxGrants", str(look.config.flux.max_grants)))
    end = f"it stays, and what it says follows SourceGrants and the annotation {ACCESS_FROM} of {', '.join(SOURCES)}"
    return Origin(f"access/{DEFAULT}", "there is only one, and only scope-binding may write it", tuple(because), (end,))
