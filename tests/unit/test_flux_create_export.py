"""What ``tenantry create`` prints, and which input it refuses; no cluster is there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from creating import create, printed, refused

TENANT = """\
---
apiVersion: v1
kind: Namespace
metadata:
  labels:
    toolkit.fluxcd.io/tenant: dev-team
  name: apps
---
apiVersion: v1
kind: ServiceAccount
metadata:
  labels:
    toolkit.fluxcd.io/tenant: dev-team
  name: dev-team
  namespace: apps
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  labels:
    toolkit.fluxcd.io/tenant: dev-team
  name: dev-team-reconciler
  namespace: apps
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: cluster-admin
subjects:
- kind: ServiceAccount
  name: dev-team
  namespace: apps
"""
GOTK_USER = """\
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: gotk:apps:reconciler
"""


# -- tenants -----------------------------------------------------------------------------------------------------


@pytest.mark.check("f-46")
def test_a_tenant_is_printed_exactly() -> None:
    """Namespace, account, binding: these bytes and no others, and no cluster is asked."""
    assert create("tenant", "dev-team", "--with-namespace=apps", "--export") == (0, TENANT, "")


@pytest.mark.check("f-145")
def test_a_tenant_with_the_user_is_printed_as_flux_does() -> None:
    """The user comes first, then the account; nothing else differs."""
    code, output, _ = create("tenant", "dev-team", "--with-namespace=apps", "--with-gotk-user", "--export")
    assert (code, output) == (0, TENANT.replace("subjects:\n", f"subjects:\n{GOTK_USER}"))
    assert "gotk" not in create("tenant", "dev-team", "--with-namespace=apps", "--export")[1]


def test_values_that_look_like_numbers_are_quoted() -> None:
    """With double quotes, as Flux writes them, also those that only some readers take for numbers or booleans."""
    labels = {"a": "1", "b": "true", "c": "y", "d": "1e3", "e": "1.5", "f": "0o7", "g": "", "h": "2001-01-01", "i": "x1"}
    options = [f"--label={key}={value}" for key, value in labels.items()]
    _, output, _ = create("tenant", "dev-team", "--with-namespace=apps", "--skip-namespace", *options, "--export")
    for key, value in labels.items():
        assert f"\n    {key}: " + (value if key == "i" else f'"{value}"') + "\n" in output


@pytest.mark.check("f-51")
def test_options_change_only_what_they_name() -> None:
    """No namespace; another account, not another binding; another role."""
    usual = printed("tenant", "dev-team", "--with-namespace=apps")
    assert printed("tenant", "dev-team", "--with-namespace=apps", "--skip-namespace") == usual[1:]

    namespace, account, binding = printed("tenant", "dev-team", "--with-namespace=apps", "--with-service-account=flux-tenant")
    assert namespace == usual[0]
    assert account == {**usual[1], "metadata": {**usual[1]["metadata"], "name": "flux-tenant"}}
    assert binding == {**usual[2], "subjects": [{**usual[2]["subjects"][0], "name": "flux-tenant"}]}

    *others, binding = printed("tenant", "dev-team", "--with-namespace=apps", "--cluster-role=custom")
    assert others == usual[:2]
    assert binding == {**usual[2], "roleRef": {**usual[2]["roleRef"], "name": "custom"}}


def test_labels_are_on_every_document() -> None:
    """Each ``--label``, besides the tenant's."""
    options = ("--with-namespace=apps", "--label=stage=dev,team=one", "--label=example.com/x=")
    wanted = {"stage": "dev", "team": "one", "example.com/x": "", "toolkit.fluxcd.io/tenant": "dev-team"}
    assert [each["metadata"]["labels"] for each in printed("tenant", "dev-team", *options)] == [wanted] * 3


@pytest.mark.check("f-52")
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--with-namespace=apps"], "'NAME'"),
        (["dev-team"], "--with-namespace=apps"),
        (["dev-team", "--with-namespace="], "no namespace can be called ''"),
        (["dev-team", "--with-namespace=apps", "--label=a"], "key=value"),
        (["dev-team", "--with-namespace=apps", "--label=a b=c"], "key=value"),
        (["dev-team", "--with-namespace=apps", "--label=tenantry.dev/tenant=x"], "has a meaning of its own"),
        (["dev-team", "--with-namespace=apps", "--cluster-role="], "ClusterRole"),
        (["A_b", "--with-namespace=apps"], "'A_b' is no name of a tenant"),
        (["a", "--with-namespace=apps"], "'a' is no name of a tenant"),
        (["a" * 64, "--with-namespace=apps"], "is no name of a tenant"),
        (["dev-team", "--with-namespace=Apps"], "no namespace can be called 'Apps'"),
        (["dev-team", "--with-namespace=a/b"], "no namespace can be called 'a/b'"),
        (["dev-team", "--with-namespace=apps,"], "no namespace can be called ''"),
        (["dev-team", "--with-namespace=apps", "--style=other"], "'rfc'"),
        (["dev-team", "--with-namespace=apps", "--no-such"], "--no-such"),
        (["dev-team", "apps", "--with-namespace=apps"], "1 more arguments"),
    ],
)
def test_wrong_input_is_one_line(arguments: list[str], why: str) -> None:
    """It says what is wrong, on stderr, and nothing is printed."""
    refused("tenant", *arguments, why=why)


# -- RFC-0003 ----------------------------------------------------------------------------------------------------

RFC = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant1"}},
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "flux", "namespace": "tenant1"}},
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "flux", "namespace": "tenant1"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "flux", "namespace": "tenant1"}],
    },
    {
        "apiVersion": "source.toolkit.fluxcd.io/v1beta1",
        "kind": "GitRepository",
        "metadata": {"name": "tenant1", "namespace": "tenant1"},
        "spec": {
            "interval": "5m0s",
            "ref": {"branch": "main"},
            "secretRef": {"name": "tenant1-git-auth"},
            "url": "ssh://git@github.com/org/tenant1",
        },
    },
    {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1beta2",
        "kind": "Kustomization",
        "metadata": {"name": "tenant1", "namespace": "tenant1"},
        "spec": {
            "interval": "10m0s",
            "path": "./",
            "prune": True,
            "serviceAccountName": "flux",
            "sourceRef": {"kind": "GitRepository", "name": "tenant1"},
        },
    },
]
"""The generated manifests of the RFC's example."""
ONBOARDING = (
    ("tenant", "tenant1", "--with-namespace=tenant1", "--style=rfc"),
    (
        *("source", "git", "tenant1", "-n", "tenant1", "--url=ssh://git@github.com/org/tenant1", "--branch=main"),
        *("--interval=5m", "--secret-ref=tenant1-git-auth"),
    ),
    (
        *("kustomization", "tenant1", "-n", "tenant1", "--source=GitRepository/tenant1", "--path=./", "--prune"),
        *("--interval=10m", "--service-account=flux"),
    ),
)


@pytest.mark.check("f-143")
def test_the_style_of_the_rfc_has_its_names() -> None:
    """Namespace, account and binding of the example: the same names, one subject, no labels."""
    assert printed(*ONBOARDING[0]) == RFC[:3]


def test_the_five_documents_of_the_rfc() -> None:
    """All of the example, but for the versions of Flux' kinds (a part of f-144: nothing applies them here)."""
    found = [each for command in ONBOARDING for each in printed(*command)]
    wanted = [{**each, "apiVersion": each["apiVersion"].replace("v1beta1", "v1").replace("v1beta2", "v1")} for each in RFC]
    assert found == wanted


# -- sources and Kustomizations ----------------------------------------------------------------------------------


@pytest.mark.check("f-58")
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["source", "git", "t", "--url=ftp://x", "--branch=main"], "'ftp' is not one of Git"),
        (["source", "git", "t", "--url=ftp://x"], "'ftp' is not one of Git"),
        (["source", "git", "t", "--url=https://x"], "give --branch"),
        (["source", "git", "t", "--url=git@host:path", "--branch=main"], "ssh://git@host/path"),
        (["source", "git", "t", "--url=https://", "--branch=main"], "ssh://git@host/path"),
        (["source", "git", "t", "--url=https://x:y/", "--branch=main"], "ssh://git@host/path"),
        (["source", "git", "t", "--branch=main"], "--url"),
        (["source", "git", "t", "--url=https://x", "--branch=main", "--interval=5"], "no duration"),
        (["source", "git", "t", "--url=https://x", "--branch=main", "-n", "A"], "'A' is no name"),
        (["kustomization", "k"], "--source"),
        (["kustomization", "k", "--source=Secret/x"], "the kind 'Secret' is none of"),
        (["kustomization", "k", "--source=/x"], "the kind '' is none of"),
        (["kustomization", "k", "--source=x."], "[Kind/]name[.namespace]"),
        (["kustomization", "k", "--source=x", "--path=deploy"], "does not begin with ./"),
        (["kustomization", "k", "--source=x", "--path=./../x"], "leads out of the source"),
        (["kustomization", "k", "--source=x", "--depends-on=a/b/c"], "[namespace/]name"),
        (["kustomization", "k", "--source=x", "--target-namespace=A"], "'A'"),
    ],
)
def test_wrong_sources_and_kustomizations_are_refused(arguments: list[str], why: str) -> None:
    """A scheme of no Git, no reference, no source, a path that is none."""
    refused(*arguments, why=why)


@pytest.mark.check("f-59")
def test_a_source_of_another_namespace_is_named() -> None:
    """What follows the last dot is the namespace."""
    command = ("kustomization", "podinfo", "-n", "dev-team1", "--source=GitRepository/shared.flux-system")
    (found,) = printed(*command, "--service-account=flux")
    assert found["spec"]["sourceRef"] == {"kind": "GitRepository", "name": "shared", "namespace": "flux-system"}
    assert found["spec"]["serviceAccountName"] == "flux"


@pytest.mark.check("f-147")
@pytest.mark.parametrize(
    ("options", "ref"),
    [
        (["--branch=main"], {"branch": "main"}),
        (["--tag=v1", "--branch=main"], {"tag": "v1"}),
        (["--tag-semver=>=1.0.0 <2.0.0", "--tag=v1", "--branch=main"], {"semver": ">=1.0.0 <2.0.0"}),
        (["--ref-name=refs/pull/420/head", "--tag-semver=1.x", "--branch=main"], {"name": "refs/pull/420/head"}),
        (["--commit=363a6a8fe6a7f13e05d34c163b0ef02a777da20a"], {"commit": "363a6a8fe6a7f13e05d34c163b0ef02a777da20a"}),
        (["--commit=abc", "--branch=main", "--ref-name=x", "--tag=y"], {"commit": "abc", "branch": "main"}),
    ],
)
def test_a_source_follows_what_was_asked(options: list[str], ref: dict[str, str]) -> None:
    """Of several references the first of commit, name, range, tag and branch; a commit keeps its branch."""
    (found,) = printed("source", "git", "app", "--url=https://example.com/app", *options, "--interval=90s")
    spec = {"interval": "1m30s", "ref": ref, "url": "https://example.com/app"}
    assert found["spec"] == spec
    assert (found["apiVersion"], found["kind"]) == ("source.toolkit.fluxcd.io/v1", "GitRepository")
    assert found["metadata"] == {"name": "app", "namespace": "flux-system"}
    (found,) = printed("source", "git", "app", "--url=https://example.com/app", *options, "-n", "apps", "--secret-ref=auth")
    assert found["metadata"] == {"name": "app", "namespace": "apps"}
    assert found["spec"] == {**spec, "interval": "1m0s", "secretRef": {"name": "auth"}}


@pytest.mark.check("f-147")
@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ([], {}),
        (["--path=./deploy"], {"path": "./deploy"}),
        (["--prune"], {"prune": True}),
        (["--service-account=flux"], {"serviceAccountName": "flux"}),
        (["--interval=90s"], {"interval": "1m30s"}),
        (["--target-namespace=apps"], {"targetNamespace": "apps"}),
        (
            ["--depends-on=a,ns/b", "--depends-on=c"],
            {"dependsOn": [{"name": "a"}, {"name": "b", "namespace": "ns"}, {"name": "c"}]},
        ),
        (["--source=bucket/b"], {"sourceRef": {"kind": "Bucket", "name": "b"}}),
        (["--source=OCIRepository/a.b.ns"], {"sourceRef": {"kind": "OCIRepository", "name": "a.b", "namespace": "ns"}}),
    ],
)
def test_a_kustomization_has_what_was_asked(options: list[str], changed: dict[str, Any]) -> None:
    """Each option is its field, and without it there is none."""
    (found,) = printed("kustomization", "app", "--source=app", *options)
    usual = {"interval": "1m0s", "path": "./", "prune": False, "sourceRef": {"kind": "GitRepository", "name": "app"}}
    assert found["spec"] == {**usual, **changed}
    assert (found["apiVersion"], found["kind"]) == ("kustomize.toolkit.fluxcd.io/v1", "Kustomization")


def test_as_json_there_is_one_list() -> None:
    """For programs."""
    _, output, _ = create("tenant", "dev-team", "--with-namespace=a,b", "--export", "-o", "json")
    assert [each["kind"] for each in json.loads(output)["items"]] == ["Namespace", "ServiceAccount", "RoleBinding"] * 2
