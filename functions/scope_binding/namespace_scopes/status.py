"""The status of a NamespaceScope: one condition ``Ready``, and one Event whenever that says something new (N-1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scope_binding.consent import AGENT, consent_name
from scope_binding.namespace_scopes import injection
from scope_binding.namespace_scopes.config_map import WORKLOADS, unnamed
from scope_binding.namespace_scopes.declared import Scope
from scope_binding.namespace_scopes.descriptor import NAMESPACE_SCOPES
from scope_binding.namespace_scopes.grants import Grant, RolePlace
from scope_binding.namespace_scopes.names import LIST_LABEL
from scope_binding.namespace_scopes.rights import foreign
from scope_binding.namespace_scopes.seen import ObservedHome
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
    is_terminating,
    object_of,
)
from tenantry.model.plan import Apply, KubernetesEvent, Refusal, Write
from tenantry.model.refusals import first_of, fixes, message_of, text_of

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


def statuses(seen: ObservedHome, refusals: Sequence[Refusal]) -> Iterator[Write]:
    """The status of each NamespaceScope that stays."""
    taken = foreign(seen)
    members = frozenset(member for scope in seen.live for member in scope.members)
    for scope in seen.live:
        ready = _ready(scope, list(_findings(scope, seen, refusals, taken, members)))
        held = (_failed(each.place, "update" if each.place in seen.roles else "create", seen) for each in _held(scope, seen))
        notes = seen.projected.unprojected.get(scope.uid, set()).union(_refused_rights(scope, seen, refusals), held)
        status = {
            "validatedMembers": list(seen.validated(scope)),
            "unprojectedRoles": sorted(notes)[: limits.NOTES_OF_SCOPE],
            **injection.summary(scope, seen),
            "observedGeneration": scope.live["metadata"].get("generation", 0),
        }
        yield _status(scope.live, ready, status, event=_event(scope, ready, seen))


def _surplus(home: str) -> Object:
    return condition(
        READY,
        "False",
        "TooManyNamespaceScopes",
        f"not served: of the NamespaceScopes of a namespace at most {limits.SCOPES_OF_HOME} are served, the oldest: delete some "
        f"of {home}, or make this one elsewhere",
    )


def unreported(surplus: Iterable[Object], home: str) -> Iterator[Object]:
    """Those NamespaceScopes that are too many and whose status does not say so yet."""
    ready = _surplus(home)
    return (scope for scope in surplus if not _stands(scope, ready))


def refusals_of_surplus(seen: ObservedHome) -> Iterator[Write]:
    """The status of NamespaceScopes that are not served."""
    ready = _surplus(seen.name)
    return (_status(scope, ready) for scope in seen.surplus)


def failed_cleanups(seen: ObservedHome, refusals: Sequence[Refusal]) -> Iterator[Write]:
    """What keeps a deleted NamespaceScope from going: no status unless something was refused."""
    kinds = frozenset({*_RIGHTS, CONFIG_MAP.kind, *_INJECTED, NAMESPACE_SCOPE.kind})
    for scope in seen.scopes:
        found = list(_refused(scope, refusals, kinds, "CleanUpFailed"))
        if found and is_terminating(scope.live):
            yield _status(scope.live, _ready(scope, found))


def _status(live: Object, ready: Object, fields: Object | None = None, event: tuple[str, str] | None = None) -> Apply:
    """A status with its one condition, and the Event (reason, note) when the condition says something new."""
    metadata = {"name": live["metadata"]["name"], "namespace": live["metadata"]["namespace"]}
    recorded = None
    if not _stands(live, ready):
        reason, note = event or (ready["reason"], ready["message"])
        recorded = KubernetesEvent(live, reason, note, "Report", "Normal" if ready["status"] == "True" else "Warning")
    wanted = object_of(NAMESPACE_SCOPE, metadata, status={**(fields or {}), "conditions": [ready]})
    return Apply(NAMESPACE_SCOPE, wanted, live, subresource="status", event=recorded)


def _stands(live: Object, ready: Object) -> bool:
    """Whether the status of a NamespaceScope has this condition already."""
    before = find_condition(live, READY) or {}
    return all(before.get(part) == ready[part] for part in ("status", "reason", "message"))


def _ready(scope: Scope, found: Sequence[Finding]) -> Object:
    blocking = [finding for finding in found if finding.blocks]
    texts = [finding.text for finding in (*blocking, *(finding for finding in found if not finding.blocks))]
    reason = blocking[0].reason if blocking else "Reconciled"
    message = _BETWEEN.join(texts) or "all members are served"
    return condition(READY, "False" if blocking else "True", reason, message, scope.live["metadata"].get("generation"))


def _event(scope: Scope, ready: Object, seen: ObservedHome) -> tuple[str, str]:
    if ready["reason"] != "NotAuthorized":
        return ready["reason"], ready["message"]
    unauthorized = seen.projected.unauthorized.get(scope.uid, ())
    note = "; ".join((*_outdated(scope, seen), *(_forbidden(member) for member in unauthorized)))
    return "Forbidden", note or ready["message"]


def _forbidden(member: str) -> str:
    """The words of the IBM operator, which people search for."""
    return (
        f"cannot create resource roles in API group rbac.authorization.k8s.io in the namespace {member}. Please authorize "
        f"service account {AGENT} namespace admin permission of {member} namespace"
    )


def _findings(
    scope: Scope,
    seen: ObservedHome,
    refusals: Sequence[Refusal],
    taken: Mapping[RolePlace, Grant],
    members: frozenset[str],
) -> Iterator[Finding]:
    yield from (Finding("InvalidSpec", text) for text in scope.problems)
    yield from _refused(scope, refusals, frozenset({NAMESPACE_SCOPE.kind}), "FinalizerFailed", {scope.name})
    yield from _refused(scope, refusals, frozenset({CONFIG_MAP.kind}), "ConfigMapFailed", {scope.config_map})
    if unauthorized := seen.projected.unauthorized.get(scope.uid):
        text = (
            f"not authorized in {limits.few(unauthorized)}: let their administrator run `tenantry authorize-namespace "
            f"{unauthorized[0]} --to {seen.name}`, or take them out of namespaceMembers"
        )
        yield Finding("NotAuthorized", text, blocks=not scope.subset)
    yield from (Finding("NotAuthorized", text, blocks=not scope.subset) for text in _outdated(scope, seen))
    if unnamed(seen) > limits.LABELLED_CONFIG_MAPS:
        text = (
            f"more than {limits.LABELLED_CONFIG_MAPS} ConfigMaps of {seen.name} have the label {LIST_LABEL} and no "
            f"NamespaceScope names them, at most {limits.LABELLED_CONFIG_MAPS} may: take the label off them"
        )
        yield Finding("TooManyConfigMaps", text)
    yield from _refused(scope, refusals, _RESTARTED, "RestartFailed")
    if missing := [_missing(name, seen) for name in scope.members if name != seen.name and not seen.is_member(name)]:
        yield Finding("MembersMissing", f"left out: {limits.few(missing)}")
    incomplete = _incomplete(scope, seen, refusals, taken)
    yield from (Finding("ProjectionIncomplete", text, blocks=not scope.subset) for text in incomplete)
    elsewhere = [refusal for refusal in refusals if refusal.key.namespace not in members]
    yield from _refused(scope, elsewhere, _RIGHTS, "CleanUpFailed")
    yield from _refused(scope, refusals, _INJECTED, "InjectionFailed")
    yield from (Finding("InjectionFailed", text) for text in injection.problems(scope, seen))
    if scope.manual:
        yield Finding("Reconciled", "Roles and RoleBindings in members are managed by hand (manualManagement)", blocks=False)
    yield from (Finding("Reconciled", text, blocks=False) for text in (*injection.remarks(scope, seen), *scope.remarks))
    if not any(other.licensed for other in seen.live):
        yield Finding("Reconciled", "the license is not accepted (spec.license.accept); nothing is held back", blocks=False)


def _outdated(scope: Scope, seen: ObservedHome) -> Iterator[str]:
    """Consents that were given to another namespace of this name (a-37)."""
    if members := seen.projected.outdated.get(scope.uid, []):
        yield (
            f"the consent of {limits.few(members)} was given to an earlier namespace {seen.name}, not to this one: let their "
            f"administrator give it again with `tenantry authorize-namespace {members[0]} --to {seen.name}`, or delete "
            f"RoleBinding {consent_name(seen.name)} there and make it anew"
        )


def _missing(name: str, seen: ObservedHome) -> str:
    if not is_dns_label(name):
        return f"{name!r} (no namespace can have this name)"
    return f"{name} ({'is being deleted' if seen.namespaces.get(name) else 'does not exist'})"


def _incomplete(scope: Scope, seen: ObservedHome, refusals: Sequence[Refusal], taken: Mapping[RolePlace, Grant]) -> Iterator[str]:
    notes = {note for note in seen.projected.unprojected.get(scope.uid, ()) if not note.endswith(": not authorized")}
    if notes := notes.union(_refused_rights(scope, seen, refusals)):
        yield f"not projected: {limits.few(sorted(notes))}"
    denied = sorted(seen.denied.items()) if scope.manual else ()
    mine = [f"{member}: {who} may not {', '.join(what)}" for (member, who), what in denied if member in scope.members]
    if mine:
        yield f"rights made by hand lack: {limits.few(mine)}"
    if places := [f"{member}/{name}" for (member, name), grant in sorted(taken.items()) if grant.scope.uid == scope.uid]:
        yield f"not ours and left as they are: Role or RoleBinding {limits.few(places)}; delete or rename them"
    if held := _held(scope, seen):
        named = [f"Role {each.member}/{each.name} (by RoleBinding {', '.join(seen.others[each.place][:3])})" for each in held]
        yield (
            f"nothing is added where others are bound too; roleRef names {limits.few(named)}: delete these RoleBindings, "
            "or let them name another Role"
        )


def _held(scope: Scope, seen: ObservedHome) -> list[Grant]:
    """What is not given because RoleBindings of others name the Role (a-38)."""
    return [seen.projected.grants[place] for place in sorted(seen.others) if seen.projected.grants[place].scope.uid == scope.uid]


def _failed(place: RolePlace, verb: str, seen: ObservedHome) -> str:
    """A right that could not be written, in the IBM operator's words."""
    grant = seen.projected.grants.get(place)
    source = grant.source if grant is not None else ""
    return f"{place[0]}/{source or place[1]}: failed to {verb} from namespace {seen.name}"


def _refused_rights(scope: Scope, seen: ObservedHome, refusals: Sequence[Refusal]) -> Iterator[str]:
    for refusal in refusals:
        if refusal.key.kind in _RIGHTS and refusal.key.namespace in scope.members:
            place = (refusal.key.namespace, refusal.key.name)
            there = place in (seen.roles if refusal.key.kind == ROLE.kind else seen.bindings)
            verb = "create" if not there else "update" if place in seen.projected.grants else "delete"
            yield _failed(place, verb, seen)


def _refused(
    scope: Scope, refusals: Sequence[Refusal], kinds: frozenset[str], reason: str, names: set[str] | None = None
) -> Iterator[Finding]:
    chosen = [refusal for refusal in refusals if refusal.key.kind in kinds and (names is None or refusal.key.name in names)]
    if (refusal := first_of(chosen)) is not None:
        standing = message_of(scope.live, READY, generation=scope.live["metadata"].get("generation"))
        yield Finding(reason, text_of(refusal, FIXES, standing, separator=_BETWEEN))
