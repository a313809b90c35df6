"""Fences as one admission policy, `POLICY`, whose condition holds only for what some fence refuses.

A fence is written as a policy of its own beside its identity's rights (``knative/*/fence.yaml``).  As such it would cost every
write of anybody some 40 us, and each of its own identity's 400: the API server converts a request, and declares each variable,
once for each policy that looks at it, four times more where its conditions hold, and each expression has its price.  `merged`
makes one policy that has no variables and one condition: who asks has a fence, the fence looks at such requests, and not all of
its validations hold.  So what is allowed costs one expression, and the validations are left to say what is wrong.

Variables that begin with `PLAIN` say, together, of which requests all validations hold, in few words, and without names of
`WORKED_OUT_ONCE`: they are judged before anything is bound.  That is for what a function writes most.

A fence that looks at the namespace of an object (``namespaceObject``) stays a policy of its own: conditions do not have it.

Variables stand in their place in the expressions.  Those of `WORKED_OUT_ONCE` are bound to a name instead, by a macro over a list
of one, in the condition once for all fences that mean the same by it: they have a value for every request, which others need not
have.  What an expression costs to compile grows with the square of the operators in it (docs/decisions/0025).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from tenantry.local.policies import with_binding
from tenantry.model.kinds import Object
from tenantry.model.names import SYSTEM_NAMESPACE

POLICY = "tenantry-fence"
PREFIX = f"{POLICY}-"
"""Of the name of each fence; the rest is its identity."""
PLAIN = "plain"
_REFERENCE = re.compile(r"\bvariables\.(\w+)")
WORKED_OUT_ONCE = (
    "subresource",
    "now",
    "was",
    "newLabels",
    "oldLabels",
    "labelsWritten",
    "newAnnotations",
    "oldAnnotations",
    "annotationsWritten",
    "newFinalizers",
    "oldFinalizers",
    "finalizersWritten",
    "newOwners",
    "oldOwners",
    "newSpec",
    "oldSpec",
    "specWritten",
    "owned",
    "owns",
    "newRun",
    "oldRun",
    "isJob",
    "pod",
    "paas",
    "ofPaas",
)
"""What a request changes, as fences work it out; each may use those before it."""
_ALL = "[{}].all({},\n{})"
_EVERYTHING = frozenset({"CREATE", "UPDATE", "DELETE"})
_ACCOUNTS = f'request.userInfo.username.startsWith("system:serviceaccount:{SYSTEM_NAMESPACE}:")'
_WHAT = 'request.resource.group + "/" + request.resource.resource + (has(request.subResource) ? "/" + request.subResource : "")'


@dataclass(frozen=True, slots=True)
class Fence:
    """One identity's fence, as its file has it."""

    name: str
    spec: Mapping[str, Any]

    @classmethod
    def of(cls, policy: Object) -> Self:
        """The fence that is written as this policy."""
        return cls(policy["metadata"]["name"].removeprefix(PREFIX), policy["spec"])

    @property
    def is_apart(self) -> bool:
        """Whether it has to be a policy of its own."""
        return "namespaceObject" in str(self.spec)

    @property
    def variables(self) -> dict[str, str]:
        """Their expressions, each after those that it uses."""
        return {each["name"]: each["expression"] for each in self.spec.get("variables") or ()}

    @property
    def identity(self) -> str:
        """Whether who asks has this fence."""
        (found,) = self.spec["matchConditions"]
        return str(found["expression"])

    @property
    def plain(self) -> str:
        """Whether a request of its identity is plainly allowed; empty where no such requests are named."""
        return " &&\n".join(f"({self._inlined(each)})" for name, each in self.variables.items() if name.startswith(PLAIN))

    @property
    def rules(self) -> list[Mapping[str, Any]]:
        """Which requests it looks at."""
        return list(self.spec["matchConstraints"]["resourceRules"])

    @property
    def is_for_everything(self) -> bool:
        """Whether it looks at all kinds."""
        return any(rule["resources"] in (["*"], ["*/*"]) for rule in self.rules)

    @property
    def asks(self) -> str:
        """Whether who asks has this fence, and it looks at such requests."""
        found = [self.identity]
        if not self.is_for_everything:
            found.append(" || ".join(self._asked()))
        return " &&\n".join(f"({each})" for each in found)

    @property
    def validations(self) -> list[dict[str, str]]:
        """They, with all variables in place of their names."""
        return [
            {
                **each,
                "expression": self.bound([each["expression"]]),
                **({"messageExpression": self._told(each["messageExpression"])} if "messageExpression" in each else {}),
            }
            for each in self.spec["validations"]
        ]

    @property
    def names(self) -> dict[str, str]:
        """The expressions of those of `WORKED_OUT_ONCE` that it has."""
        return {each: self._inlined(self.variables[each]) for each in WORKED_OUT_ONCE if each in self.variables}

    def bound(self, expressions: Sequence[str], besides: Collection[str] = ()) -> str:
        """Whether all of these hold, with no names for the variables that have names around it."""
        names = {name: value for name, value in self.names.items() if name not in besides}
        return _with_names(" &&\n".join(f"({self._inlined(each)})" for each in expressions), names, _ALL)

    def _told(self, message: str) -> str:
        return _with_names(self._inlined(message), self.names, "[{}].map({},\n{})[0]")

    def _asked(self) -> Iterator[str]:
        by_operations: dict[frozenset[str], list[str]] = {}
        for rule in self.rules:
            what = [f"{group}/{resource}" for group in rule["apiGroups"] for resource in rule["resources"]]
            by_operations.setdefault(frozenset(rule["operations"]), []).extend(what)
        for operations, what in by_operations.items():
            kinds = f"({_WHAT}) in {_list(what)}"
            yield kinds if operations == _EVERYTHING else f"(request.operation in {_list(sorted(operations))} && {kinds})"

    def _inlined(self, expression: str) -> str:
        """An expression with its variables in place of their names, but for those that are worked out once."""

        def value(found: re.Match[str]) -> str:
            if found[1] in WORKED_OUT_ONCE:
                return _bound(found[1])
            return f"({self._inlined(self.variables[found[1]])})"

        return _REFERENCE.sub(value, " ".join(expression.split()))


def merged(fences: Sequence[Object]) -> list[Object]:
    """The policy that is these fences and those that are policies of their own, each followed by its binding.

    Raises:
        KeyError: an expression uses a variable that its fence does not have.
    """
    found = [Fence.of(each) for each in fences]
    together = [fence for fence in found if not fence.is_apart]
    made = with_binding(POLICY, _policy(together)) if together else []
    return [*made, *(each for fence in found if fence.is_apart for each in with_binding(PREFIX + fence.name, fence.spec))]


def _policy(found: Sequence[Fence]) -> Object:
    alike = _alike(found)
    refused = (
        f"{each.asks} &&\n!({each.bound([one['expression'] for one in each.spec['validations']], alike)})" for each in found
    )
    plain = "".join(f"!({each.identity} &&\n{each.plain}) &&\n" for each in found if each.plain)
    condition = f"{_ACCOUNTS} &&\n{plain}" + _with_names("((\n" + "\n) || (\n".join(refused) + "\n))", alike, _ALL)
    validations = [
        {**each, "expression": f"!({fence.identity}) ||\n({each['expression']})"} for fence in found for each in fence.validations
    ]
    return {
        "failurePolicy": "Fail",
        "matchConstraints": _constraints(found),
        "matchConditions": [{"name": "refused", "expression": condition}],
        "validations": validations,
    }


def _alike(fences: Sequence[Fence]) -> dict[str, str]:
    """The names that every fence which has them works out in the same way."""
    values: dict[str, set[str]] = {}
    for fence in fences:
        for name, value in fence.names.items():
            values.setdefault(name, set()).add(value)
    return {name: values[name].pop() for name in WORKED_OUT_ONCE if len(values.get(name, ())) == 1}


def _with_names(text: str, names: Mapping[str, str], macro: str) -> str:
    """The expression in a macro for each name that it uses, or that the value of such a name uses."""
    for variable, value in reversed(list(names.items())):
        name = _bound(variable)
        if re.search(rf"\b{name}\b", text):
            text = macro.format(value, name, text)
    return text


def _constraints(fences: Sequence[Fence]) -> Object:
    """What some fence matches, and what those that match everything leave out.  ``*`` has no subresources in it."""
    every = any(fence.is_for_everything for fence in fences)
    rules: list[Mapping[str, Any]] = []
    for rule in (each for fence in fences for each in fence.rules):
        others = [each for each in rule["resources"] if not every or each == "*" or "/" in each]
        if others and {**rule, "resources": others} not in rules:
            rules.append({**rule, "resources": others})
    left_out: list[Any] = []
    for fence in fences:
        left_out += [each for each in fence.spec["matchConstraints"].get("excludeResourceRules") or () if each not in left_out]
    return {"resourceRules": rules, **({"excludeResourceRules": left_out} if left_out else {})}


def _bound(name: str) -> str:
    """The name in a macro; no macro of a fence has one that ends so."""
    return f"{name}_"


def _list(values: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{each}"' for each in dict.fromkeys(values)) + "]"
