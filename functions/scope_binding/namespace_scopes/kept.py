"""What is kept in memory of objects that tenants write: the fields that something follows from, and no more than a budget.

Anybody may put megabytes beside them (a-15), or rules without end (a-17).  Each function here takes an object as it was read and
returns the part of it that is kept.  Plans get the same part, whether it was listed or read alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Any

from scope_binding.consent import FROM_UID
from scope_binding.namespace_scopes.names import (
    ACCOUNT_LABEL,
    FROM_LABEL,
    HASH,
    HELM_LABEL,
    LIST_KEY,
    LIST_LABEL,
    MANAGER,
    PENDING,
    PROJECTION,
    ownership_labels,
)
from scope_binding.namespace_scopes.rules import excess, size_of
from tenantry.model import limits
from tenantry.model.difference import owns
from tenantry.model.digest import digest_of
from tenantry.model.kinds import NAMESPACE_SCOPE, Object, annotations_of, labels_of

TOO_LARGE = "tooLarge"
"""In a kept Role: why its rules are not there, as a text with the limit and the fix."""
DIGEST = "rulesDigest"
"""In a kept Role: the digest of rules that are long."""
FOREIGN = "foreign"
"""In a kept ConfigMap: that we never wrote it."""

_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation")
_LABELS = frozenset({*ownership_labels("", ""), ACCOUNT_LABEL, LIST_LABEL, HELM_LABEL, FROM_LABEL})
_ANNOTATIONS = frozenset({HASH, PENDING, PROJECTION, FROM_UID})


@lru_cache(maxsize=512)
def _one(text: str) -> Any:
    """The value of a JSON text: one shared object for equal texts, not to be changed."""
    return json.loads(text)


def header(item: Object) -> Object:
    """The metadata that this unit reads.  Of labels that it does not read one stays, to show that there are others."""
    found = item["metadata"]
    kept: Object = {part: found[part] for part in _IDENTITY if part in found}
    labels = labels_of(item)
    if labels:
        known = {key: labels[key] for key in _LABELS & labels.keys()}
        other = next((key for key in labels if key not in _LABELS), None)
        kept["labels"] = {**known, **({other: labels[other]} if other is not None else {})}
    annotations = annotations_of(item)
    if known := {key: annotations[key] for key in _ANNOTATIONS & annotations.keys()}:
        kept["annotations"] = known
    if found.get("finalizers"):
        kept["finalizers"] = found["finalizers"]
    if found.get("managedFields"):
        kept["managedFields"] = [_one(json.dumps(entry)) for entry in found["managedFields"]]
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": kept}


# -- ConfigMaps --------------------------------------------------------------------------------------------------------


def text(value: Any) -> Any:
    """A value, or the digest of a long text: no list of namespaces can equal one."""
    if not isinstance(value, str) or len(value) <= limits.TEXT_KEPT:
        return value
    return f"sha256:{digest_of(value).hex()}"


def is_written(config_map: Object) -> bool:
    """Whether we wrote a list into a ConfigMap: by its field owners, or, as a backup has none, by our annotation."""
    return owns(config_map, MANAGER, "data", LIST_KEY) or HASH in annotations_of(config_map)


def config_map(item: Object) -> Object:
    """The list in a ConfigMap and whether anything else is in it; of one that we never wrote only that it is there."""
    if not is_written(item):
        metadata = item["metadata"]
        identity = {"name": metadata["name"], "namespace": metadata["namespace"], "labels": {LIST_LABEL: "true"}}
        return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": identity, FOREIGN: True}
    return named_config_map(item)


def named_config_map(item: Object) -> Object:
    """The same of a ConfigMap that a NamespaceScope names, whoever wrote it."""
    kept = header(item)
    for part in ("data", "binaryData"):
        found = item.get(part) or {}
        other = next((key for key in found if key != LIST_KEY), None)
        values = {LIST_KEY: text(found[LIST_KEY])} if LIST_KEY in found else {}
        if values or other is not None:
            kept[part] = {**values, **({other: ""} if other is not None else {})}
    if owners := item["metadata"].get("ownerReferences"):
        ours = [owner for owner in owners if owner.get("kind") == NAMESPACE_SCOPE.kind][: limits.OWNER_REFERENCES]
        others = [owner for owner in owners if owner.get("kind") != NAMESPACE_SCOPE.kind][:1]
        kept["metadata"]["ownerReferences"] = [*ours, *others]
    return kept


def with_value(config_map: Object | None, value: str) -> Object | None:
    """A kept ConfigMap with its list written out if it is this one."""
    if config_map is None or len(value) <= limits.TEXT_KEPT or (config_map.get("data") or {}).get(LIST_KEY) != text(value):
        return config_map
    return {**config_map, "data": {**config_map["data"], LIST_KEY: value}}


# -- Roles and RoleBindings --------------------------------------------------------------------------------------------


def role(item: Object) -> Object:
    """A Role with its rules, or with the limit that they are over."""
    if TOO_LARGE in item:
        return item
    rules = item.get("rules") or []
    if problem := excess(rules):
        return {**header(item), "rules": [], TOO_LARGE: problem}
    return {**header(item), "rules": rules}


def given_role(item: Object) -> Object:
    """A Role of ours in a member: long rules by their digest, since we know what they should be."""
    rules = item.get("rules") or []
    if len(rules) <= 1 and size_of(rules) <= 16:
        return {**header(item), "rules": rules}
    written = json.dumps(rules)
    if len(written) <= limits.TEXT_KEPT:
        return {**header(item), "rules": _one(written)}
    return {**header(item), DIGEST: rules_digest(rules)}


def without_digest(role: Object, rules: Iterable[Object]) -> Object:
    """A Role of which a digest was kept, with these rules."""
    return {**{part: value for part, value in role.items() if part != DIGEST}, "rules": list(rules)}


def rules_digest(rules: Iterable[Object]) -> str:
    """The digest by which long rules are compared."""
    return digest_of(list(rules)).hex()


def given_binding(item: Object) -> Object:
    """A RoleBinding of ours in a member: it names some accounts, so of very many subjects the first are enough."""
    subjects = (item.get("subjects") or [])[: limits.ACCOUNTS_OF_HOME + 1]
    return {**header(item), "roleRef": item.get("roleRef"), **({"subjects": subjects} if subjects else {})}


def account_of(subject: Object, namespace: str) -> tuple[str, str] | None:
    """(namespace, name) of the ServiceAccount that a RoleBinding in this namespace binds; None: it binds something else."""
    if subject.get("kind") != "ServiceAccount":
        return None
    return subject.get("namespace") or namespace, str(subject.get("name"))


def consents_of(members: Collection[str]) -> Callable[[Object], Object]:
    """What is kept of Roles that are consents: of members only, the same rules once, all together within a budget."""
    known: dict[str, list[Object]] = {}
    left = limits.HOME_ENTRIES

    def kept(item: Object) -> Object:
        nonlocal left
        if item["metadata"]["namespace"] not in members:
            return _identity(item)
        made = role(item)
        written = json.dumps(made["rules"], sort_keys=True)
        if written not in known:
            if (entries := size_of(made["rules"])) > left:
                return {**made, "rules": [], TOO_LARGE: _together("the consents of all members")}
            left -= entries
            known[written] = made["rules"]
        return {**made, "rules": known[written]}

    return kept


def consent_binding(members: Collection[str], agreed: Collection[tuple[str, str]]) -> Callable[[Object], Object]:
    """What is kept of RoleBindings that are consents: of members only, and of subjects the agreed ones."""

    def kept(item: Object) -> Object:
        member = item["metadata"]["namespace"]
        if member not in members:
            return _identity(item)
        subjects = [subject for subject in item.get("subjects") or () if account_of(subject, member) in agreed]
        return {**header(item), "roleRef": item.get("roleRef"), "subjects": subjects}

    return kept


def sources_of(names: Collection[str]) -> Callable[[Object], Object]:
    """What is kept of Roles at home: of those that are copied, all together within a budget."""
    entries: dict[str, int] = {}  # by name: a list that begins anew shows items again

    def kept(item: Object) -> Object:
        name = item["metadata"]["name"]
        if name not in names:
            return _identity(item)
        made = role(item)
        entries[name] = size_of(made["rules"])
        if sum(entries.values()) <= limits.HOME_ENTRIES:
            return made
        entries[name] = 0
        return {**made, "rules": [], TOO_LARGE: _together("the Roles that are copied")}

    return kept


def _together(what: str) -> str:
    return (
        f"{what} together have more than {limits.HOME_ENTRIES} groups, resources, verbs and names, at most so many are read: "
        "split the NamespaceScope over several namespaces, or use *"
    )


def _identity(item: Object) -> Object:
    metadata = item["metadata"]
    return {"metadata": {"name": metadata["name"], "namespace": metadata["namespace"]}}


def bound_to(accounts: Collection[str], namespace: str) -> Callable[[Object], Object]:
    """What is kept of RoleBindings at home: which of these accounts they name, and the role."""
    wanted = {(namespace, account) for account in accounts}

    def kept(item: Object) -> Object:
        subjects = [subject for subject in item.get("subjects") or () if account_of(subject, namespace) in wanted]
        return {**_identity(item), "roleRef": item["roleRef"], "subjects": [_one(json.dumps(subject)) for subject in subjects]}

    return kept


def naming_roles(roles: Collection[str]) -> Callable[[Object], Object]:
    """What is kept of RoleBindings in members: which of these Roles they name."""

    def kept(item: Object) -> Object:
        reference = item["roleRef"]
        named = reference["kind"] == "Role" and reference["name"] in roles
        return {**_identity(item), "roleRef": reference if named else {"kind": "", "name": ""}}

    return kept


# -- NamespaceScopes ----------------------------------------------------------------------------------------------------


def namespace_scope(item: Object) -> Object:
    """A NamespaceScope with its spec and status."""
    return {**header(item), **{part: item[part] for part in ("spec", "status") if part in item}}
