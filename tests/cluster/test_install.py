"""CRDs of somebody else, such as those of K3s and RKE2, are never overwritten (rancher/rancher#46764)."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from times import SERVED_S

from tenantry.api import Api
from tenantry.api.errors import ConflictError
from tenantry.local.control_plane import ControlPlane
from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.install import INSTALL_MANAGER, install
from tenantry.model.config import Config
from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, Object
from tenantry.testing import eventually

NAME = "helmcharts.helm.cattle.io"


@pytest_asyncio.fixture(loop_scope="session")
async def theirs() -> AsyncIterator[tuple[ControlPlane, Object]]:
    """A cluster that brings a HelmChart CRD with labels, columns and a schema of its own."""
    (ours,) = [found for found in documents(deployment_folder("knative") / "crds") if found["metadata"]["name"] == NAME]
    crd = copy.deepcopy(ours)
    crd["metadata"] = {"name": NAME, "labels": {"objectset.rio.cattle.io/hash": "1234"}}
    (version,) = crd["spec"]["versions"]
    version["additionalPrinterColumns"] = [{"name": "Job", "type": "string", "jsonPath": ".status.jobName"}]
    version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    with ControlPlane(ephemeral=True) as plane:
        async with await Api.connect(field_manager="k3s", kubeconfig=plane.kubeconfig) as api:
            await api.create(CUSTOM_RESOURCE_DEFINITION, crd)

            async def established() -> Object:
                found = await api.get(CUSTOM_RESOURCE_DEFINITION, NAME)
                assert found is not None
                conditions = (found.get("status") or {}).get("conditions") or ()
                true = {each["type"] for each in conditions if each["status"] == "True"}
                return found if {"Established", "NamesAccepted"} <= true else {}

            yield plane, await eventually(established, within=SERVED_S, what="the foreign CRD is established")


async def test_a_foreign_crd_is_kept_and_the_installation_says_so(theirs: tuple[ControlPlane, Object]) -> None:
    """Our CRDs are installed around it, it stays as it was to the last field, and kubectl's way of applying ours conflicts."""
    plane, before = theirs
    said: list[str] = []
    async with await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=plane.kubeconfig) as api:
        await install(api, ["release-provisioning"], Config(), said.append)
        first, said[:] = list(said), []
        await install(api, ["release-provisioning"], Config(), said.append)
        after = await api.get(CUSTOM_RESOURCE_DEFINITION, NAME)

        assert after == before
        kept = f"kept CustomResourceDefinition {NAME}: somebody else manages it"
        assert [line for line in first if line.startswith("kept")] == [kept]
        assert any("helmchartconfigs.helm.cattle.io" in line and line.startswith("installed") for line in first)
        assert said == [kept]
        (ours,) = [found for found in documents(deployment_folder("knative") / "crds") if found["metadata"]["name"] == NAME]
        with pytest.raises(ConflictError, match="k3s"):
            await api.apply(CUSTOM_RESOURCE_DEFINITION, ours, force=False)
