"""``tenantry profile``, as a process of its own, against a cluster that serves some of Flux' kinds (2.5, 3.4)."""

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
from flux_crds import current, install_flux
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, TENANCY_PROFILE
from tenantry.model.flux.policies import GENERATED
from tenantry.model.flux.policies.parts import LABELS
from tenantry.model.kinds import (
    ADMISSION_POLICY_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CUSTOM_RESOURCE_DEFINITION,
)

pytestmark = [LEFT_TO_MAKE_WHOLE, pytest.mark.no_policies]
tenantry = partial(upping.tenantry, within=60)
IMAGE_POLICY = "references-imagepolicies.image.toolkit.fluxcd.io"
MINE = ",".join(f"{key}={value}" for key, value in LABELS.items())


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def some_kinds(admin: Api, identity: Callable[..., Awaitable[Path]]) -> None:
    """Our CRDs, and of Flux' kinds two."""
    await identity("scope-binding")
    await install_flux(admin, current("Kustomization", "GitRepository"))


async def applied(plane: ControlPlane, *arguments: str) -> list[dict[str, Any]]:
    """What `tenantry profile apply` says that became of objects."""
    command = ["profile", "apply", "--kubeconfig", str(plane.kubeconfig), "-o", "json", *arguments]
    code, output, errors = await tenantry(*command)
    assert (code, errors) == (0, "")
    return list(json.loads(output))


async def test_a_cluster_gets_what_its_profile_and_its_versions_ask_for(
    some_kinds: None, control_plane: ControlPlane, admin: Api
) -> None:
    """Nothing of kinds that are not served; applied again nothing; a new kind by another run; and all of it goes again."""
    plane = control_plane
    kubeconfig = ["--kubeconfig", str(plane.kubeconfig)]
    code, output, errors = await tenantry("profile", "apply", *kubeconfig)
    assert (code, output) == (2, "")
    assert "--security-profile" in errors
    assert len(errors.strip().splitlines()) == 1

    rows = await applied(plane, "--security-profile=multi-tenant")
    assert {each["result"] for each in rows} == {"created"}
    assert [each["kind"] for each in rows[:2]] == ["TenancyProfile", "AccessIndex"]
    names = {each["name"] for each in rows}
    assert "tenantry-references-kustomizations.kustomize.toolkit.fluxcd.io" in names
    assert f"tenantry-{IMAGE_POLICY}" not in names
    assert await admin.get(ACCESS_INDEX, DEFAULT) is not None
    assert {each["result"] for each in await applied(plane)} == {"unchanged"}

    code, output, errors = await tenantry("profile", "export", "--security-profile=multi-tenant", "--part=cluster", *kubeconfig)
    assert (code, errors) == (0, "")
    exported = list(yaml.safe_load_all(output))
    assert [(each["kind"], each["metadata"]["name"]) for each in exported] == [(each["kind"], each["name"]) for each in rows]

    await install_flux(admin, current("ImagePolicy"))
    rows = await applied(plane)
    assert {each["name"] for each in rows if each["result"] == "created"} == {
        f"tenantry-{IMAGE_POLICY}",
        "tenantry-lock-guard-imagepolicies.image.toolkit.fluxcd.io",
    }
    assert {each["result"] for each in rows} == {"created", "unchanged"}

    bound = (await admin.list(ADMISSION_POLICY_BINDING, label_selector=MINE)).items
    assert bound
    rows = await applied(plane, "--security-profile=single-tenant")
    profile = await admin.get(TENANCY_PROFILE, DEFAULT)
    assert profile is not None
    assert profile["spec"]["profile"] == "single-tenant"
    assert {each["result"] for each in rows} == {"updated", "deleted"}
    for kind in GENERATED:
        assert (await admin.list(kind, label_selector=MINE)).items == []
    assert await applied(plane) == []


async def test_an_uninstallation_takes_policies_away_and_then_the_index(
    some_kinds: None, control_plane: ControlPlane, admin: Api
) -> None:
    """With mutations and roles; the policy that keeps the CRD of the index holds nobody up."""
    await applied(control_plane, "--security-profile=multi-tenant")
    command = ["uninstall", "--yes", "--crds", "--kubeconfig", str(control_plane.kubeconfig), "-o", "json"]
    code, output, errors = await upping.tenantry(*command, within=90)
    assert code == 0, output + errors
    for kind in (*GENERATED, CLUSTER_ROLE, CLUSTER_ROLE_BINDING):
        assert (await admin.list(kind, label_selector=MINE)).items == []
    crd = f"{ACCESS_INDEX.plural}.{ACCESS_INDEX.group}"
    code, output_after, errors = await tenantry("profile", "apply", "--kubeconfig", str(control_plane.kubeconfig))
    assert (code, output_after) == (2, "")
    assert "knative/crds" in errors
    assert f"CustomResourceDefinition {crd}" in json.loads(output)["removed"]
    assert await admin.get(CUSTOM_RESOURCE_DEFINITION, crd) is None
