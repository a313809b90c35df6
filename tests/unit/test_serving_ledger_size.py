"""A ledger of 10,000 decisions stays small, and every question to it is answered at once; figures: docs/history.md."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from times import LEFT_TO_MAKE_WHOLE

from tenantry.model.event import DECISION_TYPE
from tenantry.model.kinds import Object
from tenantry.model.limits import MIB
from tenantry.serving.ledger.asked import FOREVER, asked_for, decisions, owner_at, reading
from tenantry.serving.ledger.gaps import missing
from tenantry.serving.ledger.record import told_in
from tenantry.serving.ledger.store import Ledger

COUNT, MOST_MIB, MOST_S = 10_000, 20, 1.0
"""The bench measures 13.5 MiB and 30 ms at most, on cores that others use; here the order of magnitude is held."""
BEGAN_MS = 1_700_000_000_000


def told(number: int) -> Object:
    """A decision with four writes, one of them of a binding, and six inputs, for one of a hundred projects."""
    project = f"p-{number % 100}"
    home = f"cattle-project-{project}"
    name = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": home}
    writes = [{"verb": "update", **name, "name": f"c-{each}", "changed": ["data[a]", "data[b]"]} for each in range(3)]
    bound = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "namespace": home, "name": "b"}
    writes.append({"verb": "update", **bound, "role": "Role/view", "subjectsAdded": [f"User/person-{number % 50}"]})
    return {
        "type": DECISION_TYPE, "instance": "f-1", "sequence": number + 1, "function": "f", "service": "f",
        "time": "2026-11-27T15:00:00Z", "unit": "projects", "owner": f"project/{project}",
        "causes": [{"apiVersion": "v1", "kind": "Namespace", "name": f"team-{number % 300}", "event": f"e-{number}"}],
        "inputs": [{**name, "name": f"c-{each}", "resourceVersion": str(number + each)} for each in range(6)], "writes": writes,
        "verdict": {"status": 204, "reason": "done", "complete": True}, "beganMs": BEGAN_MS + 1000 * number, "durationMs": 7,
    }  # fmt: skip


@LEFT_TO_MAKE_WHOLE
def test_ten_thousand_decisions_are_small_and_answered_at_once(tmp_path: Path) -> None:
    """Within 20 MiB, and each way to ask within a second."""
    path = tmp_path / "ledger.db"
    ledger = Ledger(path, max_age_days=3650, max_bytes=1000 * MIB)
    ledger.open()
    for first in range(0, COUNT, 500):
        ledger.add([(told_in(told(number)), "") for number in range(first, first + 500)])
    ledger.close()
    questions: dict[str, Callable[[Any], object]] = {
        each: lambda connection, each=each: decisions(connection, asked_for(each), 0, FOREVER, 50)[0]  # type: ignore[misc]
        for each in ("", "project/p-7", "ConfigMap/cattle-project-p-7/c-1", "Namespace/team-7", "cattle-project-p-7", "person-7")
    }
    questions["at a time"] = lambda connection: owner_at(connection, "project/p-7", BEGAN_MS + 5_000_000)
    questions["missing"] = lambda connection: [missing(connection, 0, FOREVER)]

    assert sum(each.stat().st_size for each in tmp_path.iterdir()) < MOST_MIB * MIB
    for name, ask in questions.items():
        began = time.perf_counter()
        with reading(path) as connection:
            assert ask(connection), name
        assert time.perf_counter() - began < MOST_S, name
