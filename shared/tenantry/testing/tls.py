"""A certificate for 127.0.0.1, made in memory of arithmetic alone: for servers of tests, on loopback, for a day.

Neither the package ``cryptography`` nor the program ``openssl`` has to be there.  The certificate is self-signed (X.509 v3,
RFC 5280; ECDSA on P-256 with SHA-256, RFC 5758 and SEC 1), so it is its own authority: whoever trusts it trusts nothing else.
The arithmetic does not run in constant time, which nobody can observe here; it must not sign anything for production.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import os
import secrets
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_Point = tuple[int, int] | None

_PUBLIC_KEY, _CURVE, _ECDSA_SHA256 = "1.2.840.10045.2.1", "1.2.840.10045.3.1.7", "1.2.840.10045.4.3.2"
_COMMON_NAME, _ALT_NAME, _CONSTRAINTS, _USAGE, _KEY_ID = "2.5.4.3", "2.5.29.17", "2.5.29.19", "2.5.29.15", "2.5.29.14"


def loopback_context(folder: Path) -> tuple[ssl.SSLContext, str]:
    """A server's TLS context for 127.0.0.1, and the certificate (PEM) that its clients must trust.

    The key passes through a file in ``folder``, because `ssl` loads keys only from files; it is removed at once.
    """
    certificate, key = make_certificate()
    path = folder / f".{secrets.token_hex(8)}.pem"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(certificate + key)
        context.load_cert_chain(path)
    finally:
        path.unlink(missing_ok=True)
    context.set_alpn_protocols(["http/1.1"])
    return context, certificate


def make_certificate(name: str = "tenantry tests", days: int = 1) -> tuple[str, str]:
    """A certificate for 127.0.0.1 and its private key, both PEM."""
    private = secrets.randbelow(_N - 1) + 1
    public = _octets(_times(private, _G))
    algorithm = _sequence(_oid(_ECDSA_SHA256))
    distinguished = _sequence(_der(0x31, _sequence(_oid(_COMMON_NAME), _der(0x0C, name.encode()))))
    begin = datetime.now(UTC) - timedelta(hours=1)
    end = begin + timedelta(days=days, hours=1)
    extensions = _sequence(
        _extension(_CONSTRAINTS, _sequence(_der(0x01, b"\xff")), critical=True),
        _extension(_USAGE, _der(0x03, b"\x02\x84"), critical=True),  # digitalSignature, keyCertSign
        _extension(_KEY_ID, _der(0x04, hashlib.sha256(public).digest()[:20])),
        _extension(_ALT_NAME, _sequence(_der(0x87, ipaddress.ip_address("127.0.0.1").packed))),
    )
    to_be_signed = _sequence(
        _der(0xA0, _integer(2)),
        _integer(secrets.randbits(127) | 1),
        algorithm,
        distinguished,
        _sequence(_time(begin), _time(end)),
        distinguished,
        _sequence(_sequence(_oid(_PUBLIC_KEY), _oid(_CURVE)), _bits(public)),
        _der(0xA3, extensions),
    )
    certificate = _sequence(to_be_signed, algorithm, _bits(_sign(private, to_be_signed)))
    key = _sequence(_integer(1), _der(0x04, private.to_bytes(32, "big")), _der(0xA0, _oid(_CURVE)), _der(0xA1, _bits(public)))
    return _pem("CERTIFICATE", certificate), _pem("EC PRIVATE KEY", key)


# -- the curve -----------------------------------------------------------------------------------------------


def _plus(a: _Point, b: _Point) -> _Point:
    if a is None or b is None:
        return b if a is None else a
    if a[0] == b[0] and (a[1] + b[1]) % _P == 0:
        return None
    rise, run = (3 * (a[0] * a[0] - 1), 2 * a[1]) if a == b else (b[1] - a[1], b[0] - a[0])
    slope = rise * pow(run, -1, _P)
    x = (slope * slope - a[0] - b[0]) % _P
    return x, (slope * (a[0] - x) - a[1]) % _P


def _times(scalar: int, point: _Point) -> tuple[int, int]:
    result: _Point = None
    while scalar:
        if scalar & 1:
            result = _plus(result, point)
        point = _plus(point, point)
        scalar >>= 1
    assert result is not None
    return result


def _octets(point: tuple[int, int]) -> bytes:
    return b"\x04" + point[0].to_bytes(32, "big") + point[1].to_bytes(32, "big")


def _sign(private: int, message: bytes) -> bytes:
    digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
    while True:
        nonce = secrets.randbelow(_N - 1) + 1
        r = _times(nonce, _G)[0] % _N
        s = pow(nonce, -1, _N) * (digest + r * private) % _N
        if r and s:
            return _sequence(_integer(r), _integer(s))


# -- DER -----------------------------------------------------------------------------------------------------


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = size.to_bytes(2, "big").lstrip(b"\0") or b"\0"
    prefix = b"" if size < 128 else bytes([128 + len(length)])
    return bytes([tag]) + prefix + length + content


def _sequence(*parts: bytes) -> bytes:
    return _der(0x30, b"".join(parts))


def _integer(value: int) -> bytes:
    return _der(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _bits(content: bytes) -> bytes:
    return _der(0x03, b"\0" + content)


def _oid(dotted: str) -> bytes:
    first, second, *rest = (int(part) for part in dotted.split("."))
    encoded = bytearray([40 * first + second])
    for number in rest:
        groups = [number & 127]
        while number := number >> 7:
            groups.append(128 | number & 127)
        encoded += bytes(reversed(groups))
    return _der(0x06, bytes(encoded))


def _time(moment: datetime) -> bytes:
    return _der(0x17, moment.strftime("%y%m%d%H%M%SZ").encode())


def _extension(oid: str, value: bytes, *, critical: bool = False) -> bytes:
    return _sequence(_oid(oid), *([_der(0x01, b"\xff")] if critical else []), _der(0x04, value))


def _pem(label: str, der: bytes) -> str:
    return f"-----BEGIN {label}-----\n{base64.encodebytes(der).decode()}-----END {label}-----\n"
