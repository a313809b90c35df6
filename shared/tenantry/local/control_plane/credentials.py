"""Who may talk to the API server: two bearer tokens, the key of service account tokens, and kubeconfigs.

The API server makes its own serving certificate, with a CA, in the ``certs`` folder; a certificate that is
older than :data:`_RENEW_AFTER_DAYS` is dropped before a start.  The admin is in the group
``system:masters``; the controller manager has the user name that Kubernetes binds its rights to.  Tokens and
the key are random, stay the same as long as the data folder exists, and are readable by its owner alone.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

_RENEW_AFTER_DAYS = 300
#: DER of an ECPrivateKey on P-256 (RFC 5915) around 32 random octets; the public key is optional there.
_EC_PREFIX = bytes.fromhex("30310201010420")
_EC_SUFFIX = bytes.fromhex("a00a06082a8648ce3d030107")
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


@dataclass(frozen=True)
class Credentials:
    """Paths of the secrets of one data folder, and the two tokens."""

    folder: Path
    admin_token: str
    manager_token: str

    @property
    def certificate(self) -> Path:
        """The serving certificate followed by its CA, written by the API server."""
        return self.folder / "certs" / "apiserver.crt"

    def ca(self) -> str:
        """Return the CA certificate (PEM): the last one of the file.

        Raises:
            OSError or ValueError: the API server has not written it (completely) yet.
        """
        text = self.certificate.read_text()
        blocks: list[str] = re.findall(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n", text, re.DOTALL)
        if len(blocks) < 2 or not self.certificate.with_suffix(".key").exists():
            raise ValueError(f"{self.certificate} is not complete yet")
        return blocks[-1]


def prepare(folder: Path) -> Credentials:
    """Create what is missing in the data folder, and return all of it."""
    certs = folder / "certs"
    certs.mkdir(mode=0o700, exist_ok=True)
    for old in certs.iterdir():
        if time.time() - old.stat().st_mtime > _RENEW_AFTER_DAYS * 86400:
            old.unlink()
    key = folder / "service-account.key"
    if not key.exists():
        write_private(key, _service_account_key())
    tokens = folder / "tokens.csv"
    if not tokens.exists():
        admin, manager = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        lines = [
            f'{admin},tenantry-admin,tenantry-admin,"system:masters"',
            f"{manager},system:kube-controller-manager,kube-controller-manager",
        ]
        write_private(tokens, "\n".join(lines) + "\n")
    admin_line, manager_line = tokens.read_text().splitlines()
    return Credentials(folder, admin_line.partition(",")[0], manager_line.partition(",")[0])


def write_kubeconfig(path: Path, *, server: str, ca: str, user: str, token: str) -> None:
    """Write a self-contained kubeconfig with one context, named ``tenantry``."""
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(ca.encode()).decode()}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "tenantry",
        "clusters": [{"name": "tenantry", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "tenantry", "context": {"cluster": "tenantry", "user": user}}],
    }
    write_private(path, yaml.safe_dump(document, sort_keys=False))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    scratch = path.with_name(f".{path.name}.new")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    scratch.replace(path)


def _service_account_key() -> str:
    number = secrets.randbelow(_P256_ORDER - 1) + 1
    body = base64.encodebytes(_EC_PREFIX + number.to_bytes(32, "big") + _EC_SUFFIX).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{body}-----END EC PRIVATE KEY-----\n"
