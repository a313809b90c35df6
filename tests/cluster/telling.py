"""What goes wrong with Paas: each reason with a cause, a block in which the problem is there and which ends with its mending."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

from handing_over import PLACE, SET, HandingOver, handing_over
from paasing import CONFIG_NAME, make_roles
from people import swept
from refusing import lacking, refusing
from righting import binding
from times import POLICY_S

from tenantry.local.knative import Knative
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, NAMESPACE, RESOURCE_QUOTA, ROLE_BINDING, Kind, Object
from tenantry.model.names import ADOPT
from tenantry.model.paas.names import (
    ARGO_CD,
    CLUSTER_RESOURCE_QUOTA,
    GROUP,
    GROUP_OF_KINDS,
    MANAGED_BY_PAAS,
    PAAS,
    PAAS_CONFIG,
    PAAS_NS,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

GOOD: Mapping[str, Any] = {"groups": {"us": {"roles": ["edit"]}}, "namespaces": {"a": {}}, "quota": {"pods": "9"}}
"""A Paas of which nothing is to be told, in every world."""
NS = "x"
"""The PaasNS in its namespace ``a``."""
BINDINGS = "count/rolebindings.rbac.authorization.k8s.io"
QUOTAS = {"quotas": {"defaults": {"pods": "3"}}}
HANDED_OVER = {"capabilities": handing_over(), "clusterwide_argocd_namespace": PLACE}
REQUIRING = {**HANDED_OVER, "capabilities": handing_over(fields={"team": {"required": True}})}
PERMITTING = {"capabilities": {"tools": {**QUOTAS, "default_permissions": {"sa": ["cluster-reader"]}}}}
POLICY = {"resource_name": "argo", "role": "admin", "header": "p, role:none"}


class Telling(NamedTuple):
    """One Paas, who writes it and the configuration, and the functions that look after it."""

    paasing: HandingOver
    system: Knative
    name: str

    async def declare(self, **spec: Any) -> Object:
        """Write the Paas: `GOOD` but for these fields."""
        return await self.paasing.paas(self.name, **{**GOOD, **spec})

    async def configure(self, **changes: Any) -> None:
        """Write the PaasConfig, in which nothing is handed over unless the changes say so."""
        await plainly_configured(self.paasing, **changes)

    async def placed(self, name: str = "a") -> str:
        """Wait for a namespace; returns its name."""
        await self.paasing.until(NAMESPACE, f"{self.name}-{name}", "", lambda _: True)
        return f"{self.name}-{name}"

    async def sweep(self, function: str) -> None:
        """What mends where no event says that something has changed."""
        await eventually(lambda: swept(self.system, function), lambda said: said[0] == 204, within=POLICY_S, what="a sweep")


async def plainly_configured(paasing: HandingOver, **changes: Any) -> None:
    """The PaasConfig of the checks, with other values in some fields."""
    await super(HandingOver, paasing).config(**changes)


Cause = Callable[[Telling], AbstractAsyncContextManager[None]]


class Reason(NamedTuple):
    """A reason: how it comes, and what names object and fix; ``{name}`` is the Paas.  ``on`` is the kind that it is told on."""

    reason: str
    cause: Cause
    words: str
    fix: str
    warns: bool = False
    on: Kind = PAAS

    def __str__(self) -> str:
        return f"{self.on.kind}-{self.reason}{'-warns' if self.warns else ''}"


# -- causes ----------------------------------------------------------------------------------------------------------


def spec(labels: Mapping[str, str] | None = None, config: Mapping[str, Any] | None = None, **bad: Any) -> Cause:
    """Fields or labels of the Paas, under another configuration if one is given; they are corrected."""

    @asynccontextmanager
    async def cause(telling: Telling) -> AsyncIterator[None]:
        if config is not None:
            await telling.configure(**config)
        await telling.paasing.paas(telling.name, labels=labels, **{**GOOD, **bad})
        yield
        await telling.declare()

    return cause


def config(**bad: Any) -> Cause:
    """Fields of the PaasConfig, which are corrected."""

    @asynccontextmanager
    async def cause(telling: Telling) -> AsyncIterator[None]:
        await telling.configure(**bad)
        yield
        await telling.configure()

    return cause


@asynccontextmanager
async def no_config(telling: Telling) -> AsyncIterator[None]:
    """The PaasConfig is away."""
    await telling.paasing.admin.delete(PAAS_CONFIG, CONFIG_NAME)
    await telling.declare()
    yield
    await telling.configure()


def capable(name: str, config: Mapping[str, Any] | None = None, **fields: Any) -> Cause:
    """A capability of the Paas, which it then has no more."""
    return spec(config=config, capabilities={name: {"enabled": True, **fields}})


def there_before(kind: Kind, **fields: Any) -> Cause:
    """Somebody's object with the name of the Paas, or of its group; it is deleted."""

    @asynccontextmanager
    async def cause(telling: Telling) -> AsyncIterator[None]:
        name = f"{telling.name}-us" if kind == GROUP else telling.name
        await telling.paasing.admin.create(kind, obj(kind, name, **fields))
        await telling.declare()
        yield
        await telling.paasing.admin.delete(kind, name)

    return cause


def foreign_namespace(suffix: str, *, asked: bool = False) -> Cause:
    """Somebody's namespace with a name that the Paas or a PaasNS asks for; it is handed over."""

    @asynccontextmanager
    async def cause(telling: Telling) -> AsyncIterator[None]:
        name = f"{telling.name}-{suffix}"
        await telling.paasing.admin.create(NAMESPACE, obj(NAMESPACE, name))
        await telling.declare()
        if asked:
            await telling.paasing.paas_ns(await telling.placed(), suffix)
        yield
        await telling.paasing.label(name, {ADOPT: telling.name}, "annotations")

    return cause


@asynccontextmanager
async def leftover(telling: Telling) -> AsyncIterator[None]:
    """A namespace that upstream made for the Paas, which does not ask for it; it is deleted."""
    paas = await telling.declare()
    body = obj(NAMESPACE, f"{telling.name}-old", labels={MANAGED_BY_PAAS: telling.name})
    reference = {"apiVersion": f"{GROUP_OF_KINDS}/v1alpha2", "kind": "Paas", "name": telling.name, "uid": paas["metadata"]["uid"]}
    await telling.paasing.admin.create(NAMESPACE, {**body, "metadata": {**body["metadata"], "ownerReferences": [reference]}})
    yield
    await telling.paasing.admin.delete(NAMESPACE, f"{telling.name}-old")


@asynccontextmanager
async def foreign_binding(telling: Telling) -> AsyncIterator[None]:
    """Somebody's RoleBinding with a name of ours; it is deleted."""
    await telling.declare(groups={})
    place = await telling.placed()
    await telling.paasing.admin.create(ROLE_BINDING, binding("paas-edit", place, "edit", "root"))
    await telling.declare()
    yield
    await telling.paasing.admin.delete(ROLE_BINDING, "paas-edit", place)


@asynccontextmanager
async def foreign_cluster_binding(telling: Telling) -> AsyncIterator[None]:
    """Somebody's ClusterRoleBinding with a name of ours; it is deleted."""
    reference = {"apiGroup": CLUSTER_ROLE_BINDING.group, "kind": "ClusterRole", "name": "cluster-reader"}
    name = "paas-cluster-reader"
    await telling.paasing.admin.create(CLUSTER_ROLE_BINDING, obj(CLUSTER_ROLE_BINDING, name, roleRef=reference, subjects=[]))
    await telling.configure(**PERMITTING)
    await telling.declare(capabilities={"tools": {"enabled": True}})
    yield
    await telling.paasing.admin.delete(CLUSTER_ROLE_BINDING, name)


@asynccontextmanager
async def foreign_policy(telling: Telling) -> AsyncIterator[None]:
    """A policy of Argo CD that somebody else has written; it is deleted."""
    await telling.declare(capabilities={"argocd": {"enabled": True}})
    place = await telling.placed("argocd")
    theirs = obj(ARGO_CD, POLICY["resource_name"], place, spec={"rbac": {"policy": "g, root, role:admin"}})
    await telling.paasing.admin.create(ARGO_CD, theirs)
    await telling.configure(argopermissions=POLICY)
    yield
    await telling.paasing.admin.delete(ARGO_CD, POLICY["resource_name"], place)


@asynccontextmanager
async def no_application_set(telling: Telling) -> AsyncIterator[None]:
    """The ApplicationSet of a capability is missing; it is made."""
    await telling.configure(**HANDED_OVER)
    await telling.declare(capabilities={"argocd": {"enabled": True}})
    yield
    await telling.paasing.application_set()


@asynccontextmanager
async def nobodys_element(telling: Telling) -> AsyncIterator[None]:
    """An ApplicationSet has an element with the name of no Paas; it is made anew without."""
    await telling.configure(**HANDED_OVER)
    await telling.paasing.application_set(SET, {"list": {"elements": [{"paas": telling.name}]}})
    yield
    await telling.paasing.application_set()


@asynccontextmanager
async def full(telling: Telling) -> AsyncIterator[None]:
    """A ResourceQuota leaves no room for RoleBindings; it is deleted."""
    await telling.declare(groups={})
    place = await telling.placed()
    await telling.paasing.admin.create(RESOURCE_QUOTA, obj(RESOURCE_QUOTA, "full", place, spec={"hard": {BINDINGS: "0"}}))
    await telling.paasing.until(
        RESOURCE_QUOTA, "full", place, lambda found: BINDINGS in ((found.get("status") or {}).get("used") or ())
    )
    await telling.declare()
    yield
    await telling.paasing.admin.delete(RESOURCE_QUOTA, "full", place)
    await telling.sweep("rbac-aggregation")


@asynccontextmanager
async def refused(telling: Telling) -> AsyncIterator[None]:
    """An admission policy refuses a namespace; it is taken away."""
    async with refusing(telling.paasing.admin, NAMESPACE, f"{telling.name}-a"):
        await telling.declare()
        yield
    await telling.sweep("namespace-registration")


@asynccontextmanager
async def without_right(telling: Telling) -> AsyncIterator[None]:
    """A function lacks the right to make quotas; it is given back."""
    role = "tenantry-namespace-registration"
    async with lacking(telling.paasing.admin, role, CLUSTER_RESOURCE_QUOTA.plural, {"create", "patch"}):
        await telling.declare()
        yield
    await telling.sweep("namespace-registration")


@asynccontextmanager
async def missing_role(telling: Telling) -> AsyncIterator[None]:
    """A mapped ClusterRole does not exist; it is made."""
    role = f"missing-{telling.name}"
    await telling.configure(rolemappings={"default": ["view"], "edit": ["edit", role]})
    await telling.declare()
    yield
    await make_roles(telling.paasing.admin, [role])
    await telling.sweep("rbac-aggregation")
    await telling.sweep("namespace-registration")


def paas_ns(quota: str = "9", **asked: Any) -> Cause:
    """A PaasNS with these fields, which it then has no more; ``quota`` are the pods of the Paas."""

    @asynccontextmanager
    async def cause(telling: Telling) -> AsyncIterator[None]:
        await telling.declare(quota={"pods": quota})
        home = await telling.placed()
        await telling.paasing.paas_ns(home, NS, paas=telling.name, **asked)
        yield
        await telling.declare()
        await telling.paasing.paas_ns(home, NS, paas=telling.name)

    return cause


# -- reasons ---------------------------------------------------------------------------------------------------------

PLAIN: tuple[Reason, ...] = (
    Reason("InvalidConfiguration", spec(quota={"nonsense": "1"}), "paas-quota", "correct what the Paas says"),
    Reason("GroupAPIMissing", spec(groups={"us": {"users": ["me"]}}), "groups with users: us", "identity provider", warns=True),
    Reason(
        "QuotaShareZero", spec(namespaces={"a": {}, "b": {}}, quota={"pods": "1"}), "{name}-b", "raise spec.quota", warns=True
    ),
    Reason("QuotaShareZero", paas_ns(quota="1"), "{name}-x", "raise the quota of Paas {name}", warns=True, on=PAAS_NS),
    Reason("HandOverUnavailable", capable("argocd", HANDED_OVER), "capability argocd", "install Argo CD", warns=True),
    Reason(
        "ClusterwideQuotaPerNamespace",
        config(capabilities={"wide": {"quotas": {"clusterwide": True, "ratio": 0.1, "defaults": {"pods": "1"}}}}),
        "spec.capabilities[wide]",
        "not above max",
        warns=True,
        on=PAAS_CONFIG,
    ),
)
"""On plain Kubernetes."""

SERVED: tuple[Reason, ...] = (
    Reason("NoPaasConfig", no_config, "there is no PaasConfig", "has to make one"),
    Reason("InvalidName", spec(namespaces={"a": {}, "A_b": {}}), "namespace {name}-A_b", "use lower-case letters"),
    Reason("InvalidLabelValue", spec(requestor="a b"), "label requestor cannot be 'a b'", "change spec.requestor"),
    Reason("InvalidGroup", spec(groups={"bad": {"query": "CN="}}), "group 'bad'", "query"),
    Reason("NamespaceConflict", foreign_namespace("a"), "namespace {name}-a", f"{ADOPT}={{name}}"),
    Reason("NamespaceConflict", foreign_namespace(NS, asked=True), "namespace {name}-x", f"{ADOPT}={{name}}", on=PAAS_NS),
    Reason("QuotaConflict", there_before(CLUSTER_RESOURCE_QUOTA), "ClusterResourceQuota {name}", "choose another name"),
    Reason("GroupConflict", there_before(GROUP, users=[]), "group 'us': the Group {name}-us", "rename the key"),
    Reason("GroupRefused", spec(groups={"my_group": {}}), "group 'my_group'", "rename the group"),
    Reason(
        "GroupUsersBlocked",
        spec(config={"feature_flags": {"group_user_management": "block"}}, groups={"us": {"users": ["me"]}}),
        "group 'us'",
        "use a query",
    ),
    Reason("BindingConflict", foreign_binding, "{name}-a/paas-edit", "delete it"),
    Reason("ClusterRoleBindingConflict", foreign_cluster_binding, "ClusterRoleBinding paas-cluster-reader", "annotate it"),
    Reason("ArgoPolicyConflict", foreign_policy, "ArgoCD {name}-argocd/argo", "remove it there"),
    Reason(
        "UnknownRole",
        spec(config={"unknownRolePolicy": "Ignore"}, groups={"us": {"roles": ["viewer"]}}),
        "role 'viewer'",
        "use a role that administrators have mapped",
    ),
    Reason("UnknownRole", spec(groups={"us": {"roles": ["viewer"]}}), "role 'viewer'", "use a role", warns=True),
    Reason("UnknownCapability", capable("nope", {"unknownCapabilityPolicy": "Reject"}), "capability nope", "correct its name"),
    Reason("UnknownCapability", capable("nope"), "capability nope", "correct its name", warns=True),
    Reason("UnknownGroup", spec(namespaces={"a": {"groups": ["nobody"]}}), "no group 'nobody'", "add it there"),
    Reason("UnknownGroup", paas_ns(groups=["nobody"]), "no group 'nobody'", "add it there", on=PAAS_NS),
    Reason(
        "UnknownCustomField",
        capable("argocd", HANDED_OVER, custom_fields={"stray": "x"}),
        "spec.capabilities[argocd].custom_fields[stray]",
        "remove it",
    ),
    Reason("RequiredField", capable("argocd", REQUIRING), "spec.capabilities[argocd].custom_fields[team]", "set it"),
    Reason("ApplicationSetMissing", no_application_set, f"ApplicationSet {PLACE}/{SET}", "make it"),
    Reason("QuotaExceeded", full, "{name}-a/paas-edit", "raise the ResourceQuota"),
    Reason("AdmissionDenied", refused, "Namespace {name}-a", "change the admission policy"),
    Reason("RightMissing", without_right, "ClusterResourceQuota {name}", "rights.yaml again"),
    Reason("QueryAndUsers", spec(groups={"us": {"query": "CN=q", "users": ["me"]}}), "group 'us'", "remove one", warns=True),
    Reason(
        "GroupUsersDiscouraged",
        spec(config={"feature_flags": {"group_user_management": "warn"}}, groups={"us": {"users": ["me"]}}),
        "group 'us'",
        "ask for a query instead",
        warns=True,
    ),
    Reason("SecretsIgnored", spec(secrets={"ssh://x": "y"}), "spec.secrets", "remove them", warns=True),
    Reason("SecretsIgnored", paas_ns(secrets={"ssh://x": "y"}), "spec.secrets", "remove them", warns=True, on=PAAS_NS),
    Reason("ProtectedLabel", spec(labels={"istio.io/rev": "x"}), "label istio.io/rev", "remove it", warns=True),
    Reason(
        "ExtraPermissionsNotConfigured",
        capable("tools", {"capabilities": {"tools": QUOTAS}}, extra_permissions=True),
        "capability tools",
        "set extra_permissions to false",
        warns=True,
    ),
    Reason("ClusterRoleMissing", missing_role, "ClusterRole missing-{name}", "ask an administrator", warns=True),
    Reason("ClusterRoleMissing", missing_role, "missing-{name}", "make it", warns=True, on=PAAS_CONFIG),
    Reason("NoQuota", spec(quota={}), "namespaces {name}-a", "write spec.quota", warns=True),
    Reason(
        "RequestsAboveLimits",
        spec(quota={"requests.cpu": "2", "limits.cpu": "1"}),
        "spec.quota: requests.cpu",
        "raise the limit",
        warns=True,
    ),
    Reason("Leftover", leftover, "namespace {name}-old", "delete it", warns=True),
    Reason("IgnoredField", config(debug=True), "spec.debug", "may be removed", warns=True, on=PAAS_CONFIG),
    Reason("NoQuota", config(capabilities={"bare": {}}), "spec.capabilities[bare].quotas", "without defaults", True, PAAS_CONFIG),
    Reason(
        "UnknownElement", nobodys_element, f"ApplicationSet {PLACE}/{SET} has elements of '{{name}}'", "take", True, PAAS_CONFIG
    ),
    Reason(
        "InvalidConfiguration",
        config(templating={"groupLabels": {"tenantry.dev/x": "1"}}),
        "spec.templating.groupLabels[tenantry.dev/x]",
        "",
        on=PAAS_CONFIG,
    ),
)
"""Where the kinds of OpenShift and Argo CD are."""
