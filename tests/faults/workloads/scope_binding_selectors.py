"""scope-binding: the selector of a scope is changed by mistake and put right, or somebody accepts what it takes (decision 30)."""

from scope_binding.scopes.declared import changed_selector, reach_of
from scope_binding.scopes.withdrawal import change_digest
from tenantry.model.kinds import annotations_of, labels_of
from tenantry.model.names import WITHDRAWAL_ACCEPTED
from tenantry.testing.workload import Run, namespace, together
from tenantry.testing.world import Moment

from ._scopes import T, instance, scopes


def what_nobody_named_stays(moment: Moment) -> str:
    """A binding does not go because of another selector, unless that was accepted."""
    before, place = moment.change.before, moment.change.key.namespace
    if not moment.by or moment.change.after is not None or before is None or moment.change.key.kind != "RoleBinding":
        return ""
    owner = next((ref["name"] for ref in before["metadata"].get("ownerReferences") or ()), "")
    scope = next((each for key, each in moment.objects.items() if (key.kind, key.name) == ("ScopeInstance", owner)), None)
    spaces = moment.declared("Namespace", place)
    earlier = changed_selector(scope) if scope is not None else None
    if scope is None or earlier is None or reach_of(scope).cluster:
        return ""
    accepted = any(WITHDRAWAL_ACCEPTED in annotations_of(each) for each in moment.declared("ScopeInstance", owner))
    named = not all(earlier.matches(labels_of(each)) for each in spaces)
    return "" if accepted or named else f"taken in {place}, where only the selector was changed"


async def accept(run: Run) -> None:
    """Annotate the instance as its condition says."""
    live = await run.get("ScopeInstance", "si-@") or {}
    value = change_digest(live) if changed_selector(live) is not None else "nothing"
    await run.edit(
        "ScopeInstance", "si-@", "", {"op": "add", "path": "/metadata/annotations", "value": {WITHDRAWAL_ACCEPTED: value}}
    )


workload = scopes()
workload.config = {"scopeBinding": {"selectorChange": {"bindings": 0, "percent": 0}}}
workload.safe = [*workload.safe, what_nobody_named_stays]
SPACES = together(*(namespace(f"{name}-@", {"env": "e-@"}) for name in "abc"))
RIGHT, WRONG = (instance("si-@", namespaceSelector={"env": env}) for env in ("e-@", "x-@"))
LEFT = namespace("c-@")
workload.scenario("mistyped", WRONG, RIGHT, before=[together(SPACES, T, RIGHT)])
workload.scenario("leaves-meanwhile", WRONG, LEFT, RIGHT, before=[together(SPACES, T, RIGHT)])
workload.scenario("accepted", accept, before=[together(SPACES, T, RIGHT), WRONG], other=[together(SPACES, T, WRONG), accept])
