"""What the fault matrix takes for a run's own, and what it compares."""

from __future__ import annotations

import json
from pathlib import Path

from tenantry.model.kinds import CONFIG_MAP, Object, key_of
from tenantry.testing.arena import Arena
from tenantry.testing.masks import state_of
from tenantry.testing.recording import Exchange
from tenantry.testing.workload import Workload

ONE, OTHER = "r000001r", "r000002r"


def config_map(name: str, tag: str) -> Object:
    metadata = {"name": name, "namespace": f"a-{tag}", "resourceVersion": "1", "uid": "u"}
    return {"apiVersion": CONFIG_MAP.api_version, "kind": CONFIG_MAP.kind, "metadata": metadata, "data": {"k": "v"}}


def listed(selector: str, *items: Object) -> Exchange:
    """A list over all namespaces that names no run."""
    body = json.dumps({"items": items}).encode()
    query = {"labelSelector": selector}
    return Exchange(1, 0.0, 1.0, "f", "list", "v1", "configmaps", "", "", "", query, 200, 200, named=False, seen=body, kept=body)


def test_a_question_about_what_hands_wrote_is_a_read_of_the_runs_in_its_answer(tmp_path: Path) -> None:
    """The label that a hand changed names no run any more; a list that asks for all objects is a read of none."""
    arena = Arena(Workload("namespace-registration"), tmp_path)
    arena._sorted = {ONE: [], OTHER: []}
    about, sweep = (
        listed("from=drifted", config_map("c", ONE), config_map("c", "r000009r")),
        listed("from", config_map("c", OTHER)),
    )
    arena._assign(about)
    arena._assign(sweep)
    assert arena._sorted == {ONE: [about], OTHER: []}


def test_what_kubernetes_puts_everywhere_is_not_compared() -> None:
    """Its own ConfigMap differs from control plane to control plane."""
    found = [config_map("mine", ONE), config_map("kube-root-ca.crt", ONE)]
    state = state_of({key_of(each): each for each in found}, ONE)
    assert [role.rpartition("/")[2] for role in state] == ["mine"]
