"""A container of a pod as a process: what its image starts, with environment, user, root, volumes and probes of the manifest.

There is no node here, and no image: Linux gives the process a file system of its own (a mount namespace), which has Python, the
locked packages and the wheel where the image has them, and nothing else of this machine.  As a container runtime does it, the
root is read-only, the user is the image's and in the pod's group, no capability is left, and `PodProcess.exec` joins what runs.
Of a network there is none: the port is a free one of this machine, and NetworkPolicies are judged elsewhere (`networks`).

Where the tests are not root, the process has a user namespace, too, in which it is: then all but its user is as described.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import aiohttp
import manifests
from manifests import Body

from tenantry.local.processes import free_port
from tenantry.testing import eventually

CONTAINERFILE = (manifests.ROOT / "knative" / "Containerfile").read_text(encoding="utf-8")
ENTRYPOINT: list[str] = json.loads(re.findall(r"^ENTRYPOINT (.+)$", CONTAINERFILE, re.MULTILINE)[-1])
USER = int(re.findall(r"^USER (\d+)$", CONTAINERFILE, re.MULTILINE)[-1])
IN_IMAGE = "/opt/tenantry"
"""Where the image has its environment; its PATH begins there."""
ROOT = os.geteuid() == 0
_STARTS_S, _ENDS_S = 30.0, 30.0


def can_have_mounts() -> bool:
    """Whether this machine lets a process have mounts of its own."""
    try:
        return subprocess.run([*unshared(), "true"], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def unshared() -> list[str]:
    """The command that gives another one mounts of its own."""
    return ["unshare", "--mount", "--propagation", "private", *([] if ROOT else ["--user", "--map-root-user"])]


@dataclass
class Mount:
    """What a volume is: a folder of this machine, or memory of a ``size`` where there is none."""

    folder: Path | None = None
    size: str = ""
    read_only: bool = False


@dataclass
class PodProcess:
    """The one container of an admitted ``pod``; ``image`` is a folder with what the wheel has, ``volumes`` are by name."""

    pod: Body
    image: Path
    folder: Path
    volumes: dict[str, Mount]
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def container(self) -> Body:
        """Its only container."""
        (container,) = self.pod["spec"]["containers"]
        assert isinstance(container, dict)
        return container

    @property
    def code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.poll() if self._process is not None else None

    def start(self) -> None:
        """Start what the image starts."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*unshared(), "/bin/sh", "-euc", self._script()], stdout=log, stderr=log, start_new_session=True
            )

    async def ready(self) -> None:
        """Wait until the probes of the manifest hold."""
        for probe in ("readinessProbe", "livenessProbe"):
            await eventually(partial(self._holds, probe), within=_STARTS_S, what=f"{probe}: {self.said()}")

    async def _holds(self, probe: str) -> bool:
        asked = self.container[probe]
        assert self.code is None, self.said()
        timeout = aiohttp.ClientTimeout(total=asked.get("timeoutSeconds", 1))
        try:
            async with (
                aiohttp.ClientSession(trust_env=False, timeout=timeout) as session,
                session.get(f"{self.address(asked['httpGet']['port'])}{asked['httpGet']['path']}") as answer,
            ):
                return 200 <= answer.status < 400
        except (aiohttp.ClientError, TimeoutError):
            return False

    def address(self, port: str | int) -> str:
        """Where a port of the container is, by name or number."""
        (number,) = [each["containerPort"] for each in self.container["ports"] if port in (each["name"], each["containerPort"])]
        assert {"name": "PORT", "value": str(number)} in self.container["env"]
        return f"http://127.0.0.1:{self.port}"

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and wait for the end."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(_ENDS_S)

    async def ended(self) -> int:
        """Wait until it ends by itself; returns the code."""
        assert self._process is not None
        return await asyncio.to_thread(self._process.wait, _ENDS_S)

    def said(self) -> str:
        """Its log so far, of all starts."""
        return (self.folder / "log").read_text(errors="replace")

    def exec(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the running container, as `kubectl exec` has the runtime do it."""
        return self._joined(["env", "-i", *self._environment(), *self._as_user(command)])

    def as_node(self, *command: str) -> None:
        """Do something to the mounts of the container, as only its node could."""
        self._joined(list(command)).check_returncode()

    def _joined(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        assert self._process is not None
        joined = ["nsenter", "--target", str(self._process.pid), "--mount", "--root", "--wd=/"]
        joined += [] if ROOT else ["--user", "--preserve-credentials"]
        return subprocess.run([*joined, *command], capture_output=True, text=True, timeout=60, check=False)

    # -- what a container runtime does --------------------------------------------------------------------------------

    def _environment(self) -> list[str]:
        named = {each["name"]: each["value"] for each in self.container["env"]}
        assert named["PORT"] == str(self.container["ports"][0]["containerPort"])
        # HOME: as runtimes set it for a user whom /etc/passwd does not name.
        more = {"PATH": f"{IN_IMAGE}/bin:/usr/bin:/bin", "HOME": "/", "PYTHONPATH": "/opt/wheel", "PORT": str(self.port)}
        return [f"{name}={value}" for name, value in {**named, **more}.items()]

    def _as_user(self, command: tuple[str, ...] | list[str]) -> list[str]:
        limits = self.container["securityContext"]
        assert (limits["runAsNonRoot"], limits["capabilities"]["drop"]) == (True, ["ALL"])
        assert limits["allowPrivilegeEscalation"] is False
        group = self.pod["spec"]["securityContext"]["fsGroup"]
        user = [f"--reuid={USER}", "--regid=0", f"--groups={group}"] if ROOT else []
        return ["setpriv", *user, "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", *command]

    def _script(self) -> str:
        root = self.folder / "root"
        root.mkdir(exist_ok=True)
        group = self.pod["spec"]["securityContext"]["fsGroup"] if ROOT else 0
        lines = [["mount", "-t", "tmpfs", "-o", "mode=755", "none", str(root)]]

        def bind(source: Path, target: str, *, read_only: bool = True) -> None:
            at = str(root) + target
            if source.is_dir():
                lines.append(["mkdir", "-p", at])  # a file that is mounted on has to be there
            lines.append(["mount", "--rbind", str(source), at])
            if read_only:
                lines.append(["mount", "-o", "remount,bind,ro", at])

        for each in ("usr", "bin", "sbin", "lib", "lib64"):
            here = Path("/") / each
            if here.is_symlink():
                lines.append(["ln", "-s", str(here.readlink()), f"{root}/{each}"])
            elif here.exists():
                bind(here, f"/{each}")
        for each in ("/dev", "/proc"):
            bind(Path(each), each, read_only=False)
        for asked in self.container["volumeMounts"]:
            volume, at = self.volumes[asked["name"]], f"{root}{asked['mountPath']}"
            read_only = asked.get("readOnly", False) or volume.read_only
            if volume.folder is not None:
                bind(volume.folder, asked["mountPath"], read_only=read_only)
            else:
                mode = f"size={volume.size},mode=2770,gid={group}"
                lines += [["mkdir", "-p", at], ["mount", "-t", "tmpfs", "-o", mode, "none", at]]
        if not Path(sys.base_prefix).is_relative_to("/usr"):
            bind(Path(sys.base_prefix), sys.base_prefix)
        bind(Path(sys.prefix), IN_IMAGE)
        program = self.folder / "tenantry"  # as pip writes it for the wheel
        program.write_text(f"#!{IN_IMAGE}/bin/python\nfrom tenantry.cli import main\nmain()\n")
        program.chmod(0o755)
        bind(program, f"{IN_IMAGE}/bin/tenantry")
        bind(self.image, "/opt/wheel")
        if self.container["securityContext"]["readOnlyRootFilesystem"]:
            lines.append(["mount", "-o", "remount,ro", str(root)])
        command = self.container.get("command", ENTRYPOINT) + self.container.get("args", [])
        run = ["chroot", str(root), "env", "-i", *self._environment(), *self._as_user(command)]
        return "\n".join([*map(shlex.join, lines), "exec " + shlex.join(run)])
