"""What an object is, in a few words, for a line of a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized

from tenantry.model.kinds import Object, annotations_of, is_terminating
from tenantry.model.limits import few
from tenantry.model.names import LOCK, LOCK_PAUSED


def note_of(obj: Object) -> str:
    """A few words about an object; empty where there is nothing to say beyond its name."""
    say = _NOTES.get(obj["kind"])
    words = say(obj.get("spec") or {}, obj.get("status") or {}) if say is not None else ""
    if annotations_of(obj).get(LOCK) == LOCK_PAUSED:
        words = f"{words}, paused" if words else "paused"
    if is_terminating(obj):
        words = f"{words}, being deleted" if words else "being deleted"
    return words


def count_text(found: Sized, one: str, several: str) -> str:
    """``1 role``, ``2 roles``."""
    return f"{len(found)} {one if len(found) == 1 else several}"


def _project_chart(spec: Object, status: Object) -> str:
    asks = str(spec.get("helmApiVersion") or "")
    return ", ".join(filter(None, (asks, str(status.get("status") or ""))))


def _helm_release(spec: Object, status: Object) -> str:
    del spec
    state, revision = str(status.get("state") or ""), status.get("lockedVersion")
    return ", ".join(filter(None, (state, f"revision {revision} locked" if revision else "not locked")))


def _namespace_scope(spec: Object, status: Object) -> str:
    asked = spec.get("namespaceMembers") or []
    served = [each for each in asked if each in (status.get("validatedMembers") or [])]
    return f"{len(served)} of {count_text(asked, 'member', 'members')}: {few(sorted(asked))}" if asked else "no members"


def _scope_instance(spec: Object, status: Object) -> str:
    del status
    template, listed = spec.get("scopeTemplateName") or "?", spec.get("namespaces") or []
    if listed:
        return f"{template} in {few(sorted(map(str, listed)))}"
    return f"{template} in {'selected namespaces' if spec.get('namespaceSelector') is not None else 'the whole cluster'}"


def _scope_template(spec: Object, status: Object) -> str:
    del status
    return count_text(spec.get("clusterRoles") or [], "role", "roles")


def _source_grant(spec: Object, status: Object) -> str:
    del status
    named = spec.get("sourceRef") or spec.get("sourceSelector") or {}
    what = f"{named.get('kind', '')}/{named['name']}" if named.get("name") else f"{named.get('kind', '')} by label"
    texts = []
    for each in (spec.get("accessFrom") or {}).get("namespaceSelectors") or []:
        pairs = ((each or {}).get("matchLabels") or {}).items()
        texts.append(",".join(f"{key}={value}" for key, value in sorted(pairs)) or "every namespace")
    return f"{what}: {' and '.join(spec.get('access') or ['Read'])} for {few(texts, between='; ')}"


def _tenant(spec: Object, status: Object) -> str:
    del status
    url = str((spec.get("source") or {}).get("url") or "")
    return ", ".join(filter(None, (f"account {spec['serviceAccountName']}" if spec.get("serviceAccountName") else "", url)))


def _paas(spec: Object, status: Object) -> str:
    del status
    requestor = str(spec.get("requestor") or "")
    able = sorted(spec.get("capabilities") or {})
    return ", ".join(
        filter(None, (f"asked for by {requestor}" if requestor else "", f"capabilities {few(able)}" if able else ""))
    )


def _paas_ns(spec: Object, status: Object) -> str:
    del spec
    return f"namespace {status['namespace']}" if status.get("namespace") else ""


def _profile(spec: Object, status: Object) -> str:
    del status
    return ", ".join(filter(None, (str(spec.get("profile") or ""), str(spec.get("mode") or ""))))


_NOTES: Mapping[str, Callable[[Object, Object], str]] = {
    "ProjectHelmChart": _project_chart,
    "HelmRelease": _helm_release,
    "NamespaceScope": _namespace_scope,
    "ScopeInstance": _scope_instance,
    "ScopeTemplate": _scope_template,
    "SourceGrant": _source_grant,
    "Tenant": _tenant,
    "Paas": _paas,
    "PaasNS": _paas_ns,
    "TenancyProfile": _profile,
}
