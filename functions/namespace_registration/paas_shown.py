"""What a Paas comes to, for people: namespaces, groups, rights with the mappings they come from, quotas, problems (section 7).

Pure: of what was read a value is made that can be printed as tables, or as YAML and JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tenantry.model.kinds import Object, is_terminating
from tenantry.model.paas.config import DEFAULT_ROLE, PaasConfig
from tenantry.model.paas.declared import Group, Paas, PaasNs
from tenantry.model.paas.groups import cluster_roles, names_of
from tenantry.model.paas.names import ACCOUNT_BINDING_PREFIX, BINDING_PREFIX, HAS_ERRORS, PARTS, READY, WARNINGS, binding_name
from tenantry.model.paas.ours import is_ours
from tenantry.model.paas.places import PaasPlace, applying, counting, held_by, spec_places

NO_CONFIG = "there is no PaasConfig in use: without one no role is mapped"


@dataclass(frozen=True, slots=True)
class Read:
    """What was read: the Paas, the configuration in use, and what has its label, by name or by namespace."""

    paas: Paas
    config: PaasConfig | None = None
    namespaces: Mapping[str, Object] = field(default_factory=dict)
    asked: tuple[PaasNs, ...] = ()
    bindings: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    quotas: tuple[Object, ...] = ()


def described(read: Read) -> dict[str, Any]:
    """All of it, as a value."""
    places = _places(read)
    return {
        "name": read.paas.name,
        "requestor": read.paas.requestor,
        "config": read.config.name if read.config is not None else None,
        "namespaces": [_namespace(name, place, read) for name, place in sorted(places.items())],
        "groups": [_group(key, group, read) for key, group in sorted(read.paas.groups.items())],
        "rights": [right for name, place in sorted(places.items()) for right in _rights(name, place, read)],
        "quotas": [_quota(each) for each in read.quotas],
        "problems": list(_problems(read)),
    }


def _places(read: Read) -> dict[str, PaasPlace | None]:
    """The namespaces that are wanted, and those there are that nothing asks for (None)."""
    spec = spec_places(read.paas, read.config)
    wanted, _ = counting(spec, read.asked, read.paas)
    held = {name: each for name, each in read.namespaces.items() if held_by(read.paas, each)}
    asked = {each.key: each for each in read.asked}
    there = {name: applying(read.paas, spec, each, asked, held) for name, each in held.items()}
    return {**wanted, **there}


def _namespace(name: str, place: PaasPlace | None, read: Read) -> dict[str, Any]:
    live = read.namespaces.get(name)
    if live is None:
        state = "missing"
    elif is_terminating(live):
        state = "terminating"
    elif not is_ours(live, read.paas.name, read.paas.uid):
        state = "not ours"
    else:
        state = "there" if place is not None else "left over"
    return {"name": name, "askedBy": _asked_by(place), "groups": _keys(place, read), "state": state}


def _asked_by(place: PaasPlace | None) -> str:
    if place is None:
        return "nobody"
    if place.asked_by:
        return f"PaasNS {place.asked_by}"
    return f"capability {place.capability}" if place.capability else "spec.namespaces"


def _keys(place: PaasPlace | None, read: Read) -> list[str]:
    """The keys of the groups that apply there."""
    if place is None:
        return []
    return [key for key in sorted(read.paas.groups) if place.groups is None or key in place.groups]


def _group(key: str, group: Group, read: Read) -> dict[str, Any]:
    named = names_of(read.paas)[key]
    return {
        "key": key,
        "subject": named.name,
        "query": group.query,
        "users": [] if group.query else list(group.users),
        "roles": {role: list(_mapped(role, read)) for role in group.roles or (DEFAULT_ROLE,)},
        "problem": named.problem,
    }


def _mapped(role: str, read: Read) -> Sequence[str]:
    return read.config.mapped(role) if read.config is not None else ()


def _rights(name: str, place: PaasPlace | None, read: Read) -> Iterator[dict[str, Any]]:
    """The bindings of a namespace: those that are declared and those there are, each with the mappings that it comes from."""
    declared: dict[str, dict[str, list[str]]] = {}
    named = names_of(read.paas)
    for key in _keys(place, read):
        group = read.paas.groups[key]
        for role in sorted(cluster_roles(group, read.config)) if read.config is not None and not named[key].problem else ():
            by = [each for each in group.roles or (DEFAULT_ROLE,) if role in _mapped(each, read)]
            declared.setdefault(binding_name(role), {}).setdefault(named[key].name, []).extend(f"{key}: {each}" for each in by)
    there = {each["metadata"]["name"]: each for each in read.bindings.get(name, ())}
    for binding in sorted({*declared, *there}):
        wanted = declared.get(binding, {})
        subjects = [str(each.get("name")) for each in (there.get(binding) or {}).get("subjects") or ()]
        yield {
            "namespace": name,
            "binding": binding,
            "clusterRole": str(
                ((there.get(binding) or {}).get("roleRef") or {}).get("name") or binding.removeprefix(BINDING_PREFIX)
            ),
            "subjects": subjects or sorted(wanted),
            "from": [text for _, texts in sorted(wanted.items()) for text in texts],
            "state": _state(binding, subjects, wanted, there=binding in there),
        }


def _state(binding: str, subjects: list[str], wanted: Mapping[str, Any], *, there: bool) -> str:
    if binding.startswith(ACCOUNT_BINDING_PREFIX):
        return "service accounts"
    if not there:
        return "missing"
    if not wanted:
        return "not declared"
    return "there" if subjects == sorted(wanted) else "differs"


def _quota(live: Object) -> dict[str, Any]:
    spec, status = live.get("spec") or {}, live.get("status") or {}
    wide = spec.get("quota")
    hard = (wide if isinstance(wide, Mapping) else spec).get("hard") or {}
    total = status.get("total")
    used = (total if isinstance(total, Mapping) else status).get("used") or {}
    metadata = live["metadata"]
    where = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    resources = {name: {"hard": str(hard[name]), "used": str(used.get(name, ""))} for name in sorted(hard)}
    return {"name": f"{live['kind']} {where}{metadata['name']}", "resources": resources}


def _problems(read: Read) -> Iterator[dict[str, str]]:
    """What is told on the Paas and on its PaasNS; of parts, which the Paas itself names, nothing twice."""
    if read.config is None:
        yield {"on": f"Paas {read.paas.name}", "reason": "NoPaasConfig", "message": NO_CONFIG}
    yield from _told(f"Paas {read.paas.name}", read.paas.live)
    for each in sorted(read.asked, key=lambda one: one.key):
        yield from _told(f"PaasNS {each.key}", each.live)


def _told(on: str, live: Object) -> Iterator[dict[str, str]]:
    for each in (live.get("status") or {}).get("conditions") or ():
        type_, status = each.get("type"), each.get("status")
        bad = (type_ == READY and status == "False") or (type_ == WARNINGS and status == "True")
        if bad and type_ != HAS_ERRORS and type_ not in PARTS:
            yield {"on": on, "reason": str(each.get("reason")), "message": str(each.get("message"))}
