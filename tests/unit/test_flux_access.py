"""The access decision, row by row (2.1)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.model.flux.access import AccessEntries, Asking, NamedObject, decide_access, denial_of, references_of, selects
from tenantry.model.flux.consumers import CONSUMERS, Consumer, Reference
from tenantry.model.flux.names import TENANT_LABEL
from tenantry.model.flux.profile import Profile

APP1 = NamedObject("GitRepository", "dev-team1", "app1")
READ, WRITE, LOCAL = Reference("spec.sourceRef", "read"), Reference("spec.sourceRef", "write"), Reference("spec.x[]", "local")
DEPENDS = Reference("spec.dependsOn[]", "local", "Kustomization")
TWO = Asking("dev-team2", {"team": "two", "kubernetes.io/metadata.name": "dev-team2"})
MULTI = {"profile": "multi-tenant"}
ROWS = {each.resource: each for each in CONSUMERS}


def profile(**spec: Any) -> Profile:
    return Profile.of({"spec": {**MULTI, **spec}})


def index(text: str = "", write: str = "", tenants: dict[str, str] | None = None) -> AccessEntries:
    return AccessEntries({str(APP1): text} if text else {}, {str(APP1): write} if write else {}, tenants or {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "deny"),
        ("*", "allow"),
        ("team=two", "allow"),
        ("team=Two", "deny"),
        ("team=one", "deny"),
        ("env=prod,team=two", "deny"),
        ("team=nine|team=two", "allow"),
        ("kubernetes.io/metadata.name=dev-team2", "allow"),
        ("kubernetes.io/metadata.name=dev-team3", "deny"),
        ("team=", "deny"),
    ],
)
def test_grants_decide(text: str, expected: str) -> None:
    """Rows 5 to 11: no entry, everybody, all pairs of a selector, any selector, exact labels."""
    assert decide_access(READ, APP1, TWO, index(text), profile()) == expected
    assert decide_access(WRITE, APP1, TWO, index(write=text), profile()) == expected
    assert decide_access(WRITE, APP1, TWO, index(text), profile()) == "deny"
    assert decide_access(READ, APP1, TWO, index(write=text), profile()) == "deny"


def test_nothing_is_enforced_without_the_profile() -> None:
    """No profile, single-tenant, or no ACLs of sources; of local references the latter is not the word."""
    for off in (Profile.of(None), Profile.of({"spec": {"profile": "single-tenant"}}), profile(enforceSourceACL=False)):
        assert decide_access(READ, APP1, TWO, None, off) == "allow"
        assert decide_access(WRITE, APP1, TWO, index(), off) == "allow"
    assert decide_access(LOCAL, APP1, TWO, index(), profile(enforceSourceACL=False)) == "deny"
    assert decide_access(LOCAL, APP1, TWO, index(), Profile.of(None)) == "allow"


@pytest.mark.parametrize("reference", [READ, WRITE, LOCAL, DEPENDS])
def test_a_reference_at_home_reads_no_acl(reference: Reference) -> None:
    """Row 1: no namespace, an empty one, or the own; row 2: an exempt namespace, and always ours; also without an index."""
    for named in (APP1._replace(namespace=""), APP1._replace(namespace="dev-team2")):
        assert decide_access(reference, named, TWO, None, profile()) == "allow"
        assert decide_access(reference, named, TWO._replace(labels=None), index("team=nine"), profile()) == "allow"
    for exempt in ("flux-system", "kube-system", "tenantry-system"):
        assert decide_access(reference, APP1, Asking(exempt, None), None, profile()) == "allow"
    assert decide_access(reference, APP1, Asking("tenantry-system", {}), index(), profile(exemptNamespaces=[])) == "allow"
    assert decide_access(reference, APP1, Asking("flux-system", {}), index(), profile(exemptNamespaces=[])) == "deny"


def test_no_grant_opens_what_is_local() -> None:
    """Row 3; of dependsOn only while it is checked."""
    for reference in (LOCAL, DEPENDS):
        assert decide_access(reference, APP1, TWO, index("*", "*"), profile(allowIntraTenant=True)) == "deny"
    assert decide_access(DEPENDS, APP1, TWO, None, profile(checkDependsOn=False)) == "allow"
    assert decide_access(LOCAL, APP1, TWO, None, profile(checkDependsOn=False)) == "deny"


def test_namespaces_of_one_tenant_name_each_others_sources() -> None:
    """Row 4: only with the setting, the same tenant, and a label that is not empty."""
    same = Asking("frontend", {TENANT_LABEL: "a"})
    tenants = {"dev-team1": "a"}
    assert decide_access(READ, APP1, same, index(tenants=tenants), profile(allowIntraTenant=True)) == "allow"
    assert decide_access(READ, APP1, same, index(tenants=tenants), profile()) == "deny"
    assert decide_access(READ, APP1, same, index(tenants={"dev-team1": "b"}), profile(allowIntraTenant=True)) == "deny"
    empty = Asking("frontend", {TENANT_LABEL: ""})
    for labels in (empty, Asking("frontend", {})):
        assert decide_access(READ, APP1, labels, index(tenants={"dev-team1": ""}), profile(allowIntraTenant=True)) == "deny"


def test_what_cannot_be_read_allows_nothing() -> None:
    """Row 13: neither allowed nor denied, but made again."""
    assert decide_access(READ, APP1, TWO._replace(labels=None), index("*"), profile()) == "unknown"
    assert decide_access(READ, APP1, TWO, None, profile()) == "unknown"


def test_a_denial_says_nothing_of_existence() -> None:
    """Field path, what is named, and the namespace; no selector (f-16)."""
    said = denial_of(READ, APP1, TWO)
    assert said == "spec.sourceRef: GitRepository/dev-team1/app1 is not shared with namespace dev-team2"
    assert denial_of(READ, APP1._replace(name="nope"), TWO) == said.replace("app1", "nope")
    assert denial_of(DEPENDS, APP1, TWO).startswith("spec.dependsOn: GitRepository/dev-team1/app1 is in another namespace")


@pytest.mark.parametrize(
    ("resource", "spec", "expected"),
    [
        ("kustomizations", {"sourceRef": {"kind": "Bucket", "name": "b"}}, ["Bucket//b"]),
        (
            "kustomizations",
            {"sourceRef": {"kind": "Bucket", "name": "b", "namespace": "n"}, "dependsOn": [{"name": "a", "namespace": "m"}]},
            ["Bucket/n/b", "Kustomization/m/a"],
        ),
        (
            "helmreleases",
            {"chart": {"spec": {"sourceRef": {"kind": "HelmRepository", "name": "r", "namespace": "n"}}}},
            ["HelmRepository/n/r"],
        ),
        ("helmreleases", {"chartRef": {"kind": "HelmChart", "name": "c", "namespace": "n"}}, ["HelmChart/n/c"]),
        ("imageupdateautomations", {"sourceRef": {"name": "g", "namespace": "n"}}, ["GitRepository/n/g"]),
        ("imagepolicies", {"imageRepositoryRef": {"name": "i", "namespace": "n"}}, ["ImageRepository/n/i"]),
        (
            "artifactgenerators",
            {"sources": [{"kind": "Bucket", "name": "a", "namespace": "n"}, {"kind": "GitRepository", "name": "b"}]},
            ["Bucket/n/a", "GitRepository//b"],
        ),
        ("alerts", {"eventSources": [{"kind": "GitRepository", "name": "*", "namespace": "n"}]}, ["GitRepository/n/*"]),
        ("resourcesetinputproviders", {"selectors": [{"namespace": "*"}]}, ["ExternalArtifact/*/*"]),
        ("kustomizations", {}, []),
        ("kustomizations", {"sourceRef": None, "dependsOn": [None, "a"]}, []),
        ("artifactgenerators", {"sources": {"kind": "Bucket"}}, []),
    ],
)
def test_references_are_found_by_the_rows(resource: str, spec: Any, expected: list[str]) -> None:
    """Of each kind, as its row says; kind where the field has none, and nothing where there is none."""
    assert [str(named) for _, named in references_of({"spec": spec}, ROWS[resource])] == expected


def test_a_reference_inside_a_list() -> None:
    """``spec.inputs[].ref``; without a spec there is none."""
    row = Consumer("example.com", "others", (Reference("spec.inputs[].ref", "read"),), ROWS["alerts"].stop)
    spec = {"inputs": [{"ref": {"kind": "Bucket", "name": "a", "namespace": "n"}}, {"x": 1}]}
    assert [str(named) for _, named in references_of({"spec": spec}, row)] == ["Bucket/n/a"]
    assert not list(references_of({}, row))


TEXTS = st.dictionaries(st.sampled_from(["GitRepository/a/b", "Bucket/a/b", "ImageRepository/c/d"]), st.just("team=two"))


@given(TEXTS, TEXTS, st.dictionaries(st.sampled_from(["n", "m"]), st.just("t")), st.booleans())
def test_the_index_is_read_as_it_is_written(
    read: dict[str, str], write: dict[str, str], tenants: dict[str, str], complete: bool
) -> None:
    """What is empty is left out, and nothing but true is complete."""
    entries = AccessEntries(read, write, tenants, ("team",) if read or write else (), complete)
    spec = entries.spec()
    assert AccessEntries.of({"spec": spec}) == entries
    assert all(value not in ({}, []) for value in spec.values())
    assert entries.granted == {*read, *write}
    assert AccessEntries.of({}) == AccessEntries()


def test_what_is_no_text_in_the_index_grants_nothing_and_is_seen() -> None:
    """Who writes the index finds it otherwise than as it is to be."""
    stored = {"spec": {"read": {str(APP1): ["*"], "Bucket/a/b": "team=two"}, "write": {str(APP1): 5}, "complete": True}}
    entries = AccessEntries.of(stored)
    assert entries == AccessEntries({str(APP1): "", "Bucket/a/b": "team=two"}, {str(APP1): ""}, complete=True)
    assert not selects(entries.read[str(APP1)], {"": "", "team": "two"})
    assert selects(entries.read["Bucket/a/b"], {"team": "two"})
