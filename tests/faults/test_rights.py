"""Least privilege: the judgement of rights files, and their writing, are right.  What it judges is said in tests/conftest.py."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from rights import account, cluster_role

from tenantry.api import Api
from tenantry.api.errors import ConflictError, Forbidden
from tenantry.local.control_plane import ControlPlane
from tenantry.local.identity import Identity
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CONFIG_MAP, NAMESPACE, SECRET, SERVICE_ACCOUNT
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.testing.audit import AuditLog, Use, Used
from tenantry.testing.objects import obj
from tenantry.testing.rights import judge, judge_all, rewrite_all, rewritten

FILE = """\
# What demo may do.
kind: ClusterRole
metadata:
  name: tenantry-demo
rules:
  # Names come from projects.
  - apiGroups: [""]
    resources: [namespaces]
    verbs: [get, list, patch]  # no delete
  # One name for each chart.
  - apiGroups: [""]
    resources: [configmaps]
    resourceNames: [chart]
    verbs: [get, create, patch]
  # Accounted.
  # In two lines.
  - apiGroups: [events.k8s.io]
    resources: [events]
    verbs: [create]
---
kind: ClusterRoleBinding
metadata:
  name: tenantry-demo
"""
ALL = [
    *(Use("demo", "", "namespaces", verb, "team") for verb in ("get", "patch")),
    Use("demo", "", "namespaces", "list"),
    *(Use("demo", "", "configmaps", verb, "chart") for verb in ("get", "create", "patch")),
    Use("demo", "events.k8s.io", "events", "create"),
]


def without(*uses: tuple[str, str]) -> list[Use]:
    return [use for use in ALL if (use.resource, use.verb) not in uses]


def test_exact_rights_are_left_alone() -> None:
    """Where all rights are used, nothing is found and nothing is written."""
    assert judge(FILE, ALL) == []
    assert rewritten(FILE, ALL) == FILE


def test_a_right_to_bind_goes_with_the_bindings() -> None:
    """The API server asks for bind without a trace: a rule of nothing else stays while bindings are written."""
    rbac, rules = "rbac.authorization.k8s.io", "  # Accounted.\n"
    bindings = f"  - apiGroups: [{rbac}]\n    resources: [clusterrolebindings]\n    verbs: [create]\n"
    binds = f"  - apiGroups: [{rbac}]\n    resources: [clusterroles]\n    verbs: [bind]\n    resourceNames: [cluster-admin]\n"
    both, alone = FILE.replace(rules, bindings + binds + rules), FILE.replace(rules, binds + rules)
    made = Use("demo", rbac, "clusterrolebindings", "create", "helm")

    assert judge(both, [*ALL, made]) == []
    assert [finding.change for finding in judge(alone, ALL)] == [""]


def test_a_right_on_finalizers_goes_with_their_owners() -> None:
    """Admission asks for it without a trace: it stays for kinds that the function has to do with, and goes for others."""
    rules = "  # Accounted.\n"
    blocks = '  - apiGroups: [""]\n    resources: [namespaces/finalizers, configmaps/finalizers]\n    verbs: [update]\n'
    text = FILE.replace(rules, blocks + rules)
    unknown = [use for use in ALL if use.resource != "configmaps"]

    assert judge(text, ALL) == []
    assert any("nothing on namespaces/finalizers; update on configmaps/finalizers" in str(each) for each in judge(text, unknown))
    better = rewritten(text, unknown)
    assert '  - apiGroups: [""]\n    resources: [namespaces/finalizers]\n    verbs: [update]\n' in better
    assert "configmaps" not in better


def test_an_unused_verb_is_named_with_its_line() -> None:
    """A verb that no test used is found, with the line as it should be; writing it changes that value alone."""
    (finding,) = judge(FILE, without(("namespaces", "list")))

    assert str(finding) == "line 9: no test used list on namespaces; change it to: verbs: [get, patch]"
    better = rewritten(FILE, without(("namespaces", "list")))
    assert better == FILE.replace("[get, list, patch]  # no delete", "[get, patch]  # no delete")
    assert judge(better, without(("namespaces", "list"))) == []


def test_an_unused_rule_goes_with_its_comment() -> None:
    """A rule of which nothing was used is removed with the comment that explains it, and with no other."""
    (finding,) = judge(FILE, without(("events", "create")))
    better = rewritten(FILE, without(("events", "create")))

    assert (finding.line, finding.change) == (17, "")
    assert better == FILE.replace(
        "  # Accounted.\n  # In two lines.\n  - apiGroups: [events.k8s.io]\n    resources: [events]\n    verbs: [create]\n", ""
    )


def test_a_lacking_right_is_found_by_its_refusal() -> None:
    """A request that was refused for a right that is not written is found, and written with the rule of its resource."""
    refused = [Use("demo", "", "namespaces", "delete", "team"), Use("demo", "apps", "deployments", "get", "web")]
    found = [str(finding) for finding in judge(FILE, ALL, refused)]
    better = rewritten(FILE, ALL, refused)

    assert any("line 9: namespaces" in each and "verbs: [get, list, patch, delete]" in each for each in found)
    assert any("deployments" in each and "a further rule" in each for each in found)
    assert "  - apiGroups: [apps]\n    resources: [deployments]\n    verbs: [get]\n---\n" in better
    assert judge(better, [*ALL, *refused]) == []


def test_a_right_that_a_test_took_away_is_not_lacking() -> None:
    """A refusal of what is written is a test's doing and finds nothing; nor does it count as a use."""
    refused = [Use("demo", "", "namespaces", "list")]

    assert judge(FILE, ALL, refused) == []
    assert len(judge(FILE, without(("namespaces", "list")), refused)) == 1


def test_names_stand_for_those_of_the_configuration() -> None:
    """A use of another configured name counts for the rule with names; a written name that nobody used is found."""
    other = [
        *without(*(("configmaps", verb) for verb in ("get", "create", "patch"))),
        Use("demo", "", "configmaps", "get", "own"),
    ]
    found = [str(finding) for finding in judge(FILE, other)]

    assert any("no test used create, patch on configmaps" in each for each in found)
    assert any("no test used the name chart" in each for each in found)


def test_resources_that_are_used_differently_get_rules_of_their_own(tmp_path: Path) -> None:
    """A rule for two resources is split when not all its verbs were used on both."""
    both = FILE.replace("[namespaces]", "[namespaces, secrets]")
    uses = [*ALL, Use("demo", "", "secrets", "get", "token")]
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "rights.yaml").write_text(both)

    (found,) = judge_all(Used(set(uses)), tmp_path)
    assert "knative/demo/rights.yaml, line 9" in found
    assert "list, patch on secrets" in found
    assert rewrite_all(Used(set(uses)), tmp_path) == [tmp_path / "demo" / "rights.yaml"]
    assert judge_all(Used(set(uses)), tmp_path) == []
    assert "  # Names come from projects.\n  - apiGroups" in (tmp_path / "demo" / "rights.yaml").read_text()
    assert rewrite_all(Used(set(uses)), tmp_path) == []


def test_what_was_used_survives_being_stored() -> None:
    """What a test run leaves for `make rights` is what it found."""
    used = Used(set(ALL), {Use("demo", "", "secrets", "get", "token")})

    assert Used.of(used.document()) == used


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def probe(control_plane: ControlPlane, admin: Api, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """The kubeconfig of a service account in the place of functions, which may do some things with ConfigMaps."""
    name = f"probe-{secrets.token_hex(3)}"
    role = f"tenantry-{name}"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create", "patch"]}
    subjects = [account(name, SYSTEM_NAMESPACE)]
    await admin.apply(NAMESPACE, obj(NAMESPACE, SYSTEM_NAMESPACE))
    await admin.apply(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, name, SYSTEM_NAMESPACE))
    await admin.apply(CLUSTER_ROLE, obj(CLUSTER_ROLE, role, rules=[rule]))
    await admin.apply(CLUSTER_ROLE_BINDING, obj(CLUSTER_ROLE_BINDING, role, roleRef=cluster_role(role), subjects=subjects))
    identity = Identity(admin, name, tmp_path_factory.mktemp("probe"), control_plane.kubeconfig, lambda _: None)
    yield await identity.open()
    await identity.close()
    await admin.delete(CLUSTER_ROLE_BINDING, role)
    await admin.delete(CLUSTER_ROLE, role)
    await admin.delete(SERVICE_ACCOUNT, name, SYSTEM_NAMESPACE)


async def test_the_audit_log_tells_what_rbac_was_asked(probe: Path, audit_log: AuditLog) -> None:
    """From real requests: an apply that creates needs create and patch, one that changes only patch, a list by name its name."""
    function = probe.stem
    async with await Api.connect(field_manager=f"tenantry-{function}", kubeconfig=probe) as api:
        await api.list(CONFIG_MAP, field_selector="metadata.name=one")
        await api.get(CONFIG_MAP, "absent", SYSTEM_NAMESPACE)
        stored = await api.apply(CONFIG_MAP, obj(CONFIG_MAP, "one", SYSTEM_NAMESPACE))
        with pytest.raises(ConflictError):
            await api.apply(CONFIG_MAP, obj(CONFIG_MAP, "one", SYSTEM_NAMESPACE, metadata={"resourceVersion": "1"}))
        with pytest.raises(Forbidden):
            await api.delete(CONFIG_MAP, "one", SYSTEM_NAMESPACE, uid=stored["metadata"]["uid"])
        with pytest.raises(Forbidden):
            await api.get(SECRET, "absent", SYSTEM_NAMESPACE)
    async with await Api.connect(field_manager="tests-somebody", kubeconfig=probe) as api:
        await api.create(CONFIG_MAP, obj(CONFIG_MAP, "two", SYSTEM_NAMESPACE))
    used = audit_log.read()

    assert {use for use in used.allowed if use.function == function} == {
        Use(function, "", "configmaps", "list", "one"),
        Use(function, "", "configmaps", "get", "absent"),
        Use(function, "", "configmaps", "patch", "one"),
        Use(function, "", "configmaps", "create", "one"),
    }
    assert {use for use in used.denied if use.function == function} == {
        Use(function, "", "configmaps", "delete", "one"),
        Use(function, "", "secrets", "get", "absent"),
    }


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "several"])
def test_a_whole_run_fails_over_a_right_that_no_test_used(workers: list[str], tmp_path: Path) -> None:
    """A whole run of tests that use no right at all fails, though all its tests pass, and names what is unused."""
    helpers = Path(__file__).parents[1] / "cluster"  # of tests/conftest.py
    (tmp_path / "pytest.ini").write_text(f"[pytest]\ntestpaths = .\npythonpath = {helpers}\n")
    (tmp_path / "conftest.py").write_text((Path(__file__).parents[1] / "conftest.py").read_text())
    (tmp_path / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cloudcoil", "-p", "tenantry.testing.plugin", *workers]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False)

    assert "1 passed" in ended.stdout, ended.stdout
    assert ended.returncode == 1, ended.stdout
    assert "knative/namespace-registration/rights.yaml" in ended.stdout
    assert "no test used" in ended.stdout
