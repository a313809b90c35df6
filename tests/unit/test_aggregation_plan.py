"""The pure part of rbac-aggregation: who is named, what is bound, what goes, and what is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rbac_aggregation.projects.claims import ReleaseClaim, ReleaseKey, has_given_up, possible_releases, winner
from rbac_aggregation.projects.levels import change_digest, people_of
from rbac_aggregation.projects.plan import is_untouched, plan_release, report_release
from rbac_aggregation.projects.seen import MANAGER, ObservedRights, role_ref
from tenantry.model.config import Config
from tenantry.model.kinds import PROJECT_HELM_CHART, ROLE, ROLE_BINDING, Key, Object, object_of
from tenantry.model.names import (
    AGGREGATE_FROM,
    BINDING_OF,
    CLEANUP,
    LEVEL_TAKEN_FROM,
    OPERATED,
    ORPHANED,
    PROJECT_CHART,
    PROJECT_ID,
    ROLE_OF,
    ROLES_BOUND_CONDITION,
    WITHDRAWAL_ACCEPTED,
)
from tenantry.model.plan import Apply, Delete, Refusal

CONFIG = Config.model_validate({"global": {"cattle": {"systemProjectId": "p-system"}}})
GROUP = "rbac.authorization.k8s.io"
HOME, DUMMY = "cattle-project-p-a", ReleaseKey("demo-dummy", "demo-dummy")


def chart(name: str = "demo", namespace: str = HOME, created: str = "2026-01-01T00:00:00Z", **labels: str) -> Object:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "creationTimestamp": created, "labels": labels}
    return object_of(PROJECT_HELM_CHART, metadata, spec={"helmApiVersion": "dummy.cattle.io/v1alpha1"})


def binding(name: str, kind: str, role: str, *subjects: Object, namespace: str = HOME) -> Object:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "1"}
    reference = {"apiGroup": GROUP, "kind": kind, "name": role}
    return object_of(ROLE_BINDING, metadata, roleRef=reference, subjects=list(subjects))


def person(name: str, kind: str = "User") -> Object:
    return {"kind": kind, "name": name, "apiGroup": GROUP}


def role(name: str, level: str | None = "admin") -> Object:
    labels = {ROLE_OF: DUMMY.name, **({AGGREGATE_FROM: level} if level is not None else {})}
    return object_of(ROLE, {"name": name, "namespace": DUMMY.namespace, "labels": labels})


def made(name: str, *subjects: Object, owner: str = f"{HOME}/demo", level: str = "admin=admin") -> Object:
    """A RoleBinding as we leave it."""
    found = binding(name, "Role", name, *subjects, namespace=DUMMY.namespace)
    labels = {OPERATED: "true", PROJECT_ID: "p-a", BINDING_OF: DUMMY.name}
    fields: Object = {
        "f:metadata": {
            "f:labels": {f"f:{label}": {} for label in labels},
            "f:annotations": {f"f:{PROJECT_CHART}": {}, f"f:{LEVEL_TAKEN_FROM}": {}},
        },
        "f:roleRef": {},
        "f:subjects": {},
    }
    found["metadata"] |= {
        "labels": labels,
        "annotations": {PROJECT_CHART: owner, LEVEL_TAKEN_FROM: level},
        "managedFields": [{"manager": MANAGER, "operation": "Apply", "fieldsV1": fields}],
    }
    return found


NAMESPACE = {"metadata": {"name": DUMMY.namespace, "labels": {OPERATED: "true", PROJECT_ID: "p-a"}}}
ALICE = binding("alice", "ClusterRole", "admin", person("alice"))
RELEASE = ObservedRights(DUMMY, ReleaseClaim(chart(), DUMMY, "p-a"), NAMESPACE, (role("r"),), (), (ALICE,), charts=(chart(),))


def shown(seen: ObservedRights, config: Config = CONFIG) -> list[str]:
    """The writes as text: verb, name and subjects."""
    lines = []
    for write in plan_release(seen, config).writes():
        if isinstance(write, Apply):
            lines.append(f"bind {write.key.name}: {', '.join(each['name'] for each in write.wanted['subjects'])}")
        else:
            assert isinstance(write, Delete)
            lines.append(f"delete {write.key.name}")
    return lines


def test_people_are_users_and_groups_sorted_and_each_once() -> None:
    """Other kinds, other groups and other references count for nothing."""
    sources = [
        binding("a", "ClusterRole", "admin", person("x"), person("x", "Group"), {"kind": "ServiceAccount", "name": "robot"}),
        binding("b", "ClusterRole", "admin", person("bob"), person("x"), {**person("mallory"), "apiGroup": "other"}),
        binding("c", "Role", "admin", person("carol")),
        binding("d", "ClusterRole", "edit", person("dora")),
        {**binding("e", "ClusterRole", "admin", person("erin")), "roleRef": {"kind": "ClusterRole", "name": "admin"}},
        {**binding("f", "ClusterRole", "admin"), "subjects": None},
    ]
    assert people_of("admin", sources) == (("Group", "x"), ("User", "bob"), ("User", "x"))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["bind r: alice"]),
        ({"namespace": None}, []),
        ({"namespace": {"metadata": {**NAMESPACE["metadata"], "deletionTimestamp": "now"}}}, []),
        ({"namespace": {"metadata": {"name": DUMMY.namespace}}}, []),
        ({"claim": ReleaseClaim(chart(), ReleaseKey("elsewhere", DUMMY.name), "p-a")}, []),
        ({"claim": ReleaseClaim(chart(**{CLEANUP: "true"}), DUMMY, "p-a")}, []),
        ({"claim": ReleaseClaim({**chart(), "status": {"status": "NoTargetProjectNamespaces"}}, DUMMY, "p-a")}, []),
        (
            {"claim": ReleaseClaim({**chart(), "status": {"status": "UnableToCreateHelmRelease"}}, DUMMY, "p-a")},
            ["bind r: alice"],
        ),
        ({"sources": ()}, []),
        ({"roles": (role("r"), role("s", "view"), role("t", None))}, ["bind r: alice"]),
        ({"bindings": (made("gone", person("alice")),)}, ["bind r: alice", "delete gone"]),
        ({"sources": (), "bindings": (made("r", person("alice")),)}, ["delete r"]),
        ({"bindings": (binding("r", "ClusterRole", "view", namespace=DUMMY.namespace),)}, []),
        ({"claim": None, "bindings": (made("r", person("alice")),)}, []),
        ({"claim": None, "bindings": (made("r", person("alice")),), "given_up": frozenset({f"{HOME}/demo"})}, ["delete r"]),
        ({"claim": None, "charts": (), "bindings": (made("r", owner=""),)}, ["delete r"]),
    ],
)
def test_what_is_bound_and_what_goes(changes: dict[str, Any], expected: list[str]) -> None:
    """People are bound where the release is; ours goes on positive evidence only; a foreign binding is left alone."""
    assert shown(replace(RELEASE, **changes)) == expected


def test_a_copy_elsewhere_is_not_ours() -> None:
    """In a release's own namespace our marks suffice, since the record of who wrote can be lost; elsewhere they do not."""
    copy = made("r", person("alice"))
    del copy["metadata"]["managedFields"]
    gone = replace(RELEASE, claim=None, given_up=frozenset({f"{HOME}/demo"}))
    assert shown(replace(gone, bindings=(copy,))) == ["delete r"]
    copy["metadata"]["namespace"] = "elsewhere"
    assert shown(replace(gone, release=ReleaseKey("elsewhere", DUMMY.name), bindings=(copy,))) == []


def test_a_reference_is_changed_by_deletion() -> None:
    """What we made and refers to something else by now is deleted, to be made anew."""
    assert shown(replace(RELEASE, bindings=({**made("r"), "roleRef": role_ref("other")},))) == ["delete r"]


def test_untouched_is_what_only_we_wrote() -> None:
    """Another manager, or a field that we lost, shows that somebody was there."""
    ours = made("r", person("alice"))
    assert is_untouched(ours)
    theirs = {"manager": "kubectl", "operation": "Update", "fieldsV1": {}}
    ours["metadata"]["managedFields"].append(theirs)
    assert not is_untouched(ours)
    lost = made("r")
    del lost["metadata"]["managedFields"][0]["fieldsV1"]["f:subjects"]
    assert not is_untouched(lost)


def told(seen: ObservedRights, *refusals: Refusal, config: Config = CONFIG) -> list[tuple[str, str]]:
    """Reason and name of what is told; an empty reason takes it back."""
    found = []
    for write in report_release(seen, refusals, config).writes():
        assert isinstance(write, Apply)
        conditions = write.wanted.get("status", {}).get("conditions") or [{"reason": ""}]
        found.append((conditions[0]["reason"], write.key.name))
    return found


def test_problems_are_told_on_the_chart() -> None:
    """The first in a fixed order is the reason, and the rest is counted."""
    refusal = Refusal(Key(f"{GROUP}/v1", "RoleBinding", DUMMY.namespace, "r"), "quota", "exceeded quota: few, used: 3")
    assert told(RELEASE) == []
    assert told(RELEASE, refusal) == [("QuotaExceeded", "demo")]
    assert told(replace(RELEASE, missing=frozenset({"admin"}))) == [("ClusterRoleMissing", "demo")]
    foreign = binding("r", "ClusterRole", "view", namespace=DUMMY.namespace)
    assert told(replace(RELEASE, bindings=(foreign,)), refusal) == [("QuotaExceeded", "demo")]
    assert told(replace(RELEASE, roles=(role("s", "owner"),))) == [("UnknownLevel", "demo")]
    assert told(replace(RELEASE, roles=(role("s", None),), namespace={"metadata": {"name": "x"}})) == []


def test_a_refusal_is_not_told_anew_for_other_words() -> None:
    """The API server's own words may differ each time; what was told stays while reason and object are the same."""

    def refused(words: str) -> Refusal:
        return Refusal(Key(f"{GROUP}/v1", "RoleBinding", DUMMY.namespace, "r"), "admission", words)

    first = next(iter(report_release(RELEASE, [refused("request 1")], CONFIG).writes()))
    assert isinstance(first, Apply)
    after = {**chart(), "status": first.wanted["status"]}
    seen = replace(RELEASE, claim=ReleaseClaim(after, DUMMY, "p-a"))
    second = next(iter(report_release(seen, [refused("request 2")], CONFIG).writes()))
    assert isinstance(second, Apply)
    assert second.wanted["status"] == first.wanted["status"]


def test_a_condition_is_taken_back() -> None:
    """From the holder when all is well, and from one that is no holder any more; never one that we do not own."""
    entry = {"manager": MANAGER, "operation": "Apply", "subresource": "status", "fieldsV1": {}}
    status = {"conditions": [{"type": ROLES_BOUND_CONDITION, "status": "False", "reason": "X", "message": ""}]}
    ours = {**chart(), "status": status}
    ours["metadata"]["managedFields"] = [entry]
    assert told(replace(RELEASE, claim=ReleaseClaim(ours, DUMMY, "p-a"), charts=(ours,))) == [("", "demo")]
    assert told(replace(RELEASE, claim=None, charts=(ours,))) == [("", "demo")]
    assert told(replace(RELEASE, claim=None, charts=({**chart(), "status": status},))) == []


def test_names_tell_places() -> None:
    """A ProjectHelmChart's key tells its place, a release's name who may ask for it."""
    assert possible_releases(HOME, "demo", CONFIG) == [DUMMY]
    assert possible_releases("default", "demo", CONFIG) == []
    assert possible_releases(HOME, "x" * 60, CONFIG) == []


def home(project: str) -> Object:
    return {"metadata": {"name": f"cattle-project-{project}", "labels": {OPERATED: "true", PROJECT_ID: project}}}


HOMES = {f"cattle-project-{project}": home(project) for project in "cdz"}


def asking(project: str, created: str = "2026-01-01T00:00:00Z", version: str = "", **more: Any) -> Object:
    """A ProjectHelmChart of that project."""
    found = chart(namespace=f"cattle-project-{project}", created=created)
    spec = {"helmApiVersion": version or found["spec"]["helmApiVersion"]}
    metadata = {**found["metadata"], **({"deletionTimestamp": "x"} if more.pop("goes", False) else {})}
    return {**found, "metadata": metadata, "spec": spec, **more}


def has(project: str, **labels: str) -> Object:
    """The namespace of the release, made for the ProjectHelmChart of a project."""
    return {
        "metadata": {"name": DUMMY.namespace, "labels": labels, "annotations": {PROJECT_CHART: f"cattle-project-{project}/demo"}}
    }


OLD, FIRST, NEXT = asking("z", "2020-01-01T00:00:00Z"), asking("c"), asking("d")


@pytest.mark.parametrize(
    ("found", "namespace", "wins"),
    [
        ([NEXT, FIRST], None, "c"),
        ([NEXT, FIRST, OLD], None, "z"),
        ([NEXT, FIRST, OLD], has("d"), "d"),
        ([NEXT, FIRST, OLD], has("gone"), "z"),
        ([NEXT, FIRST, OLD], has("d", **{ORPHANED: "true"}), "z"),
        ([NEXT, FIRST, asking("z", "2020-01-01T00:00:00Z", "foreign/v1")], has("z"), ""),
        ([asking("z", "2020-01-01T00:00:00Z", goes=True), NEXT], None, "d"),
        ([asking("z", "2020-01-01T00:00:00Z", goes=True), NEXT], has("z"), "z"),
        ([], has("z"), ""),
    ],
    ids=["oldest", "age", "who has it", "who had it", "orphaned", "no longer ours", "goes", "goes and has it", "nobody"],
)
def test_who_has_a_release(found: list[Object], namespace: Object | None, wins: str) -> None:
    """Who has the name keeps it, else the oldest gets it; while one has it that is not ours any more, nobody does."""
    won = winner(DUMMY, found, HOMES, namespace, CONFIG)
    assert (won.project if won is not None else "") == wins


def test_without_namespaces_of_their_own_the_status_says_who_has_a_release() -> None:
    """No object of the release is in a namespace that is read."""
    config = Config.model_validate({"helmProjectOperator": {"projectReleaseNamespaces": {"enabled": False}}})
    younger = asking("d", status={"releaseName": DUMMY.name})
    won = winner(ReleaseKey("cattle-project-d", DUMMY.name), [OLD, younger], HOMES, home("d"), config)
    assert won is not None
    assert won.project == "d"


@pytest.mark.parametrize(
    ("found", "gone"),
    [
        (None, True),
        (chart(), False),
        (chart(**{CLEANUP: "true"}), True),
        (chart("other"), True),
        ({**chart("other"), "spec": {"helmApiVersion": "foreign/v1"}}, False),
    ],
)
def test_what_is_certain(found: Object | None, gone: bool) -> None:
    """Gone, asked to clean up, or elsewhere by now; one that does not count any more is no evidence."""
    assert has_given_up(found, home("p-a"), DUMMY, CONFIG) == gone


# -- another ClusterRole in the configuration (decision 30) ---------------------------------------------------------


def taken(**refs: str) -> Config:
    """The configuration with other ClusterRoles for levels."""
    operator = {"releaseRoleBindings": {"clusterRoleRefs": refs}}
    return Config.model_validate({"global": {"cattle": {"systemProjectId": "p-system"}}, "helmProjectOperator": operator})


CAROL = binding("carol", "ClusterRole", "view", person("carol"))
HELD = replace(
    RELEASE,
    roles=(role("r"), role("v", "view")),
    bindings=(made("r", person("alice")), made("v", person("carol"), level="view=view")),
    sources=(ALICE, CAROL),
    missing=frozenset({"nobody-made-it"}),
)
BOSS = binding("boss", "ClusterRole", "boss", person("bob"))
STAY = ["bind r: alice", "bind v: carol"]


@pytest.mark.parametrize(
    ("refs", "changes", "expected", "reasons"),
    [
        ({}, {}, STAY, []),
        ({"admin": "nobody-made-it"}, {}, STAY, ["WithdrawalWaits"]),
        ({"admin": "boss"}, {}, STAY, ["WithdrawalWaits"]),
        ({"admin": "boss"}, {"sources": (ALICE, CAROL, BOSS)}, ["bind r: bob", "bind v: carol"], []),
        ({"admin": "boss"}, {"sources": (CAROL,)}, ["bind v: carol", "delete r"], []),
        ({"admin": ""}, {}, ["bind v: carol", "delete r"], []),
        ({"view": "nobody-made-it"}, {}, STAY, ["WithdrawalWaits"]),
        ({"view": "reader"}, {}, ["bind r: alice", "delete v"], []),
        ({"view": "nobody-made-it"}, {"bindings": (made("r", person("alice")),)}, ["bind r: alice"], ["ClusterRoleMissing"]),
        (
            {"admin": "boss"},
            {"bindings": (made("r", level="admin=old"), made("q", level="admin=boss"))},
            ["bind v: carol", "delete q", "delete r"],
            [],
        ),
        ({"admin": "boss"}, {"bindings": (made("r", person("carol"), level="view=view"),)}, ["bind v: carol", "delete r"], []),
    ],
)
def test_another_cluster_role_takes_nothing_where_nobody_has_it(
    refs: dict[str, str], changes: dict[str, Any], expected: list[str], reasons: list[str]
) -> None:
    """What is bound stays, where the other one does not exist or the project would have no administrator.

    People who are named for the other one are bound in their place, who loses his own binding goes, a level that is switched
    off goes, and nothing that was taken from another level counts.
    """
    seen, config = replace(HELD, **changes), taken(**refs)
    assert shown(seen, config) == expected
    assert [reason for reason, _ in told(seen, config=config)] == reasons


def test_what_another_cluster_role_takes_can_be_accepted() -> None:
    """The message has numbers, names and the annotation; that is for this ProjectHelmChart and this configuration only."""
    wrong = taken(admin="nobody-made-it")
    (write,) = report_release(HELD, [], wrong).writes()
    assert isinstance(write, Apply)
    (said,) = write.wanted["status"]["conditions"]
    value = change_digest(chart(), wrong)
    line = "helmProjectOperator.releaseRoleBindings.clusterRoleRefs.admin is nobody-made-it now, which does not exist"
    for text in ("would be taken from 1 people", line, "ClusterRole admin: User alice", f"{WITHDRAWAL_ACCEPTED}={value}"):
        assert text in said["message"]

    def accepting(value: str) -> ObservedRights:
        found = chart()
        found["metadata"]["annotations"] = {WITHDRAWAL_ACCEPTED: value}
        return replace(HELD, claim=ReleaseClaim(found, DUMMY, "p-a"))

    assert shown(accepting(value), wrong) == ["bind v: carol", "delete r"]
    assert shown(accepting(value), taken(admin="nobody-made-it", view="another")) == ["bind r: alice", "delete v"]
    assert shown(accepting("another"), wrong) == STAY


def test_only_our_own_record_says_what_a_level_was_taken_from() -> None:
    """Somebody else's annotation on our RoleBinding gives nobody a level."""
    theirs = made("r", person("alice"), level="admin=view")
    del theirs["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]["f:annotations"]
    assert shown(replace(HELD, bindings=(theirs,)), taken(admin="boss")) == ["bind v: carol", "delete r"]
    assert not is_untouched(theirs)
