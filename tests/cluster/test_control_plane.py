"""The control plane of one machine, with its real processes: it works as a cluster, and it always ends."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from times import LEFT_TO_MAKE_WHOLE

from tenantry.local.control_plane import (
    AlreadyRunning,
    Binaries,
    ControlPlane,
    ControlPlaneError,
    StartFailed,
    ensure_binaries,
    ports,
)
from tenantry.local.control_plane.state import Identity, read_state

pytestmark = pytest.mark.timeout(120)

_CLI = "import click; from tenantry.kit.cluster import cluster; cluster()"


class Client:
    """Requests with one identity; the answer is the status code and the decoded body."""

    def __init__(self, url: str, ca_file: Path, token: str | None) -> None:
        self._url = url
        self._context = ssl.create_default_context(cafile=str(ca_file))
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def __call__(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20, context=self._context) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


def _client(plane: ControlPlane, token: str | None) -> Client:
    return Client(plane.server_url, plane.ca_file, token)


def _until(condition: Callable[[], bool], what: str, seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def binaries() -> Binaries:
    """The programs; building them, where they lack, is not a test's time."""
    return ensure_binaries()


@pytest.fixture(scope="module")
def plane(binaries: Binaries) -> Iterator[ControlPlane]:
    with ControlPlane(ephemeral=True, binaries=binaries) as running:
        yield running


@pytest.fixture
def admin(plane: ControlPlane) -> Client:
    return _client(plane, plane.admin_token)


def _namespace(admin: Client, name: str) -> str:
    code, _ = admin("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    assert code == 201
    return f"/api/v1/namespaces/{name}"


def test_server_tells_the_version_that_is_pinned(plane: ControlPlane, admin: Client) -> None:
    """GET /version answers the version of the binaries."""
    assert admin("GET", "/version")[1]["gitVersion"] == f"v{plane.version}"


def test_kubeconfig_is_private_and_its_identity_is_a_master(plane: ControlPlane) -> None:
    """The kubeconfig's token authenticates as a member of system:masters, and only its owner can read it."""
    document = yaml.safe_load(plane.kubeconfig.read_text())
    client = _client(plane, document["users"][0]["user"]["token"])
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}

    code, answer = client("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)

    assert code == 201
    assert "system:masters" in answer["status"]["userInfo"]["groups"]
    assert document["clusters"][0]["cluster"]["server"] == plane.server_url
    assert plane.kubeconfig.stat().st_mode & 0o777 == 0o600


def test_rights_are_enforced(plane: ControlPlane) -> None:
    """A wrong token is refused, and nobody may read what RBAC does not give."""
    assert _client(plane, "wrong")("GET", "/api/v1/namespaces")[0] == 401
    assert _client(plane, None)("GET", "/api/v1/namespaces")[0] == 403


def test_a_service_account_gets_a_token_and_only_its_own_rights(plane: ControlPlane, admin: Client) -> None:
    """TokenRequest gives a token that authenticates as the service account, with the rights bound to it."""
    path = _namespace(admin, "tokens")
    admin("POST", f"{path}/serviceaccounts", {"metadata": {"name": "worker"}})
    code, answer = admin("POST", f"{path}/serviceaccounts/worker/token", {"spec": {"expirationSeconds": 3600}})
    assert code == 201
    worker = _client(plane, answer["status"]["token"])
    assert worker("GET", f"{path}/configmaps")[0] == 403

    binding = {
        "metadata": {"name": "worker-views"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "worker", "namespace": "tokens"}],
    }
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/tokens/rolebindings"
    assert admin("POST", rbac, binding)[0] == 201

    _until(lambda: worker("GET", f"{path}/configmaps")[0] == 200, "the binding takes effect")
    assert worker("GET", "/api/v1/namespaces/default/configmaps")[0] == 403


def test_a_cluster_role_is_aggregated(admin: Client) -> None:
    """A ClusterRole with the aggregation label adds its rules to the role `view`."""
    rule = {"apiGroups": ["tenantry.dev"], "resources": ["aggregated"], "verbs": ["get"]}
    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    role = {"metadata": {"name": "aggregated", "labels": labels}, "rules": [rule]}
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    assert admin("POST", roles, role)[0] == 201

    _until(lambda: rule in admin("GET", f"{roles}/view")[1]["rules"], "view has the rule")


def test_a_namespace_gets_its_default_account_and_goes_when_deleted(admin: Client) -> None:
    """The controllers of namespaces and service accounts work: a namespace fills, and ends with its content."""
    path = _namespace(admin, "short-lived")
    _until(lambda: admin("GET", f"{path}/serviceaccounts/default")[0] == 200, "the default service account")
    admin("POST", f"{path}/configmaps", {"metadata": {"name": "content"}})

    assert admin("DELETE", path)[0] == 200

    _until(lambda: admin("GET", path)[0] == 404, "the namespace is gone", 30)


def test_dependents_go_with_their_owner(admin: Client) -> None:
    """Garbage collection removes an object when its owner is deleted."""
    path = _namespace(admin, "garbage")
    _, owner = admin("POST", f"{path}/configmaps", {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    admin("POST", f"{path}/configmaps", {"metadata": {"name": "owned", "ownerReferences": [reference]}})

    admin("DELETE", f"{path}/configmaps/owner")

    _until(lambda: admin("GET", f"{path}/configmaps/owned")[0] == 404, "the dependent is gone")


def test_a_quota_is_counted_and_enforced(admin: Client) -> None:
    """The admission plugin refuses what the quota does not leave, and the controller counts again after a deletion."""
    path = _namespace(admin, "quota")
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"count/secrets": "1"}}}
    assert admin("POST", f"{path}/resourcequotas", quota)[0] == 201

    def used() -> str | None:
        status: dict[str, dict[str, str]] = admin("GET", f"{path}/resourcequotas/few")[1].get("status", {})
        return status.get("used", {}).get("count/secrets")

    _until(lambda: used() == "0", "the quota is counted")
    assert admin("POST", f"{path}/secrets", {"metadata": {"name": "first"}})[0] == 201
    code, answer = admin("POST", f"{path}/secrets", {"metadata": {"name": "second"}})
    assert code == 403
    assert "exceeded quota" in answer["message"]
    admin("DELETE", f"{path}/secrets/first")
    _until(lambda: used() == "0", "the quota is counted after the deletion")


def test_the_api_server_can_go_and_come_back(plane: ControlPlane, admin: Client) -> None:
    """A restart keeps port, data and credentials; in between, connections are refused."""
    path = _namespace(admin, "survivor")
    before = {process.name: process.pid for process in plane.status().processes}

    plane.stop_api_server(kill=True)
    with pytest.raises(urllib.error.URLError, match="refused"):
        admin("GET", path)
    assert plane.status().partly
    plane.start_api_server()

    after = {process.name: process.pid for process in plane.status().processes}
    assert admin("GET", path)[0] == 200
    assert plane.status().running
    assert {name for name in before if before[name] != after[name]} == {"kube-apiserver"}


def test_the_controller_manager_can_go_and_come_back(plane: ControlPlane, admin: Client) -> None:
    """Without it no namespace gets its default account; afterwards it does."""
    plane.stop_controller_manager()
    path = _namespace(admin, "unattended")
    assert admin("GET", f"{path}/serviceaccounts/default")[0] == 404

    plane.start_controller_manager()

    _until(lambda: admin("GET", f"{path}/serviceaccounts/default")[0] == 200, "the default service account")


def test_a_data_folder_has_one_control_plane(plane: ControlPlane, binaries: Binaries) -> None:
    """A second start on the same folder is refused, and the first is not disturbed."""
    with pytest.raises(AlreadyRunning, match="already running"):
        ControlPlane(data_dir=plane.data_dir, binaries=binaries).start()

    assert plane.status().running


def test_a_failed_start_shows_the_log_and_leaves_nothing(tmp_path: Path, binaries: Binaries) -> None:
    """The message has the last lines of the log of the process that ended; etcd is stopped again."""
    plane = ControlPlane(data_dir=tmp_path, ephemeral=True, binaries=binaries, api_server_args=["--no-such-flag"])

    with pytest.raises(StartFailed, match="unknown flag: --no-such-flag") as caught:
        plane.start()

    assert "Remedy" in str(caught.value)
    assert _processes_in(tmp_path) == []


def test_a_taken_port_is_one_clear_message(plane: ControlPlane, tmp_path: Path, binaries: Binaries) -> None:
    """A port that was asked for and is taken is named before anything starts."""
    taken = int(plane.server_url.rpartition(":")[2])

    with pytest.raises(ControlPlaneError, match=f"Port {taken} on 127.0.0.1 is taken"):
        ControlPlane(data_dir=tmp_path, port=taken, binaries=binaries).start()

    assert _processes_in(tmp_path) == []


@pytest.mark.parametrize("which", ["kube-apiserver", "kube-controller-manager"])
def test_a_port_that_another_takes_meanwhile_is_replaced(
    plane: ControlPlane, tmp_path: Path, binaries: Binaries, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """Between the choice of a port and the start of what listens on it somebody else may take it: then another is chosen.

    The port looks free again before each try, as one does while its taker has not begun to listen.
    """
    taken, free = int(plane.server_url.rpartition(":")[2]), ports.is_free
    choose, wanted = ports.choose, [ports.choose(), taken] if which == "kube-controller-manager" else [taken]
    monkeypatch.setattr(ports, "is_free", lambda port: port == taken or free(port))
    monkeypatch.setattr(ports, "choose", lambda preferred=None, **more: choose(wanted.pop(0) if wanted else preferred, **more))

    with ControlPlane(data_dir=tmp_path, ephemeral=True, binaries=binaries) as other:
        assert wanted == []
        assert other.status().running
        assert taken not in json.loads((tmp_path / "state.json").read_text())["ports"].values()


def test_ports_of_the_plane_are_outside_the_ephemeral_range(plane: ControlPlane) -> None:
    """No outgoing connection can take the API server's port while it restarts."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])

    assert int(plane.server_url.rpartition(":")[2]) < low
    assert not ports.is_free(int(plane.server_url.rpartition(":")[2]))


@pytest.mark.parametrize("victim", ["owner", "supervisor"])
def test_nothing_outlives_a_killed_owner_or_supervisor(victim: str, binaries: Binaries) -> None:
    """SIGKILL of the process that started the control plane, or of its supervisor, ends everything."""
    program = """
        import json, sys
        from tenantry.local.control_plane import ControlPlane
        plane = ControlPlane(ephemeral=True)
        plane.start()
        print(plane.data_dir, flush=True)
        sys.stdin.read()
    """
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        processes = _recorded(folder)
        assert len(processes) == 4
        assert all(process.runs() for process in processes.values())
        os.kill(owner.pid if victim == "owner" else processes["supervisor"].pid, signal.SIGKILL)

        _until(lambda: not any(process.runs() for process in processes.values()), "all processes ended", 10)
        owner.kill()
    if victim == "owner":
        _until(lambda: not folder.exists(), "the temporary folder is removed", 10)
    else:
        for entry in sorted(folder.rglob("*"), reverse=True):
            entry.rmdir() if entry.is_dir() else entry.unlink()
        folder.rmdir()


@LEFT_TO_MAKE_WHOLE
def test_up_stays_until_down_and_keeps_its_data(tmp_path: Path, binaries: Binaries) -> None:
    """`up` returns with a usable cluster that stays; a second `up` says so; `down` ends it; data and port stay."""
    data = tmp_path / "cluster"
    first = _cluster("up", "--data", str(data))
    assert f"export KUBECONFIG={data}/kubeconfig" in first.stdout
    processes = _recorded(data)
    try:
        status = json.loads(_cluster("status", "--data", str(data), "-o", "json").stdout)
        assert status["running"] is True
        assert status["version"] == binaries.version("kubernetes")
        assert all(process["resident_mib"] > 10 for process in status["processes"])
        assert _cluster("kubeconfig", "--data", str(data)).stdout == f"{data}/kubeconfig\n"
        assert _cluster("up", "--data", str(data)).stdout.startswith("Already up")
        assert _recorded(data) == processes
        assert _request(data, "POST", "/api/v1/namespaces", {"metadata": {"name": "kept"}}) == 201
    finally:
        assert _cluster("down", "--data", str(data)).stdout == "Stopped.\n"
    assert not any(process.runs() for process in processes.values())
    assert "Not running" in _cluster("status", "--data", str(data), code=3).stdout
    assert "tenantry cluster up" in _cluster("kubeconfig", "--data", str(data), code=1).stderr
    assert _cluster("down", "--data", str(data)).stdout.startswith("Nothing was running")
    try:
        _cluster("up", "--data", str(data))
        assert _request(data, "GET", "/api/v1/namespaces/kept") == 200
        assert json.loads((data / "state.json").read_text())["server"] == status["server"]
        _cluster("up", "--fresh", "--data", str(data))
        assert _request(data, "GET", "/api/v1/namespaces/kept") == 404
    finally:
        _cluster("down", "--data", str(data))
    assert _processes_in(data) == []


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_or_sigterm_during_up_leaves_nothing(tmp_path: Path, binaries: Binaries, asked: signal.Signals) -> None:
    """An interrupt or SIGTERM while the API server starts stops what was started."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs in the background inherits that it is ignored
    up = subprocess.Popen(
        [sys.executable, "-c", _CLI, "up", "--data", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with up:
        _until((tmp_path / "kube-apiserver.log").exists, "the API server is started")
        # As a terminal does: the whole foreground process group gets it.
        os.killpg(up.pid, asked)
        up.communicate(timeout=30)

    assert up.returncode == 1
    assert _processes_in(tmp_path) == []


def _recorded(folder: Path) -> dict[str, Identity]:
    state = read_state(folder)
    assert state is not None
    return state.processes


def _processes_in(folder: Path) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_text().replace("\0", " ")
            inside = (entry / "cwd").readlink() == folder
        except OSError:
            continue
        if inside or str(folder) in command:
            found.append(command)
    return found


def _cluster(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    result = subprocess.run([sys.executable, "-c", _CLI, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == code, result.stderr
    return result


def _request(folder: Path, method: str, path: str, body: object = None) -> int:
    document = yaml.safe_load((folder / "kubeconfig").read_text())
    url, token = document["clusters"][0]["cluster"]["server"], document["users"][0]["user"]["token"]
    return Client(url, folder / "ca.crt", token)(method, path, body)[0]
