"""A kubeconfig: what is merged, what is followed, and what is refused by name."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenantry.api import Api, ConnectError
from tenantry.api.connect import current_namespace, load_configuration
from tenantry.api.kubeconfig import REFUSED, SUPPORTED, find

SERVER = "https://127.0.0.1:1"
# The keys of the kubeconfig's v1 API, of Kubernetes 1.36.
API = {
    "clusters": "server tls-server-name insecure-skip-tls-verify certificate-authority certificate-authority-data proxy-url "
    "disable-compression extensions",
    "users": "client-certificate client-certificate-data client-key client-key-data token tokenFile as as-uid as-groups "
    "as-user-extra username password auth-provider exec extensions",
    "contexts": "cluster user namespace extensions",
    "exec": "command args env apiVersion installHint provideClusterInfo interactiveMode",
}
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "true"}


def kubeconfig(**changed: Any) -> dict[str, Any]:
    """A document with one of each; ``cluster``, ``user`` and ``context`` are put into them."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": SERVER, **changed.get("cluster", {})}}],
        "users": [{"name": "u", "user": changed.get("user", {"token": "t"})}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", **changed.get("context", {})}}],
        "current-context": "x",
    }


def written(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def refusal(path: Path | None = None) -> str:
    """The one line with which it is refused."""
    with pytest.raises(ConnectError) as caught:
        find(path)
    assert "\n" not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize("part", API)
def test_every_key_of_the_api_is_supported_or_refused(part: str) -> None:
    """No key that kubectl knows is passed over."""
    refused = REFUSED.keys() if part == "users" else set()

    assert set(API[part].split()) == SUPPORTED[part].keys() | refused
    assert not SUPPORTED[part].keys() & refused


@pytest.mark.parametrize(
    ("changed", "key", "remedy"),
    [
        ({"user": {"as": "alice"}}, "users[u].user.as", "impersonation is not supported"),
        ({"user": {"as-uid": "1"}}, "users[u].user.as-uid", "impersonation is not supported"),
        ({"user": {"as-groups": ["g"]}}, "users[u].user.as-groups", "impersonation is not supported"),
        ({"user": {"as-user-extra": {"a": ["b"]}}}, "users[u].user.as-user-extra", "impersonation is not supported"),
        ({"user": {"auth-provider": {"name": "oidc"}}}, "users[u].user.auth-provider", "use exec, token or tokenFile"),
        ({"user": {"token": "t", "username": "u"}}, "users[u].user.username", "there is token as well"),
        ({"user": {"token": "t", "exec": EXEC}}, "users[u].user.exec", "there is token as well"),
        ({"user": {"token": 12}}, "users[u].user.token", "must be text (in quotes"),
        ({"user": {"tokn": "t"}}, "users[u].user.tokn", "did you mean token?"),
        ({"user": {"client-certificate": "none.crt"}}, "users[u].user.client-certificate", "there is no file"),
        ({"user": {"exec": {**EXEC, "interactiveMode": "Always"}}}, "users[u].user.exec.interactiveMode", "Never or IfAvailable"),
        ({"user": {"exec": {**EXEC, "provideClusterInfo": True}}}, "users[u].user.exec.provideClusterInfo", "is not supported"),
        ({"user": {"exec": {"command": "x"}}}, "users[u].user.exec.apiVersion", "is missing"),
        ({"user": {"exec": {**EXEC, "args": [1]}}}, "users[u].user.exec.args", "put numbers in quotes"),
        ({"user": {"exec": {**EXEC, "env": [{"name": "A"}]}}}, "users[u].user.exec.env", "a list of name and value"),
        ({"user": {"exec": {**EXEC, "comand": "x"}}}, "users[u].user.exec.comand", "did you mean exec.command?"),
        ({"cluster": {"proxy-url": "socks5://127.0.0.1:1080"}}, "clusters[c].cluster.proxy-url", "must be http://HOST:PORT"),
        ({"cluster": {"proxy-url": "127.0.0.1:3128"}}, "clusters[c].cluster.proxy-url", "must be http://HOST:PORT"),
        ({"cluster": {"server": "127.0.0.1:6443"}}, "clusters[c].cluster.server", "must be https://HOST:PORT"),
        ({"cluster": {"server": "https://127.0.0.1:x"}}, "clusters[c].cluster.server", "must be https://HOST:PORT"),
        ({"cluster": {"server": None}}, "clusters[c].cluster.server", "must be https://HOST:PORT"),
        ({"cluster": {"tls-servername": "x"}}, "clusters[c].cluster.tls-servername", "did you mean tls-server-name?"),
        ({"cluster": {"what": "x"}}, "clusters[c].cluster.what", "remove it"),
        ({"cluster": {"insecure-skip-tls-verify": "yes"}}, "clusters[c].cluster.insecure-skip-tls-verify", "true or false"),
        ({"cluster": {"certificate-authority-data": "§"}}, "clusters[c].cluster.certificate-authority-data", "not base64"),
        ({"context": {"namspace": "n"}}, "contexts[x].context.namspace", "did you mean namespace?"),
        ({"context": {"user": "v"}}, "contexts[x].context.user", "there is no user 'v'; there are: u"),
        ({"context": {"cluster": "d"}}, "contexts[x].context.cluster", "there is no cluster 'd'; there are: c"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(changed: dict[str, Any], key: str, remedy: str, tmp_path: Path) -> None:
    """The message names the file and the key, and says what to do."""
    path = written(tmp_path / "config", kubeconfig(**changed))
    said = refusal(path)

    assert f"kubeconfig {path}: {key}: " in said
    assert remedy in said


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("a: [", r"is not YAML: .* line"),
        ("- not a mapping", "is not a mapping"),
        ("when: 2020-13-45", "is not YAML"),
        ("", "current-context: is not set; .*there is none"),
        ({**kubeconfig(), "kind": "Pod"}, "kind: must be Config, not 'Pod'"),
        ({**kubeconfig(), "apiVersion": "v2"}, "apiVersion: must be v1"),
        ({**kubeconfig(), "current-context": "y"}, "current-context: there is no context 'y'; choose one .*: x"),
        ({**kubeconfig(), "current-context": ""}, "current-context: is not set; choose one .*: x"),
        ({**kubeconfig(), "users": {}, "clusters": {"a": 1}}, "clusters: must be a list"),
        ({**kubeconfig(), "users": [{"user": {}}]}, r"users\[0\]: has no name"),
        ({**kubeconfig(), "users": [{"name": "u"}, {"name": "u"}]}, r"users\[u\].user: is there twice"),
        (
            {**kubeconfig(), "users": [{"name": "u", "user": []}, {"name": "v", "user": "me"}]},
            r"users\[v\].user: must be a mapping",
        ),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_named(document: Any, said: str, tmp_path: Path) -> None:
    """Nonsense ends in one line with the file's name."""
    path = written(tmp_path / "config", document)

    assert re.search(f"kubeconfig {re.escape(str(path))}.*{said}", refusal(path))


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    """A binary file, and a folder, end in one line."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")

    assert "binary: cannot be read" in refusal(tmp_path / "binary")
    assert "cannot be read" in refusal(tmp_path)


def test_other_users_and_clusters_may_be_anything(tmp_path: Path) -> None:
    """What the current context does not name is not looked at, and extensions mean nothing."""
    document = kubeconfig(cluster={"extensions": [{"name": "e", "extension": {"a": 1}}]})
    document["users"].append({"name": "other", "user": {"as": "alice"}})
    document["clusters"].append({"name": "other", "cluster": {"proxy-url": "socks5://x"}})
    found = find(written(tmp_path / "config", {**document, "preferences": {"colors": True}, "extensions": []}))

    assert found is not None
    assert found.user == {"token": "t"}


def test_a_list_of_files_is_merged_as_kubectl_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that names something wins, whole; paths are relative to their file; a missing file is passed over."""
    written(tmp_path / "b" / "ca.crt", "CA")
    first = {"users": [{"name": "u", "user": {"token": "first"}}], "current-context": "x"}
    second = kubeconfig(
        user={"token": "second", "as": "alice"}, cluster={"certificate-authority": "ca.crt"}, context={"namespace": "n"}
    )
    files = [
        tmp_path / "none",
        written(tmp_path / "a" / "config", first),
        written(tmp_path / "b" / "config", {**second, "current-context": "elsewhere"}),
        written(tmp_path / "c" / "config", kubeconfig(cluster={"proxy-url": "socks5://x"})),
    ]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, ["", *files, files[1]])))
    found = find()

    assert found is not None
    assert found.user == {"token": "first"}
    assert found.cluster == {"server": SERVER, "certificate-authority": str(tmp_path / "b" / "ca.crt")}
    assert current_namespace() == "n"


def test_a_missing_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file that does not exist is refused; of a list it is named when something is missing in the others."""
    none, other = tmp_path / "none", tmp_path / "other"
    assert f"{none}: does not exist; pass --kubeconfig FILE, or set KUBECONFIG" in refusal(none)

    monkeypatch.setenv("KUBECONFIG", f"{none}:{other}")
    assert f"{none}:{other}: does not exist" in refusal()
    written(other, {**kubeconfig(), "current-context": "y"})
    assert f"there is no context 'y'; choose one with `kubectl config use-context NAME`: x ({none} of KUBECONFIG" in refusal()
    written(other, {**kubeconfig(), "users": []})
    assert f"there is no user 'u'; there are: none ({none} of KUBECONFIG does not exist)" in refusal()


async def test_the_client_is_told_the_way(tmp_path: Path) -> None:
    """Proxy, server name, authority and basic authentication reach the client; empty values count as absent, data win."""
    authority = base64.b64encode(b"CA").decode()
    cluster = {
        "proxy-url": "http://127.0.0.1:3128",
        "tls-server-name": "kubernetes",
        "certificate-authority": "none.crt",
        "certificate-authority-data": f"{authority[:2]}\n{authority[2:]}",
        "disable-compression": True,
    }
    user = {"username": "me", "token": "", "as": "", "as-groups": []}
    configuration, token = await load_configuration(written(tmp_path / "config", kubeconfig(cluster=cluster, user=user)))

    assert (configuration.proxy, configuration.tls_server_name, token) == ("http://127.0.0.1:3128", "kubernetes", None)
    assert Path(configuration.ssl_ca_cert).read_text() == "CA"
    assert (await configuration.auth_settings())["BearerToken"]["value"] == f"Basic {base64.b64encode(b'me:').decode()}"
    assert configuration.client_session_kwargs["skip_auto_headers"] == ("Accept-Encoding",)


async def test_a_token_file_wins_over_a_token(tmp_path: Path) -> None:
    """As in kubectl the token counts as long as the file cannot be read; a link is followed anew each time."""
    path = written(tmp_path / "config", kubeconfig(user={"token": "old", "tokenFile": "link"}))
    configuration, token = await load_configuration(path)
    assert (await configuration.auth_settings())["BearerToken"]["value"] == "Bearer old"
    assert token is not None

    for number in ("1", "2"):
        written(tmp_path / number, f"new-{number}")
        link = tmp_path / "next"
        link.symlink_to(tmp_path / number)
        link.replace(tmp_path / "link")  # as the kubelet does
        token.forget()
        assert (await configuration.auth_settings())["BearerToken"]["value"] == f"Bearer new-{number}"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"cluster": {"certificate-authority-data": base64.b64encode(b"nonsense").decode()}}, "certificates"),
        (
            {"user": {"exec": {**EXEC, "command": "no-such-program", "installHint": "get\nit"}}},
            "cannot run no-such-program: .*; get it",
        ),
        ({"user": {"exec": {**EXEC, "command": "./no-such-program"}}}, "cannot run /.*/no-such-program"),
        ({"user": {"exec": {**EXEC, "command": "false"}}}, r"users\[u\].user.exec: false: .*returned 1"),
        ({"user": {"exec": {**EXEC, "command": "echo", "args": ["[]"]}}}, r"users\[u\].user.exec: echo: "),
    ],
)
async def test_credentials_that_cannot_be_used_are_told(changed: dict[str, Any], said: str, tmp_path: Path) -> None:
    """A bad certificate and a program that fails end in one line, before any request."""
    path = written(tmp_path / "config", kubeconfig(**changed))
    with pytest.raises(ConnectError, match=said) as caught:
        await Api.connect(field_manager="tests", kubeconfig=path)

    assert "\n" not in caught.value.message
