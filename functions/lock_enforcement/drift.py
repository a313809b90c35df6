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
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from lock_enforcement.fields import BUILT_IN, MISSING, Missing, Path, entry_of
from tenantry.model.kinds import Object

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
_COMPARED_METADATA = ("labels", "annotations", "ownerReferences", "finalizers")


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
        if isinstance(live, Missing) or not isinstance(live, dict):
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
        entries = [entry_of(value, keys) for value in wanted] if keys else []
        if not keys or None in entries or len(set(entries)) < len(entries):
            if not self._same(wanted, present, path):
                yield path
            return
        found = {entry_of(value, keys): value for value in present}
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
        if isinstance(live, Missing):
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
