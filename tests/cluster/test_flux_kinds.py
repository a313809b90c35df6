"""SourceGrant, TenancyProfile, AccessIndex and Tenant: what the API server stores, fills in and refuses (1.5)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from people import may, token
from rights import cluster_role, user
from times import CONTROLLER_S, LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.api.errors import Invalid
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, SOURCE_GRANT, SOURCES, TENANCY_PROFILE, TENANT
from tenantry.model.kinds import NAMESPACE, ROLE_BINDING, Kind, Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

HOME = "default"
TERRAFORM: Object = {
    "group": "infra.contrib.fluxcd.io",
    "resource": "terraforms",
    "references": [
        {"path": "spec.sourceRef", "class": "read"},
        {"path": "spec.dependsOn[]", "class": "local", "kind": "Terraform"},
    ],
    "stop": {"field": "spec.suspend"},
}
TWO = {"namespaceSelectors": [{"matchLabels": {"team": "two"}}]}


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def installed(identity: Callable[..., Awaitable[Path]]) -> None:
    """Our CRDs and roles are there."""
    await identity("scope-binding")


def grant(**spec: Any) -> Object:
    """A SourceGrant of one source for dev-team2's label, unless told otherwise."""
    if "sourceSelector" not in spec:
        spec.setdefault("sourceRef", {"kind": "GitRepository", "name": "app1"})
    spec.setdefault("accessFrom", TWO)
    return obj(SOURCE_GRANT, f"g{token()}", HOME, spec={key: value for key, value in spec.items() if value is not None})


def profile(name: str = DEFAULT, **spec: Any) -> Object:
    return obj(TENANCY_PROFILE, name, spec=spec)


def tenant(name: str = "", **spec: Any) -> Object:
    return obj(TENANT, name or f"t{token()}", spec={"namespaces": ["apps"], **spec})


KINDS = {each.kind: each for each in (SOURCE_GRANT, TENANCY_PROFILE, ACCESS_INDEX, TENANT)}


async def stored(admin: Api, body: Object) -> dict[str, Any]:
    """The spec of an object as it would be stored."""
    return dict((await admin.create(KINDS[body["kind"]], body, dry_run=True))["spec"])


async def refused(admin: Api, body: Object, *words: str) -> str:
    """An object is refused by 422, with these words; returns all of them."""
    with pytest.raises(Invalid) as caught:
        await admin.create(KINDS[body["kind"]], body, dry_run=True)
    assert caught.value.status == 422, caught.value
    assert [each for each in words if each not in caught.value.message] == [], caught.value.message
    return caught.value.message


# -- SourceGrant -------------------------------------------------------------------------------------------


async def test_a_source_grant_reads_unless_it_says_otherwise(admin: Api) -> None:
    """Every kind of source can be named or selected, ImageRepository cannot; without access it is Read."""
    for kind in SOURCES:
        assert (await stored(admin, grant(sourceRef={"kind": kind, "name": "a.b"})))["access"] == ["Read"]
        found = await stored(admin, grant(sourceSelector={"kind": kind, "matchLabels": {}}, access=["Write", "Read"]))
        assert found["access"] == ["Write", "Read"]
    for kind in ("ImageRepository", "Kustomization", ""):
        await refused(admin, grant(sourceRef={"kind": kind, "name": "a"}), "spec.sourceRef.kind")


@pytest.mark.parametrize(
    "selectors", [[], [{}], [{"matchLabels": {}}], [{"matchLabels": {"a.b/c": ""}}, {"matchLabels": {"A_b.c": "1.2_3-x"}}]]
)
async def test_selectors_of_legal_labels_are_stored_as_they_are(admin: Api, selectors: list[Object]) -> None:
    """Also none, and an empty one."""
    assert (await stored(admin, grant(accessFrom={"namespaceSelectors": selectors})))["accessFrom"][
        "namespaceSelectors"
    ] == selectors


@pytest.mark.parametrize(
    "labels",
    [
        {"team": "a b"},
        {"team": "x|*"},
        {"team": "x,kubernetes.io/metadata.name=dev-team2"},
        {"a=b": "c"},
        {"team": "*"},
        {"*": "x"},
        {"a,b": "x"},
        {"a|b": "x"},
        {"": "x"},
        {"a/b/c": "x"},
        {"A.b/c": "x"},
        {"a" * 64: "x"},
        {"team": "a" * 64},
        {"team": "a\n"},
        {"team\n": "a"},
        {"team": 1},
        {"team": None},
        {f"k{number}": "" for number in range(33)},
    ],
)
async def test_illegal_labels_are_refused(admin: Api, labels: Object) -> None:
    """In selectors of namespaces and of sources."""
    await refused(
        admin, grant(accessFrom={"namespaceSelectors": [{"matchLabels": labels}]}), "spec.accessFrom.namespaceSelectors[0]"
    )
    await refused(admin, grant(sourceSelector={"kind": "Bucket", "matchLabels": labels}), "spec.sourceSelector.matchLabels")


async def test_as_many_selectors_as_are_allowed_fit_in_the_schema(admin: Api) -> None:
    """64 selectors of 32 pairs; one more is refused."""
    labels = {f"{'p' * 240}.x/{'k' * 59}-{number:02}": "v" * 63 for number in range(32)}
    selectors = [{"matchLabels": labels} for _ in range(64)]
    assert len(json.dumps(selectors)) > 700_000
    await stored(admin, grant(accessFrom={"namespaceSelectors": selectors}))
    await refused(admin, grant(accessFrom={"namespaceSelectors": [{}] * 65}), "spec.accessFrom.namespaceSelectors", "64")


async def test_a_mistake_never_becomes_a_grant_for_all(admin: Api) -> None:
    """An unknown field is refused also where the API server drops those: a selector without its field would select all."""
    for selector in (
        {"matchLabel": {"team": "two"}},
        {"matchExpressions": {}},
        {"matchLabels": {}, "x": {}},
        {"matchLabels": None},
        None,
    ):
        await refused(admin, grant(accessFrom={"namespaceSelectors": [selector]}), "spec.accessFrom.namespaceSelectors[0]")
    for access_from in ({}, {"namespaceSelector": []}, {"namespaceSelectors": None}):
        await refused(admin, grant(accessFrom=access_from), "spec.accessFrom")
    for spec in (
        {"accessFrom": None},
        {"sourceRef": None},
        {"sourceRef": {"kind": "Bucket", "name": "b"}, "sourceSelector": {"kind": "Bucket", "matchLabels": {}}},
        {"sourceSelector": {"kind": "Bucket"}},
        {"sourceRef": {"kind": "Bucket"}},
        {"sourceRef": {"kind": "Bucket", "name": "A"}},
        {"access": []},
        {"access": ["Read", "Read"]},
        {"access": ["Delete"]},
    ):
        await refused(admin, grant(**spec), "spec")


@pytest.mark.parametrize("level", ["admin", "edit", "view"])
async def test_who_has_a_role_in_a_namespace_has_its_source_grants(admin: Api, level: str) -> None:
    """Edit and admin write SourceGrants there, view reads them, and nobody has a verb on the kinds of the cluster."""
    person, home = f"{level}-{token()}", f"grants-{token()}"
    await admin.create(NAMESPACE, obj(NAMESPACE, home))
    await admin.create(ROLE_BINDING, obj(ROLE_BINDING, person, home, roleRef=cluster_role(level), subjects=[user(person)]))
    reading = {"get", "list", "watch"}
    verbs = reading | {"create", "update", "patch", "delete", "deletecollection"}
    group = SOURCE_GRANT.api_version.partition("/")[0]

    async def allowed(kind: Kind, namespace: str = "") -> set[str]:
        return {verb for verb in verbs if await may(admin, person, verb, kind.plural, namespace, group=group)}

    wanted = reading if level == "view" else verbs
    await eventually(lambda: allowed(SOURCE_GRANT, home), lambda found: found == wanted, within=CONTROLLER_S)
    for kind, namespace in ((SOURCE_GRANT, HOME), (SOURCE_GRANT, ""), (TENANCY_PROFILE, ""), (ACCESS_INDEX, ""), (TENANT, "")):
        assert await allowed(kind, namespace) == set(), (kind.kind, namespace)
    await admin.delete(NAMESPACE, home)


# -- TenancyProfile and AccessIndex ------------------------------------------------------------------------


async def test_a_profile_shows_what_holds(admin: Api) -> None:
    """Every field that is not stated has its default, also without a spec."""
    defaults = {
        "profile": "single-tenant",
        "enforceSourceACL": True,
        "mode": "Enforce",
        "onDenied": "Deny",
        "onRevocation": "Suspend",
        "defaultServiceAccount": "flux",
        "serviceAccountMode": "Default",
        "pinToTenant": False,
        "kubeConfig": "Allow",
        "exemptNamespaces": ["flux-system", "kube-system"],
        "allowIntraTenant": False,
        "checkDependsOn": True,
        "tenantLabelKeys": [],
        "consumers": [],
    }
    assert await stored(admin, profile()) == defaults
    assert await stored(admin, obj(TENANCY_PROFILE, DEFAULT)) == defaults
    changed = {
        "profile": "multi-tenant",
        "serviceAccountMode": "Off",
        "exemptNamespaces": [],
        "tenantLabelKeys": ["example.com/a"],
    }
    assert await stored(admin, profile(**changed)) == {**defaults, **changed}


@pytest.mark.check("f-72")
async def test_what_is_no_profile_is_refused(admin: Api) -> None:
    """A TenancyProfile of another name, the profile ``multi``, an unknown mode: 422 each, and the field is named."""
    await refused(admin, profile("other", profile="multi-tenant"), "metadata", "only the name default is valid")
    await refused(admin, profile(profile="multi"), "spec.profile", "multi-tenant")
    await refused(admin, profile(mode="Warn"), "spec.mode", "Enforce")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("onDenied", "deny"),
        ("onRevocation", "Delete"),
        ("defaultServiceAccount", ""),
        ("defaultServiceAccount", "A"),
        ("serviceAccountMode", "None"),
        ("serviceAccountMode", False),
        ("kubeConfig", "deny"),
        ("exemptNamespaces", ["A"]),
        ("exemptNamespaces", [""]),
        ("tenantLabelKeys", ["*"]),
        ("tenantLabelKeys", ["/*"]),
        ("tenantLabelKeys", ["a b"]),
        ("tenantLabelKeys", ["A/*"]),
        ("tenantLabelKeys", ["a/b/*"]),
        ("tenantLabelKeys", ["a/*/*"]),
    ],
)
async def test_values_without_a_meaning_are_refused(admin: Api, field: str, value: Any) -> None:
    """The refusal names the field."""
    await refused(admin, profile(**{field: value}), f"spec.{field}")


async def test_label_keys_of_tenants_are_keys_or_prefixes(admin: Api) -> None:
    """A key with or without a prefix, and all keys of a prefix."""
    keys = ["env", "example.com/color", "field.cattle.io/*"]
    assert (await stored(admin, profile(tenantLabelKeys=keys)))["tenantLabelKeys"] == keys


async def test_rows_of_consumers_are_checked(admin: Api) -> None:
    """A row is stored as it is; an unknown class, and a path that is none, are refused with the place."""
    generator = {**TERRAFORM, "resource": "others", "stop": {"annotation": "example.com/reconcile", "value": "disabled"}}
    assert (await stored(admin, profile(consumers=[TERRAFORM, generator])))["consumers"] == [TERRAFORM, generator]
    place = "spec.consumers[0].references[0]"
    for wrong in ("Read", "admin", ""):
        reference = {"path": "spec.sourceRef", "class": wrong}
        await refused(admin, profile(consumers=[{**TERRAFORM, "references": [reference]}]), f"{place}.class")
    for path in (
        "",
        "spec",
        "status.a",
        ".spec.a",
        "spec.a.",
        "spec..a",
        "spec.a[0]",
        "spec.a[].b[]",
        "spec[]",
        "spec.a b",
        "spec.a-b",
        "x.spec.a",
    ):
        reference = {"path": path, "class": "read"}
        await refused(admin, profile(consumers=[{**TERRAFORM, "references": [reference]}]), f"{place}.path")
    for path in ("spec.a", "spec.a.b", "spec.a[]", "spec.a.b[].c.d"):
        await stored(admin, profile(consumers=[{**TERRAFORM, "references": [{"path": path, "class": "write"}]}]))
    row = "spec.consumers[0]"
    for stop in (
        {},
        {"field": "a"},
        {"annotation": "a"},
        {"field": "spec.a", "annotation": "a", "value": "b"},
        {"annotation": "a b", "value": ""},
    ):
        await refused(admin, profile(consumers=[{**TERRAFORM, "stop": stop}]), f"{row}.stop")
    for change in ({"group": "infra"}, {"group": ""}, {"resource": "A"}, {"references": []}):
        await refused(admin, profile(consumers=[{**TERRAFORM, **change}]), f"{row}.{next(iter(change))}")
    own = {**TERRAFORM, "group": "kustomize.toolkit.fluxcd.io", "resource": "kustomizations"}
    await refused(admin, profile(consumers=[own]), f"{row}.resource")
    await refused(admin, profile(consumers=[TERRAFORM, TERRAFORM]), "Duplicate value")


async def test_there_is_one_index(admin: Api) -> None:
    """Only the name default is valid; it may be empty, and grants are maps.  What of them is no text grants nothing."""
    await admin.create(ACCESS_INDEX, obj(ACCESS_INDEX, DEFAULT, spec={}), dry_run=True)
    await refused(admin, obj(ACCESS_INDEX, "other", spec={}), "metadata", "only the name default is valid")
    await refused(admin, obj(ACCESS_INDEX, DEFAULT, spec={"read": ["GitRepository/a/b"]}), "spec.read")
    await refused(admin, obj(ACCESS_INDEX, DEFAULT, spec={"write": "*"}), "spec.write")


# -- Tenant ------------------------------------------------------------------------------------------------


async def test_a_tenant_has_its_defaults(admin: Api) -> None:
    """Role, deletion, and what of source and kustomization is not stated."""
    source = {"url": "ssh://git@example.com/org/apps", "branch": "main"}
    found = await stored(admin, tenant(source=source, kustomization={}, labels={"env": "prod"}))
    assert found == {
        "namespaces": ["apps"],
        "clusterRole": "cluster-admin",
        "skipNamespace": False,
        "adoptNamespaces": False,
        "deletionPolicy": "Retain",
        "labels": {"env": "prod"},
        "source": {**source, "interval": "1m"},
        "kustomization": {"path": "./", "prune": True, "interval": "10m"},
    }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("namespaces", []),
        ("namespaces", ["a", "a"]),
        ("namespaces", ["A"]),
        ("namespaces", ["a/b"]),
        ("clusterRole", ""),
        ("serviceAccountName", ""),
        ("labels", {"tenantry.dev/x": "a"}),
        ("labels", {"toolkit.fluxcd.io/tenant": "a"}),
        ("labels", {"kubernetes.io/metadata.name": "a"}),
        ("labels", {"a b": "a"}),
        ("labels", {"a": "b c"}),
        ("source", {"url": "ftp://x", "branch": "main"}),
        ("source", {"url": "https://x/y"}),
        ("source", {"url": "https://x/y", "branch": "a", "tag": "b"}),
        ("source", {"branch": "main"}),
        ("kustomization", {}),
        ("deletionPolicy", "Orphan"),
    ],
)
async def test_a_tenant_without_sense_is_refused(admin: Api, field: str, value: Any) -> None:
    """The refusal names the field."""
    await refused(admin, tenant(**{field: value}), f"spec.{field}")


async def test_names_of_tenants(admin: Api) -> None:
    """As Flux' own command takes them: from two characters on, no dot."""
    for name in ("a", "a.b", "x" * 64):
        await refused(admin, tenant(name), "metadata")
    for name in ("ab", "x" * 63):
        await stored(admin, tenant(name))
    await refused(admin, obj(TENANT, f"t{token()}"), "spec")
