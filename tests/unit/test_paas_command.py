"""What the command ``tenantry paas`` prints: manifests in another version, and what a Paas comes to."""

from __future__ import annotations

from typing import Any

import pytest

from namespace_registration.paas_converted import NotConvertible, converted, is_convertible
from namespace_registration.paas_shown import Read, described
from tenantry.model.kinds import Object, object_of
from tenantry.model.paas.config import config_of
from tenantry.model.paas.declared import paas_ns_of, paas_of
from tenantry.model.paas.names import ASKED_BY, PAAS, PAAS_CONFIG, PAAS_NS, PAAS_UID

GROUP = "cpet.belastingdienst.nl"
OLD: Object = {
    "apiVersion": f"{GROUP}/v1alpha1",
    "kind": "Paas",
    "metadata": {"name": "my-paas"},
    "spec": {
        "requestor": "my-team",
        "quota": {"limits.cpu": "40"},
        "groups": {
            "us": {"users": ["me", "you"], "roles": ["admin", "edit", "view"]},
            "them": {"users": ["friend"], "roles": ["view"]},
            "others": {"query": "CN=others,..", "users": ["friend"]},
        },
        "namespaces": ["cicd", "prod", "test"],
        "capabilities": {
            "argocd": {"enabled": True, "gitUrl": "ssh://git", "gitPath": "p", "custom_fields": {"x": "1"}},
            "off": {"enabled": False},
            "silent": {},
        },
        "sshSecrets": {"ssh://git": "c2VjcmV0"},
    },
}
NEW_CAPABILITY = {"custom_fields": {"x": "1", "git_url": "ssh://git", "git_path": "p"}}


def spec(document: Object, version: str) -> Object:
    """The converted spec."""
    made = converted(document, version)
    assert made["apiVersion"] == f"{GROUP}/{version}"
    found: Object = made["spec"]
    return found


def of_version(version: str, **fields: Any) -> Object:
    """A Paas in a version."""
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Paas", "metadata": {"name": "p"}, "spec": fields}


# -- convert ---------------------------------------------------------------------------------------------------------


def test_a_list_becomes_a_map_and_only_what_is_enabled_stays() -> None:
    """p-198: what is off, or does not say so, has no place in v1alpha2, where it would be on."""
    found = spec(OLD, "v1alpha2")
    assert found["namespaces"] == {"cicd": {}, "prod": {}, "test": {}}
    assert found["capabilities"] == {"argocd": NEW_CAPABILITY}
    assert found["secrets"] == {"ssh://git": "c2VjcmV0"}
    assert found["groups"] == OLD["spec"]["groups"]
    assert (found["requestor"], found["quota"]) == ("my-team", {"limits.cpu": "40"})
    assert list(found) == ["requestor", "quota", "groups", "namespaces", "capabilities", "secrets"]


def test_and_back() -> None:
    """p-198: enabled is written, git fields are there beside the custom fields that they were."""
    found = spec(converted(OLD, "v1alpha2"), "v1alpha1")
    assert found["namespaces"] == ["cicd", "prod", "test"]
    assert found["capabilities"] == {"argocd": {"enabled": True, "gitUrl": "ssh://git", "gitPath": "p", **NEW_CAPABILITY}}
    assert found["sshSecrets"] == {"ssh://git": "c2VjcmV0"}
    assert "secrets" not in found


def test_either_shape_in_either_version_is_understood() -> None:
    """1.6: as our CRDs store it; the version says what a capability is that does not say so."""
    mixed = of_version("v1alpha1", namespaces={"b": None, "a": {}}, capabilities={"x": {"enabled": True}, "y": None})
    assert spec(mixed, "v1alpha1")["namespaces"] == ["a", "b"]
    assert spec(mixed, "v1alpha1")["capabilities"] == {"x": {"enabled": True}, "y": {"enabled": False}}
    assert spec(of_version("v1alpha2", capabilities={"x": {}, "y": {"enabled": False}}), "v1alpha2")["capabilities"] == {"x": {}}
    assert spec(of_version("v1alpha2", namespaces=["a"]), "v1alpha2")["namespaces"] == {"a": {}}
    assert spec(of_version("v1alpha2"), "v1alpha1") == {}


def test_groups_of_one_namespace_are_never_lost() -> None:
    """p-199: it would widen rights; without them it can be said."""
    with pytest.raises(NotConvertible, match=r"Paas p: spec\.namespaces a, c: .*v1alpha1"):
        converted(of_version("v1alpha2", namespaces={"c": {"groups": ["us"]}, "a": {"groups": ["us"]}, "b": {}}), "v1alpha1")
    assert spec(of_version("v1alpha2", namespaces={"b": {"groups": []}}), "v1alpha1")["namespaces"] == ["b"]
    kept = of_version("v1alpha2", namespaces={"a": {"groups": ["us"]}})
    assert spec(kept, "v1alpha2") == kept["spec"]


def test_a_paas_ns_says_its_paas_in_v1alpha1() -> None:
    """Which asks for it; v1alpha2 keeps it."""
    document = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "PaasNS", "metadata": {"name": "x", "namespace": "p-a"}}
    told = {**document, "spec": {"paas": "p", "groups": ["us"], "sshSecrets": {"u": "s"}}, "status": {}}
    assert converted(told, "v1alpha2") == {
        **document,
        "apiVersion": f"{GROUP}/v1alpha2",
        "spec": {"paas": "p", "groups": ["us"], "secrets": {"u": "s"}},
    }
    with pytest.raises(NotConvertible, match=r"spec\.paas"):
        converted({**document, "apiVersion": f"{GROUP}/v1alpha2", "spec": {}}, "v1alpha1")


def test_other_documents_are_none_of_its_business() -> None:
    """A PaasConfig has the same fields in both versions."""
    assert not is_convertible({"apiVersion": "v1", "kind": "Namespace"})
    assert not is_convertible({"apiVersion": f"{GROUP}/v1", "kind": "Paas"})
    assert not is_convertible("text")
    config = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "PaasConfig", "spec": {"argopermissions": {"header": "x"}}}
    assert is_convertible(config)
    assert converted(config, "v1alpha2") == {**config, "apiVersion": f"{GROUP}/v1alpha2"}


# -- show ------------------------------------------------------------------------------------------------------------

CONFIG = config_of(
    object_of(
        PAAS_CONFIG,
        {"name": "c"},
        spec={"rolemappings": {"default": ["view"], "edit": ["edit", "monitoring-edit"], "admin": ["admin", "monitoring-edit"]}},
    )
)
OWNER = paas_of(
    object_of(
        PAAS,
        {"name": "p", "uid": "u"},
        spec={
            "requestor": "team",
            "groups": {
                "us": {"users": ["me"], "roles": ["admin", "edit"]},
                "others": {"query": "CN=o,.."},
                "bad": {"query": "CN="},
            },
            "namespaces": {"a": {}, "gone": {}},
            "capabilities": {"argocd": {"enabled": True}},
        },
        status={
            "conditions": [
                {"type": "Ready", "status": "False", "reason": "InvalidGroup", "message": "group bad"},
                {"type": "HasErrors", "status": "True", "reason": "InvalidGroup", "message": "group bad"},
                {"type": "Warnings", "status": "False", "reason": "Reconciling", "message": "none"},
            ]
        },
    )
)


def held(name: str, asked_by: str = "") -> Object:
    """A namespace of the Paas."""
    marks = {PAAS_UID: "u", **({ASKED_BY: asked_by} if asked_by else {})}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": marks}}


def binding(role: str, *subjects: str) -> Object:
    """A RoleBinding of the Paas."""
    return {
        "metadata": {"name": f"paas-{role}", "namespace": "p-a"},
        "roleRef": {"name": role},
        "subjects": [{"kind": "Group", "name": each} for each in subjects],
    }


def shown(**read: Any) -> dict[str, Any]:
    """What is shown of the Paas."""
    names = ("p-a", "p-argocd", "p-left")
    read.setdefault("namespaces", {name: held(name) for name in names} | {"p-x": held("p-x", "p-a/x")})
    live = object_of(PAAS_NS, {"name": "x", "namespace": "p-a", "uid": "x"}, spec={"groups": ["us"]})
    return described(Read(OWNER, CONFIG, asked=(paas_ns_of(live),), **read))


def test_namespaces_say_who_asked_for_them() -> None:
    """p-197: spec, capability, PaasNS; what is missing, and what nobody asks for any more."""
    rows = {each["name"]: (each["askedBy"], each["groups"], each["state"]) for each in shown()["namespaces"]}
    assert rows == {
        "p-a": ("spec.namespaces", ["bad", "others", "us"], "there"),
        "p-argocd": ("capability argocd", ["bad", "others", "us"], "there"),
        "p-gone": ("spec.namespaces", ["bad", "others", "us"], "missing"),
        "p-left": ("nobody", [], "left over"),
        "p-x": ("PaasNS p-a/x", ["us"], "there"),
    }


def test_rights_come_with_their_mappings() -> None:
    """p-197: each subject by its group and role, what is missing, what nobody declares, and what differs."""
    there = {"p-a": [binding("admin", "p-us"), binding("view", "eve", "o"), binding("old", "x")]}
    rows = {each["binding"]: each for each in shown(bindings=there)["rights"] if each["namespace"] == "p-a"}
    assert {name: each["state"] for name, each in rows.items()} == {
        "paas-admin": "there",
        "paas-edit": "missing",
        "paas-monitoring-edit": "missing",
        "paas-old": "not declared",
        "paas-view": "differs",
    }
    assert rows["paas-monitoring-edit"]["from"] == ["us: admin", "us: edit"]
    assert (rows["paas-view"]["from"], rows["paas-view"]["subjects"]) == (["others: default"], ["eve", "o"])
    assert not [each for each in shown()["rights"] if each["namespace"] == "p-left"]


def test_groups_quotas_and_problems() -> None:
    """p-197: subjects by name or query, use, and what is told once."""
    wide = {
        "kind": "ClusterResourceQuota",
        "metadata": {"name": "p"},
        "spec": {"quota": {"hard": {"limits.cpu": "40"}}},
        "status": {"total": {"used": {"limits.cpu": "3"}}},
    }
    share = {
        "kind": "ResourceQuota",
        "metadata": {"name": "paas-quota", "namespace": "p-a"},
        "spec": {"hard": {"pods": 4}},
        "status": {"used": {"pods": "1"}},
    }
    found = shown(quotas=(wide, share))
    groups = {each["key"]: (each["subject"], each["roles"], bool(each["problem"])) for each in found["groups"]}
    assert groups["us"] == ("p-us", {"admin": ["admin", "monitoring-edit"], "edit": ["edit", "monitoring-edit"]}, False)
    assert groups["others"] == ("o", {"default": ["view"]}, False)
    assert groups["bad"][2]
    assert [each["name"] for each in found["quotas"]] == ["ClusterResourceQuota p", "ResourceQuota p-a/paas-quota"]
    assert found["quotas"][0]["resources"] == {"limits.cpu": {"hard": "40", "used": "3"}}
    assert found["quotas"][1]["resources"] == {"pods": {"hard": "4", "used": "1"}}
    assert found["problems"] == [{"on": "Paas p", "reason": "InvalidGroup", "message": "group bad"}]


def test_without_a_configuration_that_is_the_first_problem() -> None:
    """No role is mapped then."""
    found = described(Read(OWNER))
    assert found["problems"][0]["reason"] == "NoPaasConfig"
    assert found["rights"] == []
