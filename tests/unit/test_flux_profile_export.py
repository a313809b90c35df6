"""What ``tenantry profile export`` prints, and which input it refuses; no cluster is there (2.5)."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tenantry.cli import main
from tenantry.model.flux.security_profile import EXTRAS

SHORTCUT = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
patches:
- patch: |
    - op: add
      path: /spec/template/spec/containers/0/args/-
      value: --default-service-account=flux
  target:
    kind: Deployment
    name: (kustomize-controller|helm-controller)
- patch: |
    - op: add
      path: /spec/template/spec/containers/0/args/-
      value: --no-cross-namespace-refs=true
  target:
    kind: Deployment
    name: notification-controller
- patch: |
    - op: add
      path: /spec/serviceAccountName
      value: kustomize-controller
  target:
    kind: Kustomization
    name: flux-system
resources:
- gotk-components.yaml
- gotk-sync.yaml
"""
WITHOUT_PATCHES = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- gotk-components.yaml
- gotk-sync.yaml
"""
CONTROLLERS = (
    "source-controller",
    "kustomize-controller",
    "helm-controller",
    "notification-controller",
    "image-reflector-controller",
    "image-automation-controller",
    "source-watcher",
)
Arguments = dict[str, list[str]]
"""What each controller is given beyond its own."""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["profile", "export", *arguments])


def export(*arguments: str) -> str:
    """What is printed with the profile multi-tenant, unless another one is named."""
    named = any(each.startswith("--security-profile") for each in arguments)
    found = run(*([] if named else ["--security-profile=multi-tenant"]), *arguments)
    assert found.exit_code == 0, found.output
    return found.stdout


def cluster(*arguments: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(export("--part=cluster", *arguments)))


def components() -> list[dict[str, Any]]:
    """What `flux bootstrap` writes, as far as patches meet it."""
    made: list[dict[str, Any]] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": "flux-system"},
            "spec": {"template": {"spec": {"containers": [{"name": "manager", "args": ["--log-level=info"]}]}}},
        }
        for name in CONTROLLERS
    ]
    made.append({"kind": "ClusterRoleBinding", "metadata": {"name": "cluster-reconciler-flux-system"}})
    made.append({"kind": "ClusterRoleBinding", "metadata": {"name": "crd-controller-flux-system"}})
    made.append({"kind": "Kustomization", "metadata": {"name": "flux-system"}, "spec": {"prune": True}})
    return made


def built(kustomization: str) -> list[dict[str, Any]]:
    """The components with the patches of a kustomization: additions at a path, and deletions; targets are whole names."""
    found = components()
    for each in yaml.safe_load(kustomization).get("patches") or ():
        patch = yaml.safe_load(each["patch"])
        if isinstance(patch, dict):
            assert patch["$patch"] == "delete"
            left = [one for one in found if (one["kind"], one["metadata"]["name"]) != (patch["kind"], patch["metadata"]["name"])]
            assert len(left) == len(found) - 1
            found = left
            continue
        met = [
            one
            for one in found
            if one["kind"] == each["target"]["kind"] and re.fullmatch(each["target"]["name"], one["metadata"]["name"])
        ]
        assert met, each
        for one in met:
            for operation in patch:
                _add(one, operation)
    return found


def _add(one: dict[str, Any], operation: dict[str, str]) -> None:
    assert operation["op"] == "add"
    *steps, last = operation["path"].strip("/").split("/")
    value: Any = one
    for step in steps:
        value = value[int(step)] if isinstance(value, list) else value[step]
    if last == "-":
        value.append(operation["value"])
    else:
        value[last] = operation["value"]


def added(kustomization: str) -> Arguments:
    """The arguments that controllers are given beyond their own."""
    found = {}
    for each in built(kustomization):
        if each["kind"] == "Deployment":
            arguments = each["spec"]["template"]["spec"]["containers"][0]["args"]
            assert arguments[0] == "--log-level=info"
            if arguments[1:]:
                found[each["metadata"]["name"]] = arguments[1:]
    return found


def one_line(found: Result, *words: str) -> None:
    """An error: one line on stderr with these words, nothing on stdout, an exit code that says so."""
    assert found.exit_code != 0
    assert found.stdout == ""
    assert len(found.stderr.strip().splitlines()) == 1, found.stderr
    assert [each for each in words if each not in found.stderr] == [], found.stderr


@pytest.mark.check("f-129")
def test_the_shortcut_of_the_rfc() -> None:
    """The text of the specification, to the byte; its arguments are added once, and the flag that does not exist never."""
    assert export("--part=flux") == SHORTCUT
    assert added(SHORTCUT) == {
        "kustomize-controller": ["--default-service-account=flux"],
        "helm-controller": ["--default-service-account=flux"],
        "notification-controller": ["--no-cross-namespace-refs=true"],
    }
    everything = export("--with=" + ",".join(EXTRAS))
    assert "--enable-source-acl" not in everything


@pytest.mark.check("f-130")
def test_a_single_tenant_takes_everything_away() -> None:
    """The same document without patches, and only the profile: built again, the components are the originals."""
    assert export("--security-profile=single-tenant", "--part=flux") == WITHOUT_PATCHES
    only = cluster("--security-profile=single-tenant")
    assert [(each["kind"], each["spec"]) for each in only] == [("TenancyProfile", {"profile": "single-tenant"})]
    original = copy.deepcopy(components())
    assert built(SHORTCUT) != original
    assert built(export("--security-profile=single-tenant", "--part=flux")) == original


@pytest.mark.check("f-131")
@pytest.mark.parametrize(
    ("extra", "more"),
    [
        ("no-remote-bases", {"kustomize-controller": ["--no-remote-bases=true"]}),
        (
            "workload-identity",
            {
                "kustomize-controller": [
                    "--default-decryption-service-account=flux",
                    "--default-kubeconfig-service-account=flux",
                ],
                "helm-controller": ["--default-kubeconfig-service-account=flux"],
                "source-controller": ["--default-service-account=flux"],
                "notification-controller": ["--default-service-account=flux"],
                "image-reflector-controller": ["--default-service-account=flux"],
                "image-automation-controller": ["--default-service-account=flux"],
            },
        ),
        (
            "no-sharing",
            {
                each: ["--no-cross-namespace-refs=true"]
                for each in (
                    "kustomize-controller",
                    "helm-controller",
                    "image-reflector-controller",
                    "image-automation-controller",
                    "source-watcher",
                )
            },
        ),
        ("least-privilege", {}),
    ],
)
def test_each_addition_adds_what_it_says(extra: str, more: Arguments) -> None:
    """Arguments of exactly these controllers beyond the shortcut's; least privilege is other rights, not arguments."""
    found, plain = added(export("--part=flux", f"--with={extra}")), added(SHORTCUT)
    for name in CONTROLLERS:
        assert sorted(found.get(name, [])) == sorted([*plain.get(name, []), *more.get(name, [])]), name
    if extra != "least-privilege":
        assert cluster(f"--with={extra}") == cluster()


@pytest.mark.check("f-131")
def test_no_sharing_is_for_six_controllers() -> None:
    """source-controller has no such flag."""
    found = added(export("--part=flux", "--with=no-sharing"))
    assert {each for each, texts in found.items() if "--no-cross-namespace-refs=true" in texts} == {*CONTROLLERS} - {
        "source-controller"
    }


@pytest.mark.check("f-131")
def test_with_least_privilege_controllers_impersonate() -> None:
    """Their binding as administrators goes, a role with little takes its place, and the platform's own sync has an account."""
    patched = built(export("--part=flux", "--with=least-privilege"))
    assert [each["metadata"]["name"] for each in patched if each["kind"] == "ClusterRoleBinding"] == [
        "crd-controller-flux-system"
    ]
    assert [each["spec"]["serviceAccountName"] for each in patched if each["kind"] == "Kustomization"] == ["platform"]
    more = cluster("--with=least-privilege")[len(cluster()) :]
    assert [each["kind"] for each in more] == ["ClusterRole", "ClusterRoleBinding", "ServiceAccount", "ClusterRoleBinding"]
    role, binding, account, platform = more
    assert [each["name"] for each in binding["subjects"]] == ["kustomize-controller", "helm-controller"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert account["metadata"] == {**account["metadata"], "name": "platform", "namespace": "flux-system"}
    assert platform["roleRef"]["name"] == "cluster-admin"
    assert platform["subjects"] == [{"kind": "ServiceAccount", "name": "platform", "namespace": "flux-system"}]
    rules = role["rules"]
    assert [each["resources"] for each in rules if "impersonate" in each["verbs"]] == [["serviceaccounts"]]
    written = {
        group for each in rules for group in each["apiGroups"] if "create" in each["verbs"] and each["resources"] != ["events"]
    }
    assert written == {"kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io", "source.toolkit.fluxcd.io"}
    assert "*" not in {verb for each in rules for verb in each["verbs"]}


@pytest.mark.check("f-131")
def test_another_name_of_the_account_is_everywhere() -> None:
    """In both parts and in all additions."""
    text = export("--default-service-account=x", "--with=workload-identity")
    assert "service-account=flux" not in text
    assert text.count("service-account=x\n") == 4
    profile, *policies = cluster("--default-service-account=x")
    assert profile["spec"]["defaultServiceAccount"] == "x"
    filled = [each for each in policies if each["metadata"]["name"] == "tenantry-default-account-kustomizations"]
    assert '"/spec/serviceAccountName", value: "x"' in filled[0]["spec"]["mutations"][0]["jsonPatch"]["expression"]


def test_both_parts_follow_each_other() -> None:
    """Without a part the kustomization comes first."""
    assert export() == export("--part=flux") + export("--part=cluster")


@pytest.mark.check("f-60")
def test_another_profile_is_refused() -> None:
    """The error lists the two that are legal."""
    one_line(run("--security-profile=multi"), "single-tenant", "multi-tenant")


@pytest.mark.check("f-131")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--security-profile=multi-tenant", "--with=no-such"],
        ["--security-profile=multi-tenant", "--with=no-sharing,no-such"],
        ["--security-profile=multi-tenant", "--no-such"],
        ["--security-profile=multi-tenant", "--part=all"],
        ["--security-profile=multi-tenant", "--default-service-account=A_b"],
        ["--security-profile=single-tenant", "--with=no-sharing"],
        [],
    ],
)
def test_an_unknown_option_is_one_line(arguments: list[str]) -> None:
    """Nothing is printed that somebody could apply."""
    one_line(run(*arguments))
