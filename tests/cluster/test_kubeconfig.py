"""What a kubeconfig says is followed to the API server: proxies, names, lists of files, programs that give tokens."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
import yaml
from connect_proxy import ConnectProxy
from people import C1, CHART_CONFIG_MAP, FUNCTION, People, registration, token, user_of
from slow_proxy import Gate
from times import CONTROLLER_S
from upping import tenantry

from tenantry.api import Api
from tenantry.api.errors import TransientError, Unauthorized
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE
from tenantry.testing import eventually
from tenantry.testing.objects import obj
from tenantry.testing.tls import loopback_context

NAME = "kubernetes"
"""A name in the API server's certificate."""
ELSEWHERE = "https://api.invalid:6443"
"""An address that leads nowhere; only a proxy makes something of it."""


def changed(original: Path, target: Path, **cluster: Any) -> Path:
    """A kubeconfig like the original one with other keys of its cluster; `_` stands for `-`."""
    document = yaml.safe_load(original.read_text())
    (found,) = document["clusters"]
    found["cluster"].update({key.replace("_", "-"): value for key, value in cluster.items()})
    target.write_text(yaml.safe_dump(document))
    return target


async def read(kubeconfig: Path | None = None) -> None:
    """One request."""
    async with await Api.connect(field_manager="tests", kubeconfig=kubeconfig) as api:
        assert await api.get(NAMESPACE, "default") is not None


async def who(api: Api) -> str:
    """The name of the user that the API server takes us for."""
    return str((await user_of(api))["username"])


async def test_everything_goes_through_the_proxy_and_by_the_name(
    control_plane: ControlPlane, people: People, tmp_path: Path
) -> None:
    """With ``proxy-url`` and ``tls-server-name`` sources, functions and commands reach a server that only the proxy knows."""
    project = f"p-{token()}"
    async with ConnectProxy(control_plane.server_url) as proxy:
        way = {"server": ELSEWHERE, "proxy_url": proxy.url, "tls_server_name": NAME}
        kubeconfig = changed(control_plane.kubeconfig, tmp_path / "config", **way)
        async with Knative(kubeconfig, tmp_path / "knative", config=C1, functions=[FUNCTION]):
            await people.namespace(f"a1-{project}", project)
            await people.until(CONFIG_MAP, CHART_CONFIG_MAP, registration(project), bool)
        before = len(proxy.asked)
        call = ("invoke", FUNCTION, "--kind", "Namespace", "--name", f"a1-{project}", "--kubeconfig", str(kubeconfig))
        code, output, errors = await tenantry(*call, "-o", "json", TENANTRY_CONFIG=str(tmp_path / "knative/tenantry.yaml"))

    assert (code, json.loads(output)["status"]) == (0, 204), errors
    assert set(proxy.asked) == {"api.invalid:6443"}
    assert len(proxy.asked) > before


async def test_the_proxy_may_speak_tls(control_plane: ControlPlane, tmp_path: Path) -> None:
    """A proxy behind https is verified by the same authorities, and the connection to the server runs inside."""
    context, certificate = loopback_context()
    (tmp_path / "ca.crt").write_text(control_plane.ca_file.read_text() + certificate)
    async with ConnectProxy(control_plane.server_url, context) as proxy:
        document = yaml.safe_load(control_plane.kubeconfig.read_text())
        document["clusters"][0]["cluster"] = {
            "server": control_plane.server_url,
            "certificate-authority": "ca.crt",
            "proxy-url": proxy.url,
        }
        (tmp_path / "config").write_text(yaml.safe_dump(document))
        await read(tmp_path / "config")

    assert proxy.asked == [control_plane.server_url.removeprefix("https://")]


async def test_a_proxy_that_is_away_is_told(control_plane: ControlPlane, tmp_path: Path) -> None:
    """Nobody goes around a proxy that does not answer."""
    kubeconfig = changed(control_plane.kubeconfig, tmp_path / "config", proxy_url="http://127.0.0.1:1")
    with pytest.raises(TransientError, match=r"127\.0\.0\.1:1"):
        await read(kubeconfig)


async def test_the_servers_name_is_the_one_that_is_given(control_plane: ControlPlane, tmp_path: Path) -> None:
    """A server whose certificate has another name is taken by ``tls-server-name``, and refused without or with a wrong one."""
    async with Gate(control_plane.server_url, "127.0.0.2") as gate:
        kubeconfig = gate.kubeconfig(control_plane.kubeconfig, tmp_path / "by-address")
        with pytest.raises(TransientError, match=r"not valid for '127\.0\.0\.2'"):
            await read(kubeconfig)
        await read(changed(kubeconfig, tmp_path / "by-name", tls_server_name=NAME))
        with pytest.raises(TransientError, match=r"not valid for 'other\.example'"):
            await read(changed(control_plane.kubeconfig, tmp_path / "wrong", tls_server_name="other.example"))


async def test_answers_come_uncompressed_when_asked_for(
    control_plane: ControlPlane, people: People, admin: Api, tmp_path: Path
) -> None:
    """``disable-compression`` spares the API server the work."""
    name = f"large-{token_hex(4)}"
    await admin.create(NAMESPACE, {"metadata": {"name": name}})
    await admin.create(CONFIG_MAP, obj(CONFIG_MAP, "large", name, data={"a": "x" * 500_000}))
    await eventually(lambda: admin.get(CONFIG_MAP, "kube-root-ca.crt", name), within=CONTROLLER_S)
    received: dict[bool, int] = {}
    for disabled in (False, True):
        async with ConnectProxy(control_plane.server_url) as proxy:
            kubeconfig = changed(control_plane.kubeconfig, tmp_path / "c", proxy_url=proxy.url, disable_compression=disabled)
            async with await Api.connect(field_manager="tests", kubeconfig=kubeconfig) as api:
                assert len((await api.list(CONFIG_MAP, name)).items) == 2
            received[disabled] = proxy.received

    assert received[False] < 100_000 < 500_000 < received[True]


async def test_a_list_of_files_is_one_kubeconfig(control_plane: ControlPlane, tmp_path: Path) -> None:
    """Cluster, user and context may stand in different files of KUBECONFIG; commands and functions read all of them."""
    document = yaml.safe_load(control_plane.kubeconfig.read_text())
    parts = {part: tmp_path / part for part in ("clusters", "users", "contexts")}
    for part, path in parts.items():
        path.write_text(yaml.safe_dump({part: document[part]}))
    parts["contexts"].write_text(yaml.safe_dump({key: document[key] for key in ("contexts", "current-context")}))
    listed = ":".join([str(tmp_path / "none"), *map(str, parts.values())])
    code, _, errors = await tenantry("uninstall", "--dry-run", KUBECONFIG=listed)
    assert code == 0, errors
    code, output, errors = await tenantry("invoke", FUNCTION, "--kind", "Namespace", "--name", "default", KUBECONFIG=listed)
    assert (code, output.splitlines()[0]) == (0, "204 nothing to do"), errors


@pytest.fixture
async def accounts(identity: Callable[..., Awaitable[Path]]) -> list[str]:
    """Tokens of two accounts."""
    found = [yaml.safe_load((await identity(name)).read_text()) for name in (FUNCTION, "rbac-aggregation")]
    return [Path(each["users"][0]["user"]["tokenFile"]).read_text() for each in found]


async def test_a_program_is_asked_again_for_a_token(control_plane: ControlPlane, accounts: list[str], tmp_path: Path) -> None:
    """``exec`` gives a token; another is asked for when its time is up, and when the server refuses it."""
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}

    def gives(status: Any) -> None:
        (tmp_path / "credential").write_text(json.dumps({**credential, "status": status}))

    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$NAME $1" >> {tmp_path}/calls\ncat {tmp_path}/credential\n')
    program.chmod(0o700)
    document = yaml.safe_load(control_plane.kubeconfig.read_text())
    run = {
        "apiVersion": credential["apiVersion"],
        "command": "./program",
        "args": ["arg"],
        "env": [{"name": "NAME", "value": "n"}],
    }
    document["users"][0]["user"] = {"exec": {**run, "interactiveMode": "IfAvailable", "provideClusterInfo": False}}
    (tmp_path / "config").write_text(yaml.safe_dump(document))

    gives({"token": accounts[0], "expirationTimestamp": "2001-01-01T00:00:00Z"})
    async with await Api.connect(field_manager="tests", kubeconfig=tmp_path / "config") as api:
        assert await who(api) == f"system:serviceaccount:tenantry-system:{FUNCTION}"
        gives({"token": accounts[1]})
        renewed = "system:serviceaccount:tenantry-system:rbac-aggregation"
        await eventually(lambda: who(api), lambda found: found == renewed, within=5, what="its time is up")
        gives({"token": "refused", "expirationTimestamp": "2001-01-01T00:00:00Z"})
    async with await Api.connect(field_manager="tests", kubeconfig=tmp_path / "config") as api:
        gives({"token": "refused"})
        with pytest.raises(Unauthorized):
            await who(api)
        gives({"token": accounts[0]})

        async def accepted() -> bool:
            try:
                return FUNCTION in await who(api)
            except Unauthorized:
                return False

        assert await eventually(accepted, within=5), "it was refused"
        calls = (tmp_path / "calls").read_text().splitlines()
        await who(api)

    assert set(calls) == {"n arg"}
    assert (tmp_path / "calls").read_text().splitlines() == calls, "a good token is kept"
