"""The status of a HelmChart says how its Job goes, once, and what was refused with its fix."""

from __future__ import annotations

from chart_objects import SYSTEM, chart, condition, delete_of, event, install_of, said, seen

from tenantry.model.kinds import Key
from tenantry.model.plan import Refusal


def test_status_follows_the_job() -> None:
    """Running, retrying with Helm's words, complete, failed."""
    of = chart()
    pods = tuple(
        {
            "metadata": {"name": f"p{number}"},
            "status": {
                "containerStatuses": [{"state": {"terminated": {"exitCode": 1, "message": text, "finishedAt": str(number)}}}]
            },
        }
        for number, text in enumerate(["first words", "last words"])
    )

    assert said(seen(of))["Failed"] == ("False", "Running", "Helm runs")
    assert said(seen(of, install=install_of(of)))["Failed"] == ("False", "Running", "Helm runs")
    assert said(seen(of, install=install_of(of, active=1)))["Failed"] == ("False", "Running", "Helm runs")
    retrying = seen(of, install=install_of(of, failed=1), pods=pods)
    assert said(retrying)["Failed"] == ("False", "Retrying", "Helm failed and is tried again: last words")
    assert event(retrying) == "JobRetrying"
    failed = seen(of, install=install_of(of, conditions=[condition("Failed", message="limit")]), pods=pods)
    assert said(failed)["Failed"] == ("True", "JobFailed", "last words")
    assert said(seen(of, install=failed.install))["Failed"][2] == "limit"
    complete = seen(of, install=install_of(of, conditions=[condition("Complete")]))
    assert said(complete)["Failed"][:2] == ("False", "Complete")
    assert said(complete)["Installed"][0] == "True"
    assert event(complete) == "JobComplete"


def test_old_job_says_nothing_about_new_values() -> None:
    """While a Job is replaced its result is not that of the values that are asked for now."""
    failed = install_of(chart(), conditions=[condition("Failed")])

    assert said(seen(chart(valuesContent="a: 1"), install=failed))["Failed"][1] == "Running"


def test_healing_is_told_once() -> None:
    """A problem that is gone is told when it goes, and nothing is told again."""
    bad = chart(status={"jobName": "helm-install-demo", "conditions": [condition("Failed", reason="InvalidValues", message="m")]})
    told = chart(status={"conditions": [condition("Failed", "False", reason="Running", message="Helm runs")]})

    assert event(seen(bad)) == "Healed"
    assert event(seen(told)) == ""
    leaving = chart(leaving=True, status={"jobName": "helm-install-demo"})
    assert said(seen(leaving, delete=delete_of(leaving, active=1)))["JobCreated"][2].startswith("Helm uninstalls")


def test_refusals_are_told_with_their_fix() -> None:
    """What the API server refused is told with the field or right to change, in its first words."""
    job = Key("batch/v1", "Job", SYSTEM, "helm-install-demo")
    role = Key("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "helm-x")
    quota, rights = Refusal(job, "quota", "exceeded 1"), Refusal(role, "rights", "no")

    assert said(seen(), (quota,))["Failed"][1] == "QuotaExceeded"
    assert "`bind`" in said(seen(), (rights,))["Failed"][2]
    status = {"conditions": [condition("Failed", reason="QuotaExceeded", message=said(seen(), (quota,))["Failed"][2])]}
    again = Refusal(job, "quota", "exceeded 2")
    assert "exceeded 1" in said(seen(chart(status=status)), (again,))["Failed"][2]
    assert event(seen(chart(status=status)), (again,)) == ""
    assert "unmanaged" in said(seen(chart(leaving=True)), (quota,))["Failed"][2]
