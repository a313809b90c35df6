"""The rules in CEL that our CRDs have, by their text: what each means for an object that is created."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tenantry.model.identifiers import is_dns_subdomain, is_label_key

Change = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """What a CEL rule means when an object is created: whether a value keeps it, how to mend one, and the ways to break one.

    ``needs`` names a property that the rule wants, and not as null: it is always made.  No way to break it: no new object can.
    """

    holds: Callable[[Any], bool]
    mend: Change
    ways: tuple[Change, ...] = ()
    needs: str = ""


def without(value: Any, name: str) -> Any:
    """A map without an entry."""
    return {key: below for key, below in value.items() if key != name}


def _with(**more: Any) -> Change:
    return lambda value: {**value, **more}


def always(wrong: Any) -> Change:
    """Whatever there is becomes this."""
    return lambda _: wrong


def _unchanged(value: Any) -> Any:
    return value


def _has(name: str) -> Rule:
    """A property must be there; a null counts as absent, whether the schema takes nulls or the API server drops them."""
    return Rule(lambda value: value.get(name) is not None, _unchanged, (partial(without, name=name), _with(**{name: None})), name)


def _needs_values(value: Any) -> bool:
    return value.get("operator") not in ("In", "NotIn") or bool(value.get("values"))


def _takes_no_values(value: Any) -> bool:
    return value.get("operator") not in ("Exists", "DoesNotExist") or not value.get("values")


def _of_one_sort(rule: Any) -> bool:
    return bool(rule.get("nonResourceURLs")) != bool(rule.get("resources"))


def _all_of_one_sort(rule: Any) -> Any:
    return without(rule, "resources") if rule.get("nonResourceURLs") else {**rule, "resources": ["pods"]}


def _distinct(roles: Any) -> bool:
    return len({role["generateName"] for role in roles}) == len(roles)


def _numbered(roles: Any) -> Any:
    return [{**role, "generateName": f"{role['generateName'][:50]}-{number}"} for number, role in enumerate(roles)]


_TAKEN_NAMES = ("cluster-admin", "admin", "edit", "view")


def _one_way(grant: Any) -> Any:
    if grant.get("sourceRef") is not None:
        return without(grant, "sourceSelector")
    if grant.get("sourceSelector") is not None:
        return without(grant, "sourceRef")
    return {**grant, "sourceRef": _SOURCE}


def _legal_keys(labels: Any) -> bool:
    return all(is_label_key(key) for key in labels)


def _keys_of_tenants(text: str) -> bool:
    return is_dns_subdomain(text[:-2]) if text.endswith("/*") else is_label_key(text)


def _stops(stop: Any) -> bool:
    field, annotation, value = (stop.get(name) is not None for name in ("field", "annotation", "value"))
    return field != annotation and annotation == value


def _one_ref(source: Any) -> Any:
    return {**{key: value for key, value in source.items() if key not in _REFS}, "branch": "a"}


_SOURCE = {"kind": "Bucket", "name": "a"}
_REFS = ("branch", "tag", "semver")
_OURS = ("tenantry.dev/", "toolkit.fluxcd.io/", "kubernetes.io/")
_BUILT_IN = (
    "kustomize.toolkit.fluxcd.io/kustomizations",
    "helm.toolkit.fluxcd.io/helmreleases",
    "image.toolkit.fluxcd.io/imageupdateautomations",
    "image.toolkit.fluxcd.io/imagepolicies",
    "source.extensions.fluxcd.io/artifactgenerators",
    "notification.toolkit.fluxcd.io/alerts",
    "notification.toolkit.fluxcd.io/receivers",
    "fluxcd.controlplane.io/resourcesets",
    "fluxcd.controlplane.io/resourcesetinputproviders",
)

FLUX_RULES: Mapping[str, Rule] = {
    # Of names alone.
    "self.metadata.name == 'default'": Rule(lambda _: True, _unchanged),
    "self.metadata.name.matches('^[a-z0-9]([a-z0-9-]{0,61})[a-z0-9]$')": Rule(lambda _: True, _unchanged),
    "has(self.sourceRef) != has(self.sourceSelector)": Rule(
        lambda grant: (grant.get("sourceRef") is None) != (grant.get("sourceSelector") is None),
        _one_way,
        (
            lambda grant: without(without(grant, "sourceRef"), "sourceSelector"),
            _with(sourceRef=_SOURCE, sourceSelector={"kind": "Bucket", "matchLabels": {}}),
        ),
    ),
    "self.all(key, !format.qualifiedName().validate(key).hasValue())": Rule(
        _legal_keys,
        lambda labels: {key: value for key, value in labels.items() if is_label_key(key)},
        (_with(**{"a b": "c"}), _with(**{"a=b": "c"}), _with(**{"A.b/c": ""})),
    ),
    "self.all(key, dyn(self[key]) != null)": Rule(
        lambda labels: None not in labels.values(),
        lambda labels: {key: value for key, value in labels.items() if value is not None},
        (_with(a=None),),
    ),
    "self.all(field, field == 'matchLabels' && dyn(self[field]) != null)": Rule(
        lambda selector: all(key == "matchLabels" and value is not None for key, value in selector.items()),
        lambda selector: dict.fromkeys(("matchLabels",), next((value for value in selector.values() if value is not None), {})),
        (lambda _: {"matchLabel": {"a": "b"}}, lambda _: {"matchLabels": None}),
    ),
    "self.endsWith('/*') ? !format.dns1123Subdomain().validate(self.substring(0, self.size() - 2)).hasValue() "
    ": !format.qualifiedName().validate(self).hasValue()": Rule(
        _keys_of_tenants, lambda _: "a", tuple(map(always, ("a b", "/*", "A/*", "a/b/*")))
    ),
    "!((self.group + '/' + self.resource) in [" + ", ".join(f"'{each}'" for each in _BUILT_IN) + "])": Rule(
        lambda row: f"{row['group']}/{row['resource']}" not in _BUILT_IN,
        _with(resource="others"),
        tuple(_with(group=group, resource=resource) for group, _, resource in (each.partition("/") for each in _BUILT_IN)),
    ),
    "has(self.field) != has(self.annotation) && has(self.annotation) == has(self.value)": Rule(
        _stops,
        lambda stop: {"annotation": "a", "value": "b"} if stop.get("annotation") is not None else {"field": "spec.a"},
        (
            always({}),
            always({"annotation": "a"}),
            always({"field": "spec.a", "value": "a"}),
            always({"field": "spec.a", "annotation": "a", "value": "b"}),
        ),
    ),
    "!format.qualifiedName().validate(self).hasValue()": Rule(is_label_key, lambda _: "a", (always("a b"), always("a/b/c"))),
    "!has(self.kustomization) || has(self.source)": Rule(
        lambda tenant: tenant.get("kustomization") is None or tenant.get("source") is not None,
        partial(without, name="kustomization"),
        (lambda tenant: {**without(tenant, "source"), "kustomization": {}},),
    ),
    "self.all(key, !key.startsWith('tenantry.dev/') && !key.startsWith('toolkit.fluxcd.io/') "
    "&& !key.startsWith('kubernetes.io/'))": Rule(
        lambda labels: not any(key.startswith(_OURS) for key in labels),
        lambda labels: {key: value for key, value in labels.items() if not key.startswith(_OURS)},
        tuple(_with(**{f"{prefix}a": "b"}) for prefix in _OURS),
    ),
    "[has(self.branch), has(self.tag), has(self.semver)].exists_one(stated, stated)": Rule(
        lambda source: [source.get(name) is not None for name in _REFS].count(True) == 1,
        _one_ref,
        (lambda source: without(_one_ref(source), "branch"), _with(branch="a", tag="b")),
    ),
}

RULES: Mapping[str, Rule] = {
    "has(self.spec) || (oldSelf.hasValue() && !has(oldSelf.value().spec))": _has("spec"),
    "has(self.helmApiVersion)": _has("helmApiVersion"),
    # Of changes alone.
    "!oldSelf.hasValue() || self == oldSelf.value()": Rule(lambda _: True, _unchanged),
    "!has(oldSelf.paas) || (has(self.paas) && self.paas == oldSelf.paas)": Rule(lambda _: True, _unchanged),
    "''.matches(self) in [true, false]": Rule(lambda text: text != "(", lambda _: "a", (lambda _: "(",)),
    "!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)": Rule(
        _needs_values,
        _with(values=["a"]),
        (_with(operator="In", values=[]), _with(operator="NotIn", values=None)),
    ),
    "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0": Rule(
        _takes_no_values,
        partial(without, name="values"),
        (_with(operator="Exists", values=["a"]), _with(operator="DoesNotExist", values=["a"])),
    ),
    "(has(self.nonResourceURLs) && self.nonResourceURLs.size() > 0) != (has(self.resources) && self.resources.size() > 0)": Rule(
        _of_one_sort,
        _all_of_one_sort,
        (_with(nonResourceURLs=["/a"], resources=["pods"]), _with(nonResourceURLs=[], resources=None)),
    ),
    "!(has(self.resources) && self.resources.size() > 0) || (has(self.apiGroups) && self.apiGroups.size() > 0)": Rule(
        lambda rule: not rule.get("resources") or bool(rule.get("apiGroups")),
        _with(apiGroups=[""]),
        (_with(resources=["pods"], apiGroups=[]), _with(resources=["pods"], apiGroups=None)),
    ),
    "!(self.generateName in ['cluster-admin', 'admin', 'edit', 'view'])": Rule(
        lambda role: role["generateName"] not in _TAKEN_NAMES,
        lambda role: {**role, "generateName": f"{role['generateName']}-a"},
        tuple(_with(generateName=name) for name in _TAKEN_NAMES),
    ),
    "self.all(each, self.exists_one(other, other.generateName == each.generateName))": Rule(
        _distinct, _numbered, (lambda roles: [*roles, *roles[:1]],)
    ),
    **FLUX_RULES,
}
