"""The RFC's example of onboarding, printed by the commands and applied where the profile multi-tenant is in force (f-144)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from commanding import Command, commanding
from flux_crds import install_flux
from times import LEFT_TO_MAKE_WHOLE, POLICY_S

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, ApiError
from tenantry.local.control_plane import ControlPlane
from tenantry.model.flux.onboarding import GIT_REPOSITORY, KUSTOMIZATION, kustomization
from tenantry.model.kinds import NAMESPACE, ROLE_BINDING, SERVICE_ACCOUNT
from tenantry.testing import eventually

pytestmark = LEFT_TO_MAKE_WHOLE

KINDS = {each.kind: each for each in (NAMESPACE, SERVICE_ACCOUNT, ROLE_BINDING, GIT_REPOSITORY, KUSTOMIZATION)}
PLACE = ("tenant1", "-n", "tenant1")
COMMANDS = (
    ("tenant", "tenant1", "--with-namespace=tenant1", "--style=rfc"),
    (
        *("source", "git", *PLACE, "--url=ssh://git@github.com/org/tenant1", "--branch=main"),
        *("--interval=5m", "--secret-ref=tenant1-git-auth"),
    ),
    (
        *("kustomization", *PLACE, "--source=GitRepository/tenant1", "--path=./", "--prune", "--interval=10m"),
        "--service-account=flux",
    ),
)
RFC = """
---
apiVersion: v1
kind: Namespace
metadata:
  name: tenant1
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: flux
  namespace: tenant1
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: flux
  namespace: tenant1
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: cluster-admin
subjects:
- kind: ServiceAccount
  name: flux
  namespace: tenant1
---
apiVersion: source.toolkit.fluxcd.io/v1beta1
kind: GitRepository
metadata:
  name: tenant1
  namespace: tenant1
spec:
  interval: 5m0s
  ref:
    branch: main
  secretRef:
    name: tenant1-git-auth
  url: ssh://git@github.com/org/tenant1
---
apiVersion: kustomize.toolkit.fluxcd.io/v1beta2
kind: Kustomization
metadata:
  name: tenant1
  namespace: tenant1
spec:
  interval: 10m0s
  path: ./
  prune: true
  serviceAccountName: flux
  sourceRef:
    kind: GitRepository
    name: tenant1
"""
"""The generated manifests in RFC-0003."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def command(control_plane: ControlPlane, identity: Callable[..., Awaitable[Path]], admin: Api) -> Command:
    """The command, where the policies of the profile multi-tenant are in force: a foreign reference is refused."""
    await identity("namespace-registration")
    await install_flux(admin)
    run = commanding(control_plane)
    code, _, errors = await run("profile", "apply", "--security-profile=multi-tenant")
    assert code == 0, errors
    source = {"kind": "GitRepository", "name": "shared", "namespace": "flux-system"}
    foreign = kustomization("foreign", "default", source=source, path="./", prune=True, interval="1m", account="flux")

    async def refused() -> bool:
        try:
            await admin.create(KUSTOMIZATION, foreign, dry_run=True)
        except AdmissionDenied as error:
            return "is not shared with namespace default" in error.message
        except ApiError:
            return False
        return False

    await eventually(refused, within=POLICY_S, what="the policies are in force")
    return run


@pytest.mark.check("f-144")
async def test_the_example_of_the_rfc_is_printed_and_admitted(command: Command, admin: Api) -> None:
    """The five documents but for the versions of Flux' kinds; each is admitted, and stored as it is printed."""
    printed = []
    for options in COMMANDS:
        code, output, errors = await command("create", *options, "--export")
        assert (code, errors) == (0, "")
        printed += list(yaml.safe_load_all(output))
    wanted = list(yaml.safe_load_all(RFC.replace("/v1beta1\n", "/v1\n").replace("/v1beta2\n", "/v1\n")))
    assert printed == [each for each in wanted if each is not None]
    for each in printed:
        stored = await admin.apply(KINDS[each["kind"]], each)
        assert stored.get("spec", {}) == {**stored.get("spec", {}), **each.get("spec", {})}
        assert stored.get("subjects") == each.get("subjects")
    stored = await admin.get(KUSTOMIZATION, "tenant1", "tenant1")
    assert stored is not None
    assert stored["spec"] == printed[-1]["spec"]
