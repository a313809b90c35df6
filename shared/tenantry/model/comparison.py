"""Where two objects differ, compared as the API server merges and compares the fields of their kind.

A `Schema` says how: lists are replaced whole unless they are merged by the keys of their entries or are sets of values, maps are
merged unless they are atomic, and quantities and bytes are compared as such (structured-merge-diff, and the conversion of OpenAPI
schemas in kube-openapi/pkg/schemaconv).  API servers publish it: `tenantry.api.schema`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal

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
_FREE_KEYS = frozenset({"labels", "annotations", "data", "binaryData", "matchLabels"})


@dataclass(slots=True, eq=False)
class Schema:
    """How a field is merged and compared; what is not said is as in a field without a schema: maps merge, lists do not.

    ``keys`` are those that the entries of a merged list are known by; none for a set of values; None for a list that is replaced
    whole.  ``default`` is what the server fills in.  ``other`` is the schema of a list's entries, or of map keys that are not in
    ``properties``.  Schemas may contain themselves.
    """

    atomic: bool = False
    keys: tuple[str, ...] | None = None
    meaning: Literal["", "quantity", "bytes", "never compared"] = ""
    default: Any = None
    properties: dict[str, Schema] = field(default_factory=dict)
    other: Schema | None = None

    def below(self, name: str = "") -> Schema:
        """The schema of a key of this map, or of the entries of this list."""
        return self.properties.get(name) or self.other or FREE


FREE = Schema()
"""Of fields that no schema describes, in a kind that has one."""
UNKNOWN = Schema(atomic=True)
"""Of a kind without a schema: every list and map may be replaced whole."""
UNKNOWN.other = UNKNOWN
METADATA = Schema(properties={"finalizers": Schema(keys=()), "ownerReferences": Schema(keys=("uid",))})
"""Of every object's metadata.  The API server replaces an owner reference whole, but only what is wanted of it counts here."""


class Missing:
    """No value at all."""


MISSING: Final = Missing()

Entry = tuple[tuple[str, Any], ...]
"""The entry of a merged list that has these keys; of a set the value itself, under an empty key."""
Step = str | Entry
Path = tuple[Step, ...]
"""Through maps by name, and through merged lists by entry."""


def shown(path: Path) -> str:
    """A path for people: ``spec.template.spec.containers[web].image``, ``data[key]``.  Values are never shown."""
    text = ""
    for before, step in zip(("", *path), path, strict=False):
        if not isinstance(step, str):
            text += "[" + ",".join(str(value) for _, value in step) + "]"
        elif before in _FREE_KEYS:
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def differing(wanted: Any, live: Any, schema: Schema, path: Path = (), *, absent_is_empty: bool = False) -> Iterator[Path]:
    """Where ``live`` is not what ``wanted`` names, in its order; what else is in merged maps and lists does not count.

    With ``absent_is_empty`` a map that is not there is as an empty one, unless it is atomic.
    """
    merged = isinstance(wanted, dict) and not schema.atomic
    if live is None or live is MISSING:
        live = {} if merged and absent_is_empty else MISSING
    if merged and isinstance(live, dict):
        for name, value in wanted.items():
            there = live.get(name, MISSING)
            yield from differing(value, there, schema.below(name), (*path, name), absent_is_empty=absent_is_empty)
    elif isinstance(wanted, list) and (entries := _entries(wanted, schema)) is not None:
        present = {_entry_of(value, schema): value for value in live} if isinstance(live, list) else {}
        for entry, value in entries.items():
            if entry not in present:
                yield (*path, entry)
            elif schema.keys:
                named = {**dict(entry), **value}
                yield from differing(named, present[entry], schema.below(), (*path, entry), absent_is_empty=absent_is_empty)
    elif not _same(wanted, live, schema):
        yield path


def _entries(wanted: Sequence[Any], schema: Schema) -> dict[Entry, Any] | None:
    """The entries of a list that is merged; None where it is not, or where entries cannot be told apart by their keys."""
    if schema.keys is None:
        return None
    found = {entry: value for value in wanted if (entry := _entry_of(value, schema)) is not None}
    return found if len(found) == len(wanted) else None


def _entry_of(value: Any, schema: Schema) -> Entry | None:
    """What an entry of a merged list is known by; None for one that does not have its keys."""
    if not schema.keys:
        found: Entry = (("", value),)
    elif isinstance(value, dict):
        found = tuple((key, value.get(key, schema.below().below(key).default)) for key in schema.keys)
    else:
        return None
    return None if any(part is None or isinstance(part, dict | list) for _, part in found) else found


def _same(wanted: Any, live: Any, schema: Schema) -> bool:
    """Whether a value that is replaced whole is the same, apart from what the server fills in."""
    if schema.meaning == "never compared":
        return True
    if live is MISSING:
        return wanted is None or wanted == []
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(_same(value, live.get(name, MISSING), schema.below(name)) for name, value in wanted.items()) and all(
            name in wanted or value is None or value == schema.below(name).default for name, value in live.items()
        )
    if isinstance(wanted, list) and isinstance(live, list):
        pairs = zip(wanted, live, strict=False)
        return len(wanted) == len(live) and all(_same(one, other, schema.below()) for one, other in pairs)
    if isinstance(wanted, bool) or isinstance(live, bool):
        return wanted is live
    if wanted == live:
        return True
    meant = _MEANINGS.get(schema.meaning)
    return meant is not None and meant(wanted) is not None and meant(wanted) == meant(live)


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


_MEANINGS: Mapping[str, Callable[[Any], object]] = {"quantity": quantity, "bytes": _bytes}


def value_at(value: Any, path: Path) -> Any:
    """What an object has at a path, or `MISSING`."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
        else:
            value = find_entry(value, step)
        if value is MISSING:
            return MISSING
    return value


def step_of(field: str) -> Step:
    """A step from its name in ``managedFields``: ``f:name``, an entry ``k:{...}`` or a value ``v:...`` (KEP-555)."""
    tag, _, rest = field.partition(":")
    if tag == "f":
        return rest
    return tuple(json.loads(rest).items()) if tag == "k" else (("", json.loads(rest)),)


def find_entry(entries: Any, entry: Entry) -> Any:
    """The entry of a merged list, or `MISSING`; a key that it lacks has a default, so the one that lacks the fewest counts."""
    if not isinstance(entries, list):
        return MISSING
    if entry[0][0] == "":
        return entry[0][1] if entry[0][1] in entries else MISSING
    fitting = [each for each in entries if isinstance(each, dict) and all(each.get(key, part) == part for key, part in entry)]
    return max(fitting, key=lambda each: sum(key in each for key, _ in entry), default=MISSING)
