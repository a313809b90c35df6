"""What a NamespaceScope is told: its status, one condition ``Ready``, and one Event whenever that says something new (N-1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scope_binding.consent import AGENT, consent_name
from scope_binding.descriptor import NAMESPACE_SCOPES
from scope_binding.namespace_scopes import injection
from scope_binding.namespace_scopes.config_map import unnamed
from scope_binding.namespace_scopes.declared import Scope
from scope_binding.namespace_scopes.names import FINALIZER, LIST_LABEL
from scope_binding.namespace_scopes.projection import Grant, Projection
from scope_binding.namespace_scopes.restarts import KINDS as WORKLOADS
from scope_binding.namespace_scopes.rights import foreign
from scope_binding.namespace_scopes.seen import Place, Seen
from tenantry.model import limits
from tenantry.model.conditions import condition, find_condition
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import (
    CLUSTER_SERVICE_VERSION,
    CONFIG_MAP,
    MUTATING_WEBHOOKS,
    NAMESPACE_SCOPE,
    POD,
    ROLE,
    ROLE_BINDING,
    VALIDATING_WEBHOOKS,
    Object,
)
from tenantry.model.plan import Apply, Notice, Refusal, Write
from tenantry.model.refusals import fixes, message_of, text_of

READY = "Ready"
_BETWEEN = ". "
FIXES = fixes(NAMESPACE_SCOPES, invalid="correct the NamespaceScope")
_RIGHTS = frozenset({ROLE.kind, ROLE_BINDING.kind})
_RESTARTED = frozenset({*WORKLOADS, POD.kind})
_INJECTED = frozenset({CLUSTER_SERVICE_VERSION.kind, VALIDATING_WEBHOOKS.kind, MUTATING_WEBHOOKS.kind})


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as declared: the reason that the condition gets, and a sentence with the fix."""

    reason: str
    text: str
    blocks: bool = True


def statuses(seen: Seen, made: Projection, refusals: Sequence[Refusal]) -> Iterator[Write]:
    """The status of each NamespaceScope that stays."""
    taken = foreign(seen, made)
    members = frozenset(member for scope in seen.live for member in scope.members)
    for scope in seen.live:
        found = list(_findings(scope, seen, made, refusals, taken, members))
        refused = {*_refused_rights(scope, seen, made, refusals), *(_failed(grant, seen) for grant in _held(scope, seen, made))}
        unprojected = sorted(made.unprojected.get(scope.uid, set()) | refused)[: limits.NOTES_OF_SCOPE]
        injected = injection.summary(scope, seen)
        status = {
            "validatedMembers": list(seen.validated(scope)),
            "unprojectedRoles": unprojected,
            **injected,
            "observedGeneration": scope.live["metadata"].get("generation", 0),
            "conditions": [_ready(scope, found)],
        }
        metadata = {"name": scope.name, "namespace": seen.name}
        wanted = {"apiVersion": NAMESPACE_SCOPE.api_version, "kind": NAMESPACE_SCOPE.kind, "metadata": metadata, "status": status}
        notice = _notice(scope, status["conditions"][0], seen, made)
        yield Apply(NAMESPACE_SCOPE, wanted, scope.live, subresource="status", notice=notice)


def _surplus(home: str) -> Object:
    """What a NamespaceScope is told of which its home has too many."""
    return condition(
        READY,
        "False",
        "TooManyNamespaceScopes",
        f"not served: of the NamespaceScopes of a namespace at most {limits.SCOPES_OF_HOME} are served, the oldest: delete some "
        f"of {home}, or make this one elsewhere",
    )


def untold(surplus: Iterable[Object], home: str) -> Iterator[Object]:
    """Those NamespaceScopes that are too many and do not say so yet."""
    told = _surplus(home)
    for scope in surplus:
        before = find_condition(scope, READY) or {}
        if any(before.get(part) != told[part] for part in ("status", "reason", "message")):
            yield scope


def refusals_of_surplus(seen: Seen) -> Iterator[Write]:
    """The status of NamespaceScopes that are not served."""
    told = _surplus(seen.name)
    for scope in seen.surplus:
        metadata = {"name": scope["metadata"]["name"], "namespace": seen.name}
        wanted = {"apiVersion": NAMESPACE_SCOPE.api_version, "kind": NAMESPACE_SCOPE.kind, "metadata": metadata}
        notice = Notice(scope, told["reason"], told["message"], "Report", "Warning")
        yield Apply(NAMESPACE_SCOPE, {**wanted, "status": {"conditions": [told]}}, scope, subresource="status", notice=notice)


def farewells(seen: Seen, refusals: Sequence[Refusal]) -> Iterator[Write]:
    """What keeps a deleted NamespaceScope from going: nothing is said unless something was refused."""
    kinds = frozenset({*_RIGHTS, CONFIG_MAP.kind, *_INJECTED, NAMESPACE_SCOPE.kind})
    for scope in seen.scopes:
        found = list(_refused(scope, refusals, kinds, "CleanUpFailed"))
        if not found or not scope.live["metadata"].get("deletionTimestamp"):
            continue
        told = _ready(scope, found)
        before = find_condition(scope.live, READY) or {}
        metadata = {"name": scope.name, "namespace": seen.name}
        wanted = {"apiVersion": NAMESPACE_SCOPE.api_version, "kind": NAMESPACE_SCOPE.kind, "metadata": metadata}
        same = all(before.get(part) == told[part] for part in ("status", "reason", "message"))
        notice = None if same else Notice(scope.live, told["reason"], told["message"], "Report", "Warning")
        yield Apply(
            NAMESPACE_SCOPE, {**wanted, "status": {"conditions": [told]}}, scope.live, subresource="status", notice=notice
        )


def _ready(scope: Scope, found: Sequence[Finding]) -> Object:
    blocking = [finding for finding in found if finding.blocks]
    texts = [finding.text for finding in (*blocking, *(finding for finding in found if not finding.blocks))]
    status: Literal["True", "False"] = "False" if blocking else "True"
    reason = blocking[0].reason if blocking else "Reconciled"
    message = _BETWEEN.join(texts) or "all members are served"
    return condition(READY, status, reason, message, scope.live["metadata"].get("generation"))


def _notice(scope: Scope, told: Object, seen: Seen, made: Projection) -> Notice | None:
    before = find_condition(scope.live, READY) or {}
    if all(before.get(part) == told[part] for part in ("status", "reason", "message")):
        return None
    if told["status"] == "True":
        return Notice(scope.live, "Reconciled", told["message"], "Report")
    if told["reason"] == "NotAuthorized":
        note = "; ".join((*_outdated(scope, seen, made), *(_forbidden(each) for each in made.unauthorized.get(scope.uid, ()))))
        return Notice(scope.live, "Forbidden", note or told["message"], "Report", "Warning")
    return Notice(scope.live, told["reason"], told["message"], "Report", "Warning")


def _forbidden(member: str) -> str:
    """The words of the IBM operator, which people search for."""
    return (
        f"cannot create resource roles in API group rbac.authorization.k8s.io in the namespace {member}. Please authorize "
        f"service account {AGENT} namespace admin permission of {member} namespace"
    )


def _findings(
    scope: Scope,
    seen: Seen,
    made: Projection,
    refusals: Sequence[Refusal],
    taken: Mapping[Place, Grant],
    members: frozenset[str],
) -> Iterator[Finding]:
    yield from (Finding("InvalidSpec", text) for text in scope.problems)
    yield from _refused(scope, refusals, frozenset({NAMESPACE_SCOPE.kind}), "FinalizerFailed", {scope.name})
    yield from _refused(scope, refusals, frozenset({CONFIG_MAP.kind}), "ConfigMapFailed", {scope.config_map})
    unauthorized = made.unauthorized.get(scope.uid, [])
    if unauthorized:
        text = (
            f"not authorized in {_some(unauthorized)}: let their administrator run `tenantry authorize-namespace "
            f"{unauthorized[0]} --to {seen.name}`, or take them out of namespaceMembers"
        )
        yield Finding("NotAuthorized", text, blocks=not scope.subset)
    yield from (Finding("NotAuthorized", text, blocks=not scope.subset) for text in _outdated(scope, seen, made))
    if unnamed(seen) > limits.LABELLED_CONFIG_MAPS:
        text = (
            f"more than {limits.LABELLED_CONFIG_MAPS} ConfigMaps of {seen.name} have the label {LIST_LABEL} and no "
            f"NamespaceScope names them, at most {limits.LABELLED_CONFIG_MAPS} may: take the label off them"
        )
        yield Finding("TooManyConfigMaps", text)
    yield from _refused(scope, refusals, _RESTARTED, "RestartFailed")
    missing = [_missing(name, seen) for name in scope.members if name != seen.name and not seen.is_member(name)]
    if missing:
        yield Finding("MembersMissing", f"left out: {_some(missing)}")
    yield from _incomplete(scope, seen, made, refusals, taken)
    elsewhere = [refusal for refusal in refusals if refusal.key.namespace not in members]
    yield from _refused(scope, elsewhere, _RIGHTS, "CleanUpFailed")
    yield from _refused(scope, refusals, _INJECTED, "InjectionFailed")
    yield from (Finding("InjectionFailed", text) for text in injection.problems(scope, seen))
    if scope.manual:
        yield Finding("Reconciled", "Roles and RoleBindings in members are managed by hand (manualManagement)", blocks=False)
    yield from (Finding("Reconciled", text, blocks=False) for text in (*injection.remarks(scope, seen), *scope.remarks))
    if not any(other.licensed for other in seen.live):
        yield Finding("Reconciled", "the license is not accepted (spec.license.accept); nothing is held back", blocks=False)


def _outdated(scope: Scope, seen: Seen, made: Projection) -> Iterator[str]:
    """Consents that were given to another namespace of this name (a-37)."""
    if members := made.outdated.get(scope.uid, []):
        yield (
            f"the consent of {_some(members)} was given to an earlier namespace {seen.name}, not to this one: let their "
            f"administrator give it again with `tenantry authorize-namespace {members[0]} --to {seen.name}`, or delete "
            f"RoleBinding {consent_name(seen.name)} there and make it anew"
        )


def _missing(name: str, seen: Seen) -> str:
    if not is_dns_label(name):
        return f"{name!r} (no namespace can have this name)"
    return f"{name} ({'is being deleted' if seen.namespaces.get(name) else 'does not exist'})"


def _incomplete(
    scope: Scope, seen: Seen, made: Projection, refusals: Sequence[Refusal], foreigners: Mapping[Place, Grant]
) -> Iterator[Finding]:
    notes = {note for note in made.unprojected.get(scope.uid, ()) if not note.endswith(": not authorized")}
    notes |= set(_refused_rights(scope, seen, made, refusals))
    if notes:
        yield Finding("ProjectionIncomplete", f"not projected: {_some(sorted(notes))}", blocks=not scope.subset)
    if scope.manual:
        told = [f"{member}: {account} may not {', '.join(what)}" for (member, account), what in sorted(seen.denied.items())]
        mine = [text for text in told if text.partition(":")[0] in scope.members]
        if mine:
            yield Finding("ProjectionIncomplete", f"rights made by hand lack: {_some(mine)}", blocks=not scope.subset)
    taken = [f"{member}/{name}" for (member, name), grant in foreigners.items() if grant.scope.uid == scope.uid]
    if taken:
        text = f"not ours and left as they are: Role or RoleBinding {_some(sorted(taken))}; delete or rename them"
        yield Finding("ProjectionIncomplete", text, blocks=not scope.subset)
    if held := _held(scope, seen, made):
        named = [f"Role {each.member}/{each.name} (by RoleBinding {', '.join(seen.others[each.place][:3])})" for each in held]
        text = (
            f"nothing is added where others are bound too; roleRef names {_some(named)}: delete these RoleBindings, or let them "
            "name another Role"
        )
        yield Finding("ProjectionIncomplete", text, blocks=not scope.subset)


def _held(scope: Scope, seen: Seen, made: Projection) -> list[Grant]:
    """What is not given because RoleBindings of others name the Role (a-38)."""
    return [made.grants[place] for place in sorted(seen.others) if made.grants[place].scope.uid == scope.uid]


def _failed(grant: Grant, seen: Seen) -> str:
    """A Role that could not be written, in the IBM operator's words."""
    verb = "update" if grant.place in seen.roles else "create"
    return f"{grant.member}/{grant.source or grant.name}: failed to {verb} from namespace {seen.name}"


def _refused_rights(scope: Scope, seen: Seen, made: Projection, refusals: Sequence[Refusal]) -> Iterator[str]:
    """Refused Roles and RoleBindings, in the IBM operator's words."""
    for refusal in refusals:
        if refusal.key.kind in _RIGHTS and refusal.key.namespace in scope.members:
            place = (refusal.key.namespace, refusal.key.name)
            grant = made.grants.get(place)
            name = (grant.source or grant.name) if grant is not None else refusal.key.name
            there = place in (seen.roles if refusal.key.kind == ROLE.kind else seen.bindings)
            verb = "create" if not there else "delete" if grant is None else "update"
            yield f"{refusal.key.namespace}/{name}: failed to {verb} from namespace {seen.name}"


def _refused(
    scope: Scope, refusals: Sequence[Refusal], kinds: frozenset[str], reason: str, names: set[str] | None = None
) -> Iterator[Finding]:
    chosen = [refusal for refusal in refusals if refusal.key.kind in kinds and (names is None or refusal.key.name in names)]
    for refusal in sorted(chosen, key=lambda refusal: (refusal.key, refusal.message))[:1]:
        standing = message_of(scope.live, READY, generation=scope.live["metadata"].get("generation"))
        yield Finding(reason, text_of(refusal, FIXES, standing, separator=_BETWEEN))


def _some(names: Sequence[str]) -> str:
    """The first few of a list of names, and how many more there are."""
    more = f" and {len(names) - limits.PROBLEMS_SHOWN} more" if len(names) > limits.PROBLEMS_SHOWN else ""
    return ", ".join(names[: limits.PROBLEMS_SHOWN]) + more


def finalizer_of(scope: Scope) -> Object:
    """The fields of a NamespaceScope itself that are ours: its finalizer."""
    metadata = {"name": scope.name, "namespace": scope.namespace, "finalizers": [FINALIZER]}
    return {"apiVersion": NAMESPACE_SCOPE.api_version, "kind": NAMESPACE_SCOPE.kind, "metadata": metadata}


__all__ = ["READY", "farewells", "finalizer_of", "refusals_of_surplus", "statuses", "untold"]
