"""Steps that end the Jobs of Helm, whose pods no node runs; and what must hold of the rights of their account."""

from tenantry.model.conditions import find_condition
from tenantry.model.kinds import JOB, POD, Object, annotations_of, is_terminating, labels_of
from tenantry.model.names import CHART_LABEL, CHART_MANAGED_BY, HELM_API_VERSION
from tenantry.testing import eventually
from tenantry.testing.workload import Run, Step
from tenantry.testing.world import Moment

SYSTEM, OURS = "cattle-helm-system", "helm-project-operator"
RIGHTS = ("RoleBinding", "ClusterRoleBinding")
JOB_S = 30.0
"""The Job controller makes pods, and counts their ends, beside forty other runs."""


def is_ended(job: Object) -> bool:
    """Whether a Job has succeeded or failed for good."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions)


def ended(job: str, phase: str = "Succeeded") -> Step:
    """A step that plays the kubelet for the pod of a Job, and ends when the Job has."""

    async def step(run: Run) -> None:
        name = run.named(job)

        async def working() -> Object:
            found = (await run._api.list(POD, SYSTEM, label_selector=f"batch.kubernetes.io/job-name={name}")).items
            return found[0] if found else {}

        async def is_over() -> bool:
            live = await run._api.get(JOB, name, SYSTEM)
            return live is None or is_ended(live)

        pod = await eventually(working, within=JOB_S, what=f"a pod of {name}")
        path = POD.path(SYSTEM, pod["metadata"]["name"]) + "/status"
        await run._api.request("PUT", path, None, {**pod, "status": {**(pod.get("status") or {}), "phase": phase}})
        await eventually(is_over, within=JOB_S, what=f"the end of {name}")

    return step


def tells(obj: Object) -> bool:
    """Whether a HelmChart, or a Warning on what one left, says what does not heal."""
    return obj.get("reason") == "CleanUpFailed" or (find_condition(obj, "Failed") or {}).get("status") == "True"


def runs_helm_for_ours_only(moment: Moment) -> str:
    """Nothing is made for a HelmChart that is another's, and nobody is bound but the account of ours, where its release is."""
    made = moment.change.after
    if not moment.by or made is None or moment.change.before is not None or made["kind"] in ("HelmChart", "Event"):
        return ""
    of = next((each for each in moment.objects.values() if each["kind"] == "HelmChart"), None)
    if of is None or annotations_of(of).get(CHART_MANAGED_BY) != OURS:
        return f"made {made['kind']} for a HelmChart that is not ours"
    if made["kind"] == "ClusterRoleBinding" and HELM_API_VERSION in annotations_of(of):
        return "gave a project's chart rights in all namespaces"
    bound = {subject["name"] for subject in made.get("subjects") or ()}
    return "bound somebody else" if bound - {f"helm-{of['metadata']['name']}"} else ""


def helm_has_rights_while_it_runs(moment: Moment) -> str:
    """A Job is made when its account has been bound, which lasts until the Job has ended; no HelmChart that goes needs it.

    Who takes the binding away in the moment before the Job is made has it put back after it.
    """
    before, after, there = moment.change.before, moment.change.after, moment.objects.values()
    stays = any(each["kind"] == "HelmChart" and not is_terminating(each) for each in there)
    if not moment.by:
        return ""
    bound = any(each["kind"] in RIGHTS for each in there) or any(each.kind in RIGHTS for each in moment.taken)
    if before is None and after is not None and after["kind"] == "Job" and not bound:
        return "made a Job whose account has no rights"
    took = after is None and before is not None and before["kind"] == "RoleBinding" and stays
    return "took the rights of a Job that runs" if took and any(map(_runs, there)) else ""


def rights_are_those_of_a_job(objects: list[Object]) -> str:
    """Rights without a Job that runs are left; a Job that runs has them."""
    bound = [each for each in objects if each["kind"] in RIGHTS and CHART_LABEL in labels_of(each)]
    runs = any(map(_runs, objects))
    return "" if runs == bool(bound) else "a Job runs without rights" if runs else "rights are left"


def _runs(obj: Object) -> bool:
    return obj["kind"] == "Job" and not is_ended(obj)
