"""Where Roles, RoleBindings and lists of NamespaceScopes come from, and what keeps an account's rights from a member."""

from __future__ import annotations

from scope_binding.consent import consent_name, is_given_to
from scope_binding.namespace_scopes.declared import Scope, declared
from scope_binding.namespace_scopes.names import FROM_LABEL, LIST_KEY, LIST_LABEL, MANAGER, own_role_name
from scope_binding.namespace_scopes.seen import ObservedHome
from tenantry.model.difference import entries_of
from tenantry.model.kinds import (
    CONFIG_MAP,
    NAMESPACE,
    NAMESPACE_SCOPE,
    ROLE,
    ROLE_BINDING,
    Object,
    key_in,
    key_of,
    labels_of,
)
from tenantry.model.origin import Because, Looking, Offer, Origin, all_of, edit, kubectl
from tenantry.model.rbac import BoundSubject, Question, account_named, allows

KINDS = frozenset({ROLE_BINDING, ROLE, CONFIG_MAP})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The NamespaceScopes that have a member, the consent of the member, and what makes the account one of them."""
    metadata = obj["metadata"]
    if obj["kind"] == CONFIG_MAP.kind:
        return await _of_list(obj, look)
    home, place = labels_of(obj).get(FROM_LABEL, ""), metadata["namespace"]
    if not home or not ObservedHome(home).is_ours(obj):
        return None
    because, members = [], []
    for scope in await _scopes(home, look):
        if place not in scope.members:
            continue
        because.append(Because(key_of(scope.live), "spec.namespaceMembers", place))
        if subject is not None:
            because.append(_of_account(subject.name, scope))
        members.append(edit(NAMESPACE_SCOPE, scope.name, f"take {place} out of spec.namespaceMembers", home))
    if subject is not None and (copied := await _copied(metadata["name"], subject.name, home, look)):
        because.append(Because(key_in(ROLE_BINDING, copied, home), "roleRef", "what the account has at home"))
    consent = consent_name(home)
    because.append(Because(key_in(ROLE, consent, place), "rules", f"what {place} agrees to"))
    ends = [*all_of(members), f"kubectl delete -n {place} role,rolebinding {consent}"]
    proof = f"label {FROM_LABEL}: {home}, and fields of field manager {MANAGER}"
    return Origin(f"namespace/{home}", proof, tuple(because), tuple(ends))


def _of_account(name: str, scope: Scope) -> Because:
    if name in scope.accounts:
        return Because(key_of(scope.live), "spec.serviceAccountMembers", name)
    labels = ", ".join(f"{key}={value}" for key, value in scope.restart_labels.items())
    return Because(key_of(scope.live), "spec.restartLabels", f"pods with {labels} run as {name}")


async def _copied(role: str, account: str, home: str, look: Looking) -> str:
    """The RoleBinding at home whose role a Role is a copy of; empty for the one Role of a NamespaceScope."""
    for each in await look.list(ROLE_BINDING, home):
        if own_role_name(each["roleRef"]["name"], account, home) == role:
            return str(each["metadata"]["name"])
    return ""


async def _of_list(obj: Object, look: Looking) -> Origin | None:
    home, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
    if labels_of(obj).get(LIST_LABEL) != "true" or not entries_of(obj, MANAGER):
        return None
    scopes = [scope for scope in await _scopes(home, look) if scope.config_map == name]
    because = tuple(Because(key_of(scope.live), "spec.configmapName", f"key {LIST_KEY}: its members") for scope in scopes)
    ends = all_of([kubectl("delete", NAMESPACE_SCOPE, scope.name, home) for scope in scopes])
    return Origin(f"namespace/{home}", f"label {LIST_LABEL}, and fields of field manager {MANAGER}", because, ends)


async def _scopes(home: str, look: Looking) -> list[Scope]:
    default = look.config.scope_binding.namespace_scope.projection
    return [declared(each, default) for each in await look.list(NAMESPACE_SCOPE, home)]


async def offers(question: Question, look: Looking) -> list[Offer]:
    """For an account of a namespace with NamespaceScopes: whether the namespace is a member, and what it agreed to."""
    account = account_named(question.user)
    if account is None or not question.namespace or account.namespace == question.namespace:
        return []
    found, home, place = [], account.namespace, question.namespace
    for scope in await _scopes(home, look):
        about = Because(key_of(scope.live), "spec.namespaceMembers", ", ".join(scope.members))
        if place not in scope.members:
            fix = edit(NAMESPACE_SCOPE, scope.name, f"add {place} to spec.namespaceMembers", home)
            found.append(Offer(about, f"namespace {place} is no member", fix))
            continue
        problem, fix = await _consented(question, home, look)
        fix = fix or kubectl("get", NAMESPACE_SCOPE, scope.name, home, "-o yaml  # status says what was not given")
        found.append(Offer(about, problem or "it is a member; the account, or its own roles, may not be among those given", fix))
    return found


async def _consented(question: Question, home: str, look: Looking) -> tuple[str, str]:
    name, place = consent_name(home), question.namespace
    agree = f"tenantry authorize-namespace {place} --to {home}"
    role, binding = await look.get(ROLE, name, place), await look.get(ROLE_BINDING, name, place)
    if role is None or binding is None:
        return f"namespace {place} has not agreed that operators of {home} act in it", agree
    live = await look.get(NAMESPACE, home)
    if live is not None and not is_given_to(binding, live):
        return f"the consent of {place} is for an earlier namespace called {home}", agree
    if not allows(question, role):
        return f"the consent of {place} does not allow it", edit(ROLE, name, "add a rule", place)
    return "", ""
