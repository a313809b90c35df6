"""One release as it is, and which of its RoleBindings are ours."""

from __future__ import annotations

from dataclasses import dataclass

from rbac_aggregation.projects.claims import ReleaseClaim, ReleaseKey
from tenantry.model.config import Config
from tenantry.model.difference import owns
from tenantry.model.kinds import ROLE, Object, annotations_of, labels_of
from tenantry.model.names import BINDING_OF, OPERATED, PROJECT_CHART, field_manager

MANAGER = field_manager("rbac-aggregation")
RBAC_GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class ObservedRights:
    """One release in one namespace, as it is.

    ``claim`` is the ProjectHelmChart that has a release of that name, wherever it is installed; ``bindings`` are all
    RoleBindings of the namespace; ``sources`` the bindings that can name people; ``missing`` the ClusterRoles of levels in
    use that do not exist; ``given_up`` the ProjectHelmCharts (``<namespace>/<name>``) of bindings here that certainly do not
    have the release any more; ``charts`` every ProjectHelmChart whose name could claim the release.
    """

    release: ReleaseKey
    claim: ReleaseClaim | None
    namespace: Object | None
    roles: tuple[Object, ...] = ()
    bindings: tuple[Object, ...] = ()
    sources: tuple[Object, ...] = ()
    missing: frozenset[str] = frozenset()
    given_up: frozenset[str] = frozenset()
    charts: tuple[Object, ...] = ()


def role_ref(name: str) -> Object:
    """The reference to a Role of the same namespace."""
    return {"apiGroup": RBAC_GROUP, "kind": ROLE.kind, "name": name}


def is_made_by_us(binding: Object) -> bool:
    """Whether we wrote a RoleBinding: nobody else can have changed its reference."""
    return owns(binding, MANAGER, "roleRef")


def is_ours(binding: Object) -> bool:
    """Whether a RoleBinding counts as ours where the bindings are ours to decide.

    Besides those that we made, one with our mark that is just what we would make: the record of who wrote what can be lost,
    and the Helm Project Operator made such.
    """
    name = binding["metadata"]["name"]
    return is_made_by_us(binding) or (OPERATED in labels_of(binding) and binding.get("roleRef") == role_ref(name))


def owner_text(binding: Object) -> str:
    """The ProjectHelmChart that a binding of ours was made for, as ``<namespace>/<name>``; empty for others."""
    return annotations_of(binding).get(PROJECT_CHART, "") if is_ours(binding) else ""


def release_of(binding: Object, config: Config) -> str:
    """The release that a binding of ours belongs to; empty when nothing tells."""
    alone = binding["metadata"]["namespace"] if config.dedicated else ""
    return labels_of(binding).get(BINDING_OF) or alone
