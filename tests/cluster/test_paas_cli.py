"""``tenantry paas``, as a process of its own: what a Paas comes to, and manifests without a cluster (section 4.24)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import upping
import yaml
from paasing import Paasing, example, make_roles, paas_name
from people import FUNCTION
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import NAMESPACE
from tenantry.model.names import ADOPT
from tenantry.model.paas.names import MANAGED_BY_PAAS, PAAS_NS
from tenantry.testing.objects import obj

tenantry = partial(upping.tenantry, within=30)
EXAMPLE = Path(__file__).parents[2] / "docs/examples/paas.yaml"
GROUP = "cpet.belastingdienst.nl"
TABLE = {
    "paas-admin": ["us: admin"],
    "paas-alert-routing-edit": ["us: admin", "us: edit"],
    "paas-edit": ["us: edit"],
    "paas-monitoring-edit": ["us: admin", "us: edit"],
    "paas-view": ["them: view", "us: view", "others: default"],
}
"""The bindings of the example, and the mappings that each comes from (2.9)."""


# -- without a cluster -----------------------------------------------------------------------------------------------


pytestmark = LEFT_TO_MAKE_WHOLE


@pytest.mark.check("p-198")
async def test_convert_gives_what_upstream_s_conversion_gives(tmp_path: Path) -> None:
    """The example to v1alpha2: a map, what is enabled only; and back: a list, enabled: true, git fields."""
    document = next(each for each in yaml.safe_load_all(EXAMPLE.read_text()) if each["kind"] == "Paas")
    git = {"gitUrl": "ssh://git/x", "gitRevision": "main", "gitPath": "."}
    document["spec"]["capabilities"] |= {"off": {"enabled": False}, "app": {"enabled": True, **git, "custom_fields": {"a": "b"}}}
    file = tmp_path / "old.yaml"
    file.write_text(yaml.safe_dump(document))

    code, output, errors = await tenantry("paas", "convert", "--to", "v1alpha2", str(file))
    assert (code, errors) == (0, "")
    new = yaml.safe_load(output)
    fields = {"a": "b", "git_url": "ssh://git/x", "git_revision": "main", "git_path": "."}
    assert new == {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "Paas",
        "metadata": {"name": "my-paas"},
        "spec": {
            "requestor": "my-team",
            "quota": {"limits.cpu": "40"},
            "groups": document["spec"]["groups"],
            "namespaces": {"cicd": {}, "test": {}, "prod": {}},
            "capabilities": {"argocd": {}, "app": {"custom_fields": fields}},
        },
    }

    file.write_text(output)
    code, output, errors = await tenantry("paas", "convert", "--to", "v1alpha1", str(file), "-o", "json")
    assert (code, errors) == (0, "")
    back = json.loads(output)
    assert back["apiVersion"] == f"{GROUP}/v1alpha1"
    capabilities = {"argocd": {"enabled": True}, "app": {"enabled": True, **git, "custom_fields": fields}}
    expected = {**document["spec"], "namespaces": ["cicd", "prod", "test"], "capabilities": capabilities}
    assert back["spec"] == expected


@pytest.mark.check("p-199")
async def test_convert_refuses_what_would_widen_rights(tmp_path: Path) -> None:
    """Groups of one namespace in v1alpha1: exit code 1, the namespaces are named, and nothing is printed."""
    spec = {"quota": {}, "groups": {"us": {}}, "namespaces": {"a": {"groups": ["us"]}, "b": {}, "c": {"groups": ["us"]}}}
    file = tmp_path / "new.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": f"{GROUP}/v1alpha2", "kind": "Paas", "metadata": {"name": "p"}, "spec": spec}))
    code, output, errors = await tenantry("paas", "convert", "--to", "v1alpha1", str(file))
    assert (code, output) == (1, "")
    assert "spec.namespaces a, c" in errors
    assert "Traceback" not in errors


async def test_check_says_what_would_be_refused(tmp_path: Path) -> None:
    """p-196, but for regular expressions: the example is accepted; a folder with a mistake in it ends with exit code 1."""
    code, output, _ = await tenantry("paas", "check", str(EXAMPLE))
    assert code == 0
    assert "warning: spec.groups[others].users" in output
    (tmp_path / "a.yaml").write_text(EXAMPLE.read_text())
    bad = {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "Paas",
        "metadata": {"name": "p"},
        "spec": {"quota": {}, "namespaces": ["Test"]},
    }
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(bad))
    code, output, _ = await tenantry("paas", "check", str(tmp_path))
    assert code == 1
    assert "Paas p: spec.namespaces[Test]" in output
    code, output, _ = await tenantry("paas", "check", str(tmp_path), "-o", "json")
    assert code == 1
    assert [each["document"] for each in json.loads(output) if each["refused"]] == ["Paas p"]


# -- with one --------------------------------------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def running(admin: Api, flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """The functions that make namespaces and rights on plain Kubernetes, with the configuration of the checks."""
    started = await flawlessly({}, functions=[FUNCTION, "rbac-aggregation", "scope-binding"])
    await make_roles(admin)
    await Paasing(admin).config()
    return started


@pytest.fixture
def paasing(running: Knative, admin: Api) -> Paasing:
    """The administrators and authors."""
    del running
    return Paasing(admin)


async def run(plane: ControlPlane, *arguments: str) -> str:
    """The output of the command against the cluster."""
    code, output, errors = await tenantry("paas", *arguments, "--kubeconfig", str(plane.kubeconfig))
    assert (code, errors) == (0, ""), errors
    return output


@pytest.mark.check("p-197")
async def test_show_says_what_a_paas_comes_to(paasing: Paasing, control_plane: ControlPlane) -> None:
    """The table of 2.9 for the example, in every namespace and in that of a PaasNS; who asked, quotas, and problems."""
    name = paas_name()
    await paasing.paas(name, **example())
    home = await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd")
    await paasing.paas_ns(f"{name}-argocd", "adminonly", groups=["us"])
    await paasing.until(PAAS_NS, "adminonly", f"{name}-argocd", _is_ready)
    for namespace in home:
        await paasing.bound(namespace, {each: sorted(_subject(name, text) for text in _keys(TABLE[each])) for each in TABLE})
    await paasing.bound(f"{name}-adminonly", {each: [f"{name}-us"] for each in TABLE})
    await paasing.says(name, "Warnings", "QueryAndUsers")

    found: dict[str, Any] = json.loads(await run(control_plane, "show", name, "-o", "json"))
    asked = {each["name"].removeprefix(f"{name}-"): (each["askedBy"], each["state"]) for each in found["namespaces"]}
    assert asked == {
        "adminonly": (f"PaasNS {name}-argocd/adminonly", "there"),
        "argocd": ("capability argocd", "there"),
        **dict.fromkeys(("cicd", "prod", "test"), ("spec.namespaces", "there")),
    }
    for suffix in ("cicd", "prod", "test", "argocd"):
        rights = {each["binding"]: each for each in found["rights"] if each["namespace"] == f"{name}-{suffix}"}
        assert {binding: sorted(each["from"]) for binding, each in rights.items()} == {
            binding: sorted(texts) for binding, texts in TABLE.items()
        }
        assert rights["paas-view"]["subjects"] == sorted(["others", f"{name}-them", f"{name}-us"])
        assert {each["state"] for each in rights.values()} == {"there"}
    only = {each["binding"]: each["subjects"] for each in found["rights"] if each["namespace"] == f"{name}-adminonly"}
    assert only == {binding: [f"{name}-us"] for binding in TABLE}
    groups = {each["key"]: (each["subject"], each["query"], list(each["roles"])) for each in found["groups"]}
    assert groups == {
        "us": (f"{name}-us", "", ["admin", "edit", "view"]),
        "them": (f"{name}-them", "", ["view"]),
        "others": ("others", "CN=others,..", ["default"]),
    }
    shares = {each["name"]: each["resources"]["limits.cpu"]["hard"] for each in found["quotas"]}
    assert shares == {
        f"ResourceQuota {name}-adminonly/paas-quota": "10",
        f"ResourceQuota {name}-argocd/paas-quota": "8",
        **dict.fromkeys((f"ResourceQuota {name}-{suffix}/paas-quota" for suffix in ("cicd", "prod", "test")), "10"),
    }
    (problem,) = [each for each in found["problems"] if each["on"] == f"Paas {name}"]
    assert "others" in problem["message"]

    output = await run(control_plane, "show", name)
    assert f"Paas {name}, requested by my-team" in output
    assert f"Rights in {name}-argocd, {name}-cicd, {name}-prod, {name}-test" in output
    assert "\x1b" not in output


def _is_ready(found: dict[str, Any]) -> bool:
    return any(
        each["type"] == "Ready" and each["status"] == "True" for each in (found.get("status") or {}).get("conditions") or ()
    )


def _keys(texts: list[str]) -> set[str]:
    return {text.partition(":")[0] for text in texts}


def _subject(paas: str, key: str) -> str:
    return key if key == "others" else f"{paas}-{key}"


async def test_adopt_lists_and_hands_over(paasing: Paasing, control_plane: ControlPlane) -> None:
    """Namespaces with the label and without proof, of a Paas that has lost them; without --yes nothing is written."""
    name = paas_name()
    labelled = obj(NAMESPACE, f"{name}-old", labels={MANAGED_BY_PAAS: name})
    await paasing.admin.create(NAMESPACE, labelled)
    await paasing.paas(name, namespaces={"old": {}, "new": {}})
    await paasing.until(NAMESPACE, f"{name}-new", "", lambda found: True)
    assert f"Namespace {name}-old can be handed over" in await run(control_plane, "adopt", name)
    assert ADOPT not in ((await paasing.get(NAMESPACE, f"{name}-old"))["metadata"].get("annotations") or {})
    assert f"Namespace {name}-old is handed over" in await run(control_plane, "adopt", name, "--yes")
    await paasing.ready(name)
    assert "is its own" in await run(control_plane, "adopt", name)


async def test_a_paas_that_is_not_there(running: Knative, control_plane: ControlPlane) -> None:
    """One line, and exit code 1."""
    del running
    code, output, errors = await tenantry("paas", "show", "nobody", "--kubeconfig", str(control_plane.kubeconfig))
    assert (code, output) == (1, "")
    assert "there is no Paas nobody" in errors
