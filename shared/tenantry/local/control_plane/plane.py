"""A real control plane on one machine: etcd, kube-apiserver and kube-controller-manager as plain processes.

:class:`ControlPlane` starts them through a supervisor process, in the order of dependence, and returns when
the cluster is usable: ``/readyz``, the default namespace and its service account, the aggregated roles, and
the controller manager's health.  Whatever ends the owner, SIGKILL included, ends them too, unless
:meth:`ControlPlane.detach` was called.

There is no scheduler and no node: pods stay pending.  Two delays are Kubernetes' own: a namespace is
emptied 5 s after its deletion at the earliest, and objects of a new CRD join garbage collection and quota
within 30 s.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from tenantry.local.control_plane import credentials, flags, places, ports, probes, state
from tenantry.local.control_plane.binaries import Binaries, ensure_binaries
from tenantry.local.control_plane.errors import ControlPlaneError, PortTaken, StartFailed
from tenantry.local.control_plane.folder import prepare_folder
from tenantry.local.control_plane.owner import Owner
from tenantry.local.control_plane.progress import Progress, Silent

ETCD, API_SERVER, CONTROLLER_MANAGER = "etcd", "kube-apiserver", "kube-controller-manager"
_T = TypeVar("_T")
_PORTS_TRIED = 3
"""How often others are chosen when another process takes one first."""
_TAKEN = "address already in use"
_LAST_LINES = 12
_GRACE = 10.0


class ControlPlane:
    """One control plane on one data folder; a context manager, started on entry and stopped on exit.

    Args:
        data_dir: where everything is kept.  Default: ``TENANTRY_HOME/cluster``, or a temporary folder
            when ephemeral, removed at the end.
        ephemeral: the data is not worth a disk flush, nor an orderly end: etcd runs without fsync, and
            stopping kills.  A ``data_dir`` that was given is kept.
        port: the API server's port.  Default: the one used before on this folder if free, else any.
        binaries: from :func:`ensure_binaries`, which is called when it is left out.
        api_server_args, controller_manager_args: appended to the command lines, and so win.
        progress: told what is being waited for.
    """

    def __init__(
        self,
        *,
        data_dir: Path | None = None,
        ephemeral: bool = False,
        port: int | None = None,
        binaries: Binaries | None = None,
        api_server_args: Sequence[str] = (),
        controller_manager_args: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> None:
        self._given = data_dir
        self._ephemeral = ephemeral
        self._wanted_port = port
        self._binaries = binaries
        self._arguments = {
            API_SERVER: tuple(api_server_args),
            CONTROLLER_MANAGER: tuple(controller_manager_args),
        }
        self._progress = progress or Silent()
        self._owner: Owner | None = None
        self._data: Path | None = None
        self._ports: flags.Ports | None = None
        self._lost: set[int] = set()  # ports that another process took before ours listened
        self._credentials: credentials.Credentials | None = None
        self._processes: dict[str, state.Identity] = {}

    def __enter__(self) -> ControlPlane:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def data_dir(self) -> Path:
        """The data folder: logs, certificates, tokens, etcd's data."""
        return _present(self._data)

    @property
    def kubeconfig(self) -> Path:
        """A self-contained kubeconfig with the admin's identity (group ``system:masters``)."""
        return self.data_dir / "kubeconfig"

    @property
    def server_url(self) -> str:
        """The API server's URL."""
        return f"https://127.0.0.1:{_present(self._ports).api_server}"

    @property
    def ca_file(self) -> Path:
        """The CA that the API server's certificate is verified with (PEM)."""
        return self.data_dir / "ca.crt"

    @property
    def admin_token(self) -> str:
        """The admin's bearer token."""
        return _present(self._credentials).admin_token

    @property
    def version(self) -> str:
        """The version of Kubernetes, for example ``1.36.3``."""
        return _present(self._binaries).version("kubernetes")

    def start(self, timeout: float = 60.0) -> None:
        """Start everything and return when the cluster is usable; on any failure nothing is left running.

        Raises:
            BinariesError: there are no programs, and they could not be built.
            AlreadyRunning: the data folder has a running control plane.
            StartFailed: a process ended, or was not ready in time.
        """
        if self._owner is not None:
            raise ControlPlaneError("This control plane is already started.")
        self._binaries = self._binaries or ensure_binaries(self._progress)
        for others in reversed(range(_PORTS_TRIED)):
            try:
                self._start(timeout)
                break
            except PortTaken:
                if not others or self._wanted_port is not None:
                    raise

    def _start(self, timeout: float) -> None:
        self._data = self._make_folder()
        try:
            self._owner = Owner(self._data, ephemeral=self._ephemeral, remove=self._ephemeral and self._given is None)
            self._start_all(time.monotonic() + timeout)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop everything and wait for the end; nothing happens when nothing runs."""
        if self._owner is not None:
            self._owner.close()
            self._owner = None
        if self._ephemeral and self._given is None and self._data is not None:
            shutil.rmtree(self._data, ignore_errors=True)

    def detach(self) -> None:
        """Let everything run on after this process; ``take_down`` on the data folder ends it."""
        _present(self._owner).detach()
        self._owner = None

    def status(self) -> state.Status:
        """Return what runs, with pids, ports and memory."""
        return state.status(self.data_dir)

    def stop_api_server(self, *, kill: bool = False) -> None:
        """Stop the API server alone; with ``kill`` at once, in the middle of its requests."""
        _present(self._owner).stop(API_SERVER, 0 if kill else _GRACE)

    def start_api_server(self, timeout: float = 60.0) -> None:
        """Start the API server again, on the same port, data and credentials; return when it is ready."""
        ports.demand(_present(self._ports).api_server)
        self._spawn(API_SERVER)
        self._wait(probes.api_server_steps(self._api()), time.monotonic() + timeout)
        self._record()

    def restart_api_server(self, *, kill: bool = False) -> None:
        """Stop the API server and start it again."""
        self.stop_api_server(kill=kill)
        self.start_api_server()

    def stop_controller_manager(self) -> None:
        """Stop the controller manager alone: no garbage collection, no aggregation, no namespace ends."""
        _present(self._owner).stop(CONTROLLER_MANAGER, 0)

    def start_controller_manager(self, timeout: float = 60.0) -> None:
        """Start the controller manager again and return when it works."""
        self._spawn(CONTROLLER_MANAGER)
        self._wait(probes.manager_steps(self._api(), self._manager), time.monotonic() + timeout)
        self._record()

    def log(self, name: str) -> Path:
        """Return the log file of ``etcd``, ``kube-apiserver`` or ``kube-controller-manager``."""
        return self.data_dir / f"{name}.log"

    def _make_folder(self) -> Path:
        if self._given is None and self._ephemeral:
            return Path(tempfile.mkdtemp(prefix="tenantry-"))
        folder = (self._given or places.cluster_folder()).expanduser().absolute()
        prepare_folder(folder)
        return folder

    def _start_all(self, deadline: float) -> None:
        data = self.data_dir
        before = state.read_state(data)
        known = before.ports if before is not None else {}
        wanted = self._wanted_port
        api_port = ports.choose(known.get(API_SERVER), besides=self._lost) if wanted is None else ports.demand(wanted)
        manager_port = ports.choose(known.get(CONTROLLER_MANAGER), besides={*self._lost, api_port})
        self._ports = flags.Ports(api_port, manager_port)
        self._credentials = credentials.prepare(data)
        self._processes = {state.SUPERVISOR: state.identify(_present(self._owner).pid)}
        self._spawn(ETCD)
        self._wait([("etcd answers /health", lambda: probes.etcd_healthy(data / flags.ETCD_SOCKET))], deadline)
        self._spawn(API_SERVER)
        self._wait([("kube-apiserver writes its certificate", self._has_ca)], deadline)
        self._write_kubeconfigs()
        self._spawn(CONTROLLER_MANAGER)
        self._record()
        api = self._api()
        self._wait([*probes.api_server_steps(api), *probes.manager_steps(api, self._manager)], deadline)

    def _spawn(self, name: str) -> None:
        program = _present(self._binaries).path(name)
        chosen = _present(self._ports)
        if name == ETCD:
            command = flags.etcd(program, sync=not self._ephemeral)
        elif name == API_SERVER:
            command = flags.api_server(program, chosen, self._arguments[name])
        else:
            command = flags.controller_manager(program, chosen, self._arguments[name])
        pid = _present(self._owner).start(name, command, self.log(name))
        self._processes[name] = state.identify(pid)

    def _wait(self, steps: Sequence[tuple[str, Callable[[], bool]]], deadline: float) -> None:
        for step, done in steps:
            while not done():
                self._progress.still(f"Waiting until {step}")
                for name, child in _present(self._owner).poll().items():
                    if child["code"] is not None:
                        text = self._failure(f"{name} ended with code {child['code']}", name)
                        if _TAKEN not in text:
                            raise StartFailed(text)
                        self._lost.add(self._port(name))
                        raise PortTaken(text)
                if time.monotonic() > deadline:
                    raise StartFailed(self._failure(f"Not in time: {step}", step.partition(" ")[0]))
                time.sleep(0.02)

    def _failure(self, what: str, name: str) -> str:
        log = self.log(name) if self.log(name).exists() else self.log(API_SERVER)
        lines = log.read_text(errors="replace").splitlines()[-_LAST_LINES:] if log.exists() else []
        text = "\n".join(f"  {line[:300]}" for line in lines)
        remedy = f"see {self.data_dir} for all logs; `tenantry cluster up --fresh` starts without the old data"
        if _TAKEN in text:
            remedy = "another process took the port meanwhile; start again, which chooses another one"
        elif "no space left" in text:
            remedy = f"free some space on the disk of {self.data_dir}"
        return f"{what}. The end of {log.name}:\n{text}\nRemedy: {remedy}."

    def _port(self, name: str) -> int:
        chosen = _present(self._ports)
        return chosen.controller_manager if name == CONTROLLER_MANAGER else chosen.api_server

    def _has_ca(self) -> bool:
        try:
            return bool(_present(self._credentials).ca())
        except (OSError, ValueError):
            return False

    def _write_kubeconfigs(self) -> None:
        secrets = _present(self._credentials)
        ca = secrets.ca()
        credentials.write_private(self.ca_file, ca)
        for path, user, token in (
            (self.kubeconfig, "tenantry-admin", secrets.admin_token),
            (self.data_dir / "controller-manager.kubeconfig", CONTROLLER_MANAGER, secrets.manager_token),
        ):
            credentials.write_kubeconfig(path, server=self.server_url, ca=ca, user=user, token=token)

    def _record(self) -> None:
        numbers = {name: self._port(name) for name in (API_SERVER, CONTROLLER_MANAGER)}
        content = state.State(self.version, self.server_url, str(self.kubeconfig), numbers, self._processes)
        state.write_state(self.data_dir, content)

    def _api(self) -> probes.Probe:
        return probes.Probe(_present(self._ports).api_server, self.ca_file.read_text(), self.admin_token)

    def _manager(self) -> probes.Probe | None:
        certificate = self.data_dir / "manager-certs" / f"{CONTROLLER_MANAGER}.crt"
        if not certificate.exists():
            return None
        return probes.Probe(_present(self._ports).controller_manager, certificate.read_text())


def _present(value: _T | None) -> _T:
    if value is None:
        raise ControlPlaneError("The control plane is not started.")
    return value
