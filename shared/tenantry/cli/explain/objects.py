"""``tenantry explain KIND/NAME``: whose an object is, which of its fields are ours, and what would take it away."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tenantry.api.errors import Forbidden, KindNotServed
from tenantry.cli.explain.reading import Reading, named
from tenantry.cli.explain.told import Told, explained_told, unread_told
from tenantry.cli.explain.units import explained
from tenantry.cli.one_line import WrongUse
from tenantry.model.kinds import Kind, Object, finalizers_of, key_of
from tenantry.model.names import field_manager
from tenantry.serving.installed import descriptors


async def named_object_told(kind: Kind, name: str, namespace: str, reading: Reading) -> Told:
    """All that is known of the object of a name, read live.

    Raises:
        WrongUse: there is none, or it may not be read; the message says which.
    """
    text = named(kind, name, namespace)
    try:
        live = await reading.api.get(kind, name, namespace)
    except KindNotServed:
        live = None
    except Forbidden as error:
        raise WrongUse(f"you may not read {text}: {error.message}") from error
    if live is None:
        raise WrongUse(f"there is no {text}: is it spelled like this, and in another namespace (-n)?")
    return await object_told(live, reading)


async def object_told(obj: Object, reading: Reading) -> Told:
    """All that is known of an object."""
    found = await explained(obj, None, reading)
    entries = obj["metadata"].get("managedFields") or []
    ours = [each for each in entries if function_of(str(each.get("manager")))]
    others = (f"{each.get('manager')} ({each.get('time')})" for each in entries if each not in ours)
    return {
        "object": str(key_of(obj)),
        "ours": bool(found) or bool(ours),
        "madeBy": [explained_told(each, reading) for each in found],
        "fields": [_fields_told(each) for each in ours],
        "finalizers": _finalizers(obj),
        "others": list(dict.fromkeys(others)),
        "notes": _notes(reading, made=bool(found), written=bool(ours)),
        "unread": list(unread_told(reading)),
    }


def _notes(reading: Reading, *, made: bool, written: bool) -> list[str]:
    notes = [] if made or not written else ["it is not ours, and fields of it are: those that are listed"]
    return [*notes, reading.configured.note] if reading.asked_config and reading.configured.note else notes


def function_of(manager: str) -> str:
    """The function, or the Service of one, that a field manager belongs to; empty for none."""
    names = {each.name for function in descriptors().values() for each in function.services} | set(descriptors())
    fitting = [name for name in names if manager == field_manager(name) or manager.startswith(f"{field_manager(name)}-")]
    return max(fitting, key=len, default="")


def _fields_told(entry: Object) -> Told:
    part = f" of the subresource {entry['subresource']}" if entry.get("subresource") else ""
    manager = str(entry["manager"])
    return {"manager": manager + part, "of": function_of(manager), "time": entry.get("time"), "fields": [*paths_in(entry)]}


def paths_in(entry: Mapping[str, Any]) -> Iterator[str]:
    """The fields of an entry of ``managedFields``, each as a path such as ``metadata.labels[team]``."""
    yield from _paths(entry.get("fieldsV1") or {}, "")


def _paths(fields: Mapping[str, Any], path: str) -> Iterator[str]:
    below = {step: each for step, each in fields.items() if step != "."}
    if not below and path:
        yield path
    for step, each in below.items():
        yield from _paths(each, f"{path}{_step(step, first=not path)}")


def _step(step: str, *, first: bool) -> str:
    tag, _, rest = step.partition(":")
    if tag == "f":
        plain = rest.replace("_", "a").replace("-", "a").isalnum()
        return (rest if first else f".{rest}") if plain else f"[{rest}]"
    if tag == "k":
        return "[" + ", ".join(f"{key}={value}" for key, value in json.loads(rest).items()) + "]"
    return f"[{rest}]"


def _finalizers(obj: Object) -> list[Told]:
    known = {
        (each.kind.kind, each.name): service.name
        for function in descriptors().values()
        for service in function.services
        for each in service.finalizers
    }
    return [{"name": name, "of": known[obj["kind"], name]} for name in finalizers_of(obj) if (obj["kind"], name) in known]
