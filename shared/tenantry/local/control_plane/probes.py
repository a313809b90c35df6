"""Asks a control plane's processes whether they are ready, over their real HTTPS ports."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

_AGGREGATED_ROLES = ("admin", "edit", "view")


class Probe:
    """GET on one local HTTPS server, trusting one CA; ``None`` for everything that is not an answer of 200."""

    def __init__(self, port: int, ca: str, token: str | None = None) -> None:
        self._port = port
        self._context = ssl.create_default_context(cadata=ca)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> bytes | None:
        """Return the body of a 200, else None."""
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=5, context=self._context)
        try:
            connection.request("GET", path, headers=self._headers)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        return body if response.status == 200 else None

    def get_json(self, path: str) -> dict[str, Any] | None:
        """Return the object in the body of a 200, else None."""
        body = self.get(path)
        return None if body is None else json.loads(body)


def etcd_healthy(path: Path) -> bool:
    """Return whether etcd answers ``GET /health`` on its Unix socket.

    The name of a socket has at most 107 characters; going through the open folder keeps it short.
    """
    folder = os.open(path.parent, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2)
            connection.connect(f"/proc/self/fd/{folder}/{path.name}")
            connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            return b'"health":"true"' in connection.recv(4096)
    except OSError:
        return False
    finally:
        os.close(folder)


def api_server_steps(probe: Probe) -> list[tuple[str, Callable[[], bool]]]:
    """Return what a serving API server must satisfy, with a name for each."""
    return [
        ("kube-apiserver answers /readyz", lambda: probe.get("/readyz") is not None),
        ("the default namespace exists", lambda: probe.get("/api/v1/namespaces/default") is not None),
    ]


def manager_steps(api: Probe, manager: Callable[[], Probe | None]) -> list[tuple[str, Callable[[], bool]]]:
    """Return what a working controller manager must satisfy: its health, and the roles that it aggregates."""

    def healthy() -> bool:
        probe = manager()
        return probe is not None and probe.get("/healthz") is not None

    def aggregated(name: str) -> bool:
        role = api.get_json(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}")
        return role is not None and bool(role.get("rules"))

    def default_account() -> bool:
        return api.get("/api/v1/namespaces/default/serviceaccounts/default") is not None

    return [
        ("kube-controller-manager answers /healthz", healthy),
        ("the roles admin, edit and view have rules", lambda: all(map(aggregated, _AGGREGATED_ROLES))),
        ("the default service account exists", default_account),
    ]
