"""The list of sources of a namespace: made, kept as the index says, and taken away (2.8)."""

from __future__ import annotations

from scope_binding.shown.seen import Granted, ShownSeen, asks
from tenantry.model.difference import entries_of
from tenantry.model.flux.names import SHOWN_MARK, SOURCES_SHOWN
from tenantry.model.kinds import CONFIG_MAP, is_terminating, object_of
from tenantry.model.names import field_manager
from tenantry.model.plan import NOTHING, Apply, Delete, Plan, plan_of

MANAGER = field_manager("scope-binding-shown")


def plan_shown(seen: ShownSeen) -> Plan:
    """What the index grants to the namespace, while it asks; nothing on the word of an index that is not complete."""
    home, live = seen.home, seen.live
    if home is None or is_terminating(home) or is_terminating(live):
        return NOTHING
    if not asks(home):
        return plan_of(Delete(CONFIG_MAP, live)) if live is not None and entries_of(live, MANAGER) else NOTHING
    if seen.entries is None or not seen.entries.complete:
        return NOTHING
    metadata = {"name": SOURCES_SHOWN, "namespace": home["metadata"]["name"], "labels": {SHOWN_MARK: "true"}}
    wanted = object_of(CONFIG_MAP, metadata, data=Granted(seen.entries).to(home))
    if live is not None and live.get("immutable") and live.get("data") != wanted["data"]:
        return Plan(((Delete(CONFIG_MAP, live),), (Apply(CONFIG_MAP, wanted, None, manager=MANAGER),)))
    return plan_of(Apply(CONFIG_MAP, wanted, live, manager=MANAGER))
