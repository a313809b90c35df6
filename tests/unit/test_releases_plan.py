"""What release-provisioning wants for one release name, without a cluster."""

from __future__ import annotations

from typing import Any

import pytest
from release_objects import (
    CONTENTS,
    FINALIZER,
    HOME,
    NAME,
    VERSION,
    asked,
    config,
    contender,
    made,
    member,
    seen,
    stalled,
    told,
    verbs,
)

from release_provisioning.projects.plan import plan_release
from release_provisioning.projects.report import report_release
from release_provisioning.projects.seen import Contender, ObservedRelease
from tenantry.model.config import Config
from tenantry.model.kinds import NAMESPACE, Object, object_of
from tenantry.model.plan import Apply, Delete, RemoveFinalizers
from tenantry.model.projects import RELEASE_MANAGER
from tenantry.model.releases import held_by

UPSTREAM = "wrangler.cattle.io/on-project-helm-chart-remove"


def test_a_release_is_made_in_order() -> None:
    """Finalizer and namespace come before what needs them."""
    plan = plan_release(seen(), CONTENTS, config())

    assert [[write.key.kind for write in stage] for stage in plan.stages] == [
        [],
        ["ProjectHelmChart", "Namespace"],
        ["ServiceAccount", "NetworkPolicy"],
        ["HelmChart", "HelmRelease"],
    ]


@pytest.mark.check("hpo-24")
@pytest.mark.parametrize(
    "off",
    [
        config(hardenedNamespaces={"enabled": False}),
        config(projectReleaseNamespaces={"enabled": False}),
    ],
    ids=["switched off", "no release namespaces"],
)
def test_a_release_namespace_is_hardened_where_there_is_one(off: Config) -> None:
    """Switched off, or in a namespace that is not the release's own, nothing is hardened."""
    kinds = {write.key.kind for write in plan_release(seen(), CONTENTS, off).writes()}

    assert kinds.isdisjoint({"ServiceAccount", "NetworkPolicy"})
    assert "HelmChart" in kinds


@pytest.mark.parametrize(
    ("controller", "name", "image"),
    [
        ({}, "helm-project-operator", None),
        ({"enabled": False}, "helm-controller", None),
        ({"enabled": False, "externalControllerName": "k3s", "jobImage": "i"}, "k3s", "i"),
    ],
)
def test_who_runs_helm_is_named(controller: Object, name: str, image: str | None) -> None:
    """The managed-by annotation names our controller, or the external one when ours is off."""
    plan = plan_release(seen(), CONTENTS, config(helmController=controller))
    chart = next(write.wanted for write in plan.writes() if isinstance(write, Apply) and write.key.kind == "HelmChart")

    assert chart["metadata"]["annotations"]["helmcharts.cattle.io/managed-by"] == name
    assert chart["spec"].get("jobImage") == image


@pytest.mark.parametrize(
    "holder",
    [
        contender(chart=False),
        contender(denied=True),
        contender(project=""),
        contender(asked("other-name")),
    ],
)
def test_who_is_not_served_any_more_keeps_its_release(holder: Contender) -> None:
    """Nothing is touched, and nobody else gets the name, while the one that it was made for is there."""
    kept = ObservedRelease(
        NAME,
        (holder, contender(asked("demo", "cattle-project-q"), project="q")),
        helm_chart=made("HelmChart", by=str(holder.key)),
        members=(member(),),
    )

    assert kept.holder is None
    assert verbs(plan_release(kept, CONTENTS, config())) == []


def test_a_foreign_helm_chart_is_left_alone() -> None:
    """Neither changed nor deleted, whatever becomes of the ProjectHelmChart."""
    foreign = made("HelmChart", by="", owned=False)
    other = made("HelmChart", by="", owned=False, labels={"helm.cattle.io/helm-project-operated": "true"})
    other["metadata"]["annotations"] = {"helmcharts.cattle.io/managed-by": "somebody"}
    for obj in (foreign, other):
        assert verbs(plan_release(seen(helm_chart=obj), CONTENTS, config())) == []
        assert stalled(report_release(seen(helm_chart=obj), (), config())) == "NotOurs"
        without = ObservedRelease(NAME, (contender(),), helm_chart=obj)
        assert "Delete HelmChart" not in verbs(plan_release(without, CONTENTS, config()))


def test_upstreams_marks_say_whose_it_was() -> None:
    """What the Helm Project Operator made names its ProjectHelmChart in annotations of its own."""
    old = made("HelmChart", by="", labels={"helm.cattle.io/helm-project-operated": "true"})
    old["metadata"]["annotations"] = {
        "objectset.rio.cattle.io/owner-namespace": HOME,
        "objectset.rio.cattle.io/owner-name": "demo",
    }

    assert held_by(old) == f"{HOME}/demo"
    assert verbs(plan_release(ObservedRelease(NAME, (), old, gone=frozenset({f"{HOME}/demo"})), CONTENTS, config())) == [
        "Delete HelmChart"
    ]


@pytest.mark.parametrize(("ours", "left"), [(True, (FINALIZER, UPSTREAM)), (False, (FINALIZER,))])
def test_finalizers_go_with_their_chart(ours: bool, left: tuple[str, ...]) -> None:
    """Ours always; upstream's only on what is ours. What was made goes first."""
    leaving = asked(deletionTimestamp="x", finalizers=[FINALIZER, UPSTREAM, "other/one"])
    plan = plan_release(seen(contender(leaving, chart=ours), helm_chart=made("HelmChart")), CONTENTS, config())
    first, second, third = (list(stage) for stage in plan.stages)

    assert [type(write) for write in first] == [Delete]
    assert isinstance(second[0], RemoveFinalizers)
    assert second[0].finalizers == left
    assert third == [], "there is no namespace to keep hardened"


def test_the_finalizer_of_another_release_is_not_ours_to_take() -> None:
    """A run for one name does not let go of a ProjectHelmChart that asks for another."""
    leaving = asked("other", deletionTimestamp="x", finalizers=[FINALIZER])

    assert verbs(plan_release(seen(contender(leaving)), CONTENTS, config())) == []


def test_what_lost_its_mark_is_taken_away_when_nobody_can_want_it() -> None:
    """A HelmChart of ours whose annotation was removed by hand goes with the last ProjectHelmChart that can have asked for it."""
    leaving = contender(asked(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=[FINALIZER]))
    unmarked = made("HelmChart", by="")

    assert "Delete HelmChart" in verbs(plan_release(seen(leaving, helm_chart=unmarked), CONTENTS, config()))
    home = object_of(NAMESPACE, {"name": NAME})
    assert "Delete HelmChart" not in verbs(plan_release(seen(helm_chart=unmarked, namespace=home), CONTENTS, config()))
    foreign = made("HelmChart", by="", owned=False)
    assert "Delete HelmChart" not in verbs(plan_release(seen(leaving, helm_chart=foreign), CONTENTS, config()))


ADOPTED = {"tenantry.dev/adopt": "true"}
WORD = ("tenantry.dev/adopt=true", "hand it over")


def house(project: str, *, made_for: str = "", **metadata: Any) -> Object:
    """A release namespace of ours that is of a project, by its marks."""
    owned = {"f:metadata": {"f:labels": {"f:kubernetes.io/metadata.name": {}}}}
    entry = {"manager": RELEASE_MANAGER, "operation": "Apply", "fieldsV1": owned}
    labels = {"helm.cattle.io/projectId": project, "kubernetes.io/metadata.name": NAME} if project else {}
    annotations = {"tenantry.dev/project-helm-chart": made_for} if made_for else {}
    identity = {"name": NAME, "uid": "n", "resourceVersion": "1", "labels": labels, "annotations": annotations}
    return object_of(NAMESPACE, {**identity, "managedFields": [entry], **metadata})


@pytest.mark.parametrize(
    ("found", "refused"),
    [
        ({"namespace": house("p-b")}, True),
        ({"namespace": house("", made_for="cattle-project-p-b/demo")}, True),
        ({"namespace": house("p-b", annotations=ADOPTED)}, False),
        ({"namespace": house("p-a")}, False),
        ({"namespace": house("")}, False),
        ({"namespace": house("p-b"), "helm_chart": made("HelmChart")}, False),
        ({"namespace": house("p-a"), "helm_chart": made("HelmChart", by="cattle-project-p-b/demo")}, False),
    ],
    ids=["label", "annotation", "handed over", "own", "stripped", "relabelled while it is in use", "own, of before"],
)
def test_what_another_project_left_is_not_taken(found: dict[str, Object], refused: bool) -> None:
    """Marks of another project refuse; of whose release it is now the HelmChart says first."""
    status = told(report_release(seen(**found), (), config()))

    assert ("left in it" in status["statusMessage"]) is refused
    assert all(word in status["statusMessage"] for word in WORD) is refused
    assert ("Apply HelmChart" in verbs(plan_release(seen(**found), CONTENTS, config()))) is not refused


@pytest.mark.parametrize("label", ["p-a", "p-b", ""])
def test_what_a_release_left_says_whose_it_was(label: str) -> None:
    """The label of the project on the namespace of a release that is over is put back to what its own mark says."""
    labels = {"helm.cattle.io/projectId": label, "kubernetes.io/metadata.name": NAME}
    left = house("p-a", made_for=f"{HOME}/demo", labels=labels)
    plan = plan_release(ObservedRelease(NAME, (), namespace=left, gone=frozenset({f"{HOME}/demo"})), CONTENTS, config())
    write, *hardening = plan.writes()
    assert isinstance(write, Apply)
    assert write.wanted["metadata"]["labels"]["helm.cattle.io/projectId"] == "p-a"
    assert [each.key.kind for each in hardening] == ["ServiceAccount", "NetworkPolicy"]


@pytest.mark.parametrize("asks", [True, False])
def test_the_namespace_of_a_release_stays_hardened(asks: bool) -> None:
    """Also when nobody asks for the release any more, or it cannot be had; a namespace on its way out, or of somebody else, is
    left alone."""
    hardening = ["Apply ServiceAccount", "Apply NetworkPolicy"]
    contenders = [contender(asked(version="other/v1"), chart=False)] if asks else []
    ours, leaving = house("p-a"), house("p-a", deletionTimestamp="x")
    theirs = {**ours, "metadata": {**ours["metadata"], "managedFields": []}}
    for namespace, wanted in ((ours, hardening), (leaving, []), (theirs, [])):
        assert verbs(plan_release(ObservedRelease(NAME, tuple(contenders), namespace=namespace), CONTENTS, config())) == wanted


def test_the_word_that_hands_over_is_taken_off_when_it_is_done() -> None:
    """First the marks, then the annotation goes, and then there is nothing to do."""
    applies = (each for each in plan_release(seen(), CONTENTS, config()).writes() if isinstance(each, Apply))
    (wanted,) = (each.wanted for each in applies if each.key.kind == "Namespace")
    entry = {"manager": RELEASE_MANAGER, "operation": "Apply", "fieldsV1": _owned(wanted["metadata"])}
    live = {**wanted, "metadata": {**wanted["metadata"], "uid": "n", "resourceVersion": "1", "managedFields": [entry]}}
    adopted = {**live, "metadata": {**live["metadata"], "annotations": {**live["metadata"]["annotations"], **ADOPTED}}}

    def on_namespace(namespace: Object) -> list[str]:
        changes = plan_release(seen(namespace=namespace), CONTENTS, config()).changes(RELEASE_MANAGER)
        return [str(change) for change in changes if change.key.kind == "Namespace"]

    assert on_namespace(house("p-b", annotations=ADOPTED))[0].startswith(f"update Namespace {NAME}: ~ metadata.labels")
    assert on_namespace(adopted) == [f"update Namespace {NAME}: ~ /metadata/annotations/tenantry.dev~1adopt"]
    assert on_namespace(live) == []


def _owned(metadata: Object) -> Object:
    parts = {f"f:{part}": {f"f:{key}": {} for key in metadata[part]} for part in ("labels", "annotations")}
    return {"f:metadata": parts}


@pytest.mark.parametrize(
    ("has_it", "what"),
    [
        (False, {}),
        (True, {"helm_chart": made("HelmChart")}),
        (True, {"helm_release": made("HelmRelease")}),
        (True, {"namespace": made("Namespace")}),
    ],
    ids=["nobody has it", "HelmChart", "HelmRelease", "Namespace"],
)
def test_an_older_one_takes_the_release_from_nobody(has_it: bool, what: dict[str, Object]) -> None:
    """Among those that ask the oldest gets the release; who has it already keeps it, also when somebody deleted its HelmChart."""
    older = contender(asked(namespace="cattle-project-p-0", creationTimestamp="2026-01-01T00:00:00Z"), project="p-0")
    younger = contender(asked(creationTimestamp="2026-02-01T00:00:00Z"))
    found = seen(older, younger, **what)

    assert found.holder is (younger if has_it else older)


@pytest.mark.parametrize("singleton", [False, True], ids=["chosen", "singleton"])
def test_no_release_is_called_like_a_registration_namespace(singleton: bool) -> None:
    """A name that its author chose may not lead into a registration namespace; that of a singleton follows from its own."""
    settings = config(charts=[{"helmApiVersion": VERSION, "releaseName": "dummy", "singleton": singleton}])
    asking = Contender(asked(HOME), settings.helm_project_operator.charts[0], "p-a")
    release = ObservedRelease(f"{HOME}-dummy", (asking,), members=(member(),))

    assert (stalled(report_release(release, (), settings)) == "InvalidReleaseName") is not singleton
    assert ("Apply HelmChart" in verbs(plan_release(release, CONTENTS, settings))) is singleton
