"""Where the list of sources in a namespace comes from."""

from __future__ import annotations

from scope_binding.shown.plan import MANAGER
from tenantry.model.difference import entries_of
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, SHOW_SOURCES, SHOWN_MARK, SOURCES_SHOWN
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Object, key_in
from tenantry.model.origin import Because, Looking, Origin, kubectl
from tenantry.model.rbac import BoundSubject

KINDS = frozenset({CONFIG_MAP})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The annotation of the namespace, and the index that the list is from."""
    del subject, look
    place = obj["metadata"]["namespace"]
    if obj["metadata"]["name"] != SOURCES_SHOWN or not entries_of(obj, MANAGER):
        return None
    because = (
        Because(key_in(NAMESPACE, place, ""), f"metadata.annotations[{SHOW_SOURCES}]", "true"),
        Because(key_in(ACCESS_INDEX, DEFAULT, ""), "spec", "what is granted to the namespace"),
    )
    ends = (kubectl("annotate", NAMESPACE, place, more=f"{SHOW_SOURCES}-"),)
    return Origin(f"shown/{place}", f"its name, and fields of field manager {MANAGER}; label {SHOWN_MARK}", because, ends)
