"""Names of groups: generated from the key, or out of a query (2.3), and which of them no binding may name (1.5).

>>> group_name("my-paas", "us", Group(users=("me",)))
Named(name='my-paas-us', generated=True, problem='')
>>> group_name("my-paas", "others", Group(query="CN=others,.."))
Named(name='others', generated=False, problem='')
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

from tenantry.model.paas.config import DEFAULT_ROLE, PaasConfig
from tenantry.model.paas.declared import Group, Paas

KEY_CHARACTERS = 190
NAME_CHARACTERS = 253
SYSTEM_PREFIX = "system:"
_ESCAPED = re.compile(r"\\(?:([0-9A-Fa-f]{2})|([ \"#+,;<=>\\]))")
_UNESCAPED_SPECIAL = frozenset('+;"<>')


class Named(NamedTuple):
    """The subject that stands for a group; with a ``problem`` nothing may name it."""

    name: str
    generated: bool
    problem: str = ""


class _BadQuery(ValueError):
    """No name follows from a query; the message says why."""


def group_name(paas: str, key: str, group: Group) -> Named:
    """What a group of a Paas is called in bindings."""
    if not group.query:
        return Named(f"{paas}-{key}", True, key_problem(key) or name_problem(f"{paas}-{key}"))
    try:
        name = name_in_query(group.query)
    except _BadQuery as error:
        return Named("", False, f"query {group.query!r}: {error}")
    problem = name_problem(name)
    return Named(name, False, f"query {group.query!r}: {problem}" if problem else "")


def names_of(paas: Paas) -> Mapping[str, Named]:
    """By key of the group."""
    return {key: group_name(paas.name, key, group) for key, group in paas.groups.items()}


def key_problem(key: str) -> str:
    """Why a group cannot have this key; empty when it can."""
    if len(key) > KEY_CHARACTERS:
        return f"the key has {len(key)} characters: use at most {KEY_CHARACTERS}"
    return text_problem(key, "the key")


def name_problem(name: str) -> str:
    """Why no binding may name such a group, or user; empty when one may."""
    if name.startswith(SYSTEM_PREFIX):
        return f"the name {name!r} begins with {SYSTEM_PREFIX}, which is Kubernetes' own: use another name"
    if len(name) > NAME_CHARACTERS:
        return f"the name has {len(name)} characters: use at most {NAME_CHARACTERS}"
    return text_problem(name, "the name")


def text_problem(text: str, what: str) -> str:
    """Why a text is no name: it is empty, or not all of it shows; empty when it is one."""
    if not text:
        return f"{what} is empty: write one"
    for character in text:
        kind = unicodedata.category(character)
        if kind.startswith("C") or kind in ("Zl", "Zp"):
            return f"{what} has the character U+{ord(character):04X}, which does not show: remove it"
    return ""


def name_in_query(query: str) -> str:
    """The value of the first RDN of a distinguished name (RFC 4514), its escapes undone.

    Raises:
        ValueError: no value, or one that is not a plain text; the message says why.
    """
    rdn = _first_rdn(query)
    value = rdn.partition("=")[2] if "=" in rdn else rdn
    value = _without_blanks(value)
    if value.startswith("#"):
        raise _BadQuery("the value is written as bytes (#...): write it as text")
    return _unescaped(value)


def _first_rdn(query: str) -> str:
    at = 0
    while at < len(query):
        if query[at] == "\\":
            at += 2
        elif query[at] == ",":
            return query[:at]
        else:
            at += 1
    return query


def _without_blanks(value: str) -> str:
    value = value.lstrip(" ")
    while value.endswith(" "):
        kept = value[:-1]
        escapes = len(kept) - len(kept.rstrip("\\"))
        if escapes % 2:  # the blank is escaped
            break
        value = kept
    return value


def _unescaped(value: str) -> str:
    made = bytearray()
    at = 0
    while at < len(value):
        if value[at] == "\\":
            found = _ESCAPED.match(value, at)
            if found is None:
                raise _BadQuery("a backslash escapes nothing: remove it, or write two")
            made += bytes.fromhex(found[1]) if found[1] else found[2].encode()
            at = found.end()
            continue
        if value[at] in _UNESCAPED_SPECIAL:
            raise _BadQuery(f"{value[at]!r} in the value has to be escaped with a backslash")
        made += value[at].encode("utf-8", "surrogatepass")
        at += 1
    try:
        text = made.decode()
    except UnicodeDecodeError:
        raise _BadQuery("its escapes are no UTF-8") from None
    if not text:
        raise _BadQuery("it has no value: write CN=<name>")
    return text


def cluster_roles(group: Group, config: PaasConfig) -> frozenset[str]:
    """The ClusterRoles that a group is bound to wherever it applies (2.4)."""
    return frozenset(role for functional in group.roles or (DEFAULT_ROLE,) for role in config.mapped(functional))


def unknown_roles(group: Group, config: PaasConfig) -> tuple[str, ...]:
    """The functional roles of a group that are not mapped, sorted."""
    return tuple(sorted({role for role in group.roles if role not in config.role_mappings}))
