"""Drift: where a live object differs from what a manifest names, compared as the API server compares.

Only fields that the manifest names count.  Lists that the API merges by key (containers, ports, env, volumes) are compared
by key; other lists, and maps that the API replaces whole (selectors), are compared whole, with the server's defaults
left out of the comparison.  Quantities are numbers here and a Secret's data are bytes.

The comparison may take something for drift that is none (an API may drop a zero, or a webhook may have its way): a dry run
of the apply has the last word before anything is written.  It must never overlook drift.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from tenantry.model.kinds import Object

BUILT_IN = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "autoscaling",
        "batch",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)
"""Groups whose schema is known here.  Of others every list and map below a top field may be replaced whole."""

_MERGED: Mapping[str, tuple[str, ...]] = {
    "claims": ("name",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "secrets": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
    "webhooks": ("name",),
}
_ATOMIC = frozenset(
    {
        "claimRef",
        "configMapKeyRef",
        "fieldRef",
        "labelSelector",
        "namespaceSelector",
        "nodeSelector",
        "objectSelector",
        "podSelector",
        "resourceFieldRef",
        "roleRef",
        "scopeSelector",
        "secretKeyRef",
        "secretRef",
        "selector",
    }
)
_DEFAULTS: Mapping[str, tuple[Any, ...]] = {
    "apiGroup": ("rbac.authorization.k8s.io", ""),
    "apiVersion": ("v1",),
    "creationTimestamp": (None,),
    "defaultMode": (420,),
    "divisor": ("0",),
    "kind": ("PersistentVolumeClaim",),
    "metadata": ({},),
    "operator": ("Equal",),
    "protocol": ("TCP",),
    "scope": ("*",),
    "status": ({"phase": "Pending"}, {}),
    "volumeMode": ("Filesystem",),
}
"""What the API server may add to an entry of a list that it replaces whole."""
_VANISHING_MAPS = frozenset(
    {
        "annotations",
        "binaryData",
        "data",
        "hard",
        "labels",
        "limits",
        "matchLabels",
        "nodeSelector",
        "parameters",
        "requests",
        "selector",
    }
)
_VANISHING: Mapping[str, tuple[Any, ...]] = {
    **dict.fromkeys(("value", "namespace", "subPath", "medium", "apiGroup", "subdomain", "hostname"), ("",)),
    **dict.fromkeys(("hostIPC", "hostNetwork", "hostPID", "paused", "publishNotReadyAddresses", "readOnly"), (False,)),
    **dict.fromkeys(("stdin", "stdinOnce", "tty"), (False,)),
    **dict.fromkeys(("initialDelaySeconds", "minReadySeconds", "nodePort"), (0,)),
}
"""Zeros that the API server does not store, by field."""
_QUANTITIES_IN = frozenset({"capacity", "hard", "limits", "max", "min", "overhead", "podFixed", "requests", "default"})
_QUANTITIES = frozenset({"averageValue", "divisor", "sizeLimit", "targetAverageValue"})
_QUANTITY = re.compile(r"([-+]?[0-9.]{1,28}(?:[eE][-+]?[0-9]{1,3})?)(m|u|n|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
"""As many digits as a product keeps exactly, and no exponent out of its range: `1e9999999` is a quantity for Kubernetes."""
_FACTORS: Mapping[str, Decimal] = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}
_OF_THE_SERVER = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink"}
)
_COMPARED_METADATA = ("labels", "annotations", "ownerReferences", "finalizers")


class _Missing:
    """No value at all."""


MISSING: Final = _Missing()

Entry = tuple[tuple[str, Any], ...]
"""The entry of a merged list that has these keys."""
Step = str | Entry
Path = tuple[Step, ...]


def shown(path: Path) -> str:
    """A path for people: ``spec.template.spec.containers[web].image``, ``data[key]``.  Values are never shown."""
    text = ""
    for before, step in zip(("", *path), path, strict=False):
        if not isinstance(step, str):
            text += "[" + ",".join(str(value) for _, value in step) + "]"
        elif before in ("labels", "annotations", "data", "binaryData", "matchLabels"):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def locked_fields(manifest: Object, namespace: str) -> Object:
    """The fields of a manifest that can be compared and applied.

    ``namespace`` is the one that the object lives in, empty for a cluster-scoped one.  Nulls say nothing and are left
    out, as are status and what only the server writes; a Secret's ``stringData`` becomes ``data``.
    """
    made: Object = {name: _without_nulls(value) for name, value in manifest.items() if name != "status" and value is not None}
    metadata = {
        name: value
        for name, value in (made.get("metadata") or {}).items()
        if name not in _OF_THE_SERVER and name not in ("namespace", "generateName")
    }
    made["metadata"] = {**metadata, **({"namespace": namespace} if namespace else {})}
    if made["kind"] == "Secret" and made["apiVersion"] == "v1" and isinstance(made.get("stringData"), dict):
        plain = made.pop("stringData")
        encoded = {name: base64.b64encode(str(value).encode()).decode() for name, value in plain.items()}
        data = made.get("data")
        made["data"] = {**(data if isinstance(data, dict) else {}), **encoded}
    return made


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(below) for name, below in value.items() if below is not None}
    return [_without_nulls(below) for below in value] if isinstance(value, list) else value


# -- ignored fields ----------------------------------------------------------------------------------------


_FOUND_BY = ("name", "namespace", "*")


def pointer_problem(pointer: object) -> str:
    """Why a text cannot say which field is ignored; empty when it can."""
    if not isinstance(pointer, str) or not pointer.startswith("/") or pointer == "/":
        return f"{pointer!r} is not a JSON pointer such as /spec/replicas"
    steps = pointer.split("/")[1:]
    if steps[0] in ("apiVersion", "kind", "*") or steps == ["metadata"] or (steps[0] == "metadata" and steps[1] in _FOUND_BY):
        return f"{pointer!r} is what the object is found by and cannot be ignored"
    return ""


def without_ignored(wanted: Object, pointers: Iterable[str]) -> Object:
    """``wanted`` without the fields that JSON pointers (RFC 6901) name.

    ``*`` is any step; in a list a step is the position, or the value of the entry's key (a container's name).
    """
    for pointer in pointers:
        if not pointer_problem(pointer):
            steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
            wanted = _dropped(wanted, steps)
    return wanted


def _dropped(value: Any, steps: Sequence[str]) -> Any:
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        kept = {}
        for name, below in value.items():
            if step not in ("*", name):
                kept[name] = below
            elif rest:
                kept[name] = _dropped(below, rest)
        return kept
    if isinstance(value, list):
        entries = []
        for number, entry in enumerate(value):
            keys = ("name", "mountPath", "containerPort", "port")
            named = isinstance(entry, dict) and step in [str(entry.get(key)) for key in keys]
            if step not in ("*", str(number)) and not named:
                entries.append(entry)
            elif rest:
                entries.append(_dropped(entry, rest))
        return entries
    return value


# -- comparison --------------------------------------------------------------------------------------------


def drifted(wanted: Object, live: Object) -> tuple[Path, ...]:
    """Where ``live`` differs from ``wanted`` (see `locked_fields`), in the order of the manifest."""
    return tuple(_Comparison(wanted).paths(wanted, live))


class _Comparison:
    """What is known of the kind that is compared."""

    def __init__(self, obj: Object) -> None:
        self._kind = obj["kind"]
        self._group = obj["apiVersion"].rpartition("/")[0]
        self._built_in = self._group in BUILT_IN

    def paths(self, wanted: Object, live: Object) -> Iterator[Path]:
        for name, value in wanted.items():
            if name == "metadata":
                yield from self._metadata(value, live["metadata"])
            elif name not in ("apiVersion", "kind"):
                yield from self._below(value, live.get(name, MISSING), (name,))

    def _metadata(self, wanted: Object, live: Object) -> Iterator[Path]:
        for name in _COMPARED_METADATA:
            value, present = wanted.get(name), live.get(name) or ()
            if isinstance(value, dict):
                texts = dict(present)
                yield from (("metadata", name, key) for key, text in value.items() if texts.get(key, MISSING) != text)
            elif isinstance(value, list):
                for entry in value:
                    if name == "finalizers" and entry not in present:
                        yield ("metadata", name)
                    elif isinstance(entry, dict) and not any(_covers(other, entry) for other in present):
                        yield ("metadata", name, (("uid", entry.get("uid")),))

    def _below(self, wanted: Any, live: Any, path: Path) -> Iterator[Path]:
        name = path[-1] if isinstance(path[-1], str) else ""
        if isinstance(wanted, dict):
            yield from self._map(wanted, live, path, name)
        elif isinstance(wanted, list):
            yield from self._list(wanted, live, path, name)
        elif not self._same(wanted, live, path):
            yield path

    def _map(self, wanted: Object, live: Any, path: Path, name: str) -> Iterator[Path]:
        if isinstance(live, _Missing) or not isinstance(live, dict):
            if wanted or name not in _VANISHING_MAPS:
                yield path
        elif self._built_in and name in _ATOMIC:
            if not self._same(wanted, live, path):
                yield path
        else:
            for key, value in wanted.items():
                yield from self._below(value, live.get(key, MISSING), (*path, key))

    def _list(self, wanted: Sequence[Any], live: Any, path: Path, name: str) -> Iterator[Path]:
        present = live if isinstance(live, list) else []
        keys = self._keys_of(path, name)
        entries = [_entry(value, keys) for value in wanted] if keys else []
        if not keys or None in entries or len(set(entries)) < len(entries):
            if not self._same(wanted, present, path):
                yield path
            return
        found = {_entry(value, keys): value for value in present}
        for entry, value in zip(entries, wanted, strict=True):
            assert entry is not None
            if entry in found:
                yield from self._below({**dict(entry), **value}, found[entry], (*path, entry))
            else:
                yield (*path, entry)

    def _keys_of(self, path: Path, name: str) -> tuple[str, ...]:
        """The keys by which the API merges a list; none for a list that it replaces whole."""
        if not self._built_in or (self._kind == "ServiceAccount" and name == "imagePullSecrets"):
            return ()
        if name == "ports":
            if (self._kind, path) == ("Service", ("spec", "ports")):
                return ("port", "protocol")
            in_container = len(path) > 2 and path[-3] in ("containers", "initContainers", "ephemeralContainers")
            return ("containerPort", "protocol") if in_container else ()
        if name == "secrets" and self._kind != "ServiceAccount":
            return ()
        return _MERGED.get(name, ())

    def _same(self, wanted: Any, live: Any, path: Path) -> bool:
        """Whether a value that is replaced whole is the same, apart from defaults of the server."""
        name = next((step for step in reversed(path) if isinstance(step, str)), "")
        if isinstance(live, _Missing):
            return self._may_be_missing(wanted, name)
        if isinstance(wanted, dict):
            if not isinstance(live, dict):
                return False
            if any(not self._same(value, live.get(key, MISSING), (*path, key)) for key, value in wanted.items()):
                return False
            return all(key in wanted or value in _DEFAULTS.get(key, ()) or value is None for key, value in live.items())
        if isinstance(wanted, list):
            if not isinstance(live, list):
                return not wanted and live is None
            pairs = zip(wanted, live, strict=False)
            return len(wanted) == len(live) and all(self._same(one, other, path) for one, other in pairs)
        if isinstance(wanted, bool) or isinstance(live, bool):
            return wanted is live
        return wanted == live or self._means_the_same(wanted, live, path, name)

    def _may_be_missing(self, wanted: Any, name: str) -> bool:
        if isinstance(wanted, list):
            return not wanted
        if isinstance(wanted, dict):
            return not wanted and name in _VANISHING_MAPS
        return self._built_in and any(wanted == zero and type(wanted) is type(zero) for zero in _VANISHING.get(name, ()))

    def _means_the_same(self, wanted: Any, live: Any, path: Path, name: str) -> bool:
        if not self._built_in:
            return False
        if self._kind == "Secret" and path[0] == "data":
            return _bytes(wanted) is not None and _bytes(wanted) == _bytes(live)
        if self._kind == "Service" and wanted == "" and name in ("clusterIP", "loadBalancerIP"):
            return True  # empty means: whatever the server gives
        parent = path[-2] if len(path) > 1 else ""
        if name in _QUANTITIES or parent in _QUANTITIES_IN or name == "storage":
            amount = quantity(wanted)
            return amount is not None and amount == quantity(live)
        return False


def _covers(live: Any, wanted: Object) -> bool:
    return isinstance(live, dict) and all(live.get(name) == value for name, value in wanted.items())


def _entry(value: Any, keys: tuple[str, ...]) -> Entry | None:
    if not isinstance(value, dict):
        return None
    found = tuple((key, value.get(key, "TCP" if key == "protocol" else None)) for key in keys)
    return None if any(part is None or isinstance(part, dict | list) for _, part in found) else found


def _bytes(text: Any) -> bytes | None:
    try:
        return base64.b64decode("".join(str(text).split()), validate=True)
    except (binascii.Error, ValueError):
        return None


def quantity(value: Any) -> Decimal | None:
    """A Kubernetes quantity as a number: ``1000m`` is 1; None when it is none, or longer than anybody writes one.

    What is none here is compared as it is written; whether it means the same is then for the API server to say.
    """
    try:
        found = _QUANTITY.fullmatch(str(value)) if not isinstance(value, bool) else None
    except ValueError:  # a whole number of thousands of digits
        return None
    if found is None:
        return None
    try:
        return Decimal(found[1]) * _FACTORS[found[2] or ""]
    except InvalidOperation:
        return None


# -- what an apply changes ---------------------------------------------------------------------------------


def partial(wanted: Object, paths: Iterable[Path]) -> Object:
    """The smallest apply that puts these paths back: identity, and the fields at the paths.

    Of kinds whose schema is not known here the whole top-level field is taken, since a list or map inside may be replaced whole.
    """
    metadata = wanted["metadata"]
    body: Object = {
        "apiVersion": wanted["apiVersion"],
        "kind": wanted["kind"],
        "metadata": {part: metadata[part] for part in ("name", "namespace") if part in metadata},
    }
    known = wanted["apiVersion"].rpartition("/")[0] in BUILT_IN
    for path in paths:
        _copy(wanted, body, path if known or path[0] == "metadata" else path[:1])
    return body


def _copy(source: Any, target: Any, path: Path) -> None:
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        if not rest:
            target[step] = source[step]
            return
        below = source[step]
        _copy(below, target.setdefault(step, [] if isinstance(below, list) else {}), rest)
        return
    keys = dict(step)
    entry = next(value for value in source if isinstance(value, dict) and _entry({**value}, tuple(keys)) == step)
    found = next((value for value in target if _entry(value, tuple(keys)) == step), None)
    if not rest:
        target[:] = [value for value in target if value is not found]
        target.append({**keys, **entry})
        return
    if found is None:
        found = dict(keys)
        target.append(found)
    _copy(entry, found, rest)


def same_object(before: Object, after: Object) -> bool:
    """Whether an apply changed nothing but who owns fields."""
    return _significant(before) == _significant(after)


def _significant(obj: Object) -> Object:
    metadata = {
        name: value
        for name, value in obj["metadata"].items()
        if name not in ("managedFields", "resourceVersion", "generation") and value not in ({}, [])
    }
    return {**obj, "metadata": metadata}


def changed_paths(paths: Iterable[Path], before: Object, after: Object) -> tuple[Path, ...]:
    """Those of the paths at which an apply changed something."""
    return tuple(path for path in paths if value_at(before, path) != value_at(after, path))


def value_at(value: Any, path: Path) -> Any:
    """What an object has at a path, or `MISSING`."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
        else:
            entries = value if isinstance(value, list) else []
            value = next((found for found in entries if _entry(found, tuple(key for key, _ in step)) == step), MISSING)
        if value is MISSING:
            return MISSING
    return value


# -- who did it --------------------------------------------------------------------------------------------


def managers_of(live: Object, paths: Iterable[Path], *, besides: Iterable[str]) -> tuple[str, ...]:
    """The field managers that own the paths; for a field that is gone, the one who wrote the object last."""
    entries = [
        entry
        for entry in live["metadata"].get("managedFields") or ()
        if entry.get("manager") not in set(besides) and entry.get("subresource") != "status"
    ]
    found: dict[str, None] = {}
    for path in paths:
        owners = [str(entry.get("manager")) for entry in entries if _owns(entry.get("fieldsV1") or {}, path)]
        if not owners and entries and value_at(live, path) is MISSING:
            owners = [str(max(entries, key=lambda entry: str(entry.get("time") or "")).get("manager"))]
        found.update(dict.fromkeys(owners))
    return tuple(found)


def _owns(fields: Any, path: Path) -> bool:
    for number, step in enumerate(path):
        if number and fields == {}:
            return True  # what is above is owned whole
        name = f"f:{step}" if isinstance(step, str) else _named_entry(fields, step)
        if name not in fields:
            return False
        fields = fields[name]
    return True


def _named_entry(fields: Mapping[str, Any], entry: Entry) -> str:
    for name in fields:
        if name.startswith("k:") and json.loads(name[2:]) == dict(entry):
            return name
    return ""
