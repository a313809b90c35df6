"""A Paas or PaasNS in the shape that opr-paas has in one of its versions, as its conversion gave it (section 7).

Both versions have one schema here, so nobody has to convert; this is for manifests that go back to opr-paas, or come from it.
A PaasConfig has the same fields in both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tenantry.model.kinds import Object
from tenantry.model.paas.declared import namespaces_of
from tenantry.model.paas.names import GROUP_OF_KINDS, PAAS, PAAS_CONFIG, PAAS_NS

VERSIONS = ("v1alpha1", "v1alpha2")
_GIT = {"gitUrl": "git_url", "gitRevision": "git_revision", "gitPath": "git_path"}
"""Fields of a capability in v1alpha1, and the custom fields that they are in v1alpha2."""
_GROUP = ("query", "users", "roles")
_ORDER = ("requestor", "managedByPaas", "quota", "groups", "namespaces", "capabilities", "sshSecrets", "secrets")


class NotConvertible(ValueError):
    """What there is no way to say in that version; the message says what to do."""


def is_convertible(document: Any) -> bool:
    """Whether a document is of a kind of Paas in one of its versions."""
    if not isinstance(document, Mapping):
        return False
    group, _, version = str(document.get("apiVersion")).partition("/")
    kinds = {each.kind for each in (PAAS, PAAS_NS, PAAS_CONFIG)}
    return group == GROUP_OF_KINDS and version in VERSIONS and document.get("kind") in kinds


def converted(document: Object, version: str) -> Object:
    """The document in that version, without its status.

    Raises:
        NotConvertible: it would give more rights than it does, or lacks what that version asks for.
    """
    by_kind: Mapping[str, Callable[[Object, str], Object]] = {PAAS.kind: _paas, PAAS_NS.kind: _paas_ns}
    made = {**document, "apiVersion": f"{GROUP_OF_KINDS}/{version}"}
    made.pop("status", None)
    if document["kind"] in by_kind:
        made["spec"] = by_kind[document["kind"]](document, version)
    return made


def _name(document: Object) -> str:
    return f"{document['kind']} {(document.get('metadata') or {}).get('name', '')}"


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _secrets(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {**_map(spec.get("sshSecrets")), **_map(spec.get("secrets"))}


def _with_secrets(made: Object, spec: Mapping[str, Any], version: str) -> Object:
    made = {name: value for name, value in made.items() if name not in ("sshSecrets", "secrets")}
    found = _secrets(spec)
    return {**made, "sshSecrets" if version == "v1alpha1" else "secrets": found} if found else made


# -- Paas ------------------------------------------------------------------------------------------------------------


def _paas(document: Object, version: str) -> Object:
    spec = _map(document.get("spec"))
    made: Object = {name: spec[name] for name in ("requestor", "managedByPaas", "quota") if name in spec}
    if "groups" in spec:
        made["groups"] = {key: _group(each) for key, each in _map(spec["groups"]).items()}
    if "namespaces" in spec:
        made["namespaces"] = _namespaces(document, spec["namespaces"], version)
    if "capabilities" in spec:
        was = str(document["apiVersion"]).partition("/")[2]
        capabilities = {
            name: _capability(_map(each), was, version)
            for name, each in _map(spec["capabilities"]).items()
            if version == "v1alpha1" or _is_enabled(_map(each), was)
        }
        made["capabilities"] = capabilities
    made = _with_secrets(made, spec, version)
    return {name: made[name] for name in _ORDER if name in made}


def _group(written: Any) -> Object:
    return {name: value for name, value in _map(written).items() if name in _GROUP}


def _namespaces(document: Object, written: Any, version: str) -> Any:
    restrictions = namespaces_of(written)
    if version == "v1alpha2":
        entries = _map(written)
        return {name: dict(_map(entries.get(name))) for name in restrictions}
    restricted = sorted(name for name, keys in restrictions.items() if keys is not None)
    if restricted:
        text = (
            f"{_name(document)}: spec.namespaces {', '.join(restricted)}: restricted to some groups, which v1alpha1 cannot say: "
            f"all groups would get rights there. Leave it in v1alpha2, or remove the groups of these namespaces"
        )
        raise NotConvertible(text)
    return sorted(restrictions)


def _is_enabled(capability: Mapping[str, Any], version: str) -> bool:
    """Whether a capability is on; where it does not say so its version does (1.6)."""
    said = capability.get("enabled")
    return bool(version == "v1alpha2") if said is None else said is True


def _capability(written: Mapping[str, Any], was: str, version: str) -> Object:
    made: Object = {"enabled": _is_enabled(written, was)} if version == "v1alpha1" else {}
    fields = dict(_map(written.get("custom_fields")))
    git = {old: str(written[old]) for old in _GIT if written.get(old)}
    if version == "v1alpha1":
        git = {**{old: str(fields[new]) for old, new in _GIT.items() if fields.get(new)}, **git}
        made |= git
    else:
        fields |= {_GIT[old]: value for old, value in git.items()}
    made |= {"custom_fields": fields} if fields else {}
    made |= {name: written[name] for name in ("quota", "extra_permissions") if name in written}
    return _with_secrets(made, written, version)


# -- PaasNS ----------------------------------------------------------------------------------------------------------


def _paas_ns(document: Object, version: str) -> Object:
    """It keeps ``spec.paas``, which v1alpha1 asks for, and which may not be taken away afterwards."""
    spec = _map(document.get("spec"))
    if version == "v1alpha1" and not spec.get("paas"):
        raise NotConvertible(f"{_name(document)}: v1alpha1 asks for spec.paas: write the name of the Paas that has its namespace")
    return _with_secrets({name: spec[name] for name in ("paas", "groups") if name in spec}, spec, version)
