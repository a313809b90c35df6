"""What all policies are put together of: manifests, rules, conditions, and who asks (sections 3.3 and 3.5)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, GROUP_OF_KINDS, TENANCY_PROFILE
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import (
    ADMISSION_MUTATION,
    ADMISSION_MUTATION_BINDING,
    ADMISSION_POLICY,
    ADMISSION_POLICY_BINDING,
    Kind,
    Object,
    object_of,
)
from tenantry.model.names import SYSTEM_NAMESPACE

PREFIX = "tenantry-"
LABELS = {"app.kubernetes.io/part-of": "tenantry", "app.kubernetes.io/name": "flux-tenancy"}
"""On all that is generated here: what has them and is not wanted any more is superfluous."""
BYPASS, PRODUCE = "bypass", "produce"
"""The verbs on the TenancyProfile that make somebody the platform, and a producer of sources (section 3.5)."""
ACCOUNTS = "system:serviceaccount:"
LOCK_ENFORCEMENT = f"{ACCOUNTS}{SYSTEM_NAMESPACE}:lock-enforcement-access"

NOT_GOING = "!has(object.metadata.deletionTimestamp)"
"""Holds of an object whose deletion nobody has asked for."""


def may(verb: str) -> str:
    """Whether who asks has a verb on the TenancyProfile, for the whole cluster."""
    return (
        f'authorizer.group("{GROUP_OF_KINDS}").resource("{TENANCY_PROFILE.plural}").name("{DEFAULT}").check("{verb}").allowed()'
    )


PLATFORM = may(BYPASS)
PRODUCER = f"({may(PRODUCE)} || {PLATFORM})"
LOCKS = f'request.userInfo.username == "{LOCK_ENFORCEMENT}"'
LOCKS_OR_PERSON = f'({LOCKS} || (!request.userInfo.username.startsWith("{ACCOUNTS}") && {PLATFORM}))'
"""lock-enforcement, or a person of the platform: the controllers of Flux have the verb, too."""


def text(value: str) -> str:
    """A string in CEL."""
    return json.dumps(value, ensure_ascii=False)


def listed(values: Sequence[str]) -> str:
    """A list of strings in CEL."""
    return "[" + ", ".join(text(each) for each in values) + "]"


def optional(of: str, path: str) -> str:
    """The optional value of a field."""
    return of + "".join(f".?{part}" for part in path.split("."))


def rule(
    group: str, versions: Sequence[str], resources: Sequence[str], operations: Sequence[str], *, scope: str = "Namespaced"
) -> Object:
    """Which requests a policy is for."""
    return {
        "apiGroups": [group],
        "apiVersions": list(versions),
        "operations": list(operations),
        "resources": list(resources),
        "scope": scope,
    }


CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"
WRITES = (CREATE, UPDATE)


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """A policy with its binding, or a mutation with its binding; ``name`` is without `PREFIX`.

    ``conditions`` must all hold of what it is for.  ``takes_index``: it has the AccessIndex as its parameter; ``everywhere``: in
    exempt namespaces, too.  ``label``: only for what has this label or had it, which the API server finds without an expression.
    """

    name: str
    rules: Sequence[Object]
    validations: Sequence[Object] = ()
    mutations: Sequence[str] = ()
    conditions: Sequence[str] = (NOT_GOING,)
    variables: Mapping[str, str] = field(default_factory=dict)
    takes_index: bool = False
    everywhere: bool = False
    label: str = ""

    @property
    def full_name(self) -> str:
        """As the API server knows it."""
        return PREFIX + self.name

    def manifest(self) -> Object:
        """The policy."""
        spec: dict[str, Any] = {"failurePolicy": "Fail"}
        if self.takes_index:
            spec["paramKind"] = {"apiVersion": ACCESS_INDEX.api_version, "kind": ACCESS_INDEX.kind}
        spec["matchConstraints"] = {"matchPolicy": "Equivalent", "resourceRules": list(self.rules)}
        if self.label:
            spec["matchConstraints"]["objectSelector"] = {"matchExpressions": [{"key": self.label, "operator": "Exists"}]}
        if self.conditions:
            # Of several the API server evaluates all, each at a price of its own, for every object.
            spec["matchConditions"] = [{"name": "concerned", "expression": " && ".join(f"({each})" for each in self.conditions)}]
        if self.variables:
            spec["variables"] = [{"name": name, "expression": value} for name, value in self.variables.items()]
        if self.mutations:
            spec["reinvocationPolicy"] = "IfNeeded"
            spec["mutations"] = [{"patchType": "JSONPatch", "jsonPatch": {"expression": each}} for each in self.mutations]
        else:
            spec["validations"] = list(self.validations)
        return self._made(ADMISSION_MUTATION if self.mutations else ADMISSION_POLICY, spec)

    def binding(self, profile: Profile) -> Object:
        """What puts it in force."""
        spec: dict[str, Any] = {"policyName": self.full_name}
        if self.takes_index:
            missing = "Allow" if profile.is_audit else "Deny"
            spec["paramRef"] = {"name": DEFAULT, "parameterNotFoundAction": missing}
        if not self.everywhere:
            named = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(profile.exempt)}
            spec["matchResources"] = {"matchPolicy": "Equivalent", "namespaceSelector": {"matchExpressions": [named]}}
        if self.mutations:
            return self._made(ADMISSION_MUTATION_BINDING, spec)
        spec["validationActions"] = ["Audit", "Warn"] if profile.is_audit else ["Deny", "Audit"]
        return self._made(ADMISSION_POLICY_BINDING, spec)

    def _made(self, kind: Kind, spec: Object) -> Object:
        return object_of(kind, {"name": self.full_name, "labels": dict(LABELS)}, spec=spec)


def validation(expression: str, message: str, told: str = "") -> Object:
    """What must hold; ``told`` is an expression of what is said where it does not, ``message`` what is said if that fails."""
    more = {"messageExpression": told} if told else {}
    return {"expression": expression, "reason": "Forbidden", "message": message, **more}
