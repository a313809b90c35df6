"""Manifests and lists follow from the functions' descriptors."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import manifests
import pytest
import yaml

from tenantry import __version__
from tenantry.local.deployment import deployment_folder
from tenantry.local.described import described, first_rights, unshipped
from tenantry.local.fences import fence_files
from tenantry.local.manifest_files import installation, kustomizations, rewrite, same, text_of
from tenantry.model.descriptor import Descriptor, Service, Watch
from tenantry.model.kinds import CONFIG_MAP, SECRET
from tenantry.serving.installed import GROUP, descriptors, services_of
from tenantry.testing.fences import entries

PROJECT = tomllib.loads((manifests.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FUNCTIONS = manifests.ROOT / "functions"
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


def lists() -> dict[str, tuple[set[str], set[str]]]:
    """The lists that are written by hand: what each has, and what it must have."""
    tool = PROJECT["tool"]
    imports = tool["importlinter"]
    contracts = {each["name"]: set(each.get("source_modules") or each.get("modules") or ()) for each in imports["contracts"]}
    pure = contracts.pop(next(name for name in contracts if name.startswith("Plans are pure")))
    about_functions = {name: found for name, found in contracts.items() if found and found != {"tenantry.model"}}
    packages = {"tenantry", *PACKAGES}
    return {
        "entry points": (set(PROJECT["project"]["entry-points"][GROUP]), set(descriptors())),
        "packages of the wheel": ({Path(each).name for each in tool["hatch"]["build"]["targets"]["wheel"]["packages"]}, packages),
        "packages of mypy": (set(tool["mypy"]["packages"]), packages),
        "packages of coverage": (set(tool["coverage"]["run"]["source_pkgs"]), packages),
        "packages of import contracts": (set(imports["root_packages"]), packages),
        "Plans are pure": (pure, {f"*.*.{name}" for name in ("seen", "plan", "report")}),
        **{name: (found, PACKAGES) for name, found in about_functions.items()},
        "folders of functions": ({path.parent.name for path in FUNCTIONS.glob("*/__init__.py")}, PACKAGES),
        "read-me files": ({path.parent.name for path in FUNCTIONS.glob("*/README.md")}, PACKAGES),
        "pages": ({path.stem for path in (manifests.ROOT / "docs").glob("*.md")}, set(descriptors())),
        "fences": (set(fence_files()), {each.name for each in services_of(descriptors())}),
        **{
            f"{path.parent.relative_to(manifests.ROOT)}/kustomization.yaml": (
                {Path(each).name for each in yaml.safe_load(path.read_text(encoding="utf-8"))["resources"]},
                {each.name for each in services_of(descriptors())},
            )
            for path in (manifests.ROOT / "knative").glob("overlays/*/kustomization.yaml")
        },
    }


@pytest.mark.parametrize("name", lists())
def test_lists_have_every_function(name: str) -> None:
    """What is not written by `make manifests` names each function, each Service, or each sort of pure module."""
    found, wanted = lists()[name]
    assert wanted - found == set(), name


@pytest.mark.parametrize("name", [name for name in lists() if name.startswith(("entry", "packages", "folders"))])
def test_lists_have_no_other_function(name: str) -> None:
    """A function that has gone is in none of them."""
    found, wanted = lists()[name]
    assert found - wanted == set(), name


def test_fences_let_through_the_finalizers_that_descriptors_name() -> None:
    """Each Service may write its own, and else only take off those of upstream; `make rights` wrote there what tests wrote."""
    for service in services_of(descriptors()):
        listed = {each.value for each in entries(fence_files()[service.name].read_text()) if each.list == "finalizers"}
        assert {name for name in listed if not name.startswith("wrangler.cattle.io/")} == {
            each.name for each in service.finalizers
        }, service.name


def test_an_installation_has_the_services_in_one_block_and_the_rest_as_it_is() -> None:
    """A new Service comes where the first one was, with its image; a list that names none stays without."""
    text = """# about it
resources:
  - ../../crds
  # functions
  - ../../b
  - ../../dead-letters
  - more.yaml
patches:
  - path: x.yaml
images:
  - name: image.invalid/tenantry/b
    newTag: 0.0.1
"""
    functions = [Descriptor((Service("a", "a"), Service("a-more", "a")), ""), Descriptor((Service("b", "b"),), "")]
    made = yaml.safe_load(installation(text, functions))
    assert made["resources"] == ["../../crds", "../../a", "../../a-more", "../../b", "../../dead-letters", "more.yaml"]
    assert made["images"] == [{"name": f"image.invalid/tenantry/{name}", "newTag": __version__} for name in "ab"]
    assert made["patches"] == [{"path": "x.yaml"}]
    assert [line for line in installation(text, functions).splitlines() if "#" in line] == ["# about it", "  # functions"]
    assert installation("resources:\n  - more.yaml\n", functions) == "resources:\n  - more.yaml\n"


def test_a_folder_lists_its_files_but_the_fence(tmp_path: Path) -> None:
    """What is made, and what is written by hand beside it."""
    (tmp_path / "knative/x").mkdir(parents=True)
    for name in ("people", "fence", "kustomization"):
        (tmp_path / f"knative/x/{name}.yaml").touch()
    (document,) = kustomizations([Descriptor((Service("x", "x"),), "")], ["knative/x/service.yaml", "triggers/x.yaml"], tmp_path)[
        "knative/x/kustomization.yaml"
    ]
    assert document["resources"] == ["people.yaml", "service.yaml"]
    assert document["images"] == [{"name": "image.invalid/tenantry/x", "newTag": __version__}]
