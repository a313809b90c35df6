"""``tenantry explain why-not``: what is missing for a right that somebody expects."""

from __future__ import annotations

from tenantry.cli.explain.can import Judged
from tenantry.cli.explain.paths import Bound, bound_by
from tenantry.cli.explain.reading import Reading
from tenantry.cli.explain.told import Told, question_told, rule_text, unread_told, what_is_asked
from tenantry.cli.explain.units import CauseFound, Explainer, offered
from tenantry.model.kinds import CLUSTER_ROLE, ROLE, ROLE_BINDING, Object, key_of
from tenantry.model.origin import Offer
from tenantry.model.rbac import EVERYTHING, Question, allows, binder, nearest

_MOST = 5
"""Bindings elsewhere, and roles that would give it, that are named."""
_WORDS = {"verb": "its verbs", "group": "its API groups", "name": "its names", "resource": "its resources", "url": "its URLs"}


async def missing_told(found: Judged, who: str, reading: Reading) -> Told:
    """What there is, what is near, and what would give it."""
    question = found.question
    bound = [_bound_told(each, question) for each in found.bound]
    offers = [_offer_told(*each) async for each in offered(question, reading)]
    return {
        "allowed": found.allowed,
        "asked": f"{who} may {what_is_asked(question)}",
        "question": question_told(question, who),
        "bound": sorted(bound, key=lambda each: "nearest" not in each),
        "elsewhere": await _elsewhere(question, reading),
        "offers": offers,
        "roles": [] if offers else await _roles(question, reading),
        "review": {"kind": found.answer.review, "allowed": found.answer.allowed, "reason": found.answer.reason},
        "notes": [
            *found.notes,
            *([] if found.bound else ["no binding here or in the cluster names them, nor one of their groups"]),
        ],
        "unread": list(unread_told(reading)),
    }


def _bound_told(bound: Bound, question: Question) -> Told:
    told: Told = {"binding": str(key_of(bound.binding)), "subject": str(bound.subject), "role": str(bound.role_key)}
    if bound.role is None:
        return {**told, "lacks": "the role is not there, or may not be read"}
    close = nearest(question, bound.role.get("rules"))
    if close is None:
        return {**told, "lacks": f"none of its rules is about {question.url or question.combined}"}
    rule, parts = close
    lacks = " and ".join(_WORDS[part] for part in parts)
    return {**told, "lacks": f"a rule is near, but for {lacks}", "nearest": rule_text(rule)}


def _offer_told(by: Explainer, offer: Offer, cause: CauseFound) -> Told:
    because = offer.because
    told: Told = {
        "function": by.function,
        "unit": by.unit,
        "of": "configuration" if because.about is None else str(because.about),
        "line": because.line,
        "says": because.says,
        "lacks": offer.lacks,
        "fix": offer.fix,
    }
    return {**told, "problems": list(cause.problems)} if cause.problems else told


async def _elsewhere(question: Question, reading: Reading) -> list[Told]:
    """Bindings in other namespaces that give the same there."""
    if question.url:
        return []
    found: list[Told] = []
    for binding in await reading.list(ROLE_BINDING):
        namespace = binding["metadata"]["namespace"]
        bound = await bound_by(binding, question, reading) if namespace != question.namespace else None
        if bound is not None and allows(question, bound.role):
            found.append({"binding": str(key_of(binding)), "where": f"in namespace {namespace}"})
        if len(found) >= _MOST:
            break
    return found


async def _roles(question: Question, reading: Reading) -> list[Told]:
    """The ClusterRoles, or Roles of the namespace, that would give it, those that give the least first; how they are bound."""
    every: list[Object] = [*await reading.list(CLUSTER_ROLE)]
    every += await reading.list(ROLE, question.namespace) if question.namespace else []
    able = [each for each in every if _is_for_people(each) and allows(question, each)]
    able.sort(key=lambda each: (_gives_everything(each), len(each.get("rules") or ()), each["metadata"]["name"]))
    return [{"role": str(key_of(each)), "fix": _binding_command(each, question)} for each in able[:_MOST]]


def _is_for_people(role: Object) -> bool:
    return not role["metadata"]["name"].startswith("system:")


def _gives_everything(role: Object) -> bool:
    return any(EVERYTHING in (rule.get("resources") or ()) for rule in role.get("rules") or ())


def _binding_command(role: Object, question: Question) -> str:
    flag = "--clusterrole" if role["kind"] == CLUSTER_ROLE.kind else "--role"
    if question.namespace:
        return f"kubectl create rolebinding -n {question.namespace} NAME {flag}={role['metadata']['name']} {binder(question)}"
    return f"kubectl create clusterrolebinding NAME --clusterrole={role['metadata']['name']} {binder(question)}"
