"""What is observed for the permissions of service accounts, and what follows from it alone.

What declarations give is a `Grant`: a ClusterRole to a ServiceAccount in the namespace of a capability.  Which of them are given
now depends on the namespaces: only where one is proven to be the Paas' own, and is not on its way out (2.7, 2.12).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from scope_binding import NAME
from scope_binding.objects import account_subject, binding_of
from scope_binding.paas.descriptor import PERMISSIONS_LABEL
from tenantry.model.identifiers import is_dns_subdomain, is_label_key, is_label_value
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE_BINDING,
    Object,
    annotations_of,
    can_be_name,
    finalizers_of,
    labels_of,
)
from tenantry.model.leftovers import Leftovers
from tenantry.model.names import field_manager
from tenantry.model.paas.config import PaasConfig
from tenantry.model.paas.declared import Paas
from tenantry.model.paas.names import (
    ACCOUNT_BINDING_PREFIX,
    ACCOUNTS_FINALIZER,
    BINDING_PREFIX,
    SHARED,
    SUBJECTS_FINALIZER,
    binding_name,
    namespace_name,
)
from tenantry.model.paas.ours import marked, uid_of
from tenantry.model.paas.placeholders import rendered
from tenantry.model.paas.places import held_by
from tenantry.model.plan import Refusal

MANAGER = f"{field_manager(NAME)}-paas"
PERMISSIONS = "permissions"
"""The value of the annotation `SHARED` on a ClusterRoleBinding that several Paas share."""
_UPSTREAM = ("app.kubernetes.io/created-by", "app.kubernetes.io/part-of")
_OF_UPSTREAM = "opr-paas"


class Subject(NamedTuple):
    """A ServiceAccount, in the order in which subjects stand."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"ServiceAccount {self.namespace}/{self.name}"


class AccountGrant(NamedTuple):
    """What declarations give."""

    role: str
    subject: Subject
    capability: str


@dataclass(frozen=True, slots=True)
class RoleSeen:
    """One ClusterRole as service accounts are bound to it.

    ``every`` are the Paas with capabilities, ``namespaces`` those of capabilities that concern the role, ``local`` its
    RoleBindings (None where nobody asked), and ``refusing`` the namespaces that would refuse theirs while the cluster's binding
    waits for it.
    """

    role: str
    binding: Object | None
    config: PaasConfig | None
    every: tuple[Paas, ...] = ()
    namespaces: Mapping[str, Object | None] = field(default_factory=dict)
    local: tuple[Object, ...] | None = None
    refusing: frozenset[str] = frozenset()
    leftovers: Leftovers = field(default_factory=Leftovers)


@dataclass(frozen=True, slots=True)
class GrantsSeen:
    """One Paas: the namespaces of its grants, and the bindings to the roles of these, in the cluster or in each namespace.

    Of one that gives nothing any more ``named`` has who still stands in the cluster's bindings, and ``left`` its RoleBindings.
    ``refused`` are bindings that cannot be written.
    """

    paas: Paas | None
    config: PaasConfig | None = None
    namespaces: Mapping[str, Object | None] = field(default_factory=dict)
    bindings: Mapping[tuple[str, str], Object | None] = field(default_factory=dict)
    named: frozenset[Subject] = frozenset()
    left: tuple[Object, ...] = ()
    refused: Mapping[str, Refusal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NamespaceSeen:
    """A namespace with the finalizer: whether permissions are declared for it, and whether a binding of ours names it."""

    namespace: Object | None
    wanted: bool = False
    named: bool = False
    leftovers: Leftovers = field(default_factory=Leftovers)


# -- what declarations give --------------------------------------------------------------------------------


def grants_of(paas: Paas, config: PaasConfig | None) -> list[AccountGrant]:
    """What a Paas' service accounts get; nothing of one that is being deleted, nor without a configuration."""
    if config is None or paas.deleted:
        return []
    return [
        AccountGrant(role, Subject(namespace_name(paas.name, capability), account), capability)
        for capability, declared in paas.enabled.items()
        for account, roles in config.permissions(capability, extra=declared.extra_permissions).items()
        for role in roles
        if is_dns_subdomain(account) and can_be_name(role)
    ]


def gives_nothing(paas: Paas, config: PaasConfig | None) -> bool:
    """Whether nothing of a Paas is to stand: it goes, or its capabilities give no service account anything.

    Without a configuration nobody can tell.
    """
    return paas.deleted or (config is not None and not grants_of(paas, config))


def impossible_names(paas: Paas, config: PaasConfig | None) -> list[tuple[str, str]]:
    """Capabilities of a Paas with names in their permissions that nothing can have: of ServiceAccounts, which got into the
    configuration without our policies, and of ClusterRoles."""
    if config is None or paas.deleted:
        return []
    given = {name: config.permissions(name, extra=declared.extra_permissions) for name, declared in paas.enabled.items()}
    found = [
        (capability, f"{account!r} is no name of a ServiceAccount")
        for capability, accounts in given.items()
        for account in accounts
        if not is_dns_subdomain(account)
    ]
    roles = {capability: {role for each in accounts.values() for role in each} for capability, accounts in given.items()}
    return found + [
        (capability, f"{role!r} is no name of a ClusterRole")
        for capability, named in roles.items()
        for role in sorted(named)
        if not can_be_name(role)
    ]


def in_cluster(config: PaasConfig | None) -> bool:
    """Whether permissions hold in the whole cluster."""
    return config is None or config.permission_scope == "Cluster"


def capability_namespaces(paas: Paas) -> frozenset[str]:
    """The names that namespaces of a Paas' capabilities have, enabled or not."""
    return frozenset(namespace_name(paas.name, capability) for capability in paas.capabilities)


def granted(seen: RoleSeen) -> dict[Subject, Paas]:
    """Who is to be bound to the role, each with the Paas whose it is.

    Without a configuration nobody can tell what a capability gives: what is bound stays, as long as a Paas has that capability
    enabled (2.10).
    """
    found: dict[Subject, Paas] = {}
    for paas in seen.every:
        asked: Iterable[Subject]
        if seen.config is None:
            asked = [each for each in standing(seen) if each.namespace in enabled_namespaces(paas)]
        else:
            asked = [grant.subject for grant in grants_of(paas, seen.config) if grant.role == seen.role]
        found |= {each: paas for each in asked if held_by(paas, seen.namespaces.get(each.namespace))}
    return found


def enabled_namespaces(paas: Paas) -> frozenset[str]:
    """The names that namespaces of its enabled capabilities have; none of a Paas that is being deleted."""
    return frozenset() if paas.deleted else frozenset(namespace_name(paas.name, capability) for capability in paas.enabled)


def declared(seen: RoleSeen) -> frozenset[tuple[str, Subject]]:
    """Who asks for the role, whether his namespace is there or not, with the uid of the Paas.

    Without a configuration everybody in a capability that is enabled may: a `Subject` without a name.
    """
    if seen.config is None:
        return frozenset((paas.uid, Subject(name, "")) for paas in seen.every for name in enabled_namespaces(paas))
    return frozenset(
        (paas.uid, grant.subject) for paas in seen.every for grant in grants_of(paas, seen.config) if grant.role == seen.role
    )


def standing(seen: RoleSeen) -> frozenset[Subject]:
    """Who is bound to the role, in the cluster or in a namespace, by a binding of ours."""
    found = set(subjects_of(seen.binding)) if is_shared(seen.binding) else set()
    for each in seen.local or ():
        found |= subjects_of(each)
    return frozenset(found)


# -- bindings ----------------------------------------------------------------------------------------------


def subjects_of(binding: Object | None) -> frozenset[Subject]:
    """The ServiceAccounts that a binding names."""
    listed = (binding or {}).get("subjects") or ()
    return frozenset(
        Subject(each["namespace"], each["name"])
        for each in listed
        if each.get("kind") == "ServiceAccount" and each.get("namespace")
    )


def is_shared(binding: Object | None) -> bool:
    """Whether a ClusterRoleBinding is ours: by its annotation, or as upstream leaves it (2.12)."""
    if binding is None:
        return False
    if annotations_of(binding).get(SHARED) == PERMISSIONS:
        return True
    labels, role = labels_of(binding), binding["roleRef"]["name"]
    named = binding["metadata"]["name"] == binding_name(role) and all(labels.get(key) == _OF_UPSTREAM for key in _UPSTREAM)
    return named and all(each.get("kind") == "ServiceAccount" for each in binding.get("subjects") or ())


def is_local(binding: Object | None, role: str, uid: str = "") -> bool:
    """Whether a RoleBinding is that of a role for the service accounts of some Paas, or of the one with this uid.

    Called ``paas-sa-x`` is also what rbac-aggregation makes for a ClusterRole ``sa-x``: ours has our label, or leads to the role.
    """
    if binding is None or binding["metadata"]["name"] != local_name(role) or not uid_of(binding):
        return False
    return (not uid or uid_of(binding) == uid) and (PERMISSIONS_LABEL in labels_of(binding) or leads_to(binding, role))


def leads_to(binding: Object, role: str) -> bool:
    """Whether a binding gives this ClusterRole."""
    return (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (CLUSTER_ROLE.kind, role)


def local_name(role: str) -> str:
    """The RoleBinding of a ClusterRole in the namespace of a capability."""
    return f"{ACCOUNT_BINDING_PREFIX}{role}"


def role_named(kind: str, name: str) -> str:
    """The ClusterRole of a binding by its name; empty where no binding of ours is called so."""
    prefix = BINDING_PREFIX if kind == CLUSTER_ROLE_BINDING.kind else ACCOUNT_BINDING_PREFIX
    return name.removeprefix(prefix) if name.startswith(prefix) else ""


def shared_binding(role: str, subjects: Collection[Subject]) -> Object:
    """The ClusterRoleBinding of a role: all fields of ours."""
    metadata = {
        "name": binding_name(role),
        "labels": {PERMISSIONS_LABEL: _label(CLUSTER_ROLE_BINDING.kind)},
        "annotations": {SHARED: PERMISSIONS},
    }
    return binding_of(CLUSTER_ROLE_BINDING, metadata, (CLUSTER_ROLE, role), _listed(subjects))


def local_binding(role: str, namespace: str, subjects: Collection[Subject], paas: Paas, config: PaasConfig) -> Object:
    """The RoleBinding of a role in the namespace of a capability: all fields of ours."""
    labels, annotations = marked(paas.name, paas.uid)
    templated = {key: rendered(text, paas) for key, text in config.binding_labels.items() if is_label_key(key)}
    labels = {
        **{key: value for key, value in templated.items() if value is not None and is_label_value(value)},
        **labels,
        PERMISSIONS_LABEL: _label(ROLE_BINDING.kind),
    }
    metadata = {"name": local_name(role), "namespace": namespace, "labels": labels, "annotations": annotations}
    return binding_of(ROLE_BINDING, metadata, (CLUSTER_ROLE, role), _listed(subjects))


def _label(kind: str) -> Literal["cluster", "namespace"]:
    return "cluster" if kind == CLUSTER_ROLE_BINDING.kind else "namespace"


def _listed(subjects: Collection[Subject]) -> Iterator[Object]:
    return (account_subject(*each) for each in sorted(subjects))


# -- finalizers --------------------------------------------------------------------------------------------


def is_prepared(paas: Paas, namespace: Object | None) -> bool:
    """Whether the finalizers are there that a new subject in the namespace needs before it is written (2.7, 3.2)."""
    return ACCOUNTS_FINALIZER in finalizers_of(paas.live) and SUBJECTS_FINALIZER in finalizers_of(namespace)
