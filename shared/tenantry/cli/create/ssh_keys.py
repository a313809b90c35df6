"""Keys for Git over ssh: new pairs, and the keys of hosts.

Pairs are made by the library cryptography, an extra: no function makes any.  Keys of hosts are read by ``ssh-keyscan``, which
everybody has who has Git over ssh.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import importlib.util
import shutil
import subprocess
from typing import NamedTuple

from tenantry.cli.one_line import WrongUse
from tenantry.serving.config import ConfigError

ALGORITHMS = ("ecdsa", "rsa", "ed25519")
"""ECDSA on the curve P-384, RSA with 3072 bits, Ed25519."""
_RSA_BITS = 3072
_SCAN_S = 10


class KeyPair(NamedTuple):
    """A private key in PKCS #8, as PEM, and its public key as one line of OpenSSH."""

    private: str
    public: str


def new_pair(algorithm: str) -> KeyPair:
    """A pair that nobody else has.

    Raises:
        ConfigError: the extra is not installed; the message says how to install it.
    """
    if importlib.util.find_spec("cryptography") is None:
        raise ConfigError("to make SSH keys needs the extra `ssh` (cryptography missing): pip install 'tenantry[ssh]'")
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey
    match algorithm:
        case "ecdsa":
            key = ec.generate_private_key(ec.SECP384R1())
        case "rsa":
            key = rsa.generate_private_key(65537, _RSA_BITS)
        case _:
            key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return KeyPair(private.decode(), f"{public.decode()}\n")


def scanned(host: str, port: int) -> str:
    """The keys that a host shows now, as lines of a known_hosts file.

    Raises:
        WrongUse: they cannot be read; the message says what to do.
    """
    program = shutil.which("ssh-keyscan")
    instead = "give --known-hosts-file"
    if program is None:
        raise WrongUse(f"to read the keys of {host} from the network needs the program ssh-keyscan of OpenSSH; or {instead}")
    command = [program, "-T", str(_SCAN_S), "-p", str(port), "--", host]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=3 * _SCAN_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WrongUse(f"the keys of {host} cannot be read from the network: {type(error).__name__}; {instead}") from None
    lines = sorted(line for line in done.stdout.splitlines() if line and not line.startswith("#"))
    if not lines:
        raise WrongUse(f"{host} shows no key at port {port}: is it reachable from here? If not, {instead}")
    return "\n".join(lines) + "\n"


def fingerprints(known_hosts: str) -> list[str]:
    """For each key its kind and SHA-256 fingerprint, as ``ssh-keygen -l`` shows it and as owners of hosts publish it."""
    found = []
    for line in known_hosts.splitlines():
        match line.split():
            case [_, kind, blob, *_]:
                try:
                    hashed = hashlib.sha256(base64.b64decode(blob, validate=True)).digest()
                except binascii.Error:
                    continue
                found.append(f"{kind} SHA256:{base64.b64encode(hashed).decode().rstrip('=')}")
    return found
