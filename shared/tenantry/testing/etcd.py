"""What the etcd of a test's control plane holds, and the way back to what it held before.

A used control plane costs 16 s of CPU to replace: three programs start, and everything that is installed is compiled and
published again.  Putting its etcd back costs a fraction of a second; the API server and the controllers follow by their
watches, as they follow everything else.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

_NAMESPACES = b"/registry/namespaces/"
_CHURN = b"/registry/leases/"
"""What control planes write at rest."""


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _key(encoded: str) -> bytes:
    return base64.b64decode(encoded)


_START, _END = _base64(b"/registry/"), _base64(b"/registry0")


class NotQuiet(Exception):
    """Something goes on writing: the names of up to five keys."""


class Etcd:
    """One etcd, by the JSON gateway on its Unix socket.

    Raises:
        OSError, http.client.HTTPException: it does not answer.
    """

    def __init__(self, path: Path) -> None:
        self._connection = _Unix(path)

    def versions(self) -> dict[str, str]:
        """The revision of the last change of every key (base64)."""
        return {each["key"]: each["mod_revision"] for each in self._range(keys_only=True)}

    def values(self) -> dict[str, tuple[str, str]]:
        """The same, with the values (base64)."""
        return {each["key"]: (each["mod_revision"], each.get("value", "")) for each in self._range()}

    def write(self, put: dict[str, str], delete: Iterable[str]) -> None:
        """Put values and delete keys, each in a revision of its own, as an API server does: watches rely on that."""
        for key in delete:
            self._post("/v3/kv/deleterange", {"key": key})
        for key, value in put.items():
            self._post("/v3/kv/put", {"key": key, "value": value})

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._connection.close()

    def _range(self, **options: Any) -> list[dict[str, str]]:
        found: list[dict[str, str]] = self._post("/v3/kv/range", {"key": _START, "range_end": _END, **options}).get("kvs", [])
        return [each for each in found if not _key(each["key"]).startswith(_CHURN)]

    def _post(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        self._connection.request("POST", path, json.dumps(document), {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise http.client.HTTPException(f"etcd answers {answer.status}: {body[:200]!r}")
        found: dict[str, Any] = json.loads(body)
        return found


class Baseline:
    """What an etcd holds at rest, from now on; `restore` brings it back."""

    def __init__(self, etcd: Etcd, within_s: float = 20.0, quiet_s: float = 1.0) -> None:
        self._etcd = etcd
        self._versions: dict[str, str] = {}
        self._values: dict[str, str] = {}
        with closing(etcd):
            _until_quiet(self._learn, within_s, quiet_s)

    def restore(self, keep: Collection[str] = (), within_s: float = 10.0, quiet_s: float = 0.2) -> None:
        """Delete what is new, except ``keep``, and put back what was changed or deleted, until nothing more comes.

        Raises:
            NotQuiet: controllers go on writing something else.
            OSError, http.client.HTTPException: etcd does not answer.
        """
        kept = {_base64(key.encode()) for key in keep}
        with closing(self._etcd):
            _until_quiet(lambda: self._restore(kept), within_s, quiet_s)

    def _learn(self) -> Collection[str]:
        now = self._etcd.versions()
        changed = {key for key in now.keys() | self._versions.keys() if now.get(key) != self._versions.get(key)}
        if changed:
            held = self._etcd.values()
            self._versions = {key: version for key, (version, _) in held.items()}
            self._values = {key: value for key, (_, value) in held.items()}
        return changed

    def _restore(self, kept: Collection[str]) -> Collection[str]:
        now = self._etcd.versions()
        new = {key for key in now.keys() - self._values.keys() if key not in kept}
        touched = [key for key, version in self._versions.items() if now.get(key) != version]
        if touched:
            held = self._etcd.values()
            self._versions.update({key: held[key][0] for key in touched if key in held})
            touched = [key for key in touched if key not in held or held[key][1] != self._values[key]]
        if new or touched:
            # namespaces first: what controllers miss in one that is there they make again
            self._etcd.write(
                {key: self._values[key] for key in touched},
                sorted(new, key=lambda key: not _key(key).startswith(_NAMESPACES)),
            )
        return {*new, *touched}


def _until_quiet(step: Callable[[], Collection[str]], within_s: float, quiet_s: float) -> None:
    """Repeat a step until it has changed no key for a while."""
    give_up_at = time.monotonic() + within_s
    quiet_since = time.monotonic()
    while (now := time.monotonic()) < quiet_since + quiet_s:
        if changed := step():
            if now > give_up_at:
                raise NotQuiet(", ".join(_key(key).decode() for key in sorted(changed)[:5]))
            quiet_since = time.monotonic()
        time.sleep(0.02)


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self) -> None:
        # The name of a socket has at most 107 characters; going through the open folder keeps it short.
        folder = os.open(self._path.parent, os.O_PATH)
        try:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(self.timeout)
            self.sock.connect(f"/proc/self/fd/{folder}/{self._path.name}")
        finally:
            os.close(folder)
