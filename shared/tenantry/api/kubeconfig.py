"""A kubeconfig as kubectl reads it: one file or several, and the cluster, the user and the namespace of the current context.

In a list of files (``KUBECONFIG=a:b``) the first file that names a cluster, a user, a context or the current context wins, and
wins whole; files of the list that do not exist are passed over; a relative path is relative to the file that it stands in.  A key
in use is either followed or refused by name: one that is passed over could lead elsewhere, or to another identity.
"""

from __future__ import annotations

import base64
import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import yaml

from tenantry.api.errors import ConnectError

VARIABLE = "KUBECONFIG"

SUPPORTED: Mapping[str, Mapping[str, type]] = {
    "clusters": {
        "server": str,
        "tls-server-name": str,
        "insecure-skip-tls-verify": bool,
        "certificate-authority": str,
        "certificate-authority-data": str,
        "proxy-url": str,
        "disable-compression": bool,
        "extensions": object,
    },
    "users": {
        "client-certificate": str,
        "client-certificate-data": str,
        "client-key": str,
        "client-key-data": str,
        "token": str,
        "tokenFile": str,
        "username": str,
        "password": str,
        "exec": dict,
        "extensions": object,
    },
    "contexts": {"cluster": str, "user": str, "namespace": str, "extensions": object},
    "exec": {
        "apiVersion": str,
        "command": str,
        "args": list,
        "env": list,
        "installHint": str,
        "interactiveMode": str,
        "provideClusterInfo": bool,
    },
}
"""The keys that are followed, and what they must be; extensions mean nothing to a client."""

_IMPERSONATION = ("as", "as-uid", "as-groups", "as-user-extra")
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(_IMPERSONATION, "impersonation is not supported; name a user who has the rights itself"),
    "auth-provider": "these plugins are not supported; use exec, token or tokenFile",
}
"""Keys of users that are not followed, and what to do."""

_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_WAYS = (("token", "tokenFile"), ("username", "password"), ("exec",))
_TYPES = {str: "text (in quotes, if it looks like a number)", bool: "true or false", list: "a list", dict: "a mapping"}


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The current context: where, who, and in which namespace.  Paths in it are absolute, empty values are left out."""

    files: str
    cluster: dict[str, Any]
    user: dict[str, Any]
    namespace: str
    user_key: str

    def as_user(self, user: Mapping[str, Any]) -> dict[str, Any]:
        """A kubeconfig for the same cluster as another user."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "cluster", "cluster": self.cluster}],
            "users": [{"name": "user", "user": dict(user)}],
            "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": "user"}}],
            "current-context": "context",
        }


@dataclass(frozen=True, slots=True)
class _Entry:
    """A cluster, user or context; ``where`` is the path to its body in messages."""

    file: Path
    where: str
    body: Mapping[str, Any]

    def refuse(self, key: str, why: str) -> NoReturn:
        _refuse(f"{self.where}.{key}", why)


def _refuse(where: str, why: str) -> NoReturn:
    raise ConnectError(f"kubeconfig {where}: {why}")


def find(kubeconfig: Path | None = None) -> Kubeconfig | None:
    """The kubeconfig that is given, else that of the environment; None in a pod, and where there is none.

    Raises:
        ConnectError: it cannot be used; the message names the file, the key and what to do.
    """
    if kubeconfig is not None:
        return _read([kubeconfig])
    if listed := [Path(each) for each in os.environ.get(VARIABLE, "").split(os.pathsep) if each]:
        return _read(listed)
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return None
    default = Path.home() / ".kube" / "config"
    return _read([default]) if default.exists() else None


def _read(files: Iterable[Path]) -> Kubeconfig:
    documents: dict[Path, dict[str, Any]] = {}
    missing: list[Path] = []
    for file in dict.fromkeys(file.absolute() for file in files):
        try:
            documents[file] = _parse(file, file.read_text())
        except FileNotFoundError:
            missing.append(file)
        except (OSError, UnicodeError) as error:
            _refuse(str(file), f"cannot be read: {_one_line(error)}")
    if not documents:
        _refuse(_joined(missing), f"does not exist; pass --kubeconfig FILE, or set {VARIABLE} to a file that does")
    absent = f" ({_joined(missing)} of {VARIABLE} does not exist)" if missing else ""
    context = _current(documents, absent)
    cluster = _checked(_of(context, "cluster", documents, absent), "clusters")
    entry = _of(context, "user", documents, absent) if context.body.get("user") else _Entry(context.file, "", {})
    namespace = _checked(context, "contexts").get("namespace", "")
    return Kubeconfig(_joined(documents), cluster, _user(entry), namespace, entry.where)


def _parse(file: Path, text: str) -> dict[str, Any]:
    try:
        document = yaml.load(text, yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError) as error:
        _refuse(str(file), f"is not YAML: {_one_line(error)}")
    if document is None:
        return {}
    if not isinstance(document, dict):
        _refuse(str(file), "is not a mapping; is this a kubeconfig?")
    for key, wanted in (("kind", "Config"), ("apiVersion", "v1")):
        if (document.get(key) or wanted) != wanted:
            _refuse(f"{file}: {key}", f"must be {wanted}, not {document[key]!r}; is this a kubeconfig?")
    return document


def _entries(documents: Mapping[Path, dict[str, Any]], part: str) -> dict[str, _Entry]:
    """The clusters, users or contexts by name; the first file that has a name wins."""
    found: dict[str, _Entry] = {}
    for file, document in documents.items():
        listed = document.get(part) or []
        if not isinstance(listed, list):
            _refuse(f"{file}: {part}", "must be a list")
        for position, each in enumerate(listed):
            name = each.get("name") if isinstance(each, dict) else None
            if not isinstance(name, str):
                _refuse(f"{file}: {part}[{position}]", "has no name; give it one, as text")
            body_key = part.removesuffix("s")
            entry = _Entry(file, f"{file}: {part}[{name}].{body_key}", each.get(body_key) or {})
            if not isinstance(entry.body, dict):
                _refuse(entry.where, "must be a mapping")
            if found.setdefault(name, entry).file == file and found[name] is not entry:
                _refuse(entry.where, "is there twice; remove one")
    return found


def _current(documents: Mapping[Path, dict[str, Any]], absent: str) -> _Entry:
    contexts = _entries(documents, "contexts")
    remedy = f"choose one with `kubectl config use-context NAME`: {', '.join(contexts) or 'there is none'}{absent}"
    for file, document in documents.items():
        if name := document.get("current-context"):
            if name not in contexts:
                _refuse(f"{file}: current-context", f"there is no context {name!r}; {remedy}")
            return contexts[name]
    _refuse(f"{_joined(documents)}: current-context", f"is not set; {remedy}")


def _of(context: _Entry, key: str, documents: Mapping[Path, dict[str, Any]], absent: str) -> _Entry:
    """The cluster or the user that a context names."""
    entries, name = _entries(documents, f"{key}s"), context.body.get(key)
    if not isinstance(name, str) or name not in entries:
        context.refuse(key, f"there is no {key} {name!r}; there are: {', '.join(entries) or 'none'}{absent}")
    return entries[name]


def _user(entry: _Entry) -> dict[str, Any]:
    user = _checked(entry, "users")
    given = [next(key for key in way if key in user) for way in _WAYS if user.keys() & set(way)]
    if len(given) > 1:
        entry.refuse(given[1], f"there is {given[0]} as well; keep one way to say who you are")
    if "exec" in user:
        user["exec"] = _exec(entry, user["exec"])
    if user.keys() & {"username", "password"}:
        user = {"username": "", "password": "", **user}
    return user


def _exec(entry: _Entry, program: Mapping[str, Any]) -> dict[str, Any]:
    inside = _Entry(entry.file, f"{entry.where}.exec", program)
    made = _checked(inside, "exec")
    for needed in ("apiVersion", "command"):
        if needed not in made:
            inside.refuse(needed, "is missing")
    if made.get("provideClusterInfo"):
        inside.refuse("provideClusterInfo", "is not supported; use a program that does without, or a token")
    if made.get("interactiveMode", "Never") not in ("Never", "IfAvailable"):
        inside.refuse(
            "interactiveMode", "must be Never or IfAvailable: functions have no terminal; log in before, or use a token"
        )
    if not all(isinstance(each, str) for each in made.get("args", ())):
        inside.refuse("args", "must be texts; put numbers in quotes")
    for each in made.get("env", ()):
        if not isinstance(each, dict) or not all(isinstance(each.get(key), str) for key in ("name", "value")):
            inside.refuse("env", "must be a list of name and value, both text")
    if os.sep in made["command"]:
        made["command"] = str(entry.file.parent / made["command"])
    return made


def _checked(entry: _Entry, part: str) -> dict[str, Any]:
    """The values of an entry, without empty ones."""
    keys, prefix = SUPPORTED[part], "exec." if part == "exec" else ""
    made = {str(key): value for key, value in entry.body.items() if value not in (None, "", [], {})}
    for key, value in made.items():
        if key in REFUSED and part == "users":
            entry.refuse(key, REFUSED[key])
        wanted = keys.get(key)
        if wanted is None:
            close = difflib.get_close_matches(key, keys, 1)
            entry.refuse(key, f"is not known here{f'; did you mean {prefix}{close[0]}?' if close else '; remove it'}")
        if not isinstance(value, wanted):
            entry.refuse(key, f"must be {_TYPES[wanted]}")
    if part == "clusters" and not _is_url(made.get("server", "")):
        entry.refuse("server", f"must be https://HOST:PORT, not {made.get('server', '')!r}")
    if "proxy-url" in made and not _is_url(made["proxy-url"]):
        entry.refuse("proxy-url", "must be http://HOST:PORT or https://HOST:PORT; proxies of other kinds are not supported")
    for key in [key for key in made if key.endswith("-data")]:
        made[key] = "".join(made[key].split())
        try:
            base64.b64decode(made[key], validate=True)
        except ValueError:
            entry.refuse(key, "is not base64")
        made.pop(key.removesuffix("-data"), None)  # the data win
    for key in made.keys() & set(_FILES):
        made[key] = str(entry.file.parent / made[key])
        if key != "tokenFile" and not Path(made[key]).is_file():
            entry.refuse(key, f"there is no file {made[key]}")
    return made


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _joined(files: Iterable[Path]) -> str:
    return os.pathsep.join(map(str, files))


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
