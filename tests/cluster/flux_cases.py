"""For each admission policy of Flux tenancy what it refuses, and what it admits: requests of a tenant in dev-team1.

All are dry runs against objects that `prepare` makes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from admitting import Answer
from flux_policing import FLUX, Policing, flux_object, helm_release, kustomization, reference

from tenantry.model.flux.consumers import CONSUMERS
from tenantry.model.flux.names import (
    ACCESS_DENIED,
    ACCESS_INDEX,
    CHART_OWNER_NAME,
    CHART_OWNER_NAMESPACE,
    DEFAULT,
    LOCK_FINALIZER,
    LOCKED,
    MADE_FOR_TENANT,
    SUSPENDED_BY_LOCK,
)
from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, ROLE_BINDING, SERVICE_ACCOUNT, Object
from tenantry.testing.objects import obj

HOME, OTHER = "dev-team1", "dev-team2"
Ask = Callable[[Policing, str], Awaitable[Answer]]
"""A request as a user."""


class Case(NamedTuple):
    """A policy without the beginning of its name; who is named may do in its place what it refuses, if the platform may."""

    policy: str
    refused: Ask
    admitted: Ask
    platform_may: bool = False


def consumer(kind: str, namespace: str, *, other: str = "", name: str = "") -> Object:
    """A consumer with one reference, to something of its own or of another namespace."""
    named = {"name": "x", **({"namespace": other} if other else {})}
    spec: Object
    match kind:
        case "Kustomization":
            return kustomization(namespace, f"GitRepository/{other}/x", name)
        case "HelmRelease":
            return helm_release(namespace, chart=f"HelmRepository/{other}/x", name=name)
        case "ImageUpdateAutomation":
            spec = {"interval": "1m", "sourceRef": {"kind": "GitRepository", **named}}
        case "ImagePolicy":
            spec = {"imageRepositoryRef": named}
        case "ArtifactGenerator":
            spec = {"sources": [{"alias": "a", "kind": "Bucket", **named}], "artifacts": []}
        case "Alert":
            spec = {"eventSources": [{"kind": "Kustomization", **named}], "providerRef": {"name": "p"}}
        case "Receiver":
            spec = {"type": "generic", "resources": [{"kind": "GitRepository", **named}]}
        case "ResourceSet":
            spec = {"serviceAccountName": "flux", "dependsOn": [{"apiVersion": "v1", "kind": "Secret", **named}]}
        case "ResourceSetInputProvider":
            spec = {"type": "ExternalArtifact", "selectors": [{"namespace": other} if other else {}]}
        case _:
            raise AssertionError(kind)
    return flux_object(kind, namespace, name, spec=spec)


CONSUMER_KINDS = (
    "Kustomization",
    "HelmRelease",
    "ImageUpdateAutomation",
    "ImagePolicy",
    "ArtifactGenerator",
    "Alert",
    "Receiver",
    "ResourceSet",
    "ResourceSetInputProvider",
)
"""In the order of the table."""
STATUS_KINDS = (
    "GitRepository",
    "OCIRepository",
    "Bucket",
    "HelmRepository",
    "HelmChart",
    "ExternalArtifact",
    "ImageRepository",
)
BY_KIND = dict(zip(CONSUMER_KINDS, CONSUMERS, strict=True))
OWNED = {CHART_OWNER_NAME: "b-c", CHART_OWNER_NAMESPACE: "a"}


def locked(kind: str, namespace: str = HOME, name: str = "", *, ours: bool = True) -> Object:
    """A consumer with an access lock; without ``ours`` its user had suspended it before."""
    body = consumer(kind, namespace, name=name or f"locked-{kind.lower()}")
    metadata, stop = body["metadata"], BY_KIND[kind].stop
    metadata["annotations"] = {LOCKED: ACCESS_DENIED, **({SUSPENDED_BY_LOCK: "true"} if ours else {})}
    metadata["finalizers"] = ["finalizers.fluxcd.io", LOCK_FINALIZER]
    if stop.field:
        body["spec"]["suspend"] = True
    else:
        metadata["annotations"][stop.annotation] = stop.value
    return body


def source(kind: str, namespace: str = HOME, name: str = "own") -> Object:
    """A source of the tenant's."""
    return flux_object(kind, namespace, name, spec={})


def chart(namespace: str = HOME, name: str = "a-b-c") -> Object:
    """A HelmChart that was made for a HelmRelease."""
    return flux_object("HelmChart", namespace, name, spec={"chart": "c"}, labels=dict(OWNED))


def managed(kind: str) -> Object:
    """An object that was made for a Tenant."""
    labels, name = {MADE_FOR_TENANT: "t"}, "managed"
    match kind:
        case "ServiceAccount":
            return obj(SERVICE_ACCOUNT, name, HOME, labels=labels)
        case "RoleBinding":
            role = {"apiGroup": ROLE_BINDING.group, "kind": "ClusterRole", "name": "view"}
            return obj(ROLE_BINDING, name, HOME, labels=labels, roleRef=role, subjects=[])
        case "GitRepository":
            return flux_object(kind, HOME, name, spec={"url": "https://x"}, labels=labels)
    return {**kustomization(HOME, name=name), "metadata": {"name": name, "namespace": HOME, "labels": labels}}


MANAGED = ("ServiceAccount", "RoleBinding", "GitRepository", "Kustomization")


async def prepare(policing: Policing) -> None:
    """What the requests change: made by an administrator, who may."""
    await policing.index()
    bodies = [locked(each) for each in CONSUMER_KINDS]
    bodies += [source(each) for each in STATUS_KINDS]
    bodies += [chart(), helm_release(HOME, name="own")]
    bodies += [managed(each) for each in MANAGED]
    for each in bodies:
        await policing.made(each)


def _creates(body: Callable[[], Object]) -> Ask:
    return lambda policing, user: policing.create(body(), user=user)


def _changes(body: Object, change: Object, subresource: str = "") -> Ask:
    return lambda policing, user: policing.merge(body, change, user=user, subresource=subresource)


def _deletes(body: Object) -> Ask:
    return lambda policing, user: policing.delete(body, user=user)


ANNOTATED: Object = {"metadata": {"annotations": {"example.com/note": "x"}}}


def _by_administrator(ask: Ask) -> Ask:
    return lambda policing, user: ask(policing, "")


def _reference(kind: str) -> Case:
    return Case(
        f"references-{BY_KIND[kind].name}",
        _creates(lambda: consumer(kind, HOME, other=OTHER)),
        _creates(lambda: consumer(kind, HOME)),
    )


def _guarded(kind: str) -> Case:
    body = locked(kind)
    unmarked = {"metadata": {"annotations": {LOCKED: None}}}
    return Case(f"lock-guard-{BY_KIND[kind].name}", _changes(body, unmarked), _changes(body, ANNOTATED), platform_may=True)


def _managed(kind: str, plural: str) -> Case:
    body = managed(kind)
    relabelled = {"metadata": {"labels": {"example.com/x": "y"}}}
    return Case(f"managed-objects-{plural}", _changes(body, relabelled), _changes(body, ANNOTATED), platform_may=True)


_TEAM = obj(NAMESPACE, HOME)
_KUBE = {"secretRef": {"name": "k"}}

CASES = (
    *map(_reference, CONSUMER_KINDS),
    *map(_guarded, CONSUMER_KINDS),
    Case(
        "delivery-kustomizations",
        _creates(lambda: kustomization(HOME, serviceAccountName="")),
        _creates(lambda: kustomization(HOME)),
    ),
    Case(
        "delivery-helmreleases",
        _creates(lambda: helm_release(HOME, serviceAccountName=None)),
        _creates(lambda: helm_release(HOME)),
    ),
    Case(
        "delivery-resourcesets",
        _creates(lambda: flux_object("ResourceSet", HOME, spec={})),
        _creates(lambda: flux_object("ResourceSet", HOME, spec={"serviceAccountName": "flux"})),
    ),
    Case(
        "delivery-kustomizations",
        _creates(lambda: kustomization(HOME, targetNamespace="kube-system")),
        _creates(lambda: kustomization(HOME, targetNamespace=HOME)),
    ),
    Case(
        "delivery-helmreleases",
        _creates(lambda: helm_release(HOME, storageNamespace=OTHER)),
        _creates(lambda: helm_release(HOME, storageNamespace=HOME, targetNamespace=HOME)),
    ),
    Case(
        "delivery-helmreleases",
        _creates(lambda: helm_release(HOME, targetNamespace=OTHER)),
        _creates(lambda: helm_release(HOME, targetNamespace=HOME)),
    ),
    Case(
        "delivery-kustomizations",
        _creates(lambda: kustomization(HOME, kubeConfig=_KUBE)),
        _creates(lambda: kustomization(HOME)),
    ),
    Case(
        "delivery-helmreleases",
        _creates(lambda: helm_release(HOME, kubeConfig=_KUBE)),
        _creates(lambda: helm_release(HOME)),
    ),
    Case(
        "helmrelease-chart",
        _creates(lambda: with_chart(metadata={"annotations": {"tenantry.dev/access-from": "{}"}})),
        _creates(lambda: with_chart(metadata={"annotations": {"example.com/note": "x"}})),
    ),
    Case(
        "helmrelease-status",
        _changes(flux_object("HelmRelease", HOME, "own"), {"status": {"helmChart": f"{FLUX}/shared"}}, "status"),
        _by_administrator(_changes(flux_object("HelmRelease", HOME, "own"), {"status": {"helmChart": "x/y"}}, "status")),
        platform_may=True,
    ),
    Case(
        "helmchart-owner",
        _changes(chart(), {"metadata": {"labels": {CHART_OWNER_NAME: None}}}),
        _changes(chart(), {"spec": {"version": "2"}}),
    ),
    Case(
        "source-status",
        _changes(source("GitRepository"), {"status": {"artifact": {"url": "http://x"}}}, "status"),
        _by_administrator(_changes(source("GitRepository"), {"status": {"artifact": {"url": "http://x"}}}, "status")),
        platform_may=True,
    ),
    Case(
        "external-artifact",
        _creates(lambda: source("ExternalArtifact", name="new")),
        _by_administrator(_creates(lambda: source("ExternalArtifact", name="new"))),
        platform_may=True,
    ),
    Case(
        "protected-labels",
        _changes(_TEAM, {"metadata": {"labels": {"team": "two"}}}),
        _changes(_TEAM, ANNOTATED),
        platform_may=True,
    ),
    Case("namespace-delete", _deletes(_TEAM), _by_administrator(_deletes(_TEAM)), platform_may=True),
    _managed("ServiceAccount", "serviceaccounts"),
    _managed("RoleBinding", "rolebindings"),
    _managed("GitRepository", "gitrepositories"),
    _managed("Kustomization", "kustomizations"),
    Case(
        "index-undeletable",
        _by_administrator(_deletes(obj(ACCESS_INDEX, DEFAULT))),
        _by_administrator(_deletes(obj(CUSTOM_RESOURCE_DEFINITION, "alerts.notification.toolkit.fluxcd.io"))),
    ),
)
EVERYTHING: Object = {"serviceAccountMode": "Require", "kubeConfig": "Deny"}
"""The profile under which all of these policies are there."""


def with_chart(namespace: str = HOME, *, source_of: str = "HelmRepository//charts", **parts: Object) -> Object:
    """A HelmRelease whose chart says more; ``verify`` is of its spec."""
    verify = {"verify": parts.pop("verify")} if "verify" in parts else {}
    return helm_release(namespace, chart_spec={"spec": {"chart": "redis", "sourceRef": reference(source_of), **verify}, **parts})
