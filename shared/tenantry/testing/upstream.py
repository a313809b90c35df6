"""The API server that a kubeconfig names: where it is, and how its certificate is verified."""

from __future__ import annotations

import base64
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml


@dataclass(frozen=True, slots=True)
class Upstream:
    """An API server; ``context`` is None where it speaks plain HTTP."""

    server: str
    context: ssl.SSLContext | None

    @classmethod
    def of(cls, kubeconfig: Path) -> Self:
        """The API server of the current context.

        Raises:
            ValueError: the kubeconfig has no such context, or turns verification off.
        """
        _, cluster, _ = read_kubeconfig(kubeconfig)
        server = str(cluster["server"]).rstrip("/")
        if not server.startswith("https://"):
            return cls(server, None)
        if cluster.get("insecure-skip-tls-verify"):
            raise ValueError(f"{kubeconfig} turns the verification of the API server off; give it a certificate-authority")
        data, file = cluster.get("certificate-authority-data"), cluster.get("certificate-authority")
        context = ssl.create_default_context(
            cafile=str((kubeconfig.parent / file).absolute()) if file and not data else None,
            cadata=base64.b64decode(data).decode() if data else None,
        )
        return cls(server, context)


def read_kubeconfig(path: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The document, and the cluster and the user of its current context.

    Raises:
        ValueError: it has no current context, or the context names what is not there.
    """
    document = yaml.safe_load(path.read_text())

    def named(part: str, name: Any) -> dict[str, Any]:
        for each in document.get(part) or ():
            if each["name"] == name:
                found: dict[str, Any] = each[part.removesuffix("s")] or {}
                return found
        raise ValueError(f"{path} has no {part.removesuffix('s')} {name!r}")

    context = named("contexts", document.get("current-context"))
    return document, named("clusters", context["cluster"]), named("users", context["user"])
