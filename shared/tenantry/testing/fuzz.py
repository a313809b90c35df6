"""Fuzzing the desired state: random declarations, valid and not, in sequences; and then a way back.

`custom_resources` gives the schemas of our CRDs to `tenantry.testing.schemas`.  `sequences` makes random histories of project
labels on a few namespaces, `reaches` of what a ScopeInstance lists; `end_states` performs one history and, beside it, its last
declarations at once under fresh names, and gives both ends without what may outlive (`Workload.leftover`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tenantry.local.deployment import deployment_folder, documents
from tenantry.model.kinds import Kind
from tenantry.testing.arena import Arena
from tenantry.testing.masks import State, state_of
from tenantry.testing.workload import Run, Step, apply, delete, namespace, play

PROJECT = "field.cattle.io/projectId"
IDS = ("p-@", "q-@", "s-@", "", "Bad_@", "UPPER@", "p-denied", "x" * 40 + "-@")
NAMES = ("a-@", "b-@", "c-@")


def custom_resources() -> list[tuple[Kind, dict[str, Any]]]:
    """The kinds of our CRDs with the schema of their stored version (without apiVersion, kind and metadata)."""
    found = []
    for crd in documents(deployment_folder("knative") / "crds"):
        spec, names = crd["spec"], crd["spec"]["names"]
        version = next(each for each in spec["versions"] if each["storage"])
        kind = Kind(f"{spec['group']}/{version['name']}", names["kind"], names["plural"], spec["scope"] == "Namespaced")
        schema = dict(version["schema"]["openAPIV3Schema"])
        schema["properties"] = {name: below for name, below in schema["properties"].items() if name == "spec"}
        found.append((kind, schema))
    return found


Move = tuple[str, str | None, bool]
"""A namespace, its new project label (None: without; "gone": deleted), and whether to wait afterwards."""


def sequences() -> st.SearchStrategy[list[Move]]:
    """Random histories of three namespaces."""
    label = st.sampled_from([*IDS, None, "gone"])
    return st.lists(st.tuples(st.sampled_from(NAMES), label, st.booleans()), min_size=2, max_size=10)


Reach = tuple[tuple[str, ...] | None, bool]
"""The namespaces that a ScopeInstance lists (none: the whole cluster; None: it goes), and whether to wait afterwards."""


def reaches() -> st.SearchStrategy[list[Reach]]:
    """Random histories of one ScopeInstance."""
    listed = st.lists(st.sampled_from(NAMES), unique=True, max_size=3).map(tuple)
    return st.lists(st.tuples(listed | st.none(), st.booleans()), min_size=2, max_size=8)


def scope_steps(history: Sequence[Reach]) -> list[tuple[Step, bool]]:
    """The steps of a history, on three namespaces and one ScopeTemplate."""
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    subject = {"kind": "ServiceAccount", "name": "op", "namespace": "ops"}
    roles = [{"generateName": "t-@", "rules": [rule], "subjects": [subject]}]
    made = [(namespace(name), False) for name in NAMES]
    made.append((apply("ScopeTemplate", "st-@", spec={"clusterRoles": roles}), True))
    there = False
    for listed, wait in history:
        if listed is not None:
            spec = {"scopeTemplateName": "st-@", **({"namespaces": list(listed)} if listed else {})}
            made.append((apply("ScopeInstance", "ci-@", spec=spec), wait))
        elif there:
            made.append((delete("ScopeInstance", "ci-@"), wait))
        there = listed is not None
    return made


def steps_of(moves: Sequence[Move]) -> list[tuple[Step, bool]]:
    """The steps of a history; a namespace that was deleted does not come back."""
    made: list[tuple[Step, bool]] = []
    alive, gone = set[str](), set[str]()
    for name, label, wait in moves:
        if name in gone or (label == "gone" and name not in alive):
            continue
        if label == "gone":
            gone.add(name)
            made.append((delete("Namespace", name), wait))
        else:
            alive.add(name)
            made.append((namespace(name, {} if label is None else {PROJECT: label}), wait))
    return made


async def end_states(arena: Arena, steps: Sequence[tuple[Step, bool]]) -> tuple[State, State]:
    """The state after a history (steps, and whether to wait after each), and that of its last declarations alone."""
    run, _ = await arena.open()
    for step, wait in steps:
        await step(run)
        if wait:
            await run.settle()
    await run.settle()
    fresh, _ = await arena.open()

    async def at_once(target: Run) -> None:
        await target.declare([run.roles(body) for body in run.declared.values()])

    await play([at_once], fresh)
    await arena.sweep()
    await run.settle()
    await fresh.settle()
    ends = _end(arena, run.tag), _end(arena, fresh.tag)
    await arena.close(run.tag)
    await arena.close(fresh.tag)
    return ends


def _end(arena: Arena, tag: str) -> State:
    objects = arena.world.of(tag)
    left = {key.name for key, obj in objects.items() if key.kind == "Namespace" and arena.workload.leftover(obj)}
    kept = {key: obj for key, obj in objects.items() if key.name not in left and key.namespace not in left}
    return state_of(kept, tag)
