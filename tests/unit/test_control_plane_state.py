"""Identity of processes, credentials, ports and the data folder."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tenantry.local.control_plane import credentials, ports
from tenantry.local.control_plane.errors import AlreadyRunning, ControlPlaneError
from tenantry.local.control_plane.folder import prepare_folder, wipe
from tenantry.local.control_plane.owner import Owner
from tenantry.local.control_plane.state import SUPERVISOR, State, identify, read_state, take_down, write_state


def test_a_process_is_known_by_more_than_its_pid() -> None:
    """The same pid with another start time or of another boot is a stranger."""
    me = identify(os.getpid())

    assert me.runs()
    assert me.resident_bytes() > 2**20
    assert not replace(me, started=me.started + 1).runs()
    assert not replace(me, boot="another").runs()


def test_a_zombie_has_ended() -> None:
    """A process that only waits to be reaped does not run."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = identify(child.pid)
    assert identity.runs()

    assert child.stdin is not None
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert not identity.runs()
    child.wait()


def test_down_never_signals_a_stranger(tmp_path: Path) -> None:
    """A state file whose pid now belongs to another process stops nothing."""
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        identity = identify(stranger.pid)
        old = replace(identity, started=identity.started - 1)
        write_state(tmp_path, State("1.36.3", "https://127.0.0.1:1", "kubeconfig", {}, {SUPERVISOR: old}))

        assert take_down(tmp_path) is False
        assert stranger.poll() is None
    finally:
        stranger.communicate(b"\n")


def test_a_broken_state_file_is_no_state(tmp_path: Path) -> None:
    """A state file that cannot be read counts as none."""
    (tmp_path / "state.json").write_text('{"version": 1}')

    assert read_state(tmp_path) is None
    assert take_down(tmp_path) is False


def test_credentials_are_private_and_stay_the_same(tmp_path: Path) -> None:
    """Tokens and keys are random, readable by their owner alone, and survive a restart."""
    first = credentials.prepare(tmp_path)
    second = credentials.prepare(tmp_path)

    assert first == second
    assert first.admin_token != first.manager_token
    assert (tmp_path / "tokens.csv").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "service-account.key").stat().st_mode & 0o777 == 0o600
    body = "".join((tmp_path / "service-account.key").read_text().splitlines()[1:-1])
    assert len(base64.b64decode(body)) == 51


def test_kubeconfig_has_everything_in_itself(tmp_path: Path) -> None:
    """A kubeconfig names no other file, so it can be copied."""
    path = tmp_path / "kubeconfig"
    credentials.write_kubeconfig(path, server="https://127.0.0.1:1", ca="CA", user="me", token="secret")

    document = yaml.safe_load(path.read_text())

    assert document["users"] == [{"name": "me", "user": {"token": "secret"}}]
    encoded = document["clusters"][0]["cluster"]["certificate-authority-data"]
    assert base64.b64decode(encoded) == b"CA"
    assert path.stat().st_mode & 0o777 == 0o600


def _bound(server: socket.socket) -> int:
    """Bind to a port that was chosen; another one where somebody, such as a test beside us, takes it meanwhile."""
    for _ in range(10):
        with contextlib.suppress(OSError):
            server.bind(("127.0.0.1", chosen := ports.choose()))
            return chosen
    raise AssertionError("no port could be bound")


def test_ports_avoid_the_ephemeral_range_and_what_is_taken() -> None:
    """A chosen port cannot be taken by an outgoing connection; a taken one is refused by name."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    with socket.socket() as server:
        chosen = _bound(server)
        server.listen()

        assert chosen < low
        assert ports.choose(chosen) != chosen
        with pytest.raises(ControlPlaneError, match=f"Port {chosen} on 127.0.0.1 is taken"):
            ports.demand(chosen)
    assert ports.choose(chosen) == chosen
    assert ports.choose(chosen, besides={chosen}) != chosen


def test_a_strangers_folder_is_refused_and_never_wiped(tmp_path: Path) -> None:
    """A folder with files of somebody else is neither used nor emptied."""
    precious = tmp_path / "etcd.log"
    precious.write_text("mine")

    with pytest.raises(ControlPlaneError, match="not a control plane's"):
        prepare_folder(tmp_path)
    wipe(tmp_path)

    assert precious.read_text() == "mine"


def test_one_data_folder_has_one_owner(tmp_path: Path) -> None:
    """While a supervisor holds a data folder, a second one is refused and its data cannot be wiped."""
    prepare_folder(tmp_path)
    first = Owner(tmp_path, ephemeral=True, remove=False)
    try:
        with pytest.raises(AlreadyRunning, match="already running"):
            Owner(tmp_path, ephemeral=True, remove=False)
        with pytest.raises(AlreadyRunning, match="in use"):
            wipe(tmp_path)
    finally:
        first.close()
    wipe(tmp_path)

    assert [entry.name for entry in tmp_path.iterdir()] == ["lock"]


def test_a_child_runs_and_ends_by_the_supervisor(tmp_path: Path) -> None:
    """The supervisor reports a child's exit code, and ends one that still runs when its owner closes."""
    prepare_folder(tmp_path)
    owner = Owner(tmp_path, ephemeral=True, remove=False)
    try:
        owner.start("brief", ["/bin/sh", "-c", "echo said; exit 7"], tmp_path / "etcd.log")
        lasting = identify(owner.start("lasting", ["/bin/sleep", "1000"], tmp_path / "etcd.log"))
        while (report := owner.poll())["brief"]["code"] is None:
            pass
        with pytest.raises(ControlPlaneError, match="No such file"):
            owner.start("absent", ["/nonexistent"], tmp_path / "etcd.log")

        assert report["brief"]["code"] == 7
        assert (tmp_path / "etcd.log").read_text() == "said\n"
        assert lasting.runs()
    finally:
        owner.close()
    assert not lasting.runs()
