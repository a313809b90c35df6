"""The plan for projects, rule by rule: what is wanted of a registration namespace, a member, and the system namespace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from namespace_registration.projects.plan import (
    FIXES,
    Project,
    SystemNamespace,
    plan_member,
    plan_project,
    plan_system,
    report_member,
    report_project,
    report_system,
)
from tenantry.model.config import Config
from tenantry.model.hardening import HARDENED_BY, Hardening, with_policy_defaults
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT, Key, Kind, Object
from tenantry.model.names import ADOPT, NAMESPACE_NAME, OPERATED, ORPHANED, PROJECT_ID, REGISTERED_CONDITION
from tenantry.model.plan import NOTHING, Apply, Cause, Delete, Plan, Refusal, RemoveLabel, Write
from tenantry.model.projects import REGISTRATION_MANAGER as US
from tenantry.model.projects import ChartFiles
from tenantry.testing.objects import obj

LABEL = "field.cattle.io/projectId"
NAME = "cattle-project-p-a"
CHARTS = (ChartFiles("dummy.cattle.io.v1alpha1", "a: 1\n", "questions: []\n"), ChartFiles("other.io.v1"))


def config(cluster_id: str = "c-test", label: str = LABEL, **operator: Any) -> Config:
    cattle = {"clusterId": cluster_id, "systemProjectId": "p-system", "projectLabel": label}
    return Config.model_validate(
        {
            "global": {"cattle": cattle},
            "helmProjectOperator": {"otherSystemProjectLabelValues": ["p-denied"], **operator},
        }
    )


CONFIG = config()


def namespace(name: str = "a1", labels: dict[str, str] | None = None, **metadata: Any) -> Object:
    return obj(NAMESPACE, name, labels=labels or {}, metadata={"uid": f"u-{name}", **metadata})


MARKS = {OPERATED: "true", PROJECT_ID: "p-a", LABEL: "p-a", NAMESPACE_NAME: NAME}
ANNOTATIONS = {LABEL: "c-test:p-a"}
A1 = namespace("a1", {LABEL: "p-a"})


def owning(obj: Object, fields: Object, manager: str = US, operation: str = "Apply", subresource: str = "") -> Object:
    """Return the object with one more entry of managedFields."""
    entry = {"manager": manager, "operation": operation, "fieldsV1": fields, "subresource": subresource}
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "managedFields": [*metadata.get("managedFields", ()), entry]}}


def registration(labels: dict[str, str] | None = None, **metadata: Any) -> Object:
    """Return p-a's registration namespace as our create leaves it, with further labels."""
    live = namespace(NAME, {**MARKS, **(labels or {})}, annotations=ANNOTATIONS, **metadata)
    names: Object = {"f:labels": {f"f:{name}": {} for name in MARKS}, "f:annotations": {f"f:{LABEL}": {}}}
    return owning(live, {"f:metadata": names}, operation="Update")


def project(**fields: Any) -> Project:
    """Return p-a as alive, with its registration namespace and nothing in it, unless said otherwise."""
    return Project(**{"id": "p-a", "registration": registration(), "ours": True, "alive": True, **fields})


def changes(plan: Plan) -> list[str]:
    return [str(change) for change in plan.changes(US)]


def reasons(plan: Plan) -> list[str]:
    return [change.write.event.reason for change in plan.changes(US) if change.write.event is not None]


def wanted(plan: Plan, kind: Kind, name: str = "") -> Object:
    found = [write.wanted for write in plan.writes() if isinstance(write, Apply) and write.kind is kind]
    return next(obj for obj in found if not name or obj["metadata"]["name"] == name)


CONTENTS = [
    f"create ConfigMap {NAME}/dummy.cattle.io.v1alpha1",
    f"create ConfigMap {NAME}/other.io.v1",
    f"create ServiceAccount {NAME}/default",
    f"create NetworkPolicy {NAME}/hpo-generated-default",
]


def settled(seen: Project, used: Config = CONFIG) -> Project:
    made = {
        (write.kind, write.key.name): write.wanted
        for write in plan_project(seen, CHARTS, used).writes()
        if isinstance(write, Apply)
    }
    maps: dict[str, Object | None] = {name: obj for (kind, name), obj in made.items() if kind is CONFIG_MAP}
    hardening = Hardening(*(made.get(hardened) for hardened in HARDENED_BY.items()))
    return replace(seen, config_maps=maps, hardening=hardening)


# -- the registration namespace --------------------------------------------------------------------------------


@pytest.mark.check("hpo-1")
def test_registering_a_project() -> None:
    """A living project without registration namespace gets one with all marks, made and never taken over, then its contents."""
    plan = plan_project(project(registration=None, ours=False), CHARTS, CONFIG)
    assert changes(plan) == [f"create Namespace {NAME}", *CONTENTS]
    assert wanted(plan, NAMESPACE) == obj(NAMESPACE, NAME, labels=MARKS, annotations={LABEL: "c-test:p-a"})
    (first,) = plan.stages[0]
    assert isinstance(first, Apply)
    assert first.create_only
    assert reasons(plan) == ["ProjectRegistered"]


@pytest.mark.check("hpo-6")
def test_the_annotation_without_a_cluster_id() -> None:
    """Without a cluster id the annotation is the project id alone."""
    plan = plan_project(project(registration=None), CHARTS, config(cluster_id=""))
    assert wanted(plan, NAMESPACE)["metadata"]["annotations"] == {LABEL: "p-a"}


def test_configured_labels_and_annotations() -> None:
    """What policies ask for is added on namespaces that we make."""
    plan = plan_project(
        project(registration=None), (), config(namespaceLabels={"team": "x"}, namespaceAnnotations={"owner": "me"})
    )
    metadata = wanted(plan, NAMESPACE)["metadata"]
    assert metadata["labels"] == {**MARKS, "team": "x"}
    assert metadata["annotations"] == {**ANNOTATIONS, "owner": "me"}


@pytest.mark.check("hpo-20")
def test_a_settled_project_wants_nothing() -> None:
    """Over a converged project the plan changes nothing."""
    assert changes(plan_project(settled(project()), CHARTS, CONFIG)) == []


@pytest.mark.check("hpo-5")
def test_our_marks_are_restored_and_foreign_labels_stay() -> None:
    """A mark that was taken off comes back; a label of somebody else is not touched."""
    live = registration({"team": "x"})
    del live["metadata"]["labels"][OPERATED]
    plan = plan_project(settled(project(registration=live)), CHARTS, CONFIG)
    assert changes(plan) == [f"update Namespace {NAME}: ~ metadata.labels[{OPERATED}]"]
    assert reasons(plan) == ["Restored"]


def orphan(manager: str, *more: str) -> Object:
    """Return an orphaned registration namespace whose orphan label these managers own."""
    live = registration({ORPHANED: "true"})
    for owner in (manager, *more):
        live = owning(live, {"f:metadata": {"f:labels": {f"f:{ORPHANED}": {}}}}, owner)
    return live


ORPHAN_PATH = f"metadata.labels[{ORPHANED}]"


@pytest.mark.parametrize(
    ("live", "alive", "expected", "said"),
    [
        pytest.param(registration(), False, [f"~ {ORPHAN_PATH}"], ["ProjectOrphaned"], marks=pytest.mark.check("hpo-10")),
        (registration(), None, [], []),
        (registration(), True, [], []),
        pytest.param(orphan(US), True, [f"- {ORPHAN_PATH}"], ["ProjectReturned"], marks=pytest.mark.check("hpo-11")),
        (orphan(US), None, [], []),
        (orphan(US), False, [], []),
        (orphan("kubectl"), True, [f"- {ORPHAN_PATH}"], ["Restored"]),
        (orphan("kubectl"), False, [], []),
        (orphan(US, "kubectl"), True, [f"- {ORPHAN_PATH}", f"- {ORPHAN_PATH}"], ["ProjectReturned", "Restored"]),
        (registration({ORPHANED: "true"}), True, [f"- {ORPHAN_PATH}"], ["Restored"]),
    ],
)
def test_the_orphan_label(live: Object, alive: bool | None, expected: list[str], said: list[str]) -> None:
    """It is set when nobody is left and taken off, whoever set it, when somebody is; unasked it stays as it is."""
    plan = plan_project(settled(project(registration=live, alive=alive)), CHARTS, CONFIG)
    texts = [text.removeprefix(f"update Namespace {NAME}: ") for text in changes(plan)]
    assert (texts, reasons(plan)) == (expected, said)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(project(registration=None, alive=False), id="gone orphan", marks=pytest.mark.check("hpo-16")),
        pytest.param(project(registration=None, alive=None), id="gone, nobody asked"),
        pytest.param(project(registration=namespace(NAME), ours=False), id="foreign", marks=pytest.mark.check("hpo-18")),
        pytest.param(project(registration=registration(deletionTimestamp="now")), id="terminating"),
        pytest.param(project(registration=registration(deletionTimestamp="now"), alive=False), id="terminating orphan"),
    ],
)
def test_when_nothing_is_done(seen: Project) -> None:
    """An orphan that was deleted stays deleted, a foreign namespace is left alone, and a terminating one is waited for."""
    assert plan_project(seen, CHARTS, CONFIG) == NOTHING


@pytest.mark.check("hpo-15")
def test_a_deleted_registration_namespace_is_made_again() -> None:
    """While its project lives, a registration namespace that is gone is made anew with its contents."""
    plan = plan_project(project(registration=None, ours=False, members=(A1,)), CHARTS, CONFIG)
    assert changes(plan)[0] == f"create Namespace {NAME}"


def test_an_adopted_namespace_gets_our_marks() -> None:
    """With the opt-in annotation a namespace of somebody else is taken over by an update of exactly that object."""
    foreign = namespace(NAME, {"team": "x"}, annotations={ADOPT: "true"})
    plan = plan_project(project(registration=foreign), CHARTS, CONFIG)
    assert plan.changes(US)[0].verb == "update"
    assert changes(plan)[1:] == CONTENTS
    assert reasons(plan) == ["Adopted"]


def test_a_denied_project_keeps_its_namespace_as_an_orphan() -> None:
    """Nothing in it is removed: the namespace is only marked, as for any project without namespaces."""
    plan = plan_project(settled(project(alive=False)), CHARTS, CONFIG)
    assert changes(plan) == [f"update Namespace {NAME}: ~ {ORPHAN_PATH}"]


# -- what is in it ---------------------------------------------------------------------------------------------


@pytest.mark.check("hpo-3")
def test_the_config_map_of_a_chart() -> None:
    """It has the chart's files and the project's marks; a chart without files has empty texts."""
    plan = plan_project(project(), CHARTS, CONFIG)
    made = wanted(plan, CONFIG_MAP, "dummy.cattle.io.v1alpha1")
    assert made["metadata"]["labels"] == {OPERATED: "true", PROJECT_ID: "p-a"}
    assert made["data"] == {"values.yaml": "a: 1\n", "questions.yaml": "questions: []\n"}
    assert wanted(plan, CONFIG_MAP, "other.io.v1")["data"] == {"values.yaml": "", "questions.yaml": ""}
    assert reasons(plan) == []


def with_map(**fields: Any) -> Project:
    """Return the settled project with its first ConfigMap changed."""
    seen = settled(project())
    name = CHARTS[0].config_map_name
    live = seen.config_maps[name] or {}
    metadata = {**live["metadata"], "uid": "u", "resourceVersion": "1", **fields.pop("metadata", {})}
    seen.config_maps[name] = {**live, **fields, "metadata": metadata}
    return seen


MAP = f"ConfigMap {NAME}/dummy.cattle.io.v1alpha1"
FILES = {"values.yaml": "a: 1\n", "questions.yaml": "questions: []\n"}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (with_map(), []),
        (with_map(data=None), [f"update {MAP}: ~ data[values.yaml], ~ data[questions.yaml]"]),
        (with_map(data={**FILES, "values.yaml": "evil"}), [f"update {MAP}: ~ data[values.yaml]"]),
        (with_map(data={**FILES, "more": "x"}), []),
        (with_map(metadata={"labels": {OPERATED: "true"}}), [f"update {MAP}: ~ metadata.labels[{PROJECT_ID}]"]),
        (with_map(immutable=True), [f"delete {MAP}"]),
        (with_map(immutable=True, data={}), [f"delete {MAP}"]),
        (with_map(immutable=False), []),
        (with_map(immutable=True, metadata={"deletionTimestamp": "now"}), []),
    ],
)
@pytest.mark.check("hpo-4")
def test_config_maps_are_repaired(seen: Project, expected: list[str]) -> None:
    """An edit is put back, an immutable one is deleted once to be made anew, and what others add stays."""
    plan = plan_project(seen, CHARTS, CONFIG)
    assert changes(plan) == expected
    assert reasons(plan) == ["Restored"] * len(expected)


def test_deletion_and_creation_are_two_looks() -> None:
    """An immutable ConfigMap is deleted as it was observed; only the next look makes it anew."""
    writes = plan_project(with_map(immutable=True), CHARTS, CONFIG).writes()
    assert [type(write) for write in writes if write.key.name == CHARTS[0].config_map_name] == [Delete]


@pytest.mark.check("hpo-22")
def test_hardening_by_default() -> None:
    """The default ServiceAccount gets no token, and a NetworkPolicy denies all ingress and egress for all pods."""
    plan = plan_project(project(), (), CONFIG)
    account, policy = wanted(plan, SERVICE_ACCOUNT), wanted(plan, NETWORK_POLICY)
    assert account["automountServiceAccountToken"] is False
    assert "secrets" not in account
    assert "imagePullSecrets" not in account
    assert policy["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [], "egress": []}
    assert account["metadata"] == {"name": "default", "namespace": NAME, "labels": {OPERATED: "true"}}
    assert policy["metadata"] == {"name": "hpo-generated-default", "namespace": NAME, "labels": {OPERATED: "true"}}


@pytest.mark.check("hpo-23")
def test_hardening_is_restored() -> None:
    """Edits of either are put back with an Event; a ServiceAccount that we see for the first time is no restoration."""
    seen = settled(project())
    account, policy = seen.hardening.service_account, seen.hardening.network_policy
    assert account is not None
    assert policy is not None
    opened = {**policy, "spec": {**policy["spec"], "egress": [{}]}}
    edited = {**account, "automountServiceAccountToken": True}
    plan = plan_project(replace(seen, hardening=Hardening(edited, opened)), CHARTS, CONFIG)
    assert changes(plan) == [
        f"update ServiceAccount {NAME}/default: ~ automountServiceAccountToken",
        f"update NetworkPolicy {NAME}/hpo-generated-default: ~ spec.egress",
    ]
    assert reasons(plan) == ["Restored", "Restored"]
    fresh = obj(SERVICE_ACCOUNT, "default", NAME, metadata={"uid": "u"})
    first = plan_project(replace(seen, hardening=Hardening(fresh, policy)), CHARTS, CONFIG)
    assert [change.verb for change in first.changes(US)] == ["update"]
    assert reasons(first) == []


@pytest.mark.check("hpo-24")
def test_hardening_switched_off() -> None:
    """Neither object is wanted, and nothing that is there is removed."""
    plan = plan_project(project(), CHARTS, config(hardenedNamespaces={"enabled": False}))
    assert {write.kind for write in plan.writes()} == {NAMESPACE, CONFIG_MAP}


@pytest.mark.check("hpo-25")
def test_hardening_as_configured() -> None:
    """The configured token setting, secrets and NetworkPolicy are the ones that are written."""
    account = {"automountServiceAccountToken": True, "secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "p"}]}
    spec = {"podSelector": {"matchLabels": {"a": "b"}}, "ingress": [{}]}
    used = config(hardenedNamespaces={"configuration": {"serviceAccountSpec": account, "networkPolicySpec": spec}})
    plan = plan_project(project(), (), used)
    made = wanted(plan, SERVICE_ACCOUNT)
    assert {key: made[key] for key in account} == account
    assert wanted(plan, NETWORK_POLICY)["spec"] == {**spec, "egress": [], "policyTypes": ["Ingress"]}
    assert changes(plan_project(settled(project(), used), CHARTS, used)) == []


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({}, {"podSelector": {}, "ingress": [], "egress": [], "policyTypes": ["Ingress"]}),
        ({"egress": [{}]}, {"podSelector": {}, "ingress": [], "egress": [{}], "policyTypes": ["Ingress", "Egress"]}),
        ({"policyTypes": ["Egress"]}, {"podSelector": {}, "ingress": [], "egress": [], "policyTypes": ["Egress"]}),
        (
            {"policyTypes": [], "egress": None, "podSelector": None},
            {"podSelector": {}, "ingress": [], "egress": [], "policyTypes": ["Ingress"]},
        ),
        ({"podSelector": {"matchLabels": {}}}, {"podSelector": {}, "ingress": [], "egress": [], "policyTypes": ["Ingress"]}),
        (
            {
                "ingress": [
                    {"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}, {"protocol": None}], "from": []},
                    {"from": [{"podSelector": {}}]},
                ]
            },
            {
                "podSelector": {},
                "ingress": [
                    {"ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}, {"protocol": "TCP"}]},
                    {"from": [{"podSelector": {}}]},
                ],
                "egress": [],
                "policyTypes": ["Ingress"],
            },
        ),
        (
            {
                "egress": [
                    {
                        "to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": []}, "namespaceSelector": {"matchLabels": {}}}],
                        "ports": [],
                    }
                ]
            },
            {
                "podSelector": {},
                "ingress": [],
                "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "namespaceSelector": {}}]}],
                "policyTypes": ["Ingress", "Egress"],
            },
        ),
        # What is wrong is left for the API server to refuse.
        (
            {"ingress": ["x", {"ports": "y"}, {"ports": ["z"]}], "egress": "all"},
            {
                "podSelector": {},
                "ingress": ["x", {"ports": "y"}, {"ports": ["z"]}],
                "egress": "all",
                "policyTypes": ["Ingress", "Egress"],
            },
        ),
    ],
)
def test_policy_defaults(given: Object, stored: Object) -> None:
    """A spec is written as the API server stores it (networking/v1 defaults), so that it does not differ from itself."""
    assert with_policy_defaults(given) == stored
    assert with_policy_defaults(stored) == stored


# -- reports ---------------------------------------------------------------------------------------------------


def refusal(cause: Cause, kind: Kind = CONFIG_MAP, name: str = "c", message: str = "no room") -> Refusal:
    """Return a refused write: of a namespace, or of something inside p-a's."""
    place = ("", NAME) if kind is NAMESPACE else (NAME, name)
    return Refusal(Key(kind.api_version, kind.kind, *place), cause, message)


def told(plan: Plan) -> list[tuple[str, str, str]]:
    """Return object, reason and message of each condition that a report sets."""
    found = []
    for write in plan.writes():
        assert isinstance(write, Apply)
        assert write.subresource == "status"
        assert write.event is not None
        for made in write.wanted.get("status", {}).get("conditions", ()):
            assert (made["type"], made["status"]) == (REGISTERED_CONDITION, "False")
            assert (write.event.reason, write.event.note, write.event.type) == (made["reason"], made["message"], "Warning")
            assert set(write.wanted["metadata"]) == {"name"}
            found.append((write.key.name, made["reason"], made["message"]))
    return found


def unwell(obj: Object, reason: str = "QuotaExceeded", message: str = "m") -> Object:
    said = {"type": REGISTERED_CONDITION, "status": "False", "reason": reason, "message": message, "lastTransitionTime": "then"}
    key = 'k:{"type":"%s"}' % REGISTERED_CONDITION  # noqa: UP031
    fields: Object = {"f:status": {"f:conditions": {key: {".": {}, **{f"f:{name}": {} for name in said}}}}}
    return owning({**obj, "status": {"phase": "Active", "conditions": [said]}}, fields, subresource="status")


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        ("quota", "QuotaExceeded"),
        ("admission", "AdmissionDenied"),
        ("rights", "RightMissing"),
        ("invalid", "InvalidConfiguration"),
    ],
)
@pytest.mark.check("hpo-21")
def test_refusals_are_told_with_their_fix(cause: Cause, reason: str) -> None:
    """A refusal inside the registration namespace stands on that namespace: what, why in the server's words, and the fix."""
    report = report_project(project(members=(A1,)), [refusal(cause)])
    ((name, found, message),) = told(report)
    assert (name, found) == (NAME, reason)
    assert message == f"ConfigMap {NAME}/c was refused: to fix it, {FIXES[cause]} (the API server says: no room)"
    assert [write.live for write in report.writes() if isinstance(write, Apply)] == [project().registration]


def test_one_refusal_is_told_whatever_the_order() -> None:
    """Of many refusals the same one is told each time; one of the namespace itself comes first."""
    many = [refusal("quota", name="b"), refusal("admission", name="a"), refusal("quota", name="a")]
    texts = {told(report_project(project(), order))[0] for order in (many, many[::-1], many[1:] + many[:1])}
    assert len(texts) == 1
    assert f"ConfigMap {NAME}/a" in texts.pop()[2]
    itself = told(report_project(project(), [*many, refusal("admission", NAMESPACE)]))
    assert itself[0][:2] == (NAME, "AdmissionDenied")
    assert "Namespace cattle-project-p-a was refused" in itself[0][2]


def test_long_refusals_fit() -> None:
    """However long the server's words are, the fix is still told within the limits of a condition and an Event."""
    ((_, _, message),) = told(report_project(project(), [refusal("quota", message="x" * 5000)]))
    assert len(message) <= 1024
    assert FIXES["quota"] in message


def test_a_refusal_in_the_run_that_registered() -> None:
    """A registration namespace that was made in the same run carries the condition though it was not observed."""
    report = report_project(project(registration=None, ours=False), [refusal("quota")])
    (write,) = report.writes()
    assert isinstance(write, Apply)
    assert (write.live, write.create_only, write.subresource) == (None, False, "status")
    assert told(report)[0][:2] == (NAME, "QuotaExceeded")


@pytest.mark.check("hpo-21")
def test_a_namespace_that_cannot_be_made_is_told_on_the_members() -> None:
    """Where there is no registration namespace to carry it, each member that was looked at does."""
    b1 = namespace("b1", {LABEL: "p-a"})
    report = report_project(project(registration=None, ours=False, members=(A1, b1)), [refusal("admission", NAMESPACE)])
    assert [entry[:2] for entry in told(report)] == [("a1", "AdmissionDenied"), ("b1", "AdmissionDenied")]


@pytest.mark.check("hpo-18")
def test_a_name_that_is_taken_is_told_on_the_members() -> None:
    """A foreign namespace with the name is not written to; the members say what can be done."""
    seen = project(registration=namespace(NAME), ours=False, members=(A1,))
    ((name, reason, message),) = told(report_project(seen, []))
    assert (name, reason) == ("a1", "NamespaceConflict")
    assert f"namespace {NAME} exists" in message
    assert f"{ADOPT}=true" in message
    assert len(message) <= 1024
    assert plan_project(seen, CHARTS, CONFIG) == NOTHING


def test_a_told_problem_is_not_told_again() -> None:
    """The same problem over the condition that says so is no change, though its time is not part of what is wanted."""
    first = report_project(project(), [refusal("quota")])
    (write,) = first.writes()
    assert isinstance(write, Apply)
    live = unwell(registration())
    live["status"]["conditions"][0] |= write.wanted["status"]["conditions"][0]
    assert changes(report_project(project(registration=live), [refusal("quota")])) == []
    assert changes(report_project(project(registration=live), [refusal("quota", message="request 2: no room")])) == []
    assert changes(report_project(project(registration=live), [refusal("quota", name="d")])) != []
    assert changes(report_project(project(registration=live), [refusal("rights")])) != []


def test_healing() -> None:
    """When all is well our conditions are given up with an Event, on the registration namespace and on members."""
    report = report_project(project(registration=unwell(registration()), members=(unwell(A1), namespace("b1"))), [])
    assert changes(report) == [f"status Namespace {NAME}: - status", "status Namespace a1: - status"]
    assert reasons(report) == ["Healed", "Healed"]


@pytest.mark.parametrize(
    "seen",
    [
        project(members=(A1,)),
        project(registration=None, ours=False, alive=False),
        project(registration=None, ours=False, members=(A1,)),
        project(registration=unwell(registration(deletionTimestamp="now"))),
        project(registration=owning(registration(), {"f:status": {}}, subresource="status")),
        project(registration={**registration(), "status": unwell(A1)["status"]}),
    ],
)
def test_nothing_to_tell(seen: Project) -> None:
    """Without a problem and without a condition of ours nothing is written; a terminating namespace is left in peace."""
    assert report_project(seen, []) == NOTHING


# -- one namespace ---------------------------------------------------------------------------------------------

MEMORY = f"metadata.labels[{PROJECT_ID}]"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, []),
        (namespace("a1"), []),
        pytest.param(A1, [f"update Namespace a1: ~ {MEMORY}"], marks=pytest.mark.check("hpo-2")),
        (namespace("a1", {LABEL: "p-a", PROJECT_ID: "p-a"}), []),
        pytest.param(
            namespace("a1", {LABEL: "p-b", PROJECT_ID: "p-a"}),
            [f"update Namespace a1: ~ {MEMORY}"],
            marks=pytest.mark.check("hpo-13"),
        ),
        pytest.param(
            namespace("a1", {PROJECT_ID: "p-a"}), [f"update Namespace a1: - {MEMORY}"], marks=pytest.mark.check("hpo-12")
        ),
        pytest.param(
            namespace("a1", {LABEL: "p-denied", PROJECT_ID: "p-a"}),
            [f"update Namespace a1: - {MEMORY}"],
            marks=pytest.mark.check("hpo-14"),
        ),
        pytest.param(namespace("s1", {LABEL: "p-system"}), [], marks=pytest.mark.check("hpo-8")),
        pytest.param(namespace("kube-system", {LABEL: "p-a"}), [], marks=pytest.mark.check("hpo-9")),
        (namespace("kube-system", {LABEL: "p-a", PROJECT_ID: "p-a"}), []),
        (namespace("a1", {LABEL: "p-b", PROJECT_ID: "p-a"}, deletionTimestamp="now"), []),
        (namespace("bad", {LABEL: "Foo_Bar"}), []),
        (namespace("bad", {LABEL: "Foo_Bar", PROJECT_ID: "p-a"}), [f"update Namespace bad: - {MEMORY}"]),
        (namespace("bad", {LABEL: "", PROJECT_ID: "p-a"}), [f"update Namespace bad: - {MEMORY}"]),
        (registration(), []),
        (namespace("demo-dummy", {LABEL: "p-system", OPERATED: "true", PROJECT_ID: "p-a"}), []),
        (namespace("cattle-project-p-x"), []),
        (namespace("a1", {LABEL: "p-a", OPERATED: "true"}), [f"update Namespace a1: ~ {MEMORY}"]),
    ],
)
def test_the_memory_of_the_project(found: Object | None, expected: list[str]) -> None:
    """Set while a namespace is in a project that can be served, else taken off; never on what is not ordinary."""
    plan = plan_member(found, CONFIG)
    assert changes(plan) == expected
    assert all(isinstance(write, Apply | RemoveLabel) for write in plan.writes())


@pytest.mark.check("hpo-26")
def test_a_label_of_ours_on_a_users_namespace_brings_no_policy() -> None:
    """Nothing but the memory of its project is ever written to a namespace that we did not make."""
    plan = plan_member(namespace("a1", {LABEL: "p-a", OPERATED: "true"}), CONFIG)
    assert {write.kind for write in plan.writes()} == {NAMESPACE}


@pytest.mark.parametrize(
    ("value", "part"),
    [("Foo_Bar", "'Foo_Bar' cannot be part"), ("", "is empty"), ("a" * 49, "49 characters"), ("a" * 60, "60 characters")],
)
@pytest.mark.check("hpo-17")
def test_bad_project_ids_are_told(value: str, part: str) -> None:
    """A project id that cannot be served gets a condition and a Warning that name the label, the limit and the fix."""
    ((_, reason, message),) = told(report_member(namespace("bad", {LABEL: value}), (), CONFIG))
    assert reason == "InvalidProjectID"
    assert message.startswith(f"label {LABEL}: ")
    assert part in message


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, []),
        (namespace("a1"), []),
        (namespace("bad", {LABEL: "Foo_Bar"}, deletionTimestamp="now"), []),
        (unwell(A1), []),  # for the project's own run to say
        (unwell(namespace("a1")), ["status Namespace a1: - status"]),
        (unwell(namespace("a1", {LABEL: "p-denied"})), ["status Namespace a1: - status"]),
        (unwell(registration()), []),
        (unwell(A1, message="Namespace a1 was refused: no"), ["status Namespace a1: - status"]),
        (unwell(A1, message=f"Namespace {NAME} was refused: no"), []),
    ],
)
def test_a_member_is_healed_when_its_label_is_gone(found: Object | None, expected: list[str]) -> None:
    """A namespace in no project carries no condition; in a project, the project's run decides."""
    assert changes(report_member(found, (), CONFIG)) == expected


def test_a_refused_label_is_told_by_the_member_alone() -> None:
    """The refusal stands on the member, and the run of its project neither takes it back nor talks over it."""
    no = Refusal(Key("v1", "Namespace", "", "a1"), "admission", "no labels here")
    ((name, reason, message),) = told(report_member(A1, [no], CONFIG))
    assert (name, reason) == ("a1", "AdmissionDenied")
    live = unwell(A1, reason, message)
    assert changes(report_project(project(members=(live,)), [])) == []
    assert changes(report_project(project(registration=namespace(NAME), ours=False, members=(live,)), [])) == []
    again = Refusal(no.key, no.cause, "no labels here (request 2)")
    assert changes(report_member(live, [again], CONFIG)) == []


# -- single-namespace mode -------------------------------------------------------------------------------------

SYSTEM = namespace("cattle-helm-system")


def test_single_namespace_mode() -> None:
    """The charts' ConfigMaps are kept in the system namespace, and the namespace itself is not labelled."""
    plan = plan_system(SystemNamespace(SYSTEM), CHARTS)
    assert changes(plan) == [f"create ConfigMap cattle-helm-system/{chart.config_map_name}" for chart in CHARTS]
    assert wanted(plan, CONFIG_MAP)["metadata"]["labels"] == {OPERATED: "true"}
    maps: dict[str, Object | None] = {write.key.name: write.wanted for write in plan.writes() if isinstance(write, Apply)}
    assert changes(plan_system(SystemNamespace(SYSTEM, maps), CHARTS)) == []


@pytest.mark.parametrize("found", [None, namespace("cattle-helm-system", deletionTimestamp="now")])
def test_a_system_namespace_that_is_not_there(found: Object | None) -> None:
    """Nothing is done and nothing told while the system namespace is missing or on its way out."""
    seen = SystemNamespace(found)
    assert plan_system(seen, CHARTS) == report_system(seen, [refusal("quota")]) == NOTHING


def test_refusals_in_single_namespace_mode() -> None:
    """A refusal is told on the system namespace, the same one whatever the order, and healed."""
    many: list[Refusal] = [refusal("quota", name="b"), refusal("admission", name="a")]
    seen = SystemNamespace(SYSTEM)
    assert told(report_system(seen, many)) == told(report_system(seen, many[::-1]))
    assert told(report_system(seen, many))[0][:2] == ("cattle-helm-system", "AdmissionDenied")
    assert report_system(seen, []) == NOTHING
    assert changes(report_system(SystemNamespace(unwell(SYSTEM)), [])) == ["status Namespace cattle-helm-system: - status"]


def test_every_write_is_of_a_known_make() -> None:
    """Deletions are of ConfigMaps only: no plan of this unit deletes a namespace."""
    seen: list[Project] = [project(), project(alive=False), with_map(immutable=True), project(registration=orphan("kubectl"))]
    writes: list[Write] = [write for found in seen for write in plan_project(found, CHARTS, CONFIG).writes()]
    assert {write.kind for write in writes if isinstance(write, Delete)} == {CONFIG_MAP}
