"""What an audit finds, from lists (2.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.audit import audited
from tenantry.model.flux.audit.deliveries import default_accounts
from tenantry.model.flux.audit.seen import (
    AuditedConsumer,
    AuditFinding,
    AuditSeen,
    kept_arguments,
    kept_consumer_fields,
    kept_namespace_marks,
)
from tenantry.model.flux.consumers import CONSUMERS
from tenantry.model.flux.names import ACCESS_DENIED, CHART_OWNER_NAME, CHART_OWNER_NAMESPACE, PRUNE
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import Object

ROWS = {each.resource: each for each in CONSUMERS}
TEAM1, TEAM2, FLUX = "dev-team1", "dev-team2", "flux-system"
APP1 = "GitRepository/dev-team1/app1"
OWN_ID = "_dev-team2__Namespace"


def consumer(kind: str, namespace: str, name: str, status: Object | None = None, **spec: Any) -> AuditedConsumer:
    """An object as it is kept when it was read; with an account unless told otherwise."""
    row = ROWS[f"{kind.lower()}s"]
    spec = {"serviceAccountName": "flux", **spec}
    live = {"apiVersion": f"{row.group}/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}
    return AuditedConsumer(row, kept_consumer_fields({**live, "status": status or {}}, row))


def kustomization(namespace: str, name: str = "k", source: str = "GitRepository//app1", **spec: Any) -> AuditedConsumer:
    return consumer("Kustomization", namespace, name, sourceRef=named(source), **spec)


def release(namespace: str, name: str, source: str = "HelmRepository//charts") -> AuditedConsumer:
    return consumer("HelmRelease", namespace, name, chart={"spec": {"chart": "c", "sourceRef": named(source)}})


def named(key: str) -> dict[str, str]:
    kind, namespace, name = key.split("/")
    return {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}


def namespace_named(name: str, annotations: dict[str, str] | None = None, /, **labels: str) -> Object:
    metadata = {"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}, "annotations": annotations or {}}
    return kept_namespace_marks({"kind": "Namespace", "metadata": metadata})


def deployment(name: str, *arguments: str, command: list[str] | None = None) -> Object:
    container: Object = {"args": list(arguments), "command": command}
    metadata = {"name": name, "namespace": FLUX}
    return kept_arguments(
        {"kind": "Deployment", "metadata": metadata, "spec": {"template": {"spec": {"containers": [container]}}}}
    )


def chart(namespace: str, owner: str) -> Object:
    owner_namespace, _, name = owner.partition("/")
    labels = {CHART_OWNER_NAMESPACE: owner_namespace, CHART_OWNER_NAME: name}
    return {
        "kind": "HelmChart",
        "metadata": {"name": owner.replace("/", "-"), "namespace": namespace, "labels": labels},
    }


NAMESPACES = {
    each["metadata"]["name"]: each
    for each in (namespace_named(TEAM1, team="one"), namespace_named(TEAM2, team="two"), namespace_named(FLUX))
}


def cluster(
    *consumers: AuditedConsumer,
    read: Mapping[str, str] | None = None,
    write: Mapping[str, str] | None = None,
    complete: bool = True,
    label_keys: tuple[str, ...] = (),
    tenant_keys: tuple[str, ...] = (),
    profile: Mapping[str, Any] | None = None,
    **parts: Any,
) -> AuditSeen:
    entries = AccessEntries(read or {}, write or {}, {}, label_keys, complete, tenant_keys)
    found = Profile.of({"spec": {"profile": "multi-tenant", **(profile or {})}})
    parts.setdefault("namespaces", NAMESPACES)
    return AuditSeen(found, entries, consumers=consumers, **parts)


def found(seen: AuditSeen) -> list[tuple[str, str]]:
    return [(each.reason, each.about) for each in audited(seen)]


def only(seen: AuditSeen) -> AuditFinding:
    (finding,) = audited(seen)
    return finding


def test_a_denied_reference_is_told_with_the_grant_that_allows_it() -> None:
    """The manifest opens the source for one namespace, and judged with it nothing is found."""
    body = kustomization(TEAM2, source=APP1)
    finding = only(cluster(body))
    assert (finding.reason, finding.about) == (ACCESS_DENIED, "Kustomization dev-team2/k")
    assert finding.text == f"spec.sourceRef: {APP1} is not shared with namespace dev-team2"
    assert "SourceGrant in namespace dev-team1 for GitRepository app1" in finding.fix
    assert finding.grant == {
        "apiVersion": "tenantry.dev/v1alpha1",
        "kind": "SourceGrant",
        "metadata": {"name": "gitrepository-app1-read-dev-team2", "namespace": "dev-team1"},
        "spec": {
            "sourceRef": {"kind": "GitRepository", "name": "app1"},
            "access": ["Read"],
            "accessFrom": {"namespaceSelectors": [{"matchLabels": {"kubernetes.io/metadata.name": "dev-team2"}}]},
        },
    }
    assert "grant" in finding.shown()
    assert found(cluster(body, read={APP1: "kubernetes.io/metadata.name=dev-team2"})) == []
    assert found(cluster(kustomization(FLUX, source=APP1))) == []
    assert found(cluster(body, profile={"enforceSourceACL": False})) == []


def test_each_class_has_a_grant_of_its_own() -> None:
    """Writing, images by their field, long names; what is local has none."""
    pushes = consumer("ImageUpdateAutomation", TEAM2, "u", sourceRef={"name": "app1", "namespace": TEAM1})
    grant = only(cluster(pushes, read={APP1: "*"})).grant
    assert grant is not None
    assert (grant["spec"]["access"], grant["metadata"]["name"]) == (["Write"], "gitrepository-app1-write-dev-team2")

    policy = AuditedConsumer(
        ROWS["imagepolicies"],
        {
            "apiVersion": "image.toolkit.fluxcd.io/v1",
            "kind": "ImagePolicy",
            "metadata": {"name": "p", "namespace": TEAM2},
            "spec": {"imageRepositoryRef": {"name": "img", "namespace": TEAM1}},
        },
    )
    finding = only(cluster(policy))
    assert finding.grant is not None
    assert (finding.grant["kind"], "accessFrom" in finding.grant["spec"]) == ("ImageRepository", True)
    assert "spec.accessFrom of ImageRepository/dev-team1/img" in finding.fix

    long = only(cluster(kustomization(TEAM2, source=f"GitRepository/dev-team1/{'x' * 250}"))).grant
    assert long is not None
    assert len(long["metadata"]["name"]) < 64

    alert = consumer("Alert", TEAM2, "a", eventSources=[{"kind": "Bucket", "name": "*", "namespace": TEAM1}])
    assert (only(cluster(alert)).grant, "name what is in namespace dev-team2" in only(cluster(alert)).fix) == (None, True)
    depends = kustomization(TEAM2, dependsOn=[{"name": "b", "namespace": TEAM1}])
    assert "checkDependsOn" in only(cluster(depends)).fix
    assert found(cluster(depends, profile={"checkDependsOn": False})) == []
    for name in ("A b", "x\ny"):
        impossible = only(cluster(kustomization(TEAM2, source=f"GitRepository/dev-team1/{name}")))
        assert (impossible.grant, "nothing can be called so" in impossible.fix) == (None, True)
    foreign = kustomization(TEAM2, source="Thing/dev-team1/t")
    assert (only(cluster(foreign)).grant, "one of GitRepository" in only(cluster(foreign)).fix) == (None, True)


def test_an_index_that_is_not_whole_is_told_where_it_matters() -> None:
    """Before the first denied reference that a grant would open; not without one."""
    assert found(cluster(kustomization(TEAM2, source=APP1), complete=False)) == [
        ("AccessIndexIncomplete", "AccessIndex default"),
        (ACCESS_DENIED, "Kustomization dev-team2/k"),
    ]
    assert found(cluster(kustomization(TEAM2), complete=False)) == []


def test_objects_without_account_need_their_default() -> None:
    """Outside of exempt namespaces that of policies, within that of the controllers' flag; not with a kubeconfig."""
    empty = [
        kustomization(TEAM1, "one", serviceAccountName=""),
        kustomization(TEAM2, "two", serviceAccountName=""),
        consumer("ResourceSet", TEAM1, "set", serviceAccountName=""),
        kustomization(FLUX, "infra", serviceAccountName=""),
        consumer("ResourceSet", FLUX, "set", serviceAccountName=""),
        kustomization(TEAM1, "remote", serviceAccountName="", kubeConfig={"secretRef": {"name": "k"}}),
    ]
    assert default_accounts(cluster(*empty)) == {(TEAM1, "flux"), (TEAM2, "flux"), (FLUX, "flux")}
    there = cluster(*empty, accounts=frozenset({(TEAM1, "flux")}))
    assert found(there) == [
        ("AccountMissing", "Kustomization dev-team2/two"),
        ("AccountMissing", "Kustomization flux-system/infra"),
    ]
    assert "system:serviceaccount:dev-team2:flux, which does not exist" in next(audited(there)).text
    assert found(cluster(*empty, profile={"serviceAccountMode": "Off"})) == []
    pinned = {TEAM1: namespace_named(TEAM1, None, **{"tenantry.dev/service-account": "own"})}
    assert default_accounts(cluster(empty[0], namespaces=pinned, profile={"pinToTenant": True})) == {(TEAM1, "own")}
    assert default_accounts(cluster(empty[0], namespaces=pinned)) == {(TEAM1, "flux")}


def test_flux_own_kustomization_needs_an_account() -> None:
    """Even where its default exists: it is not that of the platform."""
    own = kustomization(FLUX, FLUX, "GitRepository//flux-system", serviceAccountName="")
    finding = only(cluster(own, accounts=frozenset({(FLUX, "flux")})))
    assert (finding.reason, "kustomize-controller" in finding.fix) == ("PlatformAccountMissing", True)
    assert found(cluster(kustomization(FLUX, FLUX, serviceAccountName="kustomize-controller"))) == []


def test_an_own_namespace_in_the_inventory_holds_a_deletion_up() -> None:
    """Unless it is not pruned, or is exempt; and other objects of the inventory do not count."""

    def with_inventory(namespace: str, entry: str) -> AuditedConsumer:
        status = {"inventory": {"entries": [{"id": entry, "v": "v1"}, {"id": f"{namespace}_c__ConfigMap", "v": "v1"}]}}
        return consumer("Kustomization", namespace, "k", status, sourceRef=named("GitRepository//app1"))

    own = with_inventory(TEAM2, OWN_ID)
    finding = only(cluster(own))
    assert (finding.reason, PRUNE in finding.fix) == ("OwnNamespaceInInventory", True)
    kept = {TEAM2: namespace_named(TEAM2, {PRUNE: "disabled"})}
    assert found(cluster(own, namespaces=kept)) == []
    assert found(cluster(with_inventory(TEAM2, "_dev-team1__Namespace"))) == []
    assert found(cluster(with_inventory(FLUX, "_flux-system__Namespace"))) == []


def test_charts_in_foreign_namespaces() -> None:
    """Left behind, not wanted any more, or of a reference that is denied; one that is granted is where Flux makes it."""
    bitnami = "HelmRepository/flux-system/bitnami"
    theirs = (chart(FLUX, "dev-team2/redis"),)
    assert "which is not there" in only(cluster(charts=theirs)).text
    moved = only(cluster(release(TEAM2, "redis"), charts=theirs))
    assert ("has its chart elsewhere" in moved.text, moved.about) == (True, "HelmChart flux-system/dev-team2-redis")
    wanted = release(TEAM2, "redis", bitnami)
    assert found(cluster(wanted, charts=theirs)) == [
        (ACCESS_DENIED, "HelmRelease dev-team2/redis"),
        ("ForeignHelmChart", "HelmChart flux-system/dev-team2-redis"),
    ]
    assert found(cluster(wanted, charts=theirs, read={bitnami: "*"})) == []


def test_pairs_of_releases_that_want_one_chart() -> None:
    """a/b-c and a-b/c, beside one source; not beside two, and not of a chartRef."""
    namespaces = {name: namespace_named(name) for name in ("a", "a-b")}
    source = "HelmRepository/flux-system/bitnami"
    pair = (release("a", "b-c", source), release("a-b", "c", source))
    finding = only(cluster(*pair, read={source: "*"}, namespaces=namespaces))
    assert (finding.reason, finding.about) == ("HelmChartConflict", "HelmRelease a-b/c")
    assert "HelmChart flux-system/a-b-c, as HelmRelease a/b-c does" in finding.text
    assert found(cluster(release("a", "b-c"), release("a-b", "c"), namespaces=namespaces)) == []
    refs = [consumer("HelmRelease", "a", "b-c", chartRef=named("OCIRepository//x"))]
    assert found(cluster(*refs, release("a-b", "c", source), read={source: "*"}, namespaces=namespaces)) == []


@pytest.mark.parametrize(
    ("arguments", "void"),
    [
        (["--no-cross-namespace-refs=true"], True),
        (["--no-cross-namespace-refs"], True),
        (["--no-cross-namespace-refs=1", "--log-level=info"], True),
        (["--no-cross-namespace-refs=true", "--no-cross-namespace-refs=false"], False),
        (["--no-cross-namespace-refs=false"], False),
        (["--no-cross-namespace-refs-x=true"], False),
        ([], False),
    ],
)
def test_a_flag_that_makes_a_grant_void(arguments: list[str], void: bool) -> None:
    """As the controller reads it: bare, with a value, the last one."""
    seen = cluster(read={APP1: "*"}, deployments=(deployment("kustomize-controller", *arguments),))
    assert found(seen) == ([("FlagMakesGrantVoid", "Deployment flux-system/kustomize-controller")] if void else [])


def test_a_flag_is_told_where_there_is_a_grant_for_its_controller() -> None:
    """By kinds and classes of what the controller asks for; with its name, the Deployment's and that of the grant."""
    flag = "--no-cross-namespace-refs=true"
    controllers = ("kustomize-controller", "helm-controller", "image-reflector-controller", "image-automation-controller")
    several = tuple(deployment(each, flag) for each in (*controllers, "source-watcher", "notification-controller", "other"))

    def told(read: Mapping[str, str] | None = None, write: Mapping[str, str] | None = None) -> list[str]:
        return [each.name for each in audited(cluster(deployments=several, read=read, write=write))]

    assert told() == []
    assert told(read={APP1: "*"}) == ["kustomize-controller", "helm-controller", "source-watcher"]
    assert told(write={APP1: "*"}) == ["image-automation-controller"]
    assert told(read={"ImageRepository/a/b": "*"}) == ["image-reflector-controller"]
    assert told(read={"HelmRepository/a/b": "*"}) == ["helm-controller"]
    many = {f"GitRepository/a/{each}": "*" for each in "bcdef"}
    text = only(cluster(deployments=several[:1], read=many)).text
    assert "--no-cross-namespace-refs=true" in text
    assert text.endswith("GitRepository/a/b, GitRepository/a/c, GitRepository/a/d and 2 more")
    intra = cluster(deployments=several[:1], profile={"allowIntraTenant": True})
    assert "allowIntraTenant" in only(intra).text


def test_a_default_that_a_controller_does_not_know() -> None:
    """Told where there is an object without account that the controller would apply by its own rights."""
    empty = kustomization(TEAM1, serviceAccountName="")
    accounts = frozenset({(TEAM1, "flux")})

    def told(*arguments: str, command: list[str] | None = None) -> list[str]:
        several = (deployment("kustomize-controller", *arguments, command=command), deployment("helm-controller"))
        return [each.about for each in audited(cluster(empty, accounts=accounts, deployments=several))]

    assert told() == ["Deployment flux-system/kustomize-controller"]
    assert told("--default-service-account=other") == ["Deployment flux-system/kustomize-controller"]
    assert told("--default-service-account=flux") == []
    assert told("--default-service-account", "flux") == []
    assert told(command=["/manager", "--default-service-account=flux"]) == []
    assert found(cluster(kustomization(TEAM1), deployments=(deployment("kustomize-controller"),))) == []


def test_labels_that_tenants_could_set_before_they_counted() -> None:
    """Of keys that selectors name and that are not listed any more, also by a prefix; not in exempt namespaces."""
    labelled = {
        name: namespace_named(name, None, **labels)
        for name, labels in {
            TEAM1: {"env": "prod", "team": "one"},
            TEAM2: {"example.com/color": "red", "other": "x"},
            FLUX: {"env": "prod"},
        }.items()
    }

    def told(*listed: str, label_keys: tuple[str, ...] = ("env", "example.com/color", "team")) -> list[str]:
        seen = cluster(
            namespaces=labelled,
            label_keys=label_keys,
            tenant_keys=("env", "example.com/*", "other"),
            profile={"tenantLabelKeys": list(listed)},
        )
        found = list(audited(seen))
        assert {each.reason for each in found} <= {"FormerTenantLabel"}
        return [f"{each.about}: {each.text.split(',')[0]}" for each in found]

    env = "Namespace dev-team1: has the label env=prod"
    color = "Namespace dev-team2: has the label example.com/color=red"
    assert told() == [env, color]
    assert told("env") == [color]
    assert told("example.com/color") == [env]
    assert told(label_keys=("team",)) == []


def test_nothing_is_found_in_a_clean_cluster() -> None:
    """Local references, granted ones, and accounts that are there."""
    clean = cluster(
        kustomization(TEAM1),
        kustomization(TEAM2, source=APP1),
        release(TEAM1, "redis"),
        read={APP1: "team=two"},
        deployments=(deployment("kustomize-controller", "--default-service-account=flux"),),
    )
    assert found(clean) == []
