"""Manifests and lists follow from the functions' descriptors."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import manifests
import pytest
import yaml

from tenantry.local.deployment import deployment_folder
from tenantry.local.described import described, first_rights, unshipped
from tenantry.local.manifest_files import installation, kustomizations, rewrite, same, text_of
from tenantry.model.descriptor import Descriptor, Service, Watch
from tenantry.model.kinds import CONFIG_MAP, SECRET
from tenantry.serving.installed import GROUP, descriptors, services_of

PROJECT = tomllib.loads((manifests.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = {name.replace("-", "_") for name in descriptors()}


def test_the_files_say_what_the_descriptors_want() -> None:
    """`make manifests` would change nothing."""
    assert rewrite(descriptors().values(), deployment_folder("knative").parent, verify=True) == []
    assert unshipped() == []


def test_a_change_of_a_descriptor_changes_its_documents_alone(tmp_path: Path) -> None:
    """Other documents of the file stay to the letter; above the changed one its comment stays."""
    function = descriptors()["rbac-aggregation"]
    before = (manifests.ROOT / "triggers/rbac-aggregation.yaml").read_text(encoding="utf-8")
    (tmp_path / "triggers").mkdir()
    (tmp_path / "triggers/rbac-aggregation.yaml").write_text(before)
    rewrite([replace(function, sweep="* * * * *")], tmp_path)
    after = (tmp_path / "triggers/rbac-aggregation.yaml").read_text(encoding="utf-8")

    one, other = before.split("---\n"), after.split("---\n")
    changed = [number for number, (was, now) in enumerate(zip(one, other, strict=True)) if was != now]
    assert [yaml.safe_load(one[number])["kind"] for number in changed] == ["PingSource"]
    (number,) = changed
    assert yaml.safe_load(other[number])["spec"]["schedule"] == "* * * * *"
    assert [line for line in other[number].splitlines() if line.startswith("#")] == [
        line for line in one[number].splitlines() if line.startswith("#")
    ]


def test_what_is_not_wanted_any_more_goes_and_what_is_new_comes() -> None:
    """Documents are found by kind and name."""
    one, other = ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}} for name in "xy")
    text = text_of([one], "")
    assert text_of([one, other], f"# about x\n{text}") == f"# about x\n{text}---\n{text_of([other], '')}"
    assert text_of([other], f"# about x\n{text}") == text_of([other], "")


def test_the_same_rights_and_json_in_another_form_are_the_same() -> None:
    """Rules in any grouping, and JSON however it is written; nothing else."""
    grouped = {"rules": [{"apiGroups": [""], "resources": ["a", "b"], "verbs": ["get"]}]}
    single = {"rules": [{"apiGroups": [""], "resources": [name], "verbs": ["get"]} for name in "ba"]}
    assert same(grouped, single)
    assert not same(grouped, {"rules": single["rules"][:1]})
    assert same({"env": [{"value": '{"a": 1}'}]}, {"env": [{"value": '{"a":1}'}]})
    assert not same({"filters": [1, 2]}, {"filters": [2, 1]})


def test_first_rights_are_those_that_a_descriptor_asks_for() -> None:
    """What is read and what is written, and Events."""
    role, binding = first_rights(Service("x", "x", reads=(SECRET,), writes=(CONFIG_MAP,)))
    rules = {(tuple(rule["resources"]), tuple(rule["verbs"])) for rule in role["rules"]}
    assert rules == {
        (("secrets",), ("get", "list")),
        (("configmaps",), ("get", "list", "create", "patch", "delete")),
        (("events",), ("create",)),
    }
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "x", "namespace": "tenantry-system"}]


def test_a_service_without_sources_of_its_own_has_no_account_for_them() -> None:
    """It hears those of others; what has rights of its own is not written here."""
    wanted = described([Descriptor((Service("x", "x"),), "* * * * *")])
    assert "knative/base/source-rights.yaml" not in wanted
    assert {document["kind"] for document in wanted["triggers/x.yaml"]} == {"PingSource", "Trigger"}
    accounts = {each["metadata"]["name"] for each in described(descriptors().values())["knative/base/source-rights.yaml"]}
    assert "tenantry-lock-source" not in accounts
    assert Watch(CONFIG_MAP).selector == ""


@pytest.mark.parametrize(
    ("named", "where"),
    [
        ({Path(each).name for each in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]}, "the wheel"),
        (set(PROJECT["tool"]["mypy"]["packages"]), "mypy"),
        (set(PROJECT["tool"]["coverage"]["run"]["source_pkgs"]), "coverage"),
        (set(PROJECT["tool"]["importlinter"]["root_packages"]), "importlinter"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_lists_of_packages_have_every_function(named: set[str], where: str) -> None:
    """What a tool looks at, or a wheel holds."""
    assert named == {"tenantry", *PACKAGES}, where


def test_functions_are_found_by_entry_points() -> None:
    """Each package of `functions/` has one."""
    assert set(PROJECT["project"]["entry-points"][GROUP]) == set(descriptors())
    assert {path.parent.name for path in (manifests.ROOT / "functions").glob("*/__init__.py")} == PACKAGES


@pytest.mark.parametrize("overlay", ["knative", "knative/overlays/deployment", "knative/overlays/kafka"])
def test_installations_have_every_service(overlay: str) -> None:
    """Each is in the kustomization."""
    resources = yaml.safe_load((manifests.ROOT / overlay / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    assert {each.name for each in services_of(descriptors())} <= {Path(each).name for each in resources}
