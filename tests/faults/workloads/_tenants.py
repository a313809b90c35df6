"""Steps and promises that the workloads of Tenants share.  Hands do what the other two functions do.

What declarations give is worked out here once more, by the words of the specification (2.7) and not by the code of a function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tenantry.local.followed import stand_in
from tenantry.model.conditions import find_condition
from tenantry.model.flux.names import MADE_FOR_TENANT, TENANT, TENANT_LABEL
from tenantry.model.flux.onboarding import GIT_REPOSITORY, KUSTOMIZATION
from tenantry.model.flux.tenant import DELIVERY_MANAGER, RIGHTS_MANAGER
from tenantry.model.kinds import Key, Object, is_terminating, labels_of
from tenantry.testing.workload import Step, Workload, apply, edit, namespace, together
from tenantry.testing.world import Moment

T, X = "t-@", "o-@"
"""Two Tenants."""
A, B = "a-@", "b-@"
ACCOUNT = "flux"
RBAC = "rbac.authorization.k8s.io"
SOURCE = {"url": "https://example.com/t", "branch": "main"}
PARTS = ("Ready", "RightsBound", "Delivered")


# -- steps -------------------------------------------------------------------------------------------------


def tenant(name: str, *namespaces: str, finalizers: Sequence[str] = (), **spec: Any) -> Step:
    """A step that declares a Tenant."""
    return apply("Tenant", name, finalizers=list(finalizers), spec={"namespaces": list(namespaces), **spec})


def marks(of: str) -> dict[str, str]:
    """The labels on what is made for a Tenant."""
    return {TENANT_LABEL: of, MADE_FOR_TENANT: of}


def account(where: str, of: str = T, name: str = ACCOUNT) -> Step:
    """A step that makes an account as namespace-registration does."""
    return apply("ServiceAccount", name, where, labels=marks(of))


def binding(where: str, of: str = T, name: str = ACCOUNT) -> Step:
    """A step that binds an account as rbac-aggregation does."""
    return apply(
        "RoleBinding",
        f"{of}-reconciler",
        where,
        labels=marks(of),
        manager=RIGHTS_MANAGER,
        roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        subjects=[{"kind": "ServiceAccount", "name": name, "namespace": where}],
    )


def delivery(where: str, of: str = T) -> Step:
    """A step that makes a Kustomization as release-provisioning does."""
    return apply("Kustomization", of, where, labels=marks(of), manager=DELIVERY_MANAGER, spec={"prune": True})


def told(of: str, says: str = "bound") -> Step:
    """A step that changes a Tenant, as the condition of another function does."""
    return edit("Tenant", of, "", "/metadata/annotations", {"tenantry.dev/told": says})


SPACES = together(namespace(A), namespace(B))


def story(
    workload: Workload, name: str, *steps: Step, before: Sequence[Step] = (), other: Sequence[Step] = (), **options: Any
) -> None:
    """Add a scenario; another path to its end is all that leads there at once."""
    workload.scenario(name, *steps, before=before, other=other or [together(*before, *steps)], **options)


# -- what is declared --------------------------------------------------------------------------------------


def owner_of(obj: Object | None) -> str:
    """The Tenant that an object is made for."""
    return labels_of(obj).get(MADE_FOR_TENANT, "")


def states(moment: Moment, name: str) -> list[Object]:
    """The Tenant as it is declared, and as it was a moment ago; without those on their way out."""
    return [each for each in moment.declared(TENANT.kind, name) if not is_terminating(each)]


def is_declared(moment: Moment, name: str) -> Object | None:
    """The Tenant as it is, if it stays."""
    live = moment.objects.get(Key(TENANT.api_version, TENANT.kind, "", name))
    return None if is_terminating(live) else live


def account_of(owner: Object) -> str:
    """The account that a Tenant wants."""
    return str(owner["spec"].get("serviceAccountName") or ACCOUNT)


def tenants(objects: Sequence[Object]) -> dict[str, Object]:
    """The Tenants that are there to stay, by name."""
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == TENANT.kind and not is_terminating(each)}


def made(objects: Sequence[Object], kind: str) -> Iterator[tuple[str, str, Object]]:
    """Of a kind what is made for Tenants: whose, and where."""
    for each in objects:
        if each["kind"] == kind and owner_of(each) and not is_terminating(each):
            yield owner_of(each), each["metadata"].get("namespace") or each["metadata"]["name"], each


def goes(moment: Moment) -> Object | None:
    """What the function takes away in this moment, as it was."""
    before, after = moment.change.before, moment.change.after
    if not moment.by or before is None or is_terminating(before):
        return None
    return before if after is None or is_terminating(after) else None


# -- a workload --------------------------------------------------------------------------------------------


def tells(obj: Object) -> bool:
    """Whether a Tenant, or a Warning, says that something is wrong."""
    return obj.get("type") == "Warning" or any((find_condition(obj, part) or {}).get("status") == "False" for part in PARTS)


def of_tenants(function: str, service: str, **options: Any) -> Workload:
    """A workload of a function's duty for Tenants, without scenarios."""
    return Workload(
        function,
        services=[service],
        manager=f"tenantry-{function}-tenants",
        tells=tells,
        handover=(MADE_FOR_TENANT,),
        by_ownership=True,
        installed=[stand_in(GIT_REPOSITORY), stand_in(KUSTOMIZATION)],
        **options,
    )
