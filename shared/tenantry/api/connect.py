"""Where the API server is and who we are: kubeconfig, or the service account of the pod.

The official client loads both.  On top of it, a token that lives in a file is read again when it
changes: a projected token is replaced on disk every hour or so, and a process that keeps the first one
is locked out.  `TokenFile` looks at the file's modification time at most once a second, so rotation
costs nothing on the hot path.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import yaml

from tenantry.api.errors import ApiError
from tenantry.api.official import Configuration, incluster_config, kube_config

SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LOOK_AGAIN_AFTER_S = 1.0


class ConnectError(ApiError):
    """No usable way to an API server; the message says what to set."""


class TokenFile:
    """A bearer token in a file that others replace."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = ""
        self._mtime_ns = -1
        self._looked = -_LOOK_AGAIN_AFTER_S

    def current(self) -> str:
        """The token as it is on disk now, at most one second old; the last good one while the file is gone."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_AGAIN_AFTER_S:
            self._looked = now
            try:
                mtime_ns = self._path.stat().st_mtime_ns
                if mtime_ns != self._mtime_ns:
                    self._token = self._path.read_text().strip()
                    self._mtime_ns = mtime_ns
            except OSError as error:
                if not self._token:
                    raise ConnectError(f"cannot read the token file {self._path}: {error.strerror}") from error
        return self._token

    def forget(self) -> None:
        """Look at the file at the next use: the server refused what we had."""
        self._looked = -_LOOK_AGAIN_AFTER_S
        self._mtime_ns = -1

    def install(self, configuration: Any) -> None:
        """Make the client ask this file for its token before each request."""

        def refresh(target: Any) -> None:
            target.api_key["BearerToken"] = "Bearer " + self.current()

        refresh(configuration)
        configuration.refresh_api_key_hook = refresh


def _kubeconfig_path(kubeconfig: Path | None) -> Path | None:
    if kubeconfig is not None:
        return kubeconfig
    if (from_env := os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]) != "":
        return Path(from_env)
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return None
    default = Path.home() / ".kube" / "config"
    return default if default.exists() else None


def _current_user(document: dict[str, Any]) -> dict[str, Any]:
    current = document.get("current-context")
    for context in document.get("contexts") or []:
        if context.get("name") == current:
            wanted = (context.get("context") or {}).get("user")
            for user in document.get("users") or []:
                if user.get("name") == wanted:
                    return user.get("user") or {}
    return {}


def current_namespace(kubeconfig: Path | None = None) -> str:
    """The namespace of the kubeconfig's current context, or of the pod; ``default`` where none is said."""
    path = _kubeconfig_path(kubeconfig)
    try:
        if path is None:
            return (SERVICE_ACCOUNT_DIR / "namespace").read_text().strip()
        document = yaml.load(path.read_text(), yaml.CSafeLoader)
        contexts = {each["name"]: each.get("context") or {} for each in document.get("contexts") or ()}
        return contexts.get(document.get("current-context"), {}).get("namespace") or "default"
    except (OSError, yaml.YAMLError, AttributeError, TypeError, KeyError):
        return "default"


async def load_configuration(kubeconfig: Path | None = None) -> tuple[Any, TokenFile | None]:
    """The client configuration and the token file it follows, if any.

    Order: the argument, ``KUBECONFIG``, the pod's service account, ``~/.kube/config``.

    Raises:
        ConnectError: nothing of these exists or can be read.
    """
    configuration = Configuration()
    # Looking up proxy settings costs two thread hops a request and the API server needs no proxy.
    configuration.client_session_kwargs = {"trust_env": False}
    path = _kubeconfig_path(kubeconfig)
    if path is None:
        return configuration, _in_cluster(configuration)
    try:
        document = yaml.load(path.read_text(), yaml.CSafeLoader)
    except (OSError, yaml.YAMLError) as error:
        raise ConnectError(f"cannot read the kubeconfig {path}: {error}") from error
    if not isinstance(document, dict):
        raise ConnectError(f"the kubeconfig {path} is not a mapping")
    user = _current_user(document)
    try:
        await kube_config.load_kube_config(config_file=str(path), client_configuration=configuration, persist_config=False)
    except Exception as error:
        raise ConnectError(f"the kubeconfig {path} is not usable: {error}") from error
    token_file = None
    if "tokenFile" in user and "token" not in user:
        token_file = TokenFile((path.parent / user["tokenFile"]).resolve())
        token_file.install(configuration)
    return configuration, token_file


def _in_cluster(configuration: Any) -> TokenFile:
    token_path, ca_path = SERVICE_ACCOUNT_DIR / "token", SERVICE_ACCOUNT_DIR / "ca.crt"
    try:
        incluster_config.InClusterConfigLoader(
            token_filename=str(token_path), cert_filename=str(ca_path), try_refresh_token=False
        ).load_and_set(configuration)
    except Exception as error:
        raise ConnectError(
            f"no API server to talk to: pass --kubeconfig FILE, set KUBECONFIG, or run in a pod with a service account ({error})"
        ) from error
    token_file = TokenFile(token_path)
    token_file.install(configuration)
    return token_file
