"""All fences as one admission policy, `POLICY`: the API server converts a request once for each policy that looks at it.

A fence is written as a policy of its own beside its identity's rights (``knative/*/fence.yaml``).  One by one, each would
cost every write of anybody such a conversion, some 40 us; `merged` makes one policy of them.  It matches what any fence matches;
its only condition holds where those of the fence of who asks do; its validations are those of all fences, each for its identity.
Variables that are the same in several fences stand once.  Others, and all lists, have their fence's name in front.

Conditions may use lists among the variables of their fence, which admission policies cannot: they are put in their place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from tenantry.model.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING, Object
from tenantry.model.names import SYSTEM_NAMESPACE

POLICY = "tenantry-fence"
PREFIX = f"{POLICY}-"
"""Of the name of each fence; the rest is its identity."""
_REFERENCE = re.compile(r"\bvariables\.(\w+)")
_EVERYTHING = frozenset({"CREATE", "UPDATE", "DELETE"})
_LABELS = {"app.kubernetes.io/part-of": "tenantry"}
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
    def variables(self) -> dict[str, str]:
        """Their expressions, each after those that it uses."""
        return {each["name"]: each["expression"] for each in self.spec.get("variables") or ()}

    @property
    def conditions(self) -> list[str]:
        """Who asks, and what else must hold, with the lists in place of their names."""
        return [self._inlined(each["expression"]) for each in self.spec["matchConditions"]]

    @property
    def rules(self) -> list[Mapping[str, Any]]:
        """Which requests it looks at."""
        return list(self.spec["matchConstraints"]["resourceRules"])

    @property
    def is_for_everything(self) -> bool:
        """Whether it looks at all kinds."""
        return any(rule["resources"] == ["*"] for rule in self.rules)

    @property
    def condition(self) -> str:
        """When the fence concerns a request: who asks, for what, and what else its conditions say."""
        found = self.conditions
        if not self.is_for_everything:
            found.insert(1, " || ".join(self._asked()))
        return " &&\n  ".join(f"({each})" for each in found)

    def _asked(self) -> Iterator[str]:
        by_operations: dict[frozenset[str], list[str]] = {}
        for rule in self.rules:
            what = [f"{group}/{resource}" for group in rule["apiGroups"] for resource in rule["resources"]]
            by_operations.setdefault(frozenset(rule["operations"]), []).extend(what)
        for operations, what in by_operations.items():
            kinds = f"({_WHAT}) in {_list(what)}"
            yield kinds if operations == _EVERYTHING else f"(request.operation in {_list(sorted(operations))} && {kinds})"

    def _inlined(self, expression: str) -> str:
        return _REFERENCE.sub(lambda found: " ".join(self.variables[found[1]].split()), expression)


def merged(fences: Sequence[Object]) -> list[Object]:
    """The policy that is all of these fences, and its binding.

    Raises:
        KeyError: the condition of a fence uses a variable that it does not have.
    """
    found = [Fence.of(each) for each in fences]
    shared = _shared(found)
    variables: dict[str, str] = {}
    validations: list[Object] = []
    for fence in found:
        here = _camel(fence.name)
        renamed = partial(_renamed, here=here, shared=shared)
        variables[f"{here}Asks"] = fence.spec["matchConditions"][0]["expression"]
        variables |= {_named(name, here, shared): renamed(text) for name, text in fence.variables.items()}
        for each in fence.spec["validations"]:
            told = {part: renamed(text) if part == "messageExpression" else text for part, text in each.items()}
            validations.append({**told, "expression": f"!variables.{here}Asks || ({renamed(each['expression'])})"})
    metadata = {"name": POLICY, "labels": dict(_LABELS)}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": _constraints(found),
        "matchConditions": [{"name": "fenced", "expression": _condition(found)}],
        "variables": [{"name": name, "expression": text} for name, text in variables.items()],
        "validations": validations,
    }
    bound = {"policyName": POLICY, "validationActions": ["Deny"]}
    return [
        {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": body}
        for kind, body in ((ADMISSION_POLICY, spec), (ADMISSION_POLICY_BINDING, bound))
    ]


def _shared(fences: Sequence[Fence]) -> set[str]:
    """The variables that stand once: the same in each fence that has them, in two at least, and so is what they use.

    Lists are not among them: whether two are the same is the configuration's matter, and patches go by names.
    """
    expressions: dict[str, set[str]] = {}
    for fence in fences:
        for name, text in fence.variables.items():
            expressions.setdefault(name, set()).add(text)
    owners = Counter(name for fence in fences for name in fence.variables)
    found = {
        name for name, texts in expressions.items() if len(texts) == 1 and owners[name] > 1 and not min(texts).startswith("[")
    }
    while less := {name for name in found if not set(_REFERENCE.findall(next(iter(expressions[name])))) <= found}:
        found -= less
    return found


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


def _condition(fences: Sequence[Fence]) -> str:
    return f"{_ACCOUNTS} && ((\n" + "\n) || (\n".join(f"  {fence.condition}" for fence in fences) + "\n))"


def _renamed(text: str, *, here: str, shared: set[str]) -> str:
    return _REFERENCE.sub(lambda name: f"variables.{_named(name[1], here, shared)}", text)


def _named(name: str, here: str, shared: set[str]) -> str:
    return name if name in shared else here + name[:1].upper() + name[1:]


def _camel(identity: str) -> str:
    first, *more = identity.split("-")
    return first + "".join(word.capitalize() for word in more)


def _list(values: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{each}"' for each in dict.fromkeys(values)) + "]"
