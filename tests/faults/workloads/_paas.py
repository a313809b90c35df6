"""Steps and promises that the workloads of Paas share: two Paas, of which the name of one begins the other's.

All runs share one PaasConfig, in which each has mappings and capabilities of its own name.  Hands do what the other functions do.
What declarations give is worked out here once more, by the words of the specification and not by the code of a function.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any
from weakref import WeakKeyDictionary

from tenantry.api.errors import ConflictError
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import Object, annotations_of, is_terminating, object_of
from tenantry.model.paas.names import ASKED_BY, MANAGED_BY_PAAS, PAAS, PAAS_CONFIG, PAAS_NS, PAAS_UID, PARTS, READY, SHARED
from tenantry.testing.naming import tag_of
from tenantry.testing.workload import Run, Step, Workload, apply, together
from tenantry.testing.world import Moment

P, X, CONFIG = "p-@", "p-@-x", "config"
"""Two Paas: the name of one begins the other's."""
Spec = Mapping[str, Any]
_ONE_AT_A_TIME: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
"""Whose turn it is to change the PaasConfig."""


# -- steps -------------------------------------------------------------------------------------------------


def paas(name: str, *, finalizers: Sequence[str] = (), **spec: Any) -> Step:
    """A step that declares a Paas."""
    return apply("Paas", name, finalizers=list(finalizers), spec={"requestor": "team", "quota": {}, **spec})


def configure(**parts: Any) -> Step:
    """A step that sets keys of the PaasConfig, which all runs have; None takes one away."""

    async def step(run: Run) -> None:
        steps = []
        for part, keys in parts.items():
            for key, value in keys.items():
                path = f"/spec/{part}/{key}"
                steps.append({"op": "remove", "path": path} if value is None else {"op": "add", "path": path, "value": value})
        turn = _ONE_AT_A_TIME.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        refused: ConflictError | None = None
        for _ in range(100):
            try:
                async with turn:  # forty at once conflict inside the API server until some time out
                    await run.edit("PaasConfig", CONFIG, "", *steps)
            except ConflictError as error:  # a function sets its status
                refused = error
                await asyncio.sleep(0.02)
            else:
                return
        raise AssertionError(f"the PaasConfig takes no {steps}: {refused}")

    return step


def home(name: str, of: str, asked_by: str = "", **fields: Any) -> Step:
    """A step that makes a namespace for a Paas, as namespace-registration does."""

    async def step(run: Run) -> None:
        owner = await run.get("Paas", of)
        assert owner is not None
        marks = {PAAS_UID: owner["metadata"]["uid"], **({ASKED_BY: asked_by} if asked_by else {})}
        await run.apply("Namespace", name, labels={MANAGED_BY_PAAS: of}, annotations=marks, **fields)

    return step


def story(
    workload: Workload, name: str, *steps: Step, before: Sequence[Step], other: Sequence[Step] = (), **options: Any
) -> None:
    """Add a scenario; another path to its end is all that leads there at once."""
    workload.scenario(name, *steps, before=before, other=other or [together(*before, *steps)], **options)


# -- what is declared --------------------------------------------------------------------------------------


def configs(moment: Moment, tag: str) -> list[Spec]:
    """Of the PaasConfig what a run has in it: now, and before its last change."""
    found: list[Spec] = []
    for key, states in moment.past.items():
        for state in states if key.kind == PAAS_CONFIG.kind else ():
            if (own := config_of_run(state, tag)) not in found[-1:]:
                found.append(own)
    return found[-2:] or [{}]


def config_of_run(config: Object, tag: str) -> Spec:
    """Mappings and capabilities of a run in the PaasConfig."""
    spec = config.get("spec") or {}
    return {
        part: {key: value for key, value in (spec.get(part) or {}).items() if not tag_of(key) or tag in key}
        for part in ("rolemappings", "capabilities")
    }


def worlds(moment: Moment) -> Iterator[tuple[Mapping[str, Object], Spec, Mapping[str, Object]]]:
    """Every way to put together what is in force, or was a moment ago: Paas, the configuration, and PaasNS by their keys."""
    tag = tag_of(moment.change.key.namespace, moment.change.key.name)
    every = [_choices(key in moment.objects, states) for key, states in moment.all_declared(PAAS.kind)]
    asked = [_choices(key in moment.objects, states) for key, states in moment.all_declared(PAAS_NS.kind)]
    for config in configs(moment, tag):
        for chosen in product(*every):
            for some in product(*asked):
                owners = {each["metadata"]["name"]: each for each in chosen if each is not None}
                spaces = {f"{n['metadata']['namespace']}/{n['metadata']['name']}": n for n in some if n is not None}
                yield owners, config, spaces


def _choices(there: bool, states: Sequence[Object]) -> list[Object | None]:
    """The last two states of an object; None where it is going, or gone."""
    return [*([] if there else [None]), *(None if is_terminating(each) else each for each in states)]


def enabled(owner: Object) -> dict[str, Spec]:
    """The capabilities that a Paas has."""
    return {name: each for name, each in (owner["spec"].get("capabilities") or {}).items() if each.get("enabled")}


def owner_of(obj: Object, owners: Mapping[str, Object]) -> Object | None:
    """The Paas that an object is proven to be made for."""
    uid = annotations_of(obj).get(PAAS_UID)
    return next((each for each in owners.values() if each["metadata"]["uid"] == uid), None)


def uids(moment: Moment) -> set[str]:
    """The uids of all Paas that a run ever had."""
    return {state["metadata"]["uid"] for key, states in moment.past.items() if key.kind == PAAS.kind for state in states}


def only_what_is_proven_goes(moment: Moment) -> str:
    """Nothing goes without the mark of a Paas, or that of what several have: no label, name or prefix proves anything."""
    before = moment.change.before
    if not moment.by or moment.change.after is not None or before is None:
        return ""
    if moment.change.key.kind not in ("Namespace", "RoleBinding", "Group", "ClusterResourceQuota", "ResourceQuota"):
        return ""
    marks = annotations_of(before)
    if moment.change.key.kind == "ClusterResourceQuota" and SHARED in marks:
        return ""
    return "" if marks.get(PAAS_UID) in uids(moment) else "took away what is not ours"


def present(objects: Sequence[Object]) -> tuple[dict[str, Object], Spec, dict[str, Object]]:
    """The same of what is there in the end."""
    owners = {each["metadata"]["name"]: each for each in objects if each["kind"] == PAAS.kind and not is_terminating(each)}
    config = next((each for each in objects if each["kind"] == PAAS_CONFIG.kind), {})
    spaces = {f"{n['metadata']['namespace']}/{n['metadata']['name']}": n for n in objects if n["kind"] == PAAS_NS.kind}
    return owners, config_of_run(config, tag_of(*owners)), spaces


# -- a workload --------------------------------------------------------------------------------------------


def tells(obj: Object) -> bool:
    """Whether a Paas or PaasNS, a Warning, or the PaasConfig about a quota that several share tells of something wrong."""
    if obj["kind"] == PAAS_CONFIG.kind:
        return any(each["status"] == "False" for each in obj["status"]["conditions"])
    if obj.get("type") == "Warning" or any((find_condition(obj, part) or {}).get("status") == "False" for part in PARTS):
        return True
    ready = find_condition(obj, READY) or {}  # of namespaces and quotas that cannot go: what is left of a Paas has no parts
    return obj["kind"] == PAAS.kind and is_terminating(obj) and " was refused: " in ready.get("message", "")


def of_paas(function: str, service: str, base: Spec, **options: Any) -> Workload:
    """A workload of a function's duty for Paas, without scenarios; ``base`` is what the PaasConfig has for all runs."""
    return Workload(
        function,
        services=[service],
        manager=f"tenantry-{function}-paas",
        tells=tells,
        handover=[PAAS_UID],
        begins=[object_of(PAAS_CONFIG, {"name": CONFIG}, spec={"rolemappings": {}, "capabilities": {}, **base})],
        shared=[PAAS_CONFIG],
        rehearses=True,
        largest=1000,  # each change of the PaasConfig concerns every Paas, and it has room for 200 mappings: two for each run
        **options,
    )
