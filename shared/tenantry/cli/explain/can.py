"""``tenantry explain can``: every path to a right, and whether the API server agrees."""

from __future__ import annotations

from dataclasses import dataclass, field

from tenantry.cli.explain.paths import KINDS, Bound, RightPath, paths_of
from tenantry.cli.explain.reading import Reading
from tenantry.cli.explain.review import Answer, asked_server
from tenantry.cli.explain.told import Told, path_told, question_told, unread_told, what_is_asked
from tenantry.model.kinds import key_of
from tenantry.model.rbac import MASTERS, Question


@dataclass(frozen=True, slots=True)
class Judged:
    """The paths that were found, the bindings that name whoever asks, and what the API server says."""

    question: Question
    paths: tuple[RightPath, ...]
    bound: tuple[Bound, ...]
    answer: Answer
    notes: tuple[str, ...] = field(default=())
    blind: bool = False
    """Whether bindings or roles could not be read."""

    @property
    def by_rbac(self) -> bool:
        """Whether it is allowed by what could be read."""
        return bool(self.paths) or MASTERS in self.question.groups

    @property
    def allowed(self) -> bool:
        """What the API server says, or what was read where it could not be asked."""
        return self.by_rbac if self.answer.allowed is None else self.answer.allowed


async def judged(question: Question, reading: Reading, notes: tuple[str, ...] = ()) -> Judged:
    """Find the paths, and ask the API server."""
    paths, bound = await paths_of(question, reading)
    blind = bool(reading.unread)
    groups = set(await reading.groups_of(question.user)) - set(question.groups)
    hints = tuple(f"Group {each} names {question.user} as a user: ask again with --group {each}" for each in sorted(groups))
    answer = await asked_server(question, reading.api)
    return Judged(question, tuple(paths), tuple(bound), answer, (*notes, *hints), blind)


async def can_told(found: Judged, who: str, reading: Reading) -> Told:
    """The whole answer."""
    paths = [await path_told(each, reading) for each in found.paths]
    review: Told = {"kind": found.answer.review, "allowed": found.answer.allowed}
    if found.answer.reason:
        review["reason"] = found.answer.reason
    if text := disagreement(found):
        review["disagrees"] = text
    return {
        "allowed": found.allowed,
        "asked": f"{who} may {what_is_asked(found.question)}",
        "question": question_told(found.question, who),
        "ours": sum(each["ours"] for each in paths),
        "paths": paths,
        "review": review,
        "notes": [*found.notes, *_notes(found, reading)],
        "unread": list(unread_told(reading)),
    }


def is_unknown(found: Judged) -> bool:
    """Whether no path may be for want of rights to read, and the API server could not be asked."""
    return found.answer.allowed is None and not found.by_rbac and found.blind


def disagreement(found: Judged) -> str:
    """Why the API server says something else than what was read; empty where it does not."""
    if found.answer.allowed is None or found.answer.allowed == found.by_rbac:
        return ""
    if found.answer.allowed and found.blind:
        return "the API server allows it by something that you may not read"
    if found.answer.allowed:
        return "the API server allows it, and no rule of RBAC does: another authorizer (Node, ABAC, a webhook) gives it"
    return "RBAC allows it, and the API server does not: another authorizer denies it, or what gives it was written just now"


def _notes(found: Judged, reading: Reading) -> list[str]:
    notes = []
    if MASTERS in found.question.groups:
        notes.append(f"group {MASTERS}: the API server allows its members everything, and no binding takes that away")
    loose = (each for each in found.bound if each.role is None and not _unread(each, reading))
    notes += [f"{key_of(each.binding)} leads to {each.role_key}, which is not there" for each in loose]
    if reading.configured.note and reading.asked_config:
        notes.append(reading.configured.note)
    return notes


def _unread(bound: Bound, reading: Reading) -> bool:
    return reading.could_not(KINDS[bound.role_key.kind], bound.role_key.name, bound.role_key.namespace)
