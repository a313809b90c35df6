"""The rights of Helm's account: which, where and for how long, without a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from chart_objects import (
    MANAGED,
    MANAGER,
    SYSTEM,
    chart,
    condition,
    config,
    delete_of,
    event,
    install_of,
    last_reason,
    said,
    seen,
    settled,
    stored,
    writes,
)

from release_provisioning.jobs import manifest, rights
from release_provisioning.jobs.plan import plan_chart
from release_provisioning.jobs.rights import StrayBinding, plan_stray
from release_provisioning.jobs.seen import ObservedHelmChart
from tenantry.model.config import Config
from tenantry.model.kinds import Object
from tenantry.model.names import CHART_LABEL

ROLE = "tenantry-helm-job"
GIVE = f"create RoleBinding helm-{SYSTEM}-demo"
TAKE = f"delete RoleBinding helm-{SYSTEM}-demo"
TAKE_ALL = f"delete ClusterRoleBinding helm-{SYSTEM}-demo"
MAKE = "create Job helm-install-demo"
HOME = {"kind": "Namespace", "metadata": {"name": "place"}}
GOING = {"kind": "Namespace", "metadata": {"name": "place", "deletionTimestamp": "now"}}
DONE, LOST = {"conditions": [condition("Complete")]}, {"conditions": [condition("Failed")]}


def asked(*, leaving: bool = False, version: str = "dummy.cattle.io/v1alpha1", **more: Any) -> Object:
    """The HelmChart of a ProjectHelmChart."""
    of = chart(leaving=leaving, targetNamespace="place", **more)
    of["metadata"]["annotations"] = MANAGED | {"tenantry.dev/helm-api-version": version}
    return of


def bound(of: Object, role: str = ROLE, **more: Any) -> Object:
    return stored({**manifest.binding(of, role), **more})


def at_rest(of: Object, **parts: Any) -> ObservedHelmChart:
    return settled(of, **{"binding": None, "install": install_of(of, **DONE), **parts})


def at_work(of: Object, **parts: Any) -> ObservedHelmChart:
    return settled(of, **{"binding": None, "install": install_of(of, active=1), **parts})


def going(job: Object) -> Object:
    return {**job, "metadata": {**job["metadata"], "deletionTimestamp": "now"}}


@pytest.mark.parametrize(
    ("mark", "of_project"),
    [
        ({}, False),
        ({"labels": {"helm.cattle.io/helm-project-operated": "true"}}, True),
        ({"annotations": {"tenantry.dev/project-helm-chart": "a/b"}}, True),
        ({"annotations": {"tenantry.dev/helm-api-version": "dummy.cattle.io/v1alpha1"}}, True),
        ({"managedFields": [{"manager": MANAGER, "fieldsV1": {"f:spec": {"f:chart": {}}}}]}, True),
        ({"managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:chart": {}}}}]}, False),
        ({"labels": {"helmcharts.helm.cattle.io/chart": "demo"}}, False),
    ],
)
def test_any_mark_makes_a_chart_one_of_a_project(mark: Object, of_project: bool) -> None:
    """Who takes one mark off a HelmChart gives its Job no more rights."""
    of = chart()
    of["metadata"] |= {**mark, "annotations": {**MANAGED, **mark.get("annotations", {})}}

    assert rights.is_of_project(of) is of_project
    assert rights.job_role(of, config()) == (ROLE if of_project else "cluster-admin")


def test_the_configuration_names_every_role() -> None:
    """That of the chart, of the installation, or for HelmCharts of administrators; an empty one is that of the installation."""
    narrow = asked(version="narrow.cattle.io/v1alpha1")
    unknown = asked(version="gone.cattle.io/v1")

    assert rights.job_role(narrow, config()) == "narrow"
    assert rights.job_role(asked(), config(jobClusterRole="other")) == "other"
    assert rights.job_role(unknown, config()) == ROLE
    assert rights.job_role(chart(), config()) == "cluster-admin"
    assert rights.job_role(chart(), config(administratorsClusterRole="")) == ROLE
    assert rights.job_role(chart(), config(administratorsClusterRole="mine")) == "mine"


def test_only_cluster_admin_reaches_everywhere() -> None:
    """Any other role is given in the namespace of the release."""
    assert manifest.binding(asked(), "cluster-admin")["kind"] == "ClusterRoleBinding"
    found = manifest.binding(asked(), "almost-everything")
    assert (found["kind"], found["metadata"]["namespace"]) == ("RoleBinding", "place")
    assert found["subjects"] == [{"kind": "ServiceAccount", "name": "helm-demo", "namespace": SYSTEM}]


def test_the_configuration_says_who_has_everything() -> None:
    """By the path of each setting that says cluster-admin."""
    chart_ = {"helmApiVersion": "dummy.cattle.io/v1alpha1", "releaseName": "dummy", "jobClusterRole": "cluster-admin"}
    given = {"charts": [chart_], "helmController": {"administratorsClusterRole": "", "jobClusterRole": "cluster-admin"}}

    assert Config().cluster_admins == ("helmProjectOperator.helmController.administratorsClusterRole",)
    assert Config.model_validate({"helmProjectOperator": given}).cluster_admins == (
        "helmProjectOperator.helmController.jobClusterRole",
        "helmProjectOperator.charts[0].jobClusterRole",
    )
    assert Config().job_cluster_roles == {"cluster-admin", ROLE}


# -- while a Job runs ----------------------------------------------------------------------------------------


def test_rights_come_before_the_job_and_go_with_its_end() -> None:
    """Made before it, kept while it runs, taken away when it has succeeded or failed for good; at rest nothing is written."""
    of = asked()
    first = writes(seen(of))

    assert first.index(GIVE) == first.index(MAKE) - 1
    assert writes(seen(of, role_binding=bound(of)))[-1] == MAKE
    assert GIVE not in writes(seen(of, role_binding=bound(of)))
    assert writes(at_work(of, role_binding=bound(of))) == []
    assert writes(at_work(of)) == [GIVE]
    for end in (DONE, LOST):
        assert writes(at_rest(of, install=install_of(of, **end), role_binding=bound(of))) == [TAKE]
        assert writes(at_rest(of, install=install_of(of, **end))) == []


def test_a_job_that_is_replaced_keeps_its_rights_until_it_has_ended() -> None:
    """Helm finishes in a Job that was deleted; the next Job goes on with the binding, or gets one of its own."""
    old, of = asked(), asked(valuesContent="a: 1")
    running, ended = install_of(old, active=1), install_of(old, **DONE)
    delete = "delete Job helm-install-demo"

    assert writes(at_work(of, install=running, role_binding=bound(of))) == [delete]
    assert writes(at_work(of, install=running)) == [delete, GIVE], "that it has not ended is known when it could be deleted"
    assert writes(at_work(of, install=going(running), role_binding=bound(of))) == []
    assert writes(at_work(of, install=None, role_binding=bound(of))) == [MAKE]
    assert writes(at_rest(of, install=ended)) == [delete]
    assert writes(at_rest(of, install=going(ended))) == []
    assert writes(at_rest(of, install=None)) == [GIVE, MAKE]
    assert writes(at_rest(of, install=ended, role_binding=bound(of))) == [TAKE, delete]
    assert writes(at_rest(of, install=going(ended), role_binding=bound(of))) == [TAKE]


def test_a_mistake_takes_no_rights_from_a_job_that_runs() -> None:
    """And leaves none when it has ended, or is gone."""
    old, of = asked(), asked(valuesContent="- no map")

    assert writes(at_work(of, install=install_of(old, active=1), role_binding=bound(of))) == []
    assert writes(at_rest(of, install=install_of(old, **DONE), role_binding=bound(of))) == [TAKE]
    assert writes(at_rest(of, install=None, role_binding=bound(of))) == [TAKE]


def test_rights_of_before_are_taken_away() -> None:
    """The ClusterRoleBinding that every HelmChart had goes: at rest at once, else when the narrow one is there."""
    of = asked()
    before = bound(of, "cluster-admin")

    assert writes(at_rest(of, binding=before)) == [TAKE_ALL]
    assert writes(at_work(of, binding=before)) == [GIVE, TAKE_ALL]
    assert writes(at_work(of, binding=before, role_binding=bound(of))) == [TAKE_ALL]
    assert writes(at_rest(chart(), binding=bound(chart(), "cluster-admin"))) == [TAKE_ALL]
    assert writes(settled(chart())) == []


def test_another_role_takes_the_place_of_the_one_before() -> None:
    """What a binding refers to cannot be changed: it goes, and the next look makes the other one."""
    of = asked()
    other = bound(of, "narrow")

    assert writes(at_work(of, role_binding=other)) == [TAKE]
    assert writes(at_rest(of, role_binding=other)) == [TAKE]


def test_a_binding_that_somebody_shares_is_told_and_stays() -> None:
    """Who adds himself to Helm's binding, or makes it before us, is named by his object; Helm is not run for it."""
    of = asked()
    theirs = bound(of, subjects=[{"kind": "User", "name": "eve"}])

    for found in (seen(of, role_binding=theirs), at_rest(asked(valuesContent="a: 1"), role_binding=theirs)):
        assert not [each for each in writes(found) if "Binding" in each or "Job" in each]
        assert said(found)["Failed"][1] == "NameTaken"
        assert f"RoleBinding place/helm-{SYSTEM}-demo" in said(found)["Failed"][2]
    leaving = at_rest(asked(leaving=True, status={"jobName": "x"}), install=None, target=HOME, role_binding=theirs)
    assert writes(leaving) == []
    assert "take the other subjects off it" in said(leaving)["Failed"][2]


def test_without_a_namespace_there_are_no_rights_and_no_job() -> None:
    """A project's release waits for its namespace, whose function is at it; an administrator is told what to do."""
    of, theirs = asked(), chart(targetNamespace="place")
    for chart_ in (of, theirs):
        lacking = replace(seen(chart_), homeless=True)
        assert not [each for each in writes(lacking) if "Binding" in each or "Job" in each]
        assert said(lacking)["Failed"][1] == "NamespaceMissing"
    assert said(replace(seen(of), homeless=True))["Failed"][0] == "False"
    assert said(replace(seen(theirs), homeless=True))["Failed"][0] == "True"
    assert event(replace(seen(theirs), homeless=True)) == "NamespaceMissing"
    assert writes(replace(at_work(of), homeless=True)) == []


def test_a_right_that_helm_lacks_is_told_with_who_can_give_it() -> None:
    """The setting for a wider role, and what the account has; a refusal by a policy needs no role."""
    text = 'clusterroles.rbac.authorization.k8s.io is forbidden: User "system:serviceaccount:x:helm-demo" cannot list resource'

    def told(of: Object, words: str = text, **controller: Any) -> str:
        ended = {"terminated": {"exitCode": 1, "message": words}}
        pod = {"metadata": {"name": "p"}, "status": {"containerStatuses": [{"state": ended}]}}
        return said(at_rest(of, install=install_of(of, **LOST), pods=(pod,)), (), **controller)["Failed"][2]

    assert f"ClusterRole {ROLE} in namespace place only" in told(asked())
    assert "charts[].jobClusterRole" in told(asked())
    assert told(chart()) == text
    assert "helmController.administratorsClusterRole" in told(chart(), administratorsClusterRole="mine")
    policy = "secrets is forbidden: ValidatingAdmissionPolicy 'x' denied request"
    assert told(asked(), policy) == policy


# -- on the way out ------------------------------------------------------------------------------------------


def test_an_uninstallation_has_rights_of_its_own() -> None:
    """Given before its Job, put back while it runs, and gone before the HelmChart is."""
    of = asked(leaving=True, status={"jobName": "helm-install-demo"})
    rest: dict[str, Any] = {"secret": None, "content": None, "target": HOME}
    done = delete_of(of, **DONE)

    assert writes(at_rest(of, **rest, role_binding=bound(of))) == [TAKE, "delete Job helm-install-demo"]
    assert writes(at_work(of, **rest, role_binding=bound(of))) == ["delete Job helm-install-demo"]
    assert writes(at_rest(of, **rest, install=None)) == [GIVE, "create Job helm-delete-demo"]
    assert writes(at_rest(of, **rest, install=None, role_binding=bound(of))) == ["create Job helm-delete-demo"]
    assert writes(at_rest(of, **rest, install=None, delete=delete_of(of))) == [GIVE]
    assert writes(at_rest(of, **rest, install=None, delete=delete_of(of), role_binding=bound(of))) == []
    assert writes(at_rest(of, **rest, install=None, delete=done, role_binding=bound(of), binding=bound(of, "cluster-admin"))) == [
        "delete ServiceAccount helm-demo",
        TAKE,
        TAKE_ALL,
        "update HelmChart demo",
        "delete Job helm-delete-demo",
    ]


def test_a_release_goes_with_its_namespace() -> None:
    """Nobody can be given rights in a namespace on its way out, and nothing of its release is elsewhere, unless it is wide."""
    of = asked(leaving=True, status={"jobName": "helm-install-demo"})
    wide = chart(leaving=True, status={"jobName": "helm-install-demo"}, targetNamespace="place")

    for target, delete in ((GOING, None), (None, None), (GOING, delete_of(of)), (None, delete_of(of))):
        gone = at_rest(of, install=None, target=target, delete=delete)
        assert last_reason(gone) == "Removed"
        assert GIVE not in writes(gone)
    assert last_reason(at_rest(wide, install=None, target=GOING)) == ""
    assert last_reason(at_rest(wide, install=None, target=None)) == "Removed"
    assert last_reason(at_rest(wide, install=None, target=None, delete=delete_of(wide))) == ""


@pytest.mark.parametrize("rights_", ["binding", "role_binding"])
def test_what_is_left_of_a_chart_that_is_gone_loses_its_rights(rights_: str) -> None:
    """The binding that its Job names goes, if we made it."""
    of = asked()
    live = bound(of, ROLE if rights_ == "role_binding" else "cluster-admin")
    live["metadata"]["managedFields"] = [{"manager": MANAGER, "fieldsV1": {"f:metadata": {"f:labels": {f"f:{CHART_LABEL}": {}}}}}]

    assert writes(ObservedHelmChart(SYSTEM, "demo", None, **{rights_: live})) == [TAKE if rights_ == "role_binding" else TAKE_ALL]


# -- strays --------------------------------------------------------------------------------------------------


def stray(of: Object | None, *jobs: Object, namespace: str = "place", ours: bool = True, **more: Any) -> StrayBinding:
    role = ROLE if namespace else "cluster-admin"
    live = bound(asked(), role, **more)
    if ours:
        entry = {"manager": MANAGER, "fieldsV1": {"f:metadata": {"f:labels": {f"f:{CHART_LABEL}": {}}}}}
        live["metadata"]["managedFields"] = [entry]
    return StrayBinding(namespace, "demo", SYSTEM, live, of, jobs)


def is_taken(found: StrayBinding, **controller: Any) -> bool:
    return bool(plan_stray(found, config(**controller)).changes(MANAGER))


def test_strays_are_taken_away_when_no_job_needs_them() -> None:
    """Of a HelmChart that is gone, has moved, is handed over or no longer ours; a Job that finishes there keeps its rights."""
    of, moved = asked(), asked()
    moved["spec"] = {**moved["spec"], "targetNamespace": "elsewhere"}
    handed = asked()
    handed["metadata"]["annotations"] = {"helmcharts.cattle.io/managed-by": "helm-controller"}
    running = install_of(of, active=1)

    assert is_taken(stray(None))
    assert is_taken(stray(moved, install_of(moved, active=1)))
    assert not is_taken(stray(moved, running))
    assert is_taken(stray(handed, install_of(of, **DONE)))
    assert not is_taken(stray(handed, running))
    assert is_taken(stray(of), enabled=False)
    assert not is_taken(stray(of))
    assert is_taken(stray(handed, namespace=""))
    assert not is_taken(stray(handed, running, namespace=""))
    assert not is_taken(StrayBinding("place", "demo", SYSTEM))


def test_a_stray_that_is_not_ours_stays() -> None:
    """What others made, share, or have taken over is theirs."""
    annotations = {"annotations": {"objectset.rio.cattle.io/owner-name": "demo"}}
    taken = stray(None)
    assert taken.binding is not None
    taken.binding["metadata"] |= annotations

    assert not is_taken(stray(None, ours=False))
    assert not is_taken(taken)
    assert not is_taken(stray(None, subjects=[{"kind": "User", "name": "eve"}]))


def test_a_look_at_what_is_converged_plans_nothing() -> None:
    """Also right after the Job was made."""
    of = asked()
    assert plan_chart(at_work(of, role_binding=bound(of)), config()).changes(MANAGER) == []
