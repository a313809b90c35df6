"""What Kubernetes lets names and labels be (RFC 1123, and "Names" and "Labels" of its documentation), and digests for names."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

SUBDOMAIN_LIMIT = 253
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DOTTED = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN = re.compile(_DOTTED)
_LABEL_KEY = re.compile(rf"((?=[^/]{{1,253}}/){_DOTTED}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def is_dns_label(name: str) -> bool:
    """Whether a namespace can have this name."""
    return _LABEL.fullmatch(name) is not None


def is_dns_subdomain(name: str, most: int = SUBDOMAIN_LIMIT) -> bool:
    """Whether most other objects can have this name, of at most so many characters."""
    return len(name) <= most and _SUBDOMAIN.fullmatch(name) is not None


def is_label_key(key: str) -> bool:
    """Whether a label can have this key, with or without a prefix."""
    return _LABEL_KEY.fullmatch(key) is not None


def is_label_value(value: str) -> bool:
    """Whether a label can have this value."""
    return _LABEL_VALUE.fullmatch(value) is not None


def digest(*parts: Any, length: int = 8) -> str:
    """Lower-case hexadecimal characters that depend on all parts, which are JSON values: ``digest("a", 1)``."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:length]
