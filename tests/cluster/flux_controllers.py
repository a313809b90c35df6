"""Flux' own source-controller and kustomize-controller as processes on loopback, installed with the rights that Flux gives them.

They are built only when somebody asks for it, as `make flux` does; their CRDs are those of the modules that they are built from.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self

import aiohttp
import pytest
import yaml
from click.testing import CliRunner
from commanding import account_kubeconfig
from flux_crds import KINDS, current, install_flux
from times import START_S

from tenantry.api import Api
from tenantry.cli import main
from tenantry.local.control_plane import KUSTOMIZE_CONTROLLER, SOURCE_CONTROLLER, ControlPlane, Module, find_binaries
from tenantry.local.control_plane.ports import choose
from tenantry.local.control_plane.toolchain import find_go
from tenantry.local.tether import tethered
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, NAMESPACE, SERVICE_ACCOUNT, Object
from tenantry.testing import eventually
from tenantry.testing.audit import AuditLog
from tenantry.testing.objects import obj

FLUX = "flux-system"
SOURCE, KUSTOMIZE = SOURCE_CONTROLLER.name, KUSTOMIZE_CONTROLLER.name
MODULES = (SOURCE_CONTROLLER, KUSTOMIZE_CONTROLLER)
MULTI_TENANT = "--security-profile=multi-tenant"
_ASKED = "TENANTRY_REAL_FLUX"
_LAST_LINES = 15
_OF_RIGHTS = {each.kind: each for each in (CLUSTER_ROLE, CLUSTER_ROLE_BINDING, SERVICE_ACCOUNT)}
_AUDITED = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    verbs: [create, update, patch, delete]
    userGroups: ["system:serviceaccounts:flux-system"]
  - level: None
"""
"""Of a request under another's name the groups are those of who sends it."""


def why_not() -> str:
    """Why the controllers do not run here; empty when they do."""
    if _ASKED not in os.environ:
        return "the real controllers of Flux: make flux"
    missing = {each.name for each in MODULES} - {each.module for each in find_binaries(MODULES)[0]}
    return f"not built: {', '.join(sorted(missing))} (make flux)" if missing else ""


REAL_FLUX = pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")
"""The mark of modules that need the controllers."""


@contextmanager
def audited(folder: Path) -> Iterator[tuple[ControlPlane, AuditLog]]:
    """A control plane that writes down what Flux' controllers write, and as whom."""
    log = AuditLog(folder, _AUDITED)
    with ControlPlane(ephemeral=True, api_server_args=log.api_server_args) as plane:
        yield plane, log


def crds_of(module: Module) -> list[Object]:
    """The CRDs that a controller comes with; its module is where it was put to be built."""
    go, named = find_go(), f"{module.programs[0].package}@v{module.version}"
    command = [str(go.path), "mod", "download", "-json", named]
    told = subprocess.run(command, cwd=module.folder, env=go.environment(), capture_output=True, text=True, check=True)
    files = sorted((Path(json.loads(told.stdout)["Dir"]) / "config" / "crd" / "bases").glob("*.yaml"))
    return [yaml.safe_load(each.read_text(encoding="utf-8")) for each in files]


async def install_real_flux(admin: Api, rights: Sequence[Object] = ()) -> None:
    """CRDs, those of the two controllers being their own, and the accounts of the two with the rights of an installation of Flux.

    ``rights`` are applied in place of those of kustomize-controller.
    """
    crds = [each for module in MODULES for each in await asyncio.to_thread(crds_of, module)]
    real = {each["metadata"]["name"] for each in crds}
    await install_flux(admin, [*crds, *(each for each in current() if each["metadata"]["name"] not in real)])
    if await admin.get(NAMESPACE, FLUX) is None:
        await admin.create(NAMESPACE, obj(NAMESPACE, FLUX))
    for name in (SOURCE, KUSTOMIZE):
        await admin.apply(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, name, FLUX))
    read = ["namespaces", "secrets", "configmaps", "serviceaccounts"]
    rules = [
        {"apiGroups": sorted({each.group for each in KINDS}), "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": read, "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    ]
    await admin.apply(CLUSTER_ROLE, obj(CLUSTER_ROLE, "crd-controller-flux-system", rules=rules))
    await _bound(
        admin, "crd-controller-flux-system", "crd-controller-flux-system", *((SOURCE,) if rights else (SOURCE, KUSTOMIZE))
    )
    if not rights:
        await _bound(admin, "cluster-reconciler-flux-system", "cluster-admin", KUSTOMIZE)
    for each in rights:
        await admin.apply(_OF_RIGHTS[each["kind"]], each)


async def _bound(admin: Api, name: str, role: str, *accounts: str) -> None:
    subjects = [{"kind": SERVICE_ACCOUNT.kind, "name": each, "namespace": FLUX} for each in accounts]
    ref = {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": role}
    await admin.apply(CLUSTER_ROLE_BINDING, obj(CLUSTER_ROLE_BINDING, name, subjects=subjects, roleRef=ref))


def exported(controller: str, *options: str) -> list[str]:
    """The arguments that ``tenantry profile export`` with these options adds to a controller."""
    result = CliRunner().invoke(main, ["profile", "export", "--part=flux", *options])
    assert result.exit_code == 0, result.output
    patches = yaml.safe_load(result.stdout).get("patches") or []
    meant = [
        yaml.safe_load(each["patch"])
        for each in patches
        if each.get("target", {}).get("kind") == "Deployment" and re.fullmatch(each["target"]["name"], controller)
    ]
    return [str(operation["value"]) for operations in meant for operation in operations]


class Controller:
    """One of the two controllers with what its installation gives it and further arguments, from ``async with`` to its end."""

    def __init__(self, module: Module, kubeconfig: Path, folder: Path, arguments: Sequence[str] = ()) -> None:
        (found,), _ = find_binaries((module,))
        self.name = module.name
        self._folder = folder
        self._kubeconfig = kubeconfig
        self._health = choose()
        self._ready_url = f"http://127.0.0.1:{self._health}/readyz"
        given = ["--watch-all-namespaces", "--log-level=info", "--log-encoding=json", "--events-addr=", "--metrics-addr=0"]
        given.append(f"--health-addr=127.0.0.1:{self._health}")
        if module is SOURCE_CONTROLLER:
            storage = f"127.0.0.1:{choose(besides=(self._health,))}"
            (folder / "artifacts").mkdir()
            given += [f"--storage-path={folder / 'artifacts'}", f"--storage-addr={storage}", f"--storage-adv-addr={storage}"]
            self._ready_url = f"http://{storage}/"
        self._command = [str(found.paths[module.name]), *given, *arguments]
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        temporary = self._folder / "tmp"
        temporary.mkdir()
        own = {"KUBECONFIG": str(self._kubeconfig), "TMPDIR": str(temporary), "RUNTIME_NAMESPACE": FLUX, "GOGC": "400"}
        with self.log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *tethered(*self._command),
                env={**own, "PATH": os.environ["PATH"], "HOME": str(temporary)},
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                process_group=0,
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()  # ends all of it
        await self._process.wait()

    @property
    def log(self) -> Path:
        """What it says."""
        return self._folder / "log"

    @property
    def code(self) -> int | None:
        """Its exit code, when it has ended."""
        assert self._process is not None
        return self._process.returncode

    async def ready(self) -> None:
        """Wait until its readiness probe succeeds."""
        async with aiohttp.ClientSession(trust_env=False) as session:

            async def probed() -> bool:
                assert self.code is None, f"{self.name} has ended:\n{self.said()}"
                try:
                    async with session.get(self._ready_url) as answer:
                        return answer.status == 200
                except aiohttp.ClientError:
                    return False

            await eventually(probed, within=START_S, what=f"{self.name} is ready")

    async def ended(self) -> int:
        """Wait until it has ended by itself; its exit code."""
        assert self._process is not None
        return await asyncio.wait_for(self._process.wait(), START_S)

    def said(self) -> str:
        """The last lines of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_LAST_LINES:])


@asynccontextmanager
async def controller(
    module: Module, admin: Api, plane: ControlPlane, folder: Path, arguments: Sequence[str] = ()
) -> AsyncIterator[Controller]:
    """A controller under its own account, started."""
    kubeconfig = await account_kubeconfig(admin, plane, FLUX, module.name, folder / "kubeconfig")
    async with Controller(module, kubeconfig, folder, arguments) as running:
        yield running


@asynccontextmanager
async def running_flux(
    admin: Api, plane: ControlPlane, factory: pytest.TempPathFactory, *options: str, own: Sequence[str] = ()
) -> AsyncIterator[tuple[Controller, ...]]:
    """Both controllers, ready, with what the export with these options gives them, and with ``own`` arguments."""
    made: list[Any] = []
    for module in MODULES:
        arguments = [*own, *exported(module.name, *options)]
        made.append(controller(module, admin, plane, factory.mktemp(module.name), arguments))
    async with made[0] as first, made[1] as second:
        await asyncio.gather(first.ready(), second.ready())
        yield first, second
