"""Decisions as a story, without a cluster: what belongs together, who did it, and in which words it is told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tenantry.kit.console.deeds import told_of
from tenantry.kit.console.story import SWEEP, At, Deed, causes_of, episodes, is_put_right, told
from tenantry.model.config import Config
from tenantry.model.kinds import (
    CONFIG_MAP,
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    PROJECT_HELM_CHART,
    ROLE_BINDING,
    SECRET,
    Key,
    Kind,
    Object,
)
from tenantry.serving.ledger.asked import shown_time

T = 1_700_000_000.0
"""A time in seconds since 1970: all others are so much later."""
LABEL = Config().project_label


def key(kind: Kind, name: str, namespace: str = "") -> Key:
    return Key(kind.api_version, kind.kind, namespace, name)


TEAM, HOME = key(NAMESPACE, "team-a"), key(NAMESPACE, "cattle-project-p-a")
CHART, WANTED = key(HELM_CHART, "demo", "system"), key(PROJECT_HELM_CHART, "demo", "cattle-project-p-a")
ALICE, GIVEN = key(ROLE_BINDING, "alice", "cattle-project-p-a"), key(ROLE_BINDING, "view", "demo")
RECORD, BOARD = key(SECRET, "sh.helm.release.v1.demo.v1", "demo"), key(CONFIG_MAP, "board", "demo")
LOCK = key(HELM_RELEASE, "demo", "system")


def named(of: Key) -> Object:
    return {"apiVersion": of.api_version, "kind": of.kind, "namespace": of.namespace, "name": of.name}


def write(verb: str, of: Key, **more: Any) -> Object:
    return {"verb": verb, **named(of), **more}


def iso(after: float) -> str:
    return datetime.fromtimestamp(T + after, UTC).isoformat()


def run(
    after: float, causes: list[tuple[Key, float]], *writes: Object, function: str = "f", took_ms: int = 100, sweep: bool = False
) -> Object:
    """A decision that was made so many seconds after `T`, because of events at these times."""
    told_causes = [{"sweep": True}] if sweep else [{**named(of), "event": "e", "time": iso(when)} for of, when in causes]
    return {
        "time": shown_time(round((T + after) * 1000)),
        "function": function,
        "unit": "u",
        "owner": "project/p-a",
        "causes": told_causes,
        "writes": list(writes),
        "refused": [],
        "durationMs": took_ms,
        "verdict": {"status": 204, "reason": "done", "complete": True},
    }


def began(found: list[Any]) -> list[tuple[Key, int]]:
    """What began each episode, and how many decisions it has."""
    return [(each.began.key, len(each.decisions)) for each in found]


def test_what_follows_from_a_write_is_of_its_episode() -> None:
    """An event of what a run has just written is no deed of its own, also where its decision is noted before that of the run."""
    first = run(0.2, [(WANTED, 0.0)], write("create", CHART), took_ms=150)
    fast = run(0.15, [(CHART, 0.12)], write("status", CHART), took_ms=20)
    assert began(episodes([fast, first], {})) == [(WANTED, 2)]


def test_two_people_are_two_episodes() -> None:
    """Deeds about other objects are told apart, the newest last; the same object again, a second later, is another deed."""
    runs = [
        run(0.2, [(TEAM, 0.1)], write("create", HOME)),
        run(0.4, [(ALICE, 0.3)], write("create", GIVEN)),
        run(1.9, [(ALICE, 1.8)], write("delete", GIVEN)),
    ]
    assert began(episodes(runs, {})) == [(TEAM, 1), (ALICE, 1), (ALICE, 1)]


def test_one_deed_that_several_sources_tell_of_is_one_episode() -> None:
    """Events of one object within a moment belong together, whichever functions they wake."""
    runs = [run(0.2, [(BOARD, 0.1)], write("update", BOARD)), run(0.3, [(BOARD, 0.1004)], write("status", WANTED))]
    assert began(episodes(runs, {})) == [(BOARD, 2)]


def test_what_helm_does_belongs_to_who_asked_for_it() -> None:
    """Records and objects of a release that an episode made are in it however much later they come, and told as Helm's."""
    runs = [
        run(0.2, [(WANTED, 0.0)], write("create", CHART), function="release-provisioning"),
        run(9.1, [(RECORD, 9.0)], write("status", LOCK), function="lock-enforcement"),
    ]
    deeds = {At(RECORD, causes_of(runs[1])[0].when): Deed("Helm created it", "Helm", is_person=False, release="demo")}
    (found,) = episodes(runs, deeds)
    assert began([found]) == [(WANTED, 2)]
    steps = told(found, {}, {}, [{"well": True, "refused": []}])["steps"]
    assert [(each["by"], each["afterMs"] > 5000) for each in steps] == [
        ("release-provisioning", False), ("Helm", True), ("lock-enforcement", True),
    ]  # fmt: skip


def test_a_late_event_of_our_own_write_is_no_deed() -> None:
    """On a busy machine it comes seconds later: nobody else wrote the object then, so it is of the episode that did."""
    runs = [run(0.2, [(TEAM, 0.1)], write("create", HOME)), run(3.2, [(HOME, 3.0)], write("update", HOME))]
    at = causes_of(runs[1])[0]
    assert began(episodes(runs, {at: Deed("it came into sight", changed=True)})) == [(TEAM, 2)]
    assert began(episodes(runs, {at: Deed("Somebody changed it", "Somebody")})) == [(TEAM, 1), (HOME, 1)]


def test_a_sweep_is_an_episode() -> None:
    """What a schedule brought to light is told as such."""
    (found,) = episodes([run(0.2, [], write("create", HOME), sweep=True)], {})
    assert found.began.key == SWEEP


def test_it_is_told_in_plain_words() -> None:
    """Made and deleted objects by namespace, rights by people and roles, status last; what undoes a change sets it right."""
    decision = run(
        0.2, [(BOARD, 0.1)],
        write("create", HOME), write("create", CHART), write("create", LOCK),
        write("create", GIVEN, role="Role/view", subjectsAdded=["User/alice"]),
        write("delete", ALICE, role="ClusterRole/view", subjectsRemoved=["User/bob"]),
        write("update", BOARD, changed=["data[a]"]),
        write("update", WANTED, changed=["metadata.finalizers[x]"]),
        write("status", WANTED, changed=["status.conditions[Ready].status", "status.conditions[Stalled].message"]),
    )  # fmt: skip
    (found,) = episodes([decision], {})
    deed = Deed("Somebody changed it", "Somebody", changed=True)
    shown = told(found, {found.began: deed}, {"f": "what it is for"}, [{"well": True, "refused": ["refused x"]}])
    assert (shown["text"], shown["well"], shown["refused"]) == ("Somebody changed it", True, ["refused x"])
    (step,) = shown["steps"]
    assert (step["by"], step["about"], step["noted"]) == ("f", "what it is for", "ProjectHelmChart demo in cattle-project-p-a")
    said = [(each["says"], [it["name"] for it in each["objects"]], each["more"]) for each in step["did"]]
    assert said == [
        ("made", ["cattle-project-p-a"], ""),
        ("made", ["demo", "demo"], ""),
        ("gave User alice Role/view by", ["view"], ""),
        ("took ClusterRole/view from User bob:", ["alice"], " is gone"),
        ("set right", ["board"], ": data[a]"),
    ]
    touched = {(kind, name): verb for kind, _, name, verb in shown["touched"]}
    assert (touched["ConfigMap", "board"], touched["RoleBinding", "view"], touched["RoleBinding", "alice"]) == (
        "",
        "create",
        "delete",
    )


def test_a_right_that_was_lent_is_told_once() -> None:
    """What was given and taken back within an episode is one sentence; a status alone names the conditions that turned."""
    lent = {"role": "ClusterRole/helm", "subjectsAdded": ["ServiceAccount/x/helm"]}
    back = {"role": "ClusterRole/helm", "subjectsRemoved": ["ServiceAccount/x/helm"]}
    runs = [
        run(0.2, [(WANTED, 0.1)], write("create", GIVEN, **lent)),
        run(0.5, [(WANTED, 0.4)], write("delete", GIVEN, **back)),
        run(0.6, [(WANTED, 0.5)], write("status", LOCK, changed=["status.conditions[Complete].status"]), function="g"),
    ]
    (found,) = episodes(runs, {})
    first, second = told(found, {}, {}, [])["steps"]
    assert [each["says"] for each in first["did"]] == ["gave ServiceAccount x/helm ClusterRole/helm for a while, by"]
    assert (second["did"], second["noted"]) == ([], "HelmRelease demo in system (Complete)")


def test_what_a_person_makes_during_a_run_is_theirs() -> None:
    """A run that was under way wrote the object too, and its event came then: a creation follows from nothing, and is once."""
    runs = [
        run(0.5, [(TEAM, 0.1)], write("create", HOME), write("status", WANTED), took_ms=400),
        run(0.9, [(WANTED, 0.3)], write("create", CHART)),
        run(2.5, [(WANTED, 2.4)], write("status", WANTED)),
    ]
    made, again = causes_of(runs[1])[0], causes_of(runs[2])[0]
    assert began(episodes(runs, {})) == [(TEAM, 2), (WANTED, 1)]
    assert began(episodes(runs, {at: Deed("Somebody made it", "Somebody") for at in (made, again)})) == [(TEAM, 1), (WANTED, 2)]


def test_what_else_was_a_reason_is_told() -> None:
    """A run for several deeds is told with the first, which names the others; what functions made themselves is no reason."""
    decision = run(0.5, [(TEAM, 0.1), (ALICE, 0.3), (HOME, 0.4)], write("create", HOME))
    (found,) = episodes([decision], {})
    deeds = {at: Deed(f"Somebody made {at.key.name}", "Somebody") for at in causes_of(decision)}
    assert told(found, dict.fromkeys(deeds, Deed("Somebody made all", "Somebody")), {}, [])["also"] == "", "it is said once"
    shown = told(found, deeds, {}, [])
    assert (shown["text"], shown["also"]) == ("Somebody made team-a", "Somebody made alice")


def test_what_was_put_right_is_known() -> None:
    """A write of the object soon after its event, but for its status, means that somebody's change may be there no more."""
    at = At(BOARD, T + 0.1)
    assert is_put_right(at, [run(0.3, [(BOARD, 0.1)], write("update", BOARD))])
    assert not is_put_right(at, [run(0.3, [(BOARD, 0.1)], write("status", BOARD))])
    assert not is_put_right(at, [run(60.0, [(BOARD, 0.1)], write("update", BOARD))])
    made = run(0.05, [(WANTED, 0.0)], write("create", BOARD))
    assert not is_put_right(at, [made, run(0.3, [(BOARD, 0.1)], write("update", BOARD))])


def live(of: Key, *writers: tuple[str, float], created: float = -1000.0, **more: Any) -> Object:
    """An object as the API server has it, with who wrote it when."""
    fields = [{"manager": manager, "time": iso(float(int(when)))} for manager, when in writers]
    metadata = {"name": of.name, "namespace": of.namespace, "creationTimestamp": iso(created), "managedFields": fields}
    return {"kind": of.kind, "metadata": {**metadata, **more.pop("metadata", {})}, **more}


@pytest.mark.parametrize(
    ("of", "writers", "more", "text"),
    [
        (TEAM, [("kubectl-create", 100), ("tenantry-x", 100)], {"created": 100.0, "metadata": {"labels": {LABEL: "p-a"}}},
         "Somebody created Namespace team-a, in project p-a"),
        (TEAM, [("kubectl-label", 100)], {}, "Somebody changed Namespace team-a, in no project"),
        (TEAM, [("argocd", 100)], {"metadata": {"deletionTimestamp": iso(100)}},
         "Somebody (argocd) changed Namespace team-a, which is being deleted"),
        (ALICE, [("kubectl-create", 100)], {"created": 100.0, "roleRef": {"kind": "ClusterRole", "name": "view"},
         "subjects": [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}]},
         "Somebody created RoleBinding alice in cattle-project-p-a: ClusterRole/view for User alice"),
        (WANTED, [("kubectl-create", 100)], {"created": 100.0, "spec": {"helmApiVersion": "a.b/v1"}},
         "Somebody created ProjectHelmChart demo in cattle-project-p-a: the project asks for the chart a.b/v1"),
        (RECORD, [("Helm", 100)], {"created": 100.0}, "Helm created Secret sh.helm.release.v1.demo.v1 in demo"),
        (BOARD, [("helm", 10), ("tenantry-lock-enforcement", 100)], {}, "ConfigMap board in demo came into sight"),
        (BOARD, [("kubectl-patch", 200)], {}, "ConfigMap board in demo changed"),
        (BOARD, [("kube-controller-manager", 100), ("kubectl-edit", 100)], {}, "Somebody changed ConfigMap board in demo"),
    ],
)  # fmt: skip
def test_who_did_it_is_read_from_the_object(of: Key, writers: list[tuple[str, float]], more: Any, text: str) -> None:
    """By who wrote it in the second of the event, people before controllers; what is not known is not made up."""
    assert told_of(At(of, T + 100.4), live(of, *writers, **more), LABEL).text == text


def test_of_which_release_an_object_is() -> None:
    """A record of Helm by its name, any other object by Helm's annotation."""
    annotated: Any = {"metadata": {"annotations": {"meta.helm.sh/release-name": "demo"}}}
    assert told_of(At(RECORD, T), live(RECORD), LABEL).release == "demo"
    assert told_of(At(BOARD, T), live(BOARD, **annotated), LABEL).release == "demo"
    assert told_of(At(BOARD, T), live(BOARD), LABEL).release == ""
