"""Least privilege from recordings: a function's rights file against what the tests used under its identity.

A right that no test used, or one that was used and is not written, is a `Finding` with the line to change.  `rewritten` makes
these changes in the text itself, so comments stay; ``python -m tenantry.testing.rights`` (``make rights``) does it for every
function from what the last complete test run used.

A rule with ``resourceNames`` covers a use of another name too when no rule covers it as it is written: at installation the
names of the configured charts take the place of those in the file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tenantry.local.deployment import deployment_folder
from tenantry.serving.installed import descriptors, services_of
from tenantry.testing import fences
from tenantry.testing.audit import Use, Used
from tenantry.testing.finding import Finding

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
TRACELESS = frozenset({"bind", "escalate"})
"""What the API server asks for while it judges another request: it leaves no trace in an audit log, so it goes with its rule.
A rule of nothing else goes with the writing of bindings.
"""
_BINDINGS = frozenset({"rolebindings", "clusterrolebindings"})
_FINALIZERS = "/finalizers"
"""Of these the right to update leaves no trace either: admission asks for it when an owner reference blocks the deletion of its
owner.  It goes with any right on the owner's kind.
"""
STORE = Path(".pytest_cache") / "v" / "tenantry" / "rights"
_UNEXPLAINED = "The tests used this; say here which promise needs it."
_ROLES = frozenset({"ClusterRole", "Role"})


@dataclass(slots=True)
class _Rule:
    groups: list[str]
    resources: list[str]
    names: list[str]
    verbs: list[str]
    marks: dict[str, tuple[int, int, int]]  # of each value: where it begins and ends in the text, and its line
    begin: int
    end: int
    line: int
    used: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    used_names: set[str] = field(default_factory=set)

    def covers(self, use: Use, *, adapted: bool) -> bool:
        named = not self.names or use.name in self.names or (adapted and bool(use.name))
        return use.group in self.groups and use.resource in self.resources and use.verb in self.verbs and named

    def note(self, use: Use) -> None:
        self.used.setdefault((use.group, use.resource), set()).update({use.verb, *TRACELESS.intersection(self.verbs)})
        self.used_names.add(use.name)

    def pairs(self) -> list[tuple[str, str]]:
        return [(group, resource) for group in self.groups for resource in self.resources]


def judge(text: str, allowed: Iterable[Use], denied: Iterable[Use] = ()) -> list[Finding]:
    """What is wrong with a rights file, given what its function used and what it was refused."""
    rules = _rules(text)
    missing = _cover(rules, allowed, denied)
    findings = [finding for rule in rules for finding in _excess(rule)]
    for (group, resource), verbs in sorted(missing.items()):
        rule = _home(rules, group, resource)
        wrong = f'{resource} in group "{group}" lacks {", ".join(_sorted(verbs))}'
        if rule is None:
            change = f"- {{apiGroups: {_flow([group])}, resources: {_flow([resource])}, verbs: {_flow(_sorted(verbs))}}}"
            findings.append(Finding(rules[-1].line if rules else 1, wrong, f"a further rule: {change}"))
        else:
            findings.append(Finding(rule.marks["verbs"][2], wrong, f"verbs: {_flow(_sorted({*rule.verbs, *verbs}))}"))
    return sorted(findings, key=lambda finding: finding.line)


def rewritten(text: str, allowed: Iterable[Use], denied: Iterable[Use] = ()) -> str:
    """The rights file with exactly the rights that were used or found lacking; comments stay with their rules."""
    rules = _rules(text)
    missing = _cover(rules, allowed, denied)
    added: list[str] = []
    for (group, resource), verbs in sorted(missing.items()):
        rule = _home(rules, group, resource)
        if rule is None:
            added += [f"  # {_UNEXPLAINED}", *_lines([group], [resource], [], verbs)]
        else:
            rule.verbs = _sorted({*rule.verbs, *verbs})
            rule.used.setdefault((group, resource), set()).update(verbs)
    if added and rules:
        end = text.index("\n", rules[-1].end - 1) + 1
        text = text[:end] + "\n".join(added) + "\n" + text[end:]
    for rule in reversed(rules):
        text = _edited(text, rule)
    return text


# -- rules ---------------------------------------------------------------------------------------------------


def _rules(text: str) -> list[_Rule]:
    found: list[_Rule] = []
    for document in yaml.compose_all(text, Loader=yaml.SafeLoader):
        parts = _members(document)
        if "kind" in parts and parts["kind"].value in _ROLES and "rules" in parts:
            found += [_rule(node, text) for node in parts["rules"].value]
    return found


def _members(node: Any) -> dict[str, Any]:
    return {key.value: value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}


def _rule(node: yaml.MappingNode, text: str) -> _Rule:
    parts = _members(node)
    values = {name: [item.value for item in part.value] for name, part in parts.items()}
    marks = {name: (part.start_mark.index, part.end_mark.index, part.start_mark.line + 1) for name, part in parts.items()}
    begin = text.rindex("\n", 0, node.start_mark.index) + 1
    end = max(mark[1] for mark in marks.values())
    return _Rule(
        values["apiGroups"], values["resources"], values.get("resourceNames", []), values["verbs"], marks, begin, end,
        node.start_mark.line + 1,
    )  # fmt: skip


def _cover(rules: Sequence[_Rule], allowed: Iterable[Use], denied: Iterable[Use]) -> dict[tuple[str, str], set[str]]:
    """Note each use at the rule that covers it; returns what no rule covers."""
    missing: dict[tuple[str, str], set[str]] = {}
    allowed = list(allowed)
    if any(use.resource in _BINDINGS and use.verb in ("create", "patch") for use in allowed):
        for each in rules:
            if TRACELESS.issuperset(each.verbs):
                each.used |= {pair: set(each.verbs) for pair in each.pairs()}
                each.used_names |= set(each.names)
    known = {(use.group, use.resource) for use in allowed}
    for each in rules:
        if each.verbs == ["update"]:
            owners = ((pair, (pair[0], pair[1].removesuffix(_FINALIZERS))) for pair in each.pairs())
            each.used |= {pair: {"update"} for pair, owner in owners if pair != owner and owner in known}
    for use, refused in [*((use, False) for use in allowed), *((use, True) for use in denied)]:
        exact = [rule for rule in rules if rule.covers(use, adapted=False)]
        adapted = [rule for rule in rules if rule.covers(use, adapted=True)]
        rule = next(iter(exact or adapted), None)
        if rule is None:
            missing.setdefault((use.group, use.resource), set()).add(use.verb)
        elif not refused:  # what was refused although it is written was taken away by a test
            rule.note(use)
    return missing


def _home(rules: Sequence[_Rule], group: str, resource: str) -> _Rule | None:
    return next((rule for rule in rules if rule.pairs() == [(group, resource)]), None)


def _excess(rule: _Rule) -> Iterator[Finding]:
    unused = {pair: [verb for verb in rule.verbs if verb not in rule.used.get(pair, ())] for pair in rule.pairs()}
    if not any(rule.used.values()):
        yield Finding(rule.line, f"no test used any right on {', '.join(rule.resources)}", "")
        return
    if len({tuple(verbs) for verbs in unused.values()}) > 1:
        parts = [f"{', '.join(verbs) or 'nothing'} on {pair[1]}" for pair, verbs in unused.items()]
        change = " and ".join(f"verbs: {_flow(_sorted(rule.used.get(pair, ())))} on {pair[1]}" for pair in rule.pairs())
        yield Finding(rule.marks["verbs"][2], f"no test used {'; '.join(parts)}", f"rules of their own, with {change}")
    elif verbs := next(iter(unused.values())):
        kept = _flow([verb for verb in rule.verbs if verb not in verbs])
        where = ", ".join(rule.resources)
        yield Finding(rule.marks["verbs"][2], f"no test used {', '.join(verbs)} on {where}", f"verbs: {kept}")
    if idle := [name for name in rule.names if name not in rule.used_names]:
        kept = _flow([name for name in rule.names if name not in idle])
        yield Finding(rule.marks["resourceNames"][2], f"no test used the name {', '.join(idle)}", f"resourceNames: {kept}")


# -- text ----------------------------------------------------------------------------------------------------


def _edited(text: str, rule: _Rule) -> str:
    kept = {pair: _sorted(rule.used.get(pair, ())) for pair in rule.pairs()}
    if not any(kept.values()):
        return _without(text, rule)
    if len({tuple(verbs) for verbs in kept.values()}) > 1:
        lines = [
            line for (group, resource), verbs in kept.items() if verbs for line in _lines([group], [resource], rule.names, verbs)
        ]
        return text[: rule.begin] + "\n".join(lines) + text[rule.end :]
    changes = {"verbs": next(iter(kept.values()))}
    names = [name for name in rule.names if name in rule.used_names]
    if rule.names and names:
        changes["resourceNames"] = names
    now = {"verbs": rule.verbs, "resourceNames": rule.names}
    written = yaml.safe_load(text[slice(*rule.marks["verbs"][:2])])
    for part in sorted(changes, key=lambda part: rule.marks[part][0], reverse=True):
        if changes[part] != (written if part == "verbs" else now[part]):
            begin, end, _ = rule.marks[part]
            text = text[:begin] + _flow(changes[part]) + text[end:]
    return text


def _without(text: str, rule: _Rule) -> str:
    """The text without the rule and the comment above it."""
    before, after = text[: rule.begin].split("\n"), text[rule.end :]
    before.pop()
    while before and before[-1].lstrip().startswith("#"):
        before.pop()
    return "\n".join(before) + "\n" + after.removeprefix("\n")


def _lines(groups: Sequence[str], resources: Sequence[str], names: Sequence[str], verbs: Iterable[str]) -> list[str]:
    lines = [f"  - apiGroups: {_flow(groups)}", f"    resources: {_flow(resources)}"]
    if names:
        lines.append(f"    resourceNames: {_flow(names)}")
    return [*lines, f"    verbs: {_flow(_sorted(verbs))}"]


def _flow(items: Iterable[str]) -> str:
    return "[" + ", ".join(item if item and item != "*" else f'"{item}"' for item in items) + "]"


def _sorted(verbs: Iterable[str]) -> list[str]:
    return sorted(verbs, key=lambda verb: (VERBS.index(verb) if verb in VERBS else len(VERBS), verb))


# -- all functions -------------------------------------------------------------------------------------------


def rights_files(folder: Path | None = None) -> dict[str, Path]:
    """The rights file of each identity that has one."""
    root = folder or deployment_folder("knative")
    identities = {each.rights_folder: each.name for each in services_of(descriptors()) if each.rights_folder}
    return {identities.get(path.parent.name, path.parent.name): path for path in sorted(root.glob("*/rights.yaml"))}


def judge_all(used: Used, folder: Path | None = None) -> list[str]:
    """The findings of all functions, each with its file."""
    found: list[str] = []
    for function, path in rights_files(folder).items():
        allowed, denied = _of(used, function, path)
        found += [f"knative/{path.parent.name}/{path.name}, {finding}" for finding in judge(path.read_text(), allowed, denied)]
    return found


def rewrite_all(used: Used, folder: Path | None = None) -> list[Path]:
    """Write the rights of all functions that were used at all; returns the files that changed."""
    changed: list[Path] = []
    for function, path in rights_files(folder).items():
        allowed, denied = _of(used, function, path)
        text = path.read_text()
        if allowed and (better := rewritten(text, allowed, denied)) != text:
            path.write_text(better)
            changed.append(path)
    return changed


def _of(used: Used, function: str, path: Path) -> tuple[list[Use], list[Use]]:
    allowed = sorted(use for use in used.allowed if use.function == function)
    if path.with_name("kinds.yaml").exists():
        return allowed, []  # administrators add the kinds that it works on: what is refused is lacking there, and told
    return allowed, sorted(use for use in used.denied if use.function == function)


def main() -> int:
    """Write the rights that the last complete test run used, and the lists of fences."""
    if not STORE.exists():
        sys.stderr.write("No complete test run is recorded here. Run `make test` first; it records what each function used.\n")
        return 1
    used = Used.of(json.loads(STORE.read_text()))
    changed = [*rewrite_all(used), *fences.rewrite_all(used.written, used.refused), *fences.rewrite_policy()]
    sys.stdout.write("".join(f"written: {path}\n" for path in changed) or "rights and fences are as the tests use them\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
