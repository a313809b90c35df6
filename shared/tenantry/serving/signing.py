"""Who tells of decisions has the key: an HMAC over the data of an event says that one of our functions made it, as it is.

Whoever reaches the broker can post any event.  What is not signed, or by another key, the ledger does not take (docs/history.md).
"""

from __future__ import annotations

import hmac
import json
import os
from pathlib import Path

KEY_VARIABLE = "TENANTRY_DECISIONS_KEY"
"""Names the file with the key."""
SIGNATURE = "signature"
"""The extension with the HMAC-SHA256 of the data, in hexadecimal."""
SHORTEST_KEY = 16


class NoKey(ValueError):
    """There is no usable key; the message says what to do."""


def key_from_environment() -> bytes:
    """The key from the file that the environment names; empty where it names none.

    Raises:
        NoKey: the file cannot be read, or is too short for a key.
    """
    named = os.environ.get(KEY_VARIABLE, "")
    if not named:
        return b""
    try:
        key = Path(named).read_bytes().strip()
    except OSError as error:
        raise NoKey(f"cannot read the key for decisions, {named}: {error.strerror}; correct {KEY_VARIABLE}") from error
    if len(key) < SHORTEST_KEY:
        raise NoKey(
            f"the key for decisions in {named} has {len(key)} bytes, and needs {SHORTEST_KEY} at least: openssl rand -hex 32"
        )
    return key


def signature(key: bytes, data: object) -> str:
    """The HMAC of JSON values: of their compact form with sorted keys, since brokers may write JSON anew."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hmac.digest(key, text.encode(), "sha256").hex()


def is_signed(key: bytes, data: object, given: str) -> bool:
    """Whether a signature is that of the data."""
    try:
        return hmac.compare_digest(signature(key, data).encode(), given.encode())
    except (ValueError, RecursionError):
        return False
