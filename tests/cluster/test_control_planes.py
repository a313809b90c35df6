"""The control plane that a module of tests gets holds nothing of what another module made."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.control_plane.flags import ETCD_SOCKET
from tenantry.local.install import install
from tenantry.model.config import Config
from tenantry.model.kinds import (
    ADMISSION_POLICY_BINDING,
    CLUSTER_ROLE,
    CONFIG_MAP,
    HELM_CHART,
    NAMESPACE,
    ROLE,
    SERVICE_ACCOUNT,
)
from tenantry.testing.awaiting import eventually
from tenantry.testing.etcd import Etcd
from tenantry.testing.objects import obj
from tenantry.testing.planes import ControlPlanes

BOOTSTRAP = ("system:controller:bootstrap-signer", "kube-public")


@pytest.fixture
def planes() -> Iterator[ControlPlanes]:
    """A pool that nobody has used: in a used one a control plane has kept policies, which an installation applies anew."""
    with ControlPlanes() as made:
        yield made


def held(plane: ControlPlane) -> dict[str, tuple[str, str]]:
    """What its etcd holds."""
    with closing(Etcd(plane.data_dir / ETCD_SOCKET)) as etcd:
        return etcd.values()


async def test_a_control_plane_is_put_back(planes: ControlPlanes) -> None:
    """What was made is gone, what was changed or deleted is as before; the API server and the controllers say the same."""
    plane = await asyncio.to_thread(planes.take)
    before = await asyncio.to_thread(held, plane)
    async with await Api.connect(field_manager="people", kubeconfig=plane.kubeconfig) as admin:
        await install(admin, ["namespace-registration", "release-provisioning"], Config(), lambda _: None)
        await admin.apply(NAMESPACE, obj(NAMESPACE, "used"))
        await admin.apply(HELM_CHART, obj(HELM_CHART, "used", "used", spec={"chart": "used"}))
        await admin.apply(CLUSTER_ROLE, obj(CLUSTER_ROLE, "edit", labels={"used": "true"}))
        await admin.delete(ROLE, *BOOTSTRAP)
        policies = {each["spec"]["policyName"] for each in (await admin.list(ADMISSION_POLICY_BINDING)).items}

    await asyncio.to_thread(planes.give_back, plane)
    assert policies >= {"tenantry-fence", "tenantry-guard-records"}
    after = await asyncio.to_thread(held, plane)
    assert {key: value for key, (_, value) in after.items() if key in before} == {
        key: value for key, (_, value) in before.items()
    }

    again = await asyncio.to_thread(planes.take)
    try:
        assert again is plane
        async with await Api.connect(field_manager="people", kubeconfig=plane.kubeconfig) as admin:
            assert await admin.get(NAMESPACE, "used") is None
            assert "used" not in ((await admin.get(CLUSTER_ROLE, "edit")) or {})["metadata"]["labels"]
            assert await admin.get(ROLE, *BOOTSTRAP)
            assert not await admin.served(HELM_CHART.api_version, HELM_CHART.kind, again=True)
            bindings = (await admin.list(ADMISSION_POLICY_BINDING)).items
            assert {each["spec"]["validationActions"][0] for each in bindings} == {"Audit"}, "no policy is in force"
            await admin.apply(NAMESPACE, obj(NAMESPACE, "used"))

            async def populated() -> bool:
                found = [(SERVICE_ACCOUNT, "default"), (CONFIG_MAP, "kube-root-ca.crt")]
                return all([await admin.get(kind, name, "used") for kind, name in found])

            await eventually(populated)
    finally:
        await asyncio.to_thread(planes.give_back, again)
