"""What is found out, as plain values for YAML and JSON: one shape for all of the command's answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenantry.cli.explain.paths import KINDS, RightPath
from tenantry.cli.explain.reading import Reading
from tenantry.cli.explain.units import CauseFound, Explained, explained
from tenantry.model.kinds import Object, key_of, labels_of
from tenantry.model.origin import leaving
from tenantry.model.rbac import EVERYTHING, BoundSubject, Question

Told = dict[str, Any]
_OWN = "kubernetes.io/bootstrapping"
_INSTALLED = ("app.kubernetes.io/part-of", "tenantry")


def question_told(question: Question, who: str) -> Told:
    """The question as it was understood."""
    parts = ("user", "verb", "group", "resource", "subresource", "namespace", "name", "url")
    found = {part: value for part in parts if (value := getattr(question, part))}
    return {"who": who, **found, "groups": list(question.groups)}


def what_is_asked(question: Question) -> str:
    """Verb, resource and place in words: ``get pods in namespace dev``."""
    if question.url:
        return f"{question.verb} {question.url}"
    resource = question.combined + (f".{question.group}" if question.group else "")
    name = f" {question.name}" if question.name else ""
    where = f"in namespace {question.namespace}" if question.namespace else "in the whole cluster"
    return f"{question.verb} {resource}{name} {where}"


async def path_told(path: RightPath, reading: Reading) -> Told:
    """One path: binding, role with its rule, and where the binding and the role come from."""
    bound = path.bound
    assert bound.role is not None
    ours = await explained(bound.binding, bound.subject, reading)
    role = await explained(bound.role, None, reading)
    found: Told = {
        "binding": str(key_of(bound.binding)),
        "subject": str(bound.subject),
        "role": str(bound.role_key),
        "rule": {"number": path.number, "text": rule_text(path.rule), **path.rule},
        "ours": bool(ours),
    }
    if path.sources:
        found["aggregatedFrom"] = list(path.sources)
    if ours:
        found["madeBy"] = [explained_told(each, reading) for each in ours]
    else:  # as it is by itself: lists leave out the field managers of others
        key = key_of(bound.binding)
        live = await reading.get(KINDS[key.kind], key.name, key.namespace) or bound.binding
        found["madeBy"] = [others_told(live, bound.subject)]
    if role:
        found["roleMadeBy"] = [explained_told(each, reading) for each in role]
    return found


def rule_text(rule: Object) -> str:
    """A rule in words: ``get, list of configmaps, secrets (names a, b)``."""
    verbs = ", ".join(rule.get("verbs") or ())
    if rule.get("nonResourceURLs"):
        return f"{verbs} of {', '.join(rule['nonResourceURLs'])}"
    groups = [each or "core" for each in rule.get("apiGroups") or ()]
    names = f" named {', '.join(rule['resourceNames'])}" if rule.get("resourceNames") else ""
    where = "all groups" if EVERYTHING in groups else f"group {', '.join(groups)}"
    return f"{verbs} of {', '.join(rule.get('resources') or ())} in {where}{names}"


def explained_told(found: Explained, reading: Reading) -> Told:
    """One unit's explanation, with its causes."""
    origin = found.origin
    return {
        "function": found.by.function,
        "unit": found.by.unit,
        "owner": origin.owner,
        "does": origin.does,
        "proof": origin.proof,
        "because": [_cause_told(each, reading) for each in found.causes],
        "ends": found.ends,
    }


def _cause_told(cause: CauseFound, reading: Reading) -> Told:
    because = cause.because
    if because.about is None:
        return {
            "of": "configuration",
            "line": because.line,
            "says": because.says,
            "place": reading.configured.place(because.line),
        }
    found: Told = {"of": str(because.about), "line": because.line, "says": because.says}
    if cause.there is not True:
        found["there"] = "it may not be read" if cause.there is None else "it is not there"
    if cause.problems:
        found["problems"] = list(cause.problems)
    if cause.whose:
        found["madeBy"] = [explained_told(each, reading) for each in cause.whose]
    return found


def others_told(binding: Object, subject: BoundSubject) -> Told:
    """A binding that no function made: who wrote it, as far as the API server noted it, and what ends it."""
    kind = KINDS[binding["kind"]]
    by = [str(each.get("manager")) for each in binding["metadata"].get("managedFields") or () if each.get("manager")]
    if _OWN in labels_of(binding):
        note = "Kubernetes' own: the API server puts it back when it starts, unless it is annotated with autoupdate false"
    elif labels_of(binding).get(_INSTALLED[0]) == _INSTALLED[1]:
        note = "part of the installation of Tenantry, which a person applied"
    else:
        note = "no function of Tenantry made it"
    found: Told = {"note": note, "ends": [leaving(kind, binding, subject)]}
    return {**found, "fieldManagers": list(dict.fromkeys(by))} if by else found


def unread_told(reading: Reading) -> Sequence[str]:
    """What could not be seen."""
    return sorted(reading.unread)
